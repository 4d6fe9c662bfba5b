"""The SQLite recorder: event, leaf, blobs, tags and tiles in one transaction, behind the library's interfaces.

One class plays every role, so that violations land in the log that they judge. It plugs into an
`eventsourcing` application with `PERSISTENCE_MODULE=a2a_ledger.store.sqlite:LedgerFactory`.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, cast

from eventsourcing.persistence import (
    AggregateRecorder,
    ApplicationRecorder,
    IntegrityError,
    Mapper,
    StoredEvent,
    Subscription,
    Tracking,
)
from eventsourcing.sqlite import (
    SQLiteAggregateRecorder,
    SQLiteApplicationRecorder,
    SQLiteFactory,
    SQLiteProcessRecorder,
    SQLiteTrackingRecorder,
)

from a2a_ledger.errors import ConflictError, MissingKeysError, UsageError
from a2a_ledger.store import schema
from a2a_ledger.store.connections import BUSY_TIMEOUT, Connections
from a2a_ledger.store.datastore import LedgerDatastore
from a2a_ledger.store.faults import translated
from a2a_ledger.store.group import Call, GroupCommit
from a2a_ledger.store.head import Head
from a2a_ledger.store.mapper import LedgerMapper
from a2a_ledger.store.position import advance
from a2a_ledger.store.subscription import PollingSubscription

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Generator, Sequence

    from eventsourcing.domain import TAggregateID
    from eventsourcing.persistence import Transcoder
    from eventsourcing.utils import Environment, EnvType

    from a2a_ledger.store.fence import Fence
    from a2a_ledger.store.placing import Appended, Item, Placement, StreamKeys

NO_ORIGIN = "localhost/00000000"
"""The origin of a log that only the library's own interface writes to."""


class NoBoxes:
    """The keys of boxes in a log without a key store: there are none."""

    def newest(self, stream: str) -> NoReturn:
        """Refuse.

        Raises:
            MissingKeysError: Always.
        """
        raise MissingKeysError(f"expected a key store to seal rows of {stream}, found none")

    def look_again(self, stream: str | None) -> None:
        """Do nothing: what is never known cannot be forgotten."""


class NoKeys:
    """The keys of a log without a key store: only the library's own interface can write to it."""

    def __init__(self) -> None:
        self.boxes = NoBoxes()
        self.entropy = os.urandom

    def stream_key(self, stream: str) -> bytes:
        """Refuse.

        Raises:
            MissingKeysError: Always.
        """
        raise MissingKeysError(
            f"expected a key store to append to {stream}, found none; open the ledger by its directory"
        )


class LedgerRecorder(SQLiteProcessRecorder):
    """Records events with their leaves.

    Args:
        datastore: The database.
        events_table_name: Ignored but for the library's sake: the tables are always `ledger_*`.
        origin: Name of the log.
        keys: Gives stream keys.
    """

    def __init__(
        self,
        datastore: LedgerDatastore,
        *,
        events_table_name: str = schema.EVENTS,
        origin: str = NO_ORIGIN,
        keys: StreamKeys | None = None,
    ) -> None:
        super().__init__(datastore, events_table_name=events_table_name)
        self._connections = datastore.connections
        self.origin = origin
        self.fence: Fence | None = None  # a lock file in the ledger's directory has to do
        self.keys: StreamKeys = keys or NoKeys()
        self._head = Head(origin)
        self.group = GroupCommit(self._write)
        self.select_max_tracking_id_statement = (
            "SELECT MAX(notification_id) FROM ledger_tracking WHERE application_name = ?"
        )

    # ---- tables

    def construct_create_table_statements(self) -> list[str]:
        """Return the statements that make all tables of a ledger."""
        return list(schema.ALL_TABLES)

    def create_table(self) -> None:
        """Make the tables where the database is new, else check that it is a ledger.

        Raises:
            StoreError: It is another program's database, or of a newer format.
        """
        with self._connections.reading() as connection:
            new = schema.is_new(connection)
            if not new:
                schema.check_header(connection, self._connections.name)
        if new:
            with self._connections.writing() as connection:
                if schema.is_new(connection):
                    schema.create_tables(connection)

    # ---- appending

    def append(self, items: Sequence[Item], tracking: Tracking | None = None) -> list[Appended]:
        """Append durably; index, version and predecessor are given in the transaction, so it never conflicts.

        Raises:
            ConflictError: The tracking position was taken already; nothing of this call was written.
            StoreError: The database could not be written; nothing of this call was written.
        """
        return self.group.run(items, tracking)

    async def append_async(self, items: Sequence[Item], tracking: Tracking | None = None) -> list[Appended]:
        """Append durably without blocking the event loop (see GroupCommit.run_async)."""
        return await self.group.run_async(items, tracking)

    def close(self) -> None:
        """Serve the callers that wait, then stop."""
        self.group.close()

    def _write(self, group: Sequence[Call]) -> None:
        """Write a group of calls in one transaction, or nothing."""
        with self._connections.writing() as connection:
            placed = self._head.begin(connection)
            results = [self._write_call(connection, call, placed) for call in group]
            with translated(self._connections.name):
                self._head.write(connection, placed)
        self._head.take_over(placed)
        for call, result in zip(group, results, strict=True):
            call.result = result

    def _write_call(self, connection: sqlite3.Connection, call: Call, placed: Placement) -> list[Appended]:
        if call.tracking is not None:
            advance(connection, call.tracking.application_name, call.tracking.notification_id)
        return self._head.place(connection, call.items, self.keys, placed)

    # ---- the library's own interface

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int] | None:  # noqa: ANN401 - the library's signature
        """Insert events of given versions; for the library's own use, no verb of this package calls it.

        The leaf commits to the state as it is, under no stream tag.
        """
        try:
            placed = self.append(list(stored_events), cast("Tracking | None", kwargs.get("tracking")))
        except ConflictError as error:
            raise IntegrityError(str(error)) from error
        return [at.n + 1 for at in placed]

    def insert_tracking(self, tracking: Tracking) -> None:
        """Move a follower's position forward."""
        self.insert_events([], tracking=tracking)

    def max_notification_id(self) -> int | None:  # type: ignore[override]  # the library's own recorder returns None for an empty log too
        """Return the newest notification id (log index + 1), None for an empty log."""
        with self._connections.reading() as connection:
            found: tuple[int | None] = connection.execute("SELECT max(rowid) FROM ledger_events").fetchone()
            return found[0]

    @contextmanager
    def settled(self) -> Generator[tuple[int, sqlite3.Connection]]:
        """Lend the number of events, and a connection: what is committed is on this disk, and nowhere else."""
        with self._connections.reading() as connection:
            found: tuple[int | None] = connection.execute("SELECT max(rowid) FROM ledger_events").fetchone()
            yield found[0] or 0, connection

    def subscribe(self, gt: int | None = None, topics: Sequence[str] = ()) -> Subscription[ApplicationRecorder]:
        """Return a subscription that asks for news every 20 ms."""
        return PollingSubscription(self, gt, topics)


class LedgerFactory(SQLiteFactory):
    """The library's factory for this store; the environment names the database as for its own SQLite module.

    `LEDGER_ORIGIN` names the log; without it the log is one that only the library writes to.
    """

    LEDGER_ORIGIN = "LEDGER_ORIGIN"

    aggregate_recorder_class: type[SQLiteAggregateRecorder] = LedgerRecorder
    application_recorder_class: type[SQLiteApplicationRecorder] = LedgerRecorder
    tracking_recorder_class: type[SQLiteTrackingRecorder] = LedgerRecorder
    process_recorder_class: type[SQLiteProcessRecorder] = LedgerRecorder

    def __init__(self, env: Environment | EnvType | None) -> None:
        super().__init__(env)
        timeout = self.datastore.pool.lock_timeout
        self.connections = Connections(
            self.datastore.pool.db_name, busy_timeout=BUSY_TIMEOUT if timeout is None else float(timeout)
        )
        self.datastore = self._datastore = LedgerDatastore(
            self.connections, text_ids=self.datastore.originator_id_type.lower() == "text"
        )
        self._made: list[LedgerRecorder] = []

    def aggregate_recorder(self, purpose: str = "events") -> AggregateRecorder:
        """Return the recorder.

        Raises:
            UsageError: Snapshots were asked for; a ledger keeps none.
        """
        if purpose != "events":
            raise UsageError(f"expected the purpose events, found {purpose}: a ledger keeps no snapshots")
        return self._make(LedgerRecorder)

    def application_recorder(self) -> ApplicationRecorder:
        """Return the recorder."""
        return self._make(LedgerRecorder)

    def tracking_recorder(
        self, tracking_recorder_class: type[SQLiteTrackingRecorder] | None = None
    ) -> SQLiteTrackingRecorder:
        """Return the recorder, or one of a subclass given or named in the environment."""
        if tracking_recorder_class is None and not self.env.get(self.TRACKING_RECORDER_TOPIC):
            return self._make(LedgerRecorder)
        return super().tracking_recorder(tracking_recorder_class)

    def process_recorder(self) -> LedgerRecorder:
        """Return the recorder."""
        return self._make(LedgerRecorder)

    def mapper(
        self, transcoder: Transcoder | None = None, mapper_class: type[Mapper[TAggregateID]] | None = None
    ) -> Mapper[TAggregateID]:
        """Return our mapper, whatever the application would have taken by default."""
        return super().mapper(transcoder, mapper_class or cast("type[Mapper[TAggregateID]]", LedgerMapper))

    def close(self) -> None:
        """Close the recorders and the connections."""
        for recorder in self._made:
            recorder.close()
        super().close()

    def _make(self, recorder_class: type[LedgerRecorder]) -> LedgerRecorder:
        recorder = recorder_class(self._datastore, origin=self.env.get(self.LEDGER_ORIGIN) or NO_ORIGIN)
        if self.env_create_table():
            recorder.create_table()
        self._made.append(recorder)
        return recorder
