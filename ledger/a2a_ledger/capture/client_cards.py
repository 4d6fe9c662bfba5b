"""Which recorded card an SDK client was built from, told by what its SDK made of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_ledger.capture.bound import BoundCard
    from a2a_ledger.capture.desk import Desk

    Parse = Callable[[dict[str, Any]], bytes | None]
    """Makes of a card's JSON what the SDK makes of it, as octets to compare; None: it makes no client of it."""


class ClientCards:
    """The cards of one SDK client, each by what the SDK made of it: a client may go on with another card."""

    def __init__(self, desk: Desk, parse: Parse) -> None:
        self._desk = desk
        self._parse = parse
        self._bound: dict[bytes, BoundCard] = {}

    def built_from(self, bound: BoundCard) -> None:
        """Take note of the card that the client was built from, the same octets being served elsewhere or not."""
        key = self._parse(bound.document)
        if key is not None:
            self._bound[key] = replace(bound.for_new_client(), owned=True)

    def goes_on_with(self, key: bytes, bound: BoundCard) -> BoundCard:
        """Bind what the client has now to a card; one that was stopped may be asked for again."""
        self._bound[key] = bound
        return bound

    def known(self, key: bytes) -> BoundCard | None:
        """Return the fetch that a parsed card came from, if this process knows it as a card."""
        if key not in self._bound:
            recent = (known for known in self._desk.recent_cards() if self._parse(known.document) == key)
            if (found := next(recent, None)) is None:
                return None
            self._bound[key] = found.for_new_client()
        return self._bound[key]

    async def of(self, key: bytes, text: Callable[[], bytes]) -> BoundCard:
        """Return the fetch that a parsed card came from; a card from elsewhere is recorded as configured.

        Args:
            key: what the SDK made of it.
            text: gives that as JSON.

        Raises:
            CardError: no contract can be frozen from it.
        """
        bound = self.known(key)
        if bound is None:
            found = await self._desk.bind_found(lambda document: self._parse(document) == key)
            found = found or await self._desk.bind_configured(text())
            bound = self._bound[key] = found.for_new_client()
        return bound
