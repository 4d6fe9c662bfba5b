"""Nobody stops the verifier by what he sends: what one event breaks is passed over and counted, all else found."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest

from a2a_ledger.divergence import VERIFIER, TaskCase, judge
from a2a_ledger.errors import BusyError, FormatError
from a2a_ledger.ledger import ContractLedger
from a2a_ledger_projections import verifier as verifier_module
from a2a_ledger_projections.verifier import Verifier
from tests.verifier.ledger_story import LedgerStory, keys_of, many_tasks, recorded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from eventsourcing.persistence import Tracking

    from a2a_ledger.codec import Draft, Record
    from a2a_ledger.divergence import Finding
    from a2a_ledger.store import Appended


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[ContractLedger]:
    with ContractLedger.open(tmp_path / "audit", follow=False) as opened:
        yield opened


@pytest.mark.parametrize("error", [FormatError("x"), UnicodeEncodeError("utf-8", "\ud800", 0, 1, "x"), TypeError("x")])
@pytest.mark.parametrize("where", ["payload_of", "violation_of", "violation_tags"])
def test_a_finding_that_cannot_be_stated_leaves_all_others(
    ledger: ContractLedger,
    monkeypatch: pytest.MonkeyPatch,
    where: str,
    error: Exception,
    caplog: pytest.LogCaptureFixture,
) -> None:
    many_tasks(LedgerStory(ledger=ledger), 3)
    stated = cast("Callable[..., object]", getattr(verifier_module, where))

    def failing(finding: Finding, *rest: object) -> object:
        if finding.subject == "STATE_1":
            raise error
        return stated(finding, *rest)

    monkeypatch.setattr(verifier_module, where, failing)
    verifier = Verifier(ledger)
    verifier.catch_up()
    assert [key[2] for key in keys_of(recorded(ledger))] == ["STATE_0", "STATE_2"]
    assert verifier.could_not_verify == 1
    assert ledger.store.position(VERIFIER) == ledger.store.size()
    bad = next(r.n for r in ledger.store.read(0, 1000) if r.data.get("state") == "STATE_1")
    assert f"event {bad} could not be verified" in caplog.text


def test_a_finding_that_no_record_can_hold_leaves_all_others(
    ledger: ContractLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The largest record is 64 KiB (docs/format.md section 3)."""
    many_tasks(LedgerStory(ledger=ledger), 3)

    def swollen(record: Record, *rest: object, **named: object) -> list[Finding]:
        found = cast("Callable[..., list[Finding]]", judge)(record, *rest, **named)
        return [replace(one, observed={"state": "x" * 70_000}) if one.subject == "STATE_1" else one for one in found]

    monkeypatch.setattr("a2a_ledger.divergence.cases.judge", swollen)
    verifier = Verifier(ledger)
    verifier.catch_up()
    assert [key[2] for key in keys_of(recorded(ledger))] == ["STATE_0", "STATE_2"]
    assert verifier.could_not_verify == 1


def test_an_event_that_cannot_be_appended_leaves_all_others(
    ledger: ContractLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    many_tasks(LedgerStory(ledger=ledger), 3)
    bad = next(r.n for r in ledger.store.read(0, 1000) if r.data.get("state") == "STATE_1")
    append = ledger.append

    def failing(drafts: Sequence[Draft], tracking: Tracking | None = None) -> list[Appended]:
        if tracking is not None and tracking.notification_id == bad + 1:
            raise FormatError("what a record cannot hold")
        return append(drafts, tracking)

    monkeypatch.setattr(ledger, "append", failing)
    verifier = Verifier(ledger)
    verifier.catch_up()
    assert [key[2] for key in keys_of(recorded(ledger))] == ["STATE_0", "STATE_2"]
    assert (verifier.could_not_verify, ledger.store.position(VERIFIER)) == (1, ledger.store.size())


def test_an_event_that_cannot_be_taken_in_leaves_all_others(
    ledger: ContractLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    many_tasks(LedgerStory(ledger=ledger), 3)
    take_in = TaskCase.apply

    def failing(case: TaskCase, record: Record, findings: list[Finding]) -> None:
        take_in(case, record, findings)
        if record.data.get("state") == "STATE_1":
            raise RuntimeError("a defect in the fold")

    monkeypatch.setattr(TaskCase, "apply", failing)
    verifier = Verifier(ledger)
    verifier.catch_up()
    assert [key[2] for key in keys_of(recorded(ledger))] == ["STATE_0", "STATE_1", "STATE_2"]
    assert verifier.could_not_verify == 1


def test_a_store_that_fails_is_no_event_to_pass_over(ledger: ContractLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    many_tasks(LedgerStory(ledger=ledger), 1)

    def busy(*_: object) -> list[Appended]:
        raise BusyError("somebody writes")

    monkeypatch.setattr(ledger, "append", busy)
    verifier = Verifier(ledger)
    with pytest.raises(BusyError):
        verifier.catch_up()
    assert (verifier.could_not_verify, ledger.store.position(VERIFIER)) == (0, 0)
