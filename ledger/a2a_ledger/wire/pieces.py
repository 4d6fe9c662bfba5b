"""Contents as digests: of the pieces of a message or an artifact, laid together as they come in. Pure."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

TEXT = "text"


class Piece(NamedTuple):
    """One part's content: `text` as it is, of data and files a canonical text."""

    kind: str
    value: str
    members: tuple[Piece, ...] = ()
    """Of a part with several members of content, as text and url, one piece for each; else empty."""


class Content(NamedTuple):
    """What was said, as digests."""

    digest: str
    singly: tuple[str, ...] = ()
    """The digests that it has with one member alone, the first or the last, of each part that has several.

    A2A allows one, and typed readers drop the others, so a copy that lacks them says nothing else.
    """

    def is_as(self, other: Content) -> bool:
        """Say whether the two say the same, in what both of them have."""
        return self.digest == other.digest or self.digest in other.singly or other.digest in self.singly

    def is_among(self, others: Iterable[Content]) -> bool:
        """Say whether it says the same as one of these."""
        return any(self.is_as(other) for other in others)


class Running:
    """The content of an artifact as its chunks come in: adjacent texts are one text, however they were cut.

    It holds hash states alone, so it is as large for a long artifact as for a short one.
    """

    __slots__ = ("_singly", "_whole")

    def __init__(self, pieces: Iterable[Piece] = ()) -> None:
        self._whole = _Hashed()
        self._singly: tuple[_Hashed, ...] = ()
        self.add(pieces)

    def add(self, pieces: Iterable[Piece]) -> None:
        """Append the pieces of the next chunk."""
        for piece in pieces:
            if piece.members and not self._singly:
                self._singly = (self._whole.copy(), self._whole.copy())
            self._whole.add(piece)
            for hashed, kept in zip(self._singly, (0, -1), strict=False):  # empty, while no part has several members
                hashed.add(piece.members[kept] if piece.members else piece)

    def copy(self) -> Running:
        """Return one that goes on from here by itself."""
        other = Running()
        other._whole, other._singly = self._whole.copy(), tuple(one.copy() for one in self._singly)
        return other

    def content(self) -> Content:
        """Return the content so far."""
        return Content(self._whole.digest(), tuple(one.digest() for one in self._singly))


class _Hashed:
    """Hash states over pieces."""

    __slots__ = ("_is_text", "_text", "_whole")

    def __init__(self) -> None:
        self._whole = hashlib.sha256()
        self._text = hashlib.sha256()
        self._is_text = False

    def add(self, piece: Piece) -> None:
        octets = piece.value.encode("utf-8", "surrogatepass")
        if piece.kind == TEXT:
            self._text.update(octets)
            self._is_text = True
            return
        if self._is_text:
            self._whole.update(b"text\0" + self._text.digest())
            self._text, self._is_text = hashlib.sha256(), False
        self._whole.update(piece.kind.encode() + b"\0" + hashlib.sha256(octets).digest())

    def copy(self) -> _Hashed:
        other = _Hashed()
        other._whole, other._text, other._is_text = self._whole.copy(), self._text.copy(), self._is_text
        return other

    def digest(self) -> str:
        whole = self._whole.copy()
        if self._is_text:
            whole.update(b"text\0" + self._text.digest())
        return whole.hexdigest()
