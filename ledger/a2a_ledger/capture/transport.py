"""The httpx transport under an A2A client: every byte of every exchange becomes events.

The one hook that sees all: card fetches, calls, streams, failures (`ClientConfig(httpx_client=…)`).
A request is recorded before its bytes leave; an answer is recorded before the caller sees it; an event
stream passes live, any other answer is handed on when it is whole. In mode "enforce" a certain contract
divergence raises at arrival; the stream is then drained and recorded behind the caller's back, never
closed, and no cancel is ever sent (docs/format.md section 10).
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, cast

import httpx

from a2a_ledger.address import agent_card_url
from a2a_ledger.capture.arrival import Arrivals
from a2a_ledger.capture.attribution import Peer
from a2a_ledger.capture.bound import forget_sent, last_sent, open_call_of
from a2a_ledger.capture.carried_heads import head_came, head_for, with_head
from a2a_ledger.capture.claims import task_of_context
from a2a_ledger.capture.coding import can_unpack, codings_of
from a2a_ledger.capture.failures import describe_failure
from a2a_ledger.capture.found_cards import JsonAnswer
from a2a_ledger.capture.leaving import Before, Outgoing, call_of, open_exchange
from a2a_ledger.capture.method_card import AGAIN, MethodRoute, answer_with, answers_with_card, method_ask
from a2a_ledger.capture.off_loop import read_plain, size_of, worked
from a2a_ledger.capture.own_route import Waiting, nobody_waits
from a2a_ledger.capture.received import ReceivedBody, octets_of
from a2a_ledger.capture.recorder import is_stream
from a2a_ledger.capture.redact import Secrets
from a2a_ledger.capture.route import OURS, REDIRECTED, Hop, Redirected, Route, as_read, pairs, redirected_from, safe
from a2a_ledger.capture.routed import Routed
from a2a_ledger.capture.served_cookies import ServedCookies
from a2a_ledger.capture.situation import task_state
from a2a_ledger.capture.streams import RecordedStream
from a2a_ledger.capture.unread import pass_unread
from a2a_ledger.capture.whole import Behind
from a2a_ledger.card import MAX_CARD
from a2a_ledger.errors import CaptureError, ContractDivergenceError, LedgerError
from a2a_ledger.wire import EXTENSION, SENDS, TERMINAL, parse_request
from a2a_ledger.wire.spellings import METHODS

if TYPE_CHECKING:
    from http.cookiejar import CookieJar
    from weakref import ref

    from a2a_ledger.capture.builds import Builds
    from a2a_ledger.capture.card_record import CardAsk
    from a2a_ledger.capture.desk import Desk
    from a2a_ledger.capture.exchange import Exchange
    from a2a_ledger.capture.method_card import Again
    from a2a_ledger.capture.sends import Sends
    from a2a_ledger.wire import Headers, Leg

_log = logging.getLogger(__name__)

_OK = 200
LED_HERE = "a2a_ledger_led_here"
"""Extension of a request that a redirect led on: the exchange before it."""

_JSON = {"content-type": "application/json"}
_FRESH = ("no-cache", "no-store", "max-age=0")
_SEND_SPELLINGS = tuple(f'"{spelled}"'.encode() for spelled, method in METHODS.items() if method.name in SENDS)


class GuardTransport(httpx.AsyncBaseTransport):
    """Records and guards what passes through it to another transport."""

    def __init__(self, inner: httpx.AsyncBaseTransport, desk: Desk, sends: Sends, builds: Builds) -> None:
        self._inner = inner
        self._another = inner.another if isinstance(inner, Routed) else None
        self._desk = desk
        self._sends = sends
        self._builds = builds
        self._arrivals = Arrivals(desk, self)
        self.client: ref[httpx.AsyncClient] | None = None
        self.behind = Behind()
        self._served = ServedCookies()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request, recorded.

        Raises:
            CaptureError: the guard stopped it; nothing was sent.
            httpx.HTTPError: as the inner transport raised it, recorded.
        """
        response = await self._handle(request)
        self._served.note(pairs(response.headers), self._jar)
        return response

    most_of_card: int | None = None
    """Octets that are read of a card which the application asks for; None: all of them, as without a guard."""

    async def _handle(self, request: httpx.Request) -> httpx.Response:
        if nobody_waits(request):
            return httpx.Response(httpx.codes.GATEWAY_TIMEOUT, request=request)
        if OURS in request.extensions:
            return await self._ours(request)
        follows = redirected_from(request)
        if follows is not None or self._desk.asks_for_card(request.method, str(request.url)):
            response = None
            with self._desk.failing_as_chosen():
                response = await self._card(request, follows)
            return response or await self._inner.handle_async_request(request)
        octets, headers = await request.aread(), pairs(request.headers)
        body = await read_plain(headers, octets)
        asked = partial(parse_request, request.method, str(request.url), headers, body or b"")
        leg = await worked(size_of(headers, body or b""), asked)
        exchange = None
        if body is not None and answers_with_card(leg):
            return await self._call_for_card(request, leg, body)
        with self._desk.failing_as_chosen():
            if body is None:
                outgoing = Outgoing(leg, headers, octets, request.method, is_unread=True, before=_before(request))
                exchange = await self._open_unread(outgoing)
            else:
                exchange = await self._open(request, leg, body)
        if exchange is None:
            return await self._inner.handle_async_request(request)
        return await self._send(request, exchange)

    async def _open_unread(self, outgoing: Outgoing) -> Exchange:
        """Record a request that cannot be read.

        Raises:
            CaptureError: mode "enforce": nobody can decide what it is.
        """
        if self._desk.enforces:
            raise CaptureError(
                f"a request of {len(outgoing.body)} bytes is over the limit of keep_body, or in a content coding other "
                "than gzip and deflate, and cannot be read, so it cannot be decided; send it so that it can, raise "
                "keep_body, or use mode observe"
            )
        return await open_exchange(self._desk, self._arrivals, outgoing, None)

    async def aclose(self) -> None:
        """Give streams that are drained a moment, wait for what is still being recorded, close the transport below."""
        await self.behind.ended()
        await self._desk.underway.settled()
        self._desk.cards.forget(self)
        await self._inner.aclose()

    def _jar(self) -> CookieJar | None:
        client = self.client() if self.client is not None else None
        return client.cookies.jar if client is not None else None

    async def _ours(self, request: httpx.Request) -> httpx.Response:
        """Send a card GET of the guard's own; its answer is noted before the client's hooks see it."""
        response = await self._inner.handle_async_request(request)
        try:
            body = b"".join([piece async for piece in octets_of(response, MAX_CARD)])
        finally:
            await response.aclose()
        headers = pairs(response.headers)
        read = await read_plain(headers, body)
        if read is not None:  # so that the client reads what is recorded
            body = read
        whole, noted = (
            httpx.Response(
                response.status_code,
                headers=response.headers.raw if read is None else as_read(headers),
                stream=httpx.ByteStream(body),
                request=request,
                extensions=safe(response.extensions),
            )
            for _ in range(2)
        )
        await noted.aread()  # a client whose hook raises closes what it was given
        cast("list[httpx.Response]", request.extensions[OURS]).append(noted)
        return whole

    # ---- card fetches -------------------------------------------------------------------------------------------

    async def _card(self, request: httpx.Request, follows: Redirected | None) -> httpx.Response:
        headers, url = pairs(request.headers), str(request.url)
        told = self._arrivals.told_of(parse_request(request.method, url, headers, b""))
        whose = Peer(told.peer, told.peer_url) if told is not None else None
        ask = self._signed(self._desk.cards.ask_of(url, headers, of=follows, whose=whose, served=self._served))
        if ask.marked:  # the first credential of a peer makes its redaction key, which waits for the disk
            await asyncio.to_thread(self._desk.ledger.store.keys.redaction_key, ask.peer)
        extensions = {k: v for k, v in request.extensions.items() if k in {"timeout", "sni_hostname"}}
        led_to = Hop(url, headers) if follows is not None else None
        first = follows.headers if follows is not None else headers
        send = self._inner.handle_async_request
        route = Route(ask, send, first, extensions, self, self.client, led_to, self._served, apart=self._another)
        route.most = self.most_of_card
        asked_fresh = any(word in request.headers.get("cache-control", "") for word in _FRESH)
        answer = await self._builds.card(route, task=self._task_of(ask.peer), forced=asked_fresh or ask.conditional)
        response = httpx.Response(answer.status, headers=answer.headers, content=answer.body, request=request)
        if response.has_redirect_location:  # a new mapping: the application may use its own for other requests
            request.extensions = {**request.extensions, REDIRECTED: Redirected(ask, first, url)}
        return response

    async def _call_for_card(self, request: httpx.Request, leg: Leg, body: bytes) -> httpx.Response:
        """Call a method whose answer is a card, recorded and decided as a card GET is.

        Raises:
            CaptureError: the answer is not one that the application may act on.
            CardError: no contract can be frozen from it.
        """
        desk, again = self._desk, cast("Again | None", request.extensions.get(AGAIN))
        call, exchange = None, None
        with desk.failing_as_chosen():
            ask = await self._asked(request, leg)
            if again is not None:  # of the guard's own: the question was put before
                ask = ask.for_purpose(again.ask.purpose, validate=None, task=again.ask.task)
            else:
                route = MethodRoute(
                    ask,
                    self._inner.handle_async_request,
                    pairs(request.headers),
                    transport=self,
                    client=self.client,
                    served=self._served,
                )
                route.body = await request.aread()
                call = await self._builds.before_call(route, task=self._task_of(ask.peer))
                ask = call.ask
            if call is not None and call.answer is not None:
                return httpx.Response(200, headers=_JSON, content=answer_with(call.answer, body), request=request)
            exchange = await self._open(request, leg, body, ask)
        if exchange is None:
            return await self._inner.handle_async_request(request)
        try:
            response = await self._send(request, exchange)
        finally:
            if again is not None:
                again.fetched = exchange.fetched
        if call is not None:
            with desk.failing_as_chosen():
                await self._builds.after_call(call, exchange.fetched)
        return response

    async def _asked(self, request: httpx.Request, leg: Leg) -> CardAsk:
        """Read a call for a card as it is asked now, for the peer whose card lists the url that is called."""
        desk = self._desk
        before = _before(request)
        peer = before.peer if before is not None else self._arrivals.card_for(leg, pairs(request.headers))[1]
        url = desk.views.of(peer).url or agent_card_url(leg.url)
        places = desk.cards.schemes.places_of(peer)
        ask = method_ask(leg, pairs(request.headers), peer=Peer(peer, url), places=places, served=self._served)
        ask = self._signed(ask)
        if ask.marked:  # the first credential of a peer makes its redaction key, which waits for the disk
            await asyncio.to_thread(desk.ledger.store.keys.redaction_key, peer)
        return ask

    def _signed(self, ask: CardAsk) -> CardAsk:
        """Return a question for a card with who asks, where a transport serves several clients."""
        return ask

    def _task_of(self, peer: str) -> str | None:
        """Return the task of this peer in whose context a card is asked for."""
        return task_of_context(self._desk.ledger.store, peer) or self._running_task(peer)

    def _running_task(self, peer: str) -> str | None:
        """Return the peer's task that this context sent and that has not ended: a card asked for now is about it."""
        task = last_sent(peer)
        if task is None or task_state(self._desk.ledger.store, f"task:{task}") in {*TERMINAL, "intended"}:
            return None
        return task

    # ---- exchanges ----------------------------------------------------------------------------------------------

    async def _open(self, request: httpx.Request, leg: Leg, body: bytes, card: CardAsk | None = None) -> Exchange:
        """Decide what is a send and record the request, before any byte of it leaves."""
        waiting = open_call_of(leg.message_id)
        bound = waiting.bound if waiting is not None else self._arrivals.told_of(leg)
        mine = bound.route if bound is not None else None
        self._desk.cards.refresh(self, str(request.url), pairs(request.headers), mine)
        is_send = leg.method in SENDS or _is_batch_with_send(leg, body)
        here = Waiting(
            self,
            self._inner.handle_async_request,
            self.client,
            str(request.url),
            pairs(request.headers),
            self._served,
        )
        before, call = _before(request), None
        if before is None:
            call = await call_of(self._sends, self._arrivals, leg, body, is_send=is_send, waiting=here)
        if call is not None and call.pin is not None:
            _ask_for_extension(request)
        if "accept-encoding" in request.headers:
            request.headers["accept-encoding"] = "identity"  # what is recorded is what is read
        outgoing = Outgoing(leg, pairs(request.headers), body, request.method, before=before)
        return await open_exchange(self._desk, self._arrivals, outgoing, call, card)

    async def _send(self, request: httpx.Request, exchange: Exchange) -> httpx.Response:
        try:
            carried = head_for(self._desk, exchange, str(request.url))
            response = await self._inner.handle_async_request(with_head(request, carried))
        except BaseException as error:
            await self._failed(exchange, error)
            raise
        headers = pairs(response.headers)
        head_came(self._desk, exchange, headers)
        if response.has_redirect_location:  # a new mapping: the application may use its own for other requests
            before = Before(exchange.peer, exchange.stream, Secrets.of(exchange.secrets), str(request.url))
            request.extensions = {**request.extensions, LED_HERE: before}
        if not can_unpack(codings_of(headers)):
            if response.status_code >= httpx.codes.BAD_REQUEST:
                forget_sent(exchange.peer)
            return await pass_unread(response, exchange, self.behind.run)
        if is_stream(response.status_code, headers):
            return httpx.Response(
                response.status_code,
                headers=as_read(headers),
                stream=RecordedStream(response, exchange, self.behind.run),
                extensions=response.extensions,
            )
        body = ReceivedBody(response)
        try:
            content = await body.read()
        except BaseException as error:
            await self._cut_short(exchange, response.status_code, headers, body, error)
            raise
        finally:
            await response.aclose()
        if response.status_code >= httpx.codes.BAD_REQUEST:
            forget_sent(exchange.peer)
        await exchange.answered(response.status_code, headers, content)
        if request.method == "GET" and response.status_code == _OK and exchange.answer is not None:
            asked = JsonAnswer(str(request.url), pairs(request.headers), content, exchange.answer)
            self._desk.found.remember(asked)
        return httpx.Response(
            response.status_code,
            headers=as_read(headers),
            content=content,
            extensions=safe(response.extensions),
        )

    async def _failed(self, exchange: Exchange, error: BaseException) -> None:
        """Record what stopped an exchange; the caller is told of that, not of a ledger that fails on top of it."""
        forget_sent(exchange.peer)
        try:
            await exchange.failed(describe_failure(error))
        except LedgerError as failure:
            _log.error("the failure of an exchange was not recorded: %s", failure)

    async def _cut_short(
        self, exchange: Exchange, status: int, headers: Headers, body: ReceivedBody, error: BaseException
    ) -> None:
        """Record what came of an answer before it failed.

        Raises:
            ContractDivergenceError: what came leaves the frozen contract; a caller that gave up is not told.
        """
        forget_sent(exchange.peer)
        failure = describe_failure(error)
        try:
            await exchange.cut_short(status, headers, body.octets, failure, undecoded=body.undecoded)
        except ContractDivergenceError as divergence:
            if isinstance(error, Exception):
                raise divergence from error
        except LedgerError as unrecorded:
            _log.error("what came of an answer that failed was not recorded: %s", unrecorded)


def _before(request: httpx.Request) -> Before | None:
    """Return the exchange that a request follows a redirect of; None: it follows none, or is tried where it was."""
    before = request.extensions.get(LED_HERE)
    return before if isinstance(before, Before) and before.at != str(request.url) else None


def _ask_for_extension(request: httpx.Request) -> None:
    """Ask for the frozen-contract extension, in both spellings of the header, beside what is asked for already."""
    for name in ("A2A-Extensions", "X-A2A-Extensions"):
        asked = [uri.strip() for uri in request.headers.get(name, "").split(",") if uri.strip()]
        if EXTENSION not in asked:
            request.headers[name] = ", ".join([*asked, EXTENSION])


def _is_batch_with_send(leg: Leg, body: bytes) -> bool:
    """Say whether a JSON-RPC batch holds a send: it is decided as one, though it cannot be pinned."""
    return "batch" in leg.flags and any(spelling in body for spelling in _SEND_SPELLINGS)
