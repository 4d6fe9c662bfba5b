"""Redaction, which happens before recording: what a credential leaves behind is a hole.

docs/format.md sections 3 and 4. A credential's bytes and its salt are never stored; its length
and its place are. Beside it stands the operator's own mark of the credential, by which the same
token can be recognised again in this ledger; the mark proves nothing to anybody else.

A credential is cut twice over: at the place that it came from, whatever its length, and wherever else
its octets stand in the same exchange, in any spelling of `spelled` or in base64, if they are at least six. A
shorter one is not looked for elsewhere, since it would match by chance. What says that something went wrong
shows parts of what it got: there each part of six octets is cut.
"""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from a2a_ledger.capture.fragments import SHORTEST, find_begun, find_parts
from a2a_ledger.capture.spelled import find_spelled, merge
from a2a_ledger.capture.url_secrets import queries_in_text, query_texts, secret_places, secrets_in_header, user_infos
from a2a_ledger.codec import Content, Hole, Withheld

if TYPE_CHECKING:
    from a2a_ledger.capture.search import Span
    from a2a_ledger.events import Credential

Headers = Sequence[tuple[str, str]]
Redactor = Callable[[str, bytes], Iterable[tuple[int, int]]]
"""The user's own redaction: (role, octets) to the (start, end) spans of the octets to withhold.

Roles: `body` of a message, or a block of an event stream as it came; `card` for the body of an answer to a
card GET; `url` as asked; `header:<name>` in lower case for a header's value, as it stands between the quotes
of its JSON string; `error` for what a library said. A span in a message's url is withheld from the record's field too.

Where it raises, or names what is no span (`0 <= start <= end`, and `start` at most the length), all octets of that role
are withheld, and the first such failure is logged, by its class and place alone: no call fails for it. It is called on
the event loop, for a large message in a thread, also in several at once, and may be called more than once for one text.
"""

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

CREDENTIAL_HEADERS = ("authorization", "proxy-authorization", "cookie", "set-cookie", "x-a2a-notification-token")
"""Headers that are recorded with their value as a hole."""

_SCHEME_THEN_SECRET = ("authorization", "proxy-authorization")
_CHALLENGE = "www-authenticate"
_SHORTEST_BASE64 = 8
_LONGEST_BASE64 = 64 * 1024
_SPELLINGS = 16
_LONGEST_HOLE = 1024 * 1024
_MAX_HEADERS = 16
_quoted = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True)
class Secret:
    """A credential seen on the wire.

    Attributes:
        scheme: what names it; "" where no card does, and then it is cut but leaves no mark.
        value: its octets, of which the mark is made.
        parts: octets inside of it that are secret by themselves: a password, a cookie's value.
    """

    scheme: str
    value: bytes
    parts: tuple[bytes, ...] = ()

    @cached_property
    def wanted(self) -> frozenset[bytes]:
        """Return the octets to look for in other places, see `wanted_of`."""
        plain = {value for value in _forms((self.value, *self.parts)) if len(value) >= SHORTEST}
        return frozenset(plain.union(*map(_in_base64, plain)))


class Secrets(tuple[Secret, ...]):  # noqa: SLOT001 - it holds what is worked out
    """The credentials of one leg; what is looked for because of them is worked out once."""

    @cached_property
    def wanted(self) -> tuple[bytes, ...]:
        """See `wanted_of`."""
        found = {value for secret in self for value in secret.wanted}
        return tuple(sorted(found, key=lambda value: (-len(value), value)))

    @cached_property
    def size(self) -> int:
        """What it costs to look for them, as `off_loop.size_of`."""
        return _SPELLINGS * sum([len(secret.value) for secret in self])

    def with_more(self, more: Sequence[Secret]) -> Secrets:
        """Return them with some more behind them; itself, if there are none."""
        return Secrets((*self, *more)) if more else self

    @classmethod
    def of(cls, secrets: Sequence[Secret]) -> Secrets:
        """Return credentials as these."""
        return secrets if isinstance(secrets, Secrets) else cls(secrets)


NONE = Secrets()


def wanted_of(secrets: Iterable[Secret]) -> tuple[bytes, ...]:
    """Return the octets to look for, longest first: each secret and its parts, as sent, percent-decoded, in base64.

    Header octets are read as ISO 8859-1 by some and as UTF-8 by others, so both are looked for. What is
    shorter than six octets is not looked for.
    """
    return (secrets if isinstance(secrets, Secrets) else Secrets(secrets)).wanted


def _forms(values: Iterable[bytes]) -> set[bytes]:
    found: set[bytes] = set()
    for value in values:
        found.add(value)
        if b"%" in value:
            found.add(unquote_to_bytes(value))
        if b"+" in value:
            found.add(unquote_to_bytes(value.replace(b"+", b" ")))
        if b" " in value:
            found.add(value.replace(b" ", b"+"))
    for value in [value for value in found if not value.isascii()]:
        found.add(value.decode("latin-1").encode())
        text = value.decode("utf-8", "ignore")
        if text.encode() == value:
            found.add(text.encode("latin-1", "ignore"))
    return found


def _in_base64(value: bytes) -> set[bytes]:
    """Return how base64 spells some octets: alone, and what is sure of it where they stand within others."""
    if len(value) > _LONGEST_BASE64:
        return set()
    alone = base64.b64encode(value)
    within = (base64.b64encode(value[skip : skip + (len(value) - skip) // 3 * 3]) for skip in range(3))
    found = {one.rstrip(b"=") for one in (alone, *within)}
    found |= {one.translate(_URL_SAFE) for one in found}
    return {one for one in found if len(one) >= _SHORTEST_BASE64}


_URL_SAFE = bytes.maketrans(b"+/", b"-_")


def mark_credentials(secrets: Iterable[Secret], key_id: str, key: bytes) -> list[Credential]:
    """Return the operator's marks: HMAC-SHA-256 over the domain and the credential's octets, each once."""
    marks: dict[tuple[str, str], Credential] = {}
    for secret in secrets:
        if secret.scheme:
            mac = hmac.digest(key, REDACT_DOMAIN + secret.value, "sha256").hex()
            marks[secret.scheme, mac] = {"k": key_id, "mac": mac, "scheme": secret.scheme}
    return list(marks.values())


def kept_headers(headers: Headers, secrets: Sequence[Secret], redactor: Redactor | None = None) -> list[Content]:
    """Return the header blobs: the RFC 8785 text of `[name, value]`, credentials cut (docs/format.md section 3).

    At most 16: the allow-list in its order, and every header that carried a credential. The urls in a header lose
    their user info and the query values whose names tell a secret.
    """
    carried = {secret.value for secret in secrets if secret.scheme}
    values = frozenset(secret.value for secret in secrets)
    chosen: list[tuple[int, str, str]] = []
    for name, value in headers:
        lower = name.lower()
        if lower in CREDENTIAL_HEADERS or (carried and value.encode("latin-1", "replace") in carried):
            chosen.append((-1, lower, value))
        elif lower in KEPT_HEADERS and not _says_nothing_new(lower, value, headers):
            chosen.append((KEPT_HEADERS.index(lower), lower, value))
    chosen.sort(key=lambda item: item[0])
    wanted = wanted_of(secrets)
    return [
        _header_blob(name, value, wanted, values, redactor, is_credential=rank < 0)
        for rank, name, value in chosen[:_MAX_HEADERS]
    ]


def _says_nothing_new(name: str, value: str, headers: Headers) -> bool:
    """Say whether a header repeats another one: SDKs send the extension header in both of its spellings."""
    return name == "x-a2a-extensions" and any(k.lower() == "a2a-extensions" and v == value for k, v in headers)


def _header_blob(  # noqa: PLR0913 - a header, and all that decides about its holes
    name: str,
    value: str,
    wanted: Sequence[bytes],
    values: frozenset[bytes],
    redactor: Redactor | None,
    *,
    is_credential: bool,
) -> Content:
    begin = f'[{_quoted(name)},"'.encode("utf-8", "replace")
    inner = _quoted(value)[1:-1].encode("utf-8", "replace")
    spans = find_spelled(inner, wanted)
    if is_credential:
        word = inner.find(b" ") + 1 if name in _SCHEME_THEN_SECRET else 0
        spans.append((word, len(inner)))
    else:
        spans += secrets_in_header(name, inner)
    if name == "location":
        spans += [span for span in query_texts(inner) if _read(inner[slice(*span)]) in values]
    elif name == _CHALLENGE:
        spans += find_parts(inner, wanted)
    if redactor is not None:
        spans += redactor(f"header:{name}", inner)
    here = [(start + len(begin), end + len(begin)) for start, end in merge(spans, len(inner))]
    return _cut_spans(begin + inner + b'"]', here)


def _read(inner: bytes) -> bytes:
    """Return octets that stand between the quotes of a JSON string which nothing but quotes has to be escaped in."""
    return inner.replace(b'\\"', b'"').replace(b"\\\\", b"\\")


def cut(  # noqa: PLR0913 - a body, and all that decides about its holes
    role: str,
    body: bytes,
    secrets: Sequence[Secret],
    *,
    places: Iterable[Span] = (),
    redactor: Redactor | None = None,
    keep: int | None = None,
    is_error: bool = False,
) -> Content:
    """Return a body's parts: credentials, the user's own spans, and the tail over `keep` become holes.

    Cuts inside of a JSON string cover whole escapes and characters, so that the body with `*` for the holes
    still parses. A secret of digits is cut out of numbers too: such a text parses with digits there (format.md 3.3).

    Args:
        role: see `Redactor`.
        body: exact bytes.
        secrets: what must not stand in it.
        places: spans that are secret because of where they stand.
        redactor: the user's own redaction.
        keep: how many bytes of it are kept.
        is_error: it says what went wrong, and may show a part of a secret.
    """
    wanted = wanted_of(secrets)
    spans = [*find_spelled(body, wanted), *find_begun(body, wanted), *places] if secrets or places else []
    if is_error:
        spans += find_parts(body, wanted)
    if role == "error":
        spans += [*user_infos(body), *queries_in_text(body)]
    if redactor is not None:
        spans += redactor(role, body)
    spans = merge(spans, len(body))
    if keep is None or len(body) <= keep:
        return _cut_spans(body, spans)
    head = _cut_spans(body[:keep], [(a, min(b, keep)) for a, b in spans if a < keep])
    return Content(parts=(*head.parts, Withheld(body[keep:])), kept="head")


def cut_url(url: str, secrets: Sequence[Secret], *, redactor: Redactor | None = None) -> Content:
    """Return a url with its user info, its secret query values, and every known secret as holes."""
    text = url.encode("utf-8", "replace")
    values = {secret.value for secret in secrets}
    spans = [*secret_places(text), *find_spelled(text, wanted_of(secrets))]
    spans += [span for span in query_texts(text) if text[slice(*span)] in values]
    if redactor is not None:
        spans += redactor("url", text)
    return _cut_spans(text, merge(spans, len(text)))


def starred(text: str, wanted: Sequence[bytes]) -> str:
    """Return a text that is lifted into a record, with `*` for each octet of a secret that stands in it."""
    octets = text.encode("utf-8", "surrogatepass") if wanted else b""
    spans = find_spelled(octets, wanted)
    if not spans:
        return text
    return filled(_cut_spans(octets, spans))


def filled(content: Content) -> str:
    """Return a content as text, with `*` for each octet of its holes."""
    return filled_octets(content).decode("utf-8", "surrogatepass")


def filled_octets(content: Content) -> bytes:
    """Return a content with `*` for each octet of its holes."""
    return b"".join(part if isinstance(part, bytes) else b"*" * _length(part) for part in content.parts)


def _length(part: Withheld | Hole) -> int:
    return len(part.content) if isinstance(part, Withheld) else part.length


def cut_apart(content: Content, spans: Iterable[Span]) -> Content:
    """Return a content in which each of these spans of octets is a part of its own, as far as it is kept.

    Args:
        content: of a body, holes and all.
        spans: places in the body, ascending.
    """
    places = [edge for span in spans for edge in span]
    if not places:
        return content
    parts: list[bytes | Withheld | Hole] = []
    start = 0
    for part in content.parts:
        if isinstance(part, bytes):
            size = len(part)
            edges = (edge - start for edge in places if start < edge < start + size)
            parts += [part[begin:end] for begin, end in pairwise((0, *edges, size))]
        else:
            size = _length(part)
            parts.append(part)
        start += size
    return Content(parts=tuple(parts), kept=content.kept)


def withhold(octets: bytes) -> list[Withheld]:
    """Return octets as holes that a reader fills again: each of 1 MiB at most."""
    return [Withheld(octets[at : at + _LONGEST_HOLE]) for at in range(0, len(octets), _LONGEST_HOLE)]


def _cut_spans(text: bytes, spans: Sequence[Span]) -> Content:
    parts: list[bytes | Withheld] = []
    at = 0
    for start, end in spans:
        if start > at:
            parts.append(text[at:start])
        parts += withhold(text[start:end])
        at = end
    if at < len(text) or not parts:
        parts.append(text[at:])
    return Content(parts=tuple(parts))
