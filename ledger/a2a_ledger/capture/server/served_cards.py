"""The cards that we serve: recorded when their octets change, and what a new task is bound to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import urlsplit

from a2a_ledger.address import origin_of
from a2a_ledger.capture.attribution import card_source, interface_used
from a2a_ledger.capture.card_record import card_ask_of
from a2a_ledger.capture.redact import cut
from a2a_ledger.capture.redacted import bare_url
from a2a_ledger.card import read_card
from a2a_ledger.contract import FORM, Terms, contract_of, seed0, terms_of
from a2a_ledger.events import CardServed

if TYPE_CHECKING:
    from a2a_ledger.capture.card_record import CardAsk
    from a2a_ledger.capture.desk import Desk
    from a2a_ledger.card import Card
    from a2a_ledger.codec import Draft, Record
    from a2a_ledger.contract import Contract
    from a2a_ledger.events import Interface, Ref
    from a2a_ledger.wire import Headers, Leg

STREAM = "peer:self"

_MAX_KINDS = 256
"""Kinds of card that are remembered: queries and versions are the askers' to choose."""

_LOOK_BACK = 256
"""Newest records of the stream among which a ledger that is opened again finds what it served last."""


class Asked(NamedTuple):
    """Which of our cards was asked for: one agent may serve several true ones at one place (section 7.8)."""

    path: str
    variant: str
    caller: str
    version: str


@dataclass(frozen=True, slots=True)
class Served:
    """A card that we served, and the record that says so."""

    ref: Ref
    card: Card
    contract: Contract | None
    terms: Terms
    seed0: str | None
    asked: Asked

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
        try:
            parts = urlsplit(leg.url)
        except ValueError:  # a Host header that is none
            return used
        rest = f"{parts.path}?{parts.query}" if parts.query else parts.path
        for one in listed:
            moved = interface_used(listed, leg._replace(url=f"{origin_of(one['url'])}{rest}"))
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
        self._latest: dict[Asked, Served] | None = None

    def is_asked_for(self, method: str, url: str) -> bool:
        """Say whether a request asks for one of our cards."""
        return method == "GET" and (card_source(method, url) is not None or _path(url) == self._public)

    def in_force(self, *, caller: str = "anonymous", version: str | None = None) -> Served | None:
        """Return the card that a task which begins now is bound to: the public one, else another.

        Of several public ones that which was asked for with this version or with none, then by this caller class, then
        served last.
        """
        latest = list(self._known().values())
        public = [served for served in latest if served.asked.path == self._public]
        if not public:
            return latest[-1] if latest else None
        ranked = [
            (one.asked.version in {version or "", ""}, one.asked.caller == caller, n) for n, one in enumerate(public)
        ]
        return public[max(ranked)[-1]]

    async def served(
        self, url: str, status: int, body: bytes, *, headers: Headers = (), fetch: Ref | None = None
    ) -> None:
        """Record a card that is about to leave, if its octets are not those that left there before.

        Args:
            url: where it was asked for.
            status: of the answer.
            body: the card.
            headers: that it was asked for with: who asks, and for which version.
            fetch: of a card that was rewritten: the fetch of the one that it was made from.
        """
        card, ask = read_card(body), card_ask_of(url, headers)
        asked = Asked(_path(url), ask.variant or "", ask.caller, ask.version or "")
        known = self._known().get(asked)
        if not card.is_card or (known is not None and known.card.raw_hash == card.raw_hash):
            return
        with self._desk.failing_as_chosen():
            for appended in await self._desk.write([self._draft(ask, status, card, fetch)]):
                self._note(self._read(appended.ref, card, asked))

    def _draft(self, ask: CardAsk, status: int, card: Card, fetch: Ref | None) -> Draft:
        contract, ledger = contract_of(card), self._desk.ledger
        event = CardServed(
            url=bare_url(ask.full_url),
            raw_hash=card.raw_hash,
            document_hash=card.document_hash,
            contract_hash=contract.hash if contract else None,
            form=contract.form if contract else FORM,
            status=status,
            variant=ask.variant,
            caller=ask.caller,
            asked_version=ask.version,
            fetch=fetch,
        )
        body = cut("card", card.raw, (), redactor=self._desk.redact, keep=ledger.settings.keep_body)
        return ledger.draft(event, stream=STREAM, blobs={"body": body})

    def _known(self) -> dict[Asked, Served]:
        """Return the newest card of each kind, oldest first; read from the log at first."""
        if self._latest is None:
            self._latest = {}
            records = self._desk.ledger.store.read_stream(STREAM, limit=_LOOK_BACK, desc=True)
            for record in reversed(records):
                self._from_log(record)
        return self._latest

    def _from_log(self, record: Record) -> None:
        body = record.content("body") if record.type == CardServed.TYPE else None
        if body is None:
            return
        variant, caller, version = (str(record.data.get(name, "")) for name in ("variant", "caller", "asked_version"))
        asked = Asked(_path(str(record.data.get("url", ""))), variant, caller, version)
        self._note(self._read(record.ref, read_card(body), asked))

    def _note(self, served: Served) -> None:
        latest = self._known()
        latest.pop(served.asked, None)
        latest[served.asked] = served
        if len(latest) > _MAX_KINDS:
            del latest[next(iter(latest))]

    def _read(self, ref: Ref, card: Card, asked: Asked) -> Served:
        return Served(ref, card, contract_of(card), terms_of(card, self._desk.ledger.profile), seed0(card), asked)


def _path(url: str) -> str:
    try:
        return urlsplit(url).path
    except ValueError:
        return ""
