"""Work that outlives its caller: writes are run to their end, the rest of a stream for a moment."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")

_log = logging.getLogger(__name__)

_ENDING_SECONDS = 30
"""How long closing waits: a ledger that does not answer must not keep a process from ending."""

_DRAIN_SECONDS = 2.0
"""How long closing waits for what only a peer can end."""


class _Whole(asyncio.Task[T]):
    """A task that is not cancelled: `asyncio.run` cancels every task at its end, and waits for each."""

    def cancel(self, msg: object | None = None) -> bool:  # noqa: ARG002 - the signature of a task
        return False


class Underway:
    """What was begun and is not done yet."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()

    def begin(self, work: Coroutine[object, object, T]) -> asyncio.Task[T]:
        """Begin something that ends by itself, and soon; nothing cancels it. Wait for it with `asyncio.shield`."""
        task = _Whole(work, loop=asyncio.get_running_loop())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def settled(self) -> None:
        """Wait for what was begun on this event loop, be it that whoever wanted it has given up."""
        here = asyncio.get_running_loop()
        if not (mine := [task for task in list(self._tasks) if task.get_loop() is here]):
            return
        _, late = await asyncio.wait(mine, timeout=_ENDING_SECONDS)
        if late:
            _log.error("%d record(s) not done after %d s: the ledger did not answer", len(late), _ENDING_SECONDS)


class Behind:
    """What goes on when its caller has left, such as the rest of a stream; it may never end by itself."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def run(self, work: Coroutine[object, object, None]) -> None:
        """Run something that nobody waits for.

        Raises:
            RuntimeError: no event loop runs; `work` was not begun.
        """
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def ended(self) -> None:
        """Give what still runs a moment, then cancel it."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=_DRAIN_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
