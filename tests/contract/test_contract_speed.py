"""No card costs more than its length: lists that were once read with the square of their length."""

from __future__ import annotations

import json

import pytest

from a2a_ledger.card import MAX_CARD, read_card

MANY = 14_000
SKILLS = {"skills of one id": "a", "skills of their own": None}


@pytest.mark.parametrize("kind", SKILLS)
def test_skills_with_requirements_are_read_in_one_go(kind: str) -> None:
    """With the square this takes half an hour, and the suite gives up on a test long before."""
    skills: list[object] = [{"id": SKILLS[kind] or f"s{n}", "security": [{f"k{n}": []}]} for n in range(MANY)]
    raw = json.dumps({"name": "V", "protocolVersion": "0.3.0", "url": "https://v.example/", "skills": skills}).encode()
    assert len(raw) < MAX_CARD
    card = read_card(raw)

    assert card.contract is not None
    lists = card.contract.value["skills"]
    assert isinstance(lists, dict)
    assert sum(len(one) for one in lists.values() if isinstance(one, list)) == MANY
