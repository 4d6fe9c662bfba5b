"""Requests of one task and what was said to them, as far as the rules need it; of everything the newest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from a2a_ledger.divergence.finding import Evidence

REMEMBERED = 128
"""Requests, answers and reports of one task that are remembered, newest first."""

_K = TypeVar("_K")
_V = TypeVar("_V")


@dataclass(slots=True)
class Asked:
    """A request of ours, and the ids that its answers settled on."""

    evidence: Evidence
    method: str | None
    task_id: str | None
    context_id: str | None
    version: str | None
    credential: tuple[str, ...]
    message_id: str | None = None
    message: str | None = None
    """Digest of the message that it sends; None: it cannot be compared."""
    history_length: int | None = None
    source: str = ""
    """What it was recorded by, as `told.source_of` names it."""
    again: bool = False
    """It takes a stream up again, or sends a message a second time: the answer may tell what was, from the start."""
    answered_task: str | None = None
    answered_context: str | None = None
    ended: Ended | None = None
    """Where its stream ended, by the peer's word."""

    def resends(self, other: Asked) -> bool:
        """Say whether this, which sends a message, sends that of an earlier request of its source once more."""
        if (self.message_id, self.source) != (other.message_id, other.source):
            return False
        return None in {self.message, other.message} or self.message == other.message


class Said(NamedTuple):
    """Something that the peer said, and the request that it answers, by its commitment."""

    evidence: Evidence
    value: str
    answers: str | None


class Ended(NamedTuple):
    """The event by which a stream ended, and the state that it left the task in."""

    evidence: Evidence
    state: str | None


def remember(held: dict[_K, _V], key: _K, value: _V, *, keep_first: bool = False) -> None:
    """Keep an entry, and of all entries the newest ones."""
    if key in held:
        if keep_first:
            return
        del held[key]
    held[key] = value
    if len(held) > REMEMBERED:
        del held[next(iter(held))]
