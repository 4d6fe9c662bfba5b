"""Followers' positions: one row of tracking each, believed only as far as its check column and the log bear it out.

A position says up to where the log was read, as log index + 1. What stands in its row is checked whenever it
is read: a follower that believed a changed one would skip events for ever, or never come to an end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.errors import StoreError
from a2a_ledger.store.schema import TRACKING, row_digest

if TYPE_CHECKING:
    import sqlite3


def read_position(connection: sqlite3.Connection, follower: str) -> int:
    """Return how far a follower has come: log index + 1 of the last event processed, 0 at the start.

    Raises:
        StoreError: the row was changed from outside, or lies beyond the log.
    """
    row: tuple[object, object, int] | None = connection.execute(
        "SELECT notification_id, digest, (SELECT coalesce(max(rowid), 0) FROM ledger_events)"
        " FROM ledger_tracking WHERE application_name = ?",
        (follower,),
    ).fetchone()
    if row is None:
        return 0
    position, digest, size = row
    if type(position) is not int or digest != row_digest(TRACKING, follower, position):
        raise _changed(follower, f"another number than the check column beside it was made from ({position!a:.40})")
    if not 0 <= position <= size:
        raise _changed(follower, f"{position}, where the log has {size} events")
    return position


def forget_position(connection: sqlite3.Connection, follower: str) -> None:
    """Take a follower back to the start of the log, in the transaction that is open."""
    connection.execute("DELETE FROM ledger_tracking WHERE application_name = ?", (follower,))


def _changed(follower: str, found: str) -> StoreError:
    return StoreError(
        f"{TRACKING}: the position of {follower} was changed from outside: found {found}",
        hint="run `a2a-ledger audit`, then `a2a-ledger follow --once --from-start`: it reads the log again from the "
        "first event, and records no finding twice under one profile",
    )
