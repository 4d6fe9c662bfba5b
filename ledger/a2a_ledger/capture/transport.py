"""The httpx transport under an A2A client: every byte of every exchange becomes events.

The one hook that sees all: card fetches, calls, streams, failures (`ClientConfig(httpx_client=…)`).
A request is recorded before its bytes leave; an answer is recorded before the caller sees it; a
stream passes live, event by event. In mode "enforce" a certain contract divergence raises at
arrival; the stream is then drained and recorded behind the caller's back, never closed, and no
cancel is ever sent (docs/format.md section 10).
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import httpx

from a2a_ledger.capture.arrival import Arrivals
from a2a_ledger.capture.bound import forget_sent, last_sent, take_call
from a2a_ledger.capture.claims import task_of_context
from a2a_ledger.capture.exchange import Exchange, open_exchange
from a2a_ledger.capture.failures import describe_failure
from a2a_ledger.capture.route import OURS, Route
from a2a_ledger.capture.situation import task_state
from a2a_ledger.capture.streams import RecordedStream
from a2a_ledger.errors import LedgerError
from a2a_ledger.wire import EXTENSION, SENDS, TERMINAL, parse_request
from a2a_ledger.wire.spellings import METHODS

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from weakref import ref

    from a2a_ledger.capture.builds import Builds
    from a2a_ledger.capture.desk import Desk
    from a2a_ledger.capture.sends import Sends
    from a2a_ledger.wire import Leg

_log = logging.getLogger(__name__)

_FRESH = ("no-cache", "no-store", "max-age=0")
_DRAIN_SECONDS = 2.0
"""How long closing waits for streams whose caller was given an error."""

_SEND_SPELLINGS = tuple(f'"{spelled}"'.encode() for spelled, method in METHODS.items() if method.name in SENDS)


class GuardTransport(httpx.AsyncBaseTransport):
    """Records and guards what passes through it to another transport."""

    def __init__(self, inner: httpx.AsyncBaseTransport, desk: Desk, sends: Sends, builds: Builds) -> None:
        self._inner = inner
        self._desk = desk
        self._sends = sends
        self._builds = builds
        self._arrivals = Arrivals(desk, self)
        self.client: ref[httpx.AsyncClient] | None = None
        self._behind: set[asyncio.Task[None]] = set()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request, recorded.

        Raises:
            CaptureError: the guard stopped it; nothing was sent.
            httpx.HTTPError: as the inner transport raised it, recorded.
        """
        if OURS in request.extensions:
            return await self._inner.handle_async_request(request)
        if self._desk.asks_for_card(request.method, str(request.url), self):
            response = None
            with self._desk.failing_as_chosen():
                response = await self._card(request)
            return response or await self._inner.handle_async_request(request)
        body = await request.aread()
        exchange = None
        with self._desk.failing_as_chosen():
            exchange = await self._open(request, body)
        if exchange is None:
            return await self._inner.handle_async_request(request)
        return await self._send(request, exchange)

    async def aclose(self) -> None:
        """Give streams that are still being drained a moment, then close the transport below."""
        if self._behind:
            _, late = await asyncio.wait(self._behind, timeout=_DRAIN_SECONDS)
            for job in late:
                job.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        self._desk.cards.forget(self)
        await self._inner.aclose()

    def run_behind(self, work: Coroutine[object, object, None]) -> None:
        """Run something that nobody waits for, until the transport is closed."""
        job = asyncio.create_task(work)
        self._behind.add(job)
        job.add_done_callback(self._behind.discard)

    # ---- card fetches -------------------------------------------------------------------------------------------

    async def _card(self, request: httpx.Request) -> httpx.Response:
        headers = _pairs(request.headers)
        ask, led_to = self._desk.cards.ask_of(self, str(request.url), headers)
        if ask.marked:  # the first credential of a peer makes its redaction key, which waits for the disk
            await asyncio.to_thread(self._desk.ledger.store.keys.redaction_key, ask.peer)
        extensions = {k: v for k, v in request.extensions.items() if k in {"timeout", "sni_hostname"}}
        route = Route(ask, self._inner.handle_async_request, headers, extensions, self, self.client, led_to)
        asked_fresh = any(word in request.headers.get("cache-control", "") for word in _FRESH)
        task = task_of_context(self._desk.ledger.store, ask.peer) or self._running_task(ask.peer)
        answer = await self._builds.card(route, task=task, forced=asked_fresh or ask.conditional)
        return httpx.Response(answer.status, headers=answer.headers, content=answer.body, request=request)

    def _running_task(self, peer: str) -> str | None:
        """Return the peer's task that this context sent and that has not ended: a card asked for now is about it."""
        task = last_sent(peer)
        if task is None or task_state(self._desk.ledger.store, f"task:{task}") in {*TERMINAL, "intended"}:
            return None
        return task

    async def _begin_unpinned(self, leg: Leg) -> None:
        """Decide a send that no interceptor has opened: guarded and recorded, but without a pin."""
        bound, peer = self._arrivals.card_for(leg)
        await self._sends.begin(bound, message_id=leg.message_id or "", peer_task=leg.task_id, peer=peer, may_pin=False)

    # ---- exchanges ----------------------------------------------------------------------------------------------

    async def _open(self, request: httpx.Request, body: bytes) -> Exchange:
        """Decide what is a send and record the request, before any byte of it leaves."""
        headers = _pairs(request.headers)
        leg = parse_request(request.method, str(request.url), headers, body)
        self._desk.cards.refresh(self, str(request.url), headers)
        call = take_call(leg.message_id)
        if call is None and (leg.method in SENDS or _is_batch_with_send(leg, body)):
            await self._begin_unpinned(leg)
            call = take_call(leg.message_id)
        if call is not None and call.pin is not None:
            _ask_for_extension(request)
        if "accept-encoding" in request.headers:
            request.headers["accept-encoding"] = "identity"  # what is recorded is what is read
        return await open_exchange(self._desk, self._arrivals, request, leg, body, call, self.run_behind)

    async def _send(self, request: httpx.Request, exchange: Exchange) -> httpx.Response:
        try:
            response = await self._inner.handle_async_request(request)
        except BaseException as error:
            await self._failed(exchange, error)
            raise
        if response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            return httpx.Response(
                response.status_code,
                headers=_decoded(response.headers),
                stream=RecordedStream(response, exchange, self.run_behind),
                extensions=response.extensions,
            )
        try:
            content = await response.aread()
        except BaseException as error:
            await self._failed(exchange, error, status=response.status_code)
            raise
        finally:
            await response.aclose()
        if response.status_code >= httpx.codes.BAD_REQUEST:
            forget_sent(exchange.peer)
        await exchange.answered(response.status_code, _pairs(response.headers), content)
        return httpx.Response(
            response.status_code,
            headers=_decoded(response.headers),
            content=content,
            extensions=_safe(response.extensions),
        )

    async def _failed(self, exchange: Exchange, error: BaseException, *, status: int | None = None) -> None:
        """Record what stopped an exchange; the caller is told of that, not of a ledger that fails on top of it."""
        forget_sent(exchange.peer)
        try:
            await exchange.failed(describe_failure(error), status=status)
        except LedgerError as failure:
            _log.error("the failure of an exchange was not recorded: %s", failure)


def _ask_for_extension(request: httpx.Request) -> None:
    """Ask for the frozen-contract extension, in both spellings of the header, beside what is asked for already."""
    for name in ("A2A-Extensions", "X-A2A-Extensions"):
        asked = [uri.strip() for uri in request.headers.get(name, "").split(",") if uri.strip()]
        if EXTENSION not in asked:
            request.headers[name] = ", ".join([*asked, EXTENSION])


def _pairs(headers: httpx.Headers) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers.raw]


def _decoded(headers: httpx.Headers) -> list[tuple[bytes, bytes]]:
    """Return the headers of a body that is handed on after content decoding."""
    return [(k, v) for k, v in headers.raw if k.lower() not in {b"content-encoding", b"content-length"}]


def _is_batch_with_send(leg: Leg, body: bytes) -> bool:
    """Say whether a JSON-RPC batch holds a send: it is decided as one, though it cannot be pinned."""
    return "batch" in leg.flags and any(spelling in body for spelling in _SEND_SPELLINGS)


def _safe(extensions: dict[str, object]) -> dict[str, object]:
    return {k: v for k, v in extensions.items() if k in {"http_version", "reason_phrase"}}
