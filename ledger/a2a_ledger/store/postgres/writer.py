"""Writing groups of calls on a server: placed, then handed to `ledger_append`, which writes all of one or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from psycopg.types.numeric import Int8

from a2a_ledger.errors import StoreError, UnreachableError
from a2a_ledger.store.placing import Placement, Placer
from a2a_ledger.store.postgres.faults import not_replicated, translated
from a2a_ledger.store.postgres.tags import tag_cell
from a2a_ledger.store.schema import TRACKING, row_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from a2a_ledger.store.group import Call
    from a2a_ledger.store.placing import Appended, StreamKeys
    from a2a_ledger.store.postgres.sessions import Line

LOSSES = 2
"""Races lost in a row after which the lock is taken before the drafts are placed."""

_APPEND = (
    b"SELECT ledger_append(%s, %s, %b::text[], %b::bigint[], %b::bytea[],"
    b" %b::text[], %b::bigint[], %b::text[], %b::bytea[], %b::bytea[], %b::bytea[],"
    b" %b::text[], %b::bigint[], %b::bytea[], %b::bytea[], %b::text[], %b::bigint[], %b::bytea[])"
)
_LOCK = b"SELECT pg_advisory_xact_lock(1093815367, 'ledger_events'::regclass::oid::integer)"
_STALE = -1  # the function's answer where another writer was faster
_UNPLACED = 1 << 62  # from here on stand the indexes of events whose place the function gives


class Writer:
    """Places and writes groups; one thread at a time may use it.

    Args:
        place: What messages call the database.
        origin: Name of the log.
        keys: Gives stream keys.
        lend: Lends the connection to write over, up to a moment.
    """

    def __init__(
        self, place: str, origin: str, keys: StreamKeys, lend: Callable[[float], AbstractContextManager[Line]]
    ) -> None:
        self._name = place
        self._origin = origin
        self._keys = keys
        self._lend = lend
        self._placer = Placer(origin)
        self._acknowledged = 0  # the size of the log behind the newest event that this one was told of

    def write(self, group: Sequence[Call], *, lock_first: bool, until: float) -> bool:
        """Place and write a group once; return whether it was written, or another writer was faster.

        Args:
            group: What to write.
            lock_first: Take the ledger's lock before the drafts are placed.
            until: The moment (`time.monotonic`) up to which to wait for the server.

        Raises:
            ConflictError: A tracking position was taken already; nothing was written.
            UnreachableError: Whether it was written is not known. The same drafts can be handed in again.
            StoreError: Nothing was written.
        """
        placed = Placement(_UNPLACED)
        try:
            with translated(self._name), self._lend(until) as line:
                line.warned = False
                if lock_first:
                    start, results = self._behind_lock(line, group, placed)
                else:
                    results = self._place(line, group, placed)
                    start = self._call(line, group, placed)
        except UnreachableError:
            raise
        except StoreError:  # the server said no: nothing of it is written
            self._placer.take_back(placed)
            raise
        if line.warned:
            raise not_replicated(self._name)
        if start == _STALE:
            self._placer.take_back(placed)
            return False
        self._placer.take_over(placed)
        self._acknowledged = max(self._acknowledged, start + len(placed.events))
        for call, result in zip(group, results, strict=True):
            call.result = [at if at.n < _UNPLACED else at._replace(n=at.n - _UNPLACED + start) for at in result]
        return True

    def tried_before(self, group: Sequence[Call]) -> bool:
        """Say whether something of a group was handed in before, and may have been written."""
        return any(self._placer.tried_before(call.items) for call in group)

    def _behind_lock(self, line: Line, group: Sequence[Call], placed: Placement) -> tuple[int, list[list[Appended]]]:
        """Take the lock before the drafts are placed: four round trips, and nobody can be faster."""
        connection = line.connection
        connection.execute(b"BEGIN")
        try:
            connection.execute(_LOCK)
            results = self._place(line, group, placed)
            start = self._call(line, group, placed)
            connection.execute(b"COMMIT")
        except BaseException:
            if not connection.broken:
                connection.execute(b"ROLLBACK")
            raise
        return start, results

    def _place(self, line: Line, group: Sequence[Call], placed: Placement) -> list[list[Appended]]:
        return [self._placer.place(line, call.items, self._keys, placed) for call in group]

    def _call(self, line: Line, group: Sequence[Call], placed: Placement) -> int:
        events, tips = placed.events, placed.bases
        followers = [(call.tracking.application_name, call.tracking.notification_id) for call in group if call.tracking]
        found: tuple[int] | None = line.connection.execute(
            _APPEND,
            (
                self._origin,
                Int8(self._acknowledged),
                list(tips),
                [Int8(ver) for ver, _ in tips.values()],
                [bytes.fromhex(c or "") for _, c in tips.values()],
                [row[1] for row in events],
                [Int8(row[2]) for row in events],
                [row[3] for row in events],
                [row[4] for row in events],
                [row[5] for row in events],
                [row[6] for row in events],
                [tag_cell(tag) for tag, _ in placed.tags],
                [Int8(n - _UNPLACED) for _, n in placed.tags],
                [blob for blob, _ in placed.blobs],
                [parts for _, parts in placed.blobs],
                [name for name, _ in followers],
                [Int8(position) for _, position in followers],
                [row_digest(TRACKING, *follower) for follower in followers],
            ),
        ).fetchone()
        return cast("tuple[int]", found)[0]
