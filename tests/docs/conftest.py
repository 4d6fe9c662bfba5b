"""A real a2a-sdk agent on loopback, for snippets that talk to one."""

from __future__ import annotations

import socket
import threading
import time
from typing import TYPE_CHECKING

import pytest
import uvicorn
from a2a.helpers import new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from starlette.applications import Starlette

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a.server.events import EventQueue


class Reporter(AgentExecutor):
    """Answers each message with a completed task."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        message = context.message
        assert message is not None
        task = context.current_task or new_task_from_user_message(message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.add_artifact([new_text_part("report ready")], name="report")
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise NotImplementedError("no snippet cancels")


@pytest.fixture(scope="session")
def agent_url() -> Iterator[str]:
    """Serve the agent and return its base URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    base = f"http://127.0.0.1:{port}"
    card = AgentCard(
        name="Reporter",
        description="Writes reports",
        version="1.0.0",
        supported_interfaces=[AgentInterface(url=f"{base}/rpc", protocol_binding="JSONRPC", protocol_version="1.0")],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="report", name="report", description="a report", tags=["report"])],
    )
    handler = DefaultRequestHandler(agent_executor=Reporter(), task_store=InMemoryTaskStore(), agent_card=card)
    app = Starlette(
        routes=[
            *create_agent_card_routes(card, cache_control="public, max-age=60"),
            *create_jsonrpc_routes(handler, rpc_url="/rpc"),
        ]
    )
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 10
    while not server.started:
        assert time.monotonic() < deadline, "the agent did not start"
        time.sleep(0.01)
    yield base
    server.should_exit = True
    thread.join(5)
