"""Honest SDK traffic: every method, streaming and not, multi-turn, cancel. The rules must find nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from a2a.client import ClientConfig
from a2a.types import CancelTaskRequest, GetTaskRequest, ListTasksRequest, SubscribeToTaskRequest

from a2a_ledger_projections.verifier import follower
from tests.capture.conftest import only, send

if TYPE_CHECKING:
    from tests.capture.agent import Agent
    from tests.capture.conftest import MakeGuard, OpenLedger


@pytest.mark.parametrize("mode", ["enforce", "observe"])
@pytest.mark.parametrize("bindings", [["JSONRPC"], ["HTTP+JSON"]])
@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("version", ["1.0", "0.3"])
async def test_nothing_is_found_in_honest_traffic(
    agent: Agent,
    open_ledger: OpenLedger,
    make_guard: MakeGuard,
    mode: str,
    bindings: list[str],
    streaming: bool,
    version: str,
) -> None:
    if version == "0.3":
        for interface in list(agent.card.supported_interfaces):
            if interface.protocol_version != version:
                agent.card.supported_interfaces.remove(interface)
        agent.card.supported_interfaces.add(
            url=agent.url + "/rest", protocol_binding="HTTP+JSON", protocol_version=version
        )
    ledger = open_ledger(mode=mode)
    guard = make_guard(ledger)
    config = ClientConfig(streaming=streaming, supported_protocol_bindings=bindings)
    client = await guard.create_client(agent.url, config=config)

    for text in ("hello", "chunks", "fail"):
        await send(client, text)
    asked = await send(client, "ask me")
    task = asked[0].task if asked[0].HasField("task") else None
    assert task is not None
    await client.get_task(GetTaskRequest(id=task.id, history_length=2))
    await send(client, "this one", task_id=task.id, context_id=task.context_id)
    parked = (await send(client, "ask again"))[0].task
    await client.cancel_task(CancelTaskRequest(id=parked.id))
    await client.get_task(GetTaskRequest(id=parked.id))
    if version == "1.0":
        await client.list_tasks(ListTasksRequest())
    running = (await send(client, "ask once more"))[0].task
    if streaming:
        subscription = client.subscribe(SubscribeToTaskRequest(id=running.id))
        async for _ in subscription:
            break
    await client.cancel_task(CancelTaskRequest(id=running.id))

    verifier = follower(ledger)
    verifier.catch_up()
    assert verifier.could_not_verify == 0
    found = [(r.data["rule"], r.data["observed"]) for r in only(ledger, "violation.detected")]
    assert found == []
    assert len(only(ledger, "contract.captured")) == 6
