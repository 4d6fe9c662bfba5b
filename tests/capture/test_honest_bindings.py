"""Honest SDK traffic, every method of it, over every binding and both versions: the rules find nothing."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from a2a.client import ClientConfig
from a2a.client.errors import A2AClientError
from a2a.helpers import new_text_message
from a2a.types import (
    AuthenticationInfo,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
)
from a2a.utils.errors import A2AError

from a2a_ledger.codec import Kept
from a2a_ledger_projections.verifier import follower
from tests.capture.all_bindings import BINDINGS, EveryBinding
from tests.capture.conftest import only, send

if TYPE_CHECKING:
    from a2a.client import Client

    from a2a_ledger import ContractLedger
    from a2a_ledger.codec import Record
    from tests.capture.conftest import MakeGuard, OpenLedger

TOKEN, CREDENTIAL = b"hook-token-1f9c", b"hook-credential-77"


def hook(task: Task) -> TaskPushNotificationConfig:
    return TaskPushNotificationConfig(
        id="h1",
        task_id=task.id,
        url="https://client.example/hook",
        token=TOKEN.decode(),
        authentication=AuthenticationInfo(scheme="Bearer", credentials=CREDENTIAL.decode()),
    )


async def every_method(client: Client, version: str, *, streaming: bool) -> None:
    """Call every method of the SDK's client, in a row that a well-behaved application could call them in."""
    for text in ("hello", "chunks", "fail"):
        await send(client, text)

    first = (await send(client, "ask me"))[0].task
    await client.get_task(GetTaskRequest(id=first.id, history_length=2))
    await send(client, "this one", task_id=first.id, context_id=first.context_id)

    parked = (await send(client, "ask again"))[0].task
    await client.create_task_push_notification_config(hook(parked))
    which = {"task_id": parked.id, "id": "h1"}
    await client.get_task_push_notification_config(GetTaskPushNotificationConfigRequest(**which))
    with suppress(NotImplementedError):  # the SDK's HTTP+JSON of 0.3 has neither
        await client.list_task_push_notification_configs(ListTaskPushNotificationConfigsRequest(task_id=parked.id))
        await client.delete_task_push_notification_config(DeleteTaskPushNotificationConfigRequest(**which))
    await client.cancel_task(CancelTaskRequest(id=parked.id))
    await client.get_task(GetTaskRequest(id=parked.id))

    running = (await send(client, "ask once more"))[0].task
    if streaming:
        with suppress(A2AError, A2AClientError):  # an agent of 0.3 has forgotten the stream of a task that waits
            async for _ in client.subscribe(SubscribeToTaskRequest(id=running.id)):
                break
    await client.cancel_task(CancelTaskRequest(id=running.id))

    with_hook = SendMessageRequest(
        message=new_text_message("hello", role=Role.ROLE_USER),
        configuration=SendMessageConfiguration(task_push_notification_config=hook(Task())),
    )
    async for _ in client.send_message(with_hook):
        pass

    if version == "1.0":
        await client.list_tasks(ListTasksRequest())
    await client.get_extended_agent_card(GetExtendedAgentCardRequest())
    for call in (client.get_task(GetTaskRequest(id="nobody")), client.cancel_task(CancelTaskRequest(id=first.id))):
        with suppress(A2AError, A2AClientError):
            await call


def found(ledger: ContractLedger) -> list[tuple[Any, Any]]:
    verifier = follower(ledger)
    verifier.catch_up()
    assert verifier.could_not_verify == 0
    return [(record.data["rule"], record.data["observed"]) for record in only(ledger, "violation.detected")]


@pytest.mark.parametrize("mode", ["enforce", pytest.param("observe", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "streaming", [pytest.param(True, id="streaming"), pytest.param(False, id="blocking", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("version", ["1.0", "0.3"])
@pytest.mark.parametrize("binding", BINDINGS)
async def test_nothing_is_found_in_honest_traffic(
    open_ledger: OpenLedger, make_guard: MakeGuard, binding: str, version: str, streaming: bool, mode: str
) -> None:
    with EveryBinding(binding, version) as agent:
        ledger = open_ledger(mode=mode)
        config = ClientConfig(streaming=streaming, supported_protocol_bindings=[binding])
        client = await make_guard(ledger).create_client(agent.url, config=config)
        await every_method(client, version, streaming=streaming)
        await client.close()

    assert found(ledger) == []
    captured = only(ledger, "contract.captured")
    assert len(captured) == 7
    used = {"binding": binding, "tenant": "", "url": agent.target, "version": version}
    assert all(record.data["interface"] == used for record in captured)
    messages = only(ledger, "message.recorded")
    assert all(record.data["binding"] == binding and not record.data.get("flags") for record in messages)
    assert all(record.data["wire_version"] == version for record in messages if record.data["leg"] == "request")
    stored = octets(messages)
    assert b"echo: hello" in stored
    assert TOKEN not in stored
    assert CREDENTIAL not in stored


def octets(records: list[Record]) -> bytes:
    """Return all octets that are stored of these records, one blob after another."""
    parts = [part for record in records for role in record.blobs for part in record.stored_parts(role) or ()]
    return b"".join(part.content for part in parts if isinstance(part, Kept))
