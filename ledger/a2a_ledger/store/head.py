"""The head of the log: what the next event needs to know, and the placing of drafts on it.

Everything here happens inside one write transaction. What a transaction would change is collected
in a `Placement` and taken over only after its commit, so a rollback leaves nothing to undo. What
other processes wrote in between is read as a difference, never by starting over.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias
from uuid import UUID

from eventsourcing.persistence import StoredEvent

from a2a_ledger.codec import (
    MAX_INLINE,
    NONCES,
    Draft,
    Kept,
    Place,
    SealedBlob,
    commitment,
    pack_container,
    pack_parts,
    pack_sealed,
    pack_sealed_parts,
    seal,
    stream_commitment,
    stream_tag,
)
from a2a_ledger.errors import RollbackError
from a2a_ledger.events import ContentErased
from a2a_ledger.store.cells import octets_of
from a2a_ledger.store.tiles import WIDTH, leaf_hash, write_tiles

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence

    from a2a_ledger.codec import Boxes
    from a2a_ledger.events import Ref

Item: TypeAlias = Draft | StoredEvent

_Tip = tuple[int, str | None]  # the newest event of a stream: version and c; before the first one, -1 and None
_EventRow = tuple[int, str, int, str, bytes, bytes, bytes]  # the columns of ledger_events
_FullTile = tuple[int, list[bytes]]  # the first leaf of a tile that became full, and its hashes

_REMEMBERED = 4096  # appends by which a retry is recognised
_TIPS = 65536  # streams whose newest version is kept in memory
_OPAQUE_TAG = b""  # rows of insert_events belong to no keyed stream


class BoxKeyring(Protocol):
    """Gives the keys that rows are sealed with, which are durable before they are given."""

    def newest(self, stream: str) -> Boxes:
        """Return the keys for new rows of a stream."""
        ...

    def look_again(self, stream: str | None) -> None:
        """Forget which keys are the newest of a stream, or, without one, of all."""
        ...


class StreamKeys(Protocol):
    """Gives the keys of a stream, which are durable before they are given."""

    @property
    def boxes(self) -> BoxKeyring:
        """Return the keys that rows are sealed with."""
        ...

    @property
    def entropy(self) -> Callable[[int], bytes]:
        """Return what gives that many random octets."""
        ...

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
        self._tips: dict[str, _Tip] = {}
        self._attempts: dict[bytes, _Tip] = {}  # by salt: version and prev last tried
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

    def place(
        self, connection: sqlite3.Connection, items: Sequence[Item], keys: StreamKeys, to: Placement
    ) -> list[Appended]:
        """Give each item its index, version and predecessor; nothing is written yet."""
        while self._renewed:
            keys.boxes.look_again(self._renewed.pop())
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
            del self._tips[next(iter(self._tips))]

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

    def _read_tip(self, connection: sqlite3.Connection, stream: str) -> _Tip:
        row: tuple[int, object, int] | None = connection.execute(
            "SELECT originator_version, c, rowid - 1 FROM ledger_events WHERE originator_id = ?"
            " ORDER BY originator_version DESC LIMIT 1",
            (stream,),
        ).fetchone()
        return (-1, None) if row is None else (row[0], octets_of(row[2], "c", row[1]).hex())

    def _place_draft(self, connection: sqlite3.Connection, draft: Draft, keys: StreamKeys, to: Placement) -> Appended:
        stream, salt = draft.stream, draft.salt
        if salt in self._attempts and (found := self._committed(connection, draft, keys)) is not None:
            return found
        before, prev = to.tips.get(stream) or self._tips.get(stream) or self._read_tip(connection, stream)
        ver = before + 1
        key = keys.stream_key(stream)
        raw, c = self._seal(draft, ver, prev, key)
        self._attempts[salt] = (ver, prev)
        if len(self._attempts) > _REMEMBERED:
            del self._attempts[next(iter(self._attempts))]
        state = self._wrap(draft, Place(self.origin, stream, ver), raw, keys, to)
        n, c_hex = self._put(to, (stream, ver, draft.type, c, stream_tag(key, ver), state))
        to.tags += [(tag, n) for tag in draft.tags]
        return Appended(n, stream, ver, c_hex)

    def _wrap(self, draft: Draft, place: Place, raw: bytes, keys: StreamKeys, to: Placement) -> bytes:
        """Return the container of a record; its large blobs go to their own table. Nonces are never used twice."""
        boxes = None if place.stream == "ledger" else keys.boxes.newest(place.stream)
        blobs = list(draft.blobs.values())
        for blob in draft.blobs.values():
            if blob.size > MAX_INLINE and _stored_size(blob) > MAX_INLINE:
                stored = (
                    pack_parts(blob.parts)
                    if boxes is None
                    else pack_sealed_parts(boxes, place, keys.entropy(NONCES // 2), blob.id, blob.parts)
                )
                to.blobs.append((blob.id, stored))
                blobs.remove(blob)
        if boxes is None:
            return pack_container(draft.salt, raw, blobs)
        return pack_sealed(boxes, place, keys.entropy(NONCES), draft.salt, raw, blobs)

    def _place_opaque(self, event: StoredEvent, to: Placement) -> Appended:
        """Place an event of the library's own interface: version given, state committed to as it is."""
        originator, ver = event.originator_id, event.originator_version
        stream = originator.hex if isinstance(originator, UUID) else originator
        c = commitment(b"", event.state)
        n, c_hex = self._put(to, (stream, ver, event.topic, c, _OPAQUE_TAG, event.state))
        return Appended(n, stream, ver, c_hex)

    def _put(self, to: Placement, row: tuple[str, int, str, bytes, bytes, bytes]) -> tuple[int, str]:
        """Add a row of the events table, its index apart, and its leaf; return its log index and c in hex."""
        stream, ver, _, c, t, _ = row
        n = to.start + len(to.events)
        to.events.append((n + 1, *row))
        c_hex = c.hex()
        to.tips[stream] = (ver, c_hex)
        to.tail.append(leaf_hash(self.origin, n, c, t))
        if len(to.tail) == WIDTH:
            to.full.append((n + 1 - WIDTH, to.tail))
            to.tail = []
        return n, c_hex

    def _seal(self, draft: Draft, ver: int, prev: str | None, key: bytes) -> tuple[bytes, bytes]:
        stated = None if ver or draft.stream.startswith("task:") else stream_commitment(key)
        return seal(draft, log=self.origin, ver=ver, prev=prev, stream_commitment=stated)

    def _committed(self, connection: sqlite3.Connection, draft: Draft, keys: StreamKeys) -> Appended | None:
        """Return where an earlier attempt of this very draft was committed, if it was: same place, same c."""
        ver, prev = self._attempts[draft.salt]
        _, c = self._seal(draft, ver, prev, keys.stream_key(draft.stream))
        row: tuple[int] | None = connection.execute(
            "SELECT rowid - 1 FROM ledger_events WHERE originator_id = ? AND originator_version = ? AND c = ?",
            (draft.stream, ver, c),
        ).fetchone()
        return None if row is None else Appended(row[0], draft.stream, ver, c.hex())


def _stored_size(blob: SealedBlob) -> int:
    return sum(len(part.content) for part in blob.parts if isinstance(part, Kept))
