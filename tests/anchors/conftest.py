"""Ledgers to anchor, and somebody who anchors."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.events import TaskAdopted
from a2a_ledger.ledger import ContractLedger
from tests.anchors.live import LiveWitness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the second copies of marks apart: tests restore old copies of ledgers on purpose."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def ledger(home: Path) -> Iterator[ContractLedger]:
    with ContractLedger.open(home / "audit", origin="acme/audit", follow=False) as opened:
        yield opened


@pytest.fixture
def grow() -> Callable[[ContractLedger], None]:
    """Return a call that appends one event."""

    def append(ledger: ContractLedger) -> None:
        event = TaskAdopted(peer="5" * 32, peer_url="https://peer.example/.well-known/agent-card.json", task_id="T1")
        ledger.append([ledger.draft(event, stream=f"task:{ledger.new_task()}")])

    return append


@pytest.fixture
def witness(tmp_path: Path, ledger: ContractLedger) -> Iterator[LiveWitness]:
    """Run a witness that knows the ledger's log."""
    live = LiveWitness(tmp_path / "witness", free_port())
    live.know(ledger.origin, ledger.signers["log"].vkey)
    live.start()
    try:
        yield live
    finally:
        live.stop()


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
