"""Which head a task's evidence goes under: one that somebody else has signed too, if it covers all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.anchors.held import COSIGNATURE_KIND, anchors_of, cosigned_note

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_ledger.codec import Record
    from a2a_ledger.store import Store


def anchored_head(
    store: Store, shown: Iterable[Record], size: int, least: int = 0
) -> tuple[str, tuple[str, ...]] | None:
    """Return the newest anchored head that leaves out nothing of what is shown but anchors, and who holds it.

    Args:
        store: the ledger's store.
        shown: the records that the evidence consists of.
        size: of the newest signed head; an anchored one is no larger.
        least: and not smaller than this.

    Returns:
        The note with its cosignatures, and the holders' names; None where no such head is anchored.
    """
    last = max((record.n for record in shown if not _tells_of_anchors(record)), default=-1)
    needed = max(least, last + 1)
    holders: dict[int, list[str]] = {}
    for anchor, why in anchors_of(store):
        if anchor.n < max(needed, *holders, 0):
            break  # it covers only what lies before it, as do all that are older
        if not why and anchor.kind == COSIGNATURE_KIND and needed <= anchor.size <= size:
            holders.setdefault(anchor.size, []).append(anchor.holder)
    if not holders:
        return None
    newest = max(holders)
    note = cosigned_note(store, newest)
    return None if note is None else (note, tuple(sorted(set(holders[newest]))))


def _tells_of_anchors(record: Record) -> bool:
    """Say whether an event is about anchors alone, so that evidence loses nothing without it."""
    return record.type == "checkpoint.anchored.v1" or (
        record.type == "key.added.v1" and record.data.get("role") == "witness"
    )
