"""Rows about a PostgreSQL server: appends alone and at once, and a verifier that reads on while others write."""

from __future__ import annotations

import statistics
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from a2a_ledger.audit import audit_ledger
from a2a_ledger.cli.bench.floor import Paired, alternate, seconds
from a2a_ledger.cli.bench.material import Messages
from a2a_ledger.cli.bench.row import Row, Target
from a2a_ledger.cli.bench.server_floor import ServerFloor, make_floor, scratch_schema
from a2a_ledger.cli.bench.server_writer import Writers
from a2a_ledger.errors import LedgerError
from a2a_ledger_projections.verifier import NAME, Verifier

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2a_ledger.cli.bench.place import Place
    from a2a_ledger.ledger import ContractLedger

AT_ONCE = 8
_NAME = "postgres"
_LOOK = 0.002  # seconds between two looks at the log of a verifier that has caught up
_PATIENCE = 60.0  # seconds that one event is waited for
_BARE = "floor: bare inserts, each committed by itself"


def postgres(place: Place) -> list[Row]:
    """Measure on the server that this run was given, in schemas that are dropped at the end."""
    assert place.url is not None  # noqa: S101 - without one these rows are not measured
    with scratch_schema(place.url) as server:
        with ExitStack() as stack:
            ledger = stack.enter_context(place.ledger(_NAME, server=server))
            make_floor(server)
            messages = Messages(ledger, AT_ONCE)
            (placed, *_) = ledger.append(messages.drafts(1))
            with ledger.store.views() as session:
                where = "SELECT length(state) FROM ledger_events WHERE rowid = ?"
                size: int = session.execute(where, (placed.n + 1,)).fetchone()[0]
            floors = [stack.enter_context(ServerFloor(server, size)) for _ in range(AT_ONCE)]
            floors[0].insert(place.scale.warm)
            for number in range(place.scale.warm):
                ledger.append([messages.draft(number)])
            rows = [_append(ledger, messages, floors[0], place), _group(ledger, messages, floors, place)]
            writers = stack.enter_context(Writers(place.path(_NAME), place.mark(_NAME), size, AT_ONCE))
            found = _rates(writers, place)
            rows.append(_tailed(ledger, writers, 2 * place.scale.writes))
            target = Target(0.3, "ratio", at_most=False)
            remark = f"{AT_ONCE} processes; {_BARE}, from as many"
            rows.append(
                Row("postgres.processes-rate", found.value, "events/s", found.floor, found.ratio, target, remark)
            )
        with (
            place.ledger(_NAME, follow=True) as ledger,
            Writers(place.path(_NAME), place.mark(_NAME), size, 1) as writer,
        ):
            rows.append(_lag(ledger, writer, place.scale.singles))
    return rows


def _append(ledger: ContractLedger, messages: Messages, floor: ServerFloor, place: Place) -> Row:
    count = place.scale.singles

    def ours() -> float:
        return seconds(lambda: [ledger.append([messages.draft(number)]) for number in range(count)]) / count * 1e3

    found = alternate(ours, lambda: seconds(lambda: floor.insert(count)) / count * 1e3, place.scale.rounds)
    return Row("postgres.append", found.value, "ms", found.floor, found.ratio, remark=_BARE)


def _group(ledger: ContractLedger, messages: Messages, floors: Sequence[ServerFloor], place: Place) -> Row:
    each = place.scale.each

    def appends(number: int) -> None:
        for _ in range(each):
            ledger.append([messages.draft(number)])

    count = AT_ONCE * each
    found = alternate(
        lambda: count / seconds(lambda: _at_once(appends)),
        lambda: count / seconds(lambda: _at_once(lambda number: floors[number].insert(each))),
        place.scale.rounds,
    )
    remark = f"{AT_ONCE} threads; {_BARE}, from as many"
    target = Target(0.5, "ratio", at_most=False)
    return Row("postgres.group", found.value, "events/s", found.floor, found.ratio, target, remark)


def _at_once(work: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _rates(writers: Writers, place: Place) -> Paired:
    each = max(1, place.scale.writes // 10)
    count = AT_ONCE * each
    return alternate(
        lambda: count / seconds(lambda: writers.append(each)),
        lambda: count / seconds(lambda: writers.insert(each)),
        place.scale.rounds,
    )


def _tailed(ledger: ContractLedger, writers: Writers, each: int) -> Row:
    """Have a verifier read on in this process while all others write; see that it passed each event once."""
    verifier = Verifier(ledger)
    while verifier.catch_up():
        pass
    before, done, passed = ledger.store.size(), threading.Event(), list[int]()

    def follow() -> None:
        while True:
            last = done.is_set()
            count = verifier.catch_up()
            passed.append(count)
            if last and not count:
                return
            if not count:
                time.sleep(_LOOK)

    tail = threading.Thread(target=follow)
    tail.start()
    try:
        began = time.perf_counter()
        refused = writers.append(each)
        wrote = time.perf_counter() - began
    finally:
        done.set()
        tail.join()
    took = time.perf_counter() - began
    wanted = AT_ONCE * each
    lost = before + wanted - refused - ledger.store.size()
    unverified = abs(wanted - refused - sum(passed)) + verifier.could_not_verify
    faults = len(audit_ledger(ledger).faults)
    remark = (
        f"{AT_ONCE} processes, {wanted:,} events in {wrote:.1f} s, verified after {took:.1f} s; lost {lost}, refused "
        f"{refused}, not verified exactly once {unverified}, faults of the audit {faults}"
    )
    wrong = abs(lost) + refused + unverified + faults
    return Row("postgres.processes", wrong, "events", target=Target(0), remark=remark)


def _lag(ledger: ContractLedger, writer: Writers, times: int) -> Row:
    """Append in another process, one at a time, and wait each time until the verifier of this one has passed it."""
    _until(ledger, ledger.store.size())
    lags: list[float] = []
    for _ in range(times):
        writer.append(1)
        lags.append(seconds(lambda: _until(ledger, ledger.store.size())))
    remark = f"after an append of another process; the longest of {times}: {max(lags):.3f} s"
    return Row("postgres.lag", statistics.median(lags), "s", remark=remark)


def _until(ledger: ContractLedger, size: int) -> None:
    deadline = time.monotonic() + _PATIENCE
    while ledger.store.position(NAME) < size:
        if time.monotonic() > deadline:
            raise LedgerError(f"the verifier did not come to event {size - 1} within {_PATIENCE:g} s")
        time.sleep(_LOOK)
