"""What goes wrong at an agent: it raises, it returns nothing, the ledger cannot be written, a client sends half."""

from __future__ import annotations

import asyncio
import threading
import zlib
from typing import TYPE_CHECKING

import httpx
import pytest

from a2a_ledger.capture.asgi import ContractLedgerMiddleware
from a2a_ledger.errors import StoreError
from tests.proxy.conftest import only
from tests.proxy.peer import Peer, answering, say, start
from tests.proxy.serving import Serving
from tests.proxy.test_passing import ANSWER, JSON, SEND
from tests.proxy.test_streams import SSE, event

if TYPE_CHECKING:
    from a2a_ledger.capture.server.incoming import Receive, Send
    from tests.proxy.conftest import OpenLedger
    from tests.proxy.peer import Came

CARD_URL = "http://agent.example/.well-known/agent-card.json"


async def test_an_application_that_raises_is_recorded_and_raises(open_ledger: OpenLedger) -> None:
    async def answer(_: Came, __: Send, ___: Receive) -> None:
        raise ValueError("no such skill")

    ledger = open_ledger()
    app = ContractLedgerMiddleware(Peer(answer), ledger, CARD_URL)
    with Serving(app, lifespan=False) as agent:
        async with httpx.AsyncClient() as http:
            assert (await http.post(f"{agent.url}/rpc", content=SEND)).status_code == 500
    _, failed = only(ledger, "message.recorded")
    assert (failed.data["leg"], failed.data["direction"], failed.data["error_kind"]) == ("error", "out", "other")
    assert failed.content("error") == b"ValueError"


async def test_a_stream_whose_application_raises_ends_in_the_record(open_ledger: OpenLedger) -> None:
    async def answer(_: Came, send: Send, __: Receive) -> None:
        await start(send, 200, SSE)
        await say(send, event("WORKING"), more=True)
        raise ValueError("no more")

    ledger = open_ledger()
    with Serving(ContractLedgerMiddleware(Peer(answer), ledger, CARD_URL), lifespan=False) as agent:
        async with httpx.AsyncClient() as http:
            with pytest.raises(httpx.RemoteProtocolError):
                await http.post(f"{agent.url}/rpc", content=SEND)
    assert [(r.data["leg"], r.data.get("error_kind")) for r in only(ledger, "message.recorded")] == [
        ("request", None),
        ("stream-event", None),
        ("stream-end", "other"),
    ]


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_a_stream_that_an_application_compresses_passes_live_and_is_read(
    open_ledger: OpenLedger, coding: str
) -> None:
    seen = threading.Event()  # the agent runs in a thread of its own

    async def answer(_: Came, send: Send, __: Receive) -> None:
        coder = zlib.compressobj(wbits=31 if coding == "gzip" else 15)
        await start(send, 200, SSE, (b"content-encoding", coding.encode()))
        await say(send, coder.compress(event("WORKING")) + coder.flush(zlib.Z_SYNC_FLUSH), more=True)
        if not await asyncio.to_thread(seen.wait, 10):
            raise TimeoutError("the first event did not reach the client")
        await say(send, coder.compress(event("COMPLETED")) + coder.flush())

    ledger = open_ledger()
    with Serving(ContractLedgerMiddleware(Peer(answer), ledger, CARD_URL), lifespan=False) as agent:
        async with httpx.AsyncClient() as http, http.stream("POST", f"{agent.url}/rpc", content=SEND) as response:
            came = b""
            async for piece in response.aiter_bytes():
                came += piece
                seen.set()
    assert came == event("WORKING") + event("COMPLETED")
    records = only(ledger, "message.recorded")
    assert [(r.data["leg"], r.data.get("state_read")) for r in records] == [
        ("request", None),
        ("stream-event", "working"),
        ("stream-event", "completed"),
        ("stream-end", None),
    ]


async def test_a_stream_whose_coding_breaks_passes_and_its_end_says_so(open_ledger: OpenLedger) -> None:
    async def answer(_: Came, send: Send, __: Receive) -> None:
        await start(send, 200, SSE, (b"content-encoding", b"gzip"))
        await say(send, b"no gzip at all")

    ledger = open_ledger()
    with Serving(ContractLedgerMiddleware(Peer(answer), ledger, CARD_URL), lifespan=False) as agent:
        async with httpx.AsyncClient() as http, http.stream("POST", f"{agent.url}/rpc", content=SEND) as response:
            assert b"".join([piece async for piece in response.aiter_raw()]) == b"no gzip at all"
    end = only(ledger, "message.recorded")[-1]
    assert (end.data["leg"], end.data["error_kind"]) == ("stream-end", "other")
    assert (end.content("error") or b"").startswith(b"its content coding cannot be read")


@pytest.mark.parametrize(("chosen", "status", "came"), [("block", 503, 0), ("pass", 200, 1)])
async def test_a_ledger_that_fails_blocks_or_lets_pass(
    open_ledger: OpenLedger, monkeypatch: pytest.MonkeyPatch, chosen: str, status: int, came: int
) -> None:
    ledger = open_ledger(on_ledger_failure=chosen)

    async def fails(_: object) -> None:
        raise StoreError("/srv/private/ledger.db: the disk is full", hint="a2a-ledger --ledger /srv/private audit")

    monkeypatch.setattr(ledger, "append_async", fails)
    peer = Peer(answering(200, ANSWER, JSON))
    with Serving(ContractLedgerMiddleware(peer, ledger, CARD_URL), lifespan=False) as agent:
        async with httpx.AsyncClient() as http:
            got = await http.post(f"{agent.url}/rpc", content=SEND)
    assert got.status_code == status
    assert len(peer.came) == came
    assert (got.content == ANSWER) == (chosen == "pass")
    assert "private" not in got.text


async def test_half_a_request_is_recorded_as_that(open_ledger: OpenLedger) -> None:
    ledger = open_ledger()
    peer = Peer(answering(200, ANSWER, JSON))
    with Serving(ContractLedgerMiddleware(peer, ledger, CARD_URL), lifespan=False) as agent:
        _, writer = await asyncio.open_connection("127.0.0.1", agent.port)
        writer.write(b"POST /rpc HTTP/1.1\r\nhost: x\r\ncontent-length: 500\r\n\r\n" + SEND[:50])
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.close()
        await writer.wait_closed()
        for _ in range(300):
            if len(only(ledger, "message.recorded")) == 2:
                break
            await asyncio.sleep(0.01)
    asked, failed = only(ledger, "message.recorded")
    assert asked.content("body") == SEND[:50]
    assert "truncated" in list(asked.data["flags"] or ())  # type: ignore[arg-type]  # a list of texts
    assert failed.data["error_kind"] == "closed"
    assert peer.came == []


async def test_a_message_that_is_sent_twice_is_one_task(open_ledger: OpenLedger) -> None:
    ledger = open_ledger()
    peer = Peer(answering(200, ANSWER, JSON))
    with Serving(ContractLedgerMiddleware(peer, ledger, CARD_URL), lifespan=False) as agent:
        async with httpx.AsyncClient() as http:
            await asyncio.gather(*[http.post(f"{agent.url}/rpc", content=SEND) for _ in range(4)])
    assert len(only(ledger, "contract.captured")) == 1
    assert len({r.stream for r in only(ledger, "message.recorded")}) == 1


async def test_one_id_with_another_content_is_another_task(open_ledger: OpenLedger) -> None:
    """Two clients that count their messages from 1, at once and one after the other."""
    ledger = open_ledger()
    peer = Peer(answering(200, ANSWER, JSON))
    bodies = [SEND.replace(b"report", word) for word in (b"report", b"answer", b"report", b"answer")]
    assert len(set(bodies)) == 2
    with Serving(ContractLedgerMiddleware(peer, ledger, CARD_URL), lifespan=False) as agent:
        async with httpx.AsyncClient() as http:
            await asyncio.gather(*[http.post(f"{agent.url}/rpc", content=body) for body in bodies[:2]])
            for body in bodies[2:]:
                await http.post(f"{agent.url}/rpc", content=body)
    assert len(only(ledger, "contract.captured")) == 2
    asked = [r for r in only(ledger, "message.recorded") if r.data["leg"] == "request"]
    streams = {(r.stream, r.content("body")) for r in asked}
    assert len(streams) == 2


async def test_what_a_client_sent_as_its_pin_is_kept_with_the_capture(open_ledger: OpenLedger) -> None:
    pin = b'"metadata":{"https://w3id.org/a2a-ledger/ext/frozen-contract/v1":{"form":"f","contractHash":"sha256:00"}},'
    ledger = open_ledger()
    peer = Peer(answering(200, ANSWER, JSON))
    with Serving(ContractLedgerMiddleware(peer, ledger, CARD_URL), lifespan=False) as agent:
        async with httpx.AsyncClient() as http:
            headers = {"Authorization": "Bearer a-very-secret-token"}
            await http.post(f"{agent.url}/rpc", content=SEND.replace(b'"role"', pin + b'"role"'), headers=headers)
    (captured,) = only(ledger, "contract.captured")
    assert captured.data["pin"] == {"form": "f", "contractHash": "sha256:00"}
    assert captured.data["credential"] == ["authorization:bearer"]
    assert captured.data.get("contract_hash") is None  # no card was ever served
