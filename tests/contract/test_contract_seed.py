"""The published minimal client's names and hash."""

from __future__ import annotations

import dataclasses
import hashlib
import json

import pytest

import a2a_ledger
from a2a_ledger.card import read_card
from a2a_ledger.contract import seed0
from a2a_ledger.contract.seed import AgentCard, Task, TaskState, capture_contract, verify_peer_message

CARD: dict[str, object] = {
    "name": "Café",
    "url": "https://h.example",
    "protocolVersion": "0.3.0",
    "securitySchemes": {"oauth": {"type": "oauth2", "description": "clé"}},
    "security": [{"oauth": ["read"]}],
}


def published(card: dict[str, object]) -> str:
    """Return the hash by the three lines that the minimal client was published with."""
    contract = {k: card.get(k) for k in ("protocolVersion", "securitySchemes", "security")}
    text = json.dumps(contract, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def test_the_hash_is_that_of_the_published_client() -> None:
    assert AgentCard(CARD).contract_hash() == published(CARD)
    assert seed0(read_card(json.dumps(CARD, indent=3).encode())) == published(CARD)
    assert seed0(read_card(json.dumps(CARD, ensure_ascii=False).encode("utf-8-sig"))) == published(CARD)
    # a card that states none of the three, written out
    text = b'{"protocolVersion":null,"security":null,"securitySchemes":null}'
    assert AgentCard({}).contract_hash() == hashlib.sha256(text).hexdigest()


@pytest.mark.parametrize("version", ["1e400", "12345678901234567890", "1.10", '"\\ud800"', "[1.0, -0.0]"])
def test_odd_values_hash_as_python_reads_and_writes_them(version: str) -> None:
    raw = b'{"name": "n", "url": "https://h.example", "protocolVersion": %s}' % version.encode()

    assert seed0(read_card(raw)) == published(json.loads(raw))


@pytest.mark.parametrize(
    "raw",
    [
        b"<html>",
        b"[]",
        b'{"name": "n", "url": "https://h.example", "protocolVersion": 1, "protocolVersion": 2}',
        b'{"name": "n", "url": "https://h.example", "protocolVersion": ' + b"9" * 5000 + b"}",
    ],
)
def test_there_is_no_hash_where_the_client_could_not_read_the_card(raw: bytes) -> None:
    assert seed0(read_card(raw)) is None


def test_it_is_blind_to_1_0_terms() -> None:
    one: dict[str, object] = {"name": "n", "supportedInterfaces": [], "securityRequirements": [{"schemes": {"a": {}}}]}
    two: dict[str, object] = {"name": "n", "supportedInterfaces": [], "securityRequirements": []}
    cards = [read_card(json.dumps(card).encode()) for card in (one, two)]

    assert seed0(cards[0]) == seed0(cards[1])
    assert cards[0].contract != cards[1].contract


def test_a_contract_is_captured_once_submitted_and_held_later() -> None:
    task = Task(TaskState.submitted)
    card = AgentCard(CARD)

    assert Task(TaskState.submitted) == Task(TaskState.submitted, None)
    assert capture_contract(card, task) == published(CARD) == task.frozen_contract_hash
    task.state = TaskState.working
    verify_peer_message(card, task)
    verify_peer_message(AgentCard({**CARD, "name": "other", "skills": []}), task)


@pytest.mark.parametrize("state", [TaskState.working, TaskState.completed, TaskState.failed])
def test_capturing_past_submitted_names_the_state(state: TaskState) -> None:
    task = Task(state)
    with pytest.raises(RuntimeError, match=state.value) as caught:
        capture_contract(AgentCard(CARD), task)

    assert isinstance(caught.value, a2a_ledger.ContractFrozenError)
    assert task.frozen_contract_hash is None


def test_verifying_without_a_capture_and_divergence_are_errors() -> None:
    with pytest.raises(a2a_ledger.ContractFrozenError):
        verify_peer_message(AgentCard(CARD), Task(TaskState.working))

    other: dict[str, object] = {**CARD, "security": []}
    task = Task(TaskState.working, frozen_contract_hash=published(CARD))
    with pytest.raises(RuntimeError) as caught:
        verify_peer_message(AgentCard(other), task)
    assert f"frozen={published(CARD)[:12]} " in str(caught.value)
    assert str(caught.value).endswith(f"observed={published(other)[:12]}")


def test_the_names_are_public_and_the_card_is_frozen() -> None:
    for name in ("AgentCard", "TaskState", "Task", "capture_contract", "verify_peer_message", "ContractFrozenError"):
        assert name in a2a_ledger.__all__
        assert getattr(a2a_ledger, name) is not None
    assert [state.name for state in TaskState] == ["submitted", "working", "completed", "failed"]
    assert TaskState["SUBMITTED"] is TaskState("submitted")
    assert str(TaskState.working) == "working"
    card = AgentCard(CARD)
    with pytest.raises(dataclasses.FrozenInstanceError):
        card.raw = {}  # type: ignore[misc]  # that it cannot be set is the point
