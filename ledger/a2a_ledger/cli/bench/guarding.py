"""Rows about the guard: what it adds to one round trip of an SDK client over loopback."""

from __future__ import annotations

import asyncio
import statistics
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.helpers import new_text_message
from a2a.types import Role, SendMessageRequest

from a2a_ledger.capture.guard import guard
from a2a_ledger.cli.bench import agent
from a2a_ledger.cli.bench.agent import SLOW, SLOW_SECONDS
from a2a_ledger.cli.bench.floor import Floor, seconds
from a2a_ledger.cli.bench.row import Row, Target
from a2a_ledger.cli.bench.started import started
from a2a_ledger.errors import LedgerError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from a2a.client import Client

    from a2a_ledger.cli.bench.place import Place
    from a2a_ledger.ledger import ContractLedger

_NAME = "guard"
_COMMITS = 2  # of one round trip: before the request leaves, and before the answer is handed on
_STATE = 2048  # octets of a bare row that stands for the rows of one commit


class _Trips(NamedTuple):
    """Round trips in ms, in pairs."""

    guarded: list[float]
    plain: list[float]

    @property
    def added(self) -> float:
        """What the guard adds: the median of the differences in a pair, which a drift of the machine does not move."""
        return statistics.median(own - bare for own, bare in zip(self.guarded, self.plain, strict=True))


def guarding(place: Place) -> list[Row]:
    """Send the same tasks with and without the guard, in turn, to a real agent in its own process."""
    with started(agent.__name__) as process, place.ledger(_NAME, follow=True) as ledger:
        fast, slow = asyncio.run(_measure(ledger, process.said, place))
        with Floor(place.path(_NAME), _STATE) as floor:
            floor.insert(place.scale.warm)
            bare = statistics.median(seconds(lambda: floor.insert(_COMMITS)) for _ in range(place.scale.singles)) * 1e3
    share = 100 * slow.added / statistics.median(slow.plain)
    plain = f"without: p50 {statistics.median(fast.plain):.2f} ms, with: {statistics.median(fast.guarded):.2f} ms"
    waiting = f"an agent that takes {SLOW_SECONDS * 1e3:g} ms: {statistics.median(slow.plain):.1f} ms without"
    return [
        Row("guard.added", fast.added, "ms", bare, fast.added / bare, Target(1.5), f"{plain}; floor: two bare commits"),
        Row(
            "guard.share", share, "%", target=Target(5.0), remark=f"{waiting}, {slow.added:.2f} ms more with the guard"
        ),
    ]


async def _measure(ledger: ContractLedger, url: str, place: Place) -> tuple[_Trips, _Trips]:
    scale = place.scale
    async with _clients(ledger, url) as (guarded, plain):
        for client in (guarded, plain):
            await _trips(client, "warm", scale.warm // 10)
        fast = await _pairs(guarded, plain, "report", scale.calls)
        slow = await _pairs(guarded, plain, f"{SLOW} report", scale.slow_calls)
    return fast, slow


@asynccontextmanager
async def _clients(ledger: ContractLedger, url: str) -> AsyncGenerator[tuple[Client, Client]]:
    """Give a guarded client and one as anybody makes it."""
    guarded = guard(ledger)
    try:
        async with guarded.httpx_client() as ours, httpx.AsyncClient() as bare:
            yield (
                await guarded.create_client(url, config=_config(ours)),
                await ClientFactory(_config(bare)).create_from_url(url),
            )
    finally:
        await guarded.aclose()


def _config(http: httpx.AsyncClient) -> ClientConfig:
    return ClientConfig(httpx_client=http, streaming=False, supported_protocol_bindings=["JSONRPC"])


async def _pairs(guarded: Client, plain: Client, text: str, count: int) -> _Trips:
    trips = _Trips([], [])
    for number in range(count):
        if number % 2:
            trips.plain.extend(await _trips(plain, text, 1))
            trips.guarded.extend(await _trips(guarded, text, 1))
        else:
            trips.guarded.extend(await _trips(guarded, text, 1))
            trips.plain.extend(await _trips(plain, text, 1))
    return trips


async def _trips(client: Client, text: str, count: int) -> list[float]:
    """Send that many tasks one after another; return how long each took, in ms."""
    clock = asyncio.get_running_loop().time
    took: list[float] = []
    for _ in range(count):
        request = SendMessageRequest(message=new_text_message(text, role=Role.ROLE_USER))
        began = clock()
        answers = [answer async for answer in client.send_message(request)]
        took.append((clock() - began) * 1e3)
        if not answers or not answers[-1].HasField("task"):
            raise LedgerError("expected the benchmark's agent to answer with a task, found something else")
    return took
