"""A ledger that was begun under rule set 1 and goes on under rule set 2: nothing is lost, and nothing said twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from a2a_ledger.divergence import VERIFIER, Cases, payload_of, violation_of
from a2a_ledger.events import ViolationDetected
from a2a_ledger.export import export_task
from a2a_ledger.replay import replay_task
from a2a_ledger.statement import sign_envelope
from a2a_ledger.what_if import what_if
from a2a_ledger_projections.verifier import follower
from tests.divergence.story import ours
from tests.evidence.forging import judged, statuses
from tests.evidence.recorded import dispute, opened
from tests.verifier.ledger_story import keys_of, recorded

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from a2a_ledger.ledger import ContractLedger
    from tests.evidence.recorded import LedgerStory

OLD_VERIFIER = "verifier"
"""The name under which the verifier of set 1 kept its position."""


def told(ledger: ContractLedger) -> LedgerStory:
    """Tell of a dispute with one finding of both sets, and one that only set 2 has."""
    story = dispute(ledger)
    poll = story.ask("GetTask", task_id="T-t1")
    story.answer(poll, {"id": "T-t1", "status": {"state": "working"}, "history": [ours("m-t1"), ours("x")]})
    again = story.ask("GetTask", task_id="T-t1")
    changed = [ours("x", "something else")]
    story.answer(again, {"id": "T-t1", "status": {"state": "working"}, "history": [*changed]})
    return story


def as_set_1_did(story: LedgerStory, ledger: ContractLedger) -> None:
    """Judge by rule set 1, sign, record, and keep the position."""
    cases = Cases(ledger.store, ledger.profile, rule_set="1")
    stop = ledger.store.size()
    for finding in [item for n in range(stop) for item in cases.judge(ledger.store.record(n))]:
        payload = payload_of(finding, ledger.origin, ledger.profile)
        event = violation_of(finding, payload, ledger.profile)
        story.add(event, finding.stream, {"statement": sign_envelope(payload, ledger.signers["statement"])}, "derived")
    with ledger.store.transaction() as connection:
        ledger.store.advance(connection, OLD_VERIFIER, ledger.store.size())


def test_a_ledger_of_set_1_replays_and_its_verifier_goes_over_to_set_2(tmp_path: Path) -> None:
    with opened(tmp_path / "audit") as ledger:
        story = told(ledger)
        as_set_1_did(story, ledger)
        before = _found(ledger)
        assert before == [("auth-demand", "1")]
        waiting = replay_task(ledger, story.tasks["t1"])
        assert waiting.same
        assert "history-divergence" in waiting.notes[0]  # found by set 2, which has not read so far

        follower(ledger).catch_up()
        assert _found(ledger) == [*before, ("history-divergence", "2")]
        assert replay_task(ledger, story.tasks["t1"]).same
        follower(ledger).start_over()
        follower(ledger).catch_up()
        assert len(keys_of(recorded(ledger))) == 2

        ledger.sign_checkpoint()
        report = judged(export_task(ledger, story.tasks["t1"]).data, ledger.signers["log"].vkey)
        assert statuses(report)["R"] == "VALID"
        assert "2 findings again" in report.claim("R").detail


def exported_under_set_1(ledger: ContractLedger, task: str, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """Export as the release of rule set 1 did."""
    with monkeypatch.context() as then:
        then.setattr("a2a_ledger.export.making.RULE_SET", "1")
        then.setattr("a2a_ledger.export.making.VERIFIER", OLD_VERIFIER)
        return export_task(ledger, task).data


def test_a_bundle_of_set_1_verifies_by_set_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path / "audit") as ledger:
        story = told(ledger)
        as_set_1_did(story, ledger)
        ledger.sign_checkpoint()
        bundle = exported_under_set_1(ledger, story.tasks["t1"], monkeypatch)
        report = judged(bundle, ledger.signers["log"].vkey)
    assert statuses(report)["R"] == "VALID"
    assert "1 findings again" in report.claim("R").detail


def test_a_finding_that_set_2_makes_and_nobody_recorded_differs(tmp_path: Path) -> None:
    with opened(tmp_path / "audit") as ledger:
        story = told(ledger)
        as_set_1_did(story, ledger)
        with ledger.store.transaction() as connection:
            ledger.store.advance(connection, VERIFIER, ledger.store.size())
        report = replay_task(ledger, story.tasks["t1"])
    assert not report.same
    assert "history-divergence" in str(report.differences[0])


TWICE = [("WWW-Authenticate", 'Basic realm="users"'), ("WWW-Authenticate", 'Basic realm="admins"')]


def told_twice(ledger: ContractLedger) -> LedgerStory:
    """Tell of one answer that makes one demand twice: rule set 1 found and recorded it twice."""
    story = dispute(ledger)
    poll = story.ask("GetTask", task_id="T-t1")
    story.answer(poll, status=401, headers=TWICE, body=b"")
    as_set_1_did(story, ledger)
    return story


def test_what_set_1_recorded_twice_replays_and_verifies_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path / "audit") as ledger:
        story = told_twice(ledger)
        assert _found(ledger) == [("auth-demand", "1")] * 3  # by the alert, and twice by the answer
        assert len(keys_of(recorded(ledger))) == 3 > len(set(keys_of(recorded(ledger))))
        assert replay_task(ledger, story.tasks["t1"]).differences == ()
        for rules in ("1", "2"):
            again = what_if(ledger, story.tasks["t1"], rules=rules)
            assert (again.differences, again.notes) == ((), ())

        ledger.sign_checkpoint()
        bundle = exported_under_set_1(ledger, story.tasks["t1"], monkeypatch)
        report = judged(bundle, ledger.signers["log"].vkey)
        assert statuses(report)["R"] == "VALID"
        assert "3 findings again" in report.claim("R").detail

        follower(ledger).catch_up()  # set 2 finds it once, and it is there
        assert _found(ledger) == [("auth-demand", "1")] * 3
        assert replay_task(ledger, story.tasks["t1"]).differences == ()
        ledger.sign_checkpoint()
        report = judged(export_task(ledger, story.tasks["t1"]).data, ledger.signers["log"].vkey)
        assert statuses(report)["R"] == "VALID"


def test_once_more_than_it_was_found_is_a_difference(tmp_path: Path) -> None:
    with opened(tmp_path / "audit") as ledger:
        story = told_twice(ledger)
        last = recorded(ledger)[-1]
        fields = {name: value for name, value in last.data.items() if name not in {"holes", "stream_commitment"}}
        blobs = {"statement": last.content("statement") or b""}
        third = story.add(ViolationDetected(**cast("Any", fields)), last.stream, blobs, "derived")
        (difference,) = replay_task(ledger, story.tasks["t1"]).differences
    assert (difference.n, difference.what, difference.now) == (third.n, "finding", "not again")
    assert difference.recorded == f"once more, as at {last.n - 1}"


def _found(ledger: ContractLedger) -> list[tuple[object, object]]:
    return [(item.data["rule"], item.data["rule_set"]) for item in recorded(ledger)]
