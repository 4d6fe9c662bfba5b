"""Who takes a changed contract on: a client that is built again, or a person first (the setting `acceptance`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.capture.in_force import contract_in_force
from a2a_ledger.contract import contract_of, diff, terms_of

if TYPE_CHECKING:
    from a2a_ledger.capture.card_identity import CardIdentity
    from a2a_ledger.capture.in_force import InForce
    from a2a_ledger.card import Card
    from a2a_ledger.contract import Diff
    from a2a_ledger.ledger import ContractLedger

_NOT_WEAKER = frozenset({"same", "stricter"})
"""Directions of authorization that `not-weaker` takes on; what cannot be ordered waits for a person."""


class Change(NamedTuple):
    """A card that states another contract, or other terms, than what is in force.

    Attributes:
        held: what is in force.
        contract: hash of the contract that the card states.
        terms: hash of its terms.
        diff: what changed since; None where the card in force cannot be read back whole.
        direction: of the authorization: same, stricter, weaker, incomparable.
        acceptance: the deployment's choice.
        waits: a client is built from it only after a person has accepted it.
        accept: the command by which a person accepts it.
    """

    held: InForce
    contract: str
    terms: str
    diff: Diff | None
    direction: str
    acceptance: str
    waits: bool
    accept: str


def change_in_force(ledger: ContractLedger, peer: str, key: CardIdentity, card: Card) -> Change | None:
    """Return what a client that is built from this card would take on; None where nothing changes.

    Args:
        ledger: the log, and the deployment's settings and profile.
        peer: peer id.
        key: which of the peer's cards it is.
        card: the card.
    """
    store, profile, settings = ledger.store, ledger.profile, ledger.settings
    contract = contract_of(card)
    held = contract_in_force(store, peer, key)
    if contract is None or held is None:  # the first contract of a card needs no acceptance
        return None
    terms = terms_of(card, profile).hash
    if held.says(contract.hash, terms, store, profile):
        return None
    old = held.card(store)
    found = diff(old, card, profile) if old is not None else None
    direction = (found.authorization if found else None) or "incomparable"
    by_hand = settings.acceptance == "manual" or (settings.acceptance == "not-weaker" and direction not in _NOT_WEAKER)
    return Change(
        held=held,
        contract=contract.hash,
        terms=terms,
        diff=found,
        direction=direction,
        acceptance=settings.acceptance,
        waits=settings.mode == "enforce" and by_hand,
        accept=ledger.command(f"card accept {peer} {contract.hash}"),
    )
