"""What no honest peer does: proxies in a circle, a Host header that is none, statuses that HTTP does not know."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.capture.proxy import proxy_app
from tests.proxy.conftest import only
from tests.proxy.peer import Peer, answering, raw
from tests.proxy.serving import Serving, free_port
from tests.proxy.test_passing import JSON
from tests.proxy.test_streams import SEND

if TYPE_CHECKING:
    from tests.proxy.conftest import OpenLedger

CARD = {"name": "a", "description": "d", "version": "1", "protocolVersion": "0.3.0", "url": "http://a.example/rpc"}


async def test_two_proxies_that_lead_to_each_other_end_the_circle(open_ledger: OpenLedger) -> None:
    ports = [free_port(), free_port()]
    urls = [f"http://127.0.0.1:{port}" for port in ports]
    ledgers = [open_ledger(name, mode="observe") for name in ("one", "other")]
    one = proxy_app(ledgers[0], urls[1], public=urls[0])
    other = proxy_app(ledgers[1], urls[0], public=urls[1])
    with Serving(one, ports[0]), Serving(other, ports[1]):
        head = f"GET /x HTTP/1.1\r\nHost: 127.0.0.1:{ports[0]}\r\nConnection: close\r\n\r\n".encode()
        got = await raw(ports[0], head)
    assert got.startswith(b"HTTP/1.1 508 ")
    requests = [[r for r in only(ledger, "message.recorded") if r.data["leg"] == "request"] for ledger in ledgers]
    assert [len(found) for found in requests] == [1, 1]


@pytest.mark.parametrize("host", ["[bad", "[abc]", "a b", "", "é"])
async def test_a_host_that_is_none_is_recorded_and_answered_by_the_agent(open_ledger: OpenLedger, host: str) -> None:
    ledger, port = open_ledger(mode="observe"), free_port()
    with Serving(Peer(answering(200, json.dumps(CARD).encode(), JSON))) as upstream:
        app = proxy_app(ledger, upstream.url, public=f"http://127.0.0.1:{port}", side="server")
        with Serving(app, port):
            asked = f"GET /.well-known/agent-card.json HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
            assert (await raw(port, asked.encode())).startswith(b"HTTP/1.1 200 ")
            head = f"POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(SEND)}\r\nConnection: close\r\n\r\n"
            got = await raw(port, head.encode() + SEND)
    kinds = [r.data["leg"] for r in only(ledger, "message.recorded")]
    if got.startswith(b"HTTP/1.1 400 "):  # the server itself takes it for no request
        assert kinds == ["request", "response"]
    else:
        assert got.startswith(b"HTTP/1.1 200 ")
        assert kinds == ["request", "response", "request", "response"]


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize("status", [600, 999])
async def test_a_status_that_no_server_sends_is_a_502_with_a_record(
    open_ledger: OpenLedger, side: str, status: int
) -> None:
    async def odd(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status} Odd\r\nContent-Length: 2\r\n\r\n{{}}".encode())
        await writer.drain()
        writer.close()

    ledger, port = open_ledger(mode="observe"), free_port()
    async with await asyncio.start_server(odd, "127.0.0.1", 0) as server:
        upstream = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        app = proxy_app(ledger, upstream, public=f"http://127.0.0.1:{port}", side=side)
        with Serving(app, port):
            got = await raw(port, b"GET /x HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 502 ")
    assert f"the agent answered {status}".encode() in got
    (answer,) = [r for r in only(ledger, "message.recorded") if r.data["leg"] == "response"]
    assert answer.data["status"] == (status if side == "client" else 502)
