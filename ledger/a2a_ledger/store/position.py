"""Followers' positions: one row of tracking each, believed only as far as its check column and the log bear it out.

A position says up to where the log was read, as log index + 1. What stands in its row is checked whenever it
is read: a follower that believed a changed one would skip events for ever, or never come to an end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.errors import ConflictError, DamagedError
from a2a_ledger.store.schema import TRACKING, row_digest

if TYPE_CHECKING:
    from a2a_ledger.store.database import Session


def read_position(session: Session, follower: str) -> int:
    """Return how far a follower has come: log index + 1 of the last event processed, 0 at the start.

    Raises:
        DamagedError: the row was changed from outside, or lies beyond the log.
    """
    row: tuple[object, object, int] | None = session.execute(
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


def advance(session: Session, follower: str, position: int) -> None:
    """Move a follower's tracking row forward, in the transaction that is open.

    Args:
        session: With a write transaction open.
        follower: Name of the follower.
        position: Log index + 1 of the last event that it has processed.

    Raises:
        ConflictError: The row stands at this position or behind it already: another follower of the
            same name was faster.
    """
    digest = row_digest(TRACKING, follower, position)
    moved = session.execute(
        "INSERT INTO ledger_tracking AS t VALUES (:name, :position, :digest) ON CONFLICT (application_name) DO UPDATE"
        " SET notification_id = :position, digest = :digest WHERE t.notification_id < :position RETURNING 1",
        {"name": follower, "position": position, "digest": digest},
    ).fetchone()
    if moved is None:
        raise ConflictError(
            f"expected the position of {follower} to be before {position}, found it there or beyond: "
            "another process follows under the same name"
        )


def forget_position(session: Session, follower: str) -> None:
    """Take a follower back to the start of the log, in the transaction that is open."""
    session.execute("DELETE FROM ledger_tracking WHERE application_name = ?", (follower,))


def _changed(follower: str, found: str) -> DamagedError:
    return DamagedError(
        f"{TRACKING}: the position of {follower} was changed from outside: found {found}",
        hint="run `a2a-ledger audit`, then `a2a-ledger follow --once --from-start`: it reads the log again from the "
        "first event, and records no finding twice under one profile",
    )
