"""What of the heads that go to and fro becomes events: the newest only, and not more often than was chosen.

docs/format.md section 6.4. Kind `cosignature` for a head of ours that a peer has cosigned, kind `peer` for one of
theirs that we hold. No call adds an event by itself, and what was not written yet is written when the ledger is closed.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.anchors.held import ANCHORS, COSIGNATURE_KIND, PEER_KIND, is_settled
from a2a_ledger.anchors.witnesses import last_size, record_cosignatures
from a2a_ledger.checkpoint import checkpoint_of
from a2a_ledger.errors import LedgerError
from a2a_ledger.events import CheckpointAnchored
from a2a_ledger.note import Note

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from a2a_ledger.anchors.peers.memory import HeldHeads
    from a2a_ledger.anchors.witness import Witness
    from a2a_ledger.checkpoint import SignedCheckpoint
    from a2a_ledger.codec import Record
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.store import Store

_log = logging.getLogger(__name__)


class PeerHeadEvent(NamedTuple):
    """What one event of kind `peer` says: a head of another log that was held."""

    n: int
    at: str
    origin: str
    size: int
    root: str
    note: bytes


def recorded_heads(store: Store) -> Iterator[PeerHeadEvent]:
    """Yield the heads of other logs that were recorded, newest first; nothing of them is verified."""
    for n, _ in store.tagged_places("type:checkpoint.anchored.v1"):
        found = read_peer_event(store.record(n))
        if found is not None:
            yield found


def read_peer_event(record: Record) -> PeerHeadEvent | None:
    """Return what a `checkpoint.anchored.v1` says of another log's head; None: it speaks of our own."""
    match record.data:
        case {"origin": str(origin), "size": int(size), "root": str(root), "kind": str(kind)} if kind == PEER_KIND:
            return PeerHeadEvent(record.n, record.at, origin, size, root, record.content("note") or b"")
        case _:
            return None


class Recording:
    """Writes down what was given and what is held, of each holder and of each log the newest."""

    def __init__(self, ledger: ContractLedger, heads: HeldHeads, witnesses: Sequence[Witness], seconds: float) -> None:
        """Begin; nothing is written yet.

        Args:
            ledger: open for writing.
            heads: that are held of other logs.
            witnesses: whose cosignatures count here.
            seconds: from one writing to the next.
        """
        self._ledger = ledger
        self._heads = heads
        self._seconds = seconds
        self._written: dict[tuple[str, str], float] = {}  # by kind and whose it is: when the last one was
        self._keys = {witness.key: witness for witness in witnesses}
        self._given: dict[str, int] = {}  # by holder: size of the head that was recorded last
        self._new_given: dict[str, tuple[Witness, SignedCheckpoint]] = {}
        self._new_held: set[str] = set()

    def given(self, seen: SignedCheckpoint) -> None:
        """Take note of a head of ours, a beginning of this log, that may be cosigned by a witness."""
        size = seen.checkpoint.size
        for entry in seen.cosigners:
            witness = self._keys.get(entry.verifier)
            if witness is None or size <= self._last_given(witness.key.name):
                continue
            before = self._new_given.get(witness.key.name)
            if before is None or before[1].checkpoint.size < size:
                self._new_given[witness.key.name] = witness, seen

    def held(self, origin: str) -> None:
        """Take note that another head of a log is held from now on."""
        self._new_held.add(origin)

    def _last_given(self, holder: str) -> int:
        if holder not in self._given:
            self._given[holder] = last_size(self._ledger, holder)
        return self._given[holder]

    @property
    def waiting(self) -> bool:
        """Say whether something is to be written."""
        return bool(self._new_given or self._new_held)

    def write(self, now: float, *, at_last: bool = False) -> None:
        """Write what is new, if it is time to, each by itself: what cannot be written holds up nothing else.

        Args:
            now: seconds of a clock that never goes back.
            at_last: the ledger is being closed.
        """
        for holder, (witness, seen) in list(self._new_given.items()):
            if self._is_due((COSIGNATURE_KIND, holder), now) or at_last:
                with self._by_itself(f"what {holder} has cosigned"):
                    self._write_given(holder, witness, seen)
                    del self._new_given[holder]
        for origin in sorted(self._new_held):
            if self._is_due((PEER_KIND, origin), now) or at_last:
                with self._by_itself(f"the head that is held of {origin}"):
                    self._write_held(origin)
                    self._new_held.remove(origin)

    @contextmanager
    def _by_itself(self, what: str) -> Generator[None]:
        try:
            yield
        except Exception as problem:  # noqa: BLE001 - it is tried again when it is time again, and capture goes on
            _log.error("%s was not recorded: %s", what, problem)

    def _is_due(self, what: tuple[str, str], now: float) -> bool:
        """Say whether one more of its kind may be written, and take note that it is."""
        if what in self._written and now - self._written[what] < self._seconds:
            return False
        self._written[what] = now
        return True

    def _write_given(self, holder: str, witness: Witness, seen: SignedCheckpoint) -> None:
        last = self._last_given(holder)
        if last and is_settled(self._ledger.store, last):
            return  # nothing but anchors came since
        cosigner = (witness.key.name, witness.key.key_id)
        ours = {(key.name, key.key_id) for key, time in seen.verified if time is None}
        signed = [line for line in seen.note.signatures if (line.name, line.key_id) in ours]
        given = [line for line in seen.note.signatures if (line.name, line.key_id) == cosigner][:1]
        note = Note(seen.note.text, tuple(signed))
        record_cosignatures(self._ledger, seen.checkpoint, str(note), [(witness, Note(note.text, tuple(given)))])
        self._given[holder] = seen.checkpoint.size

    def _write_held(self, origin: str) -> None:
        """Record the head that is held now: another process may hold a larger one since, or have recorded it."""
        with self._heads.exclusive():
            note = self._heads.note(origin)
            if note is None:
                return
            head, last = checkpoint_of(note), newest_recorded(self._ledger.store, origin)
            if last is not None and head.size <= checkpoint_of(last).size:
                return
            event = CheckpointAnchored(
                origin=origin, size=head.size, root=head.root.hex(), holder=self._ledger.origin, kind=PEER_KIND
            )
            self._ledger.append([self._ledger.draft(event, stream=ANCHORS, blobs={"note": note.encode()})])


def newest_recorded(store: Store, origin: str) -> str | None:
    """Return the largest head of a log that was recorded, wherever it stands in ours; None: none was."""
    largest, note = 0, None
    for found in recorded_heads(store):
        try:
            head = checkpoint_of(found.note)
        except LedgerError:
            continue
        if head.origin == found.origin == origin and head.size > largest:
            largest, note = head.size, found.note.decode()
    return note
