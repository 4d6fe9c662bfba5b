"""Event streams through the proxy and the middleware: live, octet for octet, with flat memory, and an honest end."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.proxy.conftest import only
from tests.proxy.peer import Peer, say, start
from tests.proxy.serving import Serving

if TYPE_CHECKING:
    from a2a_ledger import ContractLedger
    from a2a_ledger.capture.server.incoming import Receive, Send
    from a2a_ledger.codec import Record
    from tests.proxy.conftest import OpenLedger, StartProxy
    from tests.proxy.peer import Came

SSE = (b"content-type", b"text/event-stream; charset=utf-8")
MESSAGE = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "the report, please"}]}
SEND = json.dumps(
    {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": MESSAGE}}
).encode()


def event(state: str, n: int = 0) -> bytes:
    task = {"id": "T1", "contextId": "C1", "status": {"state": f"TASK_STATE_{state}"}, "metadata": {"n": n}}
    return b"data: " + json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"task": task}}).encode() + b"\n\n"


async def read_into(got: bytearray, url: str) -> None:
    """Read a stream as far as it goes."""
    async with httpx.AsyncClient() as http, http.stream("POST", url, content=SEND) as response:
        async for chunk in response.aiter_raw():
            got += chunk


async def wait_until(seen: asyncio.Event) -> None:
    """Wait for what another event loop says."""
    for _ in range(500):
        if seen.is_set():
            return
        await asyncio.sleep(0.01)


def ends(ledger: ContractLedger) -> list[Record]:
    return [record for record in only(ledger, "message.recorded") if record.data["leg"] == "stream-end"]


async def wait_for(ledger: ContractLedger, count: int = 1) -> list[Record]:
    """Wait until that many streams have ended."""
    for _ in range(500):
        if len(found := ends(ledger)) >= count:
            return found
        await asyncio.sleep(0.01)
    return ends(ledger)


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize("mode", ["observe", "enforce"])
async def test_a_stream_passes_as_it_is_and_as_it_comes(
    open_ledger: OpenLedger, start_proxy: StartProxy, side: str, mode: str
) -> None:
    pieces = [b": hello\r\n\r\n", event("WORKING"), event("WORKING", 1)[:20], event("WORKING", 1)[20:], b"id: 3\rdata"]
    pieces += [b": {}\r\r", event("COMPLETED"), b"data: no blank line"]
    judged = mode == "enforce" and side == "client"  # there, what no event ends with never passes
    passed = b"".join(pieces[:-1] if judged else pieces)
    seen = asyncio.Event()

    async def answer(_: Came, send: Send, __: Receive) -> None:
        await start(send, 200, SSE, (b"x-own", b"1"))
        for piece in pieces:
            await say(send, piece, more=True)
            await asyncio.sleep(0.01)
        for _try in range(500):  # the rest comes when the client has seen all of this
            if seen.is_set():
                break
            await asyncio.sleep(0.01)
        await say(send, b"")

    ledger = open_ledger(mode=mode)
    with Serving(Peer(answer)) as upstream:
        url = start_proxy(ledger, upstream.url, side=side).url
        got = b""
        async with httpx.AsyncClient() as http, http.stream("POST", f"{url}/rpc", content=SEND) as response:
            assert response.headers["content-type"] == SSE[1].decode()
            assert response.headers["x-own"] == "1"
            async for chunk in response.aiter_raw():
                got += chunk
                if got == passed:
                    seen.set()
    assert seen.is_set()
    events = [r for r in only(ledger, "message.recorded") if r.data["leg"] == "stream-event"]
    assert b"".join(r.content("body") or b"" for r in events) == b"".join(pieces)
    assert got == passed
    assert [r.data["sequence"] for r in events] == list(range(len(events)))
    (end,) = ends(ledger)
    assert end.data.get("error_kind") is None


@pytest.mark.parametrize("side", ["client", "server"])
async def test_a_client_that_leaves_early_leaves_a_record_and_the_agent_is_told(
    open_ledger: OpenLedger, start_proxy: StartProxy, side: str
) -> None:
    left: list[str] = []

    async def answer(_: Came, send: Send, receive: Receive) -> None:
        await start(send, 200, SSE)
        await say(send, event("WORKING"), more=True)
        message = await receive()
        left.append(message["type"])

    ledger = open_ledger(mode="enforce")
    with Serving(Peer(answer)) as upstream:
        url = start_proxy(ledger, upstream.url, side=side).url
        async with httpx.AsyncClient() as http, http.stream("POST", f"{url}/rpc", content=SEND) as response:
            async for _ in response.aiter_raw():
                break
        (end,) = await wait_for(ledger)
        for _ in range(200):
            if left:
                break
            await asyncio.sleep(0.01)
    assert left == ["http.disconnect"]
    assert end.data["error_kind"] == "closed-by-caller"
    assert end.data.get("side") == ("server" if side == "server" else None)


@pytest.mark.parametrize("side", ["client", "server"])
async def test_a_client_that_leaves_before_the_answer_leaves_a_record(
    open_ledger: OpenLedger, start_proxy: StartProxy, side: str
) -> None:
    left: list[str] = []

    async def answer(_: Came, __: Send, receive: Receive) -> None:
        left.append((await receive())["type"])

    ledger = open_ledger()
    with Serving(Peer(answer)) as upstream:
        url = start_proxy(ledger, upstream.url, side=side).url
        async with httpx.AsyncClient(timeout=0.3) as http:
            with pytest.raises(httpx.ReadTimeout):
                await http.post(f"{url}/rpc", content=SEND)
        errors: list[Record] = []
        for _ in range(500):
            errors = [r for r in only(ledger, "message.recorded") if r.data["leg"] == "error"]
            if errors and left:
                break
            await asyncio.sleep(0.01)
    assert left == ["http.disconnect"]
    assert [r.data["error_kind"] for r in errors] == ["cancelled" if side == "client" else "closed"]


async def test_a_long_answer_that_is_no_event_stream_passes_as_it_comes_where_nothing_is_refused(
    open_ledger: OpenLedger, start_proxy: StartProxy
) -> None:
    seen = asyncio.Event()

    async def answer(_: Came, send: Send, __: Receive) -> None:
        await start(send, 200, (b"content-type", b"application/x-ndjson"))
        await say(send, b'{"n":1}\n', more=True)
        await wait_until(seen)  # the rest comes when the client has that
        await say(send, b'{"n":2}\n')

    ledger, got = open_ledger(mode="observe"), b""
    with Serving(Peer(answer)) as upstream:
        url = start_proxy(ledger, upstream.url).url
        async with httpx.AsyncClient() as http, http.stream("POST", f"{url}/rpc", content=SEND) as response:
            async for chunk in response.aiter_raw():
                got += chunk
                assert seen.is_set() or len(only(ledger, "message.recorded")) == 1
                seen.set()
        assert got == b'{"n":1}\n{"n":2}\n'
        assert only(ledger, "message.recorded")[-1].content("body") == got  # recorded before its end was here


async def test_what_came_of_a_long_answer_is_recorded_when_the_client_leaves(
    open_ledger: OpenLedger, start_proxy: StartProxy
) -> None:
    async def answer(_: Came, send: Send, receive: Receive) -> None:
        await start(send, 200, (b"content-type", b"application/x-ndjson"))
        await say(send, b'{"n":1}\n', more=True)
        await receive()

    ledger = open_ledger(mode="observe")
    with Serving(Peer(answer)) as upstream:
        url = start_proxy(ledger, upstream.url).url
        async with httpx.AsyncClient() as http, http.stream("POST", f"{url}/rpc", content=SEND) as response:
            async for _ in response.aiter_raw():
                break
        for _try in range(500):
            if len(only(ledger, "message.recorded")) == 3:
                break
            await asyncio.sleep(0.01)
    _, came, failed = only(ledger, "message.recorded")
    assert came.content("body") == b'{"n":1}\n'
    assert "truncated" in list(came.data["flags"] or ())  # type: ignore[arg-type]  # a list of texts
    assert (failed.data["leg"], failed.data["error_kind"]) == ("error", "cancelled")


@pytest.mark.parametrize("side", ["client", "server"])
async def test_a_stream_that_is_cut_is_cut_for_the_client_too(
    open_ledger: OpenLedger, start_proxy: StartProxy, side: str
) -> None:
    async def answer(_: Came, send: Send, __: Receive) -> None:
        await start(send, 200, SSE)
        await say(send, event("WORKING") + b"data: {", more=True)
        await asyncio.sleep(0.05)  # returns without an end: the server closes the connection

    ledger = open_ledger()
    with Serving(Peer(answer)) as upstream:
        url = start_proxy(ledger, upstream.url, side=side).url
        got = bytearray()
        with pytest.raises(httpx.RemoteProtocolError):
            await read_into(got, f"{url}/rpc")
        (end,) = await wait_for(ledger)
    assert got == event("WORKING") + (b"" if side == "client" else b"data: {")  # held back where it may be refused
    assert end.data["error_kind"] == "closed"
    cut = only(ledger, "message.recorded")[-2]
    assert "truncated" in list(cut.data["flags"] or ())  # type: ignore[arg-type]  # a list of texts


LONG = """
import asyncio, sys
import httpx
from tests.proxy.peer import Peer, say, start
from tests.proxy.serving import Serving, free_port
from tests.proxy.test_streams import SEND, SSE, event
from a2a_ledger import ContractLedger
from a2a_ledger.cli.bench.started import peak_memory
from a2a_ledger.capture.proxy import proxy_app

count = int(sys.argv[2])
whole = sum(len(event("WORKING", n)) for n in range(count)) + len(event("COMPLETED"))

async def answer(_, send, __):
    await start(send, 200, SSE)
    for n in range(count):
        await say(send, event("WORKING", n), more=True)
    await say(send, event("COMPLETED"))

async def main(url):
    seen, marks = 0, []
    async with httpx.AsyncClient(timeout=None) as http, http.stream("POST", url + "/rpc", content=SEND) as response:
        async for chunk in response.aiter_raw():
            seen += len(chunk)
            if not marks and seen > whole // 10:
                marks.append(peak_memory())
    marks.append(peak_memory())
    print(whole - seen, *marks)

with ContractLedger.open(sys.argv[1] + "/l", mark_dir=sys.argv[1] + "/m", mode=sys.argv[3], follow=False) as ledger:
    with Serving(Peer(answer)) as upstream:
        port = free_port()
        with Serving(proxy_app(ledger, upstream.url, public=f"http://127.0.0.1:{port}"), port) as proxy:
            asyncio.run(main(proxy.url))
    print(sum(r.data.get("leg") == "stream-event" for r in ledger.store.read(0, 100_000)))
"""


@pytest.mark.slow
def test_ten_times_the_events_take_no_more_memory(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    words = [sys.executable, "-c", LONG, str(tmp_path), "4000", "observe"]
    done = subprocess.run(words, cwd=root, capture_output=True, text=True, timeout=150, check=True)
    missing, early, late, recorded = map(float, done.stdout.split())
    assert (missing, recorded) == (0, 4001)
    assert late - early < 20, f"from {early} to {late} MB"


LONG_EVENT = b"data: " + b"x" * 400_000 + b"\n\n"


@pytest.mark.parametrize("side", ["client", "server"])
async def test_an_event_over_the_limit_passes_whole_and_is_committed_to(
    open_ledger: OpenLedger, start_proxy: StartProxy, side: str
) -> None:
    whole = event("WORKING") + LONG_EVENT + event("COMPLETED")

    async def answer(_: Came, send: Send, __: Receive) -> None:
        await start(send, 200, SSE)
        await say(send, whole)

    ledger = open_ledger(keep_body=1000, mode="observe")
    with Serving(Peer(answer)) as upstream:
        url = start_proxy(ledger, upstream.url, side=side).url
        got = bytearray()
        await read_into(got, f"{url}/rpc")
        (end,) = await wait_for(ledger)
    assert got == whole
    assert (end.data["sequence"], end.data.get("error_kind")) == (3, None)
    first, over, last = (r for r in only(ledger, "message.recorded") if r.data["leg"] == "stream-event")
    assert (first.data["state_read"], last.data["state_read"]) == ("working", "completed")
    assert over.content("body") == LONG_EVENT[:1000]
    assert (over.blobs["body"].kept, over.blobs["body"].size) == ("head", len(LONG_EVENT))
    assert "truncated" in list(over.data["flags"] or ())  # type: ignore[arg-type]  # a list of texts


async def test_nothing_of_an_event_over_the_limit_passes_where_it_is_enforced(
    open_ledger: OpenLedger, start_proxy: StartProxy
) -> None:
    async def answer(_: Came, send: Send, __: Receive) -> None:
        await start(send, 200, SSE)
        await say(send, event("WORKING"), more=True)
        await say(send, LONG_EVENT, more=True)
        await say(send, event("COMPLETED"))

    ledger = open_ledger(keep_body=1000, mode="enforce")
    with Serving(Peer(answer)) as upstream:
        url = start_proxy(ledger, upstream.url).url
        got = bytearray()
        with pytest.raises(httpx.RemoteProtocolError):
            await read_into(got, f"{url}/rpc")
        (end,) = await wait_for(ledger)
    assert got == event("WORKING")
    assert end.data["sequence"] == 3
