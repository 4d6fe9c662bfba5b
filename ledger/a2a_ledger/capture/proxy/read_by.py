"""What one program read through an observing proxy, as far as it is remembered (docs/format.md section 14)."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from a2a_ledger.capture.bound import BoundCard
    from a2a_ledger.capture.card_identity import CardIdentity

    Place = tuple[str, str, str]
    Cards = OrderedDict[Place, BoundCard | None]
    """By where they lie; None: what was read there cannot be told."""
    Read = tuple[CardIdentity, str, str]
    """By which card it is, and the hashes of its contract and terms."""

_CONNECTIONS = 64
"""Connections of one program whose cards are remembered; as many cards of one, and as many of earlier ones."""


@dataclass(slots=True)
class ReadByProgram:
    """The cards that one program read: by connection, and what else it read on connections before these."""

    position: int
    """Log index up to which the log is known."""
    noted: set[int] = field(default_factory=set[int])
    """Log indexes of fetches behind it that are remembered already."""
    connections: OrderedDict[str | None, Cards] = field(default_factory=OrderedDict[str | None, "Cards"])
    earlier: OrderedDict[Read, BoundCard] = field(default_factory=OrderedDict["Read", "BoundCard"])
    unknown: bool = False
    """It may have read what is not remembered."""

    def take(self, connection: str | None, place: Place, bound: BoundCard | None) -> None:
        """Take note of a card that was read; None: of which it cannot be told what it says."""
        cards = self.connections.setdefault(connection, OrderedDict())
        self.connections.move_to_end(connection)
        cards[place] = bound
        cards.move_to_end(place)
        while len(cards) > _CONNECTIONS:
            self._leave(cards.popitem(last=False)[1])
        while len(self.connections) > _CONNECTIONS:
            for left in self.connections.popitem(last=False)[1].values():
                self._leave(left)

    def all_read(self) -> list[BoundCard] | None:
        """Return all cards that it read and may act on, newest first; None: that cannot be told."""
        by_connection = [one for cards in reversed(self.connections.values()) for one in reversed(cards.values())]
        known = [bound for bound in by_connection if bound is not None]
        if self.unknown or len(known) < len(by_connection):
            return None
        return [*known, *reversed(self.earlier.values())]

    def _leave(self, bound: BoundCard | None) -> None:
        """Remember of a card no longer on which connection it was read: whoever read it may act on it for days."""
        if bound is None:
            self.unknown = True
            return
        key = (bound.kept.key, bound.contract.hash, bound.terms.hash)
        self.earlier[key] = bound
        self.earlier.move_to_end(key)
        if len(self.earlier) > _CONNECTIONS:
            _, oldest = self.earlier.popitem(last=False)
            place = oldest.kept.key.place
            others = [one for one in self.all_read() or () if one.kept.key.place == place]
            self.unknown = self.unknown or not others or not all(same(one, oldest) for one in others)


def same(one: BoundCard, other: BoundCard) -> bool:
    """Say whether two cards state the same contract and terms."""
    return (one.contract.hash, one.terms.hash) == (other.contract.hash, other.terms.hash)
