"""A fresh agent and a fresh ledger for each test, and the small verbs that the tests speak."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from a2a.helpers import new_text_message
from a2a.types import Role, SendMessageRequest, StreamResponse

from a2a_ledger import ContractLedger, Guard
from a2a_ledger.settings import Limits
from tests.capture.agent import Agent

if TYPE_CHECKING:
    from pathlib import Path

    from a2a.client import Client

    from a2a_ledger.codec import Record

OpenLedger = Callable[..., ContractLedger]
MakeGuard = Callable[[ContractLedger], Guard]

STALE = Limits(contract=0)
"""Every send asks again: the limit of trust in a contract is over at once."""


@pytest.fixture
def agent() -> Iterator[Agent]:
    """Return a running agent."""
    with Agent() as running:
        yield running


@pytest.fixture
def open_ledger(tmp_path: Path) -> Iterator[OpenLedger]:
    """Return a way to open the test's ledger; all are closed at the end."""
    opened: list[ContractLedger] = []

    def _open(**options: Any) -> ContractLedger:  # noqa: ANN401 - passed through to ContractLedger.open
        options.setdefault("follow", False)
        ledger = ContractLedger.open(tmp_path / "audit", mark_dir=str(tmp_path / "mark"), **options)
        opened.append(ledger)
        return ledger

    yield _open
    for ledger in opened:
        ledger.close()


@pytest.fixture
async def make_guard() -> AsyncIterator[MakeGuard]:
    """Return a way to make guards; all are closed at the end."""
    guards: list[Guard] = []

    def _make(ledger: ContractLedger) -> Guard:
        guards.append(Guard(ledger))
        return guards[-1]

    yield _make
    for guard in guards:
        await guard.aclose()


def request(text: str, **ids: str) -> SendMessageRequest:
    """Return a send of one text, of a new task or, with `task_id` and `context_id`, of a running one."""
    return SendMessageRequest(message=new_text_message(text, role=Role.ROLE_USER, **ids))


async def send(client: Client, text: str, **ids: str) -> list[StreamResponse]:
    """Send one text and return everything that came back."""
    return [event async for event in client.send_message(request(text, **ids))]


def types(records: list[Record]) -> list[str]:
    """Return the event names, without their versions."""
    return [record.type.removesuffix(".v1") for record in records]


def only(ledger: ContractLedger, kind: str) -> list[Record]:
    """Return all records of one event name."""
    return [record for record in ledger.store.read(0, 10_000) if record.type == f"{kind}.v1"]


def tasks(ledger: ContractLedger) -> list[str]:
    """Return the streams of all tasks, oldest first."""
    return list(dict.fromkeys(r.stream for r in ledger.store.read(0, 10_000) if r.stream.startswith("task:")))
