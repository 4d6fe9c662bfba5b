"""Which time tokens go along with a task's evidence, as files that `openssl ts` reads (docs/format.md section 6.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.anchors import anchors_of
from a2a_ledger.anchors.held import STAMP_KIND
from a2a_ledger.bundle import consistency_file, time_files
from a2a_ledger.checkpoint import format_hashes
from a2a_ledger.errors import LedgerError
from a2a_ledger.time_token import open_token

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_ledger.anchors import Anchor
    from a2a_ledger.codec import Record
    from a2a_ledger.store import Store

_MOST = 10


class Times(NamedTuple):
    """Files under `data/time/` with the proofs that go with them, and who stamped a head that has all that is shown."""

    files: dict[str, bytes]
    holders: tuple[str, ...]


def times_of(store: Store, shown: Iterable[Record], size: int) -> Times:
    """Choose among the recorded time tokens, whoever is trusted here: that is for the reader to say.

    Of each holder the earliest goes along whose head has all that is shown but the log's own stream; where no holder
    has one, the newest token does.

    Args:
        store: the ledger's store.
        shown: the records that the evidence consists of.
        size: of the head that it goes under.
    """
    needed = max((record.n + 1 for record in shown if record.stream != "ledger"), default=0)
    covering: dict[str, Anchor] = {}
    newest: Anchor | None = None
    for anchor, _ in anchors_of(store):
        if anchor.n < needed and (covering or newest):
            break  # it covers only what lies before it, as do all that are older
        if anchor.kind != STAMP_KIND or anchor.size > size or not _holds(store, anchor):
            continue
        newest = newest or anchor
        if anchor.size >= needed:
            covering[anchor.holder] = anchor
    chosen = list(covering.values())[:_MOST] or ([newest] if newest else [])
    files: dict[str, bytes] = {}
    for number, anchor in enumerate(chosen):
        note, token = time_files(number)
        files |= {note: anchor.note, token: anchor.token}
        if anchor.size < size:
            path = store.consistency(anchor.size, size)
            files[consistency_file(anchor.size, size)] = format_hashes(path).encode()
    return Times(files, tuple(sorted(covering)))


def _holds(store: Store, anchor: Anchor) -> bool:
    """Say whether a token is not broken, and over a head of these events: else no reader would take the bundle."""
    try:
        open_token(anchor.token, anchor.note)
        return 0 < anchor.size <= anchor.n and store.root(anchor.size).hex() == anchor.root
    except LedgerError:
        return False
