"""Cassettes of recorded HTTP, as vcrpy, betamax and Ruby's VCR write them: their interactions as exchanges.

A cassette states no times (Ruby's VCR does, for each interaction), and holds what its owner's filters left:
an exchange is what the cassette says, in its order. YAML is read event by event, with plain values only: a tag
that would make an object is refused, and the one interaction that has it is unreadable.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

from a2a_ledger.capture.formats.entry import Entry
from a2a_ledger.capture.formats.fields import HTTP_STATUS, a_number, a_text, an_object, wrong
from a2a_ledger.capture.formats.kind import kind_of
from a2a_ledger.capture.formats.scan import member, spans, start_of_value
from a2a_ledger.capture.jsonl_line import Answered, Asked, ExchangeLine, HeaderList
from a2a_ledger.errors import FormatError
from a2a_ledger.wire.jsontext import lift, read_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.capture.formats.scan import Text
    from a2a_ledger.events import Json
    from a2a_ledger.wire import Headers

LISTS = ("interactions", "http_interactions")
"""Where a cassette has its interactions: vcrpy; betamax and Ruby's VCR."""


def json_entries(text: Text) -> Iterator[Entry] | None:
    """Return the interactions of a cassette in JSON; None if it is none."""
    listed = member(text, start_of_value(text), *LISTS)
    if listed is None or text[listed : listed + 1] != b"[":
        return None
    return (
        Entry(number, text[span.start : span.end], span.end, read_json_interaction)
        for number, span in enumerate(spans(text, listed), start=1)
    )


def read_json_interaction(raw: bytes) -> ExchangeLine:
    """Read one interaction.

    Raises:
        FormatError: it is not JSON, or no interaction.
    """
    read = read_json(raw)
    if not read.ok:
        raise FormatError(f"expected an interaction, found bytes that are not JSON ({', '.join(sorted(read.flags))})")
    if "duplicate-keys" in read.flags:
        raise FormatError("the same key stands twice in one object, so the interaction reads in two ways")
    return read_interaction(read.value)


def read_interaction(value: Json) -> ExchangeLine:
    """Read one interaction, as JSON; octets that YAML holds are `{"base64_string": text}`.

    Raises:
        FormatError: it is none; the message names the member, what was expected and what was found.
    """
    interaction = an_object("the interaction", value)
    request = an_object("request", interaction.get("request"))
    response = an_object("response", interaction.get("response"))
    asked = Asked(
        method=a_text("request.method", request.get("method")).upper(),
        url=a_text("request.uri", request.get("uri", request.get("url"))),
        headers=_headers("request.headers", request.get("headers")),
        body=_body("request.body", request.get("body")),
    )
    status = response.get("status", response.get("status_code"))
    code = a_number("response.status", status.get("code") if isinstance(status, dict) else status)
    if code not in HTTP_STATUS:
        wrong("response.status", "an HTTP status", code)
    headers = _headers("response.headers", response.get("headers"))
    body = _body("response.body", response.get("body", response.get("content")))
    return ExchangeLine(
        at=lift(interaction.get("recorded_at"), set()),
        kind=kind_of(asked),
        request=asked,
        response=Answered(code, headers, body),
        failure=None,
    )


def _headers(where: str, value: Json) -> Headers:
    """Return headers of an object: name to value, or to all its values."""
    found = HeaderList(where)
    for name, values in an_object(where, {} if value is None else value).items():
        a_text(where, name)
        for one in values if isinstance(values, list) else [values]:
            octets = _body(f"{where}.{name}", one) if isinstance(one, dict) else None  # !!binary of an old cassette
            found.add(name, octets.decode("latin-1") if octets is not None else a_text(f"{where}.{name}", one))
    return found.pairs


def _body(where: str, value: Json) -> bytes:
    """Return the octets of a body: a text, or an object that holds one, or base64."""
    if isinstance(value, dict) and value.get("base64_string") is not None:
        encoded = a_text(f"{where}.base64_string", value.get("base64_string"))
        try:
            return base64.b64decode("".join(encoded.split()), validate=True)
        except (binascii.Error, ValueError):
            wrong(f"{where}.base64_string", "base64", "something else")
    text = value.get("string", value.get("text")) if isinstance(value, dict) else value
    if isinstance(text, dict):  # octets in YAML
        return _body(f"{where}.string", {"base64_string": text.get("base64_string", "")})
    if text is None:
        return b""
    if not isinstance(text, str):
        wrong(where, "a text", text)
    return text.encode("utf-8", "surrogatepass")
