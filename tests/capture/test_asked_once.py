"""Sends that wait at once: one question about the card for all who carry the same credentials."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import httpx

from a2a_ledger.capture.cards import CardDesk, Fetched
from tests.capture.conftest import STALE, only
from tests.capture.front import WELL_KNOWN, Asked, Reply, card_of, in_front, served
from tests.capture.peer import message

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import pytest

    from tests.capture.agent import Agent
    from tests.capture.conftest import MakeGuard, OpenLedger

SENDS = 30
VERSION = {"A2A-Version": "1.0"}


class HeldCard:
    """Serves a card; once `holds`, it answers about it when `SENDS` questions were put, and notes who asked."""

    def __init__(self, agent: Agent, card: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
        self.card, self.holds = card, False
        self.asked: list[str] = []
        self._put = 0
        self._all_put = threading.Event()
        in_front(agent, self.answer)
        monkeypatch.setattr(CardDesk, "fetch", self._counted(CardDesk.fetch))

    def answer(self, asked: Asked) -> Reply | None:
        if asked.path != WELL_KNOWN:
            return None
        if self.holds:
            self.asked.append(asked.headers.get("authorization", ""))
            assert self._all_put.wait(20), f"{self._put} of {SENDS} questions were put"
        if asked.headers.get("if-none-match") == '"1"':
            return Reply(304, (("etag", '"1"'),))
        return served(self.card, ("etag", '"1"'))

    def _counted(self, fetch: Callable[..., Awaitable[Fetched]]) -> Callable[..., Awaitable[Fetched]]:
        async def counting(*args: Any, **named: Any) -> Fetched:  # noqa: ANN401 - handed on as they are
            if self.holds:
                self._put += 1
                if self._put == SENDS:
                    asyncio.get_running_loop().call_soon(self._all_put.set)
            return await fetch(*args, **named)

        return counting


async def test_sends_of_one_client_ask_once(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, held = open_ledger(limits=STALE), HeldCard(agent, await card_of(agent), monkeypatch)
    limits = httpx.Limits(max_connections=2 * SENDS)
    async with make_guard(ledger).httpx_client(limits=limits, timeout=30) as client:
        await client.get(agent.url + WELL_KNOWN)
        held.holds = True
        answers = await asyncio.gather(
            *(client.post(f"{agent.url}/rpc", json=message(f"m{i}"), headers=VERSION) for i in range(SENDS))
        )
    assert [answer.status_code for answer in answers] == [200] * SENDS
    assert held.asked == [""]
    assert [record.data["reason"] for record in only(ledger, "freshness.decided")][1:] == ["not-modified"] * SENDS
    assert agent.posts == SENDS


async def test_each_credential_asks_once(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, held = open_ledger(limits=STALE), HeldCard(agent, await card_of(agent), monkeypatch)
    async with make_guard(ledger).httpx_client(limits=httpx.Limits(max_connections=2 * SENDS), timeout=30) as client:
        users = [{**VERSION, "Authorization": f"Bearer of-user-{i % 3}"} for i in range(SENDS)]
        await client.get(agent.url + WELL_KNOWN, headers=users[0])
        held.holds = True
        await asyncio.gather(
            *(client.post(f"{agent.url}/rpc", json=message(f"m{i}"), headers=users[i]) for i in range(SENDS))
        )
    assert sorted(held.asked) == ["Bearer of-user-0", "Bearer of-user-1", "Bearer of-user-2"]
    assert agent.posts == SENDS


async def test_threads_of_one_synchronous_client_ask_once(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, held = open_ledger(limits=STALE), HeldCard(agent, await card_of(agent), monkeypatch)
    guard = make_guard(ledger)
    client = guard.sync_httpx_client(limits=httpx.Limits(max_connections=2 * SENDS), timeout=30)

    def post(i: int) -> int:
        return client.post(f"{agent.url}/rpc", json=message(f"m{i}"), headers=VERSION).status_code

    def all_at_once() -> list[int]:
        with client, ThreadPoolExecutor(SENDS) as threads:
            client.get(agent.url + WELL_KNOWN)
            held.holds = True
            return list(threads.map(post, range(SENDS)))

    assert await asyncio.to_thread(all_at_once) == [200] * SENDS
    assert held.asked == [""]
    assert agent.posts == SENDS
