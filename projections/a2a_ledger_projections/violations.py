"""Which findings are recorded, and which of them has somebody acknowledged? Read straight from the events.

A finding is what a rule says; a violation is a finding recorded and signed. All are listed, suspected
ones too, each with its certainty; nothing is hidden because it was acknowledged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from a2a_ledger.divergence import ANSWERS
from a2a_ledger.divergence.finding import CUT
from a2a_ledger.divergence.reading import members
from a2a_ledger_projections.facts import facts, positions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.codec import Record
    from a2a_ledger.events import JsonObject
    from a2a_ledger.store import Store

VIOLATION = "violation.detected.v1"


@dataclass(frozen=True, slots=True)
class Violation:
    """One recorded finding and whether it is acknowledged."""

    record: Record
    acknowledged: bool

    @property
    def data(self) -> JsonObject:
        """Return the event's fields."""
        return self.record.data

    @property
    def trigger(self) -> int:
        """Return the position of the event that the finding was made at."""
        index = self.data.get("trigger_index")
        return index if isinstance(index, int) else self.record.n

    def concerns(self, task: str) -> bool:
        """Say whether this finding names the task."""
        tasks = self.data.get("tasks")
        return self.data.get("task") == task or (isinstance(tasks, list) and task in tasks)

    def to_json(self) -> JsonObject:
        """Return one object of `violations --format json`."""
        data = self.data
        whose: JsonObject
        if data.get("task") is not None:
            whose = {"task": data["task"]}
        else:
            whose = {"peer": data.get("peer"), "tasks": data.get("tasks") or []}
        return {
            "rule": data.get("rule"),
            "class": data.get("rule_class"),
            "about": data.get("about"),
            "certainty": data.get("certainty"),
            "basis": data.get("basis"),
            **whose,
            "position": self.record.n,
            "at": self.record.at,
            "rule_set": data.get("rule_set"),
            "evidence": data.get("evidence_index") or [],
            "acknowledged": self.acknowledged,
            "statement_sha256": data.get("statement_sha256"),
        }


def violations(store: Store, *, start: int = 0) -> Iterator[Violation]:
    """Yield every violation from log position `start` on, in log order."""
    with store.views() as db:
        found = positions(db, start, {VIOLATION})
    for n in found:
        record = store.record(n)
        yield Violation(record, is_acknowledged(store, record))


def violations_of(store: Store, task: str, peer: str) -> list[Violation]:
    """Return the violations that name a task: its own, and those of its peer that list it."""
    found = [record for record in store.read_stream(f"findings:{task}") if record.type == VIOLATION]
    found += [record for record in store.read_stream(f"findings:peer:{peer}") if record.type == VIOLATION]
    listed = [Violation(record, is_acknowledged(store, record)) for record in sorted(found, key=lambda r: r.n)]
    return [violation for violation in listed if violation.concerns(task)]


def would_reject(store: Store, violation: Violation) -> bool:
    """Say whether `enforce` refuses what this shows, as `Finding.rejects` has it: a live answer."""
    data = violation.data
    if (data.get("rule_class"), data.get("about")) != ("contract", "peer"):
        return False
    if data.get("certainty") != "certain" and CUT not in members(data.get("observed")):
        return False
    trigger = store.record(violation.trigger)
    return trigger.data.get("leg") in ANSWERS and trigger.how == "live"


def is_acknowledged(store: Store, violation: Record) -> bool:
    """Say whether somebody has acknowledged this violation."""
    return bool(store.tagged(f"ack:{violation.stream}:{violation.ver}", limit=1))


def count_messages(store: Store, *, since: str = "") -> int:
    """Return how many messages of peers were recorded, from a record's time `since` on."""
    with store.views() as db:
        messages = facts(store, db, 0, store.size(), {"message.recorded.v1"})
        return sum(fact.data.get("direction") == "in" and fact.at >= since for fact in messages)
