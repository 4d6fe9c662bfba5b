"""The guard under a synchronous `httpx.Client`: the asynchronous transport, run on a thread of its own.

Decisions, captures and records are made by the same code; a request of any thread waits for it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast
from weakref import ref

import httpx

from a2a_ledger.capture.loop_thread import on_own_thread
from a2a_ledger.capture.route import as_read, pairs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from httpx._client import UseClientDefault

    from a2a_ledger.capture.loop_thread import LoopThread
    from a2a_ledger.capture.transport import GuardTransport


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
            httpx.HTTPError: as the transport below raised it, recorded.
        """
        asked = httpx.Request(
            request.method,
            request.url,
            headers=request.headers.raw,
            stream=httpx.ByteStream(request.read()),
            extensions=request.extensions,
        )
        try:
            response = self._thread.run(self._guarded.handle_async_request(asked))
        finally:
            request.extensions = asked.extensions  # a redirect is followed with what was noted there
        return httpx.Response(
            response.status_code,
            headers=response.headers.raw,
            stream=_SyncStream(cast("httpx.AsyncByteStream", response.stream), self._thread),
            extensions=response.extensions,
        )

    def close(self) -> None:
        """Close the transport below, once; not in a forked child, where its connections are the parent's."""
        if not self._closed:
            self._closed = True
            if not self._thread.left_behind:
                self._thread.run(self._guarded.aclose())


class _SyncStream(httpx.SyncByteStream):
    """A body that comes on the thread, piece by piece as it is asked for."""

    def __init__(self, stream: httpx.AsyncByteStream, thread: LoopThread) -> None:
        self._stream = stream
        self._thread = thread

    def __iter__(self) -> Iterator[bytes]:
        pieces = aiter(self._stream)
        while (piece := self._thread.run(_next(pieces))) is not None:
            yield piece

    def close(self) -> None:
        if not self._thread.left_behind:
            self._thread.run(self._stream.aclose())


async def _next(pieces: AsyncIterator[bytes]) -> bytes | None:
    return await anext(pieces, None)


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
