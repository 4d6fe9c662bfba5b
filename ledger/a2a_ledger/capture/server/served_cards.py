"""The cards that we serve: recorded when their octets change, and what a new task is bound to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from a2a_ledger.address import origin_of
from a2a_ledger.capture.attribution import card_source, interface_used
from a2a_ledger.capture.redact import cut
from a2a_ledger.capture.redacted import bare_url
from a2a_ledger.card import read_card
from a2a_ledger.contract import FORM, Terms, contract_of, seed0, terms_of
from a2a_ledger.events import CardServed

if TYPE_CHECKING:
    from a2a_ledger.capture.desk import Desk
    from a2a_ledger.card import Card
    from a2a_ledger.codec import Draft, Record
    from a2a_ledger.contract import Contract
    from a2a_ledger.events import Interface, Ref
    from a2a_ledger.wire import Leg

STREAM = "peer:self"

_LOOK_BACK = 256
"""Newest records of the stream among which a ledger that is opened again finds what it served last."""


@dataclass(frozen=True, slots=True)
class Served:
    """A card that we served, and the record that says so."""

    ref: Ref
    card: Card
    contract: Contract | None
    terms: Terms
    seed0: str | None

    @property
    def schemes(self) -> dict[str, Any]:
        """Return the contract's scheme table."""
        return cast("dict[str, Any]", self.contract.value["schemes"]) if self.contract else {}

    def interface_of(self, leg: Leg) -> Interface:
        """Return the interface that a request came in by.

        The url that a server sees need not be the one that the world uses: where no interface has it, one of the same
        path is taken.
        """
        listed: list[Interface] = self.contract.interfaces if self.contract else []
        used = interface_used(listed, leg)
        if used in listed:
            return used
        parts = urlsplit(leg.url)
        rest = f"{parts.path}?{parts.query}" if parts.query else parts.path
        for one in listed:
            moved = interface_used(listed, replace(leg, url=f"{origin_of(one['url'])}{rest}"))
            if moved in listed:
                return moved
        return used


class ServedCards:
    """The cards of one agent, as this log knows them."""

    def __init__(self, desk: Desk, card_url: str) -> None:
        """Look after the cards of an agent.

        Args:
            desk: ledger, and the user's own redaction.
            card_url: where the world finds our public card.
        """
        self._desk = desk
        self._public = _path(card_url)
        self._latest: dict[str, Served] | None = None

    def is_asked_for(self, method: str, url: str) -> bool:
        """Say whether a request asks for one of our cards."""
        return method == "GET" and (card_source(method, url) is not None or _path(url) == self._public)

    def in_force(self) -> Served | None:
        """Return the card that a task which begins now is bound to: the public one, else another, served last."""
        latest = self._known()
        return latest.get(self._public) or next(reversed(latest.values()), None)

    async def served(self, url: str, status: int, body: bytes, *, fetch: Ref | None = None) -> None:
        """Record a card that is about to leave, if its octets are not those that left there before.

        Args:
            url: where it was asked for.
            status: of the answer.
            body: the card.
            fetch: of a card that was rewritten: the fetch of the one that it was made from.
        """
        card = read_card(body)
        place = _path(url)
        known = self._known().get(place)
        if not card.is_card or (known is not None and known.card.raw_hash == card.raw_hash):
            return
        with self._desk.failing_as_chosen():
            for appended in await self._desk.write([self._draft(url, status, card, fetch)]):
                self._note(place, self._read(appended.ref, card))

    def _draft(self, url: str, status: int, card: Card, fetch: Ref | None) -> Draft:
        contract, ledger = contract_of(card), self._desk.ledger
        event = CardServed(
            url=bare_url(url),
            raw_hash=card.raw_hash,
            document_hash=card.document_hash,
            contract_hash=contract.hash if contract else None,
            form=contract.form if contract else FORM,
            status=status,
            fetch=fetch,
        )
        body = cut("card", card.raw, (), redactor=self._desk.redact, keep=ledger.settings.keep_body)
        return ledger.draft(event, stream=STREAM, blobs={"body": body})

    def _known(self) -> dict[str, Served]:
        """Return the newest card of each place, oldest first; read from the log at first."""
        if self._latest is None:
            self._latest = {}
            records = self._desk.ledger.store.read_stream(STREAM, limit=_LOOK_BACK, desc=True)
            for record in reversed(records):
                self._from_log(record)
        return self._latest

    def _from_log(self, record: Record) -> None:
        body = record.content("body") if record.type == CardServed.TYPE else None
        if body is not None:
            self._note(_path(str(record.data.get("url", ""))), self._read(record.ref, read_card(body)))

    def _note(self, place: str, served: Served) -> None:
        latest = self._known()
        latest.pop(place, None)
        latest[place] = served

    def _read(self, ref: Ref, card: Card) -> Served:
        return Served(ref, card, contract_of(card), terms_of(card, self._desk.ledger.profile), seed0(card))


def _path(url: str) -> str:
    try:
        return urlsplit(url).path
    except ValueError:
        return ""
