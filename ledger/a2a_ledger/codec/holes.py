"""Holes: which of a blob's are those that it was recorded with, and which came later. Pure; docs/format.md section 3.3.

A hole keeps the blob's id, so the commitments do not tell when it was made. The record does: the common
field `holes` says how many each blob had when it was sealed. A hole cannot be filled again, as salt and octets
are nowhere, so an equal number means the same holes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.codec.commitments import Hole

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from a2a_ledger.codec.commitments import Part
    from a2a_ledger.codec.record import Record

NEVER_CUT = frozenset({"contract", "terms", "statement", "diff", "note", "manifest"})
"""Roles of what this software makes itself, or needs whole: recorded without a hole ever since."""


def count_holes(parts: Iterable[Part]) -> int:
    """Return how many of a blob's parts are holes."""
    return sum(isinstance(part, Hole) for part in parts)


def states_holes(record: Record) -> bool:
    """Say whether a record states its holes: then every later record of its log that has any does."""
    return isinstance(record.data.get("holes"), dict)


def first_stated(records: Iterable[Record]) -> int | None:
    """Return the log index of the first record that states its holes; None: none does."""
    return min((record.n for record in records if states_holes(record)), default=None)


def changed_holes(record: Record, role: str, parts: Sequence[Part], *, stated: bool) -> str:
    """Say what tells that a blob has other holes than it was recorded with; "" where nothing does.

    Args:
        record: whose blob it is.
        role: of the blob.
        parts: as they are found now.
        stated: whether the log states holes from this record on, or from an earlier one. Of an older record
            only the plainest cases can be told.
    """
    found = count_holes(parts)
    holes = record.data.get("holes")
    if stated or states_holes(record):
        then = holes.get(role, 0) if isinstance(holes, dict) else 0
        return "" if found == then else f"has {_counted(found)} and was recorded with {then}"
    if found and role in NEVER_CUT:
        return f"has {_counted(found)}, and such a blob is never cut"
    if found and found == len(parts) and record.blobs[role].kept == "all":
        return "is one whole hole, and nothing in its record says why"
    return ""


def unread(record: Record, *, stated: bool) -> list[str]:
    """Return a sentence for each blob of a record that is gone, or has other holes than it was recorded with."""
    found: list[str] = []
    for role in record.blobs:
        parts = record.stored_parts(role)
        what = "is missing" if parts is None else changed_holes(record, role, parts, stated=stated)
        if what:
            found.append(f"{role} of event {record.n} {what}")
    return found


def _counted(holes: int) -> str:
    return "1 hole" if holes == 1 else f"{holes} holes"
