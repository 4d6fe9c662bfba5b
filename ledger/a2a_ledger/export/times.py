"""Which time tokens go along with a task's evidence, as files that `openssl ts` reads (docs/format.md section 6.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from a2a_ledger.anchors import read_anchor
from a2a_ledger.anchors.held import STAMP_KIND
from a2a_ledger.bundle import consistency_file, time_files
from a2a_ledger.checkpoint import checkpoint_of, format_hashes
from a2a_ledger.errors import LedgerError
from a2a_ledger.time_token import open_token

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_ledger.anchors import Anchor
    from a2a_ledger.codec import Record
    from a2a_ledger.store import Store

MOST: Final = 10
LOOK: Final = 1000
"""Anchors that are looked through for time tokens: a log can hold very many, most of them cosignatures."""

_TAG = "type:checkpoint.anchored.v1"


class Times(NamedTuple):
    """Files under `data/time/` with the proofs that go with them, and who stamped a head that has all that is shown."""

    files: dict[str, bytes]
    holders: tuple[str, ...]


def times_of(store: Store, shown: Iterable[Record], size: int) -> Times:
    """Choose among the recorded time tokens, whoever is trusted here: that is for the reader to say.

    Of each holder the earliest goes along whose head has all that is shown but the log's own stream; where none is
    found, the newest token does.

    Args:
        store: the ledger's store.
        shown: the records that the evidence consists of.
        size: of the head that it goes under.
    """
    needed = max((record.n + 1 for record in shown if record.stream != "ledger"), default=0)
    covering: dict[str, Anchor] = {}
    for n, _ in reversed(store.tagged_places(_TAG, after=needed - 1)[-LOOK:]):
        anchor = _token_at(store, n, size)
        if anchor is None or anchor.size < needed:
            continue
        if anchor.holder in covering or len(covering) == MOST:
            break  # a second one of his: whoever stamps regularly has had his turn
        covering[anchor.holder] = anchor
    chosen = list(covering.values()) or _newest(store, size)
    files: dict[str, bytes] = {}
    for number, anchor in enumerate(chosen):
        note, token = time_files(number)
        files |= {note: anchor.note, token: anchor.token}
        if anchor.size < size:
            path = store.consistency(anchor.size, size)
            files[consistency_file(anchor.size, size)] = format_hashes(path).encode()
    return Times(files, tuple(sorted(covering)))


def _newest(store: Store, size: int) -> list[Anchor]:
    for n, _ in store.tagged_places(_TAG, limit=LOOK):
        anchor = _token_at(store, n, size)
        if anchor is not None:
            return [anchor]
    return []


def _token_at(store: Store, n: int, size: int) -> Anchor | None:
    """Return the time token recorded at an index, None where there is none, or one that no reader would take.

    A reader takes one that is not broken, over a head of these events that is not larger than the bundle's.
    """
    record = store.record(n)
    anchor = read_anchor(record, store.origin, lambda role: record.content(role) or b"")
    if anchor is None or anchor.kind != STAMP_KIND or not 0 < anchor.size <= min(n, size):
        return None
    try:
        open_token(anchor.token, anchor.note)
        head = checkpoint_of(anchor.note)
        return anchor if (head.origin, head.root) == (store.origin, store.root(anchor.size)) else None
    except LedgerError:
        return None
