"""Rows about reading a ledger of whole tasks: the audit, and what it takes to build the read models again."""

from __future__ import annotations

import statistics
from contextlib import contextmanager
from typing import TYPE_CHECKING

from a2a_ledger.audit import audit_ledger
from a2a_ledger.cli.bench.floor import seconds
from a2a_ledger.cli.bench.material import EVENTS_OF_A_TASK, record_tasks
from a2a_ledger.cli.bench.row import Row, Target
from a2a_ledger.errors import LedgerError
from a2a_ledger_projections.base import rebuild
from a2a_ledger_projections.task_contracts import VIEW
from a2a_ledger_projections.verifier import NAME, Verifier

if TYPE_CHECKING:
    from collections.abc import Generator

    from a2a_ledger.cli.bench.place import Place
    from a2a_ledger.ledger import ContractLedger

_AUDITED = 10_000
"""Events that the audit's target speaks of."""


@contextmanager
def _history(place: Place, name: str) -> Generator[tuple[ContractLedger, int]]:
    """Open a ledger of whole tasks; gives it with its size."""
    with place.ledger(name) as ledger:
        record_tasks(ledger, place.scale.history // EVENTS_OF_A_TASK)
        ledger.sign_checkpoint()
        yield ledger, ledger.store.size()


def audit(place: Place) -> list[Row]:
    """The audit of a whole ledger: every record, leaf, tile, tag and signature worked out again."""
    with _history(place, "audit") as (ledger, size):

        def once() -> None:
            faults = audit_ledger(ledger).faults
            if faults:
                raise LedgerError(f"the audit of a fresh ledger found {faults[0]}")

        took = statistics.median(seconds(once) for _ in range(place.scale.repeats))
    target = Target(0.3 * size / _AUDITED)
    return [Row("audit", took, "s", target=target, remark=f"{size} events, {size / took:,.0f} a second")]


def projections(place: Place) -> list[Row]:
    """Build read models again: one that reads records alone, and the verifier, which reads bodies and judges."""
    with _history(place, "rebuild") as (ledger, size):
        records = [seconds(lambda: rebuild(ledger.store, VIEW)) for _ in range(place.scale.repeats)]
        judged = [seconds(lambda: _judge_all(ledger, size)) for _ in range(place.scale.repeats)]
    return [
        _rate("rebuild.records", size, records, 100_000, "task_contracts, from position 0"),
        _rate("rebuild.verifier", size, judged, 50_000, "every rule over every event, from position 0"),
    ]


def _judge_all(ledger: ContractLedger, size: int) -> None:
    with ledger.store.transaction() as connection:
        connection.execute("DELETE FROM ledger_tracking WHERE application_name = ?", (NAME,))
    verifier = Verifier(ledger)
    verifier.catch_up(size)
    if verifier.could_not_verify or ledger.store.size() != size:
        raise LedgerError("the verifier found something in honest traffic, or could not read it")


def _rate(name: str, size: int, took: list[float], least: float, remark: str) -> Row:
    target = Target(least, at_most=False)
    return Row(name, size / statistics.median(took), "events/s", target=target, remark=f"{remark}; {size} events")
