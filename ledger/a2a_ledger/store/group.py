"""Group commit: callers that meet share one transaction, and each call is whole or absent.

A lone caller commits in its own thread and pays no hand-over. Whoever finds the work taken waits
and is served by the one who has it; when that one is done it hands the work to the next waiting
caller. Callers of an event loop never wait for a lock that is held over input or output: they are
served by one worker thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from typing import TYPE_CHECKING

from a2a_ledger.errors import ConflictError, StoreError, UsageError
from a2a_ledger.store.append_times import AppendTimes
from a2a_ledger.store.forks import forget_in_child

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from eventsourcing.persistence import Tracking

    from a2a_ledger.store.placing import Appended, Item

_MANY = 8  # callers from which on it pays to wait for them
_PAUSE = 0.0001  # seconds: about what a caller needs to make its next draft
_MAX_EVENTS = 512  # events of one transaction, unless a single call has more


class Call:
    """One append: what to write, and how it ended."""

    __slots__ = ("done", "error", "future", "gate", "items", "result", "since", "tracking")

    def __init__(self, items: Sequence[Item], tracking: Tracking | None) -> None:
        self.items = items
        self.tracking = tracking
        self.since = time.monotonic()
        self.result: list[Appended] = []
        self.error: Exception | None = None
        self.done = False
        self.gate: threading.Lock | None = None  # a waiting thread
        self.future: asyncio.Future[None] | None = None  # a waiting task

    def answer(self) -> list[Appended]:
        """Return the result, or raise what went wrong."""
        if self.error is not None:
            raise self.error
        return self.result


class GroupCommit:
    """Collects calls into transactions.

    Attributes:
        times: how long callers waited for their appends.

    Args:
        write: Writes a group of calls in one transaction and sets each `result`; or raises, and
            nothing of the group is written. It may set `error` of calls whose time is up, and write the others.
    """

    def __init__(self, write: Callable[[Sequence[Call]], None]) -> None:
        self._write = write
        self.times = AppendTimes()
        self._renew()
        forget_in_child(self)

    def _renew(self) -> None:
        # The mutex guards the queue and who leads; it is never held over input or output.
        self._mutex = threading.Lock()
        self._queue: deque[Call] = deque()
        self._led = False
        self._crowd = 1
        self._worker: threading.Thread | None = None
        self._wake = threading.Semaphore(0)
        self._closed = False

    def run(self, items: Sequence[Item], tracking: Tracking | None = None) -> list[Appended]:
        """Append and return when it is durable.

        Raises:
            LedgerError: Nothing of this call was written.
        """
        begun = time.perf_counter()
        call = Call(items, tracking)
        if not self._enter(call) and call.gate is not None:
            try:
                call.gate.acquire()  # released when the call is done, or when this thread is to lead
            except BaseException:
                self._withdraw(call)
                raise
        if not call.done:
            self._lead(call)
        return self._ended(call, begun)

    async def run_async(self, items: Sequence[Item], tracking: Tracking | None = None) -> list[Appended]:
        """Append without blocking the event loop.

        A caller that is cancelled leaves nothing or a whole event: what a transaction has begun
        with is written as if the caller had waited.
        """
        begun = time.perf_counter()
        loop = asyncio.get_running_loop()
        call = Call(items, tracking)
        call.future = loop.create_future()
        if self._enter(call):
            self._start_worker()
        try:
            await call.future
        except asyncio.CancelledError:
            with self._mutex, contextlib.suppress(ValueError):
                self._queue.remove(call)
            raise
        return self._ended(call, begun)

    @property
    def waiting(self) -> int:
        """Return how many callers wait for a transaction to begin with their appends."""
        return len(self._queue)

    def _ended(self, call: Call, begun: float) -> list[Appended]:
        """Count how a call ended, and answer it; what one caller lost to another, or may not write, is no failure."""
        if call.error is None:
            self.times.took(time.perf_counter() - begun)
        elif not isinstance(call.error, (ConflictError, UsageError)):
            self.times.failed()
        return call.answer()

    def close(self) -> None:
        """Stop the worker thread once it has served everybody."""
        self._closed = True
        worker = self._worker
        if worker is not None:
            self._wake.release()
            worker.join()
            self._worker = None

    def _enter(self, call: Call) -> bool:
        """Queue a call; return whether its caller is to lead."""
        if self._closed:
            raise StoreError("expected an open ledger, found it closed")
        with self._mutex:
            self._queue.append(call)
            leads = not self._led
            self._led = True
            if not leads and call.future is None:
                call.gate = threading.Lock()
                call.gate.acquire()
            return leads

    def _withdraw(self, call: Call) -> None:
        """Take back a call whose thread was interrupted while it waited."""
        with self._mutex:
            if call in self._queue:
                heads = self._queue[0] is call
                self._queue.remove(call)
            else:
                return
        # The leader may have chosen this very call to lead next: then the gate is open, and the work is passed on.
        if heads and call.gate is not None and call.gate.acquire(blocking=False):
            self._pass_on()

    def _lead(self, own: Call | None) -> None:
        """Write groups until the own call is done (or, for the worker, until somebody else leads)."""
        while True:
            self._gather()
            group = self._take()
            try:
                self._commit(group)
            except BaseException:  # interrupted: the others are not to suffer; the next leader serves them
                with self._mutex:
                    self._queue.extendleft(call for call in reversed(group) if call is not own and not call.done)
                self._pass_on()
                raise
            self._crowd = len(group) + len(self._queue)
            goes_on = own is not None and not own.done
            leads_again = goes_on or self._pass_on(to_worker=own is None)
            self._answer(group, own)
            if not leads_again:
                return

    def _gather(self) -> None:
        """Let those who were just answered come back: a fuller group for the same disk write.

        It ends when as many wait as were seen last time, or when nobody came during one pause.
        """
        pause = _PAUSE if self._crowd >= _MANY else 0
        seen = -1
        while seen != len(self._queue) < self._crowd:
            seen = len(self._queue)
            time.sleep(pause)

    def _take(self) -> list[Call]:
        group: list[Call] = []
        events = 0
        with self._mutex:
            while self._queue and events < _MAX_EVENTS:
                group.append(self._queue.popleft())
                events += len(group[-1].items)
        return group

    def _commit(self, group: Sequence[Call]) -> None:
        if not group:
            return
        try:
            self._write(group)
        except (ConflictError, UsageError) as error:
            if len(group) == 1:
                group[0].error = error
            else:  # what one caller lost or may not write must not fail its neighbours
                for call in group:
                    if call.error is None:
                        self._commit([call])
        except Exception as error:  # noqa: BLE001 - whatever it is, it goes to every caller of the group
            for call in group:
                call.error = call.error or error
        for call in group:
            call.done = True

    def _pass_on(self, *, to_worker: bool = False) -> bool:
        """Give the lead to the next caller; return True if the worker, who asks, keeps it."""
        with self._mutex:
            if not self._queue:
                self._led = False
                return False
            successor = self._queue[0]
            if successor.gate is not None:
                successor.gate.release()
                return False
        if not to_worker:
            self._start_worker()
        return to_worker

    def _answer(self, group: Sequence[Call], own: Call | None) -> None:
        by_loop: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
        for call in group:
            if call.future is not None:
                by_loop.setdefault(call.future.get_loop(), []).append(call.future)
            elif call.gate is not None and call is not own:
                call.gate.release()
        for loop, futures in by_loop.items():
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to be told
                loop.call_soon_threadsafe(_settle, futures)

    def _start_worker(self) -> None:
        if self._worker is None:
            self._worker = threading.Thread(target=self._work, name="a2a-ledger-commit", daemon=True)
            self._worker.start()
        self._wake.release()

    def _work(self) -> None:
        while True:
            self._wake.acquire()
            if self._closed and not self._queue:
                return
            self._lead(None)

    def forget(self) -> None:
        """Start afresh in the child of a fork: the parent's waiting callers are not here."""
        self.times.forget()
        self._renew()


def _settle(futures: Sequence[asyncio.Future[None]]) -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)
