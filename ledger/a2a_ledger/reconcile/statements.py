"""What one agent told two clients about one task, or two records of one log: laid together. Pure.

Two clients have no exchange in common, so no leg of one is a leg of the other. What can be held
together is what the agent said of the task as such: its end, its context, a message under one id, an
artifact of the finished task. Two bundles of one log hold the same events, or prove two stories.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.divergence.reading import contents_of, is_inbound, text
from a2a_ledger.reconcile.bodies import shown
from a2a_ledger.reconcile.report import Difference, Legs
from a2a_ledger.wire import TERMINAL, Running

if TYPE_CHECKING:
    from a2a_ledger.codec import Record
    from a2a_ledger.reconcile.side import TaskSide
    from a2a_ledger.wire import Content


class _Told(NamedTuple):
    """Something that the agent said under an id; `content` None: it cannot be compared."""

    n: int
    content: Content | None


@dataclass(slots=True)
class _Statements:
    """What one record of a task holds of the agent's statements about it."""

    end: tuple[str, int] | None = None
    contexts: dict[str, int] = field(default_factory=dict[str, int])
    messages: dict[str, _Told] = field(default_factory=dict[str, _Told])
    artifacts: dict[str, _Told] = field(default_factory=dict[str, _Told])


def compare_logs(a: TaskSide, b: TaskSide) -> tuple[Legs, list[Difference]]:
    """Compare two records of one task of one log: the same place of a stream holds the same event."""
    legs, found = Legs(), list[Difference]()
    there = {record.ver: record for record in b.events}
    for record in a.events:
        other = there.pop(record.ver, None)
        if other is None:
            legs.only_a += 1
        elif other.c == record.c:
            legs.both += 1
        else:
            legs.differ += 1
            detail = f"{record.stream} version {record.ver} is two different events: one log told two stories"
            found.append(Difference("two-stories-of-one-log", "contradiction", record.n, other.n, detail))
    legs.only_b = len(there)
    return legs, found


def compare_statements(a: TaskSide, b: TaskSide) -> tuple[Legs, list[Difference]]:
    """Compare what one agent told two clients; `legs` counts the statements that both hold, or only one."""
    left, right = _statements(a), _statements(b)
    legs, found = Legs(), list[Difference]()
    if left.end and right.end and left.end[0] != right.end[0]:
        detail = f"the agent told A that the task ended {left.end[0]}, and B that it ended {right.end[0]}"
        found.append(Difference("other-end-told", "contradiction", left.end[1], right.end[1], detail))
    if left.contexts and right.contexts and not left.contexts.keys() & right.contexts.keys():
        detail = "the agent named one context to A and another one to B"
        places = next(iter(left.contexts.values())), next(iter(right.contexts.values()))
        found.append(Difference("other-context-told", "contradiction", *places, detail))
    for kind, ours, theirs in (
        ("message", left.messages, right.messages),
        ("artifact", left.artifacts, right.artifacts),
    ):
        for name, told in ours.items():
            other = theirs.get(name)
            if other is None:
                legs.only_a += 1
                continue
            if told.content is None or other.content is None:
                legs.both += 1
                legs.cannot_tell += 1
            elif told.content.is_as(other.content):
                legs.both += 1
            else:
                legs.differ += 1
                detail = f"the agent showed A and B another {kind} under the id {name[:80]!r}"
                found.append(Difference(f"other-{kind}-told", "contradiction", told.n, other.n, detail))
        legs.only_b += len(theirs.keys() - ours.keys())
    return legs, found


def _statements(task: TaskSide) -> _Statements:
    made = _Statements()
    for record in task.messages:
        if not is_inbound(record):
            continue
        data = record.data
        state = text(data, "state_read")
        if state in TERMINAL and made.end is None:
            made.end = (state, record.n)
        context = text(data, "context_id")
        if context is not None and text(data, "task_id") == task.peer_task:
            made.contexts.setdefault(context, record.n)
        _read_body(record, made, ended=state in TERMINAL)
    return made


def _read_body(record: Record, made: _Statements, *, ended: bool) -> None:
    """Take what one leg says; contents are compared in a form that all versions of A2A share."""
    body = shown(record)
    if body is None or body.cut:
        return
    said = contents_of(record)
    for message in (said.message, said.status, *said.history):
        if message is not None and message.id is not None:
            made.messages.setdefault(message.id, _Told(record.n, message.content))
    for artifact in said.artifacts if ended else ():
        whole = None if artifact.pieces is None else Running(artifact.pieces).content()  # however its text was cut
        made.artifacts.setdefault(artifact.id, _Told(record.n, whole))
