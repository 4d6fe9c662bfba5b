"""DER (ITU-T X.690), read strictly and written plainly: as much of it as time tokens need. Pure.

One value has one encoding: lengths are definite and shortest, numbers have no spare octet, nothing is left over.
What two readers could read differently is refused.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from a2a_ledger.errors import FormatError

BOOLEAN: Final = 0x01
INTEGER: Final = 0x02
BIT_STRING: Final = 0x03
OCTETS: Final = 0x04
NULL: Final = 0x05
OID: Final = 0x06
UTF8: Final = 0x0C
TIME: Final = 0x18  # GeneralizedTime
SEQUENCE: Final = 0x30
SET: Final = 0x31

_LONG = 0x80  # in a length: so many octets of length follow
_MOST_LENGTH = 4


def context(number: int) -> int:
    """Return the tag of a constructed value with a context-specific number."""
    return 0xA0 + number


def primitive(number: int) -> int:
    """Return the tag of a primitive value with a context-specific number."""
    return 0x80 + number


class Value(NamedTuple):
    """One encoded value: its tag, its content, and all of its octets."""

    tag: int
    content: bytes
    raw: bytes


class Reader:
    """Takes values one by one out of some octets.

    Args:
        octets: the content of a constructed value, or a whole file.
        what: names it in errors.
    """

    def __init__(self, octets: bytes, what: str) -> None:
        self._octets = octets
        self._at = 0
        self._what = what

    @property
    def tag(self) -> int | None:
        """Return the tag of the next value, None at the end."""
        return self._octets[self._at] if self._at < len(self._octets) else None

    def take(self, tag: int | None = None) -> Value:
        """Take the next value.

        Raises:
            FormatError: there is none, it has another tag, or it is not in DER.
        """
        found = self.tag
        if found is None or (tag is not None and found != tag):
            raise FormatError(f"{self._what}: expected a value of tag {_hex(tag)} at octet {self._at}, {_hex(found)}")
        if found & 0x1F == 0x1F:  # noqa: PLR2004 - X.690, 8.1.2.4: a tag number of several octets; none is used here
            raise FormatError(f"{self._what}: a tag of several octets at octet {self._at}")
        start = self._at
        content = self._length_end(start + 1)
        self._at = content[1]
        return Value(found, self._octets[content[0] : content[1]], self._octets[start : content[1]])

    def take_if(self, tag: int) -> Value | None:
        """Take the next value if it has this tag."""
        return self.take(tag) if self.tag == tag else None

    def inside(self, tag: int) -> Reader:
        """Take the next value and return a reader of what is inside."""
        return Reader(self.take(tag).content, self._what)

    def all(self) -> list[Value]:
        """Take all values that are left."""
        values: list[Value] = []
        while self.tag is not None:
            values.append(self.take())
        return values

    def end(self) -> None:
        """Check that nothing is left.

        Raises:
            FormatError: something is.
        """
        if self.tag is not None:
            raise FormatError(f"{self._what}: something follows at octet {self._at} that has no place there")

    def integer(self) -> int:
        """Take an INTEGER."""
        return self.number(self.take(INTEGER).content)

    def number(self, content: bytes) -> int:
        """Return the number that the content of an INTEGER states."""
        spare = len(content) > 1 and content[0] in {0x00, 0xFF} and (content[0] ^ content[1]) < _LONG
        if not content or spare:
            raise FormatError(f"{self._what}: a number that is not in its shortest form")
        return int.from_bytes(content, "big", signed=True)

    def flag(self) -> bool:
        """Take a BOOLEAN that has the default FALSE: in DER it is there only to say TRUE."""
        found = self.take_if(BOOLEAN)
        if found is not None and found.content != b"\xff":
            raise FormatError(f"{self._what}: a truth value that is not TRUE; FALSE is left out")
        return found is not None

    def oid(self) -> str:
        """Take an OBJECT IDENTIFIER and return it with dots."""
        content = self.take(OID).content
        arcs: list[int] = []
        arc, fresh = 0, True
        for octet in content:
            if fresh and octet == _LONG:
                raise FormatError(f"{self._what}: an object identifier that is not in its shortest form")
            arc, fresh = arc << 7 | octet & 0x7F, octet < _LONG
            if fresh:
                arcs.append(arc)
                arc = 0
        if not fresh or not arcs:
            raise FormatError(f"{self._what}: an object identifier that breaks off")
        first = min(arcs[0] // 40, 2)
        return ".".join(map(str, (first, arcs[0] - 40 * first, *arcs[1:])))

    def _length_end(self, at: int) -> tuple[int, int]:
        """Return where the content begins and ends, from the octet of its length."""
        octets = self._octets
        length, start = (octets[at], at + 1) if at < len(octets) else (_LONG, at)
        if length >= _LONG:
            size = length - _LONG
            spelled = octets[start : start + size]
            start += size
            length = int.from_bytes(spelled, "big")
            if not 1 <= size <= _MOST_LENGTH or len(spelled) < size or spelled[0] == 0 or length < _LONG:
                raise FormatError(f"{self._what}: a length that is not in its one form at octet {at}")
        if start + length > len(octets):
            raise FormatError(f"{self._what}: breaks off: {start + length} octets announced, {len(octets)} there")
        return start, start + length


def _hex(tag: int | None) -> str:
    return "none" if tag is None else f"{tag:02x}"


def encode(tag: int, *pieces: bytes) -> bytes:
    """Return a value of this tag around the pieces."""
    content = b"".join(pieces)
    length = len(content)
    spelled = length.to_bytes((length.bit_length() + 7) // 8, "big")
    head = bytes([length]) if length < _LONG else bytes([_LONG + len(spelled)]) + spelled
    return bytes([tag]) + head + content


def encode_integer(number: int) -> bytes:
    """Return an INTEGER; `number` is not negative."""
    return encode(INTEGER, number.to_bytes(number.bit_length() // 8 + 1, "big"))


def encode_oid(dotted: str) -> bytes:
    """Return an OBJECT IDENTIFIER.

    Raises:
        FormatError: this is none.
    """
    parts = dotted.split(".")
    if len(parts) < 2 or not all(part.isascii() and part.isdigit() for part in parts):  # noqa: PLR2004 - X.660: at least two arcs
        raise FormatError(f"expected an object identifier such as 1.2.3.4, found {dotted[:80]!r}")
    first, second, *rest = map(int, parts)
    if first > 2 or (first < 2 and second > 39):  # noqa: PLR2004 - X.660: three roots, the first two with 40 arcs
        raise FormatError(f"expected an object identifier such as 1.2.3.4, found {dotted[:80]!r}")
    return encode(OID, *(_arc(arc) for arc in (40 * first + second, *rest)))


def _arc(arc: int) -> bytes:
    octets = [arc & 0x7F]
    while arc := arc >> 7:
        octets.append(arc & 0x7F | _LONG)
    return bytes(reversed(octets))
