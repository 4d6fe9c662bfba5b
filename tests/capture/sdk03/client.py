"""A guarded client of a2a-sdk 0.3, run in an environment of its own with url, directory and binding.

It calls every method that the SDK's client has, as a well-behaved application would, and prints what it saw as JSON.
"""

# ruff: noqa: ANN401, T201 - the SDK's types are not those of the environment that checks, and the result is printed
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportCallIssue=false
# mypy: ignore-errors

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from importlib.metadata import version
from typing import Any
from uuid import uuid4

from a2a.client import ClientConfig
from a2a.client.errors import A2AClientError
from a2a.types import (
    GetTaskPushNotificationConfigParams,
    Message,
    PushNotificationAuthenticationInfo,
    PushNotificationConfig,
    Role,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
    TextPart,
)

from a2a_ledger import ContractLedger, guard


def message(text: str, **ids: Any) -> Message:
    """Return a message of the user."""
    return Message(message_id=str(uuid4()), role=Role.user, parts=[TextPart(text=text)], **ids)


async def send(client: Any, text: str, **ids: Any) -> Any:
    """Send a text and return the task that it opened or went on with."""
    task = None
    async for event in client.send_message(message(text, **ids)):
        task = event[0]
    return task


async def converse(client: Any, *, streaming: bool) -> list[str]:
    """Call every method; return the states that the tasks ended in."""
    states = [(await send(client, text)).status.state.value for text in ("hello", "chunks", "fail")]
    asked = await send(client, "ask me")
    await client.get_task(TaskQueryParams(id=asked.id, history_length=2))
    states.append((await send(client, "this one", task_id=asked.id, context_id=asked.context_id)).status.state.value)
    parked = await send(client, "ask again")
    hook = PushNotificationConfig(
        id="h1",
        url="https://client.example/hook",
        token="hook-token-1f9c",  # noqa: S106 - made up
        authentication=PushNotificationAuthenticationInfo(schemes=["Bearer"], credentials="hook-credential-77"),
    )
    with suppress(NotImplementedError):
        await client.set_task_callback(TaskPushNotificationConfig(task_id=parked.id, push_notification_config=hook))
        await client.get_task_callback(
            GetTaskPushNotificationConfigParams(id=parked.id, push_notification_config_id="h1")
        )
    if streaming:
        with suppress(A2AClientError):  # an agent of 0.3 has forgotten the stream of a task that waits
            async for _ in client.resubscribe(TaskIdParams(id=parked.id)):
                break
    states.append((await client.cancel_task(TaskIdParams(id=parked.id))).status.state.value)
    with suppress(A2AClientError):
        await client.get_task(TaskQueryParams(id="nobody"))
    return states


async def main(url: str, directory: str, binding: str) -> None:
    """Converse with an agent, guarded."""
    config = ClientConfig(streaming=True, supported_transports=[binding])
    with ContractLedger.open(
        f"{directory}/audit", mark_dir=f"{directory}/mark", follow=False, mode="enforce"
    ) as ledger:
        async with guard(ledger) as guarded:
            client = await guarded.create_client(url, config=config)
            states = await converse(client, streaming=True)
            print(json.dumps({"sdk": version("a2a-sdk"), "states": states, "versions": guarded.desk.client_versions}))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
