"""A guard that served several event loops is closed on one of them, whatever became of the others."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import httpx

from a2a_ledger import Guard
from tests.capture.peer import CARD_URL, ORIGIN, Peer, card

if TYPE_CHECKING:
    from tests.capture.agent import Agent
    from tests.capture.conftest import OpenLedger


class OfItsLoop(Peer):
    """Can be closed as long as its event loop lives, as connections can."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.loop = asyncio.get_running_loop()
        return await super().handle_async_request(request)

    async def aclose(self) -> None:
        self.loop.call_soon(bool)


def test_clients_of_a_loop_that_has_ended_keep_nothing_else_open(open_ledger: OpenLedger) -> None:
    before = set(threading.enumerate())
    guard = Guard(open_ledger())
    sync = guard.sync_httpx_client(Peer(card(), lambda _: httpx.Response(404)))
    sync.get(CARD_URL)

    async def use() -> None:
        await guard.create_client(ORIGIN, transport=OfItsLoop(card(), lambda _: httpx.Response(404)))

    asyncio.run(use())
    asyncio.run(guard.aclose())
    assert not any(thread.name == "a2a-ledger-sync" for thread in set(threading.enumerate()) - before)
    sync.close()


def test_a_client_is_closed_on_the_loop_that_it_was_made_on(open_ledger: OpenLedger, agent: Agent) -> None:
    closed_on: list[asyncio.AbstractEventLoop] = []

    class Noting(httpx.AsyncHTTPTransport):
        async def aclose(self) -> None:
            closed_on.append(asyncio.get_running_loop())
            await super().aclose()

    guard, made, done = Guard(open_ledger()), threading.Event(), threading.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def use() -> None:
        loops.append(asyncio.get_running_loop())
        await guard.create_client(agent.url, transport=Noting())
        made.set()
        while not done.is_set():  # noqa: ASYNC110 - the event is another thread's
            await asyncio.sleep(0.01)

    other = threading.Thread(target=lambda: asyncio.run(use()))
    other.start()
    assert made.wait(10)
    asyncio.run(guard.aclose())
    done.set()
    other.join()
    assert closed_on == loops
