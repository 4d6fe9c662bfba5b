"""The card that one line of an exchange file is about: by a GET, or in the answer of a method."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from a2a_ledger.capture.attribution import peer_of_card_at
from a2a_ledger.capture.jsonl_line import StatedFailure
from a2a_ledger.capture.method_card import card_in, method_ask, method_card_event
from a2a_ledger.capture.not_modified import validator_confirmed
from a2a_ledger.capture.recorder import card_ask_of, card_event, card_failure_event, card_source
from a2a_ledger.capture.redact import withhold
from a2a_ledger.codec import Content
from a2a_ledger.errors import FormatError
from a2a_ledger.events import CardFetched
from a2a_ledger.wire import parse_response

if TYPE_CHECKING:
    from a2a_ledger.capture.attribution import Peer
    from a2a_ledger.capture.jsonl_line import ExchangeLine
    from a2a_ledger.capture.peerview import PeerViews
    from a2a_ledger.capture.reader import LogReader
    from a2a_ledger.capture.recorder import CardAsk
    from a2a_ledger.events import CardFetchFailed, Ref
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.wire import Leg

    Event = CardFetched | CardFetchFailed


class LineCards:
    """Reads the card fetches of one file for one ledger."""

    def __init__(self, ledger: ContractLedger, reader: LogReader, views: PeerViews) -> None:
        self._ledger = ledger
        self._reader = reader
        self._views = views

    def fetched(self, line: ExchangeLine) -> tuple[Event, dict[str, Content]]:
        """Return the event of a card GET.

        Raises:
            FormatError: the line has neither a response nor an error.
        """
        asked, answer = line.request, line.response
        source = card_source(asked.method, asked.url) or "registry"
        peer = peer_of_card_at(self._reader, asked.url)
        ask = self._with_purpose(card_ask_of(asked.url, asked.headers, peer=peer, source=source))
        if answer is not None:
            confirmed = validator_confirmed(ask.etag, ask.modified_since, answer.headers)
            view, key = self._views.of(ask.peer), ask.key(self._ledger)
            kept = view.with_validator(key, *confirmed) if confirmed is not None else None
            body = b"" if answer.coded else answer.body
            event, blobs = card_event(
                ask, status=answer.status, headers=answer.headers, body=body, at=self._ledger, kept=kept
            )
            if answer.coded:
                blobs["body"] = Content(tuple(withhold(answer.body)))
            if isinstance(event, CardFetched) and not answer.whole:
                event = replace(event, flags=sorted({*event.flags, "truncated"}))
            return event, blobs
        if line.failure is None:
            raise FormatError("a card fetch has neither a response nor an error")
        return card_failure_event(ask, failure=line.failure, at=self._ledger)

    def within(self, line: ExchangeLine, leg: Leg, peer: Peer, within: Ref) -> tuple[Event, dict[str, Content]]:
        """Return the event of a call for a card.

        Args:
            line: the call and its answer.
            leg: the call, read.
            peer: whose card it is.
            within: the record of the answer.
        """
        answer, failure = line.response, line.failure
        ask = self._with_purpose(method_ask(leg, line.request.headers, peer=peer))
        if failure is not None or answer is None:
            event, blobs = card_failure_event(ask, failure=failure or StatedFailure(""), at=self._ledger)
            return replace(event, within=within), blobs
        return method_card_event(
            ask,
            status=answer.status,
            card=card_in(answer.body),
            failed=parse_response(leg, answer.status, answer.headers, answer.body).error is not None,
            within=within,
            at=self._ledger,
        )

    def _with_purpose(self, ask: CardAsk) -> CardAsk:
        """Return the question with its purpose, which no file says: a card that was seen before is asked for again."""
        kept = self._views.of(ask.peer).newest(ask.key(self._ledger))
        return replace(ask, purpose="application" if kept else "discovery")
