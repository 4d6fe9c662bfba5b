"""One task again from its events: the same, or the first difference."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest

from a2a_ledger.divergence import Cases, payload_of, violation_of
from a2a_ledger.events import FreshnessDecided
from a2a_ledger.export import export_task
from a2a_ledger.keys import generate
from a2a_ledger.replay import replay_task
from a2a_ledger.statement import sign_envelope
from a2a_ledger_projections.verifier import follower
from tests.divergence.story import card
from tests.divergence.story import task as completed
from tests.evidence.conftest import reopened
from tests.evidence.forging import judged, statuses
from tests.evidence.recorded import LedgerStory, dispute, entropy, opened

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.divergence import Finding
    from a2a_ledger.events import JsonObject
    from a2a_ledger.keys import Signer
    from tests.evidence.conftest import Case


def test_a_replay_comes_out_the_same(case: Case) -> None:
    with reopened(case.place) as ledger:
        report = replay_task(ledger, case.task)
    assert report.same
    told = report.to_json()
    assert (told["task"], told["events"], told["verdict"], told["first_difference"]) == (case.task, 12, "same", None)
    (violation,) = cast("list[JsonObject]", told["violations"])
    assert (violation["rule"], violation["about"], violation["certainty"]) == ("auth-demand", "peer", "certain")
    assert violation["evidence"] == [6, 15]
    assert str(report).splitlines()[-1] == (
        "same: 12 events, 1 decision, 1 violation, equal byte for byte (rule set 2, profile default)"
    )


def test_the_story_says_what_was_promised_decided_sent_received_and_concluded(case: Case) -> None:
    with reopened(case.place) as ledger:
        story = replay_task(ledger, case.task).story
    parts = [step.part for step in story]
    assert parts[:5] == ["promised", "decided", "promised", "sent", "received"]
    assert parts[-1] == "concluded"
    assert story[1].text == "proceed fresh; at stake: authorization"
    assert story[-2].text == "error tls certificate_required"
    assert story[-1].text == "auth-demand, about: peer, certain, shown by #6, #15"
    assert story[0].at.startswith("2026-09-14T09:00:0")
    assert str(story[0]).startswith(f"#4 {story[0].at} promised  card https://vendor.example/")


def test_a_decision_that_the_table_does_not_give_differs(tmp_path: Path) -> None:
    """An operator who records another decision than the one that follows from his own inputs."""
    with opened(tmp_path / "audit") as ledger:
        story = LedgerStory(ledger)
        fetch = story.fetch(card())
        honest = story.decide(fetch, task="draft").event()
        assert isinstance(honest, FreshnessDecided)
        wrong = story.add(replace(honest, reason="not-modified"), "task:t1")
        story.capture(fetch)
        report = replay_task(ledger, story.tasks["t1"])
        assert not report.same
        assert report.to_json()["first_difference"] == {
            "position": wrong.n,
            "what": "decision",
            "recorded": "proceed not-modified (at stake: authorization)",
            "now": "proceed fresh (at stake: authorization)",
        }
        assert str(report).splitlines()[-1].startswith(f"differs: event {wrong.n}: decision: recorded")
        bundle = export_task(ledger, story.tasks["t1"]).data
        key = ledger.signers["log"].vkey
    judged_again = judged(bundle, key)
    assert statuses(judged_again)["R"] == "INVALID"
    assert statuses(judged_again)["C2"] == "VALID"


def recorded_finding(tmp_path: Path, *, certainty: str, signer: Signer | None = None) -> tuple[JsonObject, str]:
    """Record the dispute's finding by hand, changed or signed by another key; return the first difference."""
    with opened(tmp_path / "audit") as ledger:
        story = dispute(ledger)
        cases = Cases(ledger.store, ledger.profile)
        (finding,) = [item for n in range(ledger.store.size()) for item in cases.judge(ledger.store.record(n))]
        object.__setattr__(finding, "certainty", certainty)
        payload = payload_of(finding, ledger.origin, ledger.profile)
        envelope = sign_envelope(payload, signer or ledger.signers["statement"])
        event = violation_of(finding, payload, ledger.profile)
        story.add(event, finding.stream, {"statement": envelope}, "derived")
        ledger.catch_up()
        report = replay_task(ledger, story.tasks["t1"])
        bundle = export_task(ledger, story.tasks["t1"]).data
        judgement = judged(bundle, ledger.signers["log"].vkey)
    assert not report.same
    return cast("JsonObject", report.to_json()["first_difference"]), judgement.claim("R").status


@pytest.mark.parametrize("honest", [True, False])
def test_what_a_rule_fails_on_is_not_told_as_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, honest: bool
) -> None:
    """Be there a finding that is not found again, or none: nobody knows what would have been found."""
    with opened(tmp_path / "audit") as ledger:
        if honest:
            story = LedgerStory(ledger)
            fetch = story.fetch(card(), etag='"a"')
            story.decide(fetch, task="t1")
            story.capture(fetch)
            story.answer(story.ask(), completed("completed"))
        else:
            story = dispute(ledger)
        task, key = story.tasks["t1"], ledger.signers["log"].vkey
        follower(ledger).catch_up()
        bundle = export_task(ledger, task).data

        def fails(*_: object, **__: object) -> list[Finding]:
            raise IndexError("list index out of range")

        monkeypatch.setattr("a2a_ledger.divergence.cases.judge", fails)
        report = replay_task(ledger, task)
    assert (report.verdict, report.differences) == ("undecided", ())
    assert "could not be judged, a defect of a2a-ledger" in str(report)
    assert "IndexError('list index out of range')" in str(report)
    assert statuses(judged(bundle, key))["R"] == "NOT PROVEN"


def test_a_finding_that_the_rules_do_not_give_differs(tmp_path: Path) -> None:
    first, replayed = recorded_finding(tmp_path, certainty="suspected")
    assert first["what"] == "statement"
    assert replayed == "INVALID"


def test_a_finding_that_a_stranger_signed_differs(tmp_path: Path) -> None:
    stranger = generate("acme/audit-00000000", entropy())
    first, replayed = recorded_finding(tmp_path, certainty="certain", signer=stranger)
    assert first["what"] == "signature"
    assert replayed == "INVALID"


def test_a_verifier_that_lags_is_said_and_changes_nothing(tmp_path: Path) -> None:
    with opened(tmp_path / "audit") as ledger:
        story = dispute(ledger)
        report = replay_task(ledger, story.tasks["t1"])
    assert report.same
    assert report.notes == ("the verifier had read up to 0 only; auth-demand at 15 was due",)


def test_an_honest_task_has_nothing_to_report(tmp_path: Path) -> None:
    with opened(tmp_path / "audit") as ledger:
        story = LedgerStory(ledger)
        story.decide(story.fetch(card()))
        story.working()
        ledger.catch_up()
        report = replay_task(ledger, story.tasks["t1"])
    assert report.same
    assert report.violations == ()
    assert report.events == len(story.records) - 2  # all but the two card fetches, which are in the peer's stream
