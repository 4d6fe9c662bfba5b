"""Two sides' records of the same tasks laid together: what both have, what one lacks, what excludes the other.

The client and the agent, or two clients of one agent, each bring a bundle or a ledger. Nothing here
decides who is right: where two records exclude each other it says so, and where a side's own record
shows that the card had changed before a task began it says that too, by name (docs/format.md
section 13.3). Pure: records in, a `Reconciliation` out; no clock is compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.reconcile.contracts import Cards, ContractComparison, compare_cards
from a2a_ledger.reconcile.legs import LegComparison
from a2a_ledger.reconcile.pairing import pairs_of
from a2a_ledger.reconcile.report import NOT_ESTABLISHED, Difference, Legs, Reconciliation, TaskReport
from a2a_ledger.reconcile.side import (
    BundleSide,
    CardSeen,
    Side,
    SideReport,
    TaskSide,
    bundle_side,
    card_seen,
    ledger_report,
    task_side,
)
from a2a_ledger.reconcile.statements import compare_logs, compare_statements

if TYPE_CHECKING:
    from a2a_ledger.reconcile.pairing import Pair

__all__ = [
    "NOT_ESTABLISHED",
    "BundleSide",
    "CardSeen",
    "Difference",
    "Legs",
    "Reconciliation",
    "Side",
    "SideReport",
    "TaskReport",
    "bundle_side",
    "card_seen",
    "ledger_report",
    "reconcile",
]


def reconcile(a: Side, b: Side) -> Reconciliation:
    """Lay two sides together.

    Args:
        a: one side; see `bundle_side`.
        b: the other side.

    Returns:
        One report for each task that both sides have, in the order of A's log, and what the agent's cards say.
    """
    pairs, left_a, left_b = pairs_of(a, b)
    tasks: list[TaskReport] = []
    peers: dict[str, None] = {}
    for pair in pairs:
        one, other = (
            task_side(task, side.report.origin, side.events(task)) for task, side in ((pair.a, a), (pair.b, b))
        )
        peers |= dict.fromkeys(peer for peer in (one.peer, other.peer) if peer)
        tasks.append(_compare(pair, one, other, a, b))
    cards = [
        difference
        for peer in peers
        for difference in compare_cards(Cards(a.cards(peer), a.whole), Cards(b.cards(peer), b.whole))
    ]
    return Reconciliation((a.report, b.report), tasks, cards, (left_a, left_b))


def _compare(pair: Pair, one: TaskSide, other: TaskSide, a: Side, b: Side) -> TaskReport:
    report = TaskReport(
        task_a=one.task,
        task_b=other.task,
        peer=one.peer or other.peer,
        peer_task=one.peer_task or other.peer_task,
        stances=(one.stance, other.stance),
        matched_by=pair.by,
    )
    contracts = ContractComparison(one, other, Cards(a.cards(one.peer), a.whole), Cards(b.cards(other.peer), b.whole))
    report.contract_a, report.contract_b = contracts.frozen
    report.contracts = contracts.contracts
    report.differences += contracts.differences
    legs, found = _compare_legs(one, other)
    report.legs = legs
    report.differences += found
    return report


def _compare_legs(one: TaskSide, other: TaskSide) -> tuple[Legs, list[Difference]]:
    if (one.log, one.task) == (other.log, other.task):
        return compare_logs(one, other)
    if one.stance == other.stance:
        return compare_statements(one, other)
    client_is_a = one.stance == "client"
    client, agent = (one, other) if client_is_a else (other, one)
    compared = LegComparison(client, agent, client_is_a=client_is_a)
    return compared.legs, compared.differences
