"""What a reconciliation says: differences, one verdict a task, and one over all (docs/format.md section 13.3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from a2a_ledger.events import Json, JsonObject
    from a2a_ledger.reconcile.side import SideReport, Stance

Weight: TypeAlias = Literal["contradiction", "stale", "open", "explained"]
"""What a difference does to the verdict: the records exclude each other; the card had changed; it cannot be told from
these records; both records can be true as they stand."""

Contracts: TypeAlias = Literal["same", "differ", "incomparable", "unknown"]
Verdict: TypeAlias = Literal["consistent", "mutually-consistent-stale", "contradiction", "incomplete"]

NOT_ESTABLISHED = (
    "which side's record is the true one, where the two exclude each other",
    "that a message which only one side recorded was sent, arrived or was left out on purpose",
    "when anything happened: each log orders its own events, and no clock is compared",
    "what neither side recorded",
)
"""What no reconciliation establishes, whatever its verdict."""


class Difference(NamedTuple):
    """One thing that the two sides do not have alike.

    Attributes:
        kind: a short name, see docs/format.md section 13.3.
        weight: what it does to the verdict.
        a: log index of the event on side A, None where it has none.
        b: the same on side B.
        detail: one sentence for people.
        pointer: JSON pointer of the first place that differs.
    """

    kind: str
    weight: Weight
    a: int | None
    b: int | None
    detail: str
    pointer: str | None = None

    def to_json(self) -> JsonObject:
        """Return one member of `differences`."""
        return {
            "kind": self.kind,
            "weight": self.weight,
            "a": self.a,
            "b": self.b,
            "pointer": self.pointer,
            "detail": self.detail,
        }


@dataclass(slots=True)
class Legs:
    """How many legs were found on both sides, on one, or with other content.

    `cannot_tell` is part of `both`, and `unseen`, of which a side shows nothing at all, of `cannot_tell`.
    """

    both: int = 0
    only_a: int = 0
    only_b: int = 0
    differ: int = 0
    cannot_tell: int = 0
    unseen: int = 0

    def to_json(self) -> JsonObject:
        """Return the member `legs`."""
        return {
            "both": self.both,
            "only_a": self.only_a,
            "only_b": self.only_b,
            "differ": self.differ,
            "cannot_tell": self.cannot_tell,
            "unseen": self.unseen,
        }


@dataclass(slots=True)
class TaskReport:
    """What came out for one task that both sides have."""

    task_a: str
    task_b: str
    peer: str
    peer_task: str | None
    stances: tuple[Stance, Stance]
    matched_by: tuple[str, ...]
    contract_a: JsonObject | None = None
    contract_b: JsonObject | None = None
    contracts: Contracts = "unknown"
    legs: Legs = field(default_factory=Legs)
    differences: list[Difference] = field(default_factory=list[Difference])

    @property
    def verdict(self) -> Verdict:
        """Return what the differences come to, the gravest first."""
        weights = {difference.weight for difference in self.differences}
        if "contradiction" in weights:
            return "contradiction"
        if "stale" in weights:
            return "mutually-consistent-stale"
        nothing_compared = 0 < self.legs.both == self.legs.unseen
        if "open" in weights or self.contracts in {"unknown", "incomparable"} or nothing_compared:
            return "incomplete"
        return "consistent"

    def to_json(self) -> JsonObject:
        """Return one member of `tasks`."""
        return {
            "task_a": self.task_a,
            "task_b": self.task_b,
            "peer_task": self.peer_task,
            "side_a": self.stances[0],
            "side_b": self.stances[1],
            "matched_by": list(self.matched_by),
            "contract_a": self.contract_a,
            "contract_b": self.contract_b,
            "contracts": self.contracts,
            "legs": self.legs.to_json(),
            "differences": [difference.to_json() for difference in self.differences],
            "verdict": self.verdict,
        }


@dataclass(slots=True)
class Reconciliation:
    """What came out of laying two sides together."""

    sides: tuple[SideReport, SideReport]
    tasks: list[TaskReport]
    cards: list[Difference]
    """Differences between the cards that the two sides saw of one agent, apart from any task."""
    unmatched: tuple[int, int]

    @property
    def peer(self) -> str | None:
        """Return the peer id if all tasks are of one peer."""
        peers = {task.peer for task in self.tasks}
        return peers.pop() if len(peers) == 1 else None

    @property
    def verdict(self) -> Verdict:
        """Return the gravest verdict; a side that does not hold together, or no task in common, decides nothing."""
        found = [task.verdict for task in self.tasks]
        if not all(side.usable for side in self.sides):
            return "incomplete"
        if any(difference.weight == "contradiction" for difference in self.cards):
            return "contradiction"
        for verdict in ("contradiction", "mutually-consistent-stale", "incomplete"):
            if verdict in found:
                return verdict
        return "consistent" if found else "incomplete"

    def to_json(self) -> JsonObject:
        """Return the object that `reconcile --format json` prints."""
        sides: dict[str, Json] = {"a": self.sides[0].to_json(), "b": self.sides[1].to_json()}
        return {
            "peer": self.peer,
            "verdict": self.verdict,
            "sides": sides,
            "tasks": [task.to_json() for task in self.tasks],
            "cards": [difference.to_json() for difference in self.cards],
            "unmatched": {"a": self.unmatched[0], "b": self.unmatched[1]},
            "not_established": list(NOT_ESTABLISHED),
        }
