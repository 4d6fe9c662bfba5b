"""A call over gRPC whose card was resolved with a client that is closed: nobody can ask again, and that is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory

from tests.capture.conftest import STALE, only, send
from tests.capture.peer import ORIGIN
from tests.capture.raw_rpc import RawPeer
from tests.capture.test_grpc_guard import answers, served

if TYPE_CHECKING:
    import pytest

    from tests.capture.conftest import MakeGuard, OpenLedger


async def test_that_the_client_which_resolved_the_card_is_closed_is_said_once(
    open_ledger: OpenLedger, make_guard: MakeGuard, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = open_ledger(mode="enforce", limits=STALE)
    guard = make_guard(ledger)
    async with RawPeer(SendMessage=answers) as peer:
        one = httpx.MockTransport(lambda _: httpx.Response(200, json=served(peer.target), headers={"etag": '"1"'}))
        async with guard.httpx_client(transport=one) as http:
            found = await A2ACardResolver(http, ORIGIN).get_agent_card()
        config = ClientConfig(
            streaming=False,
            supported_protocol_bindings=["GRPC"],
            grpc_channel_factory=guard.grpc_channel_factory(),
        )
        client = ClientFactory(config).create(found, interceptors=[guard.interceptor()])
        await send(client, "hello")
        await send(client, "again")
        await client.close()
    said = [record.getMessage() for record in caplog.records if "is closed" in record.getMessage()]
    assert len(said) == 1
    assert said[0].startswith(f"{ORIGIN}/.well-known/agent-card.json: the httpx client that this card was resolved")
    assert [record.data["reason"] for record in only(ledger, "freshness.decided")][1:] == ["refetch-failed"] * 2
