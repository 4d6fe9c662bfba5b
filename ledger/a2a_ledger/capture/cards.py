"""Card fetches under the guard: each answer is recorded before anybody acts on it.

A fetch is conditional when a validator is known; a 304 is recorded as "not modified, by tag E, bytes
of fetch F" and is answered to the SDK from our own store, so that the SDK never sees one. One
fetch a card at a time: who asks for the same meanwhile, by the same client, gets the same answer.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from a2a_ledger.capture.attribution import peer_of_card_at
from a2a_ledger.capture.card_record import card_ask_of
from a2a_ledger.capture.failures import describe_failure
from a2a_ledger.capture.known_schemes import KnownSchemes
from a2a_ledger.capture.method_card import MethodRoute, card_in, method_card_event
from a2a_ledger.capture.not_modified import validator_confirmed
from a2a_ledger.capture.peerview import kept_card
from a2a_ledger.capture.recorder import CardAsk, card_event, card_failure_event
from a2a_ledger.capture.route import as_read, redirects
from a2a_ledger.card import Card, read_card
from a2a_ledger.codec import Hole
from a2a_ledger.contract import contract_of, diff
from a2a_ledger.events import CardFetchFailed
from a2a_ledger.wire import header

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from a2a_ledger.capture.attribution import Peer
    from a2a_ledger.capture.failures import Failure
    from a2a_ledger.capture.peerview import KeptCard, PeerViews
    from a2a_ledger.capture.reader import LogReader
    from a2a_ledger.capture.redact import Redactor
    from a2a_ledger.capture.route import Answer, Redirected, Route
    from a2a_ledger.capture.served_cookies import ServedCookies
    from a2a_ledger.codec import Record
    from a2a_ledger.contract import Diff, Profile
    from a2a_ledger.events import Ref
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.store import Appended

    Write = Callable[[list[Any]], Awaitable[list[Appended]]]

_OK = 200
_NOT_MODIFIED = 304
_SUCCESS = range(200, 300)
_ROUTES = 1024
_WITH_HOLES = 8  # bodies kept in memory because the store, rightly, does not have all of them


class HandedOut(NamedTuple):
    """What the application gets for its card GET."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


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

    @property
    def redirects(self) -> bool:
        """Say whether the answer lies elsewhere: whoever asked goes on there, or gives up."""
        return redirects(self.status, self.headers)

    def outcome(self, old: Card, profile: Profile) -> tuple[str, Diff | None]:
        """Say what this means for a client that acts on `old`: the member `refetch.outcome`, and the change.

        A 304 speaks of the card that was validated: it lets the client's contract stand only if that is its contract.
        """
        if self.card is None or not self.card.is_card:
            return "failed", None
        contract, mine = contract_of(self.card), contract_of(old)
        if contract is None:
            return "undecidable", None
        if self.status == _NOT_MODIFIED and mine is not None and contract.hash == mine.hash:
            return "304", None
        change = diff(old, self.card, profile)
        verdict = change.verdict
        return ("same" if verdict in {"same-bytes", "same-document", "prose"} else verdict), change


class CardDesk:
    """Fetches cards for one guard and remembers how each was asked for."""

    def __init__(self, ledger: ContractLedger, views: PeerViews, write: Write, redact: Redactor | None = None) -> None:
        self.schemes = KnownSchemes(ledger.store, views)
        self._redact = redact
        self._ledger = ledger
        self._views = views
        self._write = write
        self._routes: OrderedDict[tuple[Any, ...], Route] = OrderedDict()
        self._flights: dict[tuple[Any, ...], asyncio.Task[Fetched]] = {}
        self._bodies: OrderedDict[str, bytes] = OrderedDict()

    # ---- routes

    def remember(self, route: Route) -> None:
        """Take note of how the application asks for this card."""
        key = (id(route.transport), route.ask.peer, *route.ask.key(self._ledger))
        route.loop = asyncio.get_running_loop()
        self._routes[key] = route
        self._routes.move_to_end(key)
        if len(self._routes) > _ROUTES:
            self._routes.popitem(last=False)

    def forget(self, transport: object) -> None:
        """Take note that a transport was closed: nothing is asked through it any more."""
        for key in [key for key, route in list(self._routes.items()) if route.transport is transport]:
            self._routes.pop(key, None)

    def refresh(
        self, transport: object, url: str, headers: Sequence[tuple[str, str]], mine: Route | None = None
    ) -> None:
        """Take note of the credentials that a request carries: its caller's cards of that origin are asked for so.

        One client may serve several callers: a card that was asked for with other credentials is another caller's.

        Args:
            transport: that it goes through.
            url: of the request.
            headers: of the request.
            mine: how the card that the call is made on was asked for; None: not known, and then only where all cards
                of that origin were asked for with the same credentials.
        """
        routes = [route for route in list(self._routes.values()) if route.serves(transport, url)]
        if mine is not None and mine.serves(transport, url):
            routes = [mine, *(route for route in routes if route.credentials == mine.credentials)]
        elif len({route.credentials for route in routes if route.credentials}) > 1:
            return
        for route in routes:
            route.refresh(headers)

    def route_of_peer(self, peer: str) -> Route | None:
        """Return the newest way to this peer's card, the public one first."""
        here = asyncio.get_running_loop()
        routes = [
            route for route in reversed(self._routes.values()) if route.ask.peer == peer and route.loop in {None, here}
        ]
        return min(routes, key=lambda route: route.ask.source != "well-known", default=None)

    def ask_of(
        self,
        url: str,
        headers: Sequence[tuple[str, str]],
        *,
        of: Redirected | None = None,
        whose: Peer | None = None,
        served: ServedCookies | None = None,
    ) -> CardAsk:
        """Read a card GET as it was asked.

        Args:
            url: as asked.
            headers: of the request.
            of: the request that was redirected, where this one follows it: it is part of that question, wherever it
                leads, so that a peer gets round no contract that is in force by having its card lie elsewhere.
            whose: the peer whose card it is, where the caller knows.
            served: see `card_ask_of`.
        """
        peer = whose or peer_of_card_at(self._ledger.store, url)
        asked = card_ask_of(url, headers, peer=peer, places=self.schemes.places_of(peer.id), served=served)
        return asked if of is None else replace(of.ask, etag=asked.etag, modified_since=asked.modified_since)

    # ---- fetches

    async def fetch(
        self,
        route: Route,
        *,
        purpose: str,
        validate: KeptCard | None,
        task: str | None = None,
        first_hand: bool = False,
    ) -> Fetched:
        """Ask for a card, once for all who ask the same meanwhile.

        Args:
            route: how to ask.
            purpose: discovery, pre-send, lazy, diagnostic or application.
            validate: the kept answer whose validators make this conditional; None for a plain GET.
            task: the task in whose context it is asked.
            first_hand: the question is the application's own request, which is waiting.
        """
        if validate is not None and self.whole_body(validate.bytes_of) is None:
            validate = None  # a 304 would leave us with bytes that we do not have
        ask = route.ask.for_purpose(purpose, validate=validate, task=task, as_asked=first_hand)
        by = route.joins
        if by is None:
            by = id(route.transport) if route.transport is not None else id(route)
        own = tuple(sorted(route.own.headers)) if first_hand else ()
        asked = (ask.peer, ask.key(self._ledger), purpose, ask.etag, ask.modified_since, route.own.url)
        key = (asyncio.get_running_loop(), by, asked, own)
        flight = self._flights.get(key)
        if flight is None or flight.done():
            flight = asyncio.create_task(self._fetch(route, ask, validate, first_hand=first_hand))
            self._flights[key] = flight
            flight.add_done_callback(lambda _: self._flights.pop(key, None))
        return await asyncio.shield(flight)  # a caller that gives up must not take the others' answer away

    async def _fetch(self, route: Route, ask: CardAsk, validate: KeptCard | None, *, first_hand: bool) -> Fetched:
        try:
            if isinstance(route, MethodRoute):
                return await route.call(ask)
            if first_hand:
                answer = await route.first_hand(ask, conditional=validate is not None)
            else:
                answer = await route.again(ask)
        except Exception as error:  # noqa: BLE001 - whatever stopped it is recorded and judged as "failed"
            event, blobs = card_failure_event(
                ask, failure=describe_failure(error), at=self._ledger, redactor=self._redact
            )
            ref, _ = await self._record(ask, event, blobs)
            return Fetched(ref, None, None, (), b"", None, error)
        if not first_hand:  # asked as the client asks now, which may be with another credential than before
            places = self.schemes.places_of(ask.peer)
            now = card_ask_of(ask.full_url, answer.sent, source=ask.source, places=places, served=route.served)
            ask = replace(
                ask,
                caller=now.caller,
                secrets=now.secrets,
                telling=now.telling,
                selecting=now.selecting,
                version=now.version,
            )
        return await self._answered(ask, answer, validate)

    async def _answered(self, ask: CardAsk, answer: Answer, validate: KeptCard | None) -> Fetched:
        """Record one answer to a card GET and return it read."""
        kept, content = None, answer.body
        if answer.status == _NOT_MODIFIED and ask.conditional:
            kept, content = self._validated(ask, validate, answer.headers)
        event, blobs = card_event(
            ask,
            status=answer.status,
            headers=answer.headers,
            body=answer.body,
            kept=kept,
            at=self._ledger,
            answered_url=answer.url,
            is_unread=answer.is_unread,
            over=answer.over,
            redactor=self._redact,
        )
        ref, record = await self._record(ask, event, blobs)
        if kept is None and answer.status not in _SUCCESS:
            return Fetched(ref, None, answer.status, tuple(answer.headers), content, None)
        if answer.over is not None:  # what is held of it is no whole body, for nobody
            return Fetched(ref, answer.over.card(b""), answer.status, tuple(answer.headers), b"", None)
        return self._read(ref, record, answer.status, answer.headers, content, kept)

    def _read(  # noqa: PLR0913, PLR0917 - what an answer about a card is
        self,
        ref: Ref,
        record: Record | None,
        status: int,
        headers: Sequence[tuple[str, str]],
        content: bytes,
        before: KeptCard | None,
    ) -> Fetched:
        """Return a recorded answer about a card; bytes that the store, rightly, has not all of are kept in memory."""
        if record is not None and before is None and has_holes(record):
            self._bodies[ref["c"]] = content
            if len(self._bodies) > _WITH_HOLES:
                self._bodies.popitem(last=False)
        kept = kept_card(record, before=before) if record is not None else None
        return Fetched(ref, read_card(content), status, tuple(headers), content, kept)

    # ---- cards that a method answers with

    async def answered_within(self, ask: CardAsk, status: int, body: bytes, *, failed: bool, within: Ref) -> Fetched:
        """Record the card in a method's answer, or that none came.

        Args:
            ask: what was asked.
            status: HTTP status.
            body: the whole answer.
            failed: it is an error in the terms of the method.
            within: the message that holds it.
        """
        card = card_in(body)
        event, blobs = method_card_event(
            ask, status=status, card=card, failed=failed, within=within, at=self._ledger, redactor=self._redact
        )
        ref, record = await self._record(ask, event, blobs)
        if isinstance(event, CardFetchFailed):
            return Fetched(ref, None, status, (), body, None)
        return self._read(ref, record, status, (), card, None)

    async def found_within(self, ask: CardAsk, card: bytes, *, within: Ref) -> Fetched:
        """Record a card that was found in an answer that was recorded before.

        Args:
            ask: what was asked.
            card: its exact octets.
            within: the message that holds it.
        """
        event, blobs = method_card_event(
            ask, status=_OK, card=card, failed=False, within=within, at=self._ledger, redactor=self._redact
        )
        ref, record = await self._record(ask, event, blobs)
        return self._read(ref, record, _OK, (), card, None)

    async def failed_within(self, ask: CardAsk, failure: Failure, *, within: Ref) -> Fetched:
        """Record that a method which answers with a card got no answer."""
        event, blobs = card_failure_event(ask, failure=failure, at=self._ledger, redactor=self._redact)
        ref, _ = await self._record(ask, replace(event, within=within), blobs)
        return Fetched(ref, None, None, (), b"", None)

    def _validated(
        self, ask: CardAsk, validate: KeptCard | None, headers: Sequence[tuple[str, str]]
    ) -> tuple[KeptCard | None, bytes]:
        """Return the kept answer that a 304 speaks of, and its bytes; None where we have not got them."""
        confirmed = validator_confirmed(ask.etag, ask.modified_since, headers)
        kept = validate if confirmed is not None else None
        if validate is None and confirmed is not None:  # the application's own validators
            kept = self._views.of(ask.peer).with_validator(ask.key(self._ledger), *confirmed)
        body = self.whole_body(kept.bytes_of) if kept else None
        return (kept, body) if kept is not None and body is not None else (None, b"")

    async def _record(self, ask: CardAsk, event: Any, blobs: Any) -> tuple[Ref, Record | None]:  # noqa: ANN401 - what the recorder built
        draft = self._ledger.draft(event, stream=f"peer:{ask.peer}", blobs=blobs)
        appended = await self._write([draft])
        if not appended:
            return {"c": "", "stream": draft.stream, "ver": -1}, None
        ref = appended[0].ref
        return ref, read_event(self._ledger.store, ref)

    # ---- what is kept

    def whole_body(self, ref: Ref) -> bytes | None:
        """Return the exact bytes that one fetch brought; None where a hole was cut into what is stored of them."""
        if (held := self._bodies.get(ref["c"])) is not None:
            return held
        record = read_event(self._ledger.store, ref)
        return None if record is None or has_holes(record) else record.content("body")

    def kept_out(self, kept: KeptCard, body: bytes) -> HandedOut:
        """Return a kept card as the answer that it was, a cookie apart, with the validators that stand now."""
        record = read_event(self._ledger.store, kept.bytes_of)
        headers = [] if record is None else _kept_headers(record)
        for name, value in (("etag", kept.etag), ("last-modified", kept.last_modified)):
            if value is not None:
                headers = [pair for pair in headers if pair[0] != name]
                headers.append((name, value))
        if not header(headers, "content-type"):
            headers.append(("content-type", "application/json"))
        status = record.data.get("status") if record is not None else None
        return HandedOut(status if isinstance(status, int) and status in _SUCCESS else 200, _decoded(headers), body)

    def fetched_out(self, fetched: Fetched) -> HandedOut:
        """Return an answer as it came, after content decoding.

        Raises:
            BaseException: there was none; what the transport raised.
        """
        if fetched.error is not None:
            raise fetched.error
        return HandedOut(fetched.status or 0, _decoded(fetched.headers), fetched.body)


def read_event(reader: LogReader, ref: Ref) -> Record | None:
    """Return the event that another one refers to."""
    found = reader.read_stream(ref["stream"], gt=ref["ver"] - 1, limit=1) if ref["ver"] >= 0 else []
    return found[0] if found else None


def has_holes(record: Record) -> bool:
    """Say whether something was cut out of a record's body."""
    return any(isinstance(part, Hole) for part in record.stored_parts("body") or ())


def _kept_headers(record: Record) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for role in sorted(role for role in record.blobs if role.startswith("header.")):
        if not any(isinstance(part, Hole) for part in record.stored_parts(role) or ()):
            name, value = json.loads(record.content(role) or b'["",""]')
            if name not in {"", "set-cookie", "location", "www-authenticate"}:
                found.append((name, value))
    return found


def _decoded(headers: Sequence[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    """Return the headers of a body that is handed on whole and, where that can be done here, decoded."""
    return [pair for pair in as_read(headers) if pair[0].lower() not in {b"transfer-encoding", b"connection", b"age"}]
