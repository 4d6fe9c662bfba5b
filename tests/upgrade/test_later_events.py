"""Events that a later release records, amid a task: kept, shown, passed over, never a reason to fail."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import pytest
from click.testing import CliRunner

from a2a_ledger.audit import audit_ledger
from a2a_ledger.cli import cli
from a2a_ledger.events import MessageRecorded, TaskAdopted
from a2a_ledger.export import export_task
from a2a_ledger.replay import replay_task
from a2a_ledger.verify import verify
from a2a_ledger_projections import peers, task_contracts
from a2a_ledger_projections.base import compare, reading
from a2a_ledger_projections.violations import violations
from tests.evidence.conftest import reopened
from tests.evidence.recorded import LedgerStory, dispute, opened
from tests.report.agreeing import disagreements
from tests.report.conftest import browser
from verifier import a2a_verify

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.codec import Draft
    from a2a_ledger.events import Event
    from a2a_ledger.ledger import ContractLedger
    from tests.report.browser import Browser

__all__ = ["browser"]

WEATHER, NEWER = "weather.observed.v1", "message.recorded.v9"
PROVEN = ("I", "L", "P", "C1", "C2", "X")


class Later(NamedTuple):
    """A ledger with events of a later release in the middle of its task, and where these are."""

    place: Path
    task: str
    at: list[int]
    log_key: str


def later(ledger: ContractLedger, event: Event, stream: str, name: str, member: bytes) -> Draft:
    """Draft what a later release would: another name, a member more, no look-up tag that this release would know."""
    made = ledger.draft(event, stream=stream)
    data = b"{" + member + b"," + made.data[1:]
    return made._replace(
        type=name,
        tags=(),
        data=data,
        head=made.head.replace(made.data, data),
        tail=made.tail.replace(event.TYPE.encode(), name.encode()),
    )


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Later:
    for name in ("HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    with opened(tmp_path / "audit") as ledger:
        story = dispute(ledger, polls=1)
        task = story.tasks["t1"]
        at = [ledger.store.size(), ledger.store.size() + 1]
        told = next(r for r in ledger.store.read_stream(f"task:{task}") if r.type == "message.recorded.v1").event()
        assert isinstance(told, MessageRecorded)
        sky = TaskAdopted(peer=told.peer, peer_url="https://vendor.example/.well-known/agent-card.json", task_id="T-t1")
        stream = f"task:{task}"
        ledger.append([later(ledger, sky, stream, WEATHER, b'"a_sky":["blue",null,true]')])
        ledger.append([later(ledger, replace(told, holes=None), stream, NEWER, b'"a_mood":"calm"')])
        _go_on(story)
        ledger.catch_up()
        ledger.sign_checkpoint()
        return Later(tmp_path / "audit", task, at, ledger.signers["log"].vkey)


def test_they_are_kept_as_they_came(told: Later) -> None:
    with reopened(told.place) as ledger:
        weather, newer = (ledger.store.record(n) for n in told.at)
        assert (weather.type, weather.event(), weather.data["a_sky"]) == (WEATHER, None, ["blue", None, True])
        assert (newer.type, newer.event(), newer.data["a_mood"]) == (NEWER, None, "calm")
        assert ledger.store.size() > told.at[1] + 2
        assert audit_ledger(ledger).faults == ()


def test_projections_pass_them_over_and_go_on(told: Later) -> None:
    with reopened(told.place, read_only=False) as ledger:
        ledger.catch_up(from_start=True)
        for view in (task_contracts.VIEW, peers.VIEW):
            assert compare(ledger.store, view) == []
            with reading(ledger.store, view) as now:
                assert (now.lag, now.position) == (0, ledger.store.size())
        assert [found.data["rule"] for found in violations(ledger.store)] == ["auth-demand"]
        assert replay_task(ledger, told.task).verdict == "same"


def test_they_are_shown(told: Later) -> None:
    words = ["--ledger", str(told.place)]
    (told.place / "config.toml").write_text(f'mark_dir = "{told.place / "elsewhere"}"\n')
    listed = json.loads(CliRunner().invoke(cli, [*words, "--format", "json", "show", told.task]).stdout)
    shown = {event["position"]: event["type"] for event in listed["events"]}
    assert [shown[n] for n in told.at] == [WEATHER, NEWER]
    text = CliRunner().invoke(cli, [*words, "show", told.task]).stdout
    unknown = "an event that this version does not know; kept and checked"
    assert f"weather.observed {unknown}" in text
    assert f"{NEWER} {unknown}" in text


def test_every_verifier_takes_the_bundle_and_leaves_open_what_it_cannot_judge(
    told: Later, tmp_path: Path, browser: Browser
) -> None:
    with reopened(told.place, read_only=False) as ledger:
        bundle = export_task(ledger, told.task).data
    report = verify(bundle, trust=[told.log_key])
    assert {letter: report.claim(letter).status for letter in PROVEN} == dict.fromkeys(PROVEN, "VALID")
    assert (report.claim("R").status, report.verdict) == ("NOT PROVEN", "not proven")
    policy = a2a_verify.read_policy(f"log {told.log_key}\nquorum none\n".encode())
    alone = a2a_verify.verify(bundle, policy, [], PROVEN)
    assert (alone.verdict, alone.claims["R"].status) == ("verified", "NOT PROVEN")
    assert disagreements(browser, tmp_path, bundle, report, told.log_key) == []


def _go_on(story: LedgerStory) -> None:
    """Let the task go on behind them: a poll that is answered as the ones before."""
    poll = story.ask("GetTask", task="t1", task_id="T-t1")
    story.answer(poll, {"id": "T-t1"})
