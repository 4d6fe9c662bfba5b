"""Which task of one side is which of the other: by ids that both recorded, and by content. Pure.

The first thing that fits decides, in this order: the same task of the same log (two bundles of one
ledger), the pin that the agent holds and that names log and task, the agent's task id at the same
peer, the message id of a send at the same peer, then the agent's task id together with a context or a
message that both have, and last the octets of a request that sends. A context alone never makes two tasks one.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.divergence.reading import members, text
from a2a_ledger.reconcile.bodies import shown
from a2a_ledger.reconcile.side import task_side
from a2a_ledger.wire import SENDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from a2a_ledger.codec import Record
    from a2a_ledger.events import JsonObject
    from a2a_ledger.reconcile.side import Side, TaskSide

_MOST_KEYS = 256
"""Ids of each kind that are remembered of one task: of a long one the first."""

_MOST_TASKS_OF_A_KEY = 64


class Pair(NamedTuple):
    """Two local task ids that mean one task, and by what."""

    a: str
    b: str
    by: tuple[str, ...]


@dataclass(slots=True)
class Keys:
    """What one task can be known by."""

    task: str
    log: str
    peer: str
    order: int
    peer_tasks: dict[str, None] = field(default_factory=dict[str, None])
    contexts: dict[str, None] = field(default_factory=dict[str, None])
    messages: dict[str, None] = field(default_factory=dict[str, None])
    pins: dict[tuple[str, str], None] = field(default_factory=dict[tuple[str, str], None])
    contents: dict[str, None] = field(default_factory=dict[str, None])

    def found_by(self) -> Iterator[tuple[str, ...]]:
        """Yield everything that a task of the other side may be looked up by."""
        yield "log", self.log, self.task
        for log, task in self.pins:
            yield "log", log, task
        for kind, values in (
            ("task", self.peer_tasks),
            ("message", self.messages),
            ("content", self.contents),
        ):
            for value in values:
                yield kind, value


def keys_of(task: TaskSide, order: int) -> Keys:
    """Read what a task can be known by."""
    keys = Keys(task.task, task.log, task.peer, order)
    for record in task.events:
        data = record.data
        for name, held in (("task_id", keys.peer_tasks), ("context_id", keys.contexts)):
            _hold(held, text(data, name))
        if pin := _pin(data):
            keys.pins.setdefault(pin)
        if data.get("leg") == "request" and text(data, "method") in SENDS:
            _hold(keys.messages, text(data, "message_id"))
            _hold(keys.contents, _content(record))
    return keys


def pairs_of(a: Side, b: Side) -> tuple[list[Pair], int, int]:
    """Return the tasks that both sides have, and how many each side has that the other lacks.

    A task belongs to one pair at most: where several fit, the better reason wins, then the order of the two logs.
    """
    left = [keys_of(task, order) for order, task in enumerate(_tasks(a))]
    right = [keys_of(task, order) for order, task in enumerate(_tasks(b))]
    held: dict[tuple[str, ...], list[Keys]] = {}
    for keys in right:
        for key in keys.found_by():
            held.setdefault(key, []).append(keys)
    candidates: dict[tuple[str, str], tuple[int, int, int, Pair]] = {}
    for one in left:
        for key in one.found_by():
            for other in held.get(key, ())[:_MOST_TASKS_OF_A_KEY]:
                place = (one.task, other.task)
                if place not in candidates and (reasons := _reasons(one, other)):
                    rank = _RANKS.index(reasons[0])
                    candidates[place] = (rank, one.order, other.order, Pair(one.task, other.task, tuple(reasons)))
    chosen: list[Pair] = []
    taken_a, taken_b = set[str](), set[str]()
    for _, _, _, pair in sorted(candidates.values()):
        if pair.a not in taken_a and pair.b not in taken_b:
            chosen.append(pair)
            taken_a.add(pair.a)
            taken_b.add(pair.b)
    order_of = {keys.task: keys.order for keys in left}
    return sorted(chosen, key=lambda pair: order_of[pair.a]), len(left) - len(chosen), len(right) - len(chosen)


_RANKS = ("same-log", "pin", "peer-task", "message", "task-elsewhere", "content")


def _reasons(a: Keys, b: Keys) -> list[str]:
    """Return by what two tasks are one, best first; nothing: they are not."""
    same_log = (a.log, a.task) == (b.log, b.task)
    pinned = (a.log, a.task) in b.pins or (b.log, b.task) in a.pins
    same_peer = a.peer == b.peer
    task = bool(a.peer_tasks.keys() & b.peer_tasks.keys())
    message = bool(a.messages.keys() & b.messages.keys())
    context = bool(a.contexts.keys() & b.contexts.keys())
    met = {
        "same-log": same_log,
        "pin": pinned and not same_log,
        "peer-task": same_peer and task,
        "message": same_peer and message and not (a.peer_tasks and b.peer_tasks and not task),
        "task-elsewhere": not same_peer and task and (context or message),
        "content": bool(a.contents.keys() & b.contents.keys()) and not (a.peer_tasks and b.peer_tasks and not task),
    }
    return [reason for reason in _RANKS if met[reason]]


def _tasks(side: Side) -> Iterable[TaskSide]:
    for task in side.tasks():
        events = side.events(task)
        if events:
            yield task_side(task, side.report.origin, events)


def _hold(held: dict[str, None], value: str | None) -> None:
    if value is not None and len(held) < _MOST_KEYS:
        held.setdefault(value)


def _pin(data: JsonObject) -> tuple[str, str] | None:
    """Return log and task that a pin names: that of a capture, or one that a message carries."""
    pin = members(data.get("pin"))
    log, task = text(pin, "origin"), text(pin, "task")
    return None if log is None or task is None else (log, task)


def _content(record: Record) -> str | None:
    """Return a digest of a request's octets; None where some are hidden."""
    seen = shown(record)
    if seen is None or seen.hidden or not seen.size:
        return None
    return hashlib.sha256(seen.known).hexdigest()
