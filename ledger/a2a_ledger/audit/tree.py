"""The audit's tree: grown leaf by leaf, every node hashed once, every stored tile held against it as it fills."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.audit.fault import Fault
from a2a_ledger.errors import LedgerError
from a2a_ledger.merkle import Frontier, root_of
from a2a_ledger.store.tiles import WIDTH

if TYPE_CHECKING:
    from a2a_ledger.store import RawTables


class TreePass:
    """The tree over the leaves so far.

    Attributes:
        size: its leaves.
        broken: a leaf is missing, so no root and no tile can be compared any more.
        tiles: how many tiles there have to be at each level.
    """

    def __init__(self, raw: RawTables, faults: list[Fault]) -> None:
        self._raw = raw
        self._faults = faults
        self._leaves: list[bytes] = []  # of the tile that is not full yet
        self._low = Frontier()  # over the first of these, as many as a root has been asked for
        self._high = Frontier()  # over the roots of full tiles
        self._growing: list[list[bytes]] = [[]]  # the unfinished tile of each level, from level 1 on
        self.size = 0
        self.broken = False
        self.tiles = [0]

    def push(self, leaf: bytes) -> None:
        """Add the hash of the next leaf."""
        if self.broken:
            return
        self.size += 1
        self._leaves.append(leaf)
        if len(self._leaves) == WIDTH:
            node = self._low_frontier().root()
            self._high.push(node)
            self._compare(0, b"".join(self._leaves))
            self._leaves = []
            self._low = Frontier()
            self._grow(1, node)

    def root(self) -> bytes:
        """Return the root over the leaves so far."""
        return Frontier(self.size, (*self._high.hashes, *self._low_frontier().hashes)).root()

    def _low_frontier(self) -> Frontier:
        for leaf in self._leaves[self._low.size :]:
            self._low.push(leaf)
        return self._low

    def _grow(self, level: int, node: bytes) -> None:
        if level == len(self.tiles):
            self.tiles.append(0)
            self._growing.append([])
        tile = self._growing[level]
        tile.append(node)
        if len(tile) == WIDTH:
            self._compare(level, b"".join(tile))
            self._growing[level] = []
            self._grow(level + 1, root_of(tile))

    def _compare(self, level: int, hashes: bytes) -> None:
        """Hold a tile against the stored one."""
        place = self.tiles[level]
        self.tiles[level] += 1
        try:
            stored = self._raw.tile(level, place)
        except LedgerError:  # the table is gone or damaged, which is said elsewhere
            stored = None
        if stored != hashes:
            detail = f"the tile at level {level}, index {place} is missing or is not made from the leaves"
            self._faults.append(Fault("tile", place * WIDTH ** (level + 1), detail))

    def finish(self) -> None:
        """Compare the tiles of the higher levels that are not full; at level 0 such a tile is not stored."""
        if self.broken:
            return
        for level, tile in enumerate(self._growing):
            if tile:
                self._compare(level, b"".join(tile))
