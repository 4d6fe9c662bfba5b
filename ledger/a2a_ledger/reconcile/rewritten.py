"""Contracts that a proxy on the way made of an agent's: the same but for the urls of their interfaces. Pure.

A proxy that rewrites cards puts its own base url into them (docs/format.md section 14), so that its clients freeze
another contract than the agent's, and everybody's record is true.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.card import read_card
from a2a_ledger.contract import contract_of
from a2a_ledger.divergence.reading import content, json_object, members

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_ledger.codec import Record
    from a2a_ledger.events import JsonObject
    from a2a_ledger.reconcile.side import CardSeen


def unplaced(frozen: Record | None) -> JsonObject | None:
    """Return the contract of a capture without the urls of its interfaces; None: it is not shown."""
    return _without_urls(None if frozen is None else json_object(content(frozen, "contract")))


def unplaced_of_card(served: Record) -> JsonObject | None:
    """Return the same of a card that was served."""
    body = content(served, "body")
    contract = None if body is None else contract_of(read_card(body))
    return _without_urls(None if contract is None else json_object(contract.canonical))


def served_instead(cards: Iterable[CardSeen], own: JsonObject, clients: JsonObject, before: int) -> CardSeen | None:
    """Return the card with a client's contract that this side, a proxy, served in the place of the one that it froze.

    Args:
        cards: all that the proxy recorded.
        own: hash and form of the contract that it froze.
        clients: hash and form of what the client froze.
        before: log index of the task's first request.
    """
    fetched: set[tuple[str, int]] = set()
    for card in cards:
        if card.n >= before:
            break
        if not card.served and (card.contract, card.form) == (own.get("hash"), own.get("form")):
            fetched.add(card.ref)
        elif card.made_from in fetched and (card.contract, card.form) == (clients.get("hash"), clients.get("form")):
            return card
    return None


def _without_urls(contract: JsonObject | None) -> JsonObject | None:
    if contract is None:
        return None
    listed = contract.get("interfaces")
    interfaces = [{**members(one), "url": None} for one in listed] if isinstance(listed, list) else []
    return {**contract, "interfaces": [*interfaces]}
