"""Card fetches under the guard: each answer is recorded before anybody acts on it.

A fetch is conditional when a validator is known; a 304 is recorded as "not modified, by tag E, bytes
of fetch F" and is answered to the SDK from our own store, so that the SDK never sees one. One
fetch a card at a time: who asks meanwhile gets the same answer.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx

from a2a_ledger.capture.failures import describe_failure
from a2a_ledger.capture.recorder import CardAsk, card_event, card_failure_event
from a2a_ledger.card import Card, read_card
from a2a_ledger.contract import contract_of, diff

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from a2a_ledger.capture.peerview import KeptCard, PeerViews
    from a2a_ledger.capture.reader import LogReader
    from a2a_ledger.contract import Diff, Profile
    from a2a_ledger.events import Ref
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.store import Appended

    Send = Callable[[httpx.Request], Awaitable[httpx.Response]]
    Write = Callable[[list[Any]], Awaitable[list[Appended]]]

_NOT_MODIFIED = 304
_SUCCESS = range(200, 300)
_GET_HEADERS = ("accept", "authorization", "cookie", "user-agent", "a2a-version", "a2a-extensions", "x-a2a-extensions")


@dataclass(slots=True)
class Route:
    """How one card is asked for: as the application did it last."""

    ask: CardAsk
    send: Send
    headers: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    extensions: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Fetched:
    """What one card GET brought: `card` of a 2xx or a 304, `kept` when it is an answer about the card."""

    record: Ref
    card: Card | None
    status: int | None
    headers: tuple[tuple[str, str], ...]
    body: bytes
    kept: KeptCard | None
    error: BaseException | None = None

    def outcome(self, old: Card, profile: Profile) -> tuple[str, Diff | None]:
        """Say what this means for a client that acts on `old`: the member `refetch.outcome`, and the change."""
        if self.status == _NOT_MODIFIED:
            return "304", None
        if self.card is None or not self.card.is_card:
            return "failed", None
        if contract_of(self.card) is None:
            return "undecidable", None
        change = diff(old, self.card, profile)
        verdict = change.verdict
        same = verdict in {"same-bytes", "same-document", "prose"}
        return ("same" if same else verdict), change


class CardDesk:
    """Fetches cards for one guard and remembers how each was asked for."""

    def __init__(self, ledger: ContractLedger, views: PeerViews, write: Write) -> None:
        self._ledger = ledger
        self._views = views
        self._write = write
        self._routes: dict[tuple[str, str, str], Route] = {}
        self._flights: dict[tuple[str, str, str], asyncio.Task[Fetched]] = {}

    def remember(self, route: Route) -> None:
        """Take note of how the application asks for this card."""
        self._routes[_key(route.ask)] = route

    def route_to(self, peer: str, source: str, caller: str) -> Route | None:
        """Return how this card was asked for last in this process."""
        return self._routes.get((peer, source, caller))

    def route_of_peer(self, peer: str) -> Route | None:
        """Return some way to this peer's card, the public one first."""
        routes = [route for key, route in self._routes.items() if key[0] == peer]
        return min(routes, key=lambda route: route.ask.source != "well-known", default=None)

    async def fetch(self, route: Route, *, purpose: str, validate: KeptCard | None, task: str | None = None) -> Fetched:
        """Ask for a card, once for all who ask meanwhile.

        Args:
            route: how to ask.
            purpose: discovery, pre-send, lazy, diagnostic or application.
            validate: the kept answer whose validators make this conditional; None for a plain GET.
            task: the task in whose context it is asked.
        """
        key = _key(route.ask)
        flight = self._flights.get(key)
        if flight is None or flight.done():
            flight = asyncio.create_task(self._fetch(route, purpose, validate, task))
            self._flights[key] = flight
            flight.add_done_callback(lambda _: self._flights.pop(key, None))
        return await asyncio.shield(flight)  # a caller that gives up must not take the others' answer away

    async def _fetch(self, route: Route, purpose: str, validate: KeptCard | None, task: str | None) -> Fetched:
        ask = route.ask.for_purpose(purpose, validate=validate, task=task)
        request = _request(route, ask)
        try:
            response = await route.send(request)
            body = await _read(response)
        except Exception as error:  # noqa: BLE001 - whatever stopped it is recorded and judged as "failed"
            event, blobs = card_failure_event(ask, failure=describe_failure(error), at=self._ledger)
            ref = await self._record(ask, event, blobs)
            return Fetched(ref, None, None, (), b"", None, error)
        return await self.record_answer(ask, response.status_code, _pairs(response.headers), body, validate)

    async def record_answer(
        self, ask: CardAsk, status: int, headers: list[tuple[str, str]], body: bytes, validate: KeptCard | None
    ) -> Fetched:
        """Record one answer to a card GET and return it read."""
        kept_body = read_bytes(self._ledger.store, validate.bytes_of) if validate and status == _NOT_MODIFIED else None
        event, blobs = card_event(ask, status=status, headers=headers, body=body, kept=validate, at=self._ledger)
        ref = await self._record(ask, event, blobs)
        content = kept_body if kept_body is not None else body
        newest = self._views.of(ask.peer).newest(ask.source, ask.caller)
        kept = newest if newest is not None and newest.fetch["c"] == ref["c"] else None
        answered = kept_body is not None or status in _SUCCESS
        return Fetched(ref, read_card(content) if answered else None, status, tuple(headers), content, kept)

    async def _record(self, ask: CardAsk, event: Any, blobs: Any) -> Ref:  # noqa: ANN401 - what the recorder built
        draft = self._ledger.draft(event, stream=f"peer:{ask.peer}", blobs=blobs)
        appended = await self._write([draft])
        return appended[0].ref if appended else {"c": "", "stream": draft.stream, "ver": -1}


def read_bytes(reader: LogReader, ref: Ref) -> bytes:
    """Return the card bytes that one fetch brought."""
    found = reader.read_stream(ref["stream"], gt=ref["ver"] - 1, limit=1)
    return (found[0].content("body") or b"") if found else b""


def _key(ask: CardAsk) -> tuple[str, str, str]:
    return ask.peer, ask.source, ask.caller


def _request(route: Route, ask: CardAsk) -> httpx.Request:
    kept = [(name, value) for name, value in route.headers if name.lower() in _GET_HEADERS]
    kept.append(("accept-encoding", "identity"))
    if ask.etag is not None:
        kept.append(("if-none-match", ask.etag))
    elif ask.modified_since is not None:
        kept.append(("if-modified-since", ask.modified_since))
    if ask.purpose != "discovery":
        kept.append(("cache-control", "no-cache"))
    return httpx.Request("GET", ask.full_url, headers=kept, extensions=route.extensions)


async def _read(response: httpx.Response) -> bytes:
    try:
        return await response.aread()
    finally:
        await response.aclose()


def _pairs(headers: httpx.Headers) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers.raw]
