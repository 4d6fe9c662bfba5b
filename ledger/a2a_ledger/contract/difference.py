"""What changed between two cards, path by path, and which way authorization moved. Pure.

docs/format.md section 7; the JSON of `card diff`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from a2a_ledger.contract.authorization import movement
from a2a_ledger.contract.card_json import CardObject, CardValue, comparable
from a2a_ledger.contract.changes import changes_between
from a2a_ledger.contract.classes import STRENGTH, Difference, Side, classify
from a2a_ledger.contract.profile import Profile, default_profile
from a2a_ledger.contract.seed import seed0
from a2a_ledger.contract.terms import terms_of

if TYPE_CHECKING:
    from a2a_ledger.card import Card
    from a2a_ledger.contract.direction import Direction


@dataclass(frozen=True, slots=True)
class Diff:
    """What changed between two cards.

    Attributes:
        verdict: same-bytes, same-document, prose, capability, unclassified, contract, or undecidable when one
            of the two has no contract. The strongest class met.
        authorization: same, stricter, weaker or incomparable; None when undecidable.
        changes: One entry a changed path. Order that means nothing is no change.
        old: The old card's hashes: raw, document, contract, seed0.
        new: The new card's.
        profile: Hash of the profile that the cards were compared under.
        skills: By skill id, where what a caller of that skill has to present moved; only those that did.
    """

    verdict: str
    authorization: Direction | None
    changes: tuple[Difference, ...]
    old: dict[str, str | None]
    new: dict[str, str | None]
    profile: str
    skills: dict[str, Direction] = field(default_factory=dict[str, "Direction"])

    def to_json(self) -> CardObject:
        """Return the JSON of `card diff`."""
        listed: list[CardValue] = [
            {"pointer": one.pointer, "class": one.kind, "note": one.note or None, "old": one.old, "new": one.new}
            for one in self.changes
        ]
        return {
            "verdict": self.verdict,
            "authorization": self.authorization,
            "skills": dict[str, CardValue](self.skills),
            "profile": self.profile,
            "changes": listed,
            "old": dict[str, CardValue](self.old),
            "new": dict[str, CardValue](self.new),
        }


def hashes(card: Card) -> dict[str, str | None]:
    """Return a card's four hashes; None where one cannot be had."""
    return {
        "raw": card.raw_hash,
        "document": card.document_hash,
        "contract": card.contract.hash if card.contract else None,
        "seed0": seed0(card),
    }


def diff(old: Card, new: Card, profile: Profile | None = None) -> Diff:
    """Compare two cards at field level, under a profile (the shipped one by default).

    A change is of class `contract` exactly when the contract, or the terms that the profile names, differ.
    """
    profile = profile or default_profile()
    told = partial(Diff, old=hashes(old), new=hashes(new), profile=profile.hash)
    if old.contract is None or new.contract is None:
        return told("undecidable", None, ())
    if old.raw == new.raw:
        return told("same-bytes", "same", ())
    before, after = old.document or {}, new.document or {}
    if comparable(before) == comparable(after):
        return told("same-document", "same", ())
    sides = (
        Side(old, old.contract, terms_of(old, profile)),
        Side(new, new.contract, terms_of(new, profile)),
    )
    changes = classify(*sides, changes_between(before, after))
    # With no change listed only some order that means nothing is another.
    verdict = min((one.kind for one in changes), key=STRENGTH.index, default="prose")
    moved = movement(*sides)
    return told(verdict, moved.authorization, tuple(changes), skills=moved.skills)
