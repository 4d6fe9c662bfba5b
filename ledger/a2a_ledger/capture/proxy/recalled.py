"""Cards that were read before this process began, from the log: what a client acts on outlives a proxy.

How such a card was asked for is known by the marks of its credentials alone (docs/format.md section 3.3). Whether a
request carries them can be told; what they were cannot, so that the card is asked for again with those of a request
that carries them, or not at all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from a2a_ledger.capture.attribution import Peer, urls_of_interface
from a2a_ledger.capture.card_identity import HEADERS
from a2a_ledger.capture.card_record import UNNAMED
from a2a_ledger.capture.cards import read_event
from a2a_ledger.capture.in_force import contract_in_force
from a2a_ledger.capture.peerview import kept_card
from a2a_ledger.capture.redacted import MAX_CREDENTIALS, credentials_of
from a2a_ledger.capture.route import Route, is_credential
from a2a_ledger.codec import Hole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2a_ledger.capture.bound import BoundCard
    from a2a_ledger.capture.desk import Desk
    from a2a_ledger.capture.peerview import KeptCard
    from a2a_ledger.capture.proxy.readers import Readers
    from a2a_ledger.capture.route import Send
    from a2a_ledger.codec import Record
    from a2a_ledger.events import Ref
    from a2a_ledger.wire import Headers, Leg

_LOOK_BACK = 32
"""Newest cards that list a url among which one is looked for."""

_URLS = 1024
_OF_A_CLIENT = frozenset({"accept", "user-agent", "via"})
"""Beside credentials: what is said in the name of the client whose request is on its way."""


@dataclass(slots=True, kw_only=True)
class Recalled(Route):
    """How a card was asked for before this process began, as far as its marks tell."""

    desk: Desk
    readers: Readers
    marks: tuple[tuple[str, str], ...] = field(default=())
    """Scheme and mark of what it was asked with."""
    in_url: str | None = None
    """The mark of these that is of a secret in its url: it is the card's, and no request for work repeats it."""
    can_ask: bool = True
    """All of its url is known, and a GET asked for it."""

    def carried_by(self, headers: Headers) -> int:
        """Say how many of its credentials a request carries; -1 if not all, or if that cannot be told."""
        return self._carried(headers, [mark for _, mark in self.marks])

    def is_of(self, headers: Headers) -> bool:
        """Say whether a request carries its credentials, whatever it says beside them."""
        wanted = [mark for scheme, mark in self.marks if scheme != HEADERS and mark != self.in_url]
        return self._carried(headers, wanted) >= 0

    def _carried(self, headers: Headers, wanted: list[str]) -> int:
        if len(self.marks) >= MAX_CREDENTIALS:
            return -1  # there may have been more of them
        if not wanted:
            return 0
        ask = self.desk.cards.ask_of(self.ask.full_url, headers, whose=Peer(self.ask.peer, self.ask.peer_url))
        marks = credentials_of(ask.marked, ask.peer, self.desk.ledger) or []
        return len(wanted) if {mark["mac"] for mark in marks}.issuperset(wanted) else -1

    def as_asked_with(self, headers: Headers) -> Route | None:
        """Return how the card is asked for from now on: with the credentials of a request that carries its own.

        None: it cannot be asked for again.
        """
        if not self.can_ask:
            return None
        sent = [
            (name, value)
            for name, value in headers
            if name.lower() in _OF_A_CLIENT or (self.marks and is_credential(name))
        ]
        if self.ask.version is not None:
            sent.append(("a2a-version", self.ask.version))
        ask = self.desk.cards.ask_of(self.ask.full_url, sent, whose=Peer(self.ask.peer, self.ask.peer_url))
        ask = self.readers.sign(ask)  # what is fetched by it counts behind the next start as well
        return Route(ask, self.send, sent, transport=self.transport)


class Recall:
    """Reads cards of earlier processes back."""

    def __init__(self, desk: Desk, readers: Readers, transport: object, send: Send) -> None:
        """Read cards back.

        Args:
            desk: the proxy's shared part.
            readers: marks the clients of the proxy.
            transport: that of the proxy.
            send: really sends.
        """
        self._desk = desk
        self._readers = readers
        self._transport = transport
        self._send = send

    def card(self, record: Record) -> BoundCard | None:
        """Return the card of a fetch; None where not all of its octets are stored, or no contract is in them."""
        data, desk = record.data, self._desk
        stands = cast("Ref | None", data.get("not_modified"))
        brought = read_event(desk.ledger.store, stands) if stands is not None else None
        kept = kept_card(record, before=kept_card(brought) if brought is not None else None)
        body = desk.cards.whole_body(kept.bytes_of) if kept is not None and kept.usable else None
        if kept is None or body is None:
            return None
        url = _asked(record)
        peer = Peer(str(data["peer"]), str(data["peer_url"]))
        version = [("a2a-version", kept.key.version)] if kept.key.version else []
        ask = desk.cards.ask_of(url or kept.url, version, whose=peer)
        route = Recalled(
            ask,
            self._send,
            transport=self._transport,
            desk=desk,
            readers=self._readers,
            marks=kept.key.credential,
            in_url=_mark_in_url(kept) if url is None else None,
            can_ask=url is not None and "within" not in data,
        )
        return desk.bound_to(kept, body, peer=peer.id, route=route)

    def handed_out(self, leg: Leg, lies_there: Callable[[str], bool]) -> Iterator[BoundCard]:
        """Yield the cards that list a request's url and that clients were given, newest first.

        Args:
            leg: the request.
            lies_there: says whether a url is one of the agent behind the proxy: a card that lies elsewhere was not
                read here.
        """
        store = self._desk.ledger.store
        found = {
            record.n: record
            for url in urls_of_interface(leg.url)
            for record in store.tagged(f"lists:{url}", limit=_LOOK_BACK, desc=True)
        }
        for record in sorted(found.values(), key=lambda one: -one.n)[:_LOOK_BACK]:
            if lies_there(str(record.data["url"])):
                bound = self.card(record)
                if bound is not None and self._was_given(record, bound):
                    yield bound

    def _was_given(self, record: Record, bound: BoundCard) -> bool:
        """Say whether a fetched card reached a client: one that changed a contract did not, before it was taken on.

        What an import brought, and what an application fetched for itself without a proxy, has no reader.
        """
        if record.data.get("reader") is None:
            return False
        ledger, is_read = self._desk.ledger, record.data["purpose"] == "discovery"
        held = contract_in_force(ledger.store, bound.peer, bound.kept.key)
        if held is None:
            return is_read
        if held.says(bound.contract.hash, bound.terms.hash, ledger.store, ledger.profile):
            return True
        return is_read and record.n < held.since.n


def _mark_in_url(kept: KeptCard) -> str | None:
    """Return the mark of what was cut out of a url: no card names that. None: which one it is cannot be told."""
    unnamed = [mark for scheme, mark in kept.key.credential if scheme == UNNAMED]
    return unnamed[0] if len(unnamed) == 1 else None


def _asked(record: Record) -> str | None:
    """Return the url that a card was asked for at; None where something was cut out of it."""
    if "url" not in record.blobs:
        return str(record.data["url"])
    if any(isinstance(part, Hole) for part in record.stored_parts("url") or ()):
        return None
    return (record.content("url") or b"").decode("utf-8", "replace") or None
