"""An event loop on a thread of its own, for code without one; and a thread for what blocks in the midst of it."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar

from a2a_ledger.errors import UsageError
from a2a_ledger.store.forks import forget_in_child

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from contextvars import Context

T = TypeVar("T")

_OURS = "a2a_ledger"


class LoopThread:
    """Runs coroutines for callers that wait for them, each in the caller's context; begun when first needed."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self.left_behind = False
        """It ran when this process was forked: no thread of the parent is here, and what it held is the parent's."""
        forget_in_child(self)

    def forget(self) -> None:
        """Take note, in a forked child, of what is not there; see `store.forks`."""
        self._starting = threading.Lock()
        self.left_behind = self.left_behind or self._thread is not None
        self._loop = self._stop = self._thread = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something to its end and return what it returns.

        Context variables are the caller's, and what it makes of ours is there for the caller afterwards. Whatever
        it raises is raised here; a caller that is interrupted cancels it.

        Raises:
            UsageError: this process was forked when the thread ran.
        """
        if self.left_behind:
            work.close()
            raise UsageError(
                "expected a guarded client of this process, found one that its parent had used before the fork: its "
                "connections are the parent's; make another with Guard.sync_httpx_client() after the fork"
            )
        loop, context, waiting = self._running(), copy_context(), Future[T]()

        def start() -> None:
            task = loop.create_task(work, context=context)
            task.add_done_callback(lambda done: _hand_over(done, waiting))
            waiting.add_done_callback(lambda given_up: given_up.cancelled() and loop.call_soon_threadsafe(task.cancel))

        loop.call_soon_threadsafe(start)
        try:
            return waiting.result()
        except BaseException:
            waiting.cancel()
            raise
        finally:
            _take_over(context)

    def close(self) -> None:
        """Cancel what still runs, and end the thread."""
        with self._starting:
            thread, self._thread = self._thread, None
            if thread is not None and self._loop is not None and self._stop is not None:
                self._loop.call_soon_threadsafe(self._stop.set)
                thread.join()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._thread is None:
                started = threading.Event()
                self._thread = threading.Thread(
                    target=lambda: asyncio.run(self._until_stopped(started)), name="a2a-ledger-sync", daemon=True
                )
                self._thread.start()
                started.wait()
        loop = self._loop
        if loop is None:  # the thread sets it before it says that it has started
            raise RuntimeError("the event loop did not start")
        return loop

    async def _until_stopped(self, started: threading.Event) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        started.set()
        await self._stop.wait()


async def on_own_thread(work: Callable[[], T]) -> T:
    """Run something that blocks, on a thread that it shares with nothing, and return what it returns.

    `asyncio.to_thread` has few threads, and the loop needs them itself, for one to look up names: work that waits for
    this very loop must hold none of them.
    """
    context, waiting = copy_context(), Future[T]()

    def run() -> None:
        if not waiting.set_running_or_notify_cancel():
            return
        try:
            done = context.run(work)
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            waiting.set_exception(error)
        else:
            waiting.set_result(done)

    threading.Thread(target=run, name="a2a-ledger-ask", daemon=True).start()
    return await asyncio.wrap_future(waiting)


def _hand_over(done: asyncio.Task[T], waiting: Future[T]) -> None:
    if waiting.cancelled():
        if not done.cancelled():
            done.exception()  # nobody is left who could be told
    elif done.cancelled():
        waiting.set_exception(asyncio.CancelledError())
    elif (error := done.exception()) is not None:
        waiting.set_exception(error)
    else:
        waiting.set_result(done.result())


def _take_over(context: Context) -> None:
    """Give the caller's context what ours became in a copy of it."""
    for variable, value in context.items():
        if variable.name.startswith(_OURS) and variable.get(None) is not value:
            variable.set(value)
