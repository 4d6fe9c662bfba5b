"""Cards that the application took out of an answer that was no card fetch: an entry of a registry, in its envelope.

docs/format.md section 7.8. The answer is remembered for a while; a card that a client is then built from is looked
for in it, so that its exact octets are recorded instead of what the SDK made of them.
"""

from __future__ import annotations

import json
import re
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.address import agent_card_url
from a2a_ledger.capture.attribution import peer_at
from a2a_ledger.capture.card_record import card_ask_of
from a2a_ledger.capture.json_slice import objects_in
from a2a_ledger.card import read_card
from a2a_ledger.contract import contract_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_ledger.capture.card_record import CardAsk
    from a2a_ledger.card import Card
    from a2a_ledger.events import Ref
    from a2a_ledger.wire import Headers

_ANSWERS = 8
_LONGEST = 1024 * 1024
"""Octets of an answer that is looked through."""

_MAY_BE_CARD = (b"name", b"kills", b"nterfaces", b'"url"')
_INDEX = re.compile(r"(?<=/)[0-9]+(?=/|$)")


@dataclass(frozen=True, slots=True)
class JsonAnswer:
    """An answer to a GET: what was asked, what came, and the message that it is recorded as."""

    url: str
    headers: Headers
    body: bytes
    within: Ref


class FoundCard(NamedTuple):
    """A card inside of an answer."""

    ask: CardAsk
    card: Card
    within: Ref


class FoundCards:
    """The newest answers of one guard's clients that may hold cards."""

    def __init__(self) -> None:
        self._answers: deque[JsonAnswer] = deque(maxlen=_ANSWERS)

    def remember(self, answer: JsonAnswer) -> None:
        """Take note of an answer, if there may be a card in it."""
        if len(answer.body) <= _LONGEST and _may_hold(answer.body):
            self._answers.append(answer)

    def find(self, wanted: Callable[[dict[str, object]], bool]) -> FoundCard | None:
        """Return the newest card that is wanted, as it was asked for, and where it stands.

        Args:
            wanted: says whether a JSON object is the card; it may edit what it is given.
        """
        for answer in reversed(self._answers):
            for place in objects_in(answer.body):
                if _may_hold(place.octets) and wanted(_read(place.octets)):
                    return _found(answer, place.pointer, read_card(place.octets))
        return None


def _read(octets: bytes) -> dict[str, object]:
    try:
        read: dict[str, object] = json.loads(octets)
    except ValueError:  # a number of too many digits
        return {}
    return read


def _may_hold(octets: bytes) -> bool:
    return _MAY_BE_CARD[0] in octets and any(word in octets for word in _MAY_BE_CARD[1:])


def _found(answer: JsonAnswer, pointer: str, card: Card) -> FoundCard:
    """Return a card as what was asked for: it is known by its place in the answer and its name, for lists move."""
    contract = contract_of(card)
    listed = contract.interfaces if contract else []
    peer = peer_at(agent_card_url(listed[0]["url"] if listed else answer.url))
    ask = card_ask_of(answer.url, answer.headers, peer=peer, source="registry")
    place = f"{_INDEX.sub('*', pointer)}?name={(card.document or {}).get('name')}"
    return FoundCard(replace(ask, etag=None, modified_since=None, method=place), card, answer.within)
