"""Text in UTF-16 and UTF-32: read as UTF-8, with the way back to the octets as they came. Pure, and linear.

RFC 8259 has JSON in UTF-8 alone, and many readers take the others all the same. Whatever is looked for in a body is
looked for in what such a reader sees of it (docs/format.md section 3.3).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Span = tuple[int, int]
"""Start and end of some octets, as in a slice."""

_CODECS = (("utf-16-le", 2), ("utf-16-be", 2), ("utf-32-le", 4), ("utf-32-be", 4))
_BY_BOM = {"utf-16": "utf-16-le", "utf-32": "utf-32-le"}
_BIG_ENDIAN = (b"\xfe\xff", b"\x00\x00\xfe\xff")
_LONG = 256 * 1024
_BLOCK = 4096
_CONTINUATIONS = bytes(range(0x80, 0xC0))
_OUTSIDE_OF_FIRST_PLANE = bytes(range(0xF0, 0xF8))


class Wide:
    """One reading of octets in an encoding of wide units."""

    def __init__(self, octets: bytes, codec: str, unit: int, begin: int = 0) -> None:
        """Read octets; what is no text in this encoding becomes U+FFFD.

        Args:
            octets: as they came.
            codec: its name, with the byte order.
            unit: octets of one unit.
            begin: where the first unit stands.
        """
        whole = begin + (len(octets) - begin) // unit * unit
        self.text = octets[begin:whole].decode(codec, "replace").encode()
        self._unit = unit
        self._begin = begin
        self._units: list[int] | None = None  # before each block of the text

    def source(self, span: Span) -> Span:
        """Return where a span of the text stands in the octets as they came."""
        return self._source(span[0]), self._source(span[1])

    def _source(self, at: int) -> int:
        if self._units is None:
            self._units = [0]
            for start in range(0, len(self.text), _BLOCK):
                self._units.append(self._units[-1] + self._count(start, start + _BLOCK))
        block, rest = divmod(at, _BLOCK)
        units = self._units[block] + (self._count(at - rest, at) if rest else 0)
        return self._begin + units * self._unit

    def _count(self, start: int, end: int) -> int:
        """Return how many units a piece of the text has: a character's first octet counts for all of it."""
        piece = self.text[start:end]
        characters = len(piece.translate(None, _CONTINUATIONS))
        pairs = len(piece) - len(piece.translate(None, _OUTSIDE_OF_FIRST_PLANE)) if self._unit == 2 else 0  # noqa: PLR2004 - surrogate pairs are of UTF-16
        return characters + pairs


def wide_readings(octets: bytes) -> Iterator[Wide]:
    """Yield what octets say in each wide encoding, wherever its first unit may stand; nothing for what has no NUL.

    No text of A2A is without an ASCII sign, and so none in such an encoding is without NUL octets. A long text is read
    once at most, in the encoding that it tells by its first octets: reading it twelve times takes seconds.
    """
    if b"\0" not in octets:
        return
    if len(octets) > _LONG:
        told = wide_json(octets)
        if told is not None:
            yield told
        return
    for codec, unit in _CODECS:
        for begin in range(unit):
            yield Wide(octets, codec, unit, begin)


def wide_json(octets: bytes) -> Wide | None:
    """Return a JSON text that is in UTF-16 or UTF-32, by its byte order mark or its first signs; None: it is not."""
    if b"\0" not in octets:
        return None
    found = json.detect_encoding(octets)
    codec = _BY_BOM.get(found, found)
    if found in _BY_BOM and octets.startswith(_BIG_ENDIAN):
        codec = codec.replace("le", "be")
    unit = dict(_CODECS).get(codec)
    return Wide(octets, codec, unit) if unit is not None else None


def as_utf8(octets: bytes) -> tuple[bytes, Callable[[Span], Span]]:
    """Return a JSON text in UTF-8, and the way back from a span in it to the octets as they came."""
    found = wide_json(octets)
    return (found.text, found.source) if found is not None else (octets, _as_it_stands)


def _as_it_stands(span: Span) -> Span:
    return span
