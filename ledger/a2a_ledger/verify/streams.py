"""The places of a stream's shown events: what is remembered of each while the records themselves are let go."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.codec import Record

_HASH = 32


class Place(NamedTuple):
    """One event in its stream: version, log index, and the commitment that it says lies before it."""

    ver: int
    n: int
    prev: bytes


class ShownStream:
    """The events of one stream in order of version, and of equal versions in log order; 48 octets an event.

    Attributes:
        commitment: what the first event of version 0 says of the stream's key.
        peer: the peer that its events name first, "" if none does.
    """

    def __init__(self) -> None:
        self._vers = array("Q")
        self._numbers = array("Q")
        self._prevs = bytearray()
        self._peer_at = -1
        self.commitment: object = None
        self.peer = ""

    def add(self, record: Record) -> None:
        """Take in the next event in log order."""
        if record.ver == 0 and 0 not in self._vers:
            self.commitment = record.data.get("stream_commitment")
        self._vers.append(record.ver)
        self._numbers.append(record.n)
        self._prevs += bytes(_HASH) if record.prev is None else bytes.fromhex(record.prev)
        if "peer" in record.data and (self._peer_at < 0 or record.ver < self._peer_at):
            self._peer_at, self.peer = record.ver, str(record.data["peer"])

    def sort(self) -> None:
        """Put all events in order of version; what is not in order by then was not recorded in this order."""
        if any(one > other for one, other in pairwise(self._vers)):
            order = sorted(range(len(self._vers)), key=self._vers.__getitem__)
            places = [self._place(at) for at in order]
            self._vers = array("Q", (place.ver for place in places))
            self._numbers = array("Q", (place.n for place in places))
            self._prevs = bytearray().join(place.prev for place in places)

    def __iter__(self) -> Iterator[Place]:
        return (self._place(at) for at in range(len(self._vers)))

    def __len__(self) -> int:
        return len(self._vers)

    @property
    def last(self) -> int:
        """Return the last version."""
        return self._vers[-1]

    @property
    def missing(self) -> int | None:
        """Return the first version that is missing between 0 and the last one, None if none is."""
        expected = 0
        for ver in self._vers:
            if ver > expected:
                return expected
            expected += ver == expected
        return None

    def numbers(self, *, after: int = -1) -> array[int]:
        """Return the log indexes of the events behind a version, in order of version."""
        return self._numbers[bisect_right(self._vers, after) if after >= 0 else 0 :]

    def find(self, ver: int) -> int | None:
        """Return the log index of a version, of several the last; None: it is not shown."""
        at = bisect_right(self._vers, ver) - 1
        return self._numbers[at] if at >= 0 and self._vers[at] == ver else None

    def _place(self, at: int) -> Place:
        return Place(self._vers[at], self._numbers[at], bytes(self._prevs[_HASH * at : _HASH * (at + 1)]))
