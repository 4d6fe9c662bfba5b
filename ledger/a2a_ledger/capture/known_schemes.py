"""Where a peer's cards say that credentials stand, as the log knows them.

A process that never fetched the card itself must cut an API key all the same, and so must one whose card
was replaced while calls with the old key still go out (docs/format.md section 3.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from a2a_ledger.capture.credentials import ANYWHERE, UNREAD, ApiKeyPlace, api_key_places, read_place
from a2a_ledger.card import read_card
from a2a_ledger.contract.card_json import UnrepresentableError
from a2a_ledger.contract.dialect import member
from a2a_ledger.contract.schemes import read_schemes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_ledger.capture.peerview import PeerViews
    from a2a_ledger.card import Card
    from a2a_ledger.events import Ref
    from a2a_ledger.store import Store

_PLACES = 256
"""Places of one peer's API keys that are told apart; who names more may have a key in any query value."""

_REMEMBERED = 256
"""Peers whose places are kept in memory, and cards whose tables are."""


class PeerSchemes(NamedTuple):
    """The scheme table of a peer's newest contract, and the places of all API keys that its cards ever named."""

    table: Mapping[str, object]
    places: tuple[ApiKeyPlace, ...]


class KnownSchemes:
    """The schemes of the peers of one ledger, read again only when something new is said of a peer."""

    def __init__(self, store: Store, views: PeerViews) -> None:
        self._store = store
        self._views = views
        self._known: dict[str, tuple[int, PeerSchemes]] = {}  # by peer, with the version that its stream had then
        self._tables: dict[str, Mapping[str, object]] = {}  # by the commitment of the fetch that brought the bytes

    def of(self, peer: str) -> PeerSchemes:
        """Return what the cards of one peer say; of a peer without one, that nothing is known."""
        view = self._views.of(peer)
        version, known = self._known.get(peer, (-1, None))
        if known is None or version != view.ver:
            usable = (card for card in view.cards.values() if card.usable)
            newest = max(usable, key=lambda card: card.n, default=None)
            places = self._places(peer)
            known = PeerSchemes(self._table(newest.bytes_of), places) if newest else PeerSchemes({}, (*places, UNREAD))
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[peer] = view.ver, known
        return known

    def places_of(self, peer: str) -> list[ApiKeyPlace]:
        """Return where the cards of a peer put API keys, without naming them.

        A card GET is cut by what is known of the peer, but who asks is not told apart by it: the first GET
        of a card, which knows nothing, would count as another caller than the second.
        """
        return [place._replace(scheme="") for place in self.of(peer).places if place != UNREAD]

    def _places(self, peer: str) -> tuple[ApiKeyPlace, ...]:
        """Return the places that the log's cards name, of all times: a key of a card that was replaced is one too."""
        prefix = f"apikey:{peer}:"
        tags = self._store.tags_under(prefix, _PLACES + 1)
        places = [read_place(tag.removeprefix(prefix)) for tag in tags]
        return tuple(places if len(places) <= _PLACES else [*places, ANYWHERE])

    def _table(self, ref: Ref) -> Mapping[str, object]:
        known = self._tables.get(ref["c"])
        if known is None:
            found = self._store.read_stream(ref["stream"], gt=ref["ver"] - 1, limit=1)
            known = schemes_in(read_card((found[0].content("body") or b"") if found else b"")).table
            if len(self._tables) >= _REMEMBERED:
                self._tables.clear()
            self._tables[ref["c"]] = known
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
