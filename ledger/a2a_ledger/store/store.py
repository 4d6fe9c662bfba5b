"""The store: one ledger's records, leaves, tags, checkpoints and followers' positions.

The rest of the package uses this face; what a database raises leaves it as an error of this package.
"""

from __future__ import annotations

import asyncio
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, cast

from a2a_ledger import merkle
from a2a_ledger.codec import SEALED_ROW, Draft, Place, Record, leaf, unpack_parts
from a2a_ledger.errors import DamagedError, MissingKeysError, ReadOnlyError, StoreError
from a2a_ledger.store.cells import octets_of
from a2a_ledger.store.database import ALL_ROWS
from a2a_ledger.store.position import advance, read_position
from a2a_ledger.store.raw import KEY_TABLES, raw_tables
from a2a_ledger.store.rows import RowReader
from a2a_ledger.store.tiles import TileReader

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from contextlib import AbstractContextManager

    from eventsourcing.persistence import Tracking

    from a2a_ledger.codec import Part
    from a2a_ledger.store.database import Database, Recorder, Session
    from a2a_ledger.store.keystore import KeyStore
    from a2a_ledger.store.placing import Appended
    from a2a_ledger.store.raw import RawTables, SQLiteTables
    from a2a_ledger.store.rows import Row

_COLUMNS = "SELECT e.rowid - 1, e.originator_id, e.originator_version, e.topic, e.c, e.t, e.state FROM ledger_events e "
_PAGE = 4096  # leaves read at a time


class Store:
    """One opened ledger; made by `open_store`."""

    def __init__(self, recorder: Recorder, database: Database, keys: KeyStore) -> None:
        self.recorder = recorder
        self.keys = keys
        self._database = database
        self._rows = RowReader(recorder.origin, keys.boxes.named, self._large_blob)

    @property
    def origin(self) -> str:
        """Name of the log."""
        return self.recorder.origin

    @property
    def read_only(self) -> bool:
        """Whether this store refuses to write."""
        return self._database.read_only

    # ---- writing

    def append(self, drafts: Sequence[Draft], tracking: Tracking | None = None) -> list[Appended]:
        """Append drafts in one transaction and return where they came to lie; durable when this returns.

        Handing in a draft again is a retry: where it was committed before, that place is returned.

        Args:
            drafts: In the order in which they are to stand.
            tracking: A follower's name and the log index + 1 that it has processed, written in the
                same transaction.

        Raises:
            ConflictError: The follower's position was taken already; nothing was written.
            BusyError: Another process held the lock for longer than the time-out; nothing was written.
            ReadOnlyError: This store was opened read-only.
            MissingKeysError: A stream's key is not in the key store.
            UsageError: A key event that readers would refuse, such as a second key of a name, or an unknown one's end.
        """
        self._must_write()
        if not drafts and tracking is None:
            return []
        for item in drafts:
            self.keys.prepare(item.stream)  # durable before the transaction begins
        return self.recorder.append(drafts, tracking)

    async def append_async(self, drafts: Sequence[Draft], tracking: Tracking | None = None) -> list[Appended]:
        """Append as `append` does without blocking the event loop on a lock or a disk.

        A caller that is cancelled leaves nothing or all of its drafts.
        """
        self._must_write()
        if not drafts and tracking is None:
            return []
        for item in drafts:
            if not self.keys.knows(item.stream):
                await asyncio.to_thread(self.keys.prepare, item.stream)
        return await self.recorder.append_async(drafts, tracking)

    @contextmanager
    def transaction(self) -> Generator[Session]:
        """Open a write transaction for views; it commits at the end, or rolls back on an error."""
        self._must_write()
        with self._database.writing() as connection:
            yield connection

    def advance(self, session: Session, follower: str, position: int) -> None:
        """Move a follower's position (log index + 1) forward in an open `transaction`.

        Raises:
            ConflictError: It stands there or beyond already.
        """
        advance(session, follower, position)

    # ---- records

    def size(self) -> int:
        """Return the number of events."""
        return self.recorder.max_notification_id() or 0

    def read(self, start: int, limit: int, stop: int | None = None) -> list[Record]:
        """Return up to `limit` records from log index `start` on, below `stop`."""
        last = start + limit if stop is None else min(stop, start + limit)
        return self._records("WHERE e.rowid > ? AND e.rowid <= ? ORDER BY e.rowid", start, last)

    def read_stream(
        self,
        stream: str,
        *,
        gt: int | None = None,
        lt: int | None = None,
        limit: int | None = None,
        desc: bool = False,
    ) -> list[Record]:
        """Return records of one stream in the order of their versions, those above version `gt` and below `lt`."""
        order = "DESC" if desc else "ASC"
        return self._records(
            "WHERE e.originator_id = ? AND e.originator_version > ? AND e.originator_version < ?"
            f" ORDER BY e.originator_version {order} LIMIT ?",
            stream,
            -1 if gt is None else gt,
            ALL_ROWS if lt is None else lt,
            ALL_ROWS if limit is None else limit,
        )

    def version_before(self, stream: str, n: int) -> int:
        """Return the last version of a stream that lies below log index n, -1 if none does."""
        with self._database.reading() as connection:
            row: tuple[int] | None = connection.execute(
                "SELECT originator_version FROM ledger_events WHERE originator_id = ? AND rowid <= ?"
                " ORDER BY originator_version DESC LIMIT 1",
                (stream, n),
            ).fetchone()
        return -1 if row is None else row[0]

    def check_open(self, start: int, stop: int) -> None:
        """See that the sealed rows from log index `start` to below `stop` open, before a head is signed over them.

        What lies in clear is no business of a signer: facts are never refused, and an audit judges them.

        Raises:
            StoreError: One does not open, or is another record than its leaf commits to.
            MissingKeysError: The keys of one are not here.
        """
        try:
            self._open_rows(start, stop)
        except MissingKeysError:  # as for `_records`
            self._open_rows(start, stop)

    def record(self, n: int) -> Record:
        """Return the record at log index n.

        Raises:
            DamagedError: There is none, though an event or a caller names it.
        """
        found = self.read(n, 1)
        if not found:
            raise DamagedError(f"expected event {n}, which another one names, found none: it was removed")
        return found[0]

    def tagged(self, tag: str, *, limit: int | None = None, desc: bool = False) -> list[Record]:
        """Return the records that carry a lookup tag, in log order."""
        order = "DESC" if desc else "ASC"
        return self._records(
            f"JOIN ledger_tags g ON g.n + 1 = e.rowid WHERE g.tag = ? ORDER BY g.n {order} LIMIT ?",
            self._database.tag_cell(tag),
            ALL_ROWS if limit is None else limit,
        )

    def tagged_places(self, tag: str, *, after: int = -1, limit: int = ALL_ROWS) -> list[tuple[int, str]]:
        """Return log index and stream of the records that carry a tag, newest first, those above index `after`.

        Reads no record: for a look that is taken often and mostly finds nothing new.
        """
        with self._database.reading() as connection:
            return connection.execute(
                "SELECT g.n, e.originator_id FROM ledger_tags g JOIN ledger_events e ON e.rowid = g.n + 1"
                " WHERE g.tag = ? AND g.n > ? ORDER BY g.n DESC LIMIT ?",
                (self._database.tag_cell(tag), after, limit),
            ).fetchall()

    def tags_under(self, prefix: str, limit: int, *, after: str = "") -> list[str]:
        """Return different tags that begin with `prefix`, sorted; costs what they are, not how often each stands."""
        found: list[str] = []
        low, high = max(prefix, after), prefix + "\U0010ffff"
        asked = "SELECT tag FROM ledger_tags WHERE tag > ? AND tag < ? ORDER BY tag LIMIT 1"
        with self._database.reading() as connection:
            while len(found) < limit and (row := connection.execute(asked, (low, high)).fetchone()):
                low = str(row[0])
                found.append(low)
        return found

    def tagged_peers(self, kind: str) -> list[str]:
        """Return the peers that tags `<kind>:<peer>:…` name, sorted; one look a peer, however many tags there are."""
        found: list[str] = []
        after = f"{kind}:"
        while tags := self.tags_under(f"{kind}:", 1, after=after):
            found.append(tags[0].split(":", 2)[1])
            after = f"{kind}:{found[-1]};"  # the character behind the colon: over all tags of this peer
        return found

    def tagged_prefix(self, prefix: str, limit: int) -> list[tuple[str, int]]:
        """Return tags that begin with `prefix`, with the log indices of their records."""
        with self._database.reading() as connection:
            return connection.execute(
                "SELECT tag, n FROM ledger_tags WHERE tag >= ? AND tag < ? ORDER BY tag, n LIMIT ?",
                (prefix, prefix + "\U0010ffff", limit),
            ).fetchall()

    def streams(self, prefix: str = "", *, after: str = "", limit: int = ALL_ROWS) -> list[str]:
        """Return names of streams that begin with `prefix`, sorted, those behind `after`."""
        with self._database.reading() as connection:
            rows: list[tuple[str]] = connection.execute(
                "SELECT DISTINCT originator_id FROM ledger_events"
                " WHERE originator_id >= ? AND originator_id < ? AND originator_id > ? ORDER BY originator_id LIMIT ?",
                (prefix, prefix + "\U0010ffff", after, limit),
            ).fetchall()
        return [row[0] for row in rows]

    # ---- the tree

    def leaves(self, start: int, stop: int) -> Iterator[bytes]:
        """Yield the octets of the leaves from log index `start` to below `stop`."""
        while start < stop:
            with self._database.reading() as connection:
                rows: list[tuple[int, object, object]] = connection.execute(
                    "SELECT rowid - 1, c, t FROM ledger_events WHERE rowid > ? AND rowid <= ? ORDER BY rowid",
                    (start, min(stop, start + _PAGE)),
                ).fetchall()
            if not rows:
                return
            for n, c, t in rows:
                yield leaf(self.origin, n, octets_of(n, "c", c), octets_of(n, "t", t))
            start = rows[-1][0] + 1

    def root(self, size: int | None = None) -> bytes:
        """Return the tree's root when it held `size` leaves; None: now."""
        with self._tree(size) as (tiles, held):
            return merkle.root_at(held, tiles.node)

    def settled_root(self) -> tuple[int, bytes]:
        """Return the size and root of the tree that a head may be signed over, both as one server has them.

        Raises:
            UnreachableError: No server answers, or no standby has these events.
        """
        with self.recorder.settled() as (size, session):
            return size, merkle.root_at(size, TileReader(session, self.origin, size).node)

    def inclusion(self, n: int, size: int) -> list[bytes]:
        """Prove that leaf n is in the tree of the first `size` leaves (RFC 9162 section 2.1.3).

        Raises:
            InclusionError: There is no such leaf in that tree.
            StoreError: The log is smaller than `size`, or a tile is damaged.
        """
        with self._tree(size) as (tiles, held):
            return merkle.inclusion_path(n, held, tiles.node)

    def inclusions(self, indices: Sequence[int], size: int) -> list[list[bytes]]:
        """Prove several leaves under one tree, as `inclusion` does; tiles they share are read once."""
        with self._tree(size) as (tiles, held):
            return [merkle.inclusion_path(n, held, tiles.node) for n in indices]

    def consistency(self, old: int, new: int) -> list[bytes]:
        """Prove that the tree of the first `new` leaves extends that of the first `old` (section 2.1.4)."""
        with self._tree(new) as (tiles, held):
            return merkle.consistency_path(old, held, tiles.node)

    def nodes(self, level: int, start: int, stop: int, size: int) -> list[bytes]:
        """Return the nodes from index `start` to below `stop` at a height of the tree of the first `size` leaves.

        Args:
            level: the height, 0 for the leaves' hashes.
            start: index of the first.
            stop: behind the last; each node lies wholly under `size`.
            size: leaves of the tree.
        """
        with self._tree(size) as (tiles, _):
            return [tiles.node(level, index) for index in range(start, stop)]

    @contextmanager
    def _tree(self, size: int | None) -> Generator[tuple[TileReader, int]]:
        held = self.size()
        if size is not None and not 0 <= size <= held:
            raise StoreError(f"expected a tree size from 0 to {held}, found {size}")
        with self._database.reading() as connection:
            wanted = held if size is None else size
            yield TileReader(connection, self.origin, wanted), wanted

    # ---- checkpoints, followers, views

    def checkpoints(self) -> list[tuple[int, str]]:
        """Return all kept notes with their sizes, smallest first."""
        with self._database.reading() as connection:
            return connection.execute("SELECT size, note FROM ledger_checkpoints ORDER BY size").fetchall()

    def latest_checkpoint(self) -> tuple[int, str] | None:
        """Return the kept note of the largest size."""
        with self._database.reading() as connection:
            row = connection.execute("SELECT size, note FROM ledger_checkpoints ORDER BY size DESC LIMIT 1").fetchone()
        return cast("tuple[int, str] | None", row)

    def position(self, follower: str) -> int:
        """Return how far a follower has come: log index + 1 of the last event processed, 0 at the start.

        Raises:
            StoreError: The row was changed from outside, or lies beyond the log.
        """
        with self._database.reading() as connection:
            return read_position(connection, follower)

    def views(self) -> AbstractContextManager[Session]:
        """Lend a connection for reading views; each statement sees one state."""
        return self._database.reading()

    def snapshot(self) -> AbstractContextManager[Session]:
        """Lend a connection for reading views; all statements see one state."""
        return self._database.snapshot()

    def has_table(self, session: Session, table: str) -> bool:
        """Tell whether the rows of a read model were ever stored under this name."""
        return self._database.has_table(session, table)

    def empty_table(self, session: Session, table: str) -> None:
        """See, in an open `transaction`, that there is an empty table for a read model."""
        self._database.empty_table(session, table)

    # ---- older octets and raw rows

    def must_be_files(self, what: str) -> None:
        """See that the events lie in files of this ledger's own; see `Database.must_be_files`."""
        self._database.must_be_files(what)

    def compact(self, *, rewrite: bool, patience: float) -> None:
        """Leave no older octets in the database's files; see `Connections.compact`."""
        self._must_write()
        self._database.compact(rewrite=rewrite, patience=patience)

    def raw(self) -> AbstractContextManager[RawTables]:
        """Open the raw rows of the database as of one moment, for an audit."""
        return self._database.raw()

    def raw_keys(self) -> AbstractContextManager[SQLiteTables]:
        """Open the raw rows of keys.db as of one moment, for an audit."""
        return raw_tables(self.keys.connections, KEY_TABLES)

    def close(self) -> None:
        """Serve callers that wait, then close the files."""
        self.recorder.close()
        self._database.close()
        self.keys.close()

    def _must_write(self) -> None:
        if self.read_only:
            raise ReadOnlyError(f"expected to be allowed to write to {self._database.name}, found it opened read-only")

    def _open_rows(self, start: int, stop: int) -> None:
        asked = "WHERE e.rowid > ? AND e.rowid <= ? AND substr(e.state, 1, 2) = ? ORDER BY e.rowid"
        with (
            self._database.reading() as connection,
            closing(connection.execute(_COLUMNS + asked, (start, stop, SEALED_ROW))) as rows,
        ):
            for row in rows:  # one at a time: a signer holds no more of what it opens
                self._rows.check(row)

    def _records(self, where: str, *values: str | int) -> list[Record]:
        try:
            return self._read_records(where, values)
        except MissingKeysError:  # an erasure may have sealed the rows again since they were read, under newer keys
            return self._read_records(where, values)

    def _read_records(self, where: str, values: Sequence[str | int]) -> list[Record]:
        with self._database.reading() as connection:
            rows: list[Row] = connection.execute(_COLUMNS + where, values).fetchall()
        return [self._rows.record(row) for row in rows]

    def _large_blob(self, place: Place | None, blob_id: bytes) -> tuple[Part, ...] | None:
        with self._database.reading() as connection:
            row: tuple[bytes] | None = connection.execute(
                "SELECT parts FROM ledger_blobs WHERE id = ?", (blob_id,)
            ).fetchone()
        return None if row is None else unpack_parts(row[0], blob_id, place, self.keys.boxes.named)
