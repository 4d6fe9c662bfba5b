"""A peer that answers as a test says, octet for octet and header for header: what no well-built agent would send."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

ORIGIN = "https://vendor.example"
CARD_URL = f"{ORIGIN}/.well-known/agent-card.json"
URL = f"{ORIGIN}/rpc"


def card(**members: object) -> dict[str, Any]:
    """Return a 1.0 card with one JSON-RPC interface."""
    return {
        "name": "Vendor",
        "description": "Makes reports",
        "version": "1",
        "capabilities": {"streaming": True},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": list[Any](),
        "supportedInterfaces": [{"url": URL, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        **members,
    }


def with_key(location: str, name: str, scheme: str = "k") -> dict[str, Any]:
    """Return a card that asks for an API key at one place."""
    return card(
        securitySchemes={scheme: {"apiKeySecurityScheme": {"location": location, "name": name}}},
        securityRequirements=[{"schemes": {scheme: {"list": list[str]()}}}],
    )


def message(message_id: str) -> dict[str, Any]:
    """Return a JSON-RPC send."""
    sent = {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": "the report, please"}]}
    return {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": sent}}


def said(text: str) -> dict[str, Any]:
    """Return the answer that is a plain message."""
    answer = {"messageId": "r1", "role": "ROLE_AGENT", "parts": [{"text": text}]}
    return {"jsonrpc": "2.0", "id": 1, "result": {"message": answer}}


def event(state: str, **members: object) -> bytes:
    """Return one event of a stream: a Task in a state."""
    task = {"id": "T1", "contextId": "C1", "status": {"state": f"TASK_STATE_{state}"}, **members}
    return b"data: " + json.dumps({"jsonrpc": "2.0", "id": "1", "result": {"task": task}}).encode() + b"\n\n"


class Chunks(httpx.AsyncByteStream):
    """A body that comes in pieces; an exception among them is raised in its place."""

    def __init__(self, *pieces: bytes | Exception) -> None:
        self.pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece


class Peer(httpx.AsyncBaseTransport):
    """Serves a card, and answers every other request as `answer` says."""

    def __init__(self, served: Mapping[str, object], answer: Callable[[httpx.Request], httpx.Response]) -> None:
        self.served = served
        self.answer = answer
        self.asked: list[httpx.Request] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        if request.method == "GET" and str(request.url) == CARD_URL:
            return httpx.Response(200, json=self.served)
        return self.answer(request)


class Tagged(Peer):
    """Serves its card with a validator, and answers 304 to who has it: a send asks such a peer again."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answer = await super().handle_async_request(request)
        if request.method == "GET" and str(request.url) == CARD_URL:
            tag = {"etag": f'"{hash(answer.content)}"'}
            if request.headers.get("if-none-match") == tag["etag"]:
                return httpx.Response(304, headers=tag)
            answer.headers.update(tag)
        return answer
