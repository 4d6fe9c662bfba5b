"""Rows about appending: one at a time, in batches, and from 32 callers at once."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from a2a_ledger.cli.bench.floor import Floor, Paired, alternate, seconds, slow_commits
from a2a_ledger.cli.bench.material import Messages
from a2a_ledger.cli.bench.row import Row, Target

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Generator

    from a2a_ledger.cli.bench.place import Place
    from a2a_ledger.ledger import ContractLedger

CALLERS = 32
BATCH = 100
SLOW = 0.002
"""Seconds that commits are slowed by, to stand for a disk that takes its time."""

_STREAMS = 50


@contextmanager
def _warm(place: Place, name: str, streams: int = _STREAMS) -> Generator[tuple[ContractLedger, Messages, Floor]]:
    """Open a ledger and a floor beside it, both warmed up."""
    with place.ledger(name) as ledger:
        messages = Messages(ledger, streams)
        (placed, *_) = ledger.append(messages.drafts(1))
        with ledger.store.views() as connection:
            where = "SELECT length(state) FROM ledger_events WHERE rowid = ?"
            size: int = connection.execute(where, (placed.n + 1,)).fetchone()[0]
        with Floor(place.path(name), size) as floor:
            floor.insert(place.scale.warm)
            for number in range(place.scale.warm):
                ledger.append([messages.draft(number)])
            yield ledger, messages, floor


def append(place: Place) -> list[Row]:
    """Durable single append of a 1 KB message, sealing included."""
    count = place.scale.singles
    with _warm(place, "append") as (ledger, messages, floor):

        def ours() -> float:
            return seconds(lambda: [ledger.append([messages.draft(number)]) for number in range(count)]) / count * 1e3

        def bare() -> float:
            return seconds(lambda: floor.insert(count)) / count * 1e3

        found = alternate(ours, bare, place.scale.rounds)
    return [Row("append", found.value, "ms", found.floor, found.ratio, Target(2.0, "ratio"), "floor: a bare commit")]


def batch(place: Place) -> list[Row]:
    """Batch import, 100 events a transaction."""
    batches = place.scale.batches
    with _warm(place, "batch") as (ledger, messages, floor):

        def ours() -> float:
            work = lambda: [ledger.append(messages.drafts(BATCH)) for _ in range(batches)]  # noqa: E731 - one expression
            return seconds(work) / (batches * BATCH) * 1e6

        def bare() -> float:
            return seconds(lambda: floor.insert_batched(batches, BATCH)) / (batches * BATCH) * 1e6

        found = alternate(ours, bare, place.scale.rounds)
        commit = seconds(lambda: floor.insert(place.scale.singles)) / place.scale.singles * 1e3
    remark = f"floor: bare rows, 100 a commit; a bare commit takes {commit:.3f} ms"
    return [Row("batch", found.value, "µs/event", found.floor, found.ratio, Target(5.0, "ratio"), remark)]


def group(place: Place) -> list[Row]:
    """32 callers at once, threads and asyncio tasks, against bare commits one after another."""
    rows: list[Row] = []
    quick = (("group.threads", _threads, 1.2), ("group.asyncio", _tasks, 2.5))
    slow = (("group.threads-slow", _threads, 12.0), ("group.asyncio-slow", _tasks, 18.0))
    with _warm(place, "group", CALLERS) as (ledger, messages, floor):
        for name, work, least in quick:
            found = _grouped(ledger, messages, floor, work, place.scale.each, place.scale.rounds)
            rows.append(_group_row(name, found, least, "floor: bare commits, one after another"))
        with ledger.store.transaction() as writer:
            ours = cast("sqlite3.Connection", writer)
        with _slowed(ours, floor.connection):
            for name, work, least in slow:
                found = _grouped(ledger, messages, floor, work, place.scale.slow_each, max(1, place.scale.rounds // 2))
                rows.append(_group_row(name, found, least, f"every commit slowed by {SLOW * 1e3:g} ms"))
    return rows


def _group_row(name: str, found: Paired, least: float, remark: str) -> Row:
    remark = f"{remark}; one takes {1e3 / found.floor:.3f} ms"
    target = Target(least, "ratio", at_most=False)
    return Row(name, found.value, "events/s", found.floor, found.ratio, target, remark)


def _grouped(  # noqa: PLR0913, PLR0917 - both sides and how much of each
    ledger: ContractLedger,
    messages: Messages,
    floor: Floor,
    work: Callable[[ContractLedger, Messages, int], None],
    each: int,
    rounds: int,
) -> Paired:
    count = CALLERS * each
    bare = max(1, count // 8)  # a rate needs fewer of the slower kind
    return alternate(
        lambda: count / seconds(lambda: work(ledger, messages, each)),
        lambda: bare / seconds(lambda: floor.insert(bare)),
        rounds,
    )


@contextmanager
def _slowed(*connections: sqlite3.Connection) -> Generator[None]:
    for connection in connections:
        slow_commits(connection, SLOW)
    try:
        yield
    finally:
        for connection in connections:
            slow_commits(connection, 0)


def _threads(ledger: ContractLedger, messages: Messages, each: int) -> None:
    def work(number: int) -> None:
        for _ in range(each):
            ledger.append([messages.draft(number)])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _tasks(ledger: ContractLedger, messages: Messages, each: int) -> None:
    async def work(number: int) -> None:
        for _ in range(each):
            await ledger.append_async([messages.draft(number)])

    async def everybody() -> None:
        await asyncio.gather(*(work(number) for number in range(CALLERS)))

    asyncio.run(everybody())
