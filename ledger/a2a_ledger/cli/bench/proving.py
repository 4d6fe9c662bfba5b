"""Rows about evidence out of a long log: an inclusion proof, one task's bundle, and its verification.

The log is a synthetic one: one real task of 40 events, spread evenly among leaves that commit to a few
octets each. The tree, which is what matters here, is the real one.
"""

from __future__ import annotations

import random
import statistics
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from eventsourcing.persistence import StoredEvent

from a2a_ledger.cli.bench.floor import seconds
from a2a_ledger.cli.bench.long_task import long_task
from a2a_ledger.cli.bench.material import record_tasks
from a2a_ledger.cli.bench.row import Row, Target
from a2a_ledger.errors import LedgerError
from a2a_ledger.export import export_task
from a2a_ledger.merkle import leaf_hash, verify_inclusion
from a2a_ledger.verify import verify

if TYPE_CHECKING:
    from collections.abc import Generator

    from a2a_ledger.cli.bench.place import Place
    from a2a_ledger.ledger import ContractLedger

_CHUNK = 10_000
_APPENDS = 38  # of `record_tasks`, after each of which comes an equal share of the filling
_PROOFS = 200
_SEED = 20260818  # which leaves are proved is the same in every run


@contextmanager
def _long_log(place: Place) -> Generator[tuple[ContractLedger, str]]:
    """Make the long log; gives the ledger and the local id of its one real task."""
    wanted = place.scale.leaves
    with place.ledger("long") as ledger:
        done = 0

        def fill() -> None:
            nonlocal done
            done += 1
            _fill(ledger, max(0, wanted * done // _APPENDS - ledger.store.size()))
            place.progress(ledger.store.size(), wanted)

        (task,) = record_tasks(ledger, 1, between=fill)
        _fill(ledger, wanted - ledger.store.size())
        ledger.sign_checkpoint()
        yield ledger, task


def _fill(ledger: ContractLedger, count: int) -> None:
    """Append that many leaves by the library's own interface, which takes states as they are."""
    start = ledger.store.size()
    for at in range(start, start + count, _CHUNK):
        rows = range(at, min(at + _CHUNK, start + count))
        ledger.store.recorder.insert_events([StoredEvent(f"filling:{n}", 0, "filling", b"%d" % n) for n in rows])


def evidence(place: Place) -> list[Row]:
    """Prove inclusion, export one task, verify the bundle."""
    repeats = max(place.scale.repeats, 3)
    with _long_log(place) as (ledger, task):
        size = ledger.store.size()
        proofs = _prove(ledger, size, min(_PROOFS, size))
        exported = export_task(ledger, task)
        out = statistics.median(seconds(lambda: export_task(ledger, task)) for _ in range(repeats)) * 1e3
        trust = [ledger.signers["log"].vkey]
        verdict = verify(exported.data, trust=trust).verdict
        if verdict != "verified":
            raise LedgerError(f"expected the bundle of the benchmark to verify, found {verdict!r}")
        checked = statistics.median(seconds(lambda: verify(exported.data, trust=trust)) for _ in range(repeats)) * 1e3
    leaves = f"{size:,} leaves"
    bundle = f"{exported.events} events out of {leaves}"
    return [
        Row("evidence.proof", proofs, "ms", target=Target(1.0), remark=f"inclusion, {leaves}, nothing kept in memory"),
        Row("evidence.bundle", out, "ms", target=Target(50), remark=f"{bundle}, signing a head included"),
        Row("evidence.bundle-size", len(exported.data) / 1e3, "KB", target=Target(200), remark=bundle),
        Row("evidence.verify", checked, "ms", target=Target(50), remark=f"{bundle}, verdict {verdict!r}"),
        *long_task(place),
    ]


def _prove(ledger: ContractLedger, size: int, count: int) -> float:
    """Return the median time of one proof in ms; each is checked."""
    choose = random.Random(_SEED)  # noqa: S311 - which leaves are proved is no secret
    root = ledger.store.root(size)
    took: list[float] = []
    for _ in range(count):
        n = choose.randrange(size)
        (leaf,) = ledger.store.leaves(n, n + 1)
        began = time.perf_counter()
        path = ledger.store.inclusion(n, size)
        took.append(time.perf_counter() - began)
        verify_inclusion(n, size, leaf_hash(leaf), path, root)
    return statistics.median(took) * 1e3
