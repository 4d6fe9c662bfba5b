"""Rows about streams: how much later a first event comes through guard and proxy, and the memory of a long one."""

from __future__ import annotations

import asyncio
import statistics
from contextlib import ExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.helpers import new_text_message
from a2a.types import Role, SendMessageRequest

from a2a_ledger.capture.guard import guard
from a2a_ledger.cli.bench.row import Row, Target
from a2a_ledger.cli.bench.started import peak_memory, relayed
from a2a_ledger.errors import LedgerError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from a2a.client import Client

    from a2a_ledger.cli.bench.place import Place
    from a2a_ledger.cli.bench.started import Relayed
    from a2a_ledger.ledger import ContractLedger

_NAME = "stream"
_SHORT = 3
"""Events of a stream of which only the first is waited for."""

_LATE = Target(5.0)
_GROWTH = Target(16.0)
"""MB: less than what the long stream's events hold (1.8 MB on the wire, several times that as objects)."""


def streaming(place: Place) -> list[Row]:
    """Stream from one agent directly, through the guard, and through the proxy, in turn."""
    with ExitStack() as stack:
        agent = stack.enter_context(relayed("agent"))
        upstream = f"http://127.0.0.1:{agent.port}"
        proxy = stack.enter_context(relayed("proxy", upstream, str(place.path(f"{_NAME}-proxy") / "ledger")))
        ledger = stack.enter_context(place.ledger(_NAME))
        return asyncio.run(_measure(ledger, upstream, proxy, place))


async def _measure(ledger: ContractLedger, upstream: str, proxy: Relayed, place: Place) -> list[Row]:
    scale = place.scale
    async with _clients(ledger, upstream, f"http://127.0.0.1:{proxy.port}") as (direct, guarded, proxied):
        clients = (direct, guarded, proxied)
        for client in clients:
            for _ in range(max(1, scale.warm // 30)):
                await _stream(client, _SHORT)
        first: list[list[float]] = [[], [], []]
        for turn in range(scale.calls):
            for place_in_turn in range(len(clients)):
                which = (turn + place_in_turn) % len(clients)
                first[which].append((await _stream(clients[which], _SHORT))[0])
        before = peak_memory(), peak_memory(proxy.pid)
        took = [(await _stream(client, scale.events))[1] for client in (direct, guarded)]
        grown_guard = _grown(before[0], peak_memory())
        took.append((await _stream(proxied, scale.events))[1])
        grown_proxy = _grown(before[1], peak_memory(proxy.pid))
    rows: list[Row] = []
    for name, delays, grown, seconds in (
        ("guard", first[1], grown_guard, took[1]),
        ("proxy", first[2], grown_proxy, took[2]),
    ):
        late = statistics.median(own - bare for own, bare in zip(delays, first[0], strict=True))
        said = f"first event directly: p50 {statistics.median(first[0]):.2f} ms, so: {statistics.median(delays):.2f} ms"
        rows.append(Row(f"{_NAME}.{name}", late, "ms", target=_LATE, remark=f"{said}; a new task each"))
        said = f"{scale.events:,} events in {seconds:.1f} s, directly {took[0]:.1f} s"
        rows.append(Row(f"{_NAME}.{name}-memory", grown, "MB", target=_GROWTH, remark=said))
    return rows


def _grown(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before


async def _stream(client: Client, events: int) -> tuple[float, float]:
    """Open a task that streams; return when its first event came, in ms, and its last, in seconds."""
    clock = asyncio.get_running_loop().time
    request = SendMessageRequest(message=new_text_message(str(events), role=Role.ROLE_USER))
    began = clock()
    first, count = 0.0, 0
    async for _ in client.send_message(request):
        first = first or clock() - began
        count += 1
    if count != events:
        raise LedgerError(f"expected {events} events of the benchmark's agent, found {count}")
    return first * 1e3, clock() - began


@asynccontextmanager
async def _clients(ledger: ContractLedger, direct: str, proxied: str) -> AsyncGenerator[tuple[Client, Client, Client]]:
    """Give a client as anybody makes it, a guarded one, and one whose agent stands behind the proxy."""
    guarded = guard(ledger)
    try:
        async with guarded.httpx_client() as ours, httpx.AsyncClient() as bare:
            card = await A2ACardResolver(bare, proxied).get_agent_card()
            card.supported_interfaces[0].url = f"{proxied}/rpc"
            yield (
                await ClientFactory(_config(bare)).create_from_url(direct),
                await guarded.create_client(direct, config=_config(ours)),
                ClientFactory(_config(bare)).create(card),
            )
    finally:
        await guarded.aclose()


def _config(http: httpx.AsyncClient) -> ClientConfig:
    return ClientConfig(httpx_client=http, streaming=True, supported_protocol_bindings=["JSONRPC"])
