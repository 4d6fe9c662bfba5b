"""A row about the proxy: requests a second at 32 clients, against a bare forwarder of Starlette and httpx."""

from __future__ import annotations

import asyncio
import json
import re
import statistics
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from a2a_ledger.cli.bench.row import Row, Target
from a2a_ledger.cli.bench.started import relayed
from a2a_ledger.errors import LedgerError

if TYPE_CHECKING:
    from a2a_ledger.cli.bench.place import Place

_CLIENTS = 32
_NAME = "proxy"
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


def proxying(place: Place) -> list[Row]:
    """Send the same tasks through both, in turn; each send is a new task with decision, capture and answer."""
    with ExitStack() as stack:
        agent = stack.enter_context(relayed("agent")).port
        upstream = f"http://127.0.0.1:{agent}"
        bare = stack.enter_context(relayed("bare", upstream)).port
        proxy = stack.enter_context(relayed("proxy", upstream, str(place.path(_NAME) / "ledger"))).port
        asyncio.run(_card(proxy))
        each = max(1, place.scale.calls // 40)
        for port in (bare, proxy):
            asyncio.run(_rate(port, each))
        ours: list[float] = []
        floor: list[float] = []
        for _ in range(place.scale.rounds):
            floor.append(asyncio.run(_rate(bare, each)))
            ours.append(asyncio.run(_rate(proxy, each)))
    ratio = statistics.median(a / b for a, b in zip(ours, floor, strict=True))
    remark = f"{_CLIENTS} clients, each send a new task; floor: a bare Starlette+httpx forwarder, nothing recorded"
    target = Target(0.7, of="ratio", at_most=False)
    return [Row(_NAME, statistics.median(ours), "req/s", statistics.median(floor), ratio, target, remark)]


async def _rate(port: int, each: int) -> float:
    """Let 32 clients send that many tasks each, one after another; return requests a second of all."""
    began = time.perf_counter()
    await asyncio.gather(*[_client(port, f"{began}-{number}", each) for number in range(_CLIENTS)])
    return _CLIENTS * each / (time.perf_counter() - began)


async def _client(port: int, name: str, count: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for number in range(count):
        message = {"messageId": f"{name}-{number}", "role": "ROLE_USER", "parts": [{"text": "y" * 900}]}
        call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
        body = json.dumps(call).encode()
        writer.write(
            b"POST /rpc HTTP/1.1\r\nhost: agent\r\na2a-version: 1.0\r\ncontent-type: application/json\r\n"
            b"content-length: %d\r\n\r\n" % len(body)
        )
        writer.write(body)
        head = await reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not head.startswith(b"HTTP/1.1 200") or length is None:
            raise LedgerError(f"expected the benchmark's agent to answer with a task, found {head[:80]!r}")
        await reader.readexactly(int(length[1]))
    writer.close()
    await writer.wait_closed()


async def _card(port: int) -> None:
    """Ask for the card, so that every send has a contract to freeze."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /.well-known/agent-card.json HTTP/1.1\r\nhost: agent\r\nconnection: close\r\n\r\n")
    await reader.read()
    writer.close()
    await writer.wait_closed()
