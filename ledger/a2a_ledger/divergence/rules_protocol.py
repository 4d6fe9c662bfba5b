"""Protocol rules: states, ids and the pin, message against message. They never reject."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.divergence.cut import cut_ids, may_be_same
from a2a_ledger.divergence.exchanges import REMEMBERED
from a2a_ledger.divergence.reading import is_of_another, members, text
from a2a_ledger.divergence.readings import LONGEST
from a2a_ledger.wire import TERMINAL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.divergence.exchanges import Asked, Said
    from a2a_ledger.divergence.finding import Finding
    from a2a_ledger.divergence.matter import Matter
    from a2a_ledger.events import Json

_SAYS_NOTHING = frozenset({"unknown", "TASK_STATE_UNSPECIFIED", "unspecified", "0"})
"""Spellings by which a peer says that it does not know: A2A has them, they name no state."""


def protocol_rules(matter: Matter) -> Iterator[Finding]:
    """Hold one message of the peer against what it said before."""
    for told, certainty in matter.sources:
        terminal = matter.case.terminal(matter.record, told)
        if terminal is not None:
            yield from _illegal_transition(matter, terminal, certainty)
    yield from _unknown_state(matter)
    if matter.asked is not None:
        yield from _identity_swap(matter, matter.asked)
    elif matter.readings.in_pushes and text(matter.record.data, "leg") == "push":
        yield from _swapped_in_push(matter)
    acknowledged = matter.case.acknowledged(matter.record, matter.told)
    if acknowledged is not None:
        yield from _pin_dropped(matter, acknowledged)


def _illegal_transition(matter: Matter, terminal: Said, certainty: str) -> Iterator[Finding]:
    """A state of the peer's task after a terminal one of the same task.

    The first terminal state stands. An answer to a request from before it, in another exchange, and
    an equal redelivery contradict nothing; nor does a state that is not terminal, in a push or in a
    stream that was taken up again: a push answers no request of ours and may have been under way for
    long, and a stream that begins anew may tell from the start, what we never saw of it included. Two sources have no
    order: of what the other one tells only another end contradicts, and that is suspected.
    """
    record, case = matter.record, matter.case
    state = text(record.data, "state_read")
    if state is None or state == terminal.value:
        return
    if state not in TERMINAL and (certainty != "certain" or case.may_be_late(record)):
        return
    if case.precedes(record, terminal) or case.is_redelivery(record):
        return
    yield matter.finding(
        "illegal-transition",
        about="peer",
        certainty=certainty,
        subject=f"{terminal.value}->{state}",
        evidence=(terminal.evidence,),
        observed={"terminal": terminal.value, "then": state, "pointer": "/status/state"},
    )


def _unknown_state(matter: Matter) -> Iterator[Finding]:
    """A state that no version of A2A knows."""
    spelled = text(matter.record.data, "state")
    if spelled is None or text(matter.record.data, "state_read") is not None or spelled in _SAYS_NOTHING:
        return
    observed: dict[str, Json] = {"state": spelled[:LONGEST], "pointer": "/status/state"}
    yield matter.finding("unknown-state", about="peer", subject=matter.readings.in_subject(spelled), observed=observed)


def _identity_swap(matter: Matter, asked: Asked) -> Iterator[Finding]:
    """An answer about another task or context than the one that was asked about, or that this exchange settled on."""
    record, case = matter.record, matter.case
    task_id, context_id = text(record.data, "task_id"), text(record.data, "context_id")
    expected_task = asked.task_id or asked.answered_task
    if task_id is not None and expected_task is not None and _differ(matter, expected_task, task_id):
        yield _swap(matter, asked, "task", expected_task, task_id)
        return
    known = case.contexts.get(expected_task or task_id or "")
    expected_context = asked.context_id or asked.answered_context or known
    if context_id is not None and expected_context is not None and _differ(matter, expected_context, context_id):
        yield _swap(matter, asked, "context", expected_context, context_id)


def _swapped_in_push(matter: Matter) -> Iterator[Finding]:
    """A push about a task that this one is not bound to, or about another context than its task's."""
    record, tasks = matter.record, matter.case.peer_tasks
    task_id, context_id = text(record.data, "task_id"), text(record.data, "context_id")
    if task_id is None:
        return
    expected = matter.case.contexts.get(task_id)
    if (
        tasks and all(_differ(matter, one, task_id) for one in tasks) and len(tasks) < REMEMBERED
    ):  # of more tasks the oldest are forgotten
        yield _swap(matter, None, "task", next(iter(tasks)), task_id)
    elif expected is not None and context_id is not None and _differ(matter, expected, context_id):
        yield _swap(matter, None, "context", expected, context_id)


def _differ(matter: Matter, one: str, other: str) -> bool:
    """Say whether two ids are two, also where a secret was cut out of one of them."""
    if one == other or not matter.readings.heeds_cuts:
        return one != other
    return not may_be_same(one, other, {*matter.case.cut_ids, *cut_ids(matter.record)})


def _swap(matter: Matter, asked: Asked | None, what: str, expected: str, found: str) -> Finding:
    return matter.finding(
        "identity-swap",
        about="peer",
        subject=f"{what}:{matter.readings.in_subject(found)}",
        evidence=() if asked is None else (asked.evidence,),
        observed={"id": what, "expected": expected[:LONGEST], "found": found[:LONGEST]},
    )


def _is_pinned(matter: Matter) -> bool:
    """Say whether a pin is there; what is left in its place, without a hash or a form that can be read, is none."""
    pin = matter.record.data.get("pin")
    if pin is None or not matter.readings.whole_pins:
        return pin is not None
    hash_and_form = (text(members(pin), "contractHash"), text(members(pin), "form"))
    return None not in hash_and_form or matter.case.acknowledges(matter.record)


def _of_another(matter: Matter) -> str | None:
    """Return the log, else the task, that the pin in a Task names if these are not ours; None: nothing of another."""
    pin, frozen = members(matter.record.data.get("pin")), matter.case.frozen
    if not matter.readings.own_pins or frozen is None or not is_of_another(pin, frozen.pin):
        return None
    return text(pin, "origin") or text(pin, "task")


def _pin_dropped(matter: Matter, acknowledged: Said) -> Iterator[Finding]:
    """A full Task lacks the pin that the peer has acknowledged for it; updates, messages and history never count.

    What may tell of a time before the acknowledgement counts only if it cannot: a finished Task, where the
    acknowledging one was not yet finished. Another's pin in its place is suspected: another client with a ledger of
    its own may have gone on with the task, and the peer shows the pin that came last.
    """
    record, case = matter.record, matter.case
    replaced_by = _of_another(matter)
    if record.data.get("pin_seen") is not True or (replaced_by is None and _is_pinned(matter)):
        return
    if case.readings.told_late and case.may_be_late(record):
        unfinished = acknowledged.value != "" and acknowledged.value not in TERMINAL
        if text(record.data, "state_read") not in TERMINAL or not unfinished:
            return
    if case.precedes(record, acknowledged) or case.is_redelivery(record):
        return
    yield matter.finding(
        "pin-dropped",
        about="peer",
        subject="pin",
        certainty="certain" if replaced_by is None else "suspected",
        evidence=(acknowledged.evidence,),
        observed={
            "acknowledged_at": acknowledged.evidence.n,
            "pointer": "/metadata",
            "replaced_by": replaced_by,
        },
    )
