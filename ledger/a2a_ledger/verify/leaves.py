"""The leaves that a bundle shows, by their index in the log (docs/format.md section 12, step 3)."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, cast

from a2a_ledger.bundle import INDEX, LEAVES
from a2a_ledger.codec import leaf, parse_canonical
from a2a_ledger.errors import FormatError

if TYPE_CHECKING:
    from a2a_ledger.bundle import Bundle, IndexRow

_LEAF_MEMBERS = frozenset({"c", "log", "n", "t", "v"})
_HASH = 32


class ShownLeaf(NamedTuple):
    """One leaf of the bundle: its log, its index there, its commitment and its tag."""

    log: str
    n: int
    c: bytes
    t: bytes

    @property
    def raw(self) -> bytes:
        """Return its exact bytes: a leaf has one spelling."""
        return leaf(self.log, self.n, self.c, self.t)


class ShownLeaves(Mapping[int, ShownLeaf]):
    """Leaves of one log by their index, ascending: 72 octets a leaf."""

    def __init__(self, log: str) -> None:
        self._log = log
        self._numbers = array("Q")
        self._hashes = bytearray()

    def add(self, n: int, c: bytes, t: bytes) -> None:
        """Put a leaf behind those before it; `n` is larger than theirs, `c` and `t` have 32 octets."""
        self._numbers.append(n)
        self._hashes += c
        self._hashes += t

    def __getitem__(self, n: int) -> ShownLeaf:
        place = bisect_left(self._numbers, n)
        if place == len(self._numbers) or self._numbers[place] != n:
            raise KeyError(n)
        at = 2 * _HASH * place
        c, t = self._hashes[at : at + _HASH], self._hashes[at + _HASH : at + 2 * _HASH]
        return ShownLeaf(self._log, n, bytes(c), bytes(t))

    def __contains__(self, n: object) -> bool:
        if not isinstance(n, int):
            return False
        place = bisect_left(self._numbers, n)
        return place < len(self._numbers) and self._numbers[place] == n

    def __iter__(self) -> Iterator[int]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


class LeafTags:
    """Which leaves carry a tag.

    Attributes:
        twins: log indexes of the leaves that carry one tag, for each tag that several carry.
    """

    def __init__(self, leaves: ShownLeaves) -> None:
        self._first: dict[bytes, int] = {}
        twins: dict[bytes, list[int]] = {}
        for n, shown in leaves.items():
            first = self._first.setdefault(shown.t, n)
            if first != n:
                twins.setdefault(shown.t, [first]).append(n)
        self._twins = twins
        self.twins = sorted(twins.values())

    def carrying(self, tag: bytes) -> list[int]:
        """Return the log indexes of the leaves that carry this tag."""
        return self._twins.get(tag) or ([self._first[tag]] if tag in self._first else [])


class ReadLeaves(NamedTuple):
    """What came of reading them.

    Attributes:
        leaves: those that fit their row of the index.
        faults: a sentence for each that does not (claim P).
        unusable: lines of these, from 1.
    """

    leaves: ShownLeaves
    faults: list[str]
    unusable: set[int]

    def rows(self, bundle: Bundle) -> Iterator[IndexRow]:
        """Yield the row of each leaf once more."""
        if self.leaves:
            yield from (row for line, row in enumerate(bundle.index(), start=1) if line not in self.unusable)


def read_leaves(bundle: Bundle, origin: str) -> ReadLeaves:
    """Read the leaves of a log, and hold each against its row of the index."""
    leaves, faults, unusable = ShownLeaves(origin), list[str](), set[int]()
    before = -1
    try:
        for line, (raw, row) in enumerate(zip(bundle.leaves(), bundle.index(), strict=True), start=1):
            try:
                found = _read_leaf(raw, origin)
            except FormatError as problem:
                faults.append(f"{LEAVES}: line {line}: {problem}")
                unusable.add(line)
                continue
            if row.line != line or row.n != found.n or found.n <= before:
                faults.append(f"{LEAVES}: line {line} is leaf {found.n}, which is not what {INDEX} lists there")
                unusable.add(line)
                continue
            before = found.n
            leaves.add(found.n, found.c, found.t)
    except FormatError as problem:  # two files that do not go together line by line show none
        return ReadLeaves(ShownLeaves(origin), [str(problem)], set())
    return ReadLeaves(leaves, faults, unusable)


def _read_leaf(raw: bytes, origin: str) -> ShownLeaf:
    """Read one leaf, which has exactly one spelling."""
    value = parse_canonical(raw)
    if not isinstance(value, dict) or value.keys() != _LEAF_MEMBERS:
        raise FormatError(f"a leaf has the members {sorted(_LEAF_MEMBERS)}")
    try:
        found = ShownLeaf(
            origin,
            cast("int", value["n"]),
            bytes.fromhex(cast("str", value["c"])),
            bytes.fromhex(cast("str", value["t"])),
        )
        same = found.raw == raw
    except (TypeError, ValueError):
        raise FormatError(f"not a leaf of log {origin}") from None
    if not same or found.n < 0 or not len(found.c) == len(found.t) == _HASH:
        raise FormatError(f"not a leaf of log {origin}")
    return found
