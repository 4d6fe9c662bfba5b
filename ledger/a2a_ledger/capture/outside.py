"""Exchanges that are no A2A call and go to no agent's url, such as the token request of an authentication flow.

Such an exchange is recorded, so that what a client did is told without gaps, but what it says is nobody's
business here: its bodies are withheld whole, and so is what the queries and fragments of its url and of a `Location`
say (docs/format.md section 3.3).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from a2a_ledger.capture.attribution import urls_of_interface
from a2a_ledger.capture.push_objects import string_octets, string_value
from a2a_ledger.capture.redact import Secret
from a2a_ledger.capture.url_secrets import query_texts
from a2a_ledger.wire.wide import as_utf8

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from a2a_ledger.capture.reader import LogReader
    from a2a_ledger.capture.redacted import Seen
    from a2a_ledger.capture.search import Span
    from a2a_ledger.wire import Leg

_FIELDS = frozenset(
    {
        *("accesstoken", "refreshtoken", "idtoken", "clientsecret", "clientassertion", "assertion"),
        *("code", "codeverifier", "devicecode", "password", "subjecttoken", "actortoken"),
    }
)
"""Members of OAuth 2.0 token requests and answers (RFC 6749, 7521, 7636, 8628, 8693), without their underscores."""

_MEMBER = re.compile(  # a name is looked for from every quote, since quotes before it may stand alone: it is short
    rb'"(?P<name>(?:[^"\\]|\\.){0,128}+)"\s*+:\s*+'
    rb'(?:"(?P<text>(?:[^"\\]++|\\.)*+)|(?P<number>-?[0-9][0-9.eE+-]*+)|(?P<nested>[\[{]))',
    re.DOTALL,
)
_FORM = re.compile(rb"(?:^|[&;\r\n])(?P<name>[^=&;\s\"{}\[\]]++)=(?P<text>[^&;\r\n]++)")
_PART = re.compile(
    rb"[;\s]name=\"?(?P<name>[^\"\r\n;]{1,64}+)[^\r\n]{0,256}+(?:\r?\n[^\r\n]{1,256}+){0,8}+"
    rb"\r?\n\r?\n(?P<text>.*?)(?=\r?\n--|\Z)",
    re.DOTALL,
)
"""A field of a form in parts (RFC 7578)."""


def is_outside(reader: LogReader, leg: Leg, body: bytes) -> bool:
    """Say whether a request is no A2A call and goes to a url that no card of the log lists as an interface.

    Args:
        reader: the log.
        leg: the request, read; card fetches never come here.
        body: of the request. An unknown method is a call only in JSON that says that it is JSON-RPC.
    """
    at_card_path = leg.binding == "HTTP+JSON" and leg.method == "GetExtendedAgentCard"  # any API may have `/v1/card`
    if is_call(leg, body) and not at_card_path:
        return False
    return not any(reader.tagged_places(f"lists:{url}", limit=1) for url in urls_of_interface(leg.url))


def is_call(leg: Leg, body: bytes) -> bool:
    """Say whether a request is an A2A call, by what it says: an unknown method is one only as JSON-RPC."""
    return leg.binding != "unknown" and (leg.method is not None or b'"jsonrpc"' in body)


def as_said(seen: Seen, leg: Leg, *, outside: bool, url: str = "") -> Seen:
    """Return what was seen of one leg with what is secret in it because of the exchange that it belongs to.

    Args:
        seen: as `see` found it.
        leg: the request of the exchange.
        outside: what `is_outside` said of that request.
        url: of a request.
    """
    if leg.binding != "unknown" and not outside:
        return seen
    text, source = as_utf8(seen.body)
    spans = list(field_values(text))
    secrets = [Secret("", value) for span in spans if (value := string_octets(text[slice(*span)]))]
    places: tuple[Span, ...] = (*seen.places, *map(source, spans))
    if outside:
        urls = [url, *(value for name, value in seen.headers if name.lower() == "location")]
        secrets += said_in(urls)
        places = ((0, len(seen.body)),)
    return seen._replace(secrets=(*seen.secrets, *secrets), places=places)


def said_in(urls: Iterable[str]) -> list[Secret]:
    """Return all that urls say in path parameters, query and fragment."""
    octets = [url.encode("utf-8", "replace") for url in urls]
    return [Secret("", url[slice(*span)]) for url in octets for span in query_texts(url)]


def field_values(body: bytes) -> Iterator[Span]:
    """Yield where the values of OAuth members stand in a form or in JSON, wherever in it.

    Of a value that is no scalar all that follows it is taken: no token answer has one.
    """
    for found in _MEMBER.finditer(body):
        if _is_field(string_value(found["name"])):
            kind = "text" if found["text"] is not None else "number" if found["number"] is not None else "nested"
            yield found.span(kind) if kind != "nested" else (found.start("nested"), len(body))
    for found in (*_FORM.finditer(body), *_PART.finditer(body)):
        if _is_field(unquote_to_bytes(found["name"]).decode("utf-8", "replace")):
            yield found.span("text")


def _is_field(name: str) -> bool:
    return name.replace("_", "").replace("-", "").lower() in _FIELDS
