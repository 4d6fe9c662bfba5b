"""The agent that the guard is measured against: a real a2a-sdk server in a process of its own.

    python -m a2a_ledger.cli.bench.agent

Prints its base URL. Every message becomes a completed task; one that begins with `slow` takes 50 ms.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import TYPE_CHECKING

import uvicorn
from a2a.helpers import new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from starlette.applications import Starlette

if TYPE_CHECKING:
    from a2a.server.events import EventQueue

SLOW = "slow"
SLOW_SECONDS = 0.05


class Worker(AgentExecutor):
    """Completes each task at once, or after 50 ms."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Work on one task."""
        if context.message is None:
            return
        task = context.current_task or new_task_from_user_message(context.message)
        await event_queue.enqueue_event(task)
        if context.get_user_input().startswith(SLOW):
            await asyncio.sleep(SLOW_SECONDS)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.add_artifact([new_text_part("the report")], name="report")
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Cancel one task."""
        if context.task_id and context.context_id:
            await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def _serve() -> None:
    # With its protocol named: of a socket without one asyncio does not switch Nagle's algorithm off, and each
    # answer, which is written in two pieces, would wait 40 ms for the client's delayed acknowledgement.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    card = AgentCard(
        name="Report writer",
        description="Writes reports",
        version="1.0.0",
        supported_interfaces=[AgentInterface(url=f"{url}/rpc", protocol_binding="JSONRPC", protocol_version="1.0")],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="report", name="report", description="a report", tags=["report"])],
    )
    handler = DefaultRequestHandler(agent_executor=Worker(), task_store=InMemoryTaskStore(), agent_card=card)
    routes = [*create_agent_card_routes(card), *create_jsonrpc_routes(handler, rpc_url="/rpc")]
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_level="error", lifespan="off"))
    sys.stdout.write(f"{url}\n")
    sys.stdout.flush()
    server.run(sockets=[listener])


if __name__ == "__main__":
    _serve()
