"""A card that passes: its octets as they came go to the client, and what they say goes into the record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.capture.coding import unpacked_of
from a2a_ledger.capture.route import Answer, Route, pairs

if TYPE_CHECKING:
    from a2a_ledger.capture.card_record import CardAsk


class AsItCame(NamedTuple):
    """An answer before anything was done to it."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


@dataclass(slots=True)
class PassedRoute(Route):
    """The way of one client's card GET to the agent: it goes once, for nobody else, and as it came."""

    passed: AsItCame | None = None

    async def first_hand(self, ask: CardAsk, *, conditional: bool) -> Answer:
        """Send the client's own request; what cannot be decoded is recorded as it came, and is no card."""
        response = await self.send(self.own_request(ask, ours=conditional))
        try:
            raw = b"".join([chunk async for chunk in response.aiter_raw()])
        finally:
            await response.aclose()
        headers = pairs(response.headers)
        self.passed = AsItCame(response.status_code, response.headers.raw, raw)
        plain = unpacked_of(headers, raw)
        body, is_unread = (raw, True) if plain is None else (plain, False)
        return Answer(response.status_code, headers, body, self.own.url, self.headers, is_unread)
