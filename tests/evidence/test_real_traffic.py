"""Bundle and replay of what a real a2a-sdk client and agent said to each other under the guard."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from a2a.client import ClientConfig
from a2a.types import CancelTaskRequest, GetTaskRequest

from a2a_ledger import ContractChangedError
from a2a_ledger.audit import audit_ledger
from a2a_ledger.export import export_task
from a2a_ledger.replay import replay_task
from tests.capture.conftest import STALE, agent, make_guard, only, open_ledger, send, tasks
from tests.evidence.forging import judged

if TYPE_CHECKING:
    from a2a_ledger import ContractLedger
    from tests.capture.agent import Agent
    from tests.capture.conftest import MakeGuard, OpenLedger

__all__ = ["agent", "make_guard", "open_ledger"]  # fixtures, found by their names


def check_all(ledger: ContractLedger) -> int:
    """Replay, export and verify every task; return how many freshness decisions were made again."""
    ledger.catch_up()
    key = ledger.signers["log"].vkey
    decisions = 0
    for stream in tasks(ledger):
        task = stream.removeprefix("task:")
        replayed = replay_task(ledger, task)
        assert replayed.same, str(replayed)
        assert replayed.notes == ()
        decisions += replayed.decisions
        report = judged(export_task(ledger, task).data, key)
        assert report.verdict == "verified", [claim for claim in report.claims if claim.status != "VALID"]
    assert audit_ledger(ledger).clean
    return decisions


@pytest.mark.parametrize("bindings", [["JSONRPC"], ["HTTP+JSON"]])
async def test_honest_traffic_replays_and_verifies(
    agent: Agent,
    open_ledger: OpenLedger,
    make_guard: MakeGuard,
    bindings: list[str],
) -> None:
    ledger = open_ledger()
    config = ClientConfig(supported_protocol_bindings=bindings)
    client = await make_guard(ledger).create_client(agent.url, config=config)
    for text in ("hello", "hello again"):
        await send(client, text)
    (first, *_) = only(ledger, "task.bound")
    await client.get_task(GetTaskRequest(id=str(first.data["task_id"])))
    with pytest.raises(Exception, match=r"(?i)cancel|terminal|completed"):
        await client.cancel_task(CancelTaskRequest(id=str(first.data["task_id"])))
    assert check_all(ledger) == 2


async def test_an_abort_replays_and_verifies(
    agent: Agent,
    open_ledger: OpenLedger,
    make_guard: MakeGuard,
) -> None:
    ledger = open_ledger(limits=STALE)
    client = await make_guard(ledger).create_client(agent.url)
    await send(client, "hello")
    agent.require_oauth()
    with pytest.raises(ContractChangedError):
        await send(client, "hello")
    assert check_all(ledger) == 2  # one a send
