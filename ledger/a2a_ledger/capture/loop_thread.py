"""An event loop on a thread of its own, on which code without one runs what is asynchronous."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine
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

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something to its end and return what it returns.

        Context variables are the caller's, and what it makes of ours is there for the caller afterwards. Whatever
        it raises is raised here; a caller that is interrupted cancels it.
        """
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
