"""How long appends took, and how many wait: worked by hand, and made to happen."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, cast

import pytest

from a2a_ledger.errors import ConflictError, StoreError
from a2a_ledger.store.append_times import BOUNDS, AppendTimes
from a2a_ledger.store.group import GroupCommit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_ledger.store.group import Call
    from a2a_ledger.store.placing import Item

ONE = cast("Sequence[Item]", ("an item",))


def test_an_append_is_counted_in_the_least_bucket_that_holds_it() -> None:
    times = AppendTimes()
    for seconds in (0.0001, 0.0005, 0.00051, 0.2, 60.0):  # at most 0.0005 twice, 0.001, 0.25, and above all bounds
        times.took(seconds)
    found = dict(zip((*BOUNDS, "all"), times.counted().below, strict=True))
    assert (found[0.0005], found[0.001], found[0.1], found[0.25], found[10.0], found["all"]) == (2, 3, 3, 4, 4, 5)
    assert times.counted().seconds == pytest.approx(60.20111)


def test_a_listener_is_told_until_it_is_ignored_and_its_failure_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    times, told = AppendTimes(), list[float]()

    def fails(_: float) -> None:
        raise ValueError("no exporter")

    times.listen(fails)
    times.listen(told.append)
    times.took(1.5)
    times.ignore(told.append)
    times.took(2.5)
    assert told == [1.5]
    assert times.counted().below[-1] == 2
    assert "no exporter" in caplog.text


def test_what_was_not_recorded_is_a_failure_and_what_somebody_else_recorded_first_is_none() -> None:
    errors: list[Exception] = [StoreError("disk full"), ConflictError("somebody was faster")]

    def write(_: Sequence[Call]) -> None:
        if errors:
            raise errors.pop(0)

    group = GroupCommit(write)
    for expected in (StoreError, ConflictError):
        with pytest.raises(expected):
            group.run(ONE)
    group.run(ONE)
    counted = group.times.counted()
    assert (counted.failures, counted.below[-1]) == (1, 1)


def test_callers_wait_while_a_transaction_is_written_and_their_time_counts_from_when_they_called() -> None:
    writing, go_on, sizes = threading.Event(), threading.Event(), list[int]()

    def write(calls: Sequence[Call]) -> None:
        sizes.append(len(calls))
        writing.set()
        assert go_on.wait(30)

    group = GroupCommit(write)
    assert group.waiting == 0
    callers = [threading.Thread(target=group.run, args=(ONE,)) for _ in range(4)]
    callers[0].start()
    assert writing.wait(30)
    for caller in callers[1:]:
        caller.start()
    while group.waiting < 3:  # the others are on their way: they have nothing else to do
        writing.wait(0.001)
    assert group.waiting == 3
    go_on.set()
    for caller in callers:
        caller.join(30)
    assert (sizes, group.waiting, group.times.counted().below[-1]) == ([1, 3], 0, 4)


def test_a_forked_child_counts_its_own() -> None:
    group = GroupCommit(lambda _: None)
    group.run(ONE)
    group.forget()  # what `os.fork` calls in the child
    assert group.times.counted().below[-1] == 0
    group.run(ONE)
    assert group.times.counted().below[-1] == 1
