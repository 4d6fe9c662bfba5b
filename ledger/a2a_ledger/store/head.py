"""The head of the log in an SQLite database, where other processes may write too.

Everything here happens inside one write transaction. What other processes wrote in between is read
as a difference, never by starting over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.errors import RollbackError
from a2a_ledger.events import ContentErased
from a2a_ledger.store.cells import octets_of
from a2a_ledger.store.placing import Placement, Placer
from a2a_ledger.store.tiles import WIDTH, leaf_hash, write_tiles

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from a2a_ledger.store.database import Session
    from a2a_ledger.store.placing import Appended, Item, StreamKeys


class Head(Placer):
    """Size, newest tile and newest versions of one log, as this process knows them.

    Only the holder of the write transaction may use it.
    """

    def __init__(self, origin: str) -> None:
        super().__init__(origin)
        self._size = 0
        self._tail: list[bytes] = []
        self._renewed: set[str | None] = set()  # streams that another process has given new keys; None: any may be

    def begin(self, connection: sqlite3.Connection) -> Placement:
        """Catch up with what other processes wrote and return an empty placement.

        Raises:
            RollbackError: The database has fewer events than this process has seen.
        """
        size: int = connection.execute("SELECT max(rowid) FROM ledger_events").fetchone()[0] or 0
        if size < self._size:
            raise RollbackError(
                f"expected at least the {self._size} events that this process has seen, found {size}: "
                "the database was replaced by an older one",
                hint="stop every writer, keep both files, and run `a2a-ledger audit`",
            )
        if size > self._size:
            self._catch_up(connection, size)
        return Placement(size, list(self._tail) if len(self._tail) < WIDTH else [])

    def place(self, session: Session, items: Sequence[Item], keys: StreamKeys, to: Placement) -> list[Appended]:
        """Give each item its index, version and predecessor; nothing is written yet."""
        while self._renewed:
            keys.boxes.look_again(self._renewed.pop())
        return super().place(session, items, keys, to)

    def write(self, connection: sqlite3.Connection, placed: Placement) -> None:
        """Write what was placed: events, blobs, tags, tiles."""
        if placed.events:
            connection.executemany("INSERT INTO ledger_events VALUES (?, ?, ?, ?, ?, ?, ?)", placed.events)
        if placed.blobs:
            connection.executemany("INSERT INTO ledger_blobs VALUES (?, ?)", placed.blobs)
        if placed.tags:
            connection.executemany("INSERT INTO ledger_tags VALUES (?, ?)", placed.tags)
        for start, hashes in placed.full:
            write_tiles(connection, start, hashes)

    def take_over(self, placed: Placement) -> None:
        """Make a placement the head, after its commit."""
        super().take_over(placed)
        self._size = placed.size
        self._tail = placed.tail

    def _add_leaf(self, to: Placement, n: int, c: bytes, t: bytes) -> None:
        to.tail.append(leaf_hash(self.origin, n, c, t))
        if len(to.tail) == WIDTH:
            to.full.append((n + 1 - WIDTH, to.tail))
            to.tail = []

    def _catch_up(self, connection: sqlite3.Connection, size: int) -> None:
        start = self._size
        if size - start > WIDTH:  # a tile's worth of news: the versions are looked up again when they are needed
            start = size - size % WIDTH
            self._tail = []
            self._tips.clear()
            self._renewed.add(None)
        for rowid, stream, ver, topic, c, t in connection.execute(
            "SELECT rowid, originator_id, originator_version, topic, c, t FROM ledger_events"
            " WHERE rowid > ? ORDER BY rowid",
            (start,),
        ):
            if (rowid - 1) % WIDTH == 0:
                self._tail = []
            octets = octets_of(rowid - 1, "c", c)
            self._tail.append(leaf_hash(self.origin, rowid - 1, octets, octets_of(rowid - 1, "t", t)))
            if stream in self._tips:
                self._tips[stream] = (ver, octets.hex())
            if topic == ContentErased.TYPE:
                self._renewed.add(stream)
        self._size = size
