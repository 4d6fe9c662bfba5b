"""Anchors: signatures and tokens of somebody else over heads of this log (docs/format.md section 6.4).

One file a kind of anchor makes it, and `held` alone says which of those that were recorded count.
"""

from a2a_ledger.anchors.covering import anchored_head
from a2a_ledger.anchors.held import (
    Anchor,
    anchored_size,
    anchors_of,
    cosigned_note,
    read_anchor,
    time_roots,
    unanchored,
    why_unverified,
)

__all__ = [
    "Anchor",
    "anchored_head",
    "anchored_size",
    "anchors_of",
    "cosigned_note",
    "read_anchor",
    "time_roots",
    "unanchored",
    "why_unverified",
]
