"""Mounts, proxies and the environment's proxies of a client lie below its guard: nothing goes past that."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager, closing
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from a2a_ledger import Guard
from a2a_ledger.errors import ContractChangedError, UsageError
from tests.capture.conftest import STALE, only
from tests.capture.peer import CARD_URL, URL, Tagged, card, message, said

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from tests.capture.conftest import MakeGuard, OpenLedger

STRICTER: dict[str, Any] = {
    "securitySchemes": {"m": {"mtlsSecurityScheme": {}}},
    "securityRequirements": [{"schemes": {"m": {"list": []}}}],
}
UNREACHABLE = "http://agent.invalid"
PROXY_NAMES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


def vendor() -> Tagged:
    return Tagged(card(), lambda _: httpx.Response(200, json=said("done")))


async def test_what_goes_through_a_mount_is_recorded_and_stopped(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger, peer, other = open_ledger(mode="enforce", limits=STALE), vendor(), vendor()
    async with make_guard(ledger).httpx_client(other, mounts={"https://": peer}) as client:
        await client.get(CARD_URL)
        await client.post(URL, json=message("m1"))
        peer.served = card(**STRICTER)
        with pytest.raises(ContractChangedError):
            await client.post(URL, json=message("m2"))
    assert [record.data["leg"] for record in only(ledger, "message.recorded")] == ["request", "response"]
    assert [request.method for request in peer.asked] == ["GET", "GET", "POST", "GET"]
    assert other.asked == []


async def test_a_card_and_its_calls_may_go_through_two_mounts(open_ledger: OpenLedger, make_guard: MakeGuard) -> None:
    ledger, cards, calls = open_ledger(mode="enforce", limits=STALE), vendor(), vendor()
    rpc = "https://calls.example/rpc"
    interface = {"url": rpc, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    cards.served = card(supportedInterfaces=[interface])
    async with make_guard(ledger).httpx_client(mounts={"all://vendor.example": cards, "all://": calls}) as client:
        await client.get(CARD_URL)
        await client.post(rpc, json=message("m1"))
        cards.served = card(supportedInterfaces=[interface], **STRICTER)
        with pytest.raises(ContractChangedError):
            await client.post(rpc, json=message("m2"))
    assert [request.method for request in cards.asked] == ["GET", "GET", "GET"]
    assert [request.method for request in calls.asked] == ["POST"]


def test_mounts_of_a_synchronous_client_are_guarded_too(open_ledger: OpenLedger) -> None:
    ledger, peer = open_ledger(), vendor()
    with closing(Guard(ledger)) as guard, guard.sync_httpx_client(mounts={"https://": peer}) as client:
        client.get(CARD_URL)
        client.post(URL, json=message("m1"))
    assert [record.data["leg"] for record in only(ledger, "message.recorded")] == ["request", "response"]


def test_a_synchronous_transport_is_refused_before_anything_is_sent(open_ledger: OpenLedger) -> None:
    with closing(Guard(open_ledger())) as guard, closing(httpx.HTTPTransport()) as synchronous:
        with pytest.raises(UsageError, match="found HTTPTransport"):
            guard.sync_httpx_client(mounts={"https://": synchronous})
        with pytest.raises(UsageError, match="found HTTPTransport"):
            guard.sync_httpx_client(synchronous)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def test_every_transport_is_closed_with_the_client(open_ledger: OpenLedger, make_guard: MakeGuard) -> None:
    closed: list[str] = []

    class Closing(httpx.AsyncBaseTransport):
        def __init__(self, name: str) -> None:
            self.name = name

        async def aclose(self) -> None:
            closed.append(self.name)

    async with make_guard(open_ledger()).httpx_client(Closing("default"), mounts={"https://": Closing("mounted")}):
        pass
    assert sorted(closed) == ["default", "mounted"]


@asynccontextmanager
async def proxy() -> AsyncGenerator[tuple[str, list[str]]]:
    """Run a proxy that serves a card for every url; yield its own url, and the requests that came to it."""
    came: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.append((await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0].decode())
        body = json.dumps(card()).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        writer.write(head.encode() + b"Connection: close\r\n\r\n" + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", came


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Return a way to set the environment, which names no proxy yet."""
    for name in PROXY_NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


async def test_a_proxy_of_the_environment_is_used_and_guarded(
    open_ledger: OpenLedger, make_guard: MakeGuard, environment: pytest.MonkeyPatch
) -> None:
    ledger = open_ledger()
    async with proxy() as (url, came):
        environment.setenv("HTTP_PROXY", url)
        async with make_guard(ledger).httpx_client() as client:
            assert (await client.get(f"{UNREACHABLE}/.well-known/agent-card.json")).json() == card()
    assert came == [f"GET {UNREACHABLE}/.well-known/agent-card.json HTTP/1.1"]
    assert [record.data["status"] for record in only(ledger, "card.fetched")] == [200]


@pytest.mark.parametrize(
    "options", [{"trust_env": False}, {"transport": httpx.MockTransport(lambda _: httpx.Response(404))}]
)
async def test_a_client_that_reads_no_environment_uses_no_proxy_of_it(
    open_ledger: OpenLedger, make_guard: MakeGuard, environment: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    async with proxy() as (url, came):
        environment.setenv("HTTP_PROXY", url)
        async with make_guard(open_ledger()).httpx_client(**options) as client:
            try:
                await client.get(f"{UNREACHABLE}/.well-known/agent-card.json")
            except httpx.ConnectError:
                assert options == {"trust_env": False}
    assert came == []


async def test_a_host_that_the_environment_exempts_is_asked_directly(
    open_ledger: OpenLedger, make_guard: MakeGuard, environment: pytest.MonkeyPatch
) -> None:
    async with proxy() as (proxy_url, came), proxy() as (direct, direct_came):
        environment.setenv("HTTP_PROXY", proxy_url)
        environment.setenv("NO_PROXY", "127.0.0.1")
        async with make_guard(open_ledger()).httpx_client() as client:
            await client.get(f"{direct}/.well-known/agent-card.json")
    assert (came, direct_came) == ([], ["GET /.well-known/agent-card.json HTTP/1.1"])


async def test_a_proxy_beside_a_transport_is_guarded(open_ledger: OpenLedger, make_guard: MakeGuard) -> None:
    ledger, unused = open_ledger(), vendor()
    async with proxy() as (url, came), make_guard(ledger).httpx_client(unused, proxy=url) as client:
        await client.get(f"{UNREACHABLE}/.well-known/agent-card.json")
    assert (len(came), unused.asked) == (1, [])
    assert [record.data["status"] for record in only(ledger, "card.fetched")] == [200]
