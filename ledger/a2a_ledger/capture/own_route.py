"""Whose fetch is a client's card? Told for certain only by the request that is waiting to be sent.

A guard may serve many httpx clients, and several of them may have asked for the same card, each as another caller or
on another event loop. Which one an SDK client sends through is seen when its request comes; until then the guard
asks for no card on its behalf, so that it never asks with somebody else's credentials.
"""

from __future__ import annotations

import asyncio
import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import httpx

from a2a_ledger.address import origin_of
from a2a_ledger.capture.route import REACHED, is_credential

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
"""Seconds in which an authentication flow brings the guard's question to its transport, or is taken to be blocked."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A request that a guarded transport holds back: what it goes through, where to, with which headers."""

    transport: object
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

    The request may wait inside of its client's authentication flow, which may hold a lock across it: where the flow
    does not bring a second request to the transport, the card is asked for outside of it, with the credentials
    of the request that waits. These are not spent otherwise: some are good for one request alone.
    """
    client = waiting.client() if waiting.client is not None else None
    headers = waiting.asks_as_caller(route)
    asking = _Asking(client, headers) if client is not None else None
    return replace(
        route,
        send=_in_time(waiting.send),
        headers=headers,
        transport=None,  # nobody else's question is joined: that one may wait for this very request
        client=cast("ref[httpx.AsyncClient] | None", (lambda: asking) if asking is not None else None),
        served=waiting.served,
    )


class _Asking:
    """An httpx client that asks in bounded time, and around its authentication flow where that is blocked."""

    def __init__(self, client: httpx.AsyncClient, outside: Headers) -> None:
        self._client = client
        self._synchronous = not isinstance(cast("object", client), httpx.AsyncClient)
        self._outside = outside
        """The headers with which it asks outside of the flow."""

    def __getattr__(self, name: str) -> object:
        return getattr(self._client, name)

    async def send(self, request: httpx.Request, *, follow_redirects: bool | None = None) -> httpx.Response:
        follow = self._client.follow_redirects if follow_redirects is None else follow_redirects
        if not self._synchronous:  # such a flow holds its lock in a thread, where nobody could stop it
            answer = await self._in_flow(request, follow=follow)
            if answer is not None:
                return answer
        for name, value in self._outside:
            if is_credential(name):
                request.headers[name] = value
        return await _bounded(self._client.send(request, auth=None, follow_redirects=follow), request)

    async def _in_flow(self, request: httpx.Request, *, follow: bool) -> httpx.Response | None:
        """Ask as the client asks; None: its flow is blocked, and nothing was asked."""
        reached = asyncio.Event()
        request.extensions[REACHED] = reached.set
        asking = asyncio.create_task(self._client.send(request, follow_redirects=follow))
        waits = asyncio.create_task(reached.wait())
        try:
            await asyncio.wait({asking, waits}, timeout=_FLOW, return_when=asyncio.FIRST_COMPLETED)
            if reached.is_set() or asking.done():
                return await _bounded(asking, request)
            return None
        finally:
            waits.cancel()
            if not asking.done():
                asking.cancel()


def _in_time(send: Send) -> Send:
    async def _whole(request: httpx.Request) -> httpx.Response:
        response = await send(request)
        await response.aread()
        return response

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
