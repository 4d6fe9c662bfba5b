"""Which task is being opened: calls that come at once and mean the same one, and a second try, join it.

The log alone cannot tell yet: what was decided a moment ago is not in it before its first byte
leaves, and may never be. So each guard holds the ids of what it is opening, for all event loops that
it serves. A claim says which task is meant and nothing of what became of it: that a task was sent is
said by its record alone.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict, deque
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from a2a_ledger.ledger import current_task

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from a2a_ledger.capture.reader import LogReader

_REMEMBERED = 4096

Key = tuple[str, ...]


class Claims:
    """The tasks that one guard is opening, by what they are known by before the log knows them."""

    def __init__(self) -> None:
        self._tasks: OrderedDict[Key, str] = OrderedDict()
        self._waiting: dict[Key, deque[asyncio.Future[None]]] = {}
        """Who waits for each key that somebody has; of any event loop."""
        self._changing = threading.Lock()

    @asynccontextmanager
    async def opening(self, key: Key) -> AsyncGenerator[None]:
        """Be the only one, of all event loops, that looks up, or records, what this key means."""
        await self._take(key)
        try:
            yield
        finally:
            self._pass_on(key)

    async def _take(self, key: Key) -> None:
        with self._changing:
            waiting = self._waiting.get(key)
            if waiting is None:
                self._waiting[key] = deque()
                return
            turn = asyncio.get_running_loop().create_future()
            waiting.append(turn)
        try:
            await turn
        except BaseException:
            with self._changing:
                was_given = turn not in waiting
                if not was_given:
                    waiting.remove(turn)
            if was_given:
                self._pass_on(key)
            raise

    def _pass_on(self, key: Key) -> None:
        with self._changing:
            waiting = self._waiting[key]
            while waiting:
                turn = waiting.popleft()
                with suppress(RuntimeError):  # the loop that waited is closed: the next one's turn
                    turn.get_loop().call_soon_threadsafe(_wake, turn)
                    return
            del self._waiting[key]

    def task(self, key: Key) -> str | None:
        """Return the task that is being opened under this key, or was to be."""
        return self._tasks.get(key)

    def hold(self, key: Key, task: str) -> None:
        """Take note that a task is opened under this key."""
        with self._changing:
            self._tasks[key] = task
            while len(self._tasks) > _REMEMBERED:
                self._tasks.popitem(last=False)

    def release(self, key: Key) -> None:
        """Take note that nothing is opened under this key any more."""
        with self._changing:
            self._tasks.pop(key, None)


def _wake(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)


def task_of_context(reader: LogReader, peer: str) -> str | None:
    """Return the task that the application named for this context, if it is one of this peer.

    Its first event says so, or it has none yet.
    """
    task = current_task.get()
    if task is None:
        return None
    first = reader.read_stream(f"task:{task}", limit=1)
    return task if not first or first[0].data.get("peer") in {peer, None} else None
