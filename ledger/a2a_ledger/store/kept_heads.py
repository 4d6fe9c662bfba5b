"""Signed heads in the database: one note for each size that was signed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.errors import ConflictError

if TYPE_CHECKING:
    from a2a_ledger.store.database import Session


def newest_note(session: Session) -> str | None:
    """Return the note of the largest size."""
    row: tuple[str] | None = session.execute(
        "SELECT note FROM ledger_checkpoints ORDER BY size DESC LIMIT 1"
    ).fetchone()
    return None if row is None else row[0]


def keep_note(session: Session, size: int, note: str) -> None:
    """Keep a signed note for its size, in the place of an earlier one of the same size."""
    session.execute(
        "INSERT INTO ledger_checkpoints VALUES (?, ?) ON CONFLICT (size) DO UPDATE SET note = excluded.note",
        (size, note),
    )


def swap_note(session: Session, before: str | None, size: int, note: str) -> None:
    """Keep a signed note if the newest one is still that which its signer began with.

    Args:
        session: With a write transaction open; one at a time has one.
        before: The newest note when the signer began; None: there was none.
        size: Of the tree under the note.
        note: That was signed.

    Raises:
        ConflictError: A signer on another machine was faster.
    """
    if newest_note(session) not in {before, note}:
        raise ConflictError("expected no other signer meanwhile, found a newer head, signed elsewhere: sign again")
    keep_note(session, size, note)
