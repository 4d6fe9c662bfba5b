"""The published minimal client's names, with its behaviour. Pure.

Its contract hash reads three 0.3 members of the card only and is blind to 1.0 terms; nothing in this
package decides by it. It is recorded and offered in the pin as `seed0`, so that both interoperate.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, cast

from a2a_ledger.errors import ContractFrozenError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_ledger.card import Card

_MEMBERS = ("protocolVersion", "securitySchemes", "security")
_SHOWN = 12


def _seed_hash(raw: Mapping[str, object]) -> str:
    text = json.dumps({name: raw.get(name) for name in _MEMBERS}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def seed0(card: Card) -> str | None:
    """Return the minimal client's hash of a card, 64 lower-case hex digits; None where the card cannot be captured so.

    Reads the bytes once more, since that client sees numbers as Python reads them.
    """
    if card.document is None or "duplicate-keys" in card.flags:
        return None
    try:
        return _seed_hash(cast("dict[str, object]", json.loads(card.raw)))
    except ValueError:  # Python refuses to read an integer of thousands of digits
        return None


@dataclass(frozen=True)
class AgentCard:
    """A card as parsed JSON."""

    raw: dict[str, object]

    def contract_hash(self) -> str:
        """Return SHA-256 over protocolVersion, securitySchemes and security, as lower-case hex."""
        return _seed_hash(self.raw)


class TaskState(StrEnum):
    """The states that the minimal client knows; each is its own text, and goes by its name in capitals too."""

    submitted = "submitted"
    working = "working"
    completed = "completed"
    failed = "failed"
    SUBMITTED = submitted
    WORKING = working
    COMPLETED = completed
    FAILED = failed


@dataclass
class Task:
    """A task and the contract that is frozen for it, if any."""

    state: TaskState
    frozen_contract_hash: str | None = None


def capture_contract(card: AgentCard, task: Task) -> str:
    """Freeze a card's contract for a task and return its hash.

    Raises:
        ContractFrozenError: the task is not in `submitted`.
    """
    if task.state != TaskState.submitted:
        raise ContractFrozenError(f"a contract is captured only while a task is submitted; this one is {task.state}")
    task.frozen_contract_hash = card.contract_hash()
    return task.frozen_contract_hash


def verify_peer_message(card: AgentCard, task: Task) -> None:
    """Hold the card that a peer shows now against the contract frozen for a task.

    Raises:
        ContractFrozenError: nothing is frozen, or the card is another contract than the frozen one.
    """
    frozen = task.frozen_contract_hash
    if frozen is None:
        raise ContractFrozenError("nothing is frozen for this task: capture its contract while it is submitted")
    observed = card.contract_hash()
    if observed != frozen:
        raise ContractFrozenError(
            f"the card left the frozen contract: frozen={frozen[:_SHOWN]} observed={observed[:_SHOWN]}"
        )
