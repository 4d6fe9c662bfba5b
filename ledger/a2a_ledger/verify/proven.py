"""What a bundle proves about the log: its checkpoint, its leaves, and which keys speak (docs/format.md section 12).

Trust comes in as a `Policy` from the reader. A key from inside of the bundle is used for one thing
only: to see whether the bundle fits together. It never makes a claim VALID.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from a2a_ledger.bundle import CHECKPOINT, KEYS, PROOFS, consistency_file, proof_file
from a2a_ledger.bundle.referred import Referred
from a2a_ledger.checkpoint import (
    Checkpoint,
    open_checkpoint,
    parse_checkpoint,
    parse_hashes,
    parse_proof,
)
from a2a_ledger.errors import (
    ConsistencyError,
    FormatError,
    LedgerError,
    PolicyError,
    UsageError,
    VerificationError,
)
from a2a_ledger.keys import parse_vkey
from a2a_ledger.merkle import leaf_hash, verify_consistency, verify_inclusion
from a2a_ledger.note import parse_note
from a2a_ledger.verify.report import Claim

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from a2a_ledger.bundle import Bundle
    from a2a_ledger.key_events import Keys, KeyTerm
    from a2a_ledger.keys import Verifier
    from a2a_ledger.note import Verified
    from a2a_ledger.policy import Policy
    from a2a_ledger.verify.leaves import ShownLeaf


@dataclass(slots=True)
class Head:
    """The bundle's checkpoint after judging who signed it."""

    checkpoint: Checkpoint
    claim: Claim  # L
    trusted: bool = False  # signed by a key that the reader trusts
    logs: Sequence[Verifier] = ()  # the log keys that the reader trusts
    cosigners: Sequence[Verified] = ()
    quorum: str = ""  # why the policy's quorum is not met; "" if it is, or if there is nothing to meet
    quorum_time: int | None = None  # when it was met, by the witnesses' clocks; None: it was not, or none is asked for


def check_inclusion(bundle: Bundle, leaves: Mapping[int, ShownLeaf], checkpoint: Checkpoint) -> list[str]:
    """Return a fault for each leaf that is not proven to be under the checkpoint."""
    note = bundle.text(CHECKPOINT)
    faults: list[str] = []
    expected = Referred(bundle)
    for n, shown in leaves.items():
        name = proof_file(n)
        expected.add(name)
        try:
            proof = parse_proof(bundle.read(name), known=note)
            if proof.index != n:
                raise FormatError(f"proves leaf {proof.index}, expected leaf {n}")
            if proof.checkpoint != note:
                raise FormatError(f"leads to another checkpoint than {CHECKPOINT}")
            if proof.extra is not None:
                raise FormatError("has an extra line, which nobody signs")
            verify_inclusion(n, checkpoint.size, leaf_hash(shown.raw), proof.path, checkpoint.root)
        except LedgerError as problem:
            text = str(problem)
            faults.append(text if text.startswith(name) else f"{name}: {text}")
    return faults + [f"{name}: proves a leaf that is not shown" for name in expected.strangers(PROOFS)]


def read_checkpoint(bundle: Bundle) -> Checkpoint:
    """Return the bundle's checkpoint, not yet verified.

    Raises:
        FormatError: Missing, or not in the form of C2SP tlog-checkpoint.
    """
    return parse_checkpoint(parse_note(bundle.read(CHECKPOINT)).text)


def judge_head(bundle: Bundle, checkpoint: Checkpoint, policy: Policy | None, keys: Keys) -> Head:
    """Say whether a key that the reader trusts signed the checkpoint (claim L)."""
    raw = bundle.files[CHECKPOINT]
    what = f"checkpoint {checkpoint.size} of {checkpoint.origin}"
    logs = [key for key in policy.keys("log") if key.name == checkpoint.origin] if policy else []
    before = keys.handed_over()
    logs += [term.key for term in keys.terms if _follows_trusted(term, before, logs)]
    if policy and logs:
        try:
            signed = open_checkpoint(raw, [*logs, *policy.keys("witness")])
        except VerificationError as problem:
            return Head(checkpoint, Claim("L", "INVALID", f"{what}: {problem}"), logs=logs)
        terms = [_judge_term(what, key, checkpoint, keys) for key, _ in signed.verified if key in logs]
        claim = next((claim for claim in terms if claim.status == "VALID"), terms[0])
        head = Head(checkpoint, claim, trusted=claim.status == "VALID", logs=logs, cosigners=signed.cosigners)
        head.quorum_time = policy.quorum_time(signed)
        try:
            policy.check_quorum(signed)
        except PolicyError as problem:
            head.quorum = str(problem)
        return head
    try:
        signed = open_checkpoint(raw, _claimed_log_keys(bundle, keys))
    except (VerificationError, FormatError) as problem:
        return Head(checkpoint, Claim("L", "INVALID", f"{what}, by keys from inside the bundle: {problem}"))
    by = signed.verified[0].verifier.vkey
    why = "your policy names no key of this log" if policy else "no key that you trust was given"
    settle = f"compare {by} with its owner by another way, then give it as --trust"
    return Head(checkpoint, Claim("L", "NOT PROVEN", f"{what} is signed by {by}; {why}", settle))


def _follows_trusted(term: KeyTerm, before: Mapping[str, Verifier], logs: Sequence[Verifier]) -> bool:
    """Say whether a chain of hand-overs, each signed by both keys, leads to this log key from a trusted one."""
    key, seen = term.key, set[str]()
    while term.role == "log" and key.vkey in before and key.vkey not in seen:
        seen.add(key.vkey)
        key = before[key.vkey]
        if key in logs:
            return True
    return False


def _judge_term(what: str, signer: Verifier, checkpoint: Checkpoint, keys: Keys) -> Claim:
    """Hold the signer against what the log itself says of it."""
    term = keys.term(signer)
    if term is not None and term.role != "log":
        return Claim("L", "INVALID", f"{what} is signed by {signer.vkey}, which the log names as its {term.role} key")
    if term is not None and not term.covers(checkpoint.size):
        span = f"from {term.added + 1} to {term.retired or term.revoked}"
        return Claim("L", "INVALID", f"{what} is signed by {signer.vkey}, which speaks for sizes {span} only")
    return Claim("L", "VALID", f"{what} is signed by {signer.name}+{signer.key_id}")


def _claimed_log_keys(bundle: Bundle, keys: Keys) -> list[Verifier]:
    """Return the log keys that the bundle itself names; never for trust."""
    claimed = keys.speaking("log", 1 << 62) or [term.key for term in keys.terms if term.role == "log"]
    for name in bundle.under(f"{KEYS}log-"):
        key = parse_vkey(bundle.text(name).rstrip("\n"))
        if key not in claimed:
            claimed.append(key)
    return claimed


def judge_earlier(bundle: Bundle, head: Head, earlier: Sequence[bytes | str]) -> Claim:
    """Return claim A: the log only grew since the checkpoints that the reader holds.

    Raises:
        UsageError: what the reader gave is no checkpoint, or of a log key that he trusts nobody signed it.
    """
    now = head.checkpoint
    settle = f"an earlier checkpoint of {now.origin} held by somebody else"
    if not earlier:
        return Claim("A", "NOT PROVEN", "you gave no earlier checkpoint", settle)
    answers = [_judge_one_earlier(bundle, now, old) for old in [_open_earlier(note, head) for note in earlier]]
    order = ("INVALID", "NOT PROVEN", "VALID")
    return min(answers, key=lambda claim: order.index(claim.status))


def _judge_one_earlier(bundle: Bundle, now: Checkpoint, old: Checkpoint) -> Claim:
    if old.origin != now.origin or old.size > now.size or not old.size:
        detail = f"checkpoint {old.size} of {old.origin} is not an earlier one of {now.origin}, size {now.size}"
        return Claim("A", "NOT PROVEN", detail, "a bundle under a checkpoint that is not older than yours")
    try:
        grown = check_growth(bundle, now, old)
    except LedgerError as problem:
        return Claim("A", "INVALID", str(problem))
    if not grown:
        name = consistency_file(old.size, now.size)
        settle = f"a consistency proof from {old.size} to {now.size}: ask the exporter for {name} (export --since)"
        return Claim("A", "NOT PROVEN", f"the bundle does not lead from {old.size} to {now.size}", settle)
    return Claim("A", "VALID", f"the log only grew from checkpoint {old.size} to {now.size}")


def check_growth(bundle: Bundle, now: Checkpoint, old: Checkpoint) -> bool:
    """Check that the log only grew from an earlier checkpoint to this one; False where the bundle has no proof of it.

    Raises:
        LedgerError: it did not.
    """
    name = consistency_file(old.size, now.size)
    if old.size != now.size and name not in bundle.files:
        return False
    try:
        path = parse_hashes(bundle.read(name)) if old.size != now.size else []
        verify_consistency(old.size, now.size, old.root, now.root, path)
    except LedgerError as problem:
        raise ConsistencyError(f"the log was rewritten between {old.size} and {now.size}: {problem}") from problem
    return True


def _open_earlier(note: bytes | str, head: Head) -> Checkpoint:
    """Read a checkpoint that the reader holds; where he trusts keys of this log, one of them has signed it."""
    try:
        checkpoint = parse_checkpoint(parse_note(note).text)
        if head.logs and checkpoint.origin == head.checkpoint.origin:
            open_checkpoint(note, head.logs)
    except LedgerError as problem:
        raise UsageError(f"the earlier checkpoint that you gave cannot be used: {problem}") from problem
    return checkpoint
