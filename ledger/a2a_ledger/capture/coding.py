"""Content codings, taken off in one way for all that is recorded: piece by piece, and of gzip through all members.

What is read here must be what the other side reads. Octets that are left over, a member that breaks off, and a coding
that nobody here knows (`br`, `zstd`) say nothing to us: redaction can cut nothing out of them, and no rule can judge
them (docs/format.md section 3).
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.wire import Headers

MOST_OCTETS = 64 * 1024 * 1024
"""What a body that is held whole may unpack to."""

CUT_IN_CODING = "it breaks off in the middle of its content coding"
"""Said of a body or a stream that ended so."""

MOST_CODINGS = 4
_PIECE = 256 * 1024
_WINDOW = 16 * 1024  # zlib copies all that it was given behind the end of a member: give it little at a time
_MEMBERS, _OCTETS_A_MEMBER = 1024, 32  # a member that says one event is longer; an empty one has 20 octets
_BETWEEN, _BETWEEN_AN_OCTET = 4 * 1024 * 1024, 16
_GZIP, _ZLIB, _RAW = zlib.MAX_WBITS | 16, zlib.MAX_WBITS, -zlib.MAX_WBITS
_KNOWN = frozenset({"gzip", "x-gzip", "deflate"})
_ZLIB_HEAD = 2


class _Inflating(Protocol):
    """What `zlib.decompressobj` gives."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    @property
    def unconsumed_tail(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = ..., /) -> bytes: ...


class CodingError(ValueError):
    """Octets that cannot be unpacked; nobody can read on from here."""


def codings_of(headers: Headers) -> tuple[str, ...]:
    """Return the content codings of a message in the order in which they were put on, without `identity`."""
    said = ",".join(value for name, value in headers if name.lower() == "content-encoding")
    return named_codings(said)


def named_codings(said: str) -> tuple[str, ...]:
    """Return the codings that a header's text names, as `codings_of`."""
    return tuple(name for part in said.split(",") if (name := part.strip().lower()) not in {"", "identity"})


def can_unpack(codings: tuple[str, ...]) -> bool:
    """Say whether these codings can be taken off here; of none at all: yes."""
    return len(codings) <= MOST_CODINGS and _KNOWN.issuperset(codings)


def unpacked(codings: tuple[str, ...], body: bytes) -> bytes | None:
    """Return a whole body without its codings; None: it cannot be had, or is more than 64 MiB."""
    if not codings or not body:
        return body
    if not can_unpack(codings):
        return None
    unpacking, found = Unpacking(codings), bytearray()
    try:
        for piece in unpacking.feed(body):
            found += piece
            if len(found) > MOST_OCTETS:
                return None
    except CodingError:
        return None
    return bytes(found) if unpacking.is_whole else None


def unpacked_of(headers: Headers, body: bytes) -> bytes | None:
    """Return a whole body without the codings that its headers name, as `unpacked`."""
    return unpacked(codings_of(headers), body)


class Unpacking:
    """Takes the codings of one body off as it comes, with bounded memory, and in time that grows with what came."""

    def __init__(self, codings: tuple[str, ...]) -> None:
        """Begin a body.

        Args:
            codings: as `codings_of`; none: it comes out as it is.

        Raises:
            CodingError: one of them is not known here.
        """
        if not can_unpack(codings):
            raise CodingError(f"no content coding but gzip and deflate can be read, found {', '.join(codings)}")
        self._cost = _Cost()
        self._stages = [_Deflated() if name == "deflate" else _Gzipped(self._cost) for name in reversed(codings)]

    def feed(self, octets: bytes) -> Iterator[bytes]:
        """Yield what the next octets say, a piece at a time; to be read to its end.

        Raises:
            CodingError: they cannot be unpacked, or it would cost more than such a body may.
        """
        self._cost.came += len(octets)
        yield from self._through(0, octets)

    def _through(self, stage: int, octets: bytes) -> Iterator[bytes]:
        if stage == len(self._stages):
            if octets:
                yield octets
            return
        if stage > 0:
            self._cost.between_two(len(octets))
        for at in range(0, len(octets), _WINDOW):
            for piece in self._stages[stage].feed(octets[at : at + _WINDOW]):
                yield from self._through(stage + 1, piece)

    @property
    def is_whole(self) -> bool:
        """Say whether what came so far does not break off in the middle; an empty body does not."""
        return all(stage.is_whole for stage in self._stages)


class _Cost:
    """What unpacking a body has cost so far; it may grow with the octets that came, a long stream has no other end."""

    def __init__(self) -> None:
        self.came = 0
        self._members = 0
        self._between = 0

    def one_member(self) -> None:
        self._members += 1
        most = _MEMBERS + self.came // _OCTETS_A_MEMBER
        if self._members > most:
            raise CodingError(f"expected at most {most} members of gzip in {self.came} octets, found more")

    def between_two(self, octets: int) -> None:
        self._between += octets
        most = _BETWEEN + self.came * _BETWEEN_AN_OCTET
        if self._between > most:
            raise CodingError(f"expected at most {most} octets between its content codings, found more")


class _Gzipped:
    """Members one after another, and zeros as padding behind them (RFC 1952 section 2.2)."""

    def __init__(self, cost: _Cost) -> None:
        self._cost = cost
        self._member: _Inflating | None = None
        self._padded = False
        self._began = False

    @property
    def is_whole(self) -> bool:
        return self._member is None

    def feed(self, octets: bytes) -> Iterator[bytes]:
        while octets:
            if self._member is None:
                if self._began and octets[:1] == b"\0":
                    self._padded = True
                    octets = octets.lstrip(b"\0")
                    continue
                if self._padded:
                    raise CodingError("expected nothing behind the padding of gzip")
                self._cost.one_member()
                self._member, self._began = zlib.decompressobj(wbits=_GZIP), True
            yield from _inflated(self._member, octets)
            if not self._member.eof:
                return
            octets, self._member = self._member.unused_data, None


class _Deflated:
    """One zlib stream, as RFC 9110 section 8.4.1.2 says, or raw deflate, as some servers send: told by its head."""

    def __init__(self) -> None:
        self._head = b""
        self._body: _Inflating | None = None

    @property
    def is_whole(self) -> bool:
        return not self._head if self._body is None else self._body.eof

    def feed(self, octets: bytes) -> Iterator[bytes]:
        if self._body is None:
            self._head += octets
            if len(self._head) < _ZLIB_HEAD:
                return
            octets, self._head = self._head, b""
            self._body = zlib.decompressobj(wbits=_ZLIB if _is_zlib(octets) else _RAW)
        if octets and self._body.eof:
            raise CodingError("expected nothing behind the end of deflate")
        yield from _inflated(self._body, octets)
        if self._body.unused_data:
            raise CodingError("expected nothing behind the end of deflate")


def _is_zlib(octets: bytes) -> bool:
    return octets[0] & 0x0F == zlib.DEFLATED and int.from_bytes(octets[:_ZLIB_HEAD]) % 31 == 0  # RFC 1950 section 2.2


def _inflated(member: _Inflating, octets: bytes) -> Iterator[bytes]:
    try:
        while True:
            piece = member.decompress(octets, _PIECE)
            if piece:
                yield piece
            octets = member.unconsumed_tail
            if member.eof or not (octets or len(piece) == _PIECE):
                return
    except zlib.error as error:
        raise CodingError(f"its content coding cannot be read: {error}") from error
