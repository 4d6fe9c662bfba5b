"""The httpx transport under an A2A client: every byte of every exchange becomes events.

The one hook that sees all: card fetches, calls, streams, failures (`ClientConfig(httpx_client=…)`).
A request is recorded before its bytes leave; an answer is recorded before the caller sees it; a
stream passes live, event by event. In mode "enforce" a certain contract divergence raises at
arrival; the stream is then drained and recorded behind the caller's back, never closed, and no
cancel is ever sent (docs/format.md section 10).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx

from a2a_ledger.capture.arrival import Arrivals
from a2a_ledger.capture.bound import last_sent, take_call
from a2a_ledger.capture.cards import Route, read_bytes
from a2a_ledger.capture.exchange import Exchange, open_exchange
from a2a_ledger.capture.failures import describe_failure
from a2a_ledger.capture.recorder import card_ask_of
from a2a_ledger.capture.situation import task_state
from a2a_ledger.errors import CardError, ContractDivergenceError
from a2a_ledger.ledger import current_task
from a2a_ledger.wire import EXTENSION, SENDS, TERMINAL, SseParser, parse_request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from a2a_ledger.capture.builds import Builds
    from a2a_ledger.capture.desk import Desk
    from a2a_ledger.capture.peerview import KeptCard
    from a2a_ledger.capture.sends import Sends
    from a2a_ledger.wire import Leg

_FRESH = ("no-cache", "no-store", "max-age=0")


class GuardTransport(httpx.AsyncBaseTransport):
    """Records and guards what passes through it to another transport."""

    def __init__(self, inner: httpx.AsyncBaseTransport, desk: Desk, sends: Sends, builds: Builds) -> None:
        self._inner = inner
        self._desk = desk
        self._sends = sends
        self._builds = builds
        self._arrivals = Arrivals(desk)
        self._draining: set[asyncio.Task[None]] = set()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request, recorded.

        Raises:
            CaptureError: the guard stopped it; nothing was sent.
            httpx.HTTPError: as the inner transport raised it, recorded.
        """
        if self._desk.asks_for_card(request.method, str(request.url)):
            return await self._card(request)
        body = await request.aread()
        leg = parse_request(request.method, str(request.url), _pairs(request.headers), body)
        call = take_call(leg.message_id)
        if call is None and leg.method in SENDS:
            await self._begin_unpinned(leg)
            call = take_call(leg.message_id)
        if call is not None and call.pin is not None:
            _ask_for_extension(request)
        if "accept-encoding" in request.headers:
            request.headers["accept-encoding"] = "identity"  # what is recorded is what is read
        exchange = await open_exchange(self._desk, self._arrivals, request, leg, body, call)
        return await self._send(request, exchange)

    async def aclose(self) -> None:
        """Wait for streams that are still being drained, then close the transport below."""
        if self._draining:
            await asyncio.gather(*self._draining, return_exceptions=True)
        await self._inner.aclose()

    # ---- card fetches -------------------------------------------------------------------------------------------

    async def _card(self, request: httpx.Request) -> httpx.Response:
        headers = _pairs(request.headers)
        ask = card_ask_of(str(request.url), headers)
        extensions = {k: v for k, v in request.extensions.items() if k in {"timeout", "sni_hostname"}}
        route = Route(ask, self._inner.handle_async_request, headers, extensions)
        asked_fresh = any(word in request.headers.get("cache-control", "") for word in _FRESH)
        forced = asked_fresh or "if-none-match" in request.headers or "if-modified-since" in request.headers
        task = current_task.get() or self._running_task()
        kept, fetched = await self._builds.card(route, task=task, forced=forced)
        if fetched is not None and kept is None:
            if fetched.error is not None:
                raise fetched.error
            return httpx.Response(
                fetched.status or 0, headers=list(fetched.headers), content=fetched.body, request=request
            )
        if kept is None:
            raise CardError(f"{request.url}: no card is kept and none was fetched")
        content = fetched.body if fetched and fetched.body else read_bytes(self._desk.ledger.store, kept.bytes_of)
        return _from_store(request, kept, content)

    def _running_task(self) -> str | None:
        """Return the task that this context sent and that is not seen finished: a card asked for now is about it."""
        task = last_sent()
        if task is None or task_state(self._desk.ledger.store, f"task:{task}") in {*TERMINAL, "intended"}:
            return None
        return task

    async def _begin_unpinned(self, leg: Leg) -> None:
        """Decide a send that no interceptor has opened: guarded and recorded, but without a pin."""
        bound, peer = self._arrivals.card_for(leg)
        await self._sends.begin(bound, message_id=leg.message_id or "", peer_task=leg.task_id, peer=peer, may_pin=False)

    # ---- exchanges ----------------------------------------------------------------------------------------------

    async def _send(self, request: httpx.Request, exchange: Exchange) -> httpx.Response:
        try:
            response = await self._inner.handle_async_request(request)
        except BaseException as error:
            await exchange.failed(describe_failure(error))
            raise
        if "text/event-stream" in response.headers.get("content-type", ""):
            stream = _RecordedStream(self, exchange, response)
            return httpx.Response(
                response.status_code, headers=response.headers, stream=stream, extensions=response.extensions
            )
        try:
            content = await response.aread()
        except BaseException as error:
            await exchange.failed(describe_failure(error), status=response.status_code)
            raise
        finally:
            await response.aclose()
        await exchange.answered(response.status_code, _pairs(response.headers), content)
        return httpx.Response(
            response.status_code,
            headers=[
                (k, v) for k, v in response.headers.raw if k.lower() not in {b"content-encoding", b"content-length"}
            ],
            content=content,
            extensions=_safe(response.extensions),
        )

    def drain(self, exchange: _RecordedStream) -> None:
        """Go on reading and recording a stream whose caller was given an error."""
        job = asyncio.create_task(exchange.drain())
        self._draining.add(job)
        job.add_done_callback(self._draining.discard)


class _RecordedStream(httpx.AsyncByteStream):
    """A server-sent event stream that is recorded, event by event, as it is handed on."""

    def __init__(self, transport: GuardTransport, exchange: Exchange, response: httpx.Response) -> None:
        self._transport = transport
        self._exchange = exchange
        self._response = response
        self._source: AsyncIterator[bytes] = response.aiter_raw()
        self._parser = SseParser()
        self._ended = False
        self._handed_over = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._source:
                await self._take(chunk)
                yield chunk
        except (httpx.HTTPError, OSError) as error:
            failure = describe_failure(error)
            await self._end(failure.kind, failure.text)
            raise
        await self._end("complete")

    async def _take(self, chunk: bytes) -> None:
        events = self._parser.feed(chunk)
        if not events:
            return
        try:
            await self._exchange.stream_events(events)
        except ContractDivergenceError:
            self._handed_over = True
            self._transport.drain(self)
            raise

    async def drain(self) -> None:
        """Read on to the end, recording only."""
        try:
            async for chunk in self._source:
                events = self._parser.feed(chunk)
                if events:
                    await self._exchange.stream_events(events, judge=False)
            await self._end("complete")
        except Exception as error:  # noqa: BLE001 - nobody is left to raise to; what happened is recorded
            failure = describe_failure(error)
            await self._end(failure.kind, failure.text)
        finally:
            await self._response.aclose()

    async def _end(self, how: str, text: str = "") -> None:
        if self._ended:
            return
        self._ended = True
        rest = self._parser.close()
        if rest:
            await self._exchange.stream_events(rest)
        await self._exchange.stream_ended(self._response.status_code, how, text)

    async def aclose(self) -> None:
        """Record that the caller left early, unless the stream had ended or goes on being drained."""
        if self._handed_over:
            return
        try:
            await self._end("closed-by-caller")
        finally:
            await self._response.aclose()


def _ask_for_extension(request: httpx.Request) -> None:
    """Ask for the frozen-contract extension, in both spellings of the header, beside what is asked for already."""
    for name in ("A2A-Extensions", "X-A2A-Extensions"):
        asked = [uri.strip() for uri in request.headers.get(name, "").split(",") if uri.strip()]
        if EXTENSION not in asked:
            request.headers[name] = ", ".join([*asked, EXTENSION])


def _from_store(request: httpx.Request, kept: KeptCard, content: bytes) -> httpx.Response:
    """Answer a card GET with what is kept: a 200, as the SDK wants it."""
    headers = {"content-type": "application/json"}
    if kept.etag is not None:
        headers["etag"] = kept.etag
    if kept.last_modified is not None:
        headers["last-modified"] = kept.last_modified
    return httpx.Response(200, headers=headers, content=content, request=request)


def _pairs(headers: httpx.Headers) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers.raw]


def _safe(extensions: dict[str, object]) -> dict[str, object]:
    return {k: v for k, v in extensions.items() if k in {"http_version", "reason_phrase"}}
