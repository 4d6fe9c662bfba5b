"""Which way authorization moved between two cards. Pure; docs/format.md section 7."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from a2a_ledger.contract.card_json import comparable
from a2a_ledger.contract.dialect import member
from a2a_ledger.contract.requirements import Direction, combine, compare_requirements, in_force
from a2a_ledger.events import Interface

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_ledger.card import Card
    from a2a_ledger.contract.card_json import CardObject, CardValue
    from a2a_ledger.contract.classes import Side


class _Governing(NamedTuple):
    """What one half of a card asks for: scheme table, requirement list, and those of skills."""

    schemes: Mapping[str, CardValue]
    security: list[object]
    skills: Mapping[str, list[object]]


def authorization(old: Side, new: Side) -> Direction:
    """Return where authorization moved, over the card, each skill that both cards have, and both halves of a hybrid.

    A scheme that means something else under its old name, one scheme in place of another, a scheme that
    nobody understands, and changed vendor terms are incomparable: no order between them is known.
    """
    if comparable(old.terms.value["paths"]) != comparable(new.terms.value["paths"]):
        return "incomparable"
    found: list[Direction] = []
    for version in ("1.0", "0.3"):
        before, after = _governing(old.contract.value, version), _governing(new.contract.value, version)
        found.append(_definitions(before.schemes, after.schemes))
        found.append(compare_requirements(before.security, after.security))
        for skill in sorted(before.skills.keys() | after.skills.keys()):
            if _has_skill(old.card, skill) and _has_skill(new.card, skill):
                mine = before.skills.get(skill, before.security)
                found.append(compare_requirements(mine, after.skills.get(skill, after.security)))
    return combine(found)


def _governing(value: CardObject, version: str) -> _Governing:
    interface = Interface(binding="", tenant="", url="", version=version)
    card = in_force(value, interface, None)
    half = value.get("legacy", value) if version.startswith("0.") else value
    skills = cast("Mapping[str, object]", member(half, "skills"))
    own = {name: cast("list[object]", in_force(value, interface, name)["security"]) for name in skills}
    return _Governing(cast("Mapping[str, CardValue]", card["schemes"]), cast("list[object]", card["security"]), own)


def _definitions(old: Mapping[str, CardValue], new: Mapping[str, CardValue]) -> Direction:
    """Compare two scheme tables; schemes that only came or only went change nothing by themselves."""
    gone, come = old.keys() - new.keys(), new.keys() - old.keys()
    changed = any(comparable(old[name]) != comparable(new[name]) for name in old.keys() & new.keys())
    strange = any(member(scheme, "kind") == "unknown" for scheme in [*map(old.get, gone), *map(new.get, come)])
    return "incomparable" if changed or strange or (gone and come) else "same"


def _has_skill(card: Card, skill: str) -> bool:
    listed = member(card.document, "skills")
    return isinstance(listed, list) and any((member(item, "id") or "") == skill for item in listed)
