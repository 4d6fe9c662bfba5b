"""An event loop on a thread of its own, for code without one; and a thread for what blocks in the midst of it."""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import Future
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from weakref import WeakSet

from a2a_ledger.errors import UsageError
from a2a_ledger.store.forks import forget_in_child

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from contextvars import Context

T = TypeVar("T")

_log = logging.getLogger(__name__)

_OURS = "a2a_ledger"


class Held(Protocol):
    """Something that stays open on the loop between two calls of a caller."""

    async def let_go(self) -> None:
        """Close it."""
        ...


class LoopThread:
    """Runs coroutines for callers that wait for them, each in the caller's context; begun when first needed."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread: threading.Thread | None = None
        self._beginning = threading.Lock()
        self._held: WeakSet[Held] = WeakSet()
        self._closed = False
        self.left_behind = False
        """It ran when this process was forked: no thread of the parent is here, and what it held is the parent's."""
        forget_in_child(self)

    def forget(self) -> None:
        """Take note, in a forked child, of what is not there; see `store.forks`."""
        self._beginning = threading.Lock()
        self.left_behind = self.left_behind or self._thread is not None
        self._loop = self._stop = self._thread = None

    @property
    def is_over(self) -> bool:
        """Say whether nothing is begun on it any more: it was closed, or left behind."""
        return self._closed or self.left_behind

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something to its end and return what it returns.

        Context variables are the caller's, and what it makes of ours is there for the caller afterwards. Whatever
        it raises is raised here; a caller that is interrupted cancels it.

        Raises:
            UsageError: the thread is over.
            asyncio.CancelledError: it was closed meanwhile.
        """
        context, waiting = copy_context(), Future[T]()

        def start(loop: asyncio.AbstractEventLoop) -> None:
            task = loop.create_task(work, context=context)
            task.add_done_callback(lambda done: _hand_over(done, waiting))
            waiting.add_done_callback(lambda given_up: given_up.cancelled() and loop.call_soon_threadsafe(task.cancel))

        try:
            self._begin(start)
        except UsageError:
            work.close()
            raise
        try:
            return waiting.result()
        except BaseException:
            waiting.cancel()
            raise
        finally:
            _take_over(context)

    def finish(self, work: Coroutine[Any, Any, None]) -> None:
        """Run what closes something; where the thread is over, that was closed with it."""
        try:
            self.run(work)
        except (UsageError, asyncio.CancelledError):
            if not self.is_over:
                raise

    def hold(self, held: Held) -> None:
        """Take note, on the loop, of something that is let go at the latest when the thread ends."""
        self._held.add(held)

    def close(self) -> None:
        """Cancel what still runs, let go what is held, and end the thread; nothing is begun on it afterwards."""
        with self._beginning:
            first, self._closed = not self._closed, True
            thread = self._thread
            if first and self._loop is not None and self._stop is not None:
                self._loop.call_soon_threadsafe(self._stop.set)
        if thread is not None:
            thread.join()

    def _begin(self, start: Callable[[asyncio.AbstractEventLoop], None]) -> None:
        """Have something started on the loop; what `close` does comes before or behind that as a whole."""
        with self._beginning:
            if self._closed:
                raise UsageError(
                    "expected a guarded client whose guard is open, found one whose guard was closed; make another "
                    "with Guard.sync_httpx_client()"
                )
            if self.left_behind:
                raise UsageError(
                    "expected a guarded client of this process, found one that its parent had used before the fork: "
                    "its connections are the parent's; make another with Guard.sync_httpx_client() after the fork"
                )
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
            loop.call_soon_threadsafe(start, loop)

    async def _until_stopped(self, started: threading.Event) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        started.set()
        await self._stop.wait()
        under_way = asyncio.all_tasks() - {asyncio.current_task()}
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        for failure in await asyncio.gather(*(held.let_go() for held in list(self._held)), return_exceptions=True):
            if failure is not None:
                _log.error("what was still open on a thread that ends was not closed as it should be: %s", failure)


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
