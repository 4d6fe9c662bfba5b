"""Push credentials in a body: where they stand, by what the object around them is. Pure, in one pass.

A push configuration is one by the member that holds it, by its shape (a `url` beside a `token` or an
`authentication`), or because the method says that the whole body is one: the flat
`TaskPushNotificationConfig` of A2A 1.0 section 4.3.1. A `token` anywhere else is the application's data. The
webhook's url may hold a secret of its own.

The reader is no JSON parser: it takes strings, numbers and braces as they come and skips the rest, so
that a body that was cut, a block of an event stream, and an object with duplicate keys are read too.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import NamedTuple

from a2a_ledger.capture.search import Span
from a2a_ledger.capture.spelled import find_read
from a2a_ledger.capture.url_secrets import secret_places

_PIECE = re.compile(
    rb"(?P<framing>(?:\A|(?<=[\r\n]))(?::|event:|id:|retry:)[^\r\n]*+)"  # of an event stream
    rb'|"(?P<text>(?:[^"\\]++|\\.)*+)(?:"(?P<name>\s*+:)?|\\?\Z)'
    rb"|(?P<number>-?[0-9][0-9.eE+-]*+)"
    rb"|[{}]",
    re.DOTALL,
)
_SECRET = frozenset({"credentials", "token"})
_PUSH = frozenset(
    {
        *("pushnotification", "pushnotificationconfig", "taskpushnotificationconfig", "authentication"),
        *("pushnotificationconfigs", "taskpushnotificationconfigs"),
    }
)
_SHAPE = frozenset({"token", "authentication"})
_DEEPEST = 1000
"""Objects within objects; what lies deeper is no A2A message, and every `token` there is taken for secret."""

_URLS = frozenset({"url", "uri"})
_MAY_HOLD = (b'"token"', b'"credentials"', b'"authentication"', b"pushnotif", b"push_notif", b"push-notif")
_ESCAPED_LETTER = re.compile(rb"\\u00[4-7]")


class PushSpans(NamedTuple):
    """The values of tokens and credentials, and the secret places in urls of webhooks."""

    values: list[Span]
    in_urls: list[Span]


@dataclass(slots=True)
class _Object:
    """An object that is being read: what is known of it, and the values of it that may turn out secret."""

    is_push: bool
    is_secret: bool
    name: str = ""
    has_url: bool = False
    has_shape: bool = False
    held: list[Span] = field(default_factory=list[Span])
    urls: list[Span] = field(default_factory=list[Span])

    def settle(self, outer: _Object | None, found: PushSpans) -> None:
        """Decide, at its end, about what it holds."""
        if self.is_push or (self.has_url and self.has_shape):
            found.values.extend(self.held)
            found.in_urls.extend(self.urls)
        elif self.is_secret and outer is not None:
            outer.held += self.held


def may_hold_push(body: bytes) -> bool:
    """Say whether a body is worth reading: nearly all bodies have no member of such a name."""
    lower = body.lower()
    return any(name in lower for name in _MAY_HOLD) or bool(_ESCAPED_LETTER.search(body))


def push_values(body: bytes, *, is_push: bool = False) -> list[Span]:
    """Return where a body has the secrets of push configurations, see `read_push`, in their order."""
    found = read_push(body, is_push=is_push)
    return sorted([*found.values, *found.in_urls])


def read_push(body: bytes, *, is_push: bool = False) -> PushSpans:
    """Return where the secrets of push configurations stand.

    Of a string what stands between its quotes, of a number all of it.

    Args:
        body: JSON, or a block of an event stream.
        is_push: the method says that the body is a push configuration.
    """
    reading = _Reading(body, is_push=is_push)
    for piece in _PIECE.finditer(body):
        kind = piece.lastgroup
        if kind == "name":
            reading.name(piece["text"])
        elif kind == "text" or kind == "number":  # noqa: PLR1714 - a set would be looked up for every piece
            reading.value(piece.span(kind), is_text=kind == "text")
        elif kind is None and piece[0] == b"{":
            reading.begin()
        elif kind is None:
            reading.end()
    return reading.close()


class _Reading:
    """The objects that are open at one place of a body, the outermost first, and what was found before it."""

    def __init__(self, body: bytes, *, is_push: bool) -> None:
        self._body = body
        self._open = [_Object(is_push, is_secret=False)]
        self._deeper = 0
        self._names: dict[bytes, str] = {}
        self._found = PushSpans([], [])

    def name(self, raw: bytes) -> None:
        if raw not in self._names:
            self._names[raw] = string_value(raw).replace("_", "").replace("-", "").lower()
        current = self._open[-1]
        current.name = self._names[raw]
        current.has_shape |= current.name in _SHAPE

    def value(self, span: Span, *, is_text: bool) -> None:
        current = self._open[-1]
        if current.is_secret or current.name in _SECRET:
            current.held.append(span)
        if is_text and current.name in _URLS:
            current.has_url = True
            start = span[0]
            within = find_read(self._body[slice(*span)], secret_places)
            current.urls += [(start + begin, start + end) for begin, end in within]

    def begin(self) -> None:
        outer = self._open[-1]
        if len(self._open) > _DEEPEST:
            outer.is_push = True
            self._deeper += 1
        else:
            is_secret = outer.is_secret or outer.name in _SECRET
            self._open.append(_Object(outer.is_push or outer.name in _PUSH, is_secret))

    def end(self) -> None:
        if self._deeper:
            self._deeper -= 1
        elif len(self._open) > 1:
            self._open.pop().settle(self._open[-1], self._found)

    def close(self) -> PushSpans:
        """Return what was found; the objects that are still open were cut short."""
        while self._open:
            inner = self._open.pop()
            inner.settle(self._open[-1] if self._open else None, self._found)
        return PushSpans(sorted(self._found.values), sorted(self._found.in_urls))


def string_value(raw: bytes) -> str:
    """Return what stands between the quotes of a JSON string, read; as it is if it is none."""
    text = raw.decode("utf-8", "surrogateescape")
    if "\\" not in text:
        return text
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return text


def string_octets(raw: bytes) -> bytes:
    """Return the octets of what stands between the quotes of a JSON string, read: its UTF-8, odd or not."""
    text = string_value(raw)
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half a surrogate pair, escaped
        return text.encode("utf-8", "surrogatepass")
