"""Which card does a client act on? The one that it read itself, as far as clients can be told apart.

Several clients stand behind one observing proxy, and the card may change between the fetches of two of them. What
tells them apart is the connection; across connections the address, the program and what a proxy before us says of it,
and the credentials of the card fetch, which the request must carry too. Where these leave more than one contract,
nobody knows which one the client acts on, and no card is named (docs/format.md section 14).
"""

from __future__ import annotations

import copy
import logging
from collections import OrderedDict
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from a2a_ledger.capture.arrival import Arrivals
from a2a_ledger.capture.attribution import urls_of_interface
from a2a_ledger.capture.builds import Builds
from a2a_ledger.capture.card_identity import CREDENTIAL_HEADERS, key_of
from a2a_ledger.capture.proxy.read_by import ReadByProgram, same
from a2a_ledger.capture.proxy.readers import asking
from a2a_ledger.capture.proxy.recalled import Recalled
from a2a_ledger.wire import SENDS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2a_ledger.capture.asking import Asking
    from a2a_ledger.capture.bound import BoundCard
    from a2a_ledger.capture.desk import Desk
    from a2a_ledger.capture.peerview import KeptCard
    from a2a_ledger.capture.proxy.read_by import Place
    from a2a_ledger.capture.proxy.readers import Client, Readers
    from a2a_ledger.capture.proxy.recalled import Recall
    from a2a_ledger.capture.reader import LogReader
    from a2a_ledger.capture.route import Route
    from a2a_ledger.codec import Record
    from a2a_ledger.events import Ref
    from a2a_ledger.wire import Headers, Leg

_log = logging.getLogger(__name__)

_PROGRAMS = 256
_READS = 256
"""Newest card reads of one program that are looked at in the log; where there are more, nobody knows what they were."""

_URLS = 1024
"""Urls of which it is remembered that they were looked up."""

given: ContextVar[Ref | None] = ContextVar("a2a_ledger_proxy_given", default=None)
"""The recorded answer about the card that this client is given; None: it is given none."""


class Clients:
    """The cards that each client read through one proxy, of the latest programs and connections.

    The log has it all: a program that is not in memory, because the process began since or for want of room, is looked
    up there.
    """

    def __init__(self, readers: Readers, recall: Recall, reader: LogReader) -> None:
        """Remember nothing yet.

        Args:
            readers: tells clients apart.
            recall: reads cards back.
            reader: the log.
        """
        self._readers = readers
        self._recall = recall
        self._log = reader
        self._read: OrderedDict[str, ReadByProgram] = OrderedDict()

    def reads(self, client: Client, bound: BoundCard) -> None:
        """Take note that a client is given a card, which is recorded."""
        reader = self._readers.of(client)
        held = self._of(reader.program, noted=bound.kept.n)
        held.take(reader.connection, bound.kept.key.place, replace(bound, route=copy.copy(bound.route)))

    def cards_of(self, client: Client, headers: Headers) -> list[BoundCard]:
        """Return the cards that a client may act on, newest first; none where that cannot be told.

        Args:
            client: who sends.
            headers: of its request.
        """
        reader = self._readers.of(client)
        held = self._of(reader.program)
        if reader.connection is not None and reader.connection in held.connections:
            mine = list(reversed(held.connections[reader.connection].values()))
            return [bound for bound in mine if bound is not None] if None not in mine else []
        known = held.all_read()
        if known is None:
            return []
        read = [
            (bound.kept.key.place, bound, bound.route is None or bound.route.carried_by(headers) >= 0)
            for bound in known
        ]
        own = {place for place, _, carried in read if carried}
        may_be_newer = any(name.lower() in CREDENTIAL_HEADERS for name, _ in headers)
        newest: OrderedDict[Place, BoundCard] = OrderedDict()
        for place, bound, carried in read:
            if not carried and (place in own or not may_be_newer):
                continue  # asked for by a caller with other credentials
            asked = bound if carried else replace(bound, route=None)  # it is not this request's way to ask
            if not same(newest.setdefault(place, asked), bound):
                return []
        return list(newest.values())

    def _of(self, program: str, noted: int = -1) -> ReadByProgram:
        """Return what one program read, from memory and the log: another proxy over it may have handed out more.

        Args:
            program: its mark.
            noted: log index of a fetch that is being taken note of.
        """
        held = self._read.get(program)
        if held is None:
            held = self._read[program] = self._recorded(program)
            while len(self._read) > _PROGRAMS:
                self._read.popitem(last=False)
        else:
            self._catch_up(program, held, noted)
        self._read.move_to_end(program)
        return held

    def _catch_up(self, program: str, held: ReadByProgram, noted: int) -> None:
        """Take in what the log has of a program beyond what is in memory."""
        newer = self._log.tagged_places(f"reader:{program}", after=held.position, limit=_READS)
        missed = {n for n, _ in newer} - held.noted - {noted}
        if missed:
            records = self._log.tagged(f"reader:{program}", limit=len(newer), desc=True)
            self._take(held, [record for record in records if record.n in missed])
            held.unknown = held.unknown or len(newer) == _READS
        if newer:
            held.position = newer[0][0]
            held.noted.clear()
        if noted > held.position:
            held.noted.add(noted)

    def _recorded(self, program: str) -> ReadByProgram:
        """Return what the log says that a program read, as if it had been remembered since."""
        records = self._log.tagged(f"reader:{program}", limit=_READS, desc=True)
        held = ReadByProgram(position=records[0].n if records else -1)
        self._take(held, records)
        held.unknown = held.unknown or len(records) == _READS or self._may_have_read_more(records)
        return held

    def _take(self, held: ReadByProgram, records: Sequence[Record]) -> None:
        """Take note of recorded fetches, newest first: of those of one place on one connection the newest counts."""
        newest: dict[tuple[str | None, Place], Record] = {}
        for record in records:
            if record.data.get("contract_hash") is not None:
                newest.setdefault(
                    (cast("str | None", record.data.get("connection")), key_of(record.data).place), record
                )
        for (connection, place), record in reversed(newest.items()):
            held.take(connection, place, self._recall.card(record))

    def _may_have_read_more(self, records: Sequence[Record]) -> bool:
        """Say whether a program may have read more since, while the proxy enforced and took all clients for one."""
        read = [record for record in records if record.data.get("contract_hash") is not None]
        if not read:
            return False
        first, tag = read[-1].n, f"reader:{self._readers.everybody}"
        if not self._log.tagged_places(tag, after=first, limit=1):
            return False
        since = [record for record in self._log.tagged(tag, limit=_READS, desc=True) if record.n > first]
        return len(since) == _READS or not _contracts(read).issuperset(_contracts(since))


def _contracts(records: Sequence[Record]) -> set[tuple[Place, object]]:
    """Return the contracts that were read, with where they lay."""
    said = [(key_of(record.data).place, record.data.get("contract_hash")) for record in records]
    return {one for one in said if one[1] is not None}


class ClientBuilds(Builds):
    """Hands cards out through one proxy, be it that a GET or that a method asks, and notes who reads which."""

    def __init__(self, desk: Desk, asking_: Asking, clients: Clients | None) -> None:
        """Hand cards out.

        Args:
            desk: the proxy's shared part.
            asking_: puts the questions.
            clients: who read which card; None: all clients count as one.
        """
        super().__init__(desk, asking_)
        self._clients = clients

    async def hand_out(self, kept: KeptCard, body: bytes, route: Route, *, changed: bool = True) -> BoundCard | None:
        """Take note that the client whose request this is gets this card; see `Builds.hand_out`."""
        bound = await super().hand_out(kept, body, route, changed=changed)
        if bound is not None:
            if self._clients is not None:
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
        cards = self._clients.cards_of(asking.get(), headers)
        mine = self.fitting(cards, leg, headers) or self._left_by(cards, leg, peer)
        if mine is None and bound is not None and leg.method in SENDS and not self._said_unknown:
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


class OneForAll(Arrivals):
    """What arrives for the clients of an enforcing proxy: all act on the newest card that any of them was given."""

    def __init__(self, desk: Desk, recall: Recall, lies_there: Callable[[str], bool]) -> None:
        """Judge for the clients of one proxy.

        Args:
            desk: the proxy's shared part.
            recall: reads cards back.
            lies_there: says whether a url is one of the agent behind the proxy.
        """
        super().__init__(desk)
        self._recall = recall
        self._lies_there = lies_there
        self._looked: set[tuple[str, ...]] = set()

    def card_for(self, leg: Leg, headers: Headers = ()) -> tuple[BoundCard | None, str]:
        """Return the card that a call is made on, and the peer; see `Arrivals.card_for`.

        One that was read before this process began counts only for a request that carries the credentials that it was
        asked for with, by which it is asked for again.
        """
        urls = urls_of_interface(leg.url)
        if leg.method in SENDS and urls not in self._looked:
            if len(self._looked) >= _URLS:
                self._looked.clear()
            self._desk.recall(self._recall.handed_out(leg, self._lies_there))
            self._looked.add(urls)  # behind it: a look that failed is taken again
        bound, peer = super().card_for(leg, headers)
        if bound is not None and isinstance(bound.route, Recalled):
            if not bound.route.is_of(headers):
                return None, peer
            bound.route = bound.route.as_asked_with(headers)
            if bound.route is not None:
                self._desk.cards.remember(bound.route)
        return bound, peer
