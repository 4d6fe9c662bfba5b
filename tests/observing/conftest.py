"""A ledger at a known moment: its clock stands wherever a test puts it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from a2a_ledger import ContractLedger
from a2a_ledger.events import TaskAdopted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

START = datetime(2026, 9, 14, 9, 0, 0, tzinfo=UTC)


class Clock:
    """Gives the time that it was last told."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def on(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test a home and a working directory of its own."""
    for name in ("HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.delenv("A2A_LEDGER", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(home: Path, clock: Clock) -> Iterator[ContractLedger]:
    """Return a ledger of five events (opened, four keys), signed by nobody yet in this process, followed by nobody."""
    with ContractLedger.open(home / "audit", origin="acme/audit", follow=False, clock=clock) as made:
        made.sign_checkpoint()
        yield made


def adopt(ledger: ContractLedger, count: int = 1) -> None:
    """Append events that no rule has anything to say of."""
    for number in range(count):
        event = TaskAdopted(peer="5" * 32, peer_url="https://p.example/c", task_id=f"T{ledger.store.size()}-{number}")
        ledger.append([ledger.draft(event, stream=f"task:{ledger.new_task()}")])
