"""How one card is asked for: by the transport, with the headers and as the client that the application used."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx

from a2a_ledger.address import origin_of
from a2a_ledger.capture.card_identity import CONDITIONS, CREDENTIAL_HEADERS, selects
from a2a_ledger.capture.coding import can_unpack, codings_of
from a2a_ledger.capture.received import ReceivedBody, octets_of
from a2a_ledger.capture.served_cookies import cookies_in, cookies_of
from a2a_ledger.card import MAX_CARD, too_large_card
from a2a_ledger.wire import header

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Hashable, Mapping
    from weakref import ref

    from a2a_ledger.capture.card_record import CardAsk
    from a2a_ledger.capture.served_cookies import ServedCookies
    from a2a_ledger.card import Card
    from a2a_ledger.codec import Hole
    from a2a_ledger.wire import Headers

    Send = Callable[[httpx.Request], Awaitable[httpx.Response]]

OURS = "a2a_ledger_card"
"""Request extension of a card GET of the guard's own: its transport lets it pass, for it is recorded already. Its
value is a list, to which the transport adds each answer."""

REDIRECTED = "a2a_ledger_redirected"
"""Request extension of a card GET that was answered with a redirect; its value is a `Redirected`. httpx copies it to
the request that follows the redirect, and to no other."""

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_REPLACED = CONDITIONS | {"accept-encoding"}


class OverCard(NamedTuple):
    """What all of an answer is of which only the beginning is held: it is too large to be a card."""

    size: int
    raw_hash: str
    tail: Hole
    """What is not held."""

    def card(self, held: bytes) -> Card:
        """Return what is said of it as a card."""
        return too_large_card(held, self.size, self.raw_hash)


class Answer(NamedTuple):
    """One answer to a card GET: whole body, after content decoding; where it came from; what was really sent.

    Who asked is told from what was sent where the card was asked for: a redirect takes credentials away.
    """

    status: int
    headers: list[tuple[str, str]]
    body: bytes
    url: str
    sent: list[tuple[str, str]]
    is_unread: bool = False
    """The body is as it came, in a coding that cannot be taken off here: nothing of it may be recorded."""
    over: OverCard | None = None
    """What all of it is, where `body` is only the beginning of a card that is too large to be read."""


class Redirected(NamedTuple):
    """A card GET that was answered with a redirect: what it asked for, with which headers, and at which url."""

    ask: CardAsk
    headers: list[tuple[str, str]]
    """Of the first request: those that a redirect to another origin leaves out are in it."""
    at: str


class Hop(NamedTuple):
    """The application's own request where a redirect led it."""

    url: str
    headers: list[tuple[str, str]]


def redirected_from(request: httpx.Request) -> Redirected | None:
    """Return the request that this one follows a redirect of; None: it follows none.

    A request that is tried again, where it was sent before, follows none.
    """
    before = request.extensions.get(REDIRECTED)
    return before if isinstance(before, Redirected) and before.at != str(request.url) else None


def redirects(status: int | None, headers: Headers) -> bool:
    """Say whether an answer sends whoever asked to another place."""
    return status in _REDIRECTS and bool(header(headers, "location"))


@dataclass(slots=True)
class Route:
    """How one card is asked for: as the application did it last on one transport.

    A first-hand question is the application's own request. The guard asks again as the application's
    httpx client would now, with that client's authentication, cookies and redirects.
    """

    ask: CardAsk
    send: Send
    headers: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Of the request to `ask.full_url`, whatever redirects made of them."""
    extensions: dict[str, Any] = field(default_factory=dict[str, Any])
    transport: object | None = None
    client: ref[httpx.AsyncClient] | None = None
    led_to: Hop | None = None
    """Where a redirect led the application's own request; None: it is the one to `ask.full_url`."""
    served: ServedCookies | None = None
    """The cookies that servers set over its transport."""
    loop: asyncio.AbstractEventLoop | None = None
    """The event loop that its connections belong to."""
    joins: Hashable = None
    """Whose question at the same time is one with it: of routes that say the same; None: of its transport's."""
    apart: Callable[[], httpx.AsyncBaseTransport] | None = None
    """Makes another transport of the same settings; None: there is only the one."""
    most: int | None = None
    """Octets that are read of the answer to the application's own request; None: all of them."""
    credentials: frozenset[tuple[str, str]] = field(init=False)
    """The headers by which its caller is told from others, names in lower case."""
    by_client: frozenset[tuple[str, str]] = field(init=False)
    """What its client, and not the application, had put into the headers, names in lower case."""

    def __post_init__(self) -> None:
        """Take note of the credentials, and of what the client adds to each request by itself, before that changes."""
        self.credentials = _credentials_in(self.headers)
        self.by_client = self._added_by_client(self.headers)

    @property
    def own(self) -> Hop:
        """Return the application's own request, which is waiting."""
        return self.led_to or Hop(self.ask.full_url, self.headers)

    def refresh(self, headers: Headers) -> None:
        """Take over newer values of the credentials that this card is asked for with.

        Args:
            headers: of a later request of the same transport to the same origin.
        """
        names = {name for name, _ in self.credentials}
        newer: dict[str, list[tuple[str, str]]] = {}
        for name, value in headers:
            if (lower := name.lower()) in names:
                newer.setdefault(lower, []).append((name, value))
        for name, lines in newer.items():
            self.headers = [pair for pair in self.headers if pair[0].lower() != name] + lines
            before = {pair for pair in self.by_client if pair[0] != name}
            self.by_client = frozenset(before | self._added_by_client(lines))
        if newer:
            self.credentials = _credentials_in(self.headers)

    @property
    def is_closed(self) -> bool:
        """Say whether the client that would ask is closed or gone."""
        client = self.client() if self.client is not None else None
        return self.client is not None and (client is None or client.is_closed)

    @property
    def asks_apart(self) -> bool:
        """Say whether the guard may ask in its own name: the card was asked for without any credential."""
        return self.apart is not None and not self.credentials and not self.ask.secrets

    def carried_by(self, headers: Headers) -> int:
        """Say how many of its credentials a request carries; -1 if it does not carry all of them."""
        sent = {(name.lower(), value) for name, value in headers}
        return len(self.credentials) if self.credentials <= sent else -1

    def serves(self, transport: object, url: str) -> bool:
        """Say whether it goes through this transport to this url's origin."""
        return self.transport is transport and origin_of(self.ask.full_url) == origin_of(url)

    async def first_hand(self, ask: CardAsk, *, conditional: bool) -> Answer:
        """Send the application's own request, with our validators where it is to be conditional."""
        return await self._send_own(ask, ours=conditional, most=self.most)

    async def again(self, ask: CardAsk) -> Answer:
        """Ask again, for the guard's own purpose: as its client, or over one of the guard's own once that is closed."""
        if self.client is None:
            return await self._send_own(ask, ours=True, most=MAX_CARD)
        client = self.client()
        if self.is_closed and self.apart is not None and self.asks_apart:
            return await self._apart(ask, self.apart())
        if client is None or self.is_closed:
            raise httpx.TransportError("the httpx client that asked for this card is closed")
        headers = self.beside_client(client, _conditional(self.headers, ask, ours=True))
        answers = list[httpx.Response]()
        extensions = {**self.extensions, OURS: answers}
        request = client.build_request("GET", ask.full_url, headers=headers, extensions=extensions)
        follow = True if self.led_to else client.follow_redirects  # as the application's own request was
        try:
            response = await client.send(request, follow_redirects=follow)
        except httpx.TransportError:
            raise
        except Exception:  # a hook of the client, which knows no answer 304, does not take the answer from us
            if not answers or answers[-1].has_redirect_location:
                raise
            response = answers[-1]
            response.history = answers[:-1]
        return await _whole(response, str(response.url), pairs(_first(response).headers), MAX_CARD)

    async def _apart(self, ask: CardAsk, transport: httpx.AsyncBaseTransport) -> Answer:
        headers = octets(_conditional(self.headers, ask, ours=True))
        request = httpx.Request("GET", ask.full_url, headers=headers, extensions=self.extensions)
        async with httpx.AsyncClient(transport=transport, trust_env=False) as client:  # else a .netrc is read
            response = await client.send(request, follow_redirects=self.led_to is not None, stream=True)
            return await _whole(response, str(response.url), pairs(_first(response).headers), MAX_CARD)

    def beside_client(self, client: httpx.AsyncClient, headers: Headers) -> list[tuple[bytes, bytes]]:
        """Return what a request needs beside what its client adds to each by itself, which may have changed since."""
        kept = [(name, value) for name, value in headers if (name.lower(), value) not in self.by_client]
        return octets([(name, value) for name, value in kept if client.headers.get(name) != value])

    async def _send_own(self, ask: CardAsk, *, ours: bool, most: int | None) -> Answer:
        return await _whole(await self.send(self.own_request(ask, ours=ours)), self.own.url, self.headers, most)

    def own_request(self, ask: CardAsk, *, ours: bool) -> httpx.Request:
        """Return the application's own request; `ours`: with our condition in the place of its own."""
        url, headers = self.own
        sent = _conditional(headers, ask, ours=ours)
        return httpx.Request("GET", url, headers=octets(sent), extensions=self.extensions)

    def _added_by_client(self, headers: Headers) -> frozenset[tuple[str, str]]:
        client = self.client() if self.client is not None else None
        if client is None:
            return frozenset()
        held = cookies_in(client.cookies.jar)
        return frozenset(
            (name.lower(), value)
            for name, value in headers
            if client.headers.get(name) == value
            or (name.lower() == "cookie" and held.issuperset(cookies_of(value.split(";"))))
        )


def _conditional(headers: Headers, ask: CardAsk, *, ours: bool) -> list[tuple[str, str]]:
    """Return the application's own headers; where the condition is ours, it stands in the place of its own."""
    without = _REPLACED | {"cache-control"} if ours else {"accept-encoding"}
    kept = [(name, value) for name, value in headers if name.lower() not in without]
    kept.append(("accept-encoding", "identity"))  # what is recorded is what is read
    if ours:
        if ask.etag is not None:
            kept.append(("if-none-match", ask.etag))
        elif ask.modified_since is not None:
            kept.append(("if-modified-since", ask.modified_since))
        if ask.purpose != "discovery":
            kept.append(("cache-control", "no-cache"))
    return kept


def _first(response: httpx.Response) -> httpx.Request:
    """Return the request that an answer is to, before any redirect."""
    chain = [*response.history, response]
    return next((one for one in chain if one.has_redirect_location), response).request


def pairs(headers: httpx.Headers) -> list[tuple[str, str]]:
    """Return headers as text: header octets are read as ISO 8859-1."""
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers.raw]


def octets(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Return headers that `pairs` read as the octets that they were."""
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]


def _credentials_in(headers: Headers) -> frozenset[tuple[str, str]]:
    return frozenset((name.lower(), value) for name, value in headers if is_credential(name))


def safe(extensions: Mapping[str, object]) -> dict[str, object]:
    """Return what of an answer's extensions holds for an answer that is made from it."""
    return {k: v for k, v in extensions.items() if k in {"http_version", "reason_phrase"}}


def is_credential(name: str) -> bool:
    """Say whether a request header of this name may tell its caller from others."""
    return name.lower() in CREDENTIAL_HEADERS or selects(name)


def as_read(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Return the headers of an answer whose body goes on as it was read: codings that were taken off are not named."""
    gone = {"content-length", "content-encoding"} if can_unpack(codings_of(headers)) else {"content-length"}
    return octets([(name, value) for name, value in headers if name.lower() not in gone])


async def _whole(response: httpx.Response, url: str, sent: list[tuple[str, str]], most: int | None) -> Answer:
    """Read an answer.

    Raises:
        httpx.HTTPError: it did not come whole, is longer than `most`, or cannot be decoded.
    """
    headers = pairs(response.headers)
    is_unread = not can_unpack(codings_of(headers))
    try:
        if response.is_stream_consumed and not isinstance(
            response.stream, httpx.ByteStream
        ):  # by the client that we asked with
            body = response.content
            if is_unread:
                raise httpx.DecodingError("the card came in a content coding that nobody asked for")
        elif is_unread:
            body = b"".join([octets async for octets in octets_of(response, most)])
        else:
            body = await ReceivedBody(response).read(most)
    finally:
        await response.aclose()
    return Answer(response.status_code, headers, body, url, sent, is_unread)
