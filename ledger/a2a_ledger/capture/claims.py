"""Which task is being opened: calls that come at once and mean the same one, and a second try, join it.

The log alone cannot tell yet: what was decided a moment ago is not in it before its first byte
leaves, and may never be. So each guard holds the ids of what it is opening. A claim says which task is meant
and nothing of what became of it: that a task was sent is said by its record alone.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from contextlib import asynccontextmanager
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
        self._locks: dict[tuple[int, Key], tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def opening(self, key: Key) -> AsyncGenerator[None]:
        """Be the only one of this event loop that looks up, or records, what this key means."""
        place = (id(asyncio.get_running_loop()), key)
        lock, waiting = self._locks.get(place, (asyncio.Lock(), 0))
        self._locks[place] = (lock, waiting + 1)
        try:
            async with lock:
                yield
        finally:
            lock, waiting = self._locks[place]
            if waiting == 1:
                del self._locks[place]
            else:
                self._locks[place] = (lock, waiting - 1)

    def task(self, key: Key) -> str | None:
        """Return the task that is being opened under this key, or was to be."""
        return self._tasks.get(key)

    def hold(self, key: Key, task: str) -> None:
        """Take note that a task is opened under this key."""
        self._tasks[key] = task
        while len(self._tasks) > _REMEMBERED:
            self._tasks.popitem(last=False)

    def release(self, key: Key) -> None:
        """Take note that nothing is opened under this key any more."""
        self._tasks.pop(key, None)


def task_of_context(reader: LogReader, peer: str) -> str | None:
    """Return the task that the application named for this context, if it is one of this peer.

    Its first event says so, or it has none yet.
    """
    task = current_task.get()
    if task is None:
        return None
    first = reader.read_stream(f"task:{task}", limit=1)
    return task if not first or first[0].data.get("peer") in {peer, None} else None
