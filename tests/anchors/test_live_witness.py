"""A witness of somebody else's making, live: the log grows, is late, rolled back, forked; the witness restarts."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.anchors import anchored_size, cosigned_note
from a2a_ledger.anchors.contradiction import FOLDER
from a2a_ledger.anchors.fork import check_fork, read_fork
from a2a_ledger.anchors.witnesses import anchor_by_witnesses
from a2a_ledger.audit import audit_ledger
from a2a_ledger.checkpoint import checkpoint_of
from a2a_ledger.errors import AnchorError, ConsistencyError, RollbackError
from a2a_ledger.ledger import ContractLedger
from a2a_ledger.policy import parse_policy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.anchors.live import LiveWitness

    Grow = Callable[[ContractLedger], None]

pytestmark = pytest.mark.slow


def test_the_log_grows_and_the_witness_follows(ledger: ContractLedger, witness: LiveWitness, grow: Grow) -> None:
    policy = parse_policy(f"{witness.line}quorum w\n")
    assert ledger.store.size() == 4

    first = anchor_by_witnesses(ledger, policy)

    assert (first.head.size, first.holders, dict(first.failures), first.missing) == (4, (witness.name,), {}, "")
    types = [record.type for record in ledger.store.read(4, 10)]
    assert types == ["key.added.v1", "checkpoint.anchored.v1"]
    assert anchored_size(ledger.store) == 4

    for _ in range(300):  # across a tile
        grow(ledger)
    second = anchor_by_witnesses(ledger, policy)

    assert (second.head.size, second.holders, second.missing) == (306, (witness.name,), "")
    assert [record.type for record in ledger.store.read(306, 10)] == ["checkpoint.anchored.v1"]
    assert anchored_size(ledger.store) == 306
    note = cosigned_note(ledger.store, 306)
    assert note is not None
    signed = parse_policy(f"log {ledger.signers['log'].vkey}\n{witness.line}quorum w\n").open(note)
    assert [entry.verifier.name for entry in signed.cosigners] == [witness.name]
    report = audit_ledger(ledger)
    assert (report.anchored_size, report.faults) == (306, ())


def test_a_witness_that_is_further_than_was_recorded_is_met_where_it_is(
    ledger: ContractLedger, witness: LiveWitness, grow: Grow, home: Path
) -> None:
    policy = parse_policy(f"{witness.line}quorum w\n")
    anchor_by_witnesses(ledger, policy)
    ledger.close()
    with ContractLedger.open(home / "audit", follow=False) as again:
        grow(again)
        again.sign_checkpoint()
    shutil.copytree(home / "audit", home / "crashed")  # the process died before it recorded the next anchor
    with ContractLedger.open(home / "audit", follow=False) as again:
        assert anchor_by_witnesses(again, policy).head.size == 7
    shutil.rmtree(home / "audit")
    shutil.copytree(home / "crashed", home / "audit")
    shutil.rmtree(home / "state")
    with ContractLedger.open(home / "audit", follow=False) as again:
        grow(again)
        late = anchor_by_witnesses(again, policy)
        assert (late.head.size, late.holders) == (8, (witness.name,))


def test_a_rolled_back_log_is_told_what_the_witness_has_seen(
    ledger: ContractLedger, witness: LiveWitness, grow: Grow, home: Path
) -> None:
    policy = parse_policy(f"{witness.line}quorum w\n")
    anchor_by_witnesses(ledger, policy)
    ledger.close()
    shutil.copytree(home / "audit", home / "old")
    with ContractLedger.open(home / "audit", follow=False) as newer:
        for _ in range(5):
            grow(newer)
        assert anchor_by_witnesses(newer, policy).head.size == 11
    shutil.rmtree(home / "audit")
    shutil.rmtree(home / "state")  # both copies of the mark are as old as the database
    shutil.copytree(home / "old", home / "audit")

    with ContractLedger.open(home / "audit", follow=False) as older:
        done = anchor_by_witnesses(older, policy)
        problem = done.failures["w"]
        report = audit_ledger(older)

    assert isinstance(problem, RollbackError)
    assert "has a head of 11 events signed by this log, and 6 are here" in str(problem)
    assert (done.holders, done.missing) == ((), "no witness cosigned it")
    (kept,) = (home / "audit" / FOLDER).iterdir()
    assert checkpoint_of(kept.read_bytes()).size == 11
    assert [(fault.kind, "covers 11 events" in fault.detail) for fault in report.faults] == [("truncated", True)]


def test_a_fork_is_proved_by_a_file(ledger: ContractLedger, witness: LiveWitness, grow: Grow, home: Path) -> None:
    policy = parse_policy(f"{witness.line}quorum w\n")
    anchor_by_witnesses(ledger, policy)
    key = ledger.signers["log"].verifier
    ledger.close()
    shutil.copytree(home / "audit", home / "old")
    with ContractLedger.open(home / "audit", follow=False) as one:
        grow(one)
        assert anchor_by_witnesses(one, policy).head.size == 7
    shutil.rmtree(home / "audit")
    shutil.rmtree(home / "state")
    shutil.copytree(home / "old", home / "audit")

    with ContractLedger.open(home / "audit", follow=False) as other:
        for _ in range(9):
            grow(other)
        done = anchor_by_witnesses(other, policy)
        problem = done.failures["w"]
        report = audit_ledger(other)

    assert isinstance(problem, ConsistencyError)
    assert "has a head of 7 events signed by this log that is no beginning of it" in str(problem)
    (kept,) = (home / "audit" / FOLDER).iterdir()
    assert str(kept) in str(problem)
    fork = read_fork(kept.read_bytes())
    check_fork(fork, [key])
    assert (checkpoint_of(fork.theirs).size, checkpoint_of(fork.ours).size, fork.holder) == (7, 15, witness.name)
    assert [fault.kind for fault in report.faults] == ["earlier"]
    assert "the first 7 events are not those" in report.faults[0].detail


def test_two_heads_of_one_size_are_a_fork(ledger: ContractLedger, witness: LiveWitness, grow: Grow, home: Path) -> None:
    policy = parse_policy(f"{witness.line}quorum w\n")
    anchor_by_witnesses(ledger, policy)
    key = ledger.signers["log"].verifier
    ledger.close()
    shutil.copytree(home / "audit", home / "old")
    with ContractLedger.open(home / "audit", follow=False) as one:
        grow(one)
        anchor_by_witnesses(one, policy)
    shutil.rmtree(home / "audit")
    shutil.rmtree(home / "state")
    shutil.copytree(home / "old", home / "audit")

    with ContractLedger.open(home / "audit", follow=False) as other:
        grow(other)
        problem = anchor_by_witnesses(other, policy).failures["w"]

    assert isinstance(problem, ConsistencyError)
    (kept,) = (home / "audit" / FOLDER).iterdir()
    fork = read_fork(kept.read_bytes())
    check_fork(fork, [key])
    assert (checkpoint_of(fork.theirs).size, checkpoint_of(fork.ours).size, fork.path) == (7, 7, ())


def test_a_witness_that_restarts_remembers(ledger: ContractLedger, witness: LiveWitness, grow: Grow) -> None:
    policy = parse_policy(f"{witness.line}quorum w\n")
    anchor_by_witnesses(ledger, policy)
    grow(ledger)
    witness.stop()

    silent = anchor_by_witnesses(ledger, policy, timeout=2)

    assert isinstance(silent.failures["w"], AnchorError)
    assert (silent.holders, silent.missing) == ((), "no witness cosigned it")
    assert anchored_size(ledger.store) == 4

    witness.start()
    assert anchor_by_witnesses(ledger, policy).holders == (witness.name,)
    assert anchored_size(ledger.store) == 7


def test_a_log_that_the_witness_does_not_know_is_refused(witness: LiveWitness, home: Path) -> None:
    with ContractLedger.open(home / "other", origin="acme/other", follow=False) as other:
        done = anchor_by_witnesses(other, parse_policy(f"{witness.line}quorum w\n"))
        assert "refused this head of 4: status 404" in str(done.failures["w"])
        assert other.store.size() == 4
