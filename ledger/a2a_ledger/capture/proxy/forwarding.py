"""One request from a client on to the agent, and its answer back: octets in are octets out.

What is not passed on is what belongs to one connection (RFC 9110 section 7.6.1). `Via` is added to requests, as a
gateway must; an answer in which it would come back to us is a loop. Nothing waits for anything but the peer itself:
a stream passes as it comes, a client that goes takes its request to the agent with it.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from typing import TYPE_CHECKING, Any

import httpx

from a2a_ledger.capture.failures import describe_failure
from a2a_ledger.capture.proxy.readers import client_of
from a2a_ledger.capture.proxy.recording import CLIENT, LARGE, TARGET, TOLD, WITHOUT_BODY, ProxyTransport, Told
from a2a_ledger.capture.recorder import is_stream
from a2a_ledger.capture.redacted import bare_url
from a2a_ledger.capture.route import pairs
from a2a_ledger.capture.server.incoming import WHOLE_SERVER, Incoming
from a2a_ledger.capture.server.problem import send_problem, send_status, where
from a2a_ledger.capture.server.spool import Spool
from a2a_ledger.capture.streams import RecordedStream
from a2a_ledger.errors import LedgerError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from a2a_ledger.capture.proxy.addresses import Addresses
    from a2a_ledger.capture.proxy.readers import Client
    from a2a_ledger.capture.proxy.rewriting import CardRewriter
    from a2a_ledger.capture.server.incoming import Message, Receive, Scope, Send

    RawHeaders = list[tuple[bytes, bytes]]

_log = logging.getLogger(__name__)

_ONE_CONNECTION = frozenset(
    {
        *(b"connection", b"keep-alive", b"proxy-connection", b"proxy-authenticate", b"proxy-authorization"),
        *(b"te", b"trailer", b"transfer-encoding", b"upgrade"),
    }
)
_OURS = frozenset({b"host", b"expect", b"content-length"})
"""Headers of a request that are made anew: for whom it is, and how long it is."""

_INFORMATIONAL = range(100, 200)
_LAST_STATUS = 599
"""Of HTTP (RFC 9110 section 15); servers send no other."""

_CONNECT_SECONDS = 10.0
_TIMEOUT = {"connect": _CONNECT_SECONDS, "read": None, "write": None, "pool": None}
"""A task may be silent for hours: how long to wait for an answer is the client's business."""


class Forwarder:
    """An ASGI application that is an agent elsewhere."""

    def __init__(  # noqa: PLR0913 - what a deployment of it chooses
        self,
        transport: httpx.AsyncBaseTransport,
        addresses: Addresses,
        rewriter: CardRewriter | None = None,
        *,
        keep: int,
        entropy: Callable[[int], bytes],
        holds: bool = False,
    ) -> None:
        """Forward requests.

        Args:
            transport: sends them on.
            addresses: the agent's and the proxy's.
            rewriter: of the cards that pass; None: they pass as they are.
            keep: octets of one body that are held in memory.
            entropy: gives random octets.
            holds: what serves us lets no answer but an event stream leave before its end, so that one which breaks off
                can still become a 502; it is read to its end first.
        """
        self._transport = transport
        self._addresses = addresses
        self._rewriter = rewriter
        self._keep = keep
        self._entropy = entropy
        self._holds = holds
        self._via = f"1.1 a2a-ledger-{secrets.token_hex(4)}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await _refuse_websocket(scope, send)
            return
        request = Incoming(scope, receive, Spool(self._keep, self._entropy))
        client = client_of(scope, request.raw_headers)
        try:
            await self._serve(request, client, send)
        finally:
            request.body.close()

    async def _serve(self, request: Incoming, client: Client, send: Send) -> None:
        problem = self._problem(request)
        if problem is not None:
            await send_status(send, *problem)
            return
        if not await request.read():
            where = bare_url(request.url)
            _log.info("%s %s: the client had gone before the whole request came", request.method, where)
            return
        here = asyncio.current_task()
        watch = asyncio.ensure_future(request.left())
        if here is not None:
            watch.add_done_callback(lambda done: None if done.cancelled() else here.cancel())
        try:
            await self._pass(request, client, send)
        except asyncio.CancelledError:
            if not request.client_left or here is None:
                raise
            here.uncancel()  # the client has gone: what was on its way is stopped, and recorded as that
        finally:
            watch.cancel()

    def _problem(self, request: Incoming) -> tuple[int, str, str] | None:
        """Return why a request is not passed on: status, name, and a sentence; None: it is."""
        if b"websocket" in _all(request, b"upgrade").lower():
            return 501, "no-websockets", "websockets are not passed on: A2A has no binding for them"
        if not request.target.startswith(b"/") and request.target != WHOLE_SERVER:
            return 400, "odd-target", "expected a path that begins with a slash, a url, or one asterisk"
        if self._addresses.is_too_long(request.target):
            return 414, "target-too-long", "expected a url of 65,536 characters at most"
        if self._via in _all(request, b"via"):
            return 508, "loop", "this request came from here: --upstream leads back to the proxy"
        return None

    # ---- there

    async def _pass(self, request: Incoming, client: Client, send: Send) -> None:
        told = Told()
        try:
            response = await self._transport.handle_async_request(self._request(request, client, told))
        except LedgerError as error:
            await send_problem(send, error)
            return
        except httpx.TimeoutException:
            await send_status(send, 504, "upstream-timeout", f"the agent did not answer in time{_where(told)}")
            return
        except httpx.RequestError as error:
            await _broke_off(send, error, told)
            return
        try:
            await self._back(request, response, send, told)
        except asyncio.CancelledError as error:
            if not request.client_left and isinstance(response.stream, RecordedStream):
                await response.stream.stopped(error)
            raise
        finally:
            await response.aclose()

    def _request(self, request: Incoming, client: Client, told: Told) -> httpx.Request:
        """Return what is sent to the agent."""
        target = self._addresses.upstream_target(request.target)
        extensions: dict[str, Any] = {"timeout": _TIMEOUT, "target": target, CLIENT: client, TOLD: told}
        asked = request.raw_headers if self._rewriter is None else self._rewriter.asked(request)
        headers = _passed(asked, _OURS)
        headers.append((b"via", self._via))
        upstream = self._addresses.upstream_url(request.target)
        url = self._transport.url_of(request.target) if isinstance(self._transport, ProxyTransport) else upstream
        if url is not upstream:
            extensions[TARGET] = upstream
        sent_with = dict(request.raw_headers)
        if request.body.tail is not None:
            extensions[LARGE] = request.body
            headers.append((b"content-length", str(request.body.size).encode()))
            content: bytes | AsyncIterator[bytes] | None = _chunks(request.body)
        elif request.body.size or b"content-length" in sent_with or b"transfer-encoding" in sent_with:
            content = request.body.head
        else:
            content = None
        return httpx.Request(request.method, url, headers=headers, content=content, extensions=extensions)

    # ---- and back

    async def _back(self, request: Incoming, response: httpx.Response, send: Send, told: Told) -> None:
        """Give an answer back as it comes.

        An answer that breaks off is broken off here too, by a connection that is closed before its end; a 502 is said
        while nothing of it has left.
        """
        headers = _passed(response.headers.raw)
        held, whole = Spool(self._keep, self._entropy), Spool(self._keep, self._entropy)
        has_begun = False
        try:
            chunks = await self._body(response, held)
            if self._rewriter is not None and self._rewriter.concerns(request, response.status_code, headers):
                headers, chunks = await self._rewritten(request, response.status_code, headers, chunks, whole)
            status = response.status_code
            if status > _LAST_STATUS:
                async for _ in chunks:  # what it is recorded with
                    pass
                said = f"the agent answered {status}, which cannot be passed on{_where(told)}"
                await send_status(send, 502, "odd-status", said)
                return
            bodiless = request.method == "HEAD" or status in WITHOUT_BODY or status in _INFORMATIONAL
            await send({"type": "http.response.start", "status": status, "headers": headers})
            has_begun = True
            if not bodiless:
                async for chunk in chunks:
                    if chunk:
                        await send(_part(chunk))
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except LedgerError as error:
            _log.error("%s: an answer was stopped on its way: %s", bare_url(request.url), error)
        except httpx.RequestError as error:
            # Its text quotes the octets that could not be read, and an agent may echo a credential in them.
            _log.error("%s: the agent's answer broke off: %s", bare_url(request.url), type(error).__name__)
            if not has_begun:
                await _broke_off(send, error, told)
        finally:
            held.close()
            whole.close()

    async def _rewritten(
        self, request: Incoming, status: int, headers: RawHeaders, chunks: AsyncIterator[bytes], whole: Spool
    ) -> tuple[RawHeaders, AsyncIterator[bytes]]:
        """Return an answer with the proxy's urls, read to its end in `whole`; over the limit it passes as it is."""
        async for chunk in chunks:
            whole.add(chunk)
        if self._rewriter is None or whole.tail is not None:
            return headers, _chunks(whole)
        headers, body = await self._rewriter.rewritten(request, status, headers, whole.head)
        return headers, _one(body)

    async def _body(self, response: httpx.Response, held: Spool) -> AsyncIterator[bytes]:
        """Return an answer's body: as it comes, or read to its end, in `held`, where nothing of it leaves before."""
        if not isinstance(response.stream, httpx.AsyncByteStream):
            raise TypeError("expected a stream that can be awaited")
        chunks = aiter(response.stream)
        if not self._holds or is_stream(response.status_code, pairs(response.headers)):
            return chunks
        async for chunk in chunks:
            held.add(chunk)
        return _chunks(held)


def _all(request: Incoming, name: bytes) -> bytes:
    """Return all that the headers of one name say: a proxy between may have added one to ours, or have joined them."""
    return b", ".join(value for key, value in request.raw_headers if key.lower() == name)


def _passed(headers: Iterable[tuple[bytes, bytes]], without: frozenset[bytes] = frozenset()) -> RawHeaders:
    """Return the headers that belong to the message, not to one connection."""
    named = {
        token.strip().lower() for name, value in headers if name.lower() == b"connection" for token in value.split(b",")
    }
    refused = _ONE_CONNECTION | named | without
    return [(name, value) for name, value in headers if name.lower() not in refused]


def _where(told: Told) -> str:
    return where(told.exchange.task, told.exchange.newest) if told.exchange is not None else ""


async def _broke_off(send: Send, error: httpx.RequestError, told: Told) -> None:
    kind = describe_failure(error).kind  # its text names the agent's address, and quotes what could not be read
    await send_status(send, 502, "upstream-failed", f"no whole answer came from the agent: {kind}{_where(told)}")


def _part(chunk: bytes) -> Message:
    return {"type": "http.response.body", "body": chunk, "more_body": True}


async def _chunks(body: Spool) -> AsyncIterator[bytes]:
    for chunk in body.chunks():
        yield chunk


async def _one(body: bytes) -> AsyncIterator[bytes]:
    yield body


async def _refuse_websocket(scope: Scope, send: Send) -> None:
    """Refuse a websocket before its handshake: servers answer it with 403, or with what we say where they can."""
    if "websocket.http.response" in scope.get("extensions", {}):
        await send({"type": "websocket.http.response.start", "status": 501, "headers": []})
        await send({"type": "websocket.http.response.body", "body": b"websockets are not passed on"})
        return
    await send({"type": "websocket.close", "code": 1003, "reason": "websockets are not passed on"})
