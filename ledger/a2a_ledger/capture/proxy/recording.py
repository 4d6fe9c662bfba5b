"""What the proxy sends on, recorded as a guarded client records it; in "enforce" it refuses what the guard would.

In "observe" nothing is added to what passes, and nothing kept back: cards pass as they were asked for, and the
question before a send is put and recorded without a card being asked for. Bodies pass with bounded memory.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import httpx

from a2a_ledger.capture.asking import Asked, Asking
from a2a_ledger.capture.attribution import urls_of_interface
from a2a_ledger.capture.bound import forget_sent
from a2a_ledger.capture.coding import can_unpack, codings_of
from a2a_ledger.capture.desk import Desk
from a2a_ledger.capture.failures import describe_failure
from a2a_ledger.capture.leaving import Outgoing
from a2a_ledger.capture.off_loop import read_plain
from a2a_ledger.capture.passed_body import AsItComes, Spooled
from a2a_ledger.capture.proxy.clients import ClientArrivals, ClientBuilds, Clients, OneForAll, given
from a2a_ledger.capture.proxy.passed_card import PassedRoute
from a2a_ledger.capture.proxy.readers import NOBODY, Readers, asking
from a2a_ledger.capture.proxy.recalled import Recall
from a2a_ledger.capture.recorder import is_stream
from a2a_ledger.capture.route import Route, pairs
from a2a_ledger.capture.sends import Sends
from a2a_ledger.capture.server.spool import Spool, read_leg
from a2a_ledger.capture.streams import RecordedStream
from a2a_ledger.capture.transport import GuardTransport
from a2a_ledger.capture.unread import pass_unread
from a2a_ledger.card import MAX_CARD
from a2a_ledger.errors import ContractDivergenceError, LedgerError

if TYPE_CHECKING:
    from a2a_ledger.capture.bound import BoundCard
    from a2a_ledger.capture.card_record import CardAsk
    from a2a_ledger.capture.exchange import Exchange
    from a2a_ledger.capture.peerview import KeptCard
    from a2a_ledger.capture.proxy.addresses import Addresses
    from a2a_ledger.capture.redact import Redactor
    from a2a_ledger.capture.route import Redirected
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.wire import Headers

_log = logging.getLogger(__name__)

CLIENT = "a2a_ledger_client"
"""Request extension: the `Client` that sends it."""

LARGE = "a2a_ledger_large"
"""Request extension: the spool of a body that is too long to be read."""

TARGET = "a2a_ledger_target"
"""Request extension: the url that is really sent to, where the card names the proxy's own."""

ANY_VERSION = ("1.0", "0.3", "0.2", "0.1")
"""Protocol versions of the clients behind a proxy: it is made for all of them."""

_OF_A_BODY = {"content-length", "content-type", "transfer-encoding"}
WITHOUT_BODY = frozenset({204, 304})
"""Statuses of answers that have no body whatever their headers say."""

_MAX_LISTED = 1024
"""Targets whose url is remembered: a query is the client's to choose."""


TOLD = "a2a_ledger.told"
"""Extension of a request: a `Told`, for whoever has to say what became of it."""


@dataclass(slots=True)
class Told:
    """What the ledger says of one request."""

    exchange: Exchange | None = None


class Watching(Asking):
    """Puts the question before a send, and never asks a peer for anything."""

    async def ask(  # noqa: PLR0913 - what a question is about
        self,
        peer: str,
        card: KeptCard | None,
        bound: BoundCard | None,
        *,
        state: str,
        task: str | None = None,  # noqa: ARG002 - of the question that this one stands for
        first_hand: bool = False,  # noqa: ARG002 - as above
    ) -> Asked:
        """Put the first question; a card that it asks for is asked for by nobody."""
        return self.question(peer, card, bound, state=state)


class WatchedSends(Sends):
    """Opens sends without ever booking a fetch."""

    def _book_lazy(self, peer: str, route: Route | None) -> None:
        """Leave the peer alone."""


class ProxyTransport(GuardTransport):
    """Sends requests on to the agent, recorded."""

    def __init__(
        self, inner: httpx.AsyncBaseTransport, desk: Desk, sends: Sends, question: Asking, addresses: Addresses
    ) -> None:
        self._readers = Readers(desk.ledger, addresses.upstream, as_one=desk.enforces)
        recall = Recall(desk, self._readers, self, inner.handle_async_request)
        clients = None if desk.enforces else Clients(self._readers, recall, desk.ledger.store)
        super().__init__(inner, desk, sends, ClientBuilds(desk, question, clients))
        if clients is None:
            self._arrivals = OneForAll(desk, recall, addresses.is_upstream)
        else:
            self._arrivals = ClientArrivals(desk, self, clients, addresses.leads_here)
        self._addresses = addresses
        self._listed: dict[bytes, httpx.URL] = {}

    @classmethod
    def over(
        cls,
        inner: httpx.AsyncBaseTransport,
        ledger: ContractLedger,
        addresses: Addresses,
        *,
        rewrites: bool,
        redact: Redactor | None = None,
    ) -> ProxyTransport:
        """Make one.

        Args:
            inner: what really sends.
            ledger: where everything is recorded.
            addresses: the agent's and the proxy's.
            rewrites: the cards that pass are rewritten, so that no client is sent to the agent itself.
            redact: the user's own redaction.
        """
        desk = Desk(ledger, client_versions=ANY_VERSION, redact=redact, for_many=True)
        question = Asking(desk) if desk.enforces else Watching(desk)
        sends = Sends(desk, question) if desk.enforces else WatchedSends(desk, question)
        made = cls(Redirecting(inner), desk, sends, question, addresses)
        made.rewrites = rewrites
        return made

    rewrites = False
    most_of_card = MAX_CARD  # where cards are held to their end

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request on, recorded; see `GuardTransport`."""
        asking.set(request.extensions.get(CLIENT, NOBODY))
        given.set(None)
        with self._desk.failing_as_chosen():
            await self._readers.prepare()
        spool = request.extensions.get(LARGE)
        if not isinstance(spool, Spool):
            return await super().handle_async_request(request)
        headers = pairs(request.headers)
        leg = read_leg(request.method, str(request.url), headers, spool.head, is_whole=False)
        is_coded = bool(codings_of(headers))
        outgoing = Outgoing(leg, headers, spool.head, request.method, tail=spool.tail, is_unread=is_coded)
        exchange = None
        with self._desk.failing_as_chosen():
            exchange = await self._open_unread(outgoing)
        if exchange is None:
            return await self._inner.handle_async_request(request)
        return await self._send(request, exchange)

    def url_of(self, target: bytes) -> httpx.URL:
        """Return the url that a request is recorded under: the agent's, unless its card names the proxy's alone."""
        upstream = self._addresses.upstream_url(target)
        if self.rewrites:
            return upstream
        known = self._listed.get(target)
        if known is None:
            public = httpx.URL(self._addresses.public_url(target))
            known = public if self._is_listed(str(public)) and not self._is_listed(str(upstream)) else upstream
            if len(self._listed) >= _MAX_LISTED:
                self._listed.clear()
            self._listed[target] = known
        return known

    def _is_listed(self, url: str) -> bool:
        store = self._desk.ledger.store
        return any(store.tagged_places(f"lists:{one}", limit=1) for one in urls_of_interface(url))

    # ---- cards

    async def _card(self, request: httpx.Request, follows: Redirected | None) -> httpx.Response:
        self._listed.clear()
        if self._desk.enforces:
            return await super()._card(request, follows)
        desk, headers = self._desk, pairs(request.headers)
        ask = self._signed(desk.cards.ask_of(str(request.url), headers, of=follows))
        if ask.marked:  # the first credential of a peer makes its redaction key, which waits for the disk
            await asyncio.to_thread(desk.ledger.store.keys.redaction_key, ask.peer)
        extensions = {k: v for k, v in request.extensions.items() if k in {"timeout", "target"}}
        bodiless = [(name, value) for name, value in headers if name.lower() not in _OF_A_BODY]
        send = self._inner.handle_async_request
        route = Route(ask, send, bodiless, extensions, self)
        keep, entropy = desk.ledger.settings.keep_body, desk.ledger.entropy
        passing = PassedRoute(ask, send, bodiless, extensions, keep_body=keep, entropy=entropy)
        desk.cards.remember(route)
        # Several clients stand behind one proxy: that one reads the card says nothing about what another does next.
        try:
            fetched = await desk.cards.fetch(passing, purpose="discovery", validate=None, first_hand=True)
        except BaseException:
            passing.close()
            raise
        if fetched.error is not None:
            raise fetched.error
        if fetched.kept is not None and fetched.kept.usable:
            await self._builds.hand_out(fetched.kept, fetched.body, route)
        came = passing.passed
        if came is None:
            raise LedgerError("expected an answer of the agent beside its record, found none")
        return httpx.Response(came.status, headers=came.headers, stream=Spooled(came.body), request=request)

    def _signed(self, ask: CardAsk) -> CardAsk:
        return self._readers.sign(ask)

    # ---- everything else

    async def _send(self, request: httpx.Request, exchange: Exchange) -> httpx.Response:
        told = request.extensions.get(TOLD)
        if isinstance(told, Told):
            told.exchange = exchange
        try:
            response = await self._inner.handle_async_request(request)
        except BaseException as error:
            await self._failed(exchange, error)
            raise
        headers = pairs(response.headers)
        if is_stream(response.status_code, headers):
            if not can_unpack(codings_of(headers)):
                return await pass_unread(response, exchange, self.behind.run)
            stream = RecordedStream(response, exchange, self.behind.run, as_it_came=True)
            return httpx.Response(response.status_code, headers=response.headers, stream=stream)
        ledger = self._desk.ledger
        body = Spool(ledger.settings.keep_body, ledger.entropy)
        if not self._desk.enforces and exchange.card is None and _may_take_long(request, response):
            whole = partial(self._whole, exchange, response.status_code, headers, body)
            broke_off = partial(self._broke_off, exchange, response.status_code, headers, body)
            passed = AsItComes(response, body, whole, broke_off)
            return httpx.Response(response.status_code, headers=response.headers, stream=passed)
        try:
            async for chunk in response.aiter_raw():
                body.add(chunk)
        except BaseException as error:
            await self._broke_off(exchange, response.status_code, headers, body, error)
            raise
        finally:
            await response.aclose()
        try:
            await self._whole(exchange, response.status_code, headers, body)
        except BaseException:
            body.close()
            raise
        return httpx.Response(response.status_code, headers=response.headers, stream=Spooled(body))

    async def _whole(self, exchange: Exchange, status: int, headers: Headers, body: Spool) -> None:
        """Record an answer that came whole."""
        if status >= httpx.codes.BAD_REQUEST:
            forget_sent(exchange.peer)
        plain = await read_plain(headers, body.head) if body.tail is None else None
        if plain is not None:
            await exchange.answered(status, headers, plain)
            return
        await exchange.answered_in_part(status, headers, body.head, body.tail)
        if self._desk.enforces:
            raise ContractDivergenceError(
                f"an answer of {body.size} bytes cannot be read (over the limit of keep_body, or in a content coding "
                "that nobody asked for), so it cannot be held against the contract; it is recorded and kept back",
                task=exchange.task,
                event=exchange.newest,
            )

    async def _broke_off(
        self, exchange: Exchange, status: int, headers: Headers, body: Spool, error: BaseException
    ) -> None:
        """Record what came of an answer before it broke off; the client is told of that alone."""
        forget_sent(exchange.peer)
        plain = await read_plain(headers, body.head)
        came = body.head if plain is None else plain
        try:
            await exchange.cut_short(status, headers, came, describe_failure(error), undecoded=plain is None)
        except LedgerError as unrecorded:
            _log.error("what came of an answer that failed: %s", unrecorded)
        finally:
            body.close()


class Redirecting(httpx.AsyncBaseTransport):
    """Sends to where a request is really meant to go, if its url is only the one that the card names."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request."""
        really = request.extensions.get(TARGET)
        if isinstance(really, httpx.URL):
            headers = [(b"host", really.netloc), *((k, v) for k, v in request.headers.raw if k.lower() != b"host")]
            request = httpx.Request(
                request.method, really, headers=headers, stream=request.stream, extensions=request.extensions
            )
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        """Close what sends."""
        await self._inner.aclose()


def _may_take_long(request: httpx.Request, response: httpx.Response) -> bool:
    """Say whether an answer has a body whose length the agent did not know when it began it."""
    has_body = request.method != "HEAD" and response.status_code not in WITHOUT_BODY
    return has_body and "content-length" not in response.headers
