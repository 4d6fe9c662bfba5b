"""Which way authorization moved between two cards, as a whole and skill by skill. Pure; docs/format.md section 7.5."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from a2a_ledger.contract.card_json import CardObject, comparable, printable
from a2a_ledger.contract.dialect import member
from a2a_ledger.contract.direction import Direction, combine, compare_definitions, compare_requirements
from a2a_ledger.contract.pairing import name_of
from a2a_ledger.contract.requirements import open_schemes, without_open

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from a2a_ledger.card import Card
    from a2a_ledger.contract.classes import Side


class Movement(NamedTuple):
    """Where authorization moved.

    Attributes:
        authorization: Over the card, each skill that both cards have, both halves of a hybrid, and vendor terms.
        skills: By skill id, where what a caller of this skill has to present moved; those that did not are left out.
    """

    authorization: Direction
    skills: dict[str, Direction]


class _Governing(NamedTuple):
    """What one half of a card asks for: scheme table, requirement list, and those of skills."""

    schemes: Mapping[str, Mapping[str, object]]
    security: list[object]
    skills: Mapping[str, list[object]]

    def of(self, skill: str) -> list[object]:
        """Return what governs a skill: its own list, else the card's."""
        return self.skills.get(skill, self.security)


def movement(old: Side, new: Side) -> Movement:
    """Return where authorization moved between two cards.

    Changed vendor terms are incomparable: nobody knows an order between them.
    """
    shared = sorted(skill_ids(old.card) & skill_ids(new.card))
    found: list[Direction] = []
    skills: dict[str, list[Direction]] = {skill: [] for skill in shared}
    halves = ("1.0", "0.3") if "legacy" in old.contract.value or "legacy" in new.contract.value else ("1.0",)
    for version in halves:
        before, after = _governing(old.contract.value, version), _governing(new.contract.value, version)
        ways: dict[tuple[int, int], Direction] = {}  # by the two lists: most skills share the card's
        lists = [before.security, after.security]
        found.append(compare_requirements(before.security, after.security, before.schemes, after.schemes))
        for skill in shared:
            mine, theirs = before.of(skill), after.of(skill)
            key = id(mine), id(theirs)
            if key not in ways:
                ways[key] = compare_requirements(mine, theirs, before.schemes, after.schemes)
                lists += [mine, theirs]
            skills[skill].append(ways[key])
        found.append(_unnamed(before, after, _named(lists)))
    moved: dict[str, Direction] = {printable(skill): combine(ways) for skill, ways in skills.items()}
    if comparable(old.terms.value["paths"]) != comparable(new.terms.value["paths"]):
        found.append("incomparable")
    return Movement(combine([*found, *moved.values()]), {skill: way for skill, way in moved.items() if way != "same"})


def skill_ids(card: Card) -> set[str]:
    """Return the ids of a card's skills; "" for one without, the RFC 8785 text of one that is no text."""
    listed = member(card.document, "skills")
    skills = listed if isinstance(listed, list) else [] if listed is None else [listed]
    return {name_of(skill, "id") for skill in skills}


def _governing(value: CardObject, version: str) -> _Governing:
    half = cast("Mapping[str, object]", value.get("legacy", value) if version.startswith("0.") else value)
    schemes = cast("Mapping[str, Mapping[str, object]]", half["schemes"])
    skills = cast("Mapping[str, list[object]]", half["skills"])
    free = open_schemes(schemes)
    return _Governing(
        {name: scheme for name, scheme in schemes.items() if name not in free},
        without_open(cast("list[object]", half["security"]), free),
        {name: without_open(own, free) for name, own in skills.items()},
    )


def _named(lists: Iterable[list[object]]) -> set[str]:
    """Return the schemes that some requirement names."""
    return {name for one in lists for item in one if isinstance(item, dict) for name in cast("dict[str, object]", item)}


def _unnamed(before: _Governing, after: _Governing, named: set[str]) -> Direction:
    """Compare the schemes that no requirement names: a peer that requires nothing may still ask for one of them.

    One that merely came or went is no move. One that means something else now is, and so is one in the place of
    another that the card as a whole does not require: whoever held the old credential does not hold the new one.
    """
    old, new = before.schemes, after.schemes
    kept = sorted((old.keys() & new.keys()) - named)
    found: list[Direction] = [compare_definitions(old[name], new[name]) for name in kept]
    required = _named([before.security, after.security])
    replaced = bool(old.keys() - new.keys() - required) and bool(new.keys() - old.keys() - required)
    if replaced:
        found.append("incomparable")
    return combine(found)
