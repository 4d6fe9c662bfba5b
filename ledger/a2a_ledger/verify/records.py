"""The records of a bundle that fit their leaves, read again when they are asked for: only the newest are held."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from a2a_ledger.bundle import record_file
from a2a_ledger.codec import read_record

if TYPE_CHECKING:
    from a2a_ledger.bundle import Bundle
    from a2a_ledger.codec import Part, Record
    from a2a_ledger.verify.leaves import ShownLeaf

_MOST_HELD = 32 << 20
"""Octets that the records at hand take, as far as that can be told: a bundle in plain files is held whole."""

_PARSED = 8
"""How much larger a record is in memory than its text."""


class ShownRecords(Mapping[int, "Record"]):
    """Records by log index, in log order; each of them was read strictly before it came in here."""

    def __init__(self, bundle: Bundle, leaves: Mapping[int, ShownLeaf]) -> None:
        self._bundle = bundle
        self._leaves = leaves
        self._numbers = array("Q")
        self._held: OrderedDict[int, Record] = OrderedDict()
        self._octets = 0

    def add(self, record: Record) -> None:
        """Take in a record that lies behind those before it."""
        self._numbers.append(record.n)
        self._hold(record)

    def __getitem__(self, n: int) -> Record:
        record = self._held.get(n)
        if record is not None:
            self._held.move_to_end(n)
            return record
        if n not in self:
            raise KeyError(n)
        raw, salt = self._bundle.read(record_file(n)), self._bundle.salt(n)
        record = read_record(salt, raw, n=n, t=self._leaves[n].t.hex(), trusted=True)
        record = record._replace(parts=BlobParts(self._bundle))
        self._hold(record)
        return record

    def __contains__(self, n: object) -> bool:
        if not isinstance(n, int):
            return False
        place = bisect_left(self._numbers, n)
        return place < len(self._numbers) and self._numbers[place] == n

    def __iter__(self) -> Iterator[int]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def _hold(self, record: Record) -> None:
        self._held[record.n] = record
        self._octets += _weight(record)
        while self._octets > _MOST_HELD:
            _, oldest = self._held.popitem(last=False)
            self._octets -= _weight(oldest)


class BlobParts(Mapping[str, "tuple[Part, ...]"]):
    """The parts of a record's blobs by id, read once when they are asked for: they were held against the id before."""

    __slots__ = ("_bundle", "_read")

    def __init__(self, bundle: Bundle, read: Mapping[str, tuple[Part, ...]] | None = None) -> None:
        self._bundle = bundle
        self._read = dict(read or {})

    def __getitem__(self, blob: str) -> tuple[Part, ...]:
        if blob not in self._read:
            self._read[blob] = tuple(self._bundle.blob_parts(blob))
        return self._read[blob]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read)

    def __len__(self) -> int:
        return len(self._read)


def _weight(record: Record) -> int:
    return _PARSED * len(record.raw) + sum(ref.size for ref in record.blobs.values())
