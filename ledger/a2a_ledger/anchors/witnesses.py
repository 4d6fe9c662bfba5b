"""Anchoring by witnesses: one head, sent to every witness of a policy at once, and what came of it recorded.

A witness that does not answer holds up nobody else. What a witness cosigned is recorded as
`checkpoint.anchored.v1`, its key as `key.added.v1` before the first. Where a witness has seen a head that this log
does not extend, the proof is written into the ledger's directory before anything is said.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.anchors.asking import TIMEOUT, ask
from a2a_ledger.anchors.contradiction import explain
from a2a_ledger.anchors.heads import head_to_anchor
from a2a_ledger.anchors.held import ANCHORS, COSIGNATURE_KIND, anchors_of, read_anchor
from a2a_ledger.anchors.in_time import answers_in_time
from a2a_ledger.anchors.witness import DisagreementError, cosign, witnesses_of
from a2a_ledger.checkpoint import checkpoint_of, open_checkpoint
from a2a_ledger.errors import LedgerError, PolicyError, UsageError
from a2a_ledger.events import CheckpointAnchored, KeyAdded
from a2a_ledger.note import Note, parse_note
from a2a_ledger.store.log_keys import log_keys

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable, Mapping, Sequence

    from a2a_ledger.anchors.witness import Ask, Witness
    from a2a_ledger.checkpoint import Checkpoint
    from a2a_ledger.codec import Draft
    from a2a_ledger.key_events import Keys
    from a2a_ledger.keys import Verifier
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.note import SignatureLine
    from a2a_ledger.policy import Policy

_QUESTIONS = 4  # that one witness may be asked in one round


class Round(NamedTuple):
    """What came of sending one head to all witnesses.

    Attributes:
        head: that was sent.
        holders: names of the keys that cosigned it; recorded.
        failures: why the others did not, by their names in the policy.
        missing: what the policy's quorum still asks for; "": nothing.
    """

    head: Checkpoint
    holders: tuple[str, ...]
    failures: Mapping[str, LedgerError]
    missing: str


def anchor_by_witnesses(
    ledger: ContractLedger,
    policy: Policy,
    *,
    timeout: float = TIMEOUT,
    note: str | None = None,
    hurry: threading.Event | None = None,
) -> Round:
    """Have a head cosigned by the witnesses of a policy, and record what they gave.

    Who has cosigned this head already is not asked again.

    Args:
        ledger: open for writing, with its log key.
        policy: names the witnesses, where they are, and how many of them are enough.
        timeout: seconds for one answer.
        note: the signed head; None: the head as it is now.
        hurry: once it is set, whoever has not answered is left behind.

    Raises:
        UsageError: the policy names no witness that can be asked, or one whose key the log uses otherwise.
        ReadOnlyError: the log key is not here.
        StoreError: what they gave could not be recorded.
    """
    witnesses = witnesses_of(policy)
    keys = log_keys(ledger.store)
    check_witness_keys(keys, witnesses)
    note = note or head_to_anchor(ledger)
    head = checkpoint_of(note)
    before = _cosigned_before(ledger, head.size)
    asking = partial(ask, timeout=timeout)
    questions = {
        witness.name: partial(_ask_one, ledger, witness, note, asking)
        for witness in witnesses
        if witness.key.name not in before
    }
    answers = answers_in_time(questions, timeout * _QUESTIONS, hurry)
    given = [(witness, answers[witness.name]) for witness in witnesses if witness.name in answers]
    fresh = [(witness, answer) for witness, answer in given if isinstance(answer, Note)]
    if fresh:
        record_cosignatures(ledger, head, note, fresh)
    holders = {**before, **{witness.key.name: answer for witness, answer in fresh}}
    lines = [line for answer in holders.values() for line in answer.signatures]
    return Round(
        head=head,
        holders=tuple(witness.key.name for witness in witnesses if witness.key.name in holders),
        failures={name: answer for name, answer in answers.items() if not isinstance(answer, Note)},
        missing=_missing(policy, _with_lines(note, lines), keys.speaking("log", head.size), witnesses),
    )


def _cosigned_before(ledger: ContractLedger, size: int) -> dict[str, Note]:
    """Return what was recorded of a head of this size, by the holder's name: its own lines alone."""
    found: dict[str, Note] = {}
    for anchor, why in anchors_of(ledger.store):
        if anchor.n < size:
            break
        if anchor.size == size and anchor.kind == COSIGNATURE_KIND and not why:
            note = parse_note(anchor.note)
            own = tuple(line for line in note.signatures if line.name == anchor.holder)
            found[anchor.holder] = Note(note.text, own)
    return found


def _ask_one(ledger: ContractLedger, witness: Witness, note: str, asking: Ask) -> Note:
    """Ask one witness; where it disagrees, find out why and say that instead."""
    since = last_size(ledger, witness.key.name)
    try:
        return cosign(witness, note, since, ledger.store, asking)
    except DisagreementError as problem:
        raise explain(ledger, witness, problem, asking) from problem


def last_size(ledger: ContractLedger, holder: str) -> int:
    """Return the size of the head that was recorded of a holder last; a witness may have seen another one since."""
    store = ledger.store
    for n, _ in store.tagged_places("type:checkpoint.anchored.v1"):
        anchor = read_anchor(store.record(n), store.origin, lambda _: b"")
        if anchor is not None and anchor.holder == holder:
            return anchor.size
    return 0


def check_witness_keys(keys: Keys, witnesses: Sequence[Witness]) -> None:
    """Check that the log names no key of these otherwise than as theirs.

    Raises:
        UsageError: it does.
    """
    for witness in witnesses:
        known = next((term for term in keys.terms if term.key.public_key == witness.key.public_key), None)
        if known is not None and (known.role != "witness" or known.key != witness.key or known.revoked is not None):
            state = "revoked" if known.revoked is not None else f"as {known.role} key {known.key.vkey}"
            raise UsageError(
                f"witness {witness.name}: the log has its key {state}; expected one that it does not name, or names "
                "as this witness's"
            )


def record_cosignatures(
    ledger: ContractLedger, head: Checkpoint, note: str, given: Sequence[tuple[Witness, Note]]
) -> None:
    """Append what was given, and the keys that the log does not name yet.

    Args:
        ledger: open for writing.
        head: that was cosigned.
        note: the head with the log's signature alone.
        given: who cosigned it, each with a note of their own lines alone, verified.

    Under the signer's lock: if two processes added one key at once, no reader would take a bundle of this log any more.
    """
    with ledger.mark.exclusive() if ledger.mark is not None else nullcontext():
        keys = log_keys(ledger.store)  # another process may have added one while the witnesses were asked
        ledger.append([draft for one in given for draft in _drafts(ledger, keys, head, note, *one)])


def _drafts(  # noqa: PLR0913, PLR0917 - what an anchor says
    ledger: ContractLedger, keys: Keys, head: Checkpoint, note: str, witness: Witness, cosigned: Note
) -> list[Draft]:
    key = witness.key
    drafts: list[Draft] = []
    if keys.term(key) is None:
        added = KeyAdded(key_id=key.key_id, public_key=key.public_key.hex(), role="witness", vkey=key.vkey)
        drafts.append(ledger.draft(added, stream="ledger"))
    anchored = CheckpointAnchored(
        origin=head.origin, size=head.size, root=head.root.hex(), holder=key.name, kind=COSIGNATURE_KIND
    )
    whole = _with_lines(note, cosigned.signatures)
    return [*drafts, ledger.draft(anchored, stream=ANCHORS, blobs={"note": whole.encode()})]


def _with_lines(note: str, lines: Iterable[SignatureLine]) -> str:
    return note + "".join(map(str, lines))


def _missing(policy: Policy, note: str, logs: Sequence[Verifier], witnesses: Sequence[Witness]) -> str:
    """Return what the policy still asks for."""
    signed = open_checkpoint(note, [*logs, *(witness.key for witness in witnesses)])
    if not signed.cosigners:
        return "no witness cosigned it"
    try:
        policy.check_quorum(signed)
    except PolicyError as problem:
        return str(problem)
    return ""
