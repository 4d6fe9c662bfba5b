"""Anchoring by itself: when a round is due, what is tried again, and that nobody waits for it."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.anchors import anchored_size, witnesses
from a2a_ledger.anchors.asking import Answer
from a2a_ledger.anchors.cadence import LOCK, Cadence
from a2a_ledger.anchors.last_round import STATE, complaints
from a2a_ledger.audit import audit_ledger
from a2a_ledger.checkpoint import checkpoint_of
from a2a_ledger.ledger import ContractLedger
from a2a_ledger.settings import Anchoring
from tests.anchors.pretend import Pretend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    Grow = Callable[[ContractLedger], None]


@pytest.fixture
def pretend(home: Path, monkeypatch: pytest.MonkeyPatch) -> Pretend:
    made = Pretend()
    (home / "witnesses.txt").write_text(f"{made.line}quorum {made.key.name}\n")
    monkeypatch.setattr(witnesses, "ask", made)
    return made


@pytest.fixture
def anchored(home: Path, pretend: Pretend) -> Iterator[ContractLedger]:
    """Open a ledger that names a witness and a file, without the thread: a test takes the turns."""
    assert not pretend.asked
    chosen = Anchoring(witnesses="../witnesses.txt", files=["../head"], entries=5, seconds=60)
    with ContractLedger.open(home / "audit", origin="acme/audit", follow=False, anchor=chosen) as ledger:
        yield ledger


@pytest.fixture
def cadence(anchored: ContractLedger) -> Cadence:
    assert anchored.home is not None
    return Cadence(anchored, anchored.home.root)


def test_the_first_turn_anchors_what_is_not(anchored: ContractLedger, cadence: Cadence, home: Path) -> None:
    assert cadence.turn(0) is True
    assert anchored_size(anchored.store) == 4
    assert checkpoint_of((home / "head").read_bytes()).size == 4
    assert complaints(home / "audit") == []


def test_time_or_growth_is_a_reason_and_anchors_are_none(
    anchored: ContractLedger, cadence: Cadence, grow: Grow
) -> None:
    assert cadence.turn(0) is True
    assert anchored.store.size() == 6  # the witness's key, and the anchor
    assert cadence.turn(60) is True  # the key is news
    assert [cadence.turn(now) for now in (61, 120, 10_000)] == [False, False, False], "only an anchor came since"
    grow(anchored)
    assert cadence.turn(10_001) is True, "the last one was long ago"
    grow(anchored)
    assert [cadence.turn(now) for now in (10_002, 10_060)] == [False, False]
    assert cadence.turn(10_061) is True
    for _ in range(3):
        grow(anchored)
    assert cadence.turn(10_062) is False
    grow(anchored)
    assert cadence.turn(10_063) is True, "an anchor and four events"
    assert anchored_size(anchored.store) == anchored.store.size() - 1


def test_a_failure_is_tried_again_when_it_is_due_and_is_shown(
    anchored: ContractLedger, cadence: Cadence, pretend: Pretend, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pretend.answers = [Answer(503, "", b"later"), Answer(503, "", b"later")]
    assert [cadence.turn(now) for now in (0, 1, 59, 60)] == [True, False, False, True]
    assert len(pretend.asked) == 2
    said = [record.message for record in caplog.records if record.name == "a2a_ledger.anchors.cadence"]
    assert len(said) == 1, "the same is not said twice"
    (complaint,) = [line for line in complaints(home / "audit") if "status 503" in line]
    assert "the head of 4 was not given to witness.example/w" in complaint
    assert complaint in audit_ledger(anchored).notes
    assert cadence.turn(120) is True
    assert anchored_size(anchored.store) == 4
    assert complaints(home / "audit") == []


def test_who_signed_a_head_is_not_asked_for_it_again(
    home: Path, monkeypatch: pytest.MonkeyPatch, pretend: Pretend
) -> None:
    down = Pretend("witness.example/down")
    down.answers = [Answer(503, "", b"")] * 3
    names = f"{pretend.key.name} {down.key.name}"
    (home / "witnesses.txt").write_text(f"{pretend.line}{down.line}group g all {names}\nquorum g\n")

    def route(method: str, url: str, body: bytes, headers: Mapping[str, str], *, timeout: float) -> Answer:
        meant = down if url.startswith(down.witness.url) else pretend
        return meant(method, url, body, headers, timeout=timeout)

    monkeypatch.setattr(witnesses, "ask", route)
    chosen = Anchoring(witnesses="../witnesses.txt")
    with ContractLedger.open(home / "audit", origin="acme/audit", follow=False, anchor=chosen) as ledger:
        cadence = Cadence(ledger, home / "audit")

        def turn(now: float) -> bool:
            ledger.sign_checkpoint()  # as the head signer does within a second, also over an anchor alone
            return cadence.turn(now)

        assert [turn(now) for now in (0, 60)] == [True, True]
        size = ledger.store.size()  # the second head covers the key of the first round
        assert [turn(now) for now in (120, 180)] == [True, True]
        assert ledger.store.size() == size + 2, "the key and the anchor of the one that came up, nothing of the other"
    assert len(pretend.asked) == 2


def test_a_policy_that_is_gone_stops_nothing(anchored: ContractLedger, cadence: Cadence, home: Path) -> None:
    (home / "witnesses.txt").unlink()
    assert cadence.turn(0) is True
    assert checkpoint_of((home / "head").read_bytes()).size == 4
    (complaint,) = complaints(home / "audit")
    assert "was not given to witnesses: setting [anchor] witnesses" in complaint
    assert anchored_size(anchored.store) == 0


@pytest.mark.parametrize("odd", ["", "[]", "7", '{"at": 1}', '{"at": "x", "failures": [], "size": 1}', "[" * 100_000])
def test_an_odd_note_of_the_last_round_is_none(home: Path, odd: str) -> None:
    (home / STATE).write_text(odd)
    assert complaints(home) == []


def test_an_open_ledger_anchors_and_closes_while_a_witness_hangs(home: Path, pretend: Pretend, grow: Grow) -> None:
    asked, hang = threading.Event(), threading.Event()

    def never(text: str) -> Answer:
        asked.set()
        hang.wait(60)
        return Answer(503, "", text.encode()[:1])

    pretend.answers = [never]
    chosen = Anchoring(witnesses="../witnesses.txt", timeout=600)
    with ContractLedger.open(home / "audit", origin="acme/audit", anchor=chosen) as ledger:
        assert asked.wait(60), "the first round comes by itself"
        grow(ledger)  # and waits for nobody
        assert ledger.store.size() == 5
    hang.set()
    state = json.loads((home / "audit" / STATE).read_text())
    assert "did not come to an end" in state["failures"]["witness.example/w"]
    with ContractLedger.open(home / "audit", follow=False) as again:
        assert again.store.size() == 5


def test_who_names_nobody_has_no_thread(home: Path) -> None:
    with ContractLedger.open(home / "audit", origin="acme/audit") as ledger:
        assert "a2a-ledger-anchors" not in {thread.name for thread in threading.enumerate()}
        assert ledger.home is not None
        assert not (ledger.home.root / STATE).exists()


def test_a_lock_that_cannot_be_opened_ends_no_thread(
    anchored: ContractLedger, cadence: Cadence, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = threading.Event()
    lock = home / "audit" / LOCK
    lock.mkdir()

    def say(name: str, problem: str) -> None:
        assert (name, problem.partition(":")[0]) == ("this ledger", "IsADirectoryError")
        if not tried.is_set():
            lock.rmdir()
            tried.set()

    monkeypatch.setattr("a2a_ledger.anchors.cadence._STEP", 0.01)
    monkeypatch.setattr(cadence, "_say", say)
    cadence.start()
    assert tried.wait(10)
    deadline = time.monotonic() + 20
    while anchored_size(anchored.store) == 0:
        assert time.monotonic() < deadline, "nothing was anchored"
        time.sleep(0.01)
    cadence.stop()
