"""The thread that signs heads: at once when asked to, spaced in a steady flow, and never late at the end."""

from __future__ import annotations

import fcntl
import logging
import threading
import time
from typing import TYPE_CHECKING

import pytest

from a2a_ledger import heads
from a2a_ledger.checkpoint import sign_checkpoint
from a2a_ledger.events import CardServed
from a2a_ledger.ledger import ContractLedger

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.checkpoint import Checkpoint
    from a2a_ledger.keys import Signer

EVENT = CardServed(
    url="https://agent.example/.well-known/agent-card.json",
    raw_hash="sha256:00",
    document_hash=None,
    contract_hash=None,
    form="",
    status=200,
)


def signed(ledger: ContractLedger) -> int:
    newest = ledger.store.latest_checkpoint()
    return newest[0] if newest else 0


def wait_until_signed(ledger: ContractLedger, size: int) -> None:
    deadline = time.monotonic() + 10
    while signed(ledger) < size:
        assert time.monotonic() < deadline, "no head was signed"
        time.sleep(0.005)


def test_urgent_signatures_are_spaced_and_closing_waits_for_none_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heads, "INTERVAL", 1000.0)
    monkeypatch.setattr(heads, "SPACING", 1000.0)
    mark_dir = str(tmp_path / "mark")
    ledger = ContractLedger.open(tmp_path / "audit", follow=False, mark_dir=mark_dir)
    size = ledger.store.size()
    ledger.checkpoint_soon()
    wait_until_signed(ledger, size)  # the first one comes at once, long before the interval
    for _ in range(3):
        ledger.append([ledger.draft(EVENT, stream="peer:self")])
        ledger.checkpoint_soon()
    assert signed(ledger) == size  # those that follow share the next one
    ledger.close()
    with ContractLedger.open(tmp_path / "audit", read_only=True, mark_dir=mark_dir) as again:
        assert [at for at, _ in again.store.checkpoints()] == [size, size + 3]


def test_nothing_that_stops_one_signature_ends_the_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failing, failed = threading.Event(), threading.Semaphore(0)

    def sign(head: Checkpoint, *signers: Signer) -> str:
        if failing.is_set():
            failed.release()
            raise RecursionError("maximum recursion depth exceeded")
        return sign_checkpoint(head, *signers)

    monkeypatch.setattr(heads, "INTERVAL", 0.01)
    monkeypatch.setattr(heads, "sign_checkpoint", sign)
    mark_dir = str(tmp_path / "mark")
    ledger = ContractLedger.open(tmp_path / "audit", follow=False, mark_dir=mark_dir)
    size = ledger.store.size()
    wait_until_signed(ledger, size)
    with caplog.at_level(logging.ERROR, logger="a2a_ledger.heads"):
        failing.set()
        ledger.append([ledger.draft(EVENT, stream="peer:self")])
        for _ in range(3):
            assert failed.acquire(timeout=10)
        assert signed(ledger) == size
        failing.clear()
        wait_until_signed(ledger, size + 1)
    (told,) = caplog.records  # once, with what a defect is found by
    assert told.exc_info is not None
    assert told.exc_info[0] is RecursionError
    ledger.append([ledger.draft(EVENT, stream="peer:self")])
    ledger.close()
    with ContractLedger.open(tmp_path / "audit", read_only=True, mark_dir=mark_dir) as again:
        assert signed(again) == size + 2


@pytest.mark.parametrize("others_sign", [True, False])
def test_who_is_outrun_speaks_up_only_where_no_head_comes_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, others_sign: bool
) -> None:
    monkeypatch.setattr(heads, "INTERVAL", 0.005)
    monkeypatch.setattr(heads, "LOCK_TIMEOUT", 0.2)
    mark_dir = str(tmp_path / "mark")
    with ContractLedger.open(tmp_path / "audit", follow=False, mark_dir=mark_dir) as ledger:
        size = ledger.store.size()
        wait_until_signed(ledger, size)
        tried, really = 0, ledger.store.latest_checkpoint

        def latest() -> tuple[int, str] | None:
            nonlocal tried
            found = really()
            if found is None or threading.current_thread() is threading.main_thread():
                return found
            tried += 1
            return found[0] + (tried if others_sign else 0), found[1]

        monkeypatch.setattr(ledger.store, "latest_checkpoint", latest)
        with (
            caplog.at_level(logging.ERROR, logger="a2a_ledger.heads"),
            (tmp_path / "audit" / "signer.lock").open("rb") as lock,
        ):
            fcntl.flock(lock, fcntl.LOCK_EX)
            ledger.append([ledger.draft(EVENT, stream="peer:self")])
            until = time.monotonic() + 1.0
            while time.monotonic() < until or tried < 5:  # long enough for five time-outs
                time.sleep(0.01)
            fcntl.flock(lock, fcntl.LOCK_UN)
        monkeypatch.undo()
        wait_until_signed(ledger, size + 1)
    said = [record.getMessage() for record in caplog.records]
    assert (said == []) if others_sign else "another process holds the signer's lock" in said[0]
