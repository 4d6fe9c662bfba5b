"""The one pure function: (what happened so far, the next event) -> findings.

The guard calls it at arrival and the verifier projection behind it, both through `cases.Cases`; an
arbiter calls it over the records of a bundle. It reads nothing behind the record that it judges,
and orders by the log index alone: never by a clock of ours or of the peer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from a2a_ledger.divergence.finding import RULE_SETS
from a2a_ledger.divergence.matter import Matter
from a2a_ledger.divergence.reading import CAPTURED, CARD_FETCHED, MESSAGE, is_inbound, is_request
from a2a_ledger.divergence.rules_artifact import artifact_rules, late_after_final
from a2a_ledger.divergence.rules_authorization import (
    not_exercised,
    stale_capture,
    stale_send,
    weaker_authorization,
)
from a2a_ledger.divergence.rules_card import card_rules
from a2a_ledger.divergence.rules_conduct import conduct_rules
from a2a_ledger.divergence.rules_contract import answer_rules, request_rules
from a2a_ledger.divergence.rules_demand import alert_rules, demand_rules
from a2a_ledger.divergence.rules_error import error_rules
from a2a_ledger.divergence.rules_extension import extension_dropped
from a2a_ledger.divergence.rules_history import history_rules
from a2a_ledger.divergence.rules_protocol import protocol_rules
from a2a_ledger.divergence.rules_twice import duplicate_id, duplicate_keys
from a2a_ledger.divergence.task_case import SERVER
from a2a_ledger.wire import SILENCE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from a2a_ledger.codec import Record
    from a2a_ledger.contract import Profile
    from a2a_ledger.divergence.finding import Finding
    from a2a_ledger.divergence.peer_case import PeerCase
    from a2a_ledger.divergence.reading import Earlier, Lookup
    from a2a_ledger.divergence.task_case import TaskCase


def judge(  # noqa: PLR0913 - the event, both cases, and what they are judged by
    record: Record,
    task: TaskCase | None,
    peer: PeerCase | None,
    profile: Profile,
    lookup: Lookup,
    *,
    earlier: Earlier | None = None,
) -> list[Finding]:
    """Return what the rules say about one event, under the rule set of the case that it is held against.

    Args:
        record: The event; nothing behind it is read.
        task: The task's case before the event, for an event of a task's stream; else None.
        peer: The peer's case before the event; None leaves out the rules that need card fetches.
        profile: The deployment's profile: its `[[alias]]` tables silence `interface-drift`.
        lookup: Finds earlier records, for the bytes of a card that is compared.
        earlier: Reads the tasks of the peer; without it their captures alone speak for them.

    Returns:
        The findings in a fixed order. An adopted task is recorded, never judged, and so is what we
        recorded as the agent: no answer of our own is held against us as if a peer had given it.
    """
    case = task or peer
    if case is None:
        return []
    rule_set, rules = case.rule_set, RULE_SETS[case.rule_set]
    found = _judge(record, task, peer, profile, lookup, earlier=earlier if case.readings.by_sends else None)
    if case.readings.once_a_message:
        found = _once(found)
    return [
        finding if finding.rule_set == rule_set else replace(finding, rule_set=rule_set)
        for finding in found
        if finding.rule in rules
    ]


def _judge(  # noqa: PLR0913 - as `judge`
    record: Record,
    task: TaskCase | None,
    peer: PeerCase | None,
    profile: Profile,
    lookup: Lookup,
    *,
    earlier: Earlier | None,
) -> list[Finding]:
    if record.data.get("side") == SERVER:
        return []
    if record.type == CARD_FETCHED and peer is not None and record.stream == f"peer:{peer.peer}":
        return [*card_rules(record, peer, lookup), *weaker_authorization(record, peer, earlier)]
    if record.type == CAPTURED and peer is not None and earlier is None:
        return list(stale_capture(record, peer, lookup))
    if record.type != MESSAGE or task is None or task.adopted:
        return []
    found = list(_of_task(record, task, peer, profile, lookup))
    if earlier is not None and peer is not None and is_inbound(record):
        found += stale_send(Matter(record, task, profile, lookup, task.request_of(record)), peer)
    return [finding for finding in found if task.is_new(finding)]


def _once(found: Iterable[Finding]) -> list[Finding]:
    """Keep one finding for each rule, trigger and subject: what a message says twice, it has said once.

    A violation is named by its rule, its trigger and its subject; a second of one name has no place in a ledger.
    """
    kept: dict[tuple[str, int, str], Finding] = {}
    for finding in found:
        key = (finding.rule, finding.trigger.n, finding.subject)
        if key not in kept or (finding.certainty == "certain" and kept[key].certainty != "certain"):
            kept[key] = finding
    return list(kept.values())


def _of_task(
    record: Record, task: TaskCase, peer: PeerCase | None, profile: Profile, lookup: Lookup
) -> Iterator[Finding]:
    frozen = task.frozen
    if is_request(record):
        matter = Matter(record, task, profile, lookup, None)
        if frozen is not None:
            yield from request_rules(matter, frozen)
            yield from extension_dropped(matter, frozen)
        yield from duplicate_id(matter, task.contents(record))
        yield from duplicate_keys(matter)
    elif is_inbound(record):
        matter = Matter(record, task, profile, lookup, task.request_of(record))
        if frozen is not None:
            yield from answer_rules(matter, frozen)
            yield from demand_rules(matter, frozen)
            yield from not_exercised(matter, frozen)
            yield from error_rules(matter, frozen)
        yield from protocol_rules(matter)
        said = task.contents(record)
        if said is not SILENCE:
            yield from history_rules(matter, said)
            yield from artifact_rules(matter, said)
            yield from late_after_final(matter, said)
            yield from duplicate_id(matter, said)
        yield from duplicate_keys(matter)
    else:
        matter = Matter(record, task, profile, lookup, None)
        if frozen is not None:
            yield from alert_rules(matter, frozen)
        return
    if peer is not None:
        yield from conduct_rules(matter, peer)
