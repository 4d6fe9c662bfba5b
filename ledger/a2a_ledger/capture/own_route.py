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
from a2a_ledger.capture.route import is_credential

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from weakref import ref

    from a2a_ledger.capture.bound import BoundCard
    from a2a_ledger.capture.desk import Desk
    from a2a_ledger.capture.route import Route, Send
    from a2a_ledger.capture.served_cookies import ServedCookies
    from a2a_ledger.wire import Headers

_LONGEST = 10.0
"""Seconds that a request which waits to be sent waits for an answer about its card."""


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

        To another origin its credentials do not go: there it asks as its client asked before, or without any.
        """
        before = route.headers if route.transport is self.transport else _without_credentials(route.headers)
        if origin_of(route.ask.full_url) != origin_of(self.url):
            return before
        now = [(name, value) for name, value in self.headers if is_credential(name)]
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
    """Return how to ask for a card while a request waits: outside of its client's authentication flow, in bounded time.

    The flow may hold a lock across the request, or wait for a person: asking must not run it once more.
    """
    client = waiting.client() if waiting.client is not None else None
    asking = _Asking(client) if client is not None else None
    return replace(
        route,
        send=_in_time(waiting.send),
        headers=waiting.asks_as_caller(route),
        transport=None,  # nobody else's question is joined: that one may wait for this very request
        client=cast("ref[httpx.AsyncClient] | None", (lambda: asking) if asking is not None else None),
        served=waiting.served,
    )


class _Asking:
    """An httpx client without its authentication flow, and with the time that an answer may take."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    def __getattr__(self, name: str) -> object:
        return getattr(self._client, name)

    async def send(self, request: httpx.Request, *, follow_redirects: bool | None = None) -> httpx.Response:
        follow = self._client.follow_redirects if follow_redirects is None else follow_redirects
        return await _bounded(self._client.send(request, auth=None, follow_redirects=follow), request)


def _in_time(send: Send) -> Send:
    async def _whole(request: httpx.Request) -> httpx.Response:
        response = await send(request)
        await response.aread()
        return response

    return lambda request: _bounded(_whole(request), request)


async def _bounded(answer: Coroutine[object, object, httpx.Response], request: httpx.Request) -> httpx.Response:
    try:
        async with asyncio.timeout(_LONGEST):
            return await answer
    except TimeoutError as error:
        raise httpx.ReadTimeout(f"no answer about the card within {_LONGEST:g} s", request=request) from error


def _is_same(one: BoundCard, other: BoundCard) -> bool:
    return (one.peer, one.kept.key.place, one.kept.raw_hash) == (other.peer, other.kept.key.place, other.kept.raw_hash)


def _without_credentials(headers: Headers) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers if not is_credential(name)]
