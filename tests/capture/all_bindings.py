"""A real a2a-sdk 1.3 agent on loopback that speaks every binding, in A2A 1.0 and, by the SDK's compatibility, 0.3."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, Self

import grpc.aio
import uvicorn
from a2a.compat.v0_3 import a2a_v0_3_pb2_grpc
from a2a.compat.v0_3.grpc_handler import CompatGrpcHandler
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.request_handlers.grpc_handler import GrpcHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryPushNotificationConfigStore, InMemoryTaskStore
from a2a.types import AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentSkill, a2a_pb2_grpc
from starlette.applications import Starlette

from a2a_ledger.wire import EXTENSION
from tests.capture.agent import Worker, free_port

if TYPE_CHECKING:
    from collections.abc import Sequence

BINDINGS = ("JSONRPC", "HTTP+JSON", "GRPC")


class EveryBinding:
    """The running agent. Its card lists one binding in one version, so that a client uses that and nothing else."""

    def __init__(
        self, binding: str, version: str = "1.0", *, interceptors: Sequence[grpc.aio.ServerInterceptor] = ()
    ) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.binding, self.version = binding, version
        self.metadata: list[tuple[str, str | bytes]] = []
        """Of the newest gRPC call."""
        self.card = AgentCard(
            name="Echo",
            description="Says it back",
            version="1.0.0",
            capabilities=AgentCapabilities(
                streaming=True,
                push_notifications=True,
                extended_agent_card=True,
                extensions=[AgentExtension(uri=EXTENSION, description="frozen contract", required=False)],
            ),
            default_input_modes=["text/plain"],
            default_output_modes=["text/plain"],
            skills=[AgentSkill(id="echo", name="echo", description="echo", tags=["echo"])],
        )
        self._interceptors = interceptors
        self._started = threading.Event()
        self._stop: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        rpc = grpc.aio.server(interceptors=self._interceptors)
        port = rpc.add_insecure_port("127.0.0.1:0")
        place = {"JSONRPC": f"{self.url}/rpc", "HTTP+JSON": f"{self.url}/rest", "GRPC": f"127.0.0.1:{port}"}
        self.target = place[self.binding]
        self.card.supported_interfaces.append(
            AgentInterface(url=self.target, protocol_binding=self.binding, protocol_version=self.version)
        )
        extended = AgentCard()
        extended.CopyFrom(self.card)
        handler = DefaultRequestHandler(
            agent_executor=Worker(),
            task_store=InMemoryTaskStore(),
            agent_card=self.card,
            extended_agent_card=extended,
            push_config_store=InMemoryPushNotificationConfigStore(),
        )
        adders: list[Any] = [a2a_pb2_grpc, a2a_v0_3_pb2_grpc]  # generated, without types
        for module, servicer in zip(adders, (GrpcHandler(handler), CompatGrpcHandler(handler)), strict=True):
            module.add_A2AServiceServicer_to_server(servicer, rpc)
        routes: list[Any] = [
            *create_agent_card_routes(self.card),
            *create_jsonrpc_routes(handler, rpc_url="/rpc", enable_v0_3_compat=True),
            *create_rest_routes(handler, path_prefix="/rest", enable_v0_3_compat=True),
        ]
        config = uvicorn.Config(
            Starlette(routes=routes), host="127.0.0.1", port=self.port, log_level="error", lifespan="off"
        )
        http = uvicorn.Server(config)
        await rpc.start()
        serving = asyncio.create_task(http._serve())  # pyright: ignore[reportPrivateUsage] - serve() takes the signals of the main thread
        while not http.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.005)
        self._started.set()
        await self._stop.wait()
        http.should_exit = http.force_exit = True
        await rpc.stop(0)
        await serving

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop is not None
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(5)
