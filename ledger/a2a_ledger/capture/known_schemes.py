"""Where a peer's cards say that credentials stand, as the log knows them.

A process that never fetched the card itself must cut an API key all the same, and so must one whose card
was replaced while calls with the old key still go out (docs/format.md section 3.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from a2a_ledger.capture.credentials import ApiKeyPlace, api_key_places
from a2a_ledger.card import read_card
from a2a_ledger.contract.card_json import UnrepresentableError
from a2a_ledger.contract.dialect import member
from a2a_ledger.contract.schemes import read_schemes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_ledger.capture.peerview import PeerViews
    from a2a_ledger.capture.reader import LogReader
    from a2a_ledger.card import Card
    from a2a_ledger.events import Ref

_CARDS = 8
"""Cards of one peer that are looked at, the newest first."""

_REMEMBERED = 256


class PeerSchemes(NamedTuple):
    """The scheme table of a peer's newest contract, and the places of all API keys that its cards name."""

    table: Mapping[str, object]
    places: tuple[ApiKeyPlace, ...]


_NOTHING = PeerSchemes({}, ())


class KnownSchemes:
    """The schemes of the peers of one ledger, read again only when a peer's cards change."""

    def __init__(self, reader: LogReader, views: PeerViews) -> None:
        self._reader = reader
        self._views = views
        self._cards: dict[str, PeerSchemes] = {}  # by the commitment of the fetch that brought the bytes

    def of(self, peer: str) -> PeerSchemes:
        """Return what the kept cards of one peer say; nothing for a peer without one."""
        kept = [card for card in self._views.of(peer).cards.values() if card.usable]
        if not kept:
            return _NOTHING
        kept.sort(key=lambda card: card.n, reverse=True)
        read = [self._read(card.bytes_of) for card in kept[:_CARDS]]
        if len(read) == 1:
            return read[0]
        return PeerSchemes(read[0].table, tuple(dict.fromkeys(place for one in read for place in one.places)))

    def places_of(self, peer: str) -> list[ApiKeyPlace]:
        """Return where the cards of a peer put API keys, without naming them.

        A card GET is cut by what is known of the peer, but who asks is not told apart by it: the first GET
        of a card, which knows nothing, would count as another caller than the second.
        """
        return [place._replace(scheme="") for place in self.of(peer).places]

    def _read(self, ref: Ref) -> PeerSchemes:
        known = self._cards.get(ref["c"])
        if known is None:
            found = self._reader.read_stream(ref["stream"], gt=ref["ver"] - 1, limit=1)
            known = schemes_in(read_card((found[0].content("body") or b"") if found else b""))
            if len(self._cards) >= _REMEMBERED:
                self._cards.clear()
            self._cards[ref["c"]] = known
        return known


def schemes_in(card: Card) -> PeerSchemes:
    """Return what one card says: its contract's table, and the API keys that either half of it names."""
    table: Mapping[str, object] = {}
    if card.contract is not None:
        table = cast("Mapping[str, object]", card.contract.value["schemes"])
    places = api_key_places(table)
    raw = member(card.document, "securitySchemes")
    for new_first in (True, False):
        try:
            half = read_schemes(raw, new_first=new_first, flags=set())
        except UnrepresentableError:
            continue
        places += api_key_places(cast("Mapping[str, object]", half))
    return PeerSchemes(table, tuple(dict.fromkeys(places)))
