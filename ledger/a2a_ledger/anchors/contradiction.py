"""Why a witness does not extend what it saw to our head: the head that it holds, held against our tree and kept.

What is kept lies in `DIR/forks/`: a fork proof (`*.json`), or the head alone (`*.note`) where this log is too
small to say more. `audit` holds the log against both for as long as they lie there. Who can sign one such head can
sign any number: of one holder the first of each size is kept, up to a number, and what is not kept is said.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final, NamedTuple

from a2a_ledger.anchors.fork import make_fork
from a2a_ledger.anchors.witness import latest_seen
from a2a_ledger.durable import of_this_process, replace_file, sync
from a2a_ledger.errors import AnchorError, ConsistencyError, LedgerError, RollbackError, StoreError
from a2a_ledger.store.log_keys import head_verifiers, open_own

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.anchors.witness import Ask, DisagreementError, Witness
    from a2a_ledger.checkpoint import Checkpoint, SignedCheckpoint
    from a2a_ledger.ledger import ContractLedger

FOLDER: Final = "forks"

MOST_KEPT: Final = 16
"""Files in `forks/` that one holder may cause."""


def explain(ledger: ContractLedger, witness: Witness, problem: DisagreementError, asking: Ask) -> LedgerError:
    """Return what is wrong between this log and a witness, after keeping what shows it.

    Returns:
        What `contradiction` says of the head that the witness shows; AnchorError: it shows none that a key of this log
        signed, or one that fits.
    """
    try:
        seen = latest_seen(witness, ledger.origin, head_verifiers(ledger.store), asking)
    except LedgerError as silent:
        return AnchorError(f"{problem}; which one could not be fetched: {silent}")
    if seen is None or not _speaks(ledger, seen):
        return AnchorError(
            f"{problem}; it shows no head that a key of this log signed for its size, so nobody is accused by this"
        )
    same = AnchorError(f"{problem}; it shows a head of {seen.checkpoint.size}, a beginning of this log: ask again")
    try:
        return contradiction(ledger, witness.key.name, seen) or same
    except LedgerError as failed:
        return failed


def _speaks(ledger: ContractLedger, seen: SignedCheckpoint) -> bool:
    """Say whether a key signed a head that speaks for its size: who stole a key that has ended may sign any other."""
    try:
        open_own(ledger.store, str(seen.note))
    except LedgerError:
        return False
    return True


def contradiction(ledger: ContractLedger, holder: str, seen: SignedCheckpoint) -> LedgerError | None:
    """Hold a head of this log that somebody has against this log; keep what shows that both cannot be true.

    Args:
        ledger: open for writing.
        holder: who has the head.
        seen: the head, signed by a key of this log.

    Returns:
        ConsistencyError: it is no beginning of this log; RollbackError: it has more events than are here; None:
        it fits.

    Raises:
        StoreError: what shows it could not be written.
    """
    head, note, size = seen.checkpoint, str(seen.note), ledger.store.size()
    if head.size > size:
        place = _place(ledger, holder, head.size, "note")
        if place.free:
            _keep(place.path, note.encode())
        return RollbackError(
            f"{holder} has a head of {head.size} events signed by this log, and {size} are here: this database "
            f"is an old copy, or the log has forked; that head is {place}; stop writing, restore the newest copy"
        )
    if fits(ledger, head):
        return None  # before a head is signed for a proof that nobody needs
    place = _place(ledger, holder, head.size, "json")
    if place.free:
        _keep(place.path, make_fork(ledger.store, _head_from(ledger, head.size), note, holder).to_bytes())
    return ConsistencyError(
        f"{holder} has a head of {head.size} events signed by this log that is no beginning of it: the log has forked; "
        f"the proof with both signed heads is {place}; stop writing, keep both databases, find out which is the true "
        "one"
    )


def fits(ledger: ContractLedger, head: Checkpoint) -> bool:
    """Say whether a head is a beginning of this log as it is here."""
    if head.size > ledger.store.size():
        return False
    return head.size == 0 or ledger.store.root(head.size) == head.root


class _Place(NamedTuple):
    """Where one contradiction belongs, and the file that stands in its way."""

    path: Path
    first: Path | None  # what is kept of this holder and size
    others: int  # files that this holder caused

    @property
    def free(self) -> bool:
        """Say whether this one is to be kept."""
        return self.first is None and self.others < MOST_KEPT

    def __str__(self) -> str:
        """Say what became of it."""
        if self.first is not None:
            return f"not kept beside the first of its size, {self.first}"
        if not self.free:
            return f"not kept beside the {self.others} of this holder in {self.path.parent}"
        return f"kept as {self.path}"


def _place(ledger: ContractLedger, holder: str, size: int, suffix: str) -> _Place:
    """Return the place of a contradiction; the size of our own head, which grows with every event, makes none new.

    Raises:
        StoreError: the ledger has no directory.
    """
    if ledger.home is None:
        raise StoreError("a ledger in memory has no place to keep a proof in")
    path = ledger.home.root / FOLDER / f"{size}-{_mark(holder)}.{suffix}"
    return _Place(path, path if path.exists() else None, len(kept(ledger, holder)))


def kept(ledger: ContractLedger, holder: str) -> list[Path]:
    """Return the files in `forks/` that one holder caused."""
    return [] if ledger.home is None else list((ledger.home.root / FOLDER).glob(f"[!.]*-{_mark(holder)}.*"))


def _mark(holder: str) -> str:
    return sha256(holder.encode()).hexdigest()[:16]


def _head_from(ledger: ContractLedger, size: int) -> str:
    """Return a signed head of at least this size."""
    newest = ledger.store.latest_checkpoint()
    return newest[1] if newest is not None and newest[0] >= size else ledger.sign_checkpoint()


def _keep(path: Path, data: bytes) -> None:
    """Write a file into `forks/`, durable when this returns.

    Raises:
        StoreError: it cannot be written.
    """
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        sync(path.parent.parent)
        replace_file(path, data, by=of_this_process(path))
    except OSError as problem:
        raise StoreError(f"{path}: cannot be written ({problem.strerror}); keep it by hand: {data!r}") from problem
