"""gRPC calls that the peer began to answer and never did: what the library says then is no word of the peer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from a2a.client.client import ClientCallContext
from a2a.client.errors import A2AClientError
from a2a.types import GetTaskRequest, StreamResponse, SubscribeToTaskRequest

from tests.capture.raw_rpc import RawPeer
from tests.capture.test_grpc_guard import WORKING, client_of, last, legs, served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import grpc.aio

    from tests.capture.conftest import MakeGuard, OpenLedger

    Context = grpc.aio.ServicerContext[Any, Any]


async def begins(_: bytes, context: Context) -> bytes:
    await context.send_initial_metadata((("x-request-id", "r1"),))
    await asyncio.sleep(30)
    return b""


async def test_a_deadline_after_initial_metadata_is_no_word_of_the_peer(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    async with RawPeer(GetTask=begins) as peer:
        client = await client_of(make_guard(ledger), served(peer.target))
        with pytest.raises(A2AClientError):
            await client.get_task(GetTaskRequest(id="T1"), context=ClientCallContext(timeout=0.3))
        await client.close()
    assert legs(ledger) == ["request", "error"]
    assert (last(ledger).data["error_kind"], last(ledger).data.get("status")) == ("timeout", None)


async def test_a_lost_connection_after_initial_metadata_is_no_word_of_the_peer(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    began = asyncio.Event()

    async def answer(_: bytes, context: Context) -> bytes:
        await context.send_initial_metadata((("x-request-id", "r1"),))
        began.set()
        await asyncio.sleep(30)
        return b""

    ledger = open_ledger()
    peer = RawPeer(GetTask=answer)
    async with peer:
        client = await client_of(make_guard(ledger), served(peer.target))
        asking = asyncio.ensure_future(client.get_task(GetTaskRequest(id="T1")))
        await began.wait()
        await peer.server.stop(0)
        with pytest.raises(A2AClientError):
            await asking
        await client.close()
    assert legs(ledger) == ["request", "error"]
    assert last(ledger).data["error_kind"] == "closed"


async def test_a_peer_that_goes_away_after_initial_metadata_cuts_the_stream_and_completes_nothing(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    async def stalls(_: bytes, context: Context) -> AsyncIterator[bytes]:
        await context.send_initial_metadata((("x-request-id", "r1"),))
        yield StreamResponse(task=WORKING).SerializeToString()
        await asyncio.sleep(30)

    ledger = open_ledger()
    async with RawPeer(SubscribeToTask=stalls) as peer:
        client = await client_of(make_guard(ledger), served(peer.target), streaming=True)
        stream = client.subscribe(SubscribeToTaskRequest(id="T1"))
        await anext(stream)
        await peer.server.stop(0)
        with pytest.raises(A2AClientError):
            async for _ in stream:
                pass
        await client.close()
    assert legs(ledger) == ["request", "stream-event", "stream-end"]
    assert last(ledger).data["error_kind"] == "closed"
