"""Everything that an honest SDK client does: every method, streaming and not, multi-turn, reconnect, cancel, push."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.types import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
)
from a2a.utils.errors import A2AError

from tests.capture.conftest import send

if TYPE_CHECKING:
    from a2a.client import Client

    from tests.capture.agent import Agent


def speak_only(agent: Agent, version: str) -> None:
    """Let an agent's card offer one version alone, over both bindings."""
    for interface in list(agent.card.supported_interfaces):
        if interface.protocol_version != version:
            agent.card.supported_interfaces.remove(interface)
    if version == "0.3":
        agent.card.supported_interfaces.add(
            url=agent.url + "/rest", protocol_binding="HTTP+JSON", protocol_version=version
        )


async def honest(url: str, *, bindings: list[str], streaming: bool, version: str = "1.0") -> list[str]:
    """Do all of it with an agent at a url; return the states that the tasks ended in, as the client saw them."""
    seen: list[str] = []
    async with httpx.AsyncClient(timeout=20) as http:
        config = ClientConfig(streaming=streaming, supported_protocol_bindings=bindings, httpx_client=http)
        client = await ClientFactory(config).create_from_url(url)
        for text in ("hello", "chunks", "fail"):
            events = await send(client, text)
            seen.append(f"{text} {len(events)}")
        task = (await send(client, "ask me"))[0].task
        got = await client.get_task(GetTaskRequest(id=task.id, history_length=2))
        seen.append(f"asked {got.status.state}")
        events = await send(client, "this one", task_id=task.id, context_id=task.context_id)
        seen.append(f"answered {len(events)}")
        parked = (await send(client, "ask again"))[0].task
        await client.cancel_task(CancelTaskRequest(id=parked.id))
        seen.append(f"canceled {(await client.get_task(GetTaskRequest(id=parked.id))).status.state}")
        running = (await send(client, "ask once more"))[0].task
        if streaming:
            async for _ in client.subscribe(SubscribeToTaskRequest(id=running.id)):
                break
        await _push(client, running.id)
        await client.cancel_task(CancelTaskRequest(id=running.id))
        if version == "1.0":
            listed = await client.list_tasks(ListTasksRequest())
            seen.append(f"listed {len(listed.tasks) >= 6}")
            with contextlib.suppress(A2AError):
                card = await client.get_extended_agent_card(GetExtendedAgentCardRequest())
                seen.append(f"extended {card.name}")
    return seen


async def _push(client: Client, task_id: str) -> None:
    """Ask for pushes; an agent without them says so, which is honest too."""
    config = TaskPushNotificationConfig(
        id="p1",
        task_id=task_id,
        url="http://127.0.0.1:9/hook",
        token="a-token-for-pushes",  # noqa: S106 - made up
    )
    with contextlib.suppress(A2AError):
        await client.create_task_push_notification_config(config)
        await client.get_task_push_notification_config(GetTaskPushNotificationConfigRequest(task_id=task_id, id="p1"))
        await client.list_task_push_notification_configs(ListTaskPushNotificationConfigsRequest(task_id=task_id))
        await client.delete_task_push_notification_config(
            DeleteTaskPushNotificationConfigRequest(task_id=task_id, id="p1")
        )
