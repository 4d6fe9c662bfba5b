"""The blobs of a bundle: parts that make the id, of the size that a record says; and what of them was left out."""

from __future__ import annotations

from collections import OrderedDict
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.bundle import BLOBS, record_file
from a2a_ledger.codec import Hole, blob_id, canonical
from a2a_ledger.errors import FormatError

if TYPE_CHECKING:
    from a2a_ledger.bundle import Bundle
    from a2a_ledger.codec import BlobRef, Part
    from a2a_ledger.events import Json

_MOST_KNOWN = 4096
_MOST_LISTED = 20_000  # more than the largest `claims.json` can list, so that no honest list is as long


class Blob(NamedTuple):
    """A blob whose parts make its id.

    Attributes:
        size: octets of all parts.
        pieces: how many parts there are.
        holes: length of each that was left out, by its number.
    """

    size: int
    pieces: int
    holes: dict[int, int]

    def files(self, blob: str) -> list[str]:
        """Return the names of its files; `blob` is its id."""
        named: list[str] = []
        for number in range(self.pieces):
            part = f"{BLOBS}{blob}/{number}"
            named += [f"{part}.hole"] if number in self.holes else [part, f"{part}.salt"]
        return named


class Blobs:
    """Reads blobs, and knows the newest of them again: a hostile bundle names one many times."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        self._known: OrderedDict[str, Blob] = OrderedDict()

    def read(self, n: int, role: str, ref: BlobRef) -> tuple[Blob, tuple[Part, ...] | None]:
        """Return the blob that a record at log index n refers to, and its parts unless it is known.

        Raises:
            FormatError: the parts are not those that the record commits to.
        """
        blob, parts = self._known.get(ref.id), None
        if blob is None:
            parts = tuple(self._bundle.blob_parts(ref.id))
            if blob_id(parts).hex() != ref.id:
                raise FormatError(f"{BLOBS}{ref.id}: not the blob {role} that {record_file(n)} commits to")
            holes = {number: part.length for number, part in enumerate(parts) if isinstance(part, Hole)}
            kept = sum(len(part.content) for part in parts if not isinstance(part, Hole))
            blob = self._known[ref.id] = Blob(kept + sum(holes.values()), len(parts), holes)
            if len(self._known) > _MOST_KNOWN:
                self._known.popitem(last=False)
        if blob.size != ref.size:
            raise FormatError(f"{BLOBS}{ref.id}: {record_file(n)} gives its size as {ref.size}, its parts have another")
        return blob, parts


class LeftOut:
    """The parts that were left out, in the order in which a bundle lists them.

    Attributes:
        count: how many.
        first: the first of them as `data/claims.json` of a bundle in plain files lists them.
    """

    def __init__(self) -> None:
        self.count = 0
        self.first: list[Json] = []
        self._lines = sha256()

    def add(self, n: int, role: str, ref: BlobRef, blob: Blob) -> None:
        """Take in those of a record's blob."""
        for part, length in blob.holes.items():
            entry: Json = {"blob": ref.id, "index": n, "part": part, "role": role, "size": length}
            self.count += 1
            self._lines.update(canonical(entry) + b"\n")
            if len(self.first) < _MOST_LISTED:
                self.first.append(entry)

    @property
    def digest(self) -> str:
        """Return the SHA-256, in hex, of the lines that a bundle with packs lists them in."""
        return self._lines.hexdigest()
