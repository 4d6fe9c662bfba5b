"""The one pure function: (what happened so far, the next event) -> findings.

The guard calls it at arrival and the verifier projection behind it, both through `cases.Cases`; an
arbiter calls it over the records of a bundle. It reads nothing behind the record that it judges,
and orders by the log index alone: never by a clock of ours or of the peer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.divergence.matter import Matter
from a2a_ledger.divergence.reading import CARD_FETCHED, MESSAGE
from a2a_ledger.divergence.rules_authorization import not_exercised, weaker_authorization
from a2a_ledger.divergence.rules_card import card_rules
from a2a_ledger.divergence.rules_conduct import conduct_rules
from a2a_ledger.divergence.rules_contract import contract_rules
from a2a_ledger.divergence.rules_demand import demand_rules
from a2a_ledger.divergence.rules_error import error_rules
from a2a_ledger.divergence.rules_protocol import protocol_rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.codec import Record
    from a2a_ledger.contract import Profile
    from a2a_ledger.divergence.finding import Finding
    from a2a_ledger.divergence.peer_case import PeerCase
    from a2a_ledger.divergence.reading import Lookup
    from a2a_ledger.divergence.task_case import TaskCase


def judge(
    record: Record, task: TaskCase | None, peer: PeerCase | None, profile: Profile, lookup: Lookup
) -> list[Finding]:
    """Return what the rules say about one event.

    Args:
        record: The event; nothing behind it is read.
        task: The task's case before the event, for an event of a task's stream; else None.
        peer: The peer's case before the event; None leaves out the rules that need card fetches.
        profile: The deployment's profile: its `[[alias]]` tables silence `interface-drift`.
        lookup: Finds earlier records, for the bytes of a card that is compared.

    Returns:
        The findings in a fixed order. An adopted task is recorded, never judged.
    """
    if record.type == CARD_FETCHED and peer is not None and record.stream == f"peer:{peer.peer}":
        return [*card_rules(record, peer, lookup), *weaker_authorization(record, peer)]
    if record.type != MESSAGE or task is None or task.adopted:
        return []
    return [finding for finding in _of_task(record, task, peer, profile, lookup) if task.is_new(finding)]


def _of_task(
    record: Record, task: TaskCase, peer: PeerCase | None, profile: Profile, lookup: Lookup
) -> Iterator[Finding]:
    matter = Matter(record, task, profile, lookup)
    frozen = task.frozen
    if frozen is not None:
        yield from contract_rules(matter, frozen)
        yield from demand_rules(matter, frozen)
        yield from not_exercised(matter, frozen)
        yield from error_rules(matter, frozen)
    yield from protocol_rules(matter)
    if peer is not None:
        yield from conduct_rules(matter, peer)
