"""A head beside the one that was held: small trees, whose hashes are worked out here by RFC 6962 section 2.1."""

from __future__ import annotations

from hashlib import sha256

import pytest

from a2a_ledger.anchors.fork import check_fork
from a2a_ledger.anchors.peers.judging import Outcome, judge_head
from a2a_ledger.anchors.peers.parameter import PeerHead
from a2a_ledger.checkpoint import Checkpoint, sign_checkpoint
from a2a_ledger.keys import generate

ORIGIN = "acme/a-01234567"
KEY = generate(ORIGIN, lambda size: b"\x01" * size)
ME = "acme/b-89abcdef"


def leaf(text: str) -> bytes:
    return sha256(b"\x00" + text.encode()).digest()


def node(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x01" + left + right).digest()


A, B, C, D, X = (leaf(text) for text in "abcdx")
THREE = node(node(A, B), C)
FOUR = node(node(A, B), node(C, D))
OTHER_THREE = node(node(A, X), C)
OTHER_FOUR = node(node(A, X), node(C, D))
FROM_THREE = (C, D, node(A, B))  # RFC 9162 section 2.1.4.1, worked by hand
OTHER_FROM_THREE = (C, D, node(A, X))


def head(size: int, root: bytes) -> str:
    return sign_checkpoint(Checkpoint(ORIGIN, size, root), KEY)


def test_the_first_head_is_taken_as_it_is() -> None:
    assert judge_head(None, PeerHead(ME, head(3, THREE)), ME) == (Outcome.FIRST, None)
    assert Outcome.FIRST.is_new


def test_a_head_that_is_proved_to_have_grown_is_taken() -> None:
    found = judge_head(head(3, THREE), PeerHead(ME, head(4, FOUR), 3, THREE, FROM_THREE), ME)
    assert found == (Outcome.GROWN, None)
    assert Outcome.GROWN.is_new


@pytest.mark.parametrize(
    ("claim", "outcome"),
    [
        (PeerHead(ME, head(3, THREE)), Outcome.SAME),
        (PeerHead(ME, head(4, FOUR)), Outcome.ELSEWHERE),
        (PeerHead(ME, head(4, FOUR), 2, node(A, B), (node(C, D),)), Outcome.ELSEWHERE),
        (PeerHead(ME, head(2, node(A, B))), Outcome.SMALLER),
        (PeerHead(ME, head(4, FOUR), 3, THREE, FROM_THREE[:2]), Outcome.UNPROVED),
        (PeerHead(ME, head(4, FOUR), 3, THREE, OTHER_FROM_THREE), Outcome.UNPROVED),
        (PeerHead(ME, head(4, OTHER_FOUR), 3, THREE, FROM_THREE), Outcome.UNPROVED),
    ],
)
def test_all_else_leaves_what_is_held(claim: PeerHead, outcome: Outcome) -> None:
    assert judge_head(head(3, THREE), claim, ME) == (outcome, None)
    assert not outcome.is_new


def test_two_heads_of_one_size_are_a_fork() -> None:
    found = judge_head(head(3, THREE), PeerHead(ME, head(3, OTHER_THREE)), ME)
    assert found.outcome is Outcome.FORKED
    assert found.fork is not None
    check_fork(found.fork, [KEY.verifier])
    assert (found.fork.holder, found.fork.theirs, found.fork.path) == (ME, head(3, THREE), ())


def test_a_larger_head_that_is_proved_to_come_from_elsewhere_is_a_fork() -> None:
    claim = PeerHead(ME, head(4, OTHER_FOUR), 3, OTHER_THREE, OTHER_FROM_THREE)
    found = judge_head(head(3, THREE), claim, ME)
    assert found.outcome is Outcome.FORKED
    assert found.fork is not None
    check_fork(found.fork, [KEY.verifier])
    assert (found.fork.ours, found.fork.theirs) == (head(4, OTHER_FOUR), head(3, THREE))
