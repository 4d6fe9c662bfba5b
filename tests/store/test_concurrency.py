"""Threads, tasks and forks on one store: whole calls, nobody blocked, nobody failing for another."""

# pyright: reportPrivateUsage=false
# Faults are put in behind the public face on purpose.

from __future__ import annotations

import asyncio
import os
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import pytest
from eventsourcing.persistence import Tracking

from a2a_ledger.errors import ConflictError, StoreError
from tests.store.checks import check_log
from tests.store.facts import message, new_stream

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from a2a_ledger.store import Appended, Store
    from a2a_ledger.store.group import Call
    from a2a_ledger.store.sqlite import LedgerRecorder
    from tests.store.facts import Where


@pytest.fixture
def store(where: Where) -> Iterator[Store]:
    made = where.make()
    yield made
    made.close()


@contextmanager
def slowed(store: Store, seconds: float = 0.2) -> Generator[list[int]]:
    """Make every transaction take longer; give the sizes of the groups that were written."""
    group = cast("LedgerRecorder", store.recorder).group
    write = group._write
    sizes: list[int] = []

    def slow(calls: Sequence[Call]) -> None:
        sizes.append(len(calls))
        time.sleep(seconds)
        write(calls)

    group._write = slow
    yield sizes
    group._write = write


async def begun(sizes: list[int]) -> None:
    """Wait until the first transaction has begun: what is called next shares the second one."""
    while not sizes:  # noqa: ASYNC110 - the transaction runs in a thread, which sets no event of this loop
        await asyncio.sleep(0.001)


def assert_dense(store: Store, where: Where, placed: Sequence[Appended]) -> None:
    assert sorted(at.n for at in placed) == list(range(len(placed)))
    commitments = check_log(where)
    assert [commitments[at.n] for at in placed] == [at.c for at in placed]
    assert store.size() == len(placed)


def test_threads_share_transactions_and_keep_their_calls_whole(store: Store, where: Where) -> None:
    streams = [new_stream(store) for _ in range(16)]
    placed: list[Appended] = []

    def work(stream: str) -> None:
        for _ in range(20):
            call = store.append([message(stream), message("ledger"), message(stream)])
            assert [at.n for at in call] == list(range(call[0].n, call[0].n + 3))
            placed.extend(call)

    threads = [threading.Thread(target=work, args=(stream,)) for stream in streams]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert_dense(store, where, placed)


async def test_tasks_and_threads_meet(store: Store, where: Where) -> None:
    streams = [new_stream(store) for _ in range(16)]

    async def by_task(stream: str) -> list[Appended]:
        return [at for _ in range(10) for at in await store.append_async([message(stream), message("ledger")])]

    def by_thread(stream: str) -> list[Appended]:
        return [at for _ in range(10) for at in store.append([message(stream), message("ledger")])]

    calls = [by_task(stream) for stream in streams[:8]]
    calls += [asyncio.to_thread(by_thread, stream) for stream in streams[8:]]
    found = await asyncio.gather(*calls)
    assert_dense(store, where, [at for one in found for at in one])


async def test_the_loop_goes_on_while_a_transaction_is_slow(store: Store) -> None:
    stream = new_stream(store)
    turns = 0
    with slowed(store, 0.2):
        append = asyncio.create_task(store.append_async([message(stream)]))
        while not append.done():
            await asyncio.sleep(0.005)
            turns += 1
    assert append.result()[0].n == 0
    assert turns >= 10


async def test_the_loop_goes_on_while_a_thread_writes(store: Store) -> None:
    stream = new_stream(store)
    with slowed(store, 0.2):
        thread = threading.Thread(target=store.append, args=([message(stream)],))
        thread.start()
        start = time.perf_counter()
        append = asyncio.create_task(store.append_async([message(stream)]))
        await asyncio.sleep(0)
        assert time.perf_counter() - start < 0.1
        place = (await append)[0].n
        thread.join()
    assert place in {0, 1}  # whoever of the two was faster
    assert store.size() == 2


async def test_a_cancelled_caller_leaves_nothing_or_a_whole_call(store: Store, where: Where) -> None:
    stream = new_stream(store)
    with slowed(store) as sizes:
        written = asyncio.create_task(store.append_async([message(stream), message(stream)]))
        await begun(sizes)
        queued = asyncio.create_task(store.append_async([message(stream), message(stream)]))
        waiting = asyncio.create_task(store.append_async([message(stream)]))
        await asyncio.sleep(0)
        for task in (written, queued):
            task.cancel()
        for task in (written, queued):
            with pytest.raises(asyncio.CancelledError):
                await task
        assert (await waiting)[0].ver == 2
    assert sizes == [1, 1]
    assert len(check_log(where)) == 3


async def test_a_cancelled_append_is_retried_without_a_second_event(store: Store) -> None:
    stream = new_stream(store)
    fact = message(stream)
    with slowed(store) as sizes:
        first = asyncio.create_task(store.append_async([fact]))
        await begun(sizes)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
    assert (await store.append_async([fact]))[0].n == 0
    assert store.size() == 1


async def test_a_tracking_conflict_fails_only_its_own_call(store: Store) -> None:
    stream = new_stream(store)
    store.append([message("ledger") for _ in range(6)], Tracking("verifier", 5))
    with slowed(store) as sizes:
        first = asyncio.create_task(store.append_async([message(stream)]))
        await begun(sizes)
        calls = [
            store.append_async([message(stream)]),
            store.append_async([message(stream)], Tracking("verifier", 5)),
            store.append_async([message(stream)], Tracking("verifier", 6)),
        ]
        found = await asyncio.gather(first, *calls, return_exceptions=True)
    assert sizes[:2] == [1, 3]
    assert isinstance(found[2], ConflictError)
    assert [at[0].n for at in found if isinstance(at, list)] == [6, 7, 8]
    assert (store.size(), store.position("verifier")) == (9, 6)


def test_a_failed_transaction_fails_every_caller_of_it_and_no_later_one(store: Store) -> None:
    stream = new_stream(store)
    group = cast("LedgerRecorder", store.recorder).group
    write = group._write

    def broken(_: Sequence[Call]) -> None:
        raise StoreError("the disk is gone")

    group._write = broken
    with pytest.raises(StoreError, match="the disk is gone"):
        store.append([message(stream)])
    group._write = write
    assert store.append([message(stream)])[0].n == 0


def test_an_interrupted_leader_takes_nobody_with_it(store: Store) -> None:
    stream = new_stream(store)
    group = cast("LedgerRecorder", store.recorder).group
    write = group._write
    entered, go = threading.Event(), threading.Event()

    def interrupted(calls: Sequence[Call]) -> None:
        group._write = write
        entered.set()
        go.wait()
        assert calls
        raise KeyboardInterrupt

    group._write = interrupted
    ended: list[str] = []

    def leader() -> None:
        try:
            store.append([message(stream)])
        except KeyboardInterrupt:
            ended.append("interrupted")

    def follower() -> None:
        ended.append(f"written at {store.append([message(stream)])[0].n}")

    threads = [threading.Thread(target=leader), threading.Thread(target=follower)]
    threads[0].start()
    entered.wait()
    threads[1].start()
    time.sleep(0.05)
    go.set()
    for thread in threads:
        thread.join(timeout=10)
    assert sorted(ended) == ["interrupted", "written at 0"]


def test_a_forked_child_uses_connections_and_keys_of_its_own(store: Store, where: Where) -> None:
    stream = new_stream(store)
    store.append([message(stream)])
    parents_next = task = new_stream(store)
    child = os.fork()
    if child == 0:
        try:
            own = new_stream(store)
            fine = own != parents_next and store.append([message(stream), message(own)])[0].n == 1
            os._exit(0 if fine else 1)
        except BaseException:  # noqa: BLE001 - a child must not return into the test run
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert store.append([message(task), message(stream)])[1].ver == 2
    assert len(check_log(where)) == 5
