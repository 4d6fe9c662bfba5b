"""An agent of a2a-sdk 0.3, run in an environment of its own with its binding; it prints its url."""

# ruff: noqa: T201, TC002 - its url is printed, and it runs without anything that checks types
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportOptionalMemberAccess=false, reportArgumentType=false
# mypy: ignore-errors

from __future__ import annotations

import asyncio
import socket
import sys
from typing import Any

import uvicorn
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.apps import A2ARESTFastAPIApplication, A2AStarletteApplication
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryPushNotificationConfigStore, InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentSkill, Part, TextPart
from a2a.utils import new_task

EXTENSION = "https://w3id.org/a2a-ledger/ext/frozen-contract/v1"


class Worker(AgentExecutor):
    """Does what the message's first word says: echo, ask, chunks, fail."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Work on one message."""
        task = context.current_task
        if task is None:
            task = new_task(context.message)
            pin = (context.message.metadata or {}).get(EXTENSION)
            task.metadata = {EXTENSION: pin} if pin else None
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        word = context.get_user_input().split(" ")[0]
        if word == "ask":
            await updater.requires_input(updater.new_agent_message([_text("which one?")]), final=True)
        elif word == "fail":
            await updater.failed(updater.new_agent_message([_text("no")]))
        else:
            for number in range(5 if word == "chunks" else 1):
                await updater.add_artifact(
                    [_text(f"part {number}")], artifact_id="a", append=number > 0, last_chunk=number == 4
                )
            await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Cancel a task."""
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def _text(text: str) -> Part:
    return Part(root=TextPart(text=text))


def main(binding: str) -> None:
    """Serve until the process is ended."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    card = AgentCard(
        name="Echo",
        description="Says it back",
        version="1.0.0",
        url=url if binding == "HTTP+JSON" else f"{url}/",
        preferred_transport=binding,
        protocol_version="0.3.0",
        capabilities=AgentCapabilities(streaming=True, push_notifications=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="echo", name="echo", description="echo", tags=["echo"])],
    )
    handler = DefaultRequestHandler(
        Worker(), InMemoryTaskStore(), push_config_store=InMemoryPushNotificationConfigStore()
    )
    kinds: dict[str, Any] = {"JSONRPC": A2AStarletteApplication, "HTTP+JSON": A2ARESTFastAPIApplication}
    server = uvicorn.Server(
        uvicorn.Config(kinds[binding](card, handler).build(), host="127.0.0.1", port=port, log_level="error")
    )

    async def serve() -> None:
        running = asyncio.create_task(server.serve())
        while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)
        print(url, flush=True)
        await running

    asyncio.run(serve())


if __name__ == "__main__":
    main(sys.argv[1])
