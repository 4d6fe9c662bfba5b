"""Time tokens by themselves: each hour while the log grows, soon after a violation, before an export; nobody waits."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.anchors import anchors_of, witnesses
from a2a_ledger.anchors.asking import Answer
from a2a_ledger.anchors.cadence import Cadence
from a2a_ledger.anchors.last_round import STATE, complaints
from a2a_ledger.anchors.stamping import stamp_before_export
from a2a_ledger.anchors.timestamp import Authority as Asked
from a2a_ledger.anchors.timestamp import anchor_by_authority
from a2a_ledger.audit import audit_ledger
from a2a_ledger.errors import UsageError
from a2a_ledger.events import TaskAdopted
from a2a_ledger.ledger import ContractLedger
from a2a_ledger.settings import Anchoring
from a2a_ledger.time_token import read_roots
from tests.anchors.pretend import Pretend
from tests.cli.conftest import run
from tests.evidence.recorded import dispute
from tests.timestamps.server import Responder, Said

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from click.testing import Result

    from tests.timestamps.authority import Authority

    Run = Callable[..., Result]

__all__ = ["run"]

HOUR = 3600


class Clock:
    """One time for what is recorded and for what is due: seconds from a start, set by a test."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> datetime:
        return datetime(2026, 3, 2, 9, tzinfo=UTC) + timedelta(seconds=self.seconds)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def chosen(home: Path, authority: Authority, responder: Responder) -> Anchoring:
    (home / "roots.pem").write_bytes(authority.pem)
    return Anchoring(timestamp=responder.url, timestamp_roots="../roots.pem")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(home: Path, chosen: Anchoring, clock: Clock) -> Iterator[ContractLedger]:
    """Open a ledger whose settings name the authority, without the thread: a test takes the turns."""
    with ContractLedger.open(home / "audit", origin="acme/audit", follow=False, anchor=chosen, clock=clock) as opened:
        yield opened


class Turns:
    """Takes turns of one cadence at times that a test names; says whether the authority was asked."""

    def __init__(self, ledger: ContractLedger, clock: Clock, responder: Responder) -> None:
        assert ledger.home is not None
        self.cadence = Cadence(ledger, ledger.home.root)
        self.clock, self.responder = clock, responder

    def at(self, *times: float) -> list[bool]:
        return [self._at(seconds) for seconds in times]

    def _at(self, seconds: float) -> bool:
        self.clock.seconds, before = seconds, len(self.responder.asked)
        turned = self.cadence.turn(seconds)
        asked = len(self.responder.asked) > before
        assert turned is asked
        return asked


@pytest.fixture
def turns(ledger: ContractLedger, clock: Clock, responder: Responder) -> Turns:
    return Turns(ledger, clock, responder)


def away(query: bytes) -> Said:
    del query
    return Said(b"", status=503)


def grow(ledger: ContractLedger) -> None:
    event = TaskAdopted(peer="5" * 32, peer_url="https://peer.example/.well-known/agent-card.json", task_id="T9")
    ledger.append([ledger.draft(event, stream=f"task:{ledger.new_task()}")])


def violate(ledger: ContractLedger, name: str) -> None:
    dispute(ledger, name=name)
    ledger.catch_up()


def stamped(ledger: ContractLedger, authority: Authority) -> list[int]:
    """Return the sizes of the heads with a token that counts, oldest first."""
    return sorted(anchor.size for anchor, why in anchors_of(ledger.store, read_roots(authority.pem)) if not why)


# ---- When it is due


def test_each_hour_while_the_log_grows(ledger: ContractLedger, turns: Turns, authority: Authority) -> None:
    assert turns.at(0, 1, 60, HOUR, 5 * HOUR) == [True, False, False, False, False], "a token alone is nothing new"
    grow(ledger)
    assert turns.at(5 * HOUR + 1) == [True], "the last one was long ago"
    grow(ledger)
    assert turns.at(5 * HOUR + 61, 6 * HOUR, 6 * HOUR + 1) == [False, False, True]
    assert stamped(ledger, authority) == [4, 6, 8]


def test_at_once_after_a_violation_but_not_twice_a_minute(ledger: ContractLedger, turns: Turns) -> None:
    assert turns.at(0) == [True]
    violate(ledger, "t1")
    assert turns.at(30, 59, 60, 61) == [False, False, True, False]
    grow(ledger)
    assert turns.at(121) == [False], "the violation is under a token already"
    violate(ledger, "t2")
    assert turns.at(122, 123) == [True, False]


def test_the_seconds_are_those_of_the_settings(ledger: ContractLedger, clock: Clock, responder: Responder) -> None:
    object.__setattr__(ledger.settings.anchor, "timestamp_seconds", 600)
    turns = Turns(ledger, clock, responder)
    assert turns.at(0) == [True]
    grow(ledger)
    assert turns.at(599, 600) == [False, True]
    with pytest.raises(UsageError, match=r"timestamp_seconds: expected a whole number, 60 or more, found 59"):
        Anchoring(timestamp_seconds=59)


def test_a_new_start_is_no_reason_and_neither_is_another_clock(
    ledger: ContractLedger, turns: Turns, clock: Clock, responder: Responder
) -> None:
    assert turns.at(0) == [True]
    grow(ledger)
    assert Turns(ledger, clock, responder).at(600, HOUR - 1) == [False, False]
    assert Turns(ledger, clock, responder).at(-7200) == [False], "a clock that was set back counts from now"
    assert Turns(ledger, clock, responder).at(HOUR) == [True]
    violate(ledger, "t1")
    assert Turns(ledger, clock, responder).at(HOUR + 59, HOUR + 60) == [False, True]


def test_what_another_process_has_had_stamped_is_stamped(
    ledger: ContractLedger, turns: Turns, clock: Clock, responder: Responder, authority: Authority
) -> None:
    assert turns.at(0) == [True]
    grow(ledger)
    clock.seconds = 3000
    anchor_by_authority(ledger, Asked(responder.url, read_roots(authority.pem)))
    assert turns.at(HOUR, 10 * HOUR) == [False, False]
    grow(ledger)
    assert turns.at(10 * HOUR + 1) == [True]


# ---- What goes wrong


def test_a_failure_is_tried_again_less_and_less_often_and_is_shown(
    ledger: ContractLedger, turns: Turns, responder: Responder, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    good, responder.answer = responder.answer, away
    due = [0, 60, 180, 420, 900, 1860, 3780, 7380, 7380 + HOUR]
    assert turns.at(*due) == [True] * 9
    assert turns.at(due[-1] + HOUR - 1) == [False], "an hour is the longest"
    said = [record.message for record in caplog.records if record.name == "a2a_ledger.anchors.cadence"]
    assert len(said) == 1, "the same is not said twice"
    assert ledger.home is not None
    root = ledger.home.root
    (complaint,) = complaints(root)
    assert "the head of 4 was not given to the timestamp authority: http://127.0.0.1" in complaint
    assert "found 503" in complaint
    assert complaint in audit_ledger(ledger).notes
    assert ledger.store.size() == 4, "nothing is recorded of it"
    violate(ledger, "t1")
    assert turns.at(due[-1] + HOUR - 1) == [False], "who does not answer is not asked more often for that"
    responder.answer = good
    assert turns.at(due[-1] + HOUR) == [True]
    assert complaints(root) == []
    assert len(stamped(ledger, authority)) == 1


@pytest.mark.parametrize("wait", [1, 59])
def test_between_two_tries_lies_a_minute_at_least(
    turns: Turns, ledger: ContractLedger, responder: Responder, wait: int
) -> None:
    responder.answer = away
    assert turns.at(0) == [True]
    violate(ledger, "t1")
    assert turns.at(wait) == [False]


def test_roots_that_are_gone_stop_nothing(
    ledger: ContractLedger, turns: Turns, home: Path, responder: Responder
) -> None:
    (home / "roots.pem").unlink()
    assert turns.cadence.turn(0) is True
    assert responder.asked == [], "nobody could vouch for the answer"
    (complaint,) = complaints(home / "audit")
    assert "was not given to the timestamp authority: setting [anchor] timestamp_roots" in complaint
    assert ledger.store.size() == 4


def test_witnesses_and_authority_are_told_of_apart(
    home: Path, chosen: Anchoring, clock: Clock, responder: Responder, monkeypatch: pytest.MonkeyPatch
) -> None:
    witness = Pretend()
    (home / "witnesses.txt").write_text(f"{witness.line}quorum {witness.key.name}\n")
    monkeypatch.setattr(witnesses, "ask", witness)
    both = Anchoring(witnesses="../witnesses.txt", timestamp=chosen.timestamp, timestamp_roots=chosen.timestamp_roots)
    with ContractLedger.open(home / "audit", origin="acme/audit", follow=False, anchor=both, clock=clock) as ledger:
        cadence = Cadence(ledger, home / "audit")
        witness.answers = [Answer(503, "", b"later")]
        assert cadence.turn(0) is True
        (complaint,) = complaints(home / "audit")
        assert witness.key.name in complaint
        good, responder.answer = responder.answer, away
        grow(ledger)
        clock.seconds = HOUR
        assert cadence.turn(HOUR) is True
        (complaint,) = complaints(home / "audit")
        assert "the timestamp authority" in complaint
        responder.answer = good
        clock.seconds = HOUR + 60
        assert cadence.turn(HOUR + 60) is True
        assert complaints(home / "audit") == []
    assert len(responder.asked) == 3


def test_an_open_ledger_is_stamped_and_closes_while_the_authority_hangs(
    home: Path, chosen: Anchoring, responder: Responder, authority: Authority
) -> None:
    asked, hang = threading.Event(), threading.Event()

    def never(query: bytes) -> Said:
        asked.set()
        hang.wait(60)
        return Said(authority.reply(query))

    responder.answer = never
    patient = Anchoring(timestamp=chosen.timestamp, timestamp_roots=chosen.timestamp_roots, timeout=600)
    with ContractLedger.open(home / "audit", origin="acme/audit", anchor=patient) as ledger:
        assert asked.wait(60), "the first question comes by itself"
        grow(ledger)  # and waits for nobody
        assert ledger.store.size() == 5
    hang.set()
    state = json.loads((home / "audit" / STATE).read_text())
    assert "did not come to an end" in state["timestamp"]["failures"]["the timestamp authority"]
    with ContractLedger.open(home / "audit", follow=False) as again:
        assert again.store.size() == 5


def test_without_its_roots_it_is_not_asked_by_itself(home: Path, responder: Responder) -> None:
    with ContractLedger.open(home / "audit", origin="acme/audit", anchor=Anchoring(timestamp=responder.url)) as ledger:
        assert "a2a-ledger-anchors" not in {thread.name for thread in threading.enumerate()}
        assert stamp_before_export(ledger) == ""
    assert responder.asked == []


# ---- Before an export


def test_before_an_export_at_most_once_a_minute(
    ledger: ContractLedger, clock: Clock, responder: Responder, authority: Authority
) -> None:
    assert stamp_before_export(ledger) == ""
    assert stamped(ledger, authority) == [4]
    clock.seconds = 120
    assert stamp_before_export(ledger) == ""
    assert len(responder.asked) == 1, "nothing but the token came since"
    grow(ledger)
    assert stamp_before_export(ledger) == ""
    grow(ledger)
    clock.seconds = 179
    assert stamp_before_export(ledger) == ""
    assert len(responder.asked) == 2
    clock.seconds = 180
    assert stamp_before_export(ledger) == ""
    assert stamped(ledger, authority) == [4, 6, 8]


def test_who_does_not_answer_is_not_waited_for_at_each_export(
    ledger: ContractLedger, clock: Clock, responder: Responder, home: Path
) -> None:
    good, responder.answer = responder.answer, away
    assert "found 503" in stamp_before_export(ledger)
    clock.seconds = 59
    assert stamp_before_export(ledger) == ""
    assert len(responder.asked) == 1
    assert len(complaints(home / "audit")) == 1
    responder.answer, clock.seconds = good, 60
    assert stamp_before_export(ledger) == ""
    assert complaints(home / "audit") == []


def test_export_takes_a_token_along_that_it_asked_for(
    home: Path, chosen: Anchoring, responder: Responder, run: Run
) -> None:
    with ContractLedger.open(home / "audit", origin="acme/audit", follow=False) as opened:
        violate(opened, "t1")
    config = f'[anchor]\ntimestamp = "{chosen.timestamp}"\ntimestamp_roots = "{chosen.timestamp_roots}"\n'
    (home / "audit" / "config.toml").write_text(config)
    good, responder.answer = responder.answer, away
    done = run("--ledger", "audit", "export", "T-t1", "-o", "first.zip")
    assert done.exit_code == 0, done.output
    assert "No time token over the newest events: http" in done.stderr
    assert "time tokens of" not in done.stdout
    (home / "audit" / STATE).unlink()  # as a minute later
    responder.answer = good
    done = run("--ledger", "audit", "export", "T-t1", "-o", "second.zip")
    assert done.exit_code == 0, done.output
    assert "No time token" not in done.stderr
    assert "time tokens of CN=Test TSA" in done.stdout
    (home / "audit" / "keys").rename(home / "elsewhere")
    done = run("--ledger", "audit", "export", "T-t1", "-o", "third.zip")
    assert done.exit_code == 0, done.output
    assert "time tokens of CN=Test TSA" in done.stdout
    assert len(responder.asked) == 2, "without its keys nothing is asked"
