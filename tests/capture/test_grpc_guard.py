"""gRPC under the guard: what is decided before a call leaves, and what is recorded of it however it ends."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import httpx
import pytest
from a2a.client import ClientConfig, ClientFactory
from a2a.client.client import ClientCallContext
from a2a.client.errors import A2AClientError
from a2a.types import (
    AgentCard,
    GetTaskRequest,
    SendMessageResponse,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskStatus,
)
from google.protobuf.json_format import ParseDict
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped, unused-ignore] # pyright: ignore[reportMissingTypeStubs]

from a2a_ledger.contract import FORM
from a2a_ledger.errors import ContractChangedError, ContractDivergenceError
from tests.capture.conftest import STALE, only, request, send
from tests.capture.peer import ORIGIN, Peer, card
from tests.capture.raw_rpc import RawPeer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from a2a.client import Client

    from a2a_ledger import ContractLedger, Guard
    from a2a_ledger.codec import Record
    from tests.capture.conftest import MakeGuard, OpenLedger

    Context = grpc.aio.ServicerContext[Any, Any]

WORKING = Task(id="T1", context_id="C1", status=TaskStatus(state="TASK_STATE_WORKING"))
DONE = Task(id="T1", context_id="C1", status=TaskStatus(state="TASK_STATE_COMPLETED"))


def served(target: str, **members: object) -> dict[str, Any]:
    """Return a card whose one interface is gRPC."""
    one = {"url": target, "protocolBinding": "GRPC", "protocolVersion": "1.0"}
    return card(supportedInterfaces=[one], **members)


async def client_of(guard: Guard, document: dict[str, Any], *, streaming: bool = False) -> Client:
    """Return an SDK client for a card that lies at a well-known place and names a gRPC target."""
    peer = httpx.MockTransport(lambda _: httpx.Response(200, json=document, headers={"etag": f'"{len(document)}"'}))
    config = ClientConfig(streaming=streaming, supported_protocol_bindings=["GRPC"])
    return await guard.create_client(ORIGIN, config=config, transport=peer)


def legs(ledger: ContractLedger) -> list[str]:
    return [str(record.data["leg"]) for record in only(ledger, "message.recorded")]


def last(ledger: ContractLedger) -> Record:
    return only(ledger, "message.recorded")[-1]


async def answers(_: bytes, __: Context) -> bytes:
    return SendMessageResponse(task=WORKING).SerializeToString()


async def test_octets_are_kept_as_they_came_beside_the_proto_json(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    """A Task whose fields stand in another order than a stub writes them, and a field that nobody knows."""
    task = b"\x1a\x02\x08\x02" + b"\x12\x02C1" + b"\x0a\x02T1" + b"\x9a\x06\x01x"  # status, context_id, id, field 99
    octets = b"\x0a" + bytes([len(task)]) + task

    async def answer(_: bytes, __: Context) -> bytes:
        return octets

    ledger = open_ledger()
    async with RawPeer(SendMessage=answer) as peer:
        client = await client_of(make_guard(ledger), served(peer.target))
        await send(client, "hello")
        await client.close()
    asked, answered = only(ledger, "message.recorded")
    assert asked.content("wire") == peer.asked[0][1]
    assert answered.content("wire") == octets
    assert SendMessageResponse.FromString(octets).SerializeToString() != octets
    body = answered.content("body")
    assert body is not None
    assert body.decode() == '{"task": {"id": "T1", "contextId": "C1", "status": {"state": "TASK_STATE_WORKING"}}}'
    assert [record.data["binding"] for record in (asked, answered)] == ["GRPC", "GRPC"]
    assert (answered.data["status"], answered.data["task_id"], answered.data["state_read"]) == (200, "T1", "working")


async def test_the_pin_and_the_question_for_the_extension_leave_with_the_call(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    async with RawPeer(SendMessage=answers) as peer:
        client = await client_of(make_guard(ledger), served(peer.target))
        await send(client, "hello")
        await client.close()
    (captured,) = only(ledger, "contract.captured")
    (_, octets, metadata) = peer.asked[0]
    contract_hash = captured.data["contract_hash"]
    assert isinstance(contract_hash, str)
    assert contract_hash.encode() in octets
    assert "ext/frozen-contract/v1" in metadata["a2a-extensions"]
    assert captured.data["interface"] == {"binding": "GRPC", "tenant": "", "url": peer.target, "version": "1.0"}
    order = [record.type for record in ledger.store.read_stream(captured.stream)][:3]
    assert order == ["freshness.decided.v1", "contract.captured.v1", "message.recorded.v1"]


async def test_a_changed_contract_stops_the_call_before_a_byte_leaves(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(mode="enforce", limits=STALE)
    async with RawPeer(SendMessage=answers) as peer:
        document = served(peer.target)
        client = await client_of(make_guard(ledger), document)
        document["securitySchemes"] = {"b": {"httpAuthSecurityScheme": {"scheme": "bearer"}}}
        document["securityRequirements"] = [{"schemes": {"b": {"list": []}}}]
        with pytest.raises(ContractChangedError):
            await send(client, "hello")
        await client.close()
    assert peer.asked == []
    assert only(ledger, "message.recorded") == []
    assert len(only(ledger, "send.aborted")) == 1


STATUSES = [
    (grpc.StatusCode.NOT_FOUND, 404, "TASK_NOT_FOUND", -32001),
    (grpc.StatusCode.FAILED_PRECONDITION, 400, "TASK_NOT_CANCELABLE", -32002),
    (grpc.StatusCode.INVALID_ARGUMENT, 400, "CONTENT_TYPE_NOT_SUPPORTED", -32005),
    (grpc.StatusCode.INTERNAL, 500, "INVALID_AGENT_RESPONSE", -32006),
    (grpc.StatusCode.UNAUTHENTICATED, 401, "", None),
    (grpc.StatusCode.PERMISSION_DENIED, 403, "", None),
    (grpc.StatusCode.UNAVAILABLE, 503, "", None),
    (grpc.StatusCode.UNIMPLEMENTED, 501, "", None),
]


@pytest.mark.parametrize(("code", "status", "reason", "number"), STATUSES)
async def test_a_status_of_the_peer_is_an_answer(
    open_ledger: OpenLedger, make_guard: MakeGuard, code: grpc.StatusCode, status: int, reason: str, number: int | None
) -> None:
    async def refuse(_: bytes, context: Context) -> bytes:
        if reason:
            rich = status_pb2.Status(code=code.value[0], message="no")
            rich.details.add().Pack(error_details_pb2.ErrorInfo(reason=reason, domain="a2a-protocol.org"))
            context.set_trailing_metadata((("grpc-status-details-bin", rich.SerializeToString()),))
        elif code is grpc.StatusCode.UNAVAILABLE:
            context.set_trailing_metadata((("retry-after", "5"),))
        await context.abort(code, "no")

    ledger = open_ledger()
    async with RawPeer(GetTask=refuse) as peer:
        client = await client_of(make_guard(ledger), served(peer.target))
        with suppress(Exception):
            await client.get_task(GetTaskRequest(id="T1"))
        await client.close()
    answer = last(ledger)
    assert (answer.data["leg"], answer.data["status"], answer.data.get("error_code")) == ("response", status, number)
    body = answer.content("body")
    assert body is not None
    assert b'"message": "no"' in body
    assert reason.encode() in body
    assert ("wire" in answer.blobs) == bool(reason)


async def test_what_the_library_may_have_said_itself_is_no_word_of_the_peer(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    async def refuse(_: bytes, context: Context) -> bytes:
        await context.abort(grpc.StatusCode.UNAVAILABLE, "no")

    ledger = open_ledger()
    async with RawPeer(GetTask=refuse) as peer:
        client = await client_of(make_guard(ledger), served(peer.target))
        with pytest.raises(A2AClientError):
            await client.get_task(GetTaskRequest(id="T1"))
        await client.close()
    assert (last(ledger).data["leg"], last(ledger).data["error_kind"]) == ("error", "closed")


async def test_nobody_listening_is_a_failure_to_connect(open_ledger: OpenLedger, make_guard: MakeGuard) -> None:
    ledger = open_ledger()
    async with RawPeer(GetTask=answers) as peer:
        pass
    client = await client_of(make_guard(ledger), served(peer.target))
    with pytest.raises(A2AClientError):
        await client.get_task(GetTaskRequest(id="T1"))
    await client.close()
    assert (last(ledger).data["leg"], last(ledger).data["error_kind"]) == ("error", "connect")
    assert b"UNAVAILABLE" in (last(ledger).content("error") or b"")


async def waits(_: bytes, __: Context) -> bytes:
    await asyncio.sleep(30)
    return b""


async def test_what_failed_to_be_sent_is_not_what_the_next_client_is_built_for(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    """A client that is built after a failed send is for a task that does not exist yet, and gets a fresh card."""
    ledger = open_ledger(mode="enforce", limits=STALE)
    guard = make_guard(ledger)
    async with RawPeer(SendMessage=answers) as peer:
        pass
    client = await client_of(guard, served(peer.target))
    with pytest.raises(A2AClientError):
        await send(client, "hello")
    await client_of(guard, served(peer.target))
    await client.close()
    decided = only(ledger, "freshness.decided")[-1]
    inputs = decided.data["inputs"]
    assert isinstance(inputs, dict)
    assert (decided.stream[:5], inputs["task"]) == ("peer:", {"state": "intended"})


async def test_a_deadline_is_a_timeout(open_ledger: OpenLedger, make_guard: MakeGuard) -> None:
    ledger = open_ledger()
    async with RawPeer(GetTask=waits) as peer:
        client = await client_of(make_guard(ledger), served(peer.target))
        with pytest.raises(A2AClientError):
            await client.get_task(GetTaskRequest(id="T1"), context=ClientCallContext(timeout=0.1))
        await client.close()
    assert (last(ledger).data["leg"], last(ledger).data["error_kind"]) == ("error", "timeout")


async def test_a_caller_that_gives_up_leaves_a_record(open_ledger: OpenLedger, make_guard: MakeGuard) -> None:
    ledger = open_ledger()
    async with RawPeer(GetTask=waits) as peer:
        client = await client_of(make_guard(ledger), served(peer.target))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await client.get_task(GetTaskRequest(id="T1"))
        await client.close()
    assert (last(ledger).data["leg"], last(ledger).data["error_kind"]) == ("error", "cancelled")


async def endless(_: bytes, __: Context) -> AsyncIterator[bytes]:
    while True:
        yield StreamResponse(task=WORKING).SerializeToString()
        await asyncio.sleep(0.01)


async def test_a_caller_that_leaves_a_stream_leaves_a_record(open_ledger: OpenLedger, make_guard: MakeGuard) -> None:
    ledger = open_ledger()
    async with RawPeer(SendStreamingMessage=endless) as peer:
        client = await client_of(make_guard(ledger), served(peer.target), streaming=True)
        async for _ in client.send_message(request("hello")):
            break
        await client.close()
    end = last(ledger)
    assert (end.data["leg"], end.data["error_kind"], end.data["sequence"]) == ("stream-end", "closed-by-caller", 1)


async def test_a_peer_that_goes_away_cuts_the_stream(open_ledger: OpenLedger, make_guard: MakeGuard) -> None:
    ledger = open_ledger()
    peer = RawPeer(SubscribeToTask=endless)
    async with peer:
        client = await client_of(make_guard(ledger), served(peer.target), streaming=True)
        stream = client.subscribe(SubscribeToTaskRequest(id="T1"))
        await anext(stream)
        await peer.server.stop(0)
        with pytest.raises(A2AClientError):
            async for _ in stream:
                pass
        await client.close()
    end = last(ledger)
    assert (end.data["leg"], end.data["error_kind"]) == ("stream-end", "closed")


async def test_an_error_in_a_stream_is_an_answer_and_ends_it(open_ledger: OpenLedger, make_guard: MakeGuard) -> None:
    async def breaks(_: bytes, context: Context) -> AsyncIterator[bytes]:
        yield StreamResponse(task=WORKING).SerializeToString()
        await context.abort(grpc.StatusCode.INTERNAL, "broken")

    ledger = open_ledger()
    async with RawPeer(SubscribeToTask=breaks) as peer:
        client = await client_of(make_guard(ledger), served(peer.target), streaming=True)
        with pytest.raises(A2AClientError):
            async for _ in client.subscribe(SubscribeToTaskRequest(id="T1")):
                pass
        await client.close()
    assert legs(ledger) == ["request", "stream-event", "response", "stream-end"]
    assert only(ledger, "message.recorded")[2].data["status"] == 500


async def test_a_stream_that_leaves_the_contract_raises_and_is_read_to_its_end(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    """The peer answers a task with another contract's pin: certain, and raised at arrival in mode "enforce"."""
    pin = {"https://w3id.org/a2a-ledger/ext/frozen-contract/v1": {"form": FORM, "contractHash": "sha256:" + "0" * 64}}
    other = ParseDict({"id": "T1", "contextId": "C1", "metadata": pin}, Task())
    other.status.CopyFrom(WORKING.status)

    async def drifts(_: bytes, __: Context) -> AsyncIterator[bytes]:
        yield StreamResponse(task=other).SerializeToString()
        for _n in range(3):
            await asyncio.sleep(0.01)
            yield StreamResponse(task=DONE).SerializeToString()

    ledger = open_ledger(mode="enforce")
    async with RawPeer(SendStreamingMessage=drifts) as peer:
        client = await client_of(make_guard(ledger), served(peer.target), streaming=True)
        with pytest.raises(ContractDivergenceError):
            await send(client, "hello")
        await client.close()
    assert legs(ledger) == ["request", *["stream-event"] * 4, "stream-end"]
    assert last(ledger).data.get("error_kind") is None


async def test_credentials_in_metadata_are_marked_and_never_stored(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    document: dict[str, Any] = {
        "securitySchemes": {
            "b": {"httpAuthSecurityScheme": {"scheme": "bearer"}},
            "k": {"apiKeySecurityScheme": {"location": "header", "name": "x-key"}},
        },
        "securityRequirements": [{"schemes": {"b": {"list": []}, "k": {"list": []}}}],
    }
    ledger = open_ledger()
    parameters = {
        "Authorization": "Bearer token-of-mine-4711",
        "X-Key": "key-of-mine-0815",
        "X-Other": "kept by nobody",
    }
    async with RawPeer(SendMessage=answers) as peer:
        client = await client_of(make_guard(ledger), served(peer.target, **document))
        context = ClientCallContext(service_parameters=parameters)
        async for _ in client.send_message(request("hello"), context=context):
            pass
        await client.close()
    assert peer.asked[0][2]["authorization"] == "Bearer token-of-mine-4711"
    asked = only(ledger, "message.recorded")[0]
    marks = asked.data["credential"]
    assert isinstance(marks, list)
    assert {str(mark["scheme"]) for mark in marks if isinstance(mark, dict)} == {"b", "k"}
    (captured,) = only(ledger, "contract.captured")
    assert (captured.data["credential"], captured.data["credential_visible"]) == (["b", "k"], True)
    stored = repr(ledger.store.read(0, 1000))
    assert not any(secret in stored for secret in ("token-of-mine", "key-of-mine", "kept by nobody"))


async def test_interceptors_on_a_channel_of_ones_own(open_ledger: OpenLedger, make_guard: MakeGuard) -> None:
    """Such a channel may add credentials that nobody sees, and its answers are had after they were read."""
    ledger = open_ledger()
    guard = make_guard(ledger)

    def channel(url: str) -> grpc.aio.Channel:
        return grpc.aio.insecure_channel(url, interceptors=guard.grpc_interceptors())

    async with RawPeer(SendMessage=answers) as peer:
        document = served(peer.target)
        config = ClientConfig(
            streaming=False,
            supported_protocol_bindings=["GRPC"],
            grpc_channel_factory=channel,
            httpx_client=guard.httpx_client(Peer(document, lambda _: httpx.Response(404))),
        )
        client = await guard.create_client(ORIGIN, config=config)
        await send(client, "hello")
        await client.close()
    asked, answered = only(ledger, "message.recorded")
    assert asked.data["url"] == peer.target
    assert ("wire" in asked.blobs, "wire" in answered.blobs) == (True, False)
    assert only(ledger, "contract.captured")[0].data["credential_visible"] is False


async def test_a_card_from_elsewhere_is_frozen_as_configured(open_ledger: OpenLedger, make_guard: MakeGuard) -> None:
    ledger = open_ledger()
    guard = make_guard(ledger)
    async with RawPeer(SendMessage=answers) as peer:
        configured = ParseDict(served(peer.target), AgentCard())
        config = ClientConfig(
            streaming=False,
            supported_protocol_bindings=["GRPC"],
            grpc_channel_factory=guard.grpc_channel_factory(),
        )
        client = ClientFactory(config).create(configured, interceptors=[guard.interceptor()])
        await send(client, "hello")
        await client.close()
    (fetched,) = only(ledger, "card.fetched")
    assert fetched.data["source"] == "configured"
    (captured,) = only(ledger, "contract.captured")
    assert captured.data["interface"] == {"binding": "GRPC", "tenant": "", "url": peer.target, "version": "1.0"}
