"""A peer behind the proxy that answers as a test says, octet for octet; and what a client sees of it, as octets."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

import httpx

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from a2a_ledger.capture.server.incoming import Receive, Scope, Send

    Answer = Callable[["Came", "Send", "Receive"], Awaitable[None]]


class Came(NamedTuple):
    """A request as it came to the peer."""

    method: str
    target: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes


class Peer:
    """An ASGI application: keeps what came, answers as `answer` does."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.came: list[Came] = []
        self.left = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body", False):
                break
        query: bytes = scope["query_string"]
        target = scope["raw_path"] + (b"?" + query if query else b"")
        self.came.append(Came(scope["method"], target, list(scope["headers"]), body))
        await self.answer(self.came[-1], send, receive)


async def start(send: Send, status: int = 200, *headers: tuple[bytes, bytes]) -> None:
    """Send the head of an answer."""
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})


async def say(send: Send, body: bytes, *, more: bool = False) -> None:
    """Send octets of an answer's body."""
    await send({"type": "http.response.body", "body": body, "more_body": more})


def answering(status: int, body: bytes, *headers: tuple[bytes, bytes]) -> Answer:
    """Return an answer that is always the same."""

    async def _answer(_: Came, send: Send, __: Receive) -> None:
        await start(send, status, *headers, (b"content-length", str(len(body)).encode()))
        await say(send, body)

    return _answer


async def raw(port: int, octets: bytes) -> bytes:
    """Send octets on a connection of their own and return everything that comes back."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(octets)
    got = await reader.read()
    writer.close()
    await writer.wait_closed()
    return got


async def get(url: str, **headers: str) -> httpx.Response:
    """Ask with a client that adds nothing of its own."""
    async with httpx.AsyncClient(trust_env=False) as http:
        return await http.get(url, headers=headers)
