"""A card's contract: normal form, hash, terms, differences, direction of authorization. Pure.

docs/format.md section 7. This module is the door: what stands behind it is split by purpose
(normal_form, schemes, requirements, profile, contract_diff, card_summary, seed, address).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.address import normal_url, same_url
from a2a_ledger.contract.card_summary import summary
from a2a_ledger.contract.classes import Difference
from a2a_ledger.contract.difference import Diff, diff, hashes
from a2a_ledger.contract.direction import Direction, combine, compare_definitions, compare_requirements
from a2a_ledger.contract.normal_form import FORM, Contract, major_minor
from a2a_ledger.contract.profile import Alias, Profile, default_profile, parse_profile
from a2a_ledger.contract.requirements import in_force, satisfies
from a2a_ledger.contract.seed import seed0
from a2a_ledger.contract.terms import TERMS_FORM, Terms, terms_of
from a2a_ledger.errors import CardError

if TYPE_CHECKING:
    from a2a_ledger.card import Card

__all__ = [
    "FORM",
    "TERMS_FORM",
    "Alias",
    "Contract",
    "Diff",
    "Difference",
    "Direction",
    "Profile",
    "Terms",
    "combine",
    "compare_definitions",
    "compare_requirements",
    "contract_of",
    "default_profile",
    "diff",
    "hashes",
    "in_force",
    "major_minor",
    "normal_url",
    "parse_profile",
    "require_contract",
    "same_url",
    "satisfies",
    "seed0",
    "summary",
    "terms_of",
]


def contract_of(card: Card) -> Contract | None:
    """Return a card's contract; None when it cannot be captured, for the reason in its flags and problem."""
    return card.contract


def require_contract(card: Card) -> Contract:
    """Return a card's contract.

    Raises:
        CardError: it cannot be captured; the message says why.
    """
    if card.contract is None:
        raise CardError(
            f"this card cannot be captured ({', '.join(card.flags)}): {card.problem}",
            hint="the bytes are kept as they came; ask the peer to serve a card that every reader reads alike",
        )
    return card.contract
