"""Where a text holds some octets, however they are spelled there. Pure, and linear in the text.

A credential that comes back in an answer is seldom spelled as it was sent: JSON writers escape it, urls
percent-encode it, HTML pages have entities for its signs, and JSON in a JSON string does it twice. The
text is therefore read as often as it was spelled, each reading keeping the way back to the octets as
they came (docs/format.md section 3.3).

Not searched: hashes of the octets, and other cases of letters. Parts of them are `fragments`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import lru_cache
from html.entities import html5
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.capture.search import Search, Span
from a2a_ledger.wire.wide import wide_readings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_JSON = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\[^u]", re.DOTALL)
_PERCENT = re.compile(rb"%[0-9a-fA-F]{2}")
_ENTITY = re.compile(rb"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,8});")
_ESCAPED_ASCII = re.compile(rb"\\u00[2-7]")
_SHORT = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_READINGS = 3
"""JSON in a JSON string in a JSON string; deeper nestings are not met."""

_CONTINUATION = 0b10
"""The first two bits of the second to last octets of a UTF-8 character, of which there are at most three."""

_CONTINUATIONS = 3


class _Way(NamedTuple):
    """The escapes of a text, in order: where each is read to, and where it stands."""

    starts: list[int]
    ends: list[int]
    source_starts: list[int]
    source_ends: list[int]


class Reading:
    """A text read once more than the one before it; the way back is made when something is found."""

    def __init__(self, text: bytes, before: Reading | None = None, token: re.Pattern[bytes] = _JSON) -> None:
        self.text = text
        self._before = before
        self._token = token
        self._way: _Way | None = None

    def read(self, token: re.Pattern[bytes]) -> Reading:
        """Read the text's escapes."""
        return Reading(token.sub(_meaning, self.text), self, token)

    def source(self, span: Span) -> Span:
        """Return where a span of this reading stands in the octets as they came."""
        if self._before is None:
            return span
        if self._way is None:
            self._way = self._made(self._before.text)
        return self._before.source((self._start(self._way, span[0]), self._end(self._way, span[1])))

    def _made(self, text: bytes) -> _Way:
        way = _Way([], [], [], [])
        shift = 0
        for found in self._token.finditer(text):
            start, end = found.span()
            length = len(_meaning(found))
            way.starts.append(start + shift)
            way.ends.append(start + shift + length)
            way.source_starts.append(start)
            way.source_ends.append(end)
            shift += length - (end - start)
        return way

    @staticmethod
    def _start(way: _Way, at: int) -> int:
        i = bisect_right(way.starts, at) - 1
        if i < 0:
            return at
        return way.source_starts[i] if at < way.ends[i] else way.source_ends[i] + at - way.ends[i]

    @staticmethod
    def _end(way: _Way, end: int) -> int:
        i = bisect_right(way.starts, end - 1) - 1
        return way.source_ends[i] + max(0, end - way.ends[i]) if i >= 0 else end


def find_spelled(text: bytes, wanted: Sequence[bytes]) -> list[Span]:
    """Return where `text` holds one of the wanted octet strings, sorted and without overlaps.

    A span covers whole escapes and whole UTF-8 characters, so that a JSON text in which spans inside of
    strings are overwritten still parses.

    Args:
        text: any octets: JSON, HTML, a url, a block of an event stream.
        wanted: octet strings, none of them empty.
    """
    if not wanted:
        return []
    search = Search(wanted)
    return spans_in_each(text, lambda octets: _find(octets, wanted, search))


def spans_in_each(text: bytes, find: Callable[[bytes], Iterable[Span]]) -> list[Span]:
    """Return where something stands in a text, whether it is in UTF-8 or in wide units; sorted, without overlaps.

    Args:
        text: as it came.
        find: finds it in UTF-8.
    """
    found = list(find(text))
    for wide in wide_readings(text):
        found += [wide.source(span) for span in find(wide.text)]
    return merge(found, len(text))


def find_read(text: bytes, find: Callable[[bytes], Iterable[Span]]) -> list[Span]:
    """Return where something stands in the octets of a JSON string that is found in what they mean.

    Args:
        text: what stands between the quotes.
        find: finds it in the string's value.
    """
    if b"\\" not in text:
        return list(find(text))
    reading = Reading(text).read(_JSON)
    return _whole(text, merge((reading.source(span) for span in find(reading.text)), len(text)))


def merge(spans: Iterable[Span], length: int) -> list[Span]:
    """Return spans sorted, within the length, with overlapping and touching ones joined."""
    merged: list[Span] = []
    for start, end in sorted((max(0, a), min(b, length)) for a, b in spans):
        if start >= end:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def _find(text: bytes, wanted: Sequence[bytes], search: Search) -> list[Span]:
    if not (b"\\" in text or b"%" in text or b"&" in text or any(True for _ in search.spans(text))):
        return []  # nearly always
    found = [reading.source(span) for reading in readings(text, wanted) for span in search.spans(reading.text)]
    return _whole(text, merge(found, len(text))) if found else []


def readings(text: bytes, wanted: Sequence[bytes]) -> Iterator[Reading]:
    """Yield the text as it came, then as often read as it may have been spelled."""
    reading = Reading(text)
    yield reading
    if b"\\" in text:
        signs = frozenset(b"".join(wanted))
        for _ in range(_READINGS):
            if not _worth_reading(reading.text, signs):
                break
            reading = reading.read(_JSON)
            yield reading
    if b"&" in text and _ENTITY.search(reading.text):
        yield reading.read(_ENTITY)
    if b"%" in reading.text:
        for _ in range(_READINGS):
            if not _PERCENT.search(reading.text):
                break
            reading = reading.read(_PERCENT)
            yield reading


def _worth_reading(text: bytes, signs: frozenset[int]) -> bool:
    """Say whether some escape may stand for a sign that is looked for: most texts have others only."""
    if any(sign < ord(" ") or sign >= 0x7F for sign in signs):  # noqa: PLR2004 - the ASCII signs that print
        return b"\\" in text
    return any(sign in signs and bytes((ord("\\"), sign)) in text for sign in b'"/\\') or bool(
        _ESCAPED_ASCII.search(text)
    )


def _meaning(escape: re.Match[bytes]) -> bytes:
    token = escape[0]
    begin = token[:1]
    return _json(token) if begin == b"\\" else _percent(token) if begin == b"%" else _entity(token)


@lru_cache(maxsize=4096)
def _json(token: bytes) -> bytes:
    """Read one escape of RFC 8259 section 7; half a surrogate pair stands for itself."""
    if token[1:2] != b"u":
        return _SHORT.get(token[1:], token[1:])
    units = bytes.fromhex(token.replace(b"\\u", b"").decode())
    return units.decode("utf-16-be", "surrogatepass").encode("utf-8", "surrogatepass")


def _percent(token: bytes) -> bytes:
    return bytes((int(token[1:], 16),))


def _entity(token: bytes) -> bytes:
    name = token[1:].decode()
    if name[0] != "#":
        return html5.get(name, token.decode()).encode()
    number = int(name[2:-1], 16) if name[1] in "xX" else int(name[1:-1])
    return chr(number).encode("utf-8", "surrogatepass") if number <= 0x10FFFF else token  # noqa: PLR2004 - of Unicode


def _whole(text: bytes, spans: list[Span]) -> list[Span]:
    """Widen spans to the ends of the escapes and UTF-8 characters that they begin or end in."""
    starts = [found.start() for found in _JSON.finditer(text)] if b"\\" in text else []
    widened: list[Span] = []
    for begin, finish in spans:
        start, end = begin, finish
        first, last = bisect_right(starts, start) - 1, bisect_right(starts, end - 1) - 1
        if first >= 0 and start < _end_of_escape(text, starts[first]):
            start = starts[first]
        if last >= 0:
            end = max(end, _end_of_escape(text, starts[last]))
        while start > 0 and begin - start < _CONTINUATIONS and text[start] >> 6 == _CONTINUATION:
            start -= 1
        while end < len(text) and end - finish < _CONTINUATIONS and text[end] >> 6 == _CONTINUATION:
            end += 1
        widened.append((start, end))
    return merge(widened, len(text))


def _end_of_escape(text: bytes, start: int) -> int:
    found = _JSON.match(text, start)
    return found.end() if found else start
