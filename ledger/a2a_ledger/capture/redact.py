"""Redaction, which happens before recording: what a credential leaves behind is a hole.

docs/format.md sections 3 and 4. A credential's bytes and its salt are never stored; its length
and its place are. Beside it stands the operator's own mark of the credential, by which the same
token can be recognised again in this ledger; the mark proves nothing to anybody else.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast
from urllib.parse import unquote_to_bytes, urlsplit

from a2a_ledger.codec import Content, Withheld

if TYPE_CHECKING:
    from a2a_ledger.events import Credential

Headers = Sequence[tuple[str, str]]
Redactor = Callable[[str, bytes], Iterable[tuple[int, int]]]
"""The user's own redaction: (role, bytes) to the (start, end) spans to withhold."""

REDACT_DOMAIN = b"a2a-ledger/redact/v1\0"

KEPT_HEADERS = (
    "a2a-version",
    "a2a-extensions",
    "x-a2a-extensions",
    "content-type",
    "content-encoding",
    "etag",
    "last-modified",
    "cache-control",
    "age",
    "date",
    "if-none-match",
    "if-modified-since",
    "location",
    "traceparent",
    "www-authenticate",
)
"""Headers that are recorded, in this order of preference; all others are not."""

_CREDENTIAL_HEADERS = ("authorization", "proxy-authorization", "cookie", "set-cookie", "x-a2a-notification-token")
_SECRET_MEMBERS = frozenset({"credentials", "token"})
_PUSH_MEMBERS = frozenset({"pushnotificationconfig", "taskpushnotificationconfig", "authentication"})
_JSON_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SHORTEST_CUT = 6
"""A shorter secret is not searched for in bodies: it would match by chance."""

_MAX_HEADERS = 16


@dataclass(frozen=True, slots=True)
class ApiKeyPlace:
    """Where a card's apiKey scheme puts its key: (scheme name, header | query | cookie, member name)."""

    scheme: str
    location: str
    name: str


@dataclass(frozen=True, slots=True)
class Secret:
    """A credential seen on the wire: the scheme that names it, and its octets."""

    scheme: str
    value: bytes


def api_key_places(schemes: dict[str, object]) -> list[ApiKeyPlace]:
    """Return the places that a contract's scheme table (docs/format.md section 7) names for API keys."""
    places: list[ApiKeyPlace] = []
    for name, scheme in schemes.items():
        if isinstance(scheme, dict):
            entry = cast("dict[str, object]", scheme)
            if entry.get("kind") == "apiKey":
                places.append(ApiKeyPlace(name, str(entry.get("in", "")).lower(), str(entry.get("name", "")).lower()))
    return places


def find_secrets(headers: Headers, url: str, body: bytes, schemes: dict[str, object]) -> list[Secret]:
    """Find every credential of one request or response, in headers, url and body.

    Args:
        headers: names and values as on the wire.
        url: the url asked.
        body: exact body bytes.
        schemes: the scheme table of the contract in force, which names API keys and bearer schemes.
    """
    places = api_key_places(schemes)
    secrets: list[Secret] = []
    for name, value in headers:
        lower = name.lower()
        if lower in _CREDENTIAL_HEADERS:
            secrets.append(_from_credential_header(lower, value, schemes, places))
        secrets.extend(
            Secret(place.scheme, value.encode("latin-1", "replace"))
            for place in places
            if place.location == "header" and place.name == lower and lower not in _CREDENTIAL_HEADERS
        )
    query = urlsplit(url).query
    for pair in query.split("&") if query else ():
        name, _, value = pair.partition("=")
        if value:
            key = unquote_to_bytes(name).decode("utf-8", "replace").lower()
            secrets.extend(
                Secret(place.scheme, value.encode())
                for place in places
                if place.location == "query" and place.name == key
            )
    if body and any(member in body for member in (b'"token"', b'"credentials"')):
        secrets.extend(_from_body(body))
    return [secret for secret in secrets if secret.value]


def _from_credential_header(name: str, value: str, schemes: dict[str, object], places: Sequence[ApiKeyPlace]) -> Secret:
    if name in {"authorization", "proxy-authorization"}:
        kind, _, token = value.partition(" ")
        if not token:
            kind, token = "", value
        return Secret(_scheme_for(kind.lower(), schemes, places), token.strip().encode("latin-1", "replace"))
    if name in {"cookie", "set-cookie"}:
        cookies = {part.partition("=")[0].strip().lower() for part in value.split(";")}
        named = [place.scheme for place in places if place.location == "cookie" and place.name in cookies]
        return Secret(named[0] if named else name, value.encode("latin-1", "replace"))
    return Secret("push-token", value.encode("latin-1", "replace"))


def _scheme_for(kind: str, schemes: dict[str, object], places: Sequence[ApiKeyPlace]) -> str:
    """Name the card's scheme that an Authorization header of this kind serves; else say what it is."""
    for place in places:
        if place.location == "header" and place.name == "authorization":
            return place.scheme
    for name, scheme in schemes.items():
        entry = cast("dict[str, object]", scheme) if isinstance(scheme, dict) else {}
        of_kind = entry.get("kind") == "http" and entry.get("scheme") == kind
        bearer = kind == "bearer" and entry.get("kind") in {"oauth2", "openIdConnect"}
        if of_kind or bearer:
            return name
    return f"authorization:{kind}" if kind else "authorization"


def _from_body(body: bytes) -> list[Secret]:
    """Find push tokens and push credentials by the members that hold them."""
    try:
        document = cast("object", json.loads(body))
    except (ValueError, RecursionError):
        return []
    found: list[Secret] = []
    waiting: list[tuple[object, bool]] = [(document, False)]
    while waiting:
        node, in_push = waiting.pop()
        if isinstance(node, dict):
            for name, value in cast("dict[str, object]", node).items():
                if in_push and name in _SECRET_MEMBERS and isinstance(value, str):
                    found.append(
                        Secret("push-token", json.dumps(value, ensure_ascii=False)[1:-1].encode("utf-8", "replace"))
                    )
                else:
                    waiting.append((value, in_push or name.lower() in _PUSH_MEMBERS))
        elif isinstance(node, list):
            waiting.extend((item, in_push) for item in cast("list[object]", node))
    return found


def mark_credentials(secrets: Iterable[Secret], key_id: str, key: bytes) -> list[Credential]:
    """Return the operator's marks: HMAC-SHA-256 over the domain and the credential's octets, each once."""
    marks: dict[tuple[str, str], Credential] = {}
    for secret in secrets:
        mac = hmac.digest(key, REDACT_DOMAIN + secret.value, "sha256").hex()
        marks[secret.scheme, mac] = {"k": key_id, "mac": mac, "scheme": secret.scheme}
    return list(marks.values())


def kept_headers(headers: Headers, secrets: Sequence[Secret]) -> list[Content]:
    """Return the header blobs: the RFC 8785 text of `[name, value]`, credentials cut (docs/format.md section 3).

    At most 16: the allow-list in its order, and every header that carried a credential.
    """
    carried = {secret.value for secret in secrets}
    chosen: list[tuple[int, str, str]] = []
    for name, value in headers:
        lower = name.lower()
        credential = lower in _CREDENTIAL_HEADERS or value.encode("latin-1", "replace") in carried
        if credential:
            chosen.append((-1, lower, value))
        elif lower in KEPT_HEADERS and not _says_nothing_new(lower, value, headers):
            chosen.append((KEPT_HEADERS.index(lower), lower, value))
    chosen.sort(key=lambda item: item[0])
    return [_header_blob(name, value, secrets) for _, name, value in chosen[:_MAX_HEADERS]]


def _says_nothing_new(name: str, value: str, headers: Headers) -> bool:
    """Say whether a header repeats another one: SDKs send the extension header in both of its spellings."""
    return name == "x-a2a-extensions" and any(k.lower() == "a2a-extensions" and v == value for k, v in headers)


def _header_blob(name: str, value: str, secrets: Sequence[Secret]) -> Content:
    text = json.dumps([name, value], ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    wanted = [json.dumps(s.value.decode("latin-1"), ensure_ascii=False)[1:-1].encode() for s in secrets]
    return _cut_spans(text, _occurrences(text, [w for w in wanted if w], within=(len(name) + 3, len(text))))


def cut(
    role: str, body: bytes, secrets: Sequence[Secret], *, redactor: Redactor | None = None, keep: int | None = None
) -> Content:
    """Return a body's parts: credentials by exact match, the user's own spans, and the tail over `keep` become holes.

    Cuts lie inside JSON strings, so that the body with `*` for the holes still parses.
    """
    wanted = sorted({s.value for s in secrets if len(s.value) >= _SHORTEST_CUT}, key=len, reverse=True)
    spans = _in_strings(body, wanted) if wanted and any(w in body for w in wanted) else []
    if redactor is not None:
        spans = _merge([*spans, *redactor(role, body)], len(body))
    if keep is None or len(body) <= keep:
        return _cut_spans(body, spans)
    head = _cut_spans(body[:keep], [(a, min(b, keep)) for a, b in spans if a < keep])
    return Content(parts=(*head.parts, Withheld(body[keep:])), kept="head")


def cut_url(url: str, secrets: Sequence[Secret]) -> Content:
    """Return a url with its secret query values as holes."""
    text = url.encode("utf-8", "replace")
    start = text.find(b"?")
    return _cut_spans(
        text, _occurrences(text, [s.value for s in secrets], within=(start, len(text))) if start >= 0 else []
    )


def _in_strings(body: bytes, wanted: Sequence[bytes]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for string in _JSON_STRING.finditer(body):
        spans.extend(_occurrences(body, wanted, within=(string.start() + 1, string.end() - 1)))
    if spans:
        return _merge(spans, len(body))
    return _occurrences(body, wanted, within=(0, len(body)))  # not JSON: nothing to keep parseable


def _occurrences(text: bytes, wanted: Sequence[bytes], *, within: tuple[int, int]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    start, end = within
    for value in wanted:
        at = text.find(value, start, end) if value else -1
        while at >= 0:
            spans.append((at, at + len(value)))
            at = text.find(value, at + len(value), end)
    return _merge(spans, len(text))


def _merge(spans: Iterable[tuple[int, int]], length: int) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted((max(0, a), min(b, length)) for a, b in spans):
        if start >= end:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def _cut_spans(text: bytes, spans: Sequence[tuple[int, int]]) -> Content:
    parts: list[bytes | Withheld] = []
    at = 0
    for start, end in spans:
        if start > at:
            parts.append(text[at:start])
        parts.append(Withheld(text[start:end]))
        at = end
    if at < len(text) or not parts:
        parts.append(text[at:])
    return Content(parts=tuple(parts))
