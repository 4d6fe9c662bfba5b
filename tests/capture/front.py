"""Something in front of the real agent that answers some requests in its stead: a card of its own, a proxy's error."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Receive, Scope, Send

    from tests.capture.agent import Agent

JSON = ("content-type", "application/json")
WELL_KNOWN = "/.well-known/agent-card.json"
BEARER: dict[str, Any] = {
    "securitySchemes": {"b": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}},
    "securityRequirements": [{"schemes": {"b": {"list": []}}}],
}


@dataclass(frozen=True)
class Asked:
    """One request as it came over the wire."""

    method: str
    path: str
    query: str
    headers: dict[str, str]


@dataclass(frozen=True)
class Reply:
    """An answer in the agent's stead."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


@dataclass
class Front:
    """Answers what `answer` has an answer for; all else goes to the agent."""

    app: ASGIApp
    answer: Callable[[Asked], Reply | None]
    asked: list[Asked] = field(default_factory=list[Asked])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        asked = Asked(scope["method"], scope["path"], scope["query_string"].decode(), headers)
        reply = self.answer(asked)
        self.asked.append(asked)
        if reply is None:
            await self.app(scope, receive, send)
            return
        raw = [(name.encode(), value.encode("latin-1")) for name, value in reply.headers]
        await send({"type": "http.response.start", "status": reply.status, "headers": raw})
        await send({"type": "http.response.body", "body": reply.body})

    def cards(self) -> list[Asked]:
        """Return the GETs that came."""
        return [asked for asked in self.asked if asked.method == "GET"]


def in_front(agent: Agent, answer: Callable[[Asked], Reply | None]) -> Front:
    """Put an answerer in front of a running agent."""
    front = Front(agent.wire.app, answer)
    agent.wire.app = front
    return front


async def card_of(agent: Agent) -> dict[str, Any]:
    """Return the agent's card as it serves it now."""
    async with httpx.AsyncClient() as plain:
        found: dict[str, Any] = (await plain.get(agent.url + WELL_KNOWN)).json()
    return found


def served(card: dict[str, Any], *headers: tuple[str, str], status: int = 200) -> Reply:
    """Return an answer that serves a card."""
    return Reply(status, (JSON, *headers), json.dumps(card).encode())
