"""A head of a peer's log, held against the one that was held before it. Pure; docs/format.md section 6.4.

As a witness does it (C2SP tlog-witness): only what is proved to have grown is taken on. Two signed heads that cannot
both be true are a fork proof, whoever sent them.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.anchors.fork import Fork
from a2a_ledger.checkpoint import checkpoint_of
from a2a_ledger.errors import VerificationError
from a2a_ledger.merkle import verify_consistency

if TYPE_CHECKING:
    from a2a_ledger.anchors.peers.parameter import PeerHead
    from a2a_ledger.checkpoint import Checkpoint


class Outcome(Enum):
    """What a head is beside the one that is held."""

    FIRST = "nothing was held before"
    GROWN = "it is proved to extend what is held"
    SAME = "it is the head that is held"
    ELSEWHERE = "its proof starts from another size than what is held"
    SMALLER = "it is smaller than what is held"
    UNPROVED = "its proof does not lead to it"
    FORKED = "it and what is held exclude each other"

    @property
    def is_new(self) -> bool:
        """Say whether it takes the place of what is held."""
        return self in {Outcome.FIRST, Outcome.GROWN}


class Judgement(NamedTuple):
    """What was found of a head, and the proof where the log has forked."""

    outcome: Outcome
    fork: Fork | None = None


def judge_head(held: str | None, claim: PeerHead, holder: str) -> Judgement:
    """Hold a head against what is held of its log; both notes' signatures were checked, and they are of one log.

    Args:
        held: the signed head that is held; None: none was ever.
        claim: what its log's owner sent.
        holder: who holds `held`, for a fork proof.
    """
    new = checkpoint_of(claim.note)
    if held is None:
        return Judgement(Outcome.FIRST)
    before = checkpoint_of(held)
    if new.size < before.size:
        return Judgement(Outcome.SMALLER)
    if new.size > before.size:
        return _judge_larger(held, before, claim, new, holder)
    if new.root == before.root:
        return Judgement(Outcome.SAME)
    return Judgement(Outcome.FORKED, Fork(holder, claim.note, held, new.root, ()))


def _judge_larger(held: str, before: Checkpoint, claim: PeerHead, new: Checkpoint, holder: str) -> Judgement:
    if claim.old != before.size:
        return Judgement(Outcome.ELSEWHERE)
    try:
        verify_consistency(before.size, new.size, claim.root, new.root, claim.path)
    except VerificationError:
        return Judgement(Outcome.UNPROVED)
    if claim.root == before.root:
        return Judgement(Outcome.GROWN)
    return Judgement(Outcome.FORKED, Fork(holder, claim.note, held, claim.root, claim.path))
