"""Tiles: the hash tree in rows of 256 hashes, so that a proof reads about ten rows.

A tile at level L and index i holds the nodes of height 8 L over leaves from i * 256^(L+1) on. A
level-0 tile is written when it is full; every higher one grows by 32 octets on each fill of the
one below. Tiles are derived from the leaves and are never a source of truth (docs/format.md
section 5); what they do not hold yet comes from at most 255 leaf rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from a2a_ledger import merkle
from a2a_ledger.codec import leaf
from a2a_ledger.errors import DamagedError
from a2a_ledger.store.cells import octets_of

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from a2a_ledger.store.database import Session

WIDTH = 256
_HEIGHT = 8  # of the subtree under one entry of the next level
_HASH = merkle.HASH_SIZE

TileRow = tuple[int, int, bytes]
"""(level, index, hashes to write or to append)."""


def leaf_hash(origin: str, n: int, c: bytes, t: bytes) -> bytes:
    """Return the tree's hash of leaf n."""
    return merkle.leaf_hash(leaf(origin, n, c, t))


def write_tiles(connection: sqlite3.Connection, start: int, full: Sequence[bytes]) -> None:
    """Write a level-0 tile that has just become full and grow the levels above it.

    Args:
        connection: With the transaction of the events open.
        start: Log index of the tile's first leaf.
        full: Its 256 leaf hashes.
    """
    index = start // WIDTH
    connection.execute("INSERT INTO ledger_tiles VALUES (0, ?, ?)", (index, b"".join(full)))
    level, node = 1, merkle.root_of(full)
    while True:
        place, offset = divmod(index, WIDTH)
        if not offset:
            connection.execute("INSERT INTO ledger_tiles VALUES (?, ?, ?)", (level, place, node))
        else:
            connection.execute(
                "UPDATE ledger_tiles SET hashes = CAST(hashes || ? AS BLOB) WHERE level = ? AND idx = ?",
                (node, level, place),
            )
        if offset != WIDTH - 1:
            return
        hashes = _row(connection, level, place)
        if hashes is None or len(hashes) != WIDTH * _HASH:
            raise DamagedError(f"expected a full tile {place} at level {level}, found it damaged")
        level, index, node = level + 1, place, merkle.root_of(_cut(hashes))


class TileReader:
    """Reads nodes of the tree of the first `size` leaves; each row is read once.

    `node` has the shape that merkle's proof makers ask for.
    """

    def __init__(self, session: Session, origin: str, size: int) -> None:
        self._session = session
        self._origin = origin
        self._size = size
        self._known: dict[tuple[int, int], list[list[bytes]]] = {}

    def node(self, level: int, index: int) -> bytes:
        """Return the hash of node (level, index), levels counted from the leaves.

        Raises:
            DamagedError: A tile is missing or too short, or an event that it would be made from was removed.
        """
        tile_level, height = divmod(level, _HEIGHT)
        per_tile = WIDTH >> height
        place = index // per_tile
        heights = self._known.get((tile_level, place))
        if heights is None:
            heights = self._known[tile_level, place] = [self._lowest(tile_level, place)]
        while len(heights) <= height:
            below = heights[-1]
            heights.append([merkle.node_hash(below[i], below[i + 1]) for i in range(0, len(below) - 1, 2)])
        try:
            return heights[height][index % per_tile]
        except IndexError:
            raise DamagedError(
                f"expected node {index} at level {level} in tile {place}, found the tile too short"
            ) from None

    def _lowest(self, level: int, place: int) -> list[bytes]:
        hashes = _row(self._session, level, place)
        if hashes is not None:
            return _cut(hashes)
        if level:
            raise DamagedError(f"expected tile {place} at level {level}, found none")
        start = place * WIDTH
        rows = self._session.execute(
            "SELECT rowid - 1, c, t FROM ledger_events WHERE rowid > ? AND rowid <= ? ORDER BY rowid",
            (start, min(start + WIDTH, self._size)),
        )
        found: list[bytes] = []
        for n, c, t in rows:
            if n != start + len(found):
                break  # said below, with the number of the first that is missing
            found.append(leaf_hash(self._origin, n, octets_of(n, "c", c), octets_of(n, "t", t)))
        due = min(WIDTH, self._size - start)
        if len(found) < due:
            raise DamagedError(
                f"expected events {start} to {start + due - 1}, found no event {start + len(found)}: it was removed"
            )
        return found


def _row(session: Session, level: int, place: int) -> bytes | None:
    row: tuple[object] | None = session.execute(
        "SELECT hashes FROM ledger_tiles WHERE level = ? AND idx = ?", (level, place)
    ).fetchone()
    if row is not None and not isinstance(row[0], bytes):
        raise DamagedError(f"expected octets in tile {place} at level {level}, found {row[0]!a:.40}")
    return None if row is None else cast("bytes", row[0])


def _cut(hashes: bytes) -> list[bytes]:
    return [hashes[i : i + _HASH] for i in range(0, len(hashes), _HASH)]
