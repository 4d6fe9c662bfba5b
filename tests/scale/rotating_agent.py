"""The agent of the soak: a real a2a-sdk server in a process of its own whose card never rests.

    python -m tests.scale.rotating_agent SECONDS

Prints its base URL. Every so many seconds the card gets another version, and with every third of these its security
scheme another name, so that its contract is one that it never was before.
"""

from __future__ import annotations

import asyncio
import socket
import sys

# Where a2a.server.routes is imported before it, a client of SDK 1.3 speaks 1.0 over gRPC to an agent of 0.3.
import a2a.client  # noqa: F401 - see above # pyright: ignore[reportUnusedImport]
import uvicorn
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, SecurityScheme
from starlette.applications import Starlette

from a2a_ledger.cli.bench.agent import Worker


async def _rotate(card: AgentCard, seconds: float) -> None:
    number = 0
    while True:
        await asyncio.sleep(seconds)
        number += 1
        card.version = f"1.0.{number}"
        if number % 3 == 0:
            card.security_schemes.clear()
            scheme = {"scheme": "bearer"}
            card.security_schemes[f"token-{number}"].CopyFrom(SecurityScheme(http_auth_security_scheme=scheme))


async def _serve(seconds: float) -> None:
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
    rotating = asyncio.create_task(_rotate(card, seconds))
    await server.serve(sockets=[listener])
    rotating.cancel()


if __name__ == "__main__":
    asyncio.run(_serve(float(sys.argv[1])))
