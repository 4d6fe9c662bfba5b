"""The demo's agents: real a2a-sdk servers in processes of their own, whose cards really rotate.

    python -m a2a_ledger.cli.demo.agents KIND COUNT DIR

One line of JSON on stdout for each of COUNT agents says where it is; `POST /demo/<step>` moves its
story on. DIR holds the certificates of the agent that speaks TLS.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn
from a2a.helpers import new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route

from a2a_ledger.cli.demo.tls import TlsFront

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a.server.events import EventQueue
    from starlette.requests import Request
    from starlette.responses import Response

CHUNKS = 5
CHUNK_SECONDS = 0.15
_A_DAY = "public, max-age=86400"


class Worker(AgentExecutor):
    """Writes a report in five parts; the story of its kind may stop it on the way."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self.grace_is_over = asyncio.Event()
        self.nobody_cancels = asyncio.Event()

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Work on one task."""
        task = context.current_task
        if task is None:
            if context.message is None:
                return
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        if self._kind == "stuck":
            await self.grace_is_over.wait()
            text = "A client certificate (mutual TLS) is required to continue"
            await updater.requires_input(updater.new_agent_message([new_text_part(text)]))
            return
        for i in range(CHUNKS):
            await asyncio.sleep(CHUNK_SECONDS)
            if i == CHUNKS - 1 and self._kind == "false-cancel":
                await self.nobody_cancels.wait()  # a cancel at 80 % comes in time on the slowest machine
            await updater.add_artifact(
                [new_text_part(f"part {i + 1} of {CHUNKS}")],
                artifact_id="report",
                name="report",
                append=i > 0,
                last_chunk=i == CHUNKS - 1,
            )
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Cancel one task."""
        if context.task_id and context.context_id:
            await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def _card(url: str) -> AgentCard:
    return AgentCard(
        name="Report writer",
        description="Writes reports",
        version="1.0.0",
        supported_interfaces=[
            AgentInterface(url=f"{url}/rpc", protocol_binding="JSONRPC", protocol_version="1.0"),
        ],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="report", name="report", description="a report", tags=["report"])],
    )


def _oauth() -> SecurityScheme:
    flow = {"token_url": "https://auth.example/token", "scopes": {"report": "write reports"}}
    return SecurityScheme(oauth2_security_scheme={"flows": {"client_credentials": flow}})


def _requires(name: str) -> SecurityRequirement:
    return SecurityRequirement(schemes={name: StringList()})


def _story(kind: str, card: AgentCard) -> Callable[[], None]:
    """Give the card its first state and return its rotation."""
    skill = card.skills[0]

    def to_mutual_tls() -> None:
        card.security_schemes.pop("oauth")
        card.security_schemes["mtls"].CopyFrom(SecurityScheme(mtls_security_scheme={}))
        del card.security_requirements[:]
        card.security_requirements.append(_requires("mtls"))

    def to_a_sub_agent() -> None:
        skill.id, skill.name, skill.description = "route", "route", "hands work to sub-agents"

    def to_required() -> None:
        del skill.security_requirements[:]
        skill.security_requirements.append(_requires("oauth"))

    if kind == "false-cancel":
        return to_a_sub_agent
    card.security_schemes["oauth"].CopyFrom(_oauth())
    if kind == "stuck":
        card.security_requirements.append(_requires("oauth"))
        return to_mutual_tls
    skill.security_requirements.extend([SecurityRequirement(), _requires("oauth")])  # optional: anonymous or oauth
    return to_required


async def _serve(kind: str, folder: Path) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    inner_port: int = listener.getsockname()[1]
    front: TlsFront | None = None
    url = f"http://127.0.0.1:{inner_port}"
    if kind == "stuck":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "server.pem")
        context.load_verify_locations(folder / "ca.pem")
        front = TlsFront(context, inner_port)
        url = f"https://127.0.0.1:{front.port}"
    card = _card(url)
    rotate = _story(kind, card)
    worker = Worker(kind)

    def end_grace() -> None:
        if front is not None:
            front.demand_certificates()

    async def step(request: Request) -> Response:
        name = request.path_params["step"]
        if name == "rotate":
            rotate()
        elif name == "end-grace":
            worker.grace_is_over.set()
            asyncio.get_running_loop().call_later(CHUNK_SECONDS, end_grace)
        elif name == "finish":
            worker.nobody_cancels.set()
        return JSONResponse({"step": name})

    handler = DefaultRequestHandler(agent_executor=worker, task_store=InMemoryTaskStore(), agent_card=card)
    routes: list[BaseRoute] = [
        *create_agent_card_routes(card, cache_control=_A_DAY if kind == "silent-downgrade" else None),
        *create_jsonrpc_routes(handler, rpc_url="/rpc"),
        Route("/demo/{step}", step, methods=["POST"]),
    ]
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_level="error", lifespan="off"))
    if front is not None:
        front.start()
    sys.stdout.write(json.dumps({"url": url, "control": f"http://127.0.0.1:{inner_port}/demo"}) + "\n")
    sys.stdout.flush()
    await server.serve(sockets=[listener])


async def _main(kind: str, count: int, folder: Path) -> None:
    await asyncio.gather(*(_serve(kind, folder) for _ in range(count)))


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])))
