"""The head of the log: what the next event needs to know, and the placing of drafts on it.

Everything here happens inside one write transaction. What a transaction would change is collected
in a `Placement` and taken over only after its commit, so a rollback leaves nothing to undo. What
other processes wrote in between is read as a difference, never by starting over.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias
from uuid import UUID

from eventsourcing.persistence import StoredEvent

from a2a_ledger.codec import (
    MAX_INLINE,
    Draft,
    Kept,
    SealedBlob,
    commitment,
    pack_container,
    pack_parts,
    seal,
    stream_commitment,
    stream_tag,
)
from a2a_ledger.errors import RollbackError
from a2a_ledger.store.tiles import WIDTH, leaf_hash, write_tiles

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from a2a_ledger.events import Ref

Item: TypeAlias = Draft | StoredEvent

_EventRow = tuple[int, str, int, str, bytes, bytes, bytes]  # the columns of ledger_events
_FullTile = tuple[int, list[bytes]]  # the first leaf of a tile that became full, and its hashes

_REMEMBERED = 4096  # appends by which a retry is recognised
_TIPS = 65536  # streams whose newest version is kept in memory
_OPAQUE_TAG = b""  # rows of insert_events belong to no keyed stream


class StreamKeys(Protocol):
    """Gives the key of a stream, which is durable before it is given."""

    def stream_key(self, stream: str) -> bytes:
        """Return the 32 octets."""
        ...


class Appended(NamedTuple):
    """Where an event came to lie: log index, stream, version in the stream, c in hex."""

    n: int
    stream: str
    ver: int
    c: str

    @property
    def ref(self) -> Ref:
        """How other events refer to it."""
        return {"c": self.c, "stream": self.stream, "ver": self.ver}


class _Tip(NamedTuple):
    """The newest event of a stream: version and c; before the first one, -1 and None."""

    ver: int
    c: str | None


@dataclass(slots=True)
class Placement:
    """What one transaction adds."""

    start: int
    tail: list[bytes]  # leaf hashes since the last full tile
    events: list[_EventRow] = field(default_factory=list[_EventRow])
    blobs: list[tuple[bytes, bytes]] = field(default_factory=list[tuple[bytes, bytes]])
    tags: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    full: list[_FullTile] = field(default_factory=list[_FullTile])
    tips: dict[str, _Tip] = field(default_factory=dict[str, _Tip])

    @property
    def size(self) -> int:
        """The size of the log with these events."""
        return self.start + len(self.events)


class Head:
    """Size, newest tile and newest versions of one log, as this process knows them.

    Only the holder of the write transaction may use it.
    """

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self._size = 0
        self._tail: list[bytes] = []
        self._tips: OrderedDict[str, _Tip] = OrderedDict()
        self._attempts: OrderedDict[bytes, tuple[int, bytes]] = OrderedDict()  # by salt: version and c last tried

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

    def place(
        self, connection: sqlite3.Connection, items: Sequence[Item], keys: StreamKeys, to: Placement
    ) -> list[Appended]:
        """Give each item its index, version and predecessor; nothing is written yet."""
        return [
            self._place_draft(connection, item, keys, to) if isinstance(item, Draft) else self._place_opaque(item, to)
            for item in items
        ]

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
        self._size = placed.size
        self._tail = placed.tail
        self._tips.update(placed.tips)
        while len(self._tips) > _TIPS:
            self._tips.popitem(last=False)

    def _catch_up(self, connection: sqlite3.Connection, size: int) -> None:
        start = self._size
        if size - start > WIDTH:  # a tile's worth of news: the versions are looked up again when they are needed
            start = size - size % WIDTH
            self._tail = []
            self._tips.clear()
        for rowid, stream, ver, c, t in connection.execute(
            "SELECT rowid, originator_id, originator_version, c, t FROM ledger_events WHERE rowid > ? ORDER BY rowid",
            (start,),
        ):
            if (rowid - 1) % WIDTH == 0:
                self._tail = []
            self._tail.append(leaf_hash(self.origin, rowid - 1, c, t))
            if stream in self._tips:
                self._tips[stream] = _Tip(ver, c.hex())
        self._size = size

    def _tip(self, connection: sqlite3.Connection, stream: str, placed: Placement) -> _Tip:
        tip = placed.tips.get(stream) or self._tips.get(stream)
        if tip is None:
            row: tuple[int, bytes] | None = connection.execute(
                "SELECT originator_version, c FROM ledger_events WHERE originator_id = ?"
                " ORDER BY originator_version DESC LIMIT 1",
                (stream,),
            ).fetchone()
            tip = _Tip(-1, None) if row is None else _Tip(row[0], row[1].hex())
        return tip

    def _place_draft(self, connection: sqlite3.Connection, draft: Draft, keys: StreamKeys, to: Placement) -> Appended:
        stream = draft.stream
        if draft.salt in self._attempts and (found := self._committed(connection, draft)) is not None:
            return found
        tip = self._tip(connection, stream, to)
        ver = tip.ver + 1
        key = keys.stream_key(stream)
        stated = None if ver or stream.startswith("task:") else stream_commitment(key)
        raw, c = seal(draft, log=self.origin, ver=ver, prev=tip.c, stream_commitment=stated)
        self._attempts[draft.salt] = (ver, c)
        if len(self._attempts) > _REMEMBERED:
            self._attempts.popitem(last=False)
        inline: list[SealedBlob] = []
        for blob in draft.blobs.values():
            if sum(len(part.content) for part in blob.parts if isinstance(part, Kept)) > MAX_INLINE:
                to.blobs.append((blob.id, pack_parts(blob.parts)))
            else:
                inline.append(blob)
        state = pack_container(draft.salt, raw, inline)
        n = self._put(to, (stream, ver, draft.type, c, stream_tag(key, ver), state))
        to.tags += [(tag, n) for tag in draft.tags]
        return Appended(n, stream, ver, c.hex())

    def _place_opaque(self, event: StoredEvent, to: Placement) -> Appended:
        """Place an event of the library's own interface: version given, state committed to as it is."""
        originator = event.originator_id
        stream = originator.hex if isinstance(originator, UUID) else originator
        c = commitment(b"", event.state)
        n = self._put(to, (stream, event.originator_version, event.topic, c, _OPAQUE_TAG, event.state))
        return Appended(n, stream, event.originator_version, c.hex())

    def _put(self, to: Placement, row: tuple[str, int, str, bytes, bytes, bytes]) -> int:
        """Add a row of the events table, its index apart, and its leaf; return its log index."""
        stream, ver, _, c, t, _ = row
        n = to.size
        to.events.append((n + 1, *row))
        to.tips[stream] = _Tip(ver, c.hex())
        to.tail.append(leaf_hash(self.origin, n, c, t))
        if len(to.tail) == WIDTH:
            to.full.append((n + 1 - WIDTH, to.tail))
            to.tail = []
        return n

    def _committed(self, connection: sqlite3.Connection, draft: Draft) -> Appended | None:
        """Return where an earlier attempt of this very draft was committed, if it was."""
        ver, c = self._attempts[draft.salt]
        row: tuple[int] | None = connection.execute(
            "SELECT rowid - 1 FROM ledger_events WHERE originator_id = ? AND originator_version = ? AND c = ?",
            (draft.stream, ver, c),
        ).fetchone()
        return None if row is None else Appended(row[0], draft.stream, ver, c.hex())
