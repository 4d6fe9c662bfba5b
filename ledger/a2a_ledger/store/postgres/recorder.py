"""The PostgreSQL recorder: events, leaves, blobs, tags and tiles by one function, in one round trip a group.

Drafts are placed before the call, on the newest events of their streams as this process knows them.
The function takes the ledger's lock, gives row ids under it, and writes nothing where another writer
was faster; then the drafts are placed again. Where the outcome of a commit is not known, the same
drafts are asked for again: what was committed is found by stream, version and c.
"""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from eventsourcing.persistence import (
    ApplicationRecorder,
    IntegrityError,
    Notification,
    ProcessRecorder,
    StoredEvent,
    Subscription,
    Tracking,
)

from a2a_ledger.errors import BusyError, ConflictError, RollbackError, StoreError, UnreachableError
from a2a_ledger.store.database import ALL_ROWS
from a2a_ledger.store.group import GroupCommit
from a2a_ledger.store.postgres.faults import not_replicated, translated
from a2a_ledger.store.postgres.fence import ServerFence
from a2a_ledger.store.postgres.patience import Pauses
from a2a_ledger.store.postgres.subscription import ListeningSubscription
from a2a_ledger.store.postgres.writer import LOSSES, Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from a2a_ledger.store.database import Session
    from a2a_ledger.store.group import Call
    from a2a_ledger.store.placing import Appended, Item, StreamKeys
    from a2a_ledger.store.postgres.sessions import Sessions

_LEAST = 1.0  # seconds that an attempt is given, also for who has waited long behind others
_SETTLE = "SELECT coalesce(max(rowid), 0), pg_logical_emit_message(true, 'a2a-ledger', '') FROM ledger_events"

_COLUMNS = "rowid, originator_id, originator_version, topic, state"


class LedgerRecorder(ProcessRecorder):
    """Records events with their leaves.

    Args:
        sessions: Connections to the server.
        origin: Name of the log.
        keys: Gives stream keys.
        naps: Gives a fraction between 0 and 1 for the length of the next pause.
    """

    def __init__(
        self,
        sessions: Sessions,
        *,
        origin: str,
        keys: StreamKeys,
        naps: Callable[[], float] = random.random,
    ) -> None:
        self.origin = origin
        self.keys = keys
        self._sessions = sessions
        self._naps = naps
        self._writer = Writer(sessions.name, origin, keys, sessions.lent)
        self.fence = ServerFence(sessions, origin, keys)
        self.group = GroupCommit(self._write)

    # ---- appending

    def append(self, items: Sequence[Item], tracking: Tracking | None = None) -> list[Appended]:
        """Append durably; index, version and predecessor are given with the lock held, so it never conflicts.

        Raises:
            ConflictError: The tracking position was taken already; nothing of this call was written.
            UnreachableError: No server answered in time; the same call can be made again.
            StoreError: The database could not be written; nothing of this call was written.
        """
        self._sessions.must_not_be_writing()
        if tracking is not None and self.fence.inside:
            return self.fence.append(items, tracking)
        return self.group.run(items, tracking)

    async def append_async(self, items: Sequence[Item], tracking: Tracking | None = None) -> list[Appended]:
        """Append durably without blocking the event loop (see GroupCommit.run_async)."""
        if tracking is not None and self.fence.inside:
            return await asyncio.to_thread(self.fence.append, items, tracking)
        return await self.group.run_async(items, tracking)

    def close(self) -> None:
        """Serve the callers that wait, then stop."""
        self.group.close()
        self.fence.close()

    @contextmanager
    def settled(self) -> Generator[tuple[int, Session]]:
        """Lend the number of events that a synchronous standby has as well, where there is one, and a session to them.

        What a reader sees on a primary may be on no other machine: a wait for the standby may have been cut short,
        or the server started again after a crash. So this writes a message to the write-ahead log behind all that it
        sees, and its commit waits for the standby. Of several hosts that one is lent whose commit was confirmed:
        another one may have been deposed, and have other events in the same places.

        Raises:
            UnreachableError: No server answers, or no standby has it.
        """
        until = time.monotonic() + self._sessions.timeout
        with translated(self._sessions.name), self._sessions.lent(until) as line:
            line.warned = False
            (size, _) = line.execute(_SETTLE).fetchone()
            if line.warned:
                raise not_replicated(self._sessions.name)
            yield size, line

    def _write(self, group: Sequence[Call]) -> None:
        """Write a group of calls; ask again for as long as somebody in it may wait, and answer whose time is up."""
        going: list[Call] = list(group)
        losses = 0
        pauses = Pauses(self._naps)
        failure: StoreError
        while going:
            now = time.monotonic()
            until = max(min(call.since for call in going) + self._sessions.timeout, now + _LEAST)
            try:
                if self._writer.write(going, lock_first=losses >= LOSSES, until=until):
                    return
                losses += 1
                continue
            except UnreachableError as error:
                failure = error
            except BusyError as error:  # an earlier attempt, whose client is gone, may hold the lock, and commit yet
                if not self._writer.tried_before(going):
                    raise
                failure = UnreachableError(f"{error}; what was sent before that may have been written or not")
            except RollbackError as error:  # of several hosts, this one may have lost its place and not know it yet
                if not self._sessions.hang_up():
                    raise
                failure = error
            over = time.monotonic() - self._sessions.timeout
            for call in going:
                call.error = failure if call.since <= over else None
            going = [call for call in going if call.error is None]
            pauses.pause()

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

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        """Return events of one sequence in the order of their versions."""
        name = originator_id.hex if isinstance(originator_id, UUID) else originator_id
        with self._sessions.reading() as session:
            rows = session.execute(
                "SELECT originator_id, originator_version, topic, state FROM ledger_events"  # noqa: S608 - a constant
                " WHERE originator_id = ? AND originator_version > ? AND originator_version <= ?"
                f" ORDER BY originator_version {'DESC' if desc else 'ASC'} LIMIT ?",
                (name, -1 if gt is None else gt, *(ALL_ROWS if most is None else most for most in (lte, limit))),
            ).fetchall()
        return [StoredEvent(*row) for row in rows]

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        """Return notifications from `start` on, up to `stop`, in log order."""
        chosen = f" AND topic IN ({', '.join('?' * len(topics))})" if topics else ""
        after = -1 if start is None else start - 1 if inclusive_of_start else start
        with self._sessions.reading() as session:
            rows = session.execute(
                f"SELECT {_COLUMNS} FROM ledger_events WHERE rowid > ? AND rowid <= ?{chosen} ORDER BY rowid LIMIT ?",  # noqa: S608 - constants
                (after, ALL_ROWS if stop is None else stop, *topics, limit),
            ).fetchall()
        return [
            Notification(id=row[0], originator_id=row[1], originator_version=row[2], topic=row[3], state=row[4])
            for row in rows
        ]

    def max_notification_id(self) -> int | None:
        """Return the newest notification id (log index + 1), None for an empty log."""
        with self._sessions.reading() as session:
            found: tuple[int | None] = session.execute("SELECT max(rowid) FROM ledger_events").fetchone()
        return found[0]

    def subscribe(self, gt: int | None = None, topics: Sequence[str] = ()) -> Subscription[ApplicationRecorder]:
        """Return a subscription that is told of news, and looks for itself where it is not."""
        return ListeningSubscription(self, self._sessions, gt, topics)

    def insert_tracking(self, tracking: Tracking) -> None:
        """Move a follower's position forward."""
        self.insert_events([], tracking=tracking)

    def max_tracking_id(self, application_name: str) -> int | None:
        """Return a follower's position, None where it has none."""
        with self._sessions.reading() as session:
            found: tuple[int] | None = session.execute(
                "SELECT notification_id FROM ledger_tracking WHERE application_name = ?", (application_name,)
            ).fetchone()
        return None if found is None else found[0]
