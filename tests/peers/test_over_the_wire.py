"""Heads on real calls: a guarded a2a-sdk client, and an agent behind the middleware, each with a ledger of its own."""

from __future__ import annotations

from contextlib import AsyncExitStack, ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

import grpc
import httpx
import pytest
from a2a.client import ClientConfig
from a2a.types import SendMessageResponse, StreamResponse, Task, TaskStatus
from a2a.utils.errors import A2AError

from a2a_ledger import Guard
from a2a_ledger.anchors import anchored_size
from a2a_ledger.anchors.peers.held_now import held_now
from a2a_ledger.anchors.peers.parameter import read_peer_head
from a2a_ledger.capture.asgi import ContractLedgerMiddleware
from a2a_ledger.checkpoint import checkpoint_of
from a2a_ledger.errors import StoreError
from a2a_ledger.ledger import ContractLedger
from tests.capture.agent import Agent
from tests.capture.conftest import send
from tests.capture.peer import ORIGIN, card
from tests.capture.raw_rpc import RawPeer
from tests.peers.pair import introduce, open_at, peers_of
from tests.proxy.conftest import only, start_proxy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from a2a.client import Client
    from starlette.types import Receive, Scope, Send

    from tests.proxy.conftest import StartProxy

__all__ = ["start_proxy"]

HEADER = "a2a-ledger-head"
WELL_KNOWN = "/.well-known/agent-card.json"


class Stage(NamedTuple):
    """An agent with a ledger, and the ledger of its client."""

    agent: Agent
    server: ContractLedger
    client: ContractLedger


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with ExitStack() as stack:
        agent = stack.enter_context(Agent())
        introduce(tmp_path / "client", tmp_path / "agent", url=agent.url)
        server = stack.enter_context(open_at(tmp_path / "agent"))
        client = stack.enter_context(open_at(tmp_path / "client"))
        agent.wire.app = ContractLedgerMiddleware(agent.wire.app, server, agent.url + WELL_KNOWN)
        yield Stage(agent, server, client)


async def client_of(guard: Guard, url: str, binding: str = "JSONRPC", *, streaming: bool = False) -> Client:
    config = ClientConfig(streaming=streaming, supported_protocol_bindings=[binding])
    return await guard.create_client(url, config=config)


def settle(*ledgers: ContractLedger) -> None:
    """See to it that what came with calls is taken in, and that all is under a head."""
    for ledger in ledgers:
        peers_of(ledger).settle()
        ledger.sign_checkpoint()


def held_size(ledger: ContractLedger) -> int:
    (held,) = held_now(ledger)
    assert held.why == ""
    return held.size


def newest(ledger: ContractLedger) -> int:
    kept = ledger.store.latest_checkpoint()
    assert kept is not None
    return kept[0]


def calls(agent: Agent) -> list[dict[str, str]]:
    """Return the headers of every request but those for cards."""
    return [headers for _, path, headers in agent.wire.seen if not path.endswith(WELL_KNOWN)]


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
@pytest.mark.parametrize("streaming", [True, False])
async def test_after_two_calls_each_holds_the_other(stage: Stage, binding: str, streaming: bool) -> None:
    agent, server, client = stage
    async with Guard(client) as guard:
        calling = await client_of(guard, agent.url, binding, streaming=streaming)
        for _ in range(2):
            await send(calling, "hello")
            settle(client, server)
        signed = newest(client), newest(server)
        got = await send(calling, "hello")
        settle(client, server)
    assert len(got) >= 1
    assert all(HEADER in headers for headers in calls(agent))
    asked = [headers for _, path, headers in agent.wire.seen if path.endswith(WELL_KNOWN)]
    assert asked
    assert not any(HEADER in headers for headers in asked)
    assert (held_size(server) >= signed[0], held_size(client) >= signed[1]) == (True, True)
    assert anchored_size(client.store) > 0
    for ledger in (client, server):
        for record in only(ledger, "message.recorded"):
            kept = record.content("headers") or b""
            assert HEADER not in kept.decode().lower(), "what ledgers tell each other is no part of the message"


async def test_what_the_application_sees_is_the_same(stage: Stage) -> None:
    agent, server, client = stage
    question = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "T-none"}}
    headers = {"A2A-Version": "1.0"}
    async with httpx.AsyncClient() as plain, Guard(client) as guard, guard.httpx_client() as guarded:
        before = await plain.post(f"{agent.url}/rpc", json=question, headers=headers)
        await client_of(guard, agent.url)
        asked = guarded.build_request("POST", f"{agent.url}/rpc", json=question, headers=headers)
        after = await guarded.send(asked)
    assert (before.status_code, before.content) == (after.status_code, after.content)
    assert HEADER not in before.headers
    assert HEADER in after.headers
    assert HEADER not in asked.headers, "what the application's request becomes next does not carry it on"
    assert server.store.size() > 0


def test_a_client_without_an_event_loop_takes_part(stage: Stage) -> None:
    agent, server, client = stage
    guard = Guard(client)
    question = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "T-none"}}
    with guard.sync_httpx_client() as calling:
        assert calling.get(agent.url + WELL_KNOWN).status_code == 200
        for _ in range(2):
            calling.post(f"{agent.url}/rpc", json=question, headers={"A2A-Version": "1.0"})
            settle(client, server)
    guard.close()
    assert held_size(server) > 0
    assert held_size(client) > 0


async def test_a_stranger_learns_nothing(stage: Stage) -> None:
    with Agent() as stranger:
        async with Guard(stage.client) as guard:
            await send(await client_of(guard, stranger.url), "hello")
        assert calls(stranger)
        assert not any(HEADER in headers for headers in calls(stranger))


async def test_nothing_rides_on_to_where_a_redirect_leads(stage: Stage) -> None:
    agent, _, client = stage
    question = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "T-none"}}
    with Agent() as elsewhere:

        async def away(scope: Scope, receive: Receive, send: Send) -> None:
            del scope, receive
            place = [(b"location", f"{elsewhere.url}/rpc".encode())]
            await send({"type": "http.response.start", "status": 307, "headers": place})
            await send({"type": "http.response.body", "body": b""})

        async with Guard(client) as guard, guard.httpx_client(follow_redirects=True) as http:
            await client_of(guard, agent.url)
            agent.wire.app = away
            await http.post(f"{agent.url}/rpc", json=question, headers={"A2A-Version": "1.0"})
        assert [HEADER in headers for headers in calls(agent)] == [True]
        assert [HEADER in headers for headers in calls(elsewhere)] == [False]


@pytest.mark.parametrize("value", [b"x", b"A" * 6000, b"\xff\xfe", b""])
async def test_an_answer_with_anything_in_it_is_an_answer(stage: Stage, value: bytes) -> None:
    agent, server, client = stage
    inner = agent.wire.app

    async def adding(scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Any) -> None:  # noqa: ANN401 - an ASGI message
            if message["type"] == "http.response.start":
                kept = [pair for pair in message["headers"] if pair[0] != HEADER.encode()]
                message = {**message, "headers": [*kept, (HEADER.encode(), value)]}
            await send(message)

        await inner(scope, receive, sending)

    agent.wire.app = adding
    async with Guard(client) as guard:
        got = await send(await client_of(guard, agent.url), "hello")
    settle(client, server)
    assert got[-1].task.artifacts[0].parts[0].text == "echo: hello"
    assert held_size(client) == 0


async def test_a_ledger_that_cannot_say_its_head_stops_no_call(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    agent, server, client = stage

    def broken() -> None:
        raise StoreError("the disk is gone")

    for ledger in (client, server):
        monkeypatch.setattr(ledger.store, "latest_checkpoint", broken)
    async with Guard(client) as guard:
        got = await send(await client_of(guard, agent.url), "hello")
    monkeypatch.undo()
    assert got[-1].task.artifacts[0].parts[0].text == "echo: hello"
    assert not any(HEADER in headers for headers in calls(agent))


async def test_a_proxy_passes_what_the_two_sides_tell_each_other(tmp_path: Path, start_proxy: StartProxy) -> None:
    async with AsyncExitStack() as stack:
        agent = stack.enter_context(Agent())
        marks = str(tmp_path / "proxy-mark")
        between = stack.enter_context(
            ContractLedger.open(tmp_path / "proxy", mode="observe", mark_dir=marks, follow=False)
        )
        proxy = start_proxy(between, agent.url, side="client", rewrite_card=True)
        introduce(tmp_path / "client", tmp_path / "agent", url=proxy.url)
        server = stack.enter_context(open_at(tmp_path / "agent"))
        client = stack.enter_context(open_at(tmp_path / "client"))
        agent.wire.app = ContractLedgerMiddleware(agent.wire.app, server, agent.url + WELL_KNOWN)
        guard = await stack.enter_async_context(Guard(client))
        calling = await client_of(guard, proxy.url)
        for _ in range(2):
            await send(calling, "hello")
            settle(client, server)
        assert held_size(server) > 0
        assert held_size(client) > 0


@pytest.mark.parametrize("streaming", [True, False])
async def test_over_grpc_it_rides_in_the_metadata(tmp_path: Path, streaming: bool) -> None:
    """No middleware stands before a gRPC agent: here it answers by the same rules, by hand."""
    introduce(tmp_path / "client", tmp_path / "agent", url=ORIGIN)
    done = Task(id="T1", context_id="C1", status=TaskStatus(state="TASK_STATE_COMPLETED"))
    came: list[str] = []
    with open_at(tmp_path / "client") as client, open_at(tmp_path / "agent") as server:

        async def tell(context: Any) -> None:  # noqa: ANN401 - grpc's own generic type
            values = [value for name, value in context.invocation_metadata() if name == HEADER]
            came.extend(values)
            answer = peers_of(server).for_answer(values)
            assert answer is not None
            await context.send_initial_metadata(((HEADER, answer.value),))
            peers_of(server).take(answer.came)

        async def answered(_: bytes, context: Any) -> bytes:  # noqa: ANN401 - as above
            await tell(context)
            return SendMessageResponse(task=done).SerializeToString()

        async def streamed(_: bytes, context: Any) -> Any:  # noqa: ANN401 - as above
            await tell(context)
            yield StreamResponse(task=done).SerializeToString()

        served = card(supportedInterfaces=[], capabilities={"streaming": True})
        async with RawPeer(SendMessage=answered, SendStreamingMessage=streamed) as peer, Guard(client) as guard:
            served["supportedInterfaces"] = [{"url": peer.target, "protocolBinding": "GRPC", "protocolVersion": "1.0"}]
            config = ClientConfig(streaming=streaming, supported_protocol_bindings=["GRPC"])
            http = httpx.MockTransport(lambda _: httpx.Response(200, json=served))
            calling = await guard.create_client(ORIGIN, config=config, transport=http)
            for _ in range(2):
                await send(calling, "hello")
                settle(client, server)
            await calling.close()
        assert [checkpoint_of(read_peer_head(value).note).origin for value in came] == [client.origin] * 2
        assert held_size(server) > 0
        assert held_size(client) > 0
        assert anchored_size(client.store) > 0


@pytest.mark.parametrize("place", ["first", "last", "both"])
@pytest.mark.parametrize("streaming", [True, False])
async def test_a_grpc_error_brings_a_head_as_an_answer_does(tmp_path: Path, streaming: bool, place: str) -> None:
    """An error may end a call before its first metadata were sent: then the head comes with the last; twice is odd."""
    introduce(tmp_path / "client", tmp_path / "agent", url=ORIGIN)
    with open_at(tmp_path / "client") as client, open_at(tmp_path / "agent") as server:

        async def refuse(context: Any) -> None:  # noqa: ANN401 - grpc's own generic type
            answer = peers_of(server).for_answer([v for name, v in context.invocation_metadata() if name == HEADER])
            assert answer is not None
            head = ((HEADER, answer.value),)
            if place != "last":
                await context.send_initial_metadata(head)
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such task", head if place != "first" else ())

        async def answered(_: bytes, context: Any) -> bytes:  # noqa: ANN401 - as above
            await refuse(context)
            return b""

        async def streamed(_: bytes, context: Any) -> Any:  # noqa: ANN401 - as above
            await refuse(context)
            yield b""

        served = card(supportedInterfaces=[], capabilities={"streaming": True})
        async with RawPeer(SendMessage=answered, SendStreamingMessage=streamed) as peer, Guard(client) as guard:
            served["supportedInterfaces"] = [{"url": peer.target, "protocolBinding": "GRPC", "protocolVersion": "1.0"}]
            config = ClientConfig(streaming=streaming, supported_protocol_bindings=["GRPC"])
            http = httpx.MockTransport(lambda _: httpx.Response(200, json=served))
            calling = await guard.create_client(ORIGIN, config=config, transport=http)
            with pytest.raises(A2AError):
                await send(calling, "hello")
            settle(client, server)
            await calling.close()
        assert (held_size(client) > 0) is (place != "both")
        kept = [record.content("headers") or b"" for record in only(client, "message.recorded")]
        assert not any(HEADER in headers.decode().lower() for headers in kept)
