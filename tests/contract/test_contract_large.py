"""Cards as large as a card may be: a comparison ends in seconds, where each item against each would take minutes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeAlias

import pytest

from a2a_ledger.card import read_card
from a2a_ledger.contract import diff

if TYPE_CHECKING:
    from collections.abc import Callable

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Object: TypeAlias = "dict[str, Json]"
MANY = 6000


def many_alternatives(name: str) -> Object:
    return {"security": [{f"{name}{n}": list[Json]()} for n in range(MANY)]}


def many_skills_below_many_alternatives(name: str) -> Object:
    return {
        "security": [{f"{name}{n}": list[Json]()} for n in range(60)],
        "skills": [{"id": str(n)} for n in range(MANY)],
    }


def many_skills_of_their_own(name: str) -> Object:
    return {"skills": [{"id": f"{name}{n}", "security": [{name: list[Json]()}]} for n in range(MANY)]}


def many_schemes(name: str) -> Object:
    return {"securitySchemes": {f"{name}{n}": {"type": "mutualTLS"} for n in range(MANY)}}


def many_terms(name: str) -> Object:
    return {"skills": [{"id": str(n), "url": name} for n in range(MANY)]}


def many_interfaces(name: str) -> Object:
    return {"supportedInterfaces": [{"url": f"https://{name}.example/{n}"} for n in range(MANY)]}


def many_skills_of_one_id(name: str) -> Object:
    return {"skills": [{"id": "a", "x": f"{name}{n}"} for n in range(MANY)]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "changes"),
    [
        (many_alternatives, 1),
        (many_skills_below_many_alternatives, 1),
        (many_skills_of_their_own, MANY),
        (many_schemes, 2 * MANY),
        (many_terms, MANY),
        (many_interfaces, MANY),
        (many_skills_of_one_id, MANY),
    ],
)
def test_a_large_card_is_compared_in_seconds(make: Callable[[str], Object], changes: int) -> None:
    old, new = (read_card(json.dumps({"name": "n", "url": "https://h.example", **make(one)}).encode()) for one in "ab")
    assert len(diff(old, new).changes) == changes
