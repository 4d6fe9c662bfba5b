"""Which contract is each task bound to, and where does the task stand? One row a task, and lists of tasks.

A list is one row a task under a key that ends with the log position at which the task began, so that the newest tasks,
of all or of one peer, are found by the key alone. A task is put on a list once and stays there.

The row is folded from the task's own stream and from the findings that name the task. It helps to
find and to list; no proof rests on it, and it can be dropped and rebuilt at any time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, cast

from a2a_ledger_projections.base import ViewFollower
from a2a_ledger_projections.states import Standing, advance, new_standing, time_of
from a2a_ledger_projections.view import View, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.events import JsonObject
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger_projections.facts import Fact
    from a2a_ledger_projections.view import Rows, Table

TASK = "task:"
BEGAN, AT_PEER, WITH_FINDINGS = "order:", "peer:", "judged:"
"""What the keys of lists begin with, no hex digit: the other keys are ids of tasks. A peer's list adds its id, `:`."""

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
    began: int  # position of the first event


class Listed(TypedDict):
    """One task on a list."""

    task: str


def fold(fact: Fact, rows: Rows) -> None:
    """Apply one event to the rows that it concerns."""
    if fact.type == "violation.detected.v1":
        for task in _named_tasks(fact.data):
            row = _row(rows, task)
            if row is not None:
                _take_finding(rows, row)
        return
    if not fact.stream.startswith(TASK):
        return
    task = fact.stream.removeprefix(TASK)
    row = _row(rows, task) if fact.ver else None  # version 0 begins a task, so there is no row to look for
    if row is None:
        row = _new_row(task, fact)
        rows.add(task, row)
        _list(rows, BEGAN, row)
    advance(row, fact)
    if row["context"] is None:
        row["context"] = text(fact.data, "context_id")
    if not row["peer"] and (peer := text(fact.data, "peer")):
        row["peer"] = peer
        _list(rows, f"{AT_PEER}{peer}:", row)
    if fact.type != "message.recorded.v1":  # by far the most frequent, and it has nothing of the following
        _take_facts(row, fact)
    row["last_at"], row["last_position"] = time_of(fact), fact.n
    rows.put(task, row)


VIEW: View = View(
    name="task_contracts",
    edition=5,
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
    shapes={BEGAN: Listed, AT_PEER: Listed, WITH_FINDINGS: Listed, "": TaskRow},
)


def tasks(
    rows: Table, *, peer: str | None = None, findings: bool = False, newest_first: bool = False
) -> Iterator[TaskRow]:
    """Yield the tasks in the order in which they began; who stops early has read little more than he took.

    Args:
        rows: of this view.
        peer: those at this peer alone.
        findings: those with findings alone.
        newest_first: the other way round.
    """
    listing = WITH_FINDINGS if findings else BEGAN
    for listed in rows.in_order(listing if peer is None else f"{AT_PEER}{peer}:", newest_first=newest_first):
        row = cast("TaskRow | None", rows.get(cast("Listed", listed)["task"]))
        if row is not None and (peer is None or row["peer"] == peer) and (row["findings"] or not findings):
            yield row


def follower(ledger: ContractLedger) -> ViewFollower:
    """Return the follower that keeps this view (entry point group `a2a_ledger.followers`)."""
    return ViewFollower(ledger.store, VIEW)


def _take_finding(rows: Rows, row: TaskRow) -> None:
    row["findings"] += 1
    if row["findings"] == 1:
        _list(rows, WITH_FINDINGS, row)
    rows.put(row["task"], row)


def _list(rows: Rows, listing: str, row: TaskRow) -> None:
    listed: Listed = {"task": row["task"]}
    rows.add(f"{listing}{row['began']:016x}", listed)


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
        "began": fact.n,
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
