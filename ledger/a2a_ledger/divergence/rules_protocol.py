"""Protocol rules: states, ids and the pin, message against message. They never reject."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.divergence.reading import is_inbound, text
from a2a_ledger.wire import TERMINAL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.divergence.finding import Finding
    from a2a_ledger.divergence.matter import Matter

_SAYS_NOTHING = frozenset({"unknown", "TASK_STATE_UNSPECIFIED", "unspecified", "0"})
"""Spellings by which a peer says that it does not know: A2A has them, they name no state."""
_LONGEST = 128


def protocol_rules(matter: Matter) -> Iterator[Finding]:
    """Hold one message of the peer against what it said before."""
    if not is_inbound(matter.record):
        return
    yield from _illegal_transition(matter)
    yield from _unknown_state(matter)
    yield from _identity_swap(matter)
    yield from _pin_dropped(matter)


def _illegal_transition(matter: Matter) -> Iterator[Finding]:
    """A state after a terminal one.

    The first terminal state stands. An answer to a request from before it, in another exchange, and
    an equal redelivery contradict nothing; nor does a push with a state that is not terminal, since
    a push answers no request of ours and may have been under way for long.
    """
    record, case = matter.record, matter.case
    state, terminal = text(record.data, "state_read"), case.terminal
    if terminal is None or state is None or state == terminal.value:
        return
    if record.data.get("leg") == "push" and state not in TERMINAL:
        return
    if case.precedes(record, terminal) or case.is_redelivery(record):
        return
    yield matter.finding(
        "illegal-transition",
        about="peer",
        subject=f"{terminal.value}->{state}",
        evidence=(terminal.evidence,),
        observed={"terminal": terminal.value, "then": state, "pointer": "/status/state"},
    )


def _unknown_state(matter: Matter) -> Iterator[Finding]:
    """A state that no version of A2A knows."""
    spelled = text(matter.record.data, "state")
    if spelled is None or text(matter.record.data, "state_read") is not None or spelled in _SAYS_NOTHING:
        return
    shown = spelled[:_LONGEST]
    yield matter.finding(
        "unknown-state", about="peer", subject=shown, observed={"state": shown, "pointer": "/status/state"}
    )


def _identity_swap(matter: Matter) -> Iterator[Finding]:
    """An answer about another task or context than the one that was asked about, or that this exchange settled on."""
    record, case = matter.record, matter.case
    asked = case.request_of(record)
    if asked is None:
        return
    task_id, context_id = text(record.data, "task_id"), text(record.data, "context_id")
    expected_task = asked.task_id or asked.answered_task
    if task_id is not None and expected_task is not None and task_id != expected_task:
        yield _swap(matter, "task", expected_task, task_id)
        return
    known = case.contexts.get(expected_task or task_id or "")
    expected_context = asked.context_id or asked.answered_context or known
    if context_id is not None and expected_context is not None and context_id != expected_context:
        yield _swap(matter, "context", expected_context, context_id)


def _swap(matter: Matter, what: str, expected: str, found: str) -> Finding:
    request = matter.case.request_of(matter.record)
    return matter.finding(
        "identity-swap",
        about="peer",
        subject=f"{what}:{found[:_LONGEST]}",
        evidence=(None if request is None else request.evidence,),
        observed={"id": what, "expected": expected[:_LONGEST], "found": found[:_LONGEST]},
    )


def _pin_dropped(matter: Matter) -> Iterator[Finding]:
    """A full Task lacks the pin that the peer has acknowledged; updates, messages and history never count."""
    record, case = matter.record, matter.case
    acknowledged = case.acknowledged
    if acknowledged is None or record.data.get("pin_seen") is not True or record.data.get("pin") is not None:
        return
    if case.precedes(record, acknowledged) or case.is_redelivery(record):
        return
    yield matter.finding(
        "pin-dropped",
        about="peer",
        subject="pin",
        evidence=(acknowledged.evidence,),
        observed={"acknowledged_at": acknowledged.evidence.n, "pointer": "/metadata"},
    )
