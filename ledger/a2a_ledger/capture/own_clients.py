"""The httpx clients that a guard makes for SDK clients: closed once their SDK client is gone and another one took over.

An SDK client never closes an httpx client that it was given, so whoever makes one for each task would else keep the
connections and the TLS context of all of them until the guard is closed. The newest of each agent stays: a card may
still be asked for on it, as a diagnostic.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from weakref import finalize

if TYPE_CHECKING:
    import httpx


class OwnClients:
    """Keeps them, each with the event loop that its connections belong to."""

    def __init__(self) -> None:
        self._loops: dict[httpx.AsyncClient, asyncio.AbstractEventLoop] = {}
        self._gone: dict[str, list[httpx.AsyncClient]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def add(self, client: httpx.AsyncClient) -> None:
        """Keep one that was made on this event loop."""
        self._loops[client] = asyncio.get_running_loop()

    def follow(self, user: object, client: httpx.AsyncClient, card_url: str) -> None:
        """Take note of the SDK client that uses one, which takes over from those of this card that nobody holds.

        Two agents at one host have one base url and two cards: neither takes over from the other.
        """
        here = asyncio.get_running_loop()
        gone = self._gone.setdefault(card_url, [])
        for former in list(gone):
            loop = self._loops.get(former)
            if loop is not None and loop is not here and not loop.is_closed():
                continue  # of another thread, which may make one as well
            gone.remove(former)
            closing = here.create_task(self.close(former))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
        finalize(user, gone.append, client).atexit = False

    async def close(self, client: httpx.AsyncClient) -> None:
        """Close one on its own event loop, once."""
        loop = self._loops.pop(client, None)
        if loop is not None:
            await _close_on(loop, client)

    async def close_all(self) -> None:
        """Close what is left, and wait for what is being closed on this event loop."""
        while self._loops:
            await self.close(next(iter(self._loops)))
        self._gone.clear()
        here = asyncio.get_running_loop()
        await asyncio.gather(*(closing for closing in self._closing if closing.get_loop() is here))


async def _close_on(loop: asyncio.AbstractEventLoop, client: httpx.AsyncClient) -> None:
    """Close a client where its connections live; those of a loop that has ended went with it."""
    if loop.is_closed():
        return
    if loop is not asyncio.get_running_loop() and loop.is_running():
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(client.aclose(), loop))
    else:
        await client.aclose()
