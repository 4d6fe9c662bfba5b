"""One request as an ASGI server hands it on: read whole before anything is done with it, and given on as it came."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, MutableMapping

    from a2a_ledger.capture.server.spool import Spool

    Scope = MutableMapping[str, Any]
    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]

_PORTS = {"http": 80, "https": 443}
GONE = "http.disconnect"
WHOLE_SERVER = b"*"
"""The target of a request about the server as such: it has no path."""

_ABSOLUTE = re.compile(rb"https?://[^/?#]+", re.IGNORECASE)


class Incoming:
    """A request: its head from the scope, its body once `read` was awaited."""

    def __init__(self, scope: Scope, receive: Receive, spool: Spool) -> None:
        """Take over a request whose body nobody has read."""
        self.method: str = scope["method"]
        self.raw_headers: list[tuple[bytes, bytes]] = list(scope["headers"])
        self.target, origin = _target(scope)
        path = "" if self.target == WHOLE_SERVER else self.target.decode("latin-1")
        self.url = f"{origin or _origin(scope, self.raw_headers)}{path}"
        self.body = spool
        self.client_left = False
        self._receive = receive
        self._replay: Iterator[bytes] | None = None
        self._replayed = False

    @property
    def headers(self) -> list[tuple[str, str]]:
        """Return the headers as text: header octets are read as ISO 8859-1."""
        return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in self.raw_headers]

    async def read(self) -> bool:
        """Read the body; False: the client left before all of it had come."""
        while True:
            message = await self._receive()
            if message["type"] == GONE:
                self.client_left = True
                return False
            self.body.add(message.get("body", b""))
            if not message.get("more_body", False):
                return True

    async def receive(self) -> Message:
        """Hand the body on to the application, then whatever the server says next: that the client left."""
        if not self._replayed:
            self._replay = self._replay or self.body.chunks()
            chunk = next(self._replay, None)
            if chunk is not None and self.body.tail is not None:
                return {"type": "http.request", "body": chunk, "more_body": True}
            self._replayed = True
            return {"type": "http.request", "body": chunk or b"", "more_body": False}
        message = await self._receive()
        self.client_left = self.client_left or message["type"] == GONE
        return message

    async def left(self) -> None:
        """Return when the client has gone."""
        while not self.client_left:
            self.client_left = (await self._receive())["type"] == GONE

    async def has_left(self) -> bool:
        """Say whether the client has gone by now, without waiting for it."""
        if not self.client_left:
            waiting = asyncio.ensure_future(self.left())
            await asyncio.sleep(0)
            if not waiting.done():
                waiting.cancel()
        return self.client_left


def _target(scope: Scope) -> tuple[bytes, str | None]:
    """Return path and query as they were asked, and scheme and authority where the target itself names them.

    A target may be a whole url, whose authority counts then and not the Host header, or the one asterisk of a question
    about the server as such (RFC 9112 sections 3.2.2 and 3.2.4).
    """
    path: bytes = scope.get("raw_path") or str(scope["path"]).encode()
    query: bytes = scope.get("query_string", b"")
    named = _ABSOLUTE.match(path)
    if named is None:
        return path + b"?" + query if query else path, None
    rest = path[named.end() :] or (b"*" if scope["method"] == "OPTIONS" and not query else b"/")
    return rest + b"?" + query if query else rest, named[0].decode("latin-1")


def _origin(scope: Scope, headers: list[tuple[bytes, bytes]]) -> str:
    """Return scheme and authority that were asked: the Host header, else where the server listens."""
    scheme = str(scope.get("scheme", "http"))
    host = next((value.decode("latin-1") for name, value in headers if name.lower() == b"host"), "")
    if not host:
        name, port = scope.get("server") or ("localhost", None)
        host = name if port in {None, _PORTS.get(scheme)} else f"{name}:{port}"
    return f"{scheme}://{host}"
