"""Whose fetch is a client's card? Told for certain only by the request that is waiting to be sent.

A guard may serve many httpx clients, and several of them may have asked for the same card, each as another caller or
on another event loop. Which one an SDK client sends through is seen when its request comes; until then the guard
asks for no card on its behalf, so that it never asks with somebody else's credentials.
"""

from __future__ import annotations

import asyncio
import copy
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import httpx

from a2a_ledger.address import origin_of
from a2a_ledger.capture.method_card import AGAIN
from a2a_ledger.capture.received import octets_of
from a2a_ledger.capture.route import OURS, is_credential
from a2a_ledger.card import MAX_CARD

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from weakref import ref

    from a2a_ledger.capture.bound import BoundCard
    from a2a_ledger.capture.desk import Desk
    from a2a_ledger.capture.route import Route, Send
    from a2a_ledger.capture.served_cookies import ServedCookies
    from a2a_ledger.wire import Headers

_LONGEST = 10.0
"""Seconds that a request which waits to be sent waits for an answer about its card."""

_FLOW = 1.0
"""Seconds in which a client that is asked brings some request to a guarded transport, or is taken to be blocked."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A request that a guarded transport holds back: what it goes through, where to, with which headers."""

    transport: httpx.AsyncBaseTransport
    send: Send
    client: ref[httpx.AsyncClient] | None
    url: str
    headers: Headers
    served: ServedCookies | None = None

    def asks_as_caller(self, route: Route) -> list[tuple[str, str]]:
        """Return the headers with which its own caller asks for a card; no other caller's credentials are in them.

        A card that was asked for without a credential is another one with it: only the kinds of credentials that it
        was asked for with are taken from the request. To another origin they do not go: there it asks as its
        client asked before, or without any.
        """
        before = route.headers if route.transport is self.transport else _without_credentials(route.headers)
        if origin_of(route.ask.full_url) != origin_of(self.url):
            return before
        asked = {name.lower() for name, _ in route.headers if is_credential(name)}
        now = [(name, value) for name, value in self.headers if name.lower() in asked]
        newer = {name.lower() for name, _ in now}
        return [*(pair for pair in before if pair[0].lower() not in newer), *now]


def is_certain(bound: BoundCard) -> bool:
    """Say whether the card can be asked for before the client's request is seen: by its own client, on this loop."""
    route = bound.route
    if route is None:
        return True
    client = route.client() if route.client is not None else None
    is_open = route.client is None or (client is not None and not client.is_closed)
    return bound.owned and is_open and route.loop in {None, asyncio.get_running_loop()}


def own(desk: Desk, bound: BoundCard, waiting: Waiting) -> None:
    """Bind a client's card to the way that the client's own request goes, if it is not yet.

    Of the fetches of this card over that transport the one counts that was made with the request's credentials; if
    there is none, the card is asked for from now on as the request is sent.
    """
    if bound.route is None or (bound.owned and bound.route.transport is waiting.transport):
        return
    same = [
        (route.carried_by(waiting.headers), one.kept, route)
        for one in desk.recent_cards(waiting.transport)
        if (route := one.route) is not None and route.transport is waiting.transport and _is_same(one, bound)
    ]
    if same:
        carried, kept, route = max(same, key=lambda found: found[0])  # the first of equals, which is the newest
        if carried >= 0 or bound.route.transport is not waiting.transport:
            bound.kept, bound.route = kept, copy.copy(route)
    else:
        bound.route = replace(
            bound.route,
            send=waiting.send,
            headers=waiting.asks_as_caller(bound.route),
            transport=waiting.transport,
            client=waiting.client,
            served=waiting.served,
            loop=asyncio.get_running_loop(),
            apart=None,
        )
    bound.owned = True


def own_copy(desk: Desk, bound: BoundCard, waiting: Waiting) -> BoundCard:
    """Return a card that was found for a request, bound to the way that the request goes."""
    if bound.route is None or bound.route.transport is waiting.transport:
        return bound
    mine = bound.for_new_client()
    own(desk, mine, waiting)
    return desk.remember(mine)


def while_waiting(route: Route, waiting: Waiting) -> Route:
    """Return how to ask for a card while a request waits: as its client asks, in bounded time.

    The request may wait inside of its client's authentication flow or hooks, which may hold a lock across it: where
    they do not bring another request to a transport, the card is asked for below the client, with the credentials
    of the request that waits. These are not spent otherwise: some are good for one request alone. What has begun in
    the client is never cancelled: it may be waiting for the answer that carries its next refresh token.

    Requests that wait at once with the same credentials ask once. No other question is joined: one that is not
    bounded in time may wait for this very request.
    """
    client = waiting.client() if waiting.client is not None else None
    headers = waiting.asks_as_caller(route)
    asking = _Asking(client, headers, waiting) if client is not None else None
    return replace(
        route,
        send=_in_time(waiting.send),
        headers=headers,
        transport=None,
        joins=(waiting.transport, frozenset((name.lower(), value) for name, value in headers if is_credential(name))),
        client=cast("ref[httpx.AsyncClient] | None", (lambda: asking) if asking is not None else None),
        served=waiting.served,
    )


def nobody_waits(request: httpx.Request) -> bool:
    """Take note that a request has come to a guarded transport; say whether it asks for a card in vain.

    That is so where it was held up so long that the card was asked for otherwise, or given up.
    """
    asked = _ASKED.get()
    if asked is None:
        return False
    asked.moves()
    return asked.given_up and (OURS in request.extensions or AGAIN in request.extensions)


class _Asked:
    """A question for a card that was handed to a client, with its authentication flow and hooks."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.moved = asyncio.Event()
        """Some request of it has come to a guarded transport: its own, or one for a token."""
        self.given_up = False

    def moves(self) -> None:
        self._loop.call_soon_threadsafe(self.moved.set)


_ASKED: ContextVar[_Asked | None] = ContextVar("asked_of_client", default=None)
_running: set[asyncio.Task[httpx.Response]] = set()
"""What clients are doing with a question, whoever still waits for it."""


class _Asking:
    """An httpx client that asks in bounded time, and below it where its flow or its hooks are blocked."""

    def __init__(self, client: httpx.AsyncClient, outside: Headers, waiting: Waiting) -> None:
        self._client = client
        self._synchronous = not isinstance(cast("object", client), httpx.AsyncClient)
        self._outside = outside
        """The headers with which it asks below the client."""
        self._waiting = waiting

    def __getattr__(self, name: str) -> object:
        return getattr(self._client, name)

    async def send(self, request: httpx.Request, *, follow_redirects: bool | None = None) -> httpx.Response:
        follow = self._client.follow_redirects if follow_redirects is None else follow_redirects
        if not self._synchronous:  # such a flow holds its lock in a thread, where nobody could wait beside it
            answer = await self._in_client(request, follow=follow)
            if answer is not None:
                return answer
        mine = httpx.Request(  # the client may still come to the other one
            request.method, request.url, headers=request.headers, content=request.content, extensions=request.extensions
        )
        for name, value in self._outside:
            if is_credential(name):
                mine.headers[name] = value
        asking = self._client
        if origin_of(str(request.url)) == origin_of(self._waiting.url):  # else another transport may lead there
            jar = self._client.cookies.jar
            asking = httpx.AsyncClient(transport=self._waiting.transport, cookies=jar, trust_env=False)
        return await _bounded(asking.send(mine, auth=None, follow_redirects=follow), request)

    async def _in_client(self, request: httpx.Request, *, follow: bool) -> httpx.Response | None:
        """Ask as the client asks; None: it is blocked, and nothing was asked."""
        asked, context = _Asked(), copy_context()
        context.run(_ASKED.set, asked)
        asking = asyncio.create_task(self._client.send(request, follow_redirects=follow), context=context)
        _running.add(asking)
        asking.add_done_callback(_ended)
        moved = asyncio.create_task(asked.moved.wait())
        try:
            await asyncio.wait({asking, moved}, timeout=_FLOW, return_when=asyncio.FIRST_COMPLETED)
            if asked.moved.is_set() or asking.done():
                return await _bounded(asyncio.shield(asking), request)
            return None
        finally:
            moved.cancel()
            asked.given_up = not asking.done()


def _ended(asking: asyncio.Task[httpx.Response]) -> None:
    _running.discard(asking)
    if not asking.cancelled():
        asking.exception()  # whoever waits is told; it may be that nobody does


def _in_time(send: Send) -> Send:
    async def _whole(request: httpx.Request) -> httpx.Response:
        response = await send(request)
        try:
            body = b"".join([octets async for octets in octets_of(response, MAX_CARD)])
        finally:
            await response.aclose()
        stream = httpx.ByteStream(body)
        return httpx.Response(response.status_code, headers=response.headers.raw, stream=stream, request=request)

    return lambda request: _bounded(_whole(request), request)


async def _bounded(answer: Awaitable[httpx.Response], request: httpx.Request) -> httpx.Response:
    try:
        async with asyncio.timeout(_LONGEST):
            return await answer
    except TimeoutError as error:
        raise httpx.ReadTimeout(f"no answer about the card within {_LONGEST:g} s", request=request) from error


def _is_same(one: BoundCard, other: BoundCard) -> bool:
    return (one.peer, one.kept.key.place, one.kept.raw_hash) == (other.peer, other.kept.key.place, other.kept.raw_hash)


def _without_credentials(headers: Headers) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers if not is_credential(name)]
