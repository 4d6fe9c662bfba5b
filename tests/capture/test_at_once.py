"""Calls that come at once, contexts that end, and callers that give up: one task each, and nothing that lies."""

from __future__ import annotations

import asyncio
import gzip
from typing import TYPE_CHECKING

import httpx
import pytest
from a2a.client import A2ACardResolver, ClientConfig
from a2a.types import GetTaskRequest

from a2a_ledger import ContractChangedError
from a2a_ledger.errors import UsageError
from tests.capture.agent import Agent
from tests.capture.conftest import STALE, only, request, send, tasks, types
from tests.capture.peer import URL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from a2a.client import Client
    from a2a.types import SendMessageRequest, StreamResponse

    from tests.capture.conftest import MakeGuard, OpenLedger


async def collect(client: Client, sent: SendMessageRequest) -> list[StreamResponse]:
    """Send one prepared message."""
    return [event async for event in client.send_message(sent)]


async def test_one_message_sent_three_times_at_once_is_one_task(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    client = await make_guard(ledger).create_client(agent.url)
    sent = request("hello")
    await asyncio.gather(*(collect(client, sent) for _ in range(3)))
    assert len(tasks(ledger)) == 1
    assert len(only(ledger, "contract.captured")) == 1
    assert agent.posts == 3


async def test_sends_at_once_in_one_named_task_freeze_one_contract(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    client = await make_guard(ledger).create_client(agent.url)
    with ledger.task() as named:
        await asyncio.gather(*(send(client, f"hello {i}") for i in range(5)))
    assert tasks(ledger) == [f"task:{named}"]
    assert len(only(ledger, "contract.captured")) == 1


async def test_one_unknown_task_asked_for_at_once_is_adopted_once(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    client = await make_guard(ledger).create_client(agent.url)
    await asyncio.gather(*(client.get_task(GetTaskRequest(id="elsewhere")) for _ in range(4)), return_exceptions=True)
    assert len(only(ledger, "task.adopted")) == 1
    assert len(tasks(ledger)) == 1


async def test_a_named_task_of_one_peer_never_speaks_for_another(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    with Agent() as other:
        ledger = open_ledger(limits=STALE)
        guard = make_guard(ledger)
        first, second = await guard.create_client(agent.url), await guard.create_client(other.url)
        other.require_oauth()
        with ledger.task():
            await send(first, "hello")
            with pytest.raises(ContractChangedError):
                await send(second, "hello")
        assert other.posts == 0
        assert len(only(ledger, "contract.captured")) == 1


@pytest.mark.parametrize("failing", [False, True])
async def test_an_open_task_at_one_peer_leaves_the_others_free(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, failing: bool
) -> None:
    with Agent() as other:
        ledger = open_ledger()
        guard = make_guard(ledger)
        client = await guard.create_client(agent.url)
        if failing:
            agent.__exit__()
            with pytest.raises(Exception, match="Network communication error"):
                await send(client, "hello")
        else:
            await send(client, "ask me")
        await send(await guard.create_client(other.url), "hello")
        assert other.posts == 1


async def test_a_request_given_up_before_it_was_sent_says_so(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    client = await make_guard(ledger).create_client(agent.url)
    with ledger.store.transaction():  # holds the database's lock
        job = asyncio.create_task(send(client, "hello"))
        await asyncio.sleep(0.2)
        job.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await job
    assert [r.data["leg"] for r in only(ledger, "message.recorded")] == ["request", "error"]
    last = only(ledger, "message.recorded")[-1]
    assert (last.data["leg"], last.data["error_kind"]) == ("error", "cancelled")
    assert last.content("error") == b"the caller gave up before the request was sent"
    assert agent.posts == 0


async def test_a_client_over_an_unguarded_transport_is_refused(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    async with httpx.AsyncClient() as bare:
        with pytest.raises(UsageError, match="guarded httpx client"):
            await make_guard(open_ledger()).create_client(agent.url, config=ClientConfig(httpx_client=bare))
    assert agent.wire.seen == []


async def test_a_compressed_stream_is_read_like_any_other(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    guard = make_guard(ledger)

    class Compressing(httpx.AsyncHTTPTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            answer = await super().handle_async_request(request)
            if "text/event-stream" not in answer.headers.get("content-type", ""):
                return answer
            packed = gzip.compress(await answer.aread())
            return httpx.Response(
                200, headers={"content-type": "text/event-stream", "content-encoding": "gzip"}, content=packed
            )

    client = await guard.create_client(agent.url, transport=Compressing())
    events = await send(client, "hello")
    assert events[-1].HasField("status_update")
    [task] = tasks(ledger)
    states = [r.data.get("state_read") for r in ledger.store.read_stream(task) if r.data.get("leg") == "stream-event"]
    assert states[0] == "submitted"
    assert states[-1] == "completed"


async def test_a_finding_in_mid_stream_raises_while_recording_goes_on(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    guard = make_guard(ledger)

    class Straying(httpx.AsyncHTTPTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            answer = await super().handle_async_request(request)
            if "text/event-stream" not in answer.headers.get("content-type", ""):
                return answer
            body = (await answer.aread()).replace(b'"contractHash"', b'"contractHash": "sha256:00", "was"')
            return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=body)

    client = await guard.create_client(agent.url, transport=Straying())
    with pytest.raises(Exception, match="pin-mismatch"):
        await send(client, "hello")
    await guard.aclose()
    [task] = tasks(ledger)
    legs = [r.data["leg"] for r in ledger.store.read_stream(task) if "leg" in r.data]
    assert legs == ["request", "stream-event", "stream-event", "stream-event", "stream-event", "stream-end"]
    assert "task.bound" in types(ledger.store.read_stream(task))


async def test_closing_never_waits_for_a_peer_that_keeps_a_stream_open(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    guard = make_guard(ledger)

    class Endless(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b'data: {"jsonrpc":"2.0","id":1,"error":{"code":-32009,"message":"no"}}\n\n'
            while True:
                yield b": still here\n\n"
                await asyncio.sleep(0.01)

    class Stuck(httpx.AsyncHTTPTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            if request.method == "GET":
                return await super().handle_async_request(request)
            return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=Endless())

    client = await guard.create_client(agent.url, transport=Stuck())
    with pytest.raises(Exception, match=r"version-skew|VERSION|no"):
        await send(client, "hello")
    async with asyncio.timeout(6):
        await guard.aclose()
    ends = [r.data for r in only(ledger, "message.recorded") if r.data["leg"] == "stream-end"]
    assert len(ends) == 1


async def test_a_card_of_another_peer_is_fetched_in_the_middle_of_a_stream(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    with Agent() as other:
        ledger = open_ledger()
        guard = make_guard(ledger)
        http = guard.httpx_client()
        client = await guard.create_client(agent.url, config=ClientConfig(streaming=True, httpx_client=http))
        async for _ in client.send_message(request("chunks")):
            await A2ACardResolver(http, other.url).get_agent_card()
        await http.aclose()
        assert other.gets == 1


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
@pytest.mark.parametrize("header", [("x-caf", b"\xe9"), ("content-encoding", b"odd")])
async def test_header_octets_and_unknown_codings_reach_the_caller_as_without_a_guard(
    open_ledger: OpenLedger, make_guard: MakeGuard, kind: str, header: tuple[str, bytes]
) -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        headers = [(b"content-type", kind.encode()), (header[0].encode(), header[1])]
        return httpx.Response(200, headers=headers, stream=httpx.ByteStream(b"\x0bcoded\x03"))

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as plain:
        bare = await plain.post(URL, json={})
    async with make_guard(open_ledger(mode="observe")).httpx_client(httpx.MockTransport(answer)) as client:
        guarded = await client.post(URL, json={})
    kept = [(name, value) for name, value in guarded.headers.raw if name.lower() != b"content-length"]
    assert (kept, guarded.content) == (bare.headers.raw, bare.content)
