"""The guard under a synchronous `httpx.Client`: the asynchronous transport, run on a thread of its own.

Decisions, captures and records are made by the same code; a request of any thread waits for it there.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast
from weakref import ref

import httpx

from a2a_ledger.capture.loop_thread import on_own_thread
from a2a_ledger.capture.route import as_read, pairs
from a2a_ledger.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from httpx._client import UseClientDefault

    from a2a_ledger.capture.loop_thread import LoopThread
    from a2a_ledger.capture.transport import GuardTransport

_CLOSED = "the guard or the response was closed before all of the answer had come"


class SyncGuardTransport(httpx.BaseTransport):
    """Records and guards what passes through it, see `GuardTransport`."""

    def __init__(self, guarded: GuardTransport, thread: LoopThread) -> None:
        self._guarded = guarded
        self._thread = thread
        self._client: ClientOnThread | None = None
        self._closed = False

    def serve(self, client: httpx.Client) -> None:
        """Take note of the client above: a card is asked for again as that client would ask for it."""
        self._client = ClientOnThread(client)
        self._guarded.client = ref(cast("httpx.AsyncClient", self._client))

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request, recorded.

        Raises:
            CaptureError: the guard stopped it; nothing was sent.
            httpx.HTTPError: as the transport below raised it, recorded; ReadError too where the guard was closed
                meanwhile.
            UsageError: the guard was closed before, or this process was forked since the client was used.
        """
        asked = httpx.Request(
            request.method,
            request.url,
            headers=request.headers.raw,
            stream=httpx.ByteStream(request.read()),
            extensions=request.extensions,
        )
        try:
            return self._thread.run(self._answer(asked))
        except asyncio.CancelledError:  # nothing that a caller without an event loop expects
            raise httpx.ReadError(_CLOSED) from None
        finally:
            request.extensions = asked.extensions  # a redirect is followed with what was noted there

    async def _answer(self, asked: httpx.Request) -> httpx.Response:
        response = await self._guarded.handle_async_request(asked)
        stream = response.stream
        return httpx.Response(
            response.status_code,
            headers=response.headers.raw,
            stream=stream
            if isinstance(stream, httpx.ByteStream)  # whole, and here
            else _SyncStream(cast("httpx.AsyncByteStream", stream), self._thread),
            extensions=response.extensions,
        )

    def close(self) -> None:
        """Close the transport below, once; not in a forked child, where its connections are the parent's."""
        if not self._closed:
            self._closed = True
            self._thread.finish(self._guarded.aclose())


class _SyncStream(httpx.SyncByteStream):
    """A body that comes on the thread, piece by piece as it is asked for."""

    def __init__(self, stream: httpx.AsyncByteStream, thread: LoopThread) -> None:
        """Take over a body that nobody has read; on the thread, which closes it if nobody else does."""
        self._stream: httpx.AsyncByteStream | None = stream
        self._pieces = aiter(stream)
        self._thread = thread
        self._reading: asyncio.Task[Any] | None = None
        self._gone = False
        thread.hold(self)

    def __iter__(self) -> Iterator[bytes]:
        while (piece := self._piece()) is not None:
            yield piece

    def close(self) -> None:
        self._thread.finish(self.let_go())

    async def let_go(self) -> None:
        """Close the body, and stop whoever waits for a piece of it."""
        self._gone = True
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])
        stream, self._stream = self._stream, None
        if stream is not None:
            await stream.aclose()

    def _piece(self) -> bytes | None:
        """Return the next piece; None: that was all."""
        try:
            return self._thread.run(self._next())
        except asyncio.CancelledError:
            raise httpx.ReadError(_CLOSED) from None
        except UsageError:
            if self._thread.left_behind:
                raise
            raise httpx.ReadError(_CLOSED) from None

    async def _next(self) -> bytes | None:
        if self._gone:  # what was cut off is not the end
            raise httpx.ReadError(_CLOSED)
        self._reading = asyncio.current_task()
        try:
            return await anext(self._pieces, None)
        finally:
            self._reading = None


class ClientOnThread:
    """A synchronous client as the guard asks with it: the part of `httpx.AsyncClient` that `Route` uses."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = ref(client)

    def __getattr__(self, name: str) -> object:
        """Return headers, cookies and so on as the client has them now."""
        return getattr(self._alive(), name)

    @property
    def is_closed(self) -> bool:
        """Say whether nothing can be asked with it any more."""
        client = self._client()
        return client is None or client.is_closed

    async def send(
        self,
        request: httpx.Request,
        *,
        follow_redirects: bool | None = None,
        auth: httpx.Auth | UseClientDefault | None = httpx.USE_CLIENT_DEFAULT,
    ) -> httpx.Response:
        """Send a request as the client would, and read its answer whole."""
        client = self._alive()
        follow = client.follow_redirects if follow_redirects is None else follow_redirects
        answer = await on_own_thread(lambda: client.send(request, follow_redirects=follow, auth=auth))
        headers = as_read(pairs(answer.headers))
        whole = httpx.Response(answer.status_code, headers=headers, content=answer.content, request=answer.request)
        whole.history = list(answer.history)
        return whole

    def _alive(self) -> httpx.Client:
        client = self._client()
        if client is None:
            raise httpx.TransportError("the httpx client that asked for this card is gone")
        return client
