"""Which card does a client act on? The one that it read itself, as far as clients can be told apart.

Several clients stand behind one observing proxy, and the card may change between the fetches of two of them. What
tells them apart is the connection; across connections the address, the program and what a proxy before us says of it,
and the credentials of the card fetch, which the request must carry too. Where these leave more than one contract,
nobody knows which one the client acts on, and no card is named (docs/format.md section 14).
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.capture.arrival import Arrivals
from a2a_ledger.capture.attribution import urls_of_interface
from a2a_ledger.capture.builds import Builds
from a2a_ledger.wire import SENDS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2a_ledger.capture.asking import Asking
    from a2a_ledger.capture.bound import BoundCard
    from a2a_ledger.capture.desk import Desk
    from a2a_ledger.capture.peerview import KeptCard
    from a2a_ledger.capture.route import Route
    from a2a_ledger.capture.server.incoming import Scope
    from a2a_ledger.events import Ref
    from a2a_ledger.wire import Headers, Leg

    Place = tuple[str, str, str]
    Cards = OrderedDict[Place, BoundCard]

_log = logging.getLogger(__name__)

_TELLING = (b"forwarded", b"user-agent", b"x-forwarded-for")
_PROGRAMS = 256
_CONNECTIONS = 64
"""Connections of one program whose cards are remembered."""


class Client(NamedTuple):
    """Who sends a request, as far as it can be told."""

    program: tuple[object, ...]
    """Address without its port, and the headers that tell programs apart."""
    connection: object
    """Address and port; None: not known."""


NOBODY = Client((), None)

asking: ContextVar[Client] = ContextVar("a2a_ledger_proxy_client", default=NOBODY)
"""The client whose request is on its way."""

given: ContextVar[Ref | None] = ContextVar("a2a_ledger_proxy_given", default=None)
"""The recorded answer about the card that this client is given; None: it is given none."""


def client_of(scope: Scope, headers: Sequence[tuple[bytes, bytes]]) -> Client:
    """Tell who sends a request."""
    address = scope.get("client")
    telling = tuple((name.lower(), value) for name, value in headers if name.lower() in _TELLING)
    if address is None:
        return Client((None, telling), None)
    host, port = address
    return Client((host, telling), (host, port))


class Clients:
    """The cards that each client read through one proxy, those of the latest programs and connections."""

    def __init__(self) -> None:
        self._read: OrderedDict[tuple[object, ...], OrderedDict[object, Cards]] = OrderedDict()

    def reads(self, client: Client, bound: BoundCard) -> None:
        """Take note that a client is given a card."""
        connections = self._read.setdefault(client.program, OrderedDict())
        self._read.move_to_end(client.program)
        cards = connections.setdefault(client.connection, OrderedDict())
        connections.move_to_end(client.connection)
        cards[bound.kept.key.place] = bound
        cards.move_to_end(bound.kept.key.place)
        for held, most in ((self._read, _PROGRAMS), (connections, _CONNECTIONS), (cards, _CONNECTIONS)):
            while len(held) > most:
                held.popitem(last=False)

    def cards_of(self, client: Client, headers: Headers) -> list[BoundCard]:
        """Return the cards that a client may act on, newest first; none where that cannot be told.

        Args:
            client: who sends.
            headers: of its request.
        """
        connections = self._read.get(client.program, OrderedDict[object, "Cards"]())
        if client.connection is not None and client.connection in connections:
            return list(reversed(connections[client.connection].values()))
        newest: Cards = OrderedDict()
        for cards in reversed(connections.values()):
            for place, bound in reversed(cards.items()):
                if bound.route is not None and bound.route.carried_by(headers) < 0:
                    continue  # asked for by a caller with other credentials
                if not _same(newest.setdefault(place, bound), bound):
                    return []
        return list(newest.values())


class ClientBuilds(Builds):
    """Hands cards out through one proxy, be it that a GET or that a method asks, and notes who reads which."""

    def __init__(self, desk: Desk, asking_: Asking, clients: Clients) -> None:
        """Hand cards out.

        Args:
            desk: the proxy's shared part.
            asking_: puts the questions.
            clients: who read which card.
        """
        super().__init__(desk, asking_)
        self._clients = clients

    async def hand_out(self, kept: KeptCard, body: bytes, route: Route, *, changed: bool = True) -> BoundCard | None:
        """Take note that the client whose request this is gets this card; see `Builds.hand_out`."""
        bound = await super().hand_out(kept, body, route, changed=changed)
        if bound is not None:
            self._clients.reads(asking.get(), bound)
            given.set(bound.kept.fetch)
        return bound


class ClientArrivals(Arrivals):
    """What arrives for the clients of an observing proxy: each acts on the card that it read."""

    def __init__(self, desk: Desk, transport: object, clients: Clients, leads_here: Callable[[str], bool]) -> None:
        """Judge for the clients of one proxy.

        Args:
            desk: the proxy's shared part.
            transport: that of the proxy.
            clients: who read which card.
            leads_here: says whether a url is one of this proxy or of the agent behind it.
        """
        super().__init__(desk, transport)
        self._clients = clients
        self._leads_here = leads_here
        self._said_unknown = False

    def card_for(self, leg: Leg, headers: Headers = ()) -> tuple[BoundCard | None, str]:
        """Return the card that the client whose request this is read, and the peer; see `Arrivals.card_for`."""
        bound, peer = super().card_for(leg, headers)
        if bound is None:
            return None, peer
        cards = self._clients.cards_of(asking.get(), headers)
        mine = self.fitting(cards, leg, headers) or self._left_by(cards, leg, peer)
        if mine is None and leg.method in SENDS and not self._said_unknown:
            self._said_unknown = True
            _log.warning(
                "%s: which card a client acts on cannot be told (it read none through this proxy, or shares address "
                "and program with one that read another): its tasks are recorded without a contract",
                bound.peer_url,
            )
        return mine, peer

    def _left_by(self, cards: Sequence[BoundCard], leg: Leg, peer: str) -> BoundCard | None:
        """Return the card of a client that goes where it lists nothing; None: it may act on another card.

        It may where some card ever listed the url, where the client read cards of other peers too, and where its card
        lists only places that this proxy does not stand before: it is then not by its card that it came here.
        """
        if leg.method not in SENDS or not cards or any(one.peer != peer for one in cards):
            return None
        listed = self._desk.ledger.store.tagged_places
        if any(listed(f"lists:{url}", limit=1) for url in urls_of_interface(leg.url)):
            return None
        leading = (one for one in cards if any(self._leads_here(interface["url"]) for interface in one.interfaces))
        return next(leading, None)


def _same(one: BoundCard, other: BoundCard) -> bool:
    return (one.contract.hash, one.terms.hash) == (other.contract.hash, other.terms.hash)
