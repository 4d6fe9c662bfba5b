"""Which contract is each task bound to, and where does the task stand? One row a task.

The row is folded from the task's own stream and from the findings that name the task. It helps to
find and to list; no proof rests on it, and it can be dropped and rebuilt at any time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from a2a_ledger_projections.base import ViewFollower
from a2a_ledger_projections.states import Standing, advance, new_standing, time_of
from a2a_ledger_projections.view import View, text

if TYPE_CHECKING:
    from a2a_ledger.events import JsonObject
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger_projections.facts import Fact
    from a2a_ledger_projections.view import Rows

TASK = "task:"

_CAPTURES = frozenset({"contract.captured.v1", "contract.reconstructed.v1"})
_BINDINGS = frozenset({"task.bound.v1", "task.adopted.v1"})


class TaskRow(Standing):
    """One task as the client sees it."""

    task: str  # local id, 40 hex digits
    peer: str
    peer_url: str | None
    peer_task: str | None  # the id that the peer gave
    context: str | None
    contract: str | None  # hash; means something only together with `form`
    form: str | None
    skill: str | None
    basis: str  # live import
    adopted: bool  # first seen past `submitted`: recorded, not judged
    last_at: str
    last_position: int
    findings: int


def fold(fact: Fact, rows: Rows) -> None:
    """Apply one event to the rows that it concerns."""
    if fact.type == "violation.detected.v1":
        for task in _named_tasks(fact.data):
            row = _row(rows, task)
            if row is not None:
                row["findings"] += 1
                rows.put(task, row)
        return
    if not fact.stream.startswith(TASK):
        return
    task = fact.stream.removeprefix(TASK)
    row = _row(rows, task) if fact.ver else None  # version 0 begins a task, so there is no row to look for
    if row is None:
        row = _new_row(task, fact)
        rows.add(task, row)
    advance(row, fact)
    if row["context"] is None:
        row["context"] = text(fact.data, "context_id")
    if not row["peer"]:
        row["peer"] = text(fact.data, "peer") or ""
    if fact.type != "message.recorded.v1":  # by far the most frequent, and it has nothing of the following
        _take_facts(row, fact)
    row["last_at"], row["last_position"] = time_of(fact), fact.n
    rows.put(task, row)


VIEW: View = View(
    name="task_contracts",
    edition=4,
    types=frozenset(
        {
            "freshness.decided.v1",
            "contract.captured.v1",
            "contract.reconstructed.v1",
            "send.aborted.v1",
            "message.recorded.v1",
            "task.bound.v1",
            "task.adopted.v1",
            "task.snapshot.v1",
            "violation.detected.v1",
        }
    ),
    fold=fold,
    shapes={"": TaskRow},
)


def follower(ledger: ContractLedger) -> ViewFollower:
    """Return the follower that keeps this view (entry point group `a2a_ledger.followers`)."""
    return ViewFollower(ledger.store, VIEW)


def _row(rows: Rows, task: str) -> TaskRow | None:
    return cast("TaskRow | None", rows.get(task))


def _new_row(task: str, fact: Fact) -> TaskRow:
    return {
        **new_standing(),
        "task": task,
        "peer": "",
        "peer_url": None,
        "peer_task": None,
        "context": None,
        "contract": None,
        "form": None,
        "skill": None,
        "basis": fact.how,
        "adopted": False,
        "last_at": fact.at,
        "last_position": fact.n,
        "findings": 0,
    }


def _take_facts(row: TaskRow, fact: Fact) -> None:
    data = fact.data
    row["peer_url"] = row["peer_url"] or text(data, "peer_url")
    if fact.type in _CAPTURES:
        row["contract"], row["form"] = text(data, "contract_hash"), text(data, "form")
        row["skill"] = text(data, "skill")
    elif fact.type in _BINDINGS:
        row["peer_task"] = row["peer_task"] or text(data, "task_id")
        row["adopted"] = row["adopted"] or fact.type == "task.adopted.v1"


def _named_tasks(data: JsonObject) -> list[str]:
    task, tasks = data.get("task"), data.get("tasks")
    named = [task] if isinstance(task, str) else []
    if isinstance(tasks, list):
        named += [t for t in tasks if isinstance(t, str) and t != task]
    return named
