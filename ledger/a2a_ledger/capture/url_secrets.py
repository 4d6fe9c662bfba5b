"""Places in a url that hold a secret: its user info, and values whose name says so. Pure.

RFC 3986 section 3.2.1 (user info), 3.3 (`;name=value` in a path) and 3.4 (query). The fragment is read as a
query is: an OAuth answer puts its token there.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote_to_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.capture.search import Span

_AUTHORITY = re.compile(rb"\s*+(?:[A-Za-z][A-Za-z0-9+.-]*+:)?//([^/?#\\]*+)")
_IN_TEXT = re.compile(rb"://([^/?#\\\s\"'<>]*+)")
_PARAMETER = re.compile(rb";([^=;/]*+)=([^;/]*+)")
_PAIR = re.compile(rb"[?#&;]([^=?#&;]*+)=([^#&;]*+)")
_TEXT = re.compile(rb"[?#&;](?:[^=?#&;]*+=)?+([^#&;]++)")
_BEHIND_PATH = re.compile(rb"[?#]")
_URL_IN_TEXT = re.compile(rb"://[^\s\"'<>]*+")
_URL_IN_QUOTES = re.compile(rb"://[^\s\"'<>\\]*+")  # a quoted string's end is escaped where the string is itself quoted
_LISTED = re.compile(rb"[^\s,\"]++")
_LISTS = frozenset({"a2a-extensions", "x-a2a-extensions"})
_TELLING = frozenset(
    {
        *("apikey", "xapikey", "xgoogapikey", "key", "subscriptionkey", "ocpapimsubscriptionkey"),
        *("token", "accesstoken", "authtoken", "idtoken", "refreshtoken", "xamzsecuritytoken", "sastoken", "jwt"),
        *("auth", "authorization", "password", "passwd", "pwd", "secret", "clientsecret", "clientassertion"),
        *("sig", "signature", "xamzsignature", "xgoogsignature", "code", "sessionid", "jsessionid", "sid"),
        *("xauthtoken", "xaccesstoken", "xfunctionskey", "credentials", "sessiontoken", "tokenvalue", "xamzcredential"),
        "xgoogcredential",
    }
)


class QueryValue(NamedTuple):
    """One `name=value` of a url's path, query or fragment.

    Attributes:
        names: what its name may say, in lower case. A form writes a space as `+`, which may as well be itself.
        span: where the value stands.
    """

    names: tuple[str, ...]
    span: Span


def user_info(url: bytes) -> Span | None:
    """Return where the user info of a url stands, without its `@`; None when it has none."""
    found = _AUTHORITY.match(url)
    return _before_at(url, found.span(1)) if found else None


def user_infos(text: bytes) -> list[Span]:
    """Return where the user info of the urls in a free text stands."""
    return [span for found in _IN_TEXT.finditer(text) if (span := _before_at(text, found.span(1)))] if text else []


def queries_in_text(text: bytes) -> list[Span]:
    """Return where the urls in a free text say something in query and fragment."""
    urls = [found.span() for found in _URL_IN_TEXT.finditer(text)]  # whole, so that none is looked through twice
    said = [(found.end(), end) for start, end in urls if (found := _BEHIND_PATH.search(text, start, end))]
    return [span for span in said if span[0] < span[1]]


def secrets_in_header(name: str, text: bytes) -> list[Span]:
    """Return the places of the urls in a header's text that are never recorded: as `secret_places` of each.

    Args:
        name: in lower case; what some headers list are urls, which may be relative.
        text: its value, also as it stands between the quotes of a JSON string.
    """
    if name == "location":
        return secret_places(text)
    if name in _LISTS:
        urls = [found.span() for found in _LISTED.finditer(text)]
    else:
        urls = [(found.start() + 1, found.end()) for found in _URL_IN_QUOTES.finditer(text)]
    return [(start + a, start + b) for start, end in urls for a, b in secret_places(text[start:end])]


def query_values(url: bytes) -> Iterator[QueryValue]:
    """Yield the values in a url's path, query and fragment that are not empty."""
    behind = _BEHIND_PATH.search(url)
    path = behind.start() if behind else len(url)
    for found in _PARAMETER.finditer(url, 0, path):
        if found[2]:
            yield QueryValue((_read(found[1]),), found.span(2))
    for found in _PAIR.finditer(url, path):
        if found[2]:
            plain = _read(found[1])
            names = (plain, _read(found[1].replace(b"+", b" "))) if b"+" in found[1] else (plain,)
            yield QueryValue(names, found.span(2))


def query_texts(url: bytes) -> Iterator[Span]:
    """Yield where a url says something in path parameters, query and fragment: a value, or what has no name."""
    behind = _BEHIND_PATH.search(url)
    path = behind.start() if behind else len(url)
    yield from (found.span(2) for found in _PARAMETER.finditer(url, 0, path))
    yield from (found.span(1) for found in _TEXT.finditer(url, path))


@lru_cache(maxsize=1024)
def tells(name: str) -> bool:
    """Say whether a query parameter or a header of this name holds a secret, whatever the card says."""
    return re.sub(r"[^a-z0-9]", "", name.lower()) in _TELLING


def secret_places(url: bytes) -> list[Span]:
    """Return the places of a url that are never recorded."""
    spans = [value.span for value in query_values(url) if tells(value.names[0])]  # a sign more or less tells the same
    info = user_info(url)
    return [info, *spans] if info else spans


def _read(name: bytes) -> str:
    return unquote_to_bytes(name).decode("utf-8", "replace").lower()


def _before_at(text: bytes, authority: Span) -> Span | None:
    at = text.rfind(b"@", *authority)
    return (authority[0], at) if at > authority[0] else None
