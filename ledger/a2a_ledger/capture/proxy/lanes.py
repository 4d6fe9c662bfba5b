"""Connections to the agent, one request on each at a time.

An httpx transport looks at every connection of its pool for every request, so that 32 requests at once cost it more
than all of their octets. Here each has one connection, and who needs one takes one that is free.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

_IDLE = 64
"""Connections that are kept open at most while nothing passes."""

_ONE = httpx.Limits(max_connections=1, max_keepalive_connections=1)


class Lanes(httpx.AsyncBaseTransport):
    """As many connections as there are requests at once."""

    def __init__(self) -> None:
        self._trust = httpx.create_ssl_context(trust_env=False)
        self._free: list[httpx.AsyncHTTPTransport] = []
        self._closed = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request on a connection of its own."""
        lane = self._free.pop() if self._free else httpx.AsyncHTTPTransport(verify=self._trust, limits=_ONE)
        try:
            response = await lane.handle_async_request(request)
        except BaseException:
            await lane.aclose()
            raise
        stream = response.stream
        if not isinstance(stream, httpx.AsyncByteStream):
            raise TypeError("expected a stream that can be awaited")
        response.stream = _OnLane(stream, lane, self._back)
        return response

    async def _back(self, lane: httpx.AsyncHTTPTransport) -> None:
        if self._closed or len(self._free) >= _IDLE:
            await lane.aclose()
        else:
            self._free.append(lane)

    async def aclose(self) -> None:
        """Close the connections that are free now, and the others once they are."""
        self._closed = True
        while self._free:
            await self._free.pop().aclose()


class _OnLane(httpx.AsyncByteStream):
    """The body of an answer; its connection is free once it is closed."""

    def __init__(
        self,
        stream: httpx.AsyncByteStream,
        lane: httpx.AsyncHTTPTransport,
        back: Callable[[httpx.AsyncHTTPTransport], Awaitable[None]],
    ) -> None:
        self._stream = stream
        self._lane = lane
        self._back = back
        self._closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            yield chunk

    async def aclose(self) -> None:
        """Close the body, and give its connection back."""
        if self._closed:
            return
        self._closed = True
        try:
            await self._stream.aclose()
        finally:
            await self._back(self._lane)
