"""A task store under saves that come at once, stores that fail and callers that leave."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from a2a.server.context import ServerCallContext
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import Task, TaskState, TaskStatus

from a2a_ledger.capture.server.task_store import RecordedTaskStore
from a2a_ledger.errors import LedgerUnavailableError, StoreError
from tests.proxy.conftest import only, open_ledger

if TYPE_CHECKING:
    from a2a_ledger import ContractLedger
    from a2a_ledger.codec import Draft
    from a2a_ledger.store import Appended
    from tests.proxy.conftest import OpenLedger

__all__ = ["open_ledger"]

WORKING, COMPLETED = TaskState.TASK_STATE_WORKING, TaskState.TASK_STATE_COMPLETED
CONTEXT = ServerCallContext()


class Gated(InMemoryTaskStore):
    """Saves at once, and says so to the caller when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.saved, self.may_answer = asyncio.Event(), asyncio.Event()
        self.under_way = self.most = 0

    async def save(self, task: Task, context: ServerCallContext) -> None:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await super().save(task, context)
            self.saved.set()
            await self.may_answer.wait()
        finally:
            self.under_way -= 1


class Failing(InMemoryTaskStore):
    """Fails to save, once."""

    failed = False

    async def save(self, task: Task, context: ServerCallContext) -> None:
        if not self.failed:
            self.failed = True
            raise ConnectionError("the database is away")
        await super().save(task, context)


def recorded(store: InMemoryTaskStore, ledger: ContractLedger) -> RecordedTaskStore:
    return RecordedTaskStore(store, ledger, "https://agent.example/.well-known/agent-card.json")


def task(state: TaskState = WORKING, name: str = "T1") -> Task:
    return Task(id=name, context_id="C1", status=TaskStatus(state=state))


def states(ledger: ContractLedger) -> list[tuple[object, object]]:
    return [(record.data["task_id"], record.data["state_read"]) for record in only(ledger, "task.snapshot")]


async def waiting_turns() -> None:
    """Let all that can go on go on, as far as it needs no thread."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_one_state_that_is_saved_four_times_at_once_is_recorded_once(open_ledger: OpenLedger) -> None:
    ledger, inner = open_ledger(), Gated()
    store, saved = recorded(inner, ledger), task()
    saves = [asyncio.create_task(store.save(saved, CONTEXT)) for _ in range(4)]
    await inner.saved.wait()
    await waiting_turns()
    inner.may_answer.set()
    await asyncio.gather(*saves)
    assert states(ledger) == [("T1", "working")]
    assert inner.most == 1


async def test_saves_of_two_tasks_do_not_wait_for_each_other(open_ledger: OpenLedger) -> None:
    ledger, inner = open_ledger(), Gated()
    store = recorded(inner, ledger)
    saves = [asyncio.create_task(store.save(task(name=name), CONTEXT)) for name in ("T1", "T2")]
    await waiting_turns()
    assert inner.under_way == 2
    inner.may_answer.set()
    await asyncio.gather(*saves)
    assert sorted(map(str, states(ledger))) == ["('T1', 'working')", "('T2', 'working')"]


async def test_each_save_records_the_state_that_was_saved_whatever_its_owner_makes_of_it(
    open_ledger: OpenLedger,
) -> None:
    ledger, inner = open_ledger(), Gated()
    store, owned = recorded(inner, ledger), task()
    first = asyncio.create_task(store.save(owned, CONTEXT))
    await inner.saved.wait()
    owned.status.state = COMPLETED
    second = asyncio.create_task(store.save(owned, CONTEXT))
    await waiting_turns()  # the second one waits for the first
    owned.status.state = TaskState.TASK_STATE_FAILED  # never saved
    inner.may_answer.set()
    await asyncio.gather(first, second)
    assert states(ledger) == [("T1", "working"), ("T1", "completed")]
    held = await store.get("T1", CONTEXT)
    assert held is not None
    assert held.status.state == COMPLETED


async def test_what_the_other_store_fails_to_save_is_not_recorded_and_the_next_try_is(open_ledger: OpenLedger) -> None:
    ledger = open_ledger()
    store = recorded(Failing(), ledger)
    with pytest.raises(ConnectionError, match="the database is away"):
        await store.save(task(), CONTEXT)
    assert states(ledger) == []
    await store.save(task(), CONTEXT)
    assert states(ledger) == [("T1", "working")]


async def test_a_save_that_is_cancelled_in_the_other_store_holds_up_no_other(open_ledger: OpenLedger) -> None:
    ledger, inner = open_ledger(), Gated()
    store = recorded(inner, ledger)
    hung = asyncio.create_task(store.save(task(), CONTEXT))
    await inner.saved.wait()
    hung.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hung
    assert states(ledger) == []
    inner.may_answer.set()
    await store.save(task(), CONTEXT)
    assert states(ledger) == [("T1", "working")]


async def test_a_save_that_is_cancelled_while_it_is_recorded_is_recorded_once(
    open_ledger: OpenLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = open_ledger()
    written, may_answer = asyncio.Event(), asyncio.Event()
    append = ledger.append_async

    async def held(drafts: list[Draft]) -> list[Appended]:
        appended = await append(drafts)
        written.set()
        await may_answer.wait()
        return appended

    monkeypatch.setattr(ledger, "append_async", held)
    store = recorded(InMemoryTaskStore(), ledger)
    left = asyncio.create_task(store.save(task(), CONTEXT))
    await written.wait()
    left.cancel()
    again = asyncio.create_task(store.save(task(), CONTEXT))
    await waiting_turns()
    may_answer.set()
    with pytest.raises(asyncio.CancelledError):
        await left
    await again
    assert states(ledger) == [("T1", "working")]


@pytest.mark.parametrize("chosen", ["block", "pass"])
async def test_what_could_not_be_recorded_is_recorded_with_the_next_save(
    open_ledger: OpenLedger, monkeypatch: pytest.MonkeyPatch, chosen: str
) -> None:
    ledger = open_ledger(on_ledger_failure=chosen)
    store = recorded(InMemoryTaskStore(), ledger)

    async def full(_: object) -> None:
        raise StoreError("the disk is full")

    with monkeypatch.context() as failing:
        failing.setattr(ledger, "append_async", full)
        if chosen == "block":
            with pytest.raises(LedgerUnavailableError):
                await store.save(task(), CONTEXT)
        else:
            await store.save(task(), CONTEXT)
    assert states(ledger) == []
    await store.save(task(), CONTEXT)
    assert states(ledger) == [("T1", "working")]


@pytest.mark.parametrize("process", ["a-restart", "another-process"])
async def test_what_another_store_recorded_is_not_looked_up_and_the_first_save_is_recorded(
    open_ledger: OpenLedger, process: str
) -> None:
    inner, ledger = InMemoryTaskStore(), open_ledger()
    await recorded(inner, ledger).save(task(), CONTEXT)
    if process == "a-restart":
        ledger.close()
    ledger = open_ledger()
    store = recorded(inner, ledger)
    await store.save(task(), CONTEXT)
    await store.save(task(), CONTEXT)
    assert states(ledger) == [("T1", "working"), ("T1", "working")]


async def test_a_state_is_recorded_again_once_too_many_other_tasks_were(
    open_ledger: OpenLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("a2a_ledger.capture.server.task_store._REMEMBERED", 2)
    ledger = open_ledger()
    store = recorded(InMemoryTaskStore(), ledger)
    for name in ("T1", "T2", "T1", "T3", "T2", "T1"):  # the third keeps no place: it records nothing
        await store.save(task(name=name), CONTEXT)
    assert [name for name, _ in states(ledger)] == ["T1", "T2", "T3", "T1"]
