"""A real a2a-sdk 1.3 agent on loopback, whose card the test may change while it serves."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from typing import TYPE_CHECKING, Any, Self

# Where a2a.server.routes is imported before it, a client of SDK 1.3 speaks 1.0 over gRPC to an agent of 0.3.
import a2a.client  # noqa: F401 - see above # pyright: ignore[reportUnusedImport]
import uvicorn
from a2a.helpers import new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentExtension,
    AgentInterface,
    AgentSkill,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)
from google.protobuf.json_format import MessageToDict
from starlette.applications import Starlette

from a2a_ledger.wire import EXTENSION

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a.server.context import ServerCallContext
    from a2a.server.events import EventQueue
    from a2a.server.tasks import PushNotificationConfigStore, PushNotificationSender, TaskStore
    from starlette.types import ASGIApp, Receive, Scope, Send


class Worker(AgentExecutor):
    """Does what the message's first word says: echo, ask, chunks, slow, fail, plain."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        text = context.get_user_input()
        message = context.message
        assert message is not None
        task = context.current_task
        if task is None:
            task = new_task_from_user_message(message)
            if EXTENSION in message.metadata:
                pin = MessageToDict(message.metadata)[EXTENSION]
                task.metadata.update({EXTENSION: pin})
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        word = text.split(" ")[0]
        if word == "ask":
            await updater.requires_input(updater.new_agent_message([new_text_part("which one?")]))
            return
        if word == "slow":
            await asyncio.sleep(0.3)
        if word == "chunks":
            for i in range(5):
                await updater.add_artifact(
                    [new_text_part(f"part {i}")], artifact_id="a", name="parts", append=i > 0, last_chunk=i == 4
                )
        if word == "wait":
            await asyncio.sleep(30)
        if word == "fail":
            await updater.failed(updater.new_agent_message([new_text_part("no")]))
            return
        await updater.add_artifact([new_text_part(f"echo: {text}")], name="echo")
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.task_id is not None
        assert context.context_id is not None
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


class Wire:
    """ASGI middleware that counts what really came over the wire, and may answer in the agent's stead."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        self.refuse_with: int | None = None
        self.on_post: Callable[[], None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = {k.decode(): v.decode("latin-1") for k, v in scope["headers"]}
            self.seen.append((scope["method"], scope["path"], headers))
            if self.on_post is not None and scope["method"] == "POST":
                self.on_post()
            if self.refuse_with is not None and scope["method"] == "POST":
                await send(
                    {
                        "type": "http.response.start",
                        "status": self.refuse_with,
                        "headers": [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")],
                    }
                )
                await send({"type": "http.response.body", "body": b"no"})
                return
        await self.app(scope, receive, send)


class Agent:
    """The running agent: its url, its card and what came over its wire."""

    def __init__(
        self,
        *,
        versions: tuple[str, ...] = ("1.0", "0.3"),
        cache_control: str | None = None,
        extended: bool = False,
        tasks: Callable[[str], TaskStore] | None = None,
        pushes: Callable[[str], tuple[PushNotificationConfigStore, PushNotificationSender]] | None = None,
    ) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.card = AgentCard(
            name="Echo",
            description="Says it back",
            version="1.0.0",
            supported_interfaces=[interface for version in versions for interface in _interfaces(self.url, version)],
            capabilities=AgentCapabilities(
                streaming=True,
                extensions=[AgentExtension(uri=EXTENSION, description="frozen contract", required=False)],
            ),
            default_input_modes=["text/plain"],
            default_output_modes=["text/plain"],
            skills=[AgentSkill(id="echo", name="echo", description="echo", tags=["echo"])],
        )
        self.extended = AgentCard()
        self.for_caller: Callable[[AgentCard, str], AgentCard] = lambda card, _: card
        if extended:
            self.card.capabilities.extended_agent_card = True
            self.extended.CopyFrom(self.card)
            self.extended.description = "for those who may know"
            self.extended.skills.append(AgentSkill(id="more", name="more", description="more", tags=["more"]))
        configs, sender = pushes(self.url) if pushes is not None else (None, None)
        if sender is not None:
            self.card.capabilities.push_notifications = True
        handler = DefaultRequestHandler(
            agent_executor=Worker(),
            task_store=tasks(self.url) if tasks is not None else InMemoryTaskStore(),
            push_config_store=configs,
            push_sender=sender,
            agent_card=self.card,
            extended_agent_card=self.extended if extended else None,
            extended_card_modifier=self.extended_for if extended else None,
        )
        routes: list[Any] = [
            *create_agent_card_routes(self.card, cache_control=cache_control),
            *create_jsonrpc_routes(handler, rpc_url="/rpc", enable_v0_3_compat=True),
            *create_rest_routes(handler, path_prefix="/rest", enable_v0_3_compat=True),
        ]
        self.wire = Wire(Starlette(routes=routes))
        self._server = uvicorn.Server(
            uvicorn.Config(self.wire, host="127.0.0.1", port=self.port, log_level="error", lifespan="off")
        )
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        while not self._server.started:
            time.sleep(0.005)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join(5)

    async def extended_for(self, card: AgentCard, context: ServerCallContext) -> AgentCard:
        """Return the extended card for whoever asks, by what is in his Authorization header."""
        return self.for_caller(card, context.state["headers"].get("authorization", ""))

    def require_oauth(self, scope: str = "work", *, card: AgentCard | None = None) -> None:
        """Tighten a card, default the public one: OAuth2 client credentials with one scope."""
        card = self.card if card is None else card
        card.security_schemes["oauth"].CopyFrom(
            SecurityScheme(
                oauth2_security_scheme={
                    "flows": {"client_credentials": {"token_url": "https://auth.example/token", "scopes": {scope: "x"}}}
                }
            )
        )
        card.security_requirements.append(SecurityRequirement(schemes={"oauth": StringList(list=[scope])}))

    @property
    def gets(self) -> int:
        """Return how many card GETs came."""
        return sum(1 for method, path, _ in self.wire.seen if method == "GET" and "agent-card" in path)

    @property
    def posts(self) -> int:
        """Return how many POSTs came."""
        return sum(1 for method, _, _ in self.wire.seen if method == "POST")


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _interfaces(url: str, version: str) -> list[AgentInterface]:
    found = [AgentInterface(url=f"{url}/rpc", protocol_binding="JSONRPC", protocol_version=version)]
    if version == "1.0":
        found.append(AgentInterface(url=f"{url}/rest", protocol_binding="HTTP+JSON", protocol_version=version))
    return found
