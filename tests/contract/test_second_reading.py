"""The normal form against an implementation written from the format page alone, which shares no code with it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_ledger.card import read_card
from a2a_ledger.contract import FORM, contract_of
from tests.contract.generated_cards import DIALECTS, VALUES, Json, Object, odd_cards, terms
from tests.contract.second_reading import RefusedError, read

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def first(raw: bytes) -> tuple[str, str] | None:
    card = read_card(raw)
    contract = contract_of(card)
    return None if contract is None else (card.dialect, contract.canonical.decode())


def second(raw: bytes) -> tuple[str, str] | None:
    try:
        return read(raw, FORM)
    except RefusedError:
        return None


def agree(raw: bytes) -> None:
    assert first(raw) == second(raw)


def written(document: Json) -> bytes:
    return json.dumps(document).encode()


def test_both_read_every_real_card_alike(corpus: Path) -> None:
    cards = sorted((corpus / "corpus" / "cards").glob("*.json"))
    assert len(cards) == 75
    for card in cards:
        agree(card.read_bytes())


@given(terms(), st.sampled_from(DIALECTS))
@settings(max_examples=50, deadline=None)
def test_both_read_well_formed_cards_alike(said: Object, dialect: Callable[[Object], Object]) -> None:
    raw = written(dialect(said))
    assert first(raw) is not None
    agree(raw)


@given(odd_cards())
@settings(max_examples=100, deadline=None)
def test_both_read_odd_cards_alike(card: Object) -> None:
    agree(written(card))


@pytest.mark.slow
@given(odd_cards())
@settings(max_examples=2000, deadline=None)
def test_both_read_very_many_odd_cards_alike(card: Object) -> None:
    agree(written(card))


@given(VALUES, st.binary(max_size=30), st.integers(0, 300))
@settings(max_examples=50, deadline=None)
def test_both_refuse_alike(value: Json, noise: bytes, at: int) -> None:
    agree(written(value))
    good = written({"name": "n", "url": "https://h.example/", "skills": [{"id": "s", "security": [{"a": ["x", 1.5]}]}]})
    agree(good[:at] + noise + good[at:])
