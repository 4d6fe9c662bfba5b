"""Honest SDK traffic with all that is compared: histories of any length, parts of any kind, streams that are left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from a2a.client import ClientConfig
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    SubscribeToTaskRequest,
)
from google.protobuf.json_format import ParseDict

from a2a_ledger_projections.verifier import follower
from tests.capture.conftest import only, send

if TYPE_CHECKING:
    from a2a.client import Client
    from a2a.types import StreamResponse, Task

    from tests.capture.agent import Agent
    from tests.capture.conftest import MakeGuard, OpenLedger

PARTS: list[dict[str, object]] = [
    {"text": "ask me"},
    {"data": {"n": 3, "big": 12345678901234567890, "half": 0.5, "list": [1, None, True], "ü": "\u00e9"}},
    {"raw": "-_8", "filename": "a.bin", "mediaType": "application/octet-stream"},
    {"url": "https://files.example/a b", "metadata": {"x": 1}},
]


async def sent(client: Client, message_id: str, history_length: int | None, task: Task | None = None) -> Task:
    """Send a message with a part of every kind, and ask for so much history; return the task."""
    message = Message(message_id=message_id, role=Role.ROLE_USER, parts=[ParseDict(part, Part()) for part in PARTS])
    if task is not None:
        message.task_id, message.context_id = task.id, task.context_id
    configuration = SendMessageConfiguration()
    if history_length is not None:
        configuration.history_length = history_length
    request = SendMessageRequest(message=message, configuration=configuration)
    events = [event async for event in client.send_message(request)]
    return await client.get_task(GetTaskRequest(id=_id(events)))


def _id(events: list[StreamResponse]) -> str:
    """Return the task that the events are about."""
    first = events[0]
    return first.task.id if first.HasField("task") else first.status_update.task_id


def only_0_3(agent: Agent) -> None:
    """Let the agent's card offer nothing but A2A 0.3, over both bindings."""
    for interface in list(agent.card.supported_interfaces):
        if interface.protocol_version != "0.3":
            agent.card.supported_interfaces.remove(interface)
    agent.card.supported_interfaces.add(url=agent.url + "/rest", protocol_binding="HTTP+JSON", protocol_version="0.3")


@pytest.mark.parametrize("bindings", [["JSONRPC"], ["HTTP+JSON"]])
@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("version", ["1.0", "0.3"])
async def test_nothing_is_found_in_what_an_honest_agent_keeps(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, bindings: list[str], streaming: bool, version: str
) -> None:
    if version == "0.3":
        only_0_3(agent)
    ledger = open_ledger(mode="observe")
    config = ClientConfig(streaming=streaming, supported_protocol_bindings=bindings)
    client = await make_guard(ledger).create_client(agent.url, config=config)

    task = await sent(client, "u1", None)
    for turn, asked in enumerate((0, 1, 100), start=2):
        task = await sent(client, f"u{turn}", asked, task)
        for length in (None, 0, 1, 2, 100):
            request = GetTaskRequest(id=task.id)
            if length is not None:
                request.history_length = length
            await client.get_task(request)
    if streaming:
        for _ in range(2):
            async for _ in client.subscribe(SubscribeToTaskRequest(id=task.id)):
                break
    await client.cancel_task(CancelTaskRequest(id=task.id))
    await client.get_task(GetTaskRequest(id=task.id))
    made = (await send(client, "chunks"))[-1]
    finished = made.task.id if made.HasField("task") else made.status_update.task_id
    for _ in range(2):
        await client.get_task(GetTaskRequest(id=finished))

    verifier = follower(ledger)
    verifier.catch_up()
    assert verifier.could_not_verify == 0
    found = [(r.data["rule"], r.data["subject"], r.data["observed"]) for r in only(ledger, "violation.detected")]
    assert found == []
    histories = [r for r in only(ledger, "message.recorded") if b'"history"' in (r.content("body") or b"")]
    assert len(histories) >= 12
