"""A call over gRPC whose card was resolved with a client that is closed: the guard asks in its own name, or says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pytest
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory

from a2a_ledger.errors import ContractChangedError
from tests.capture.agent import Agent
from tests.capture.conftest import STALE, only, send
from tests.capture.front import WELL_KNOWN, Asked, Reply, in_front
from tests.capture.front import served as with_card
from tests.capture.peer import ORIGIN
from tests.capture.raw_rpc import RawPeer
from tests.capture.test_grpc_guard import answers, served

if TYPE_CHECKING:
    from a2a.client import Client

    from a2a_ledger import ContractLedger, Guard
    from tests.capture.conftest import MakeGuard, OpenLedger

IS_CLOSED = "is closed, and the guard has not what it asked with"


async def resolved(guard: Guard, http: httpx.AsyncClient, url: str) -> Client:
    """Return an SDK client for gRPC whose card was resolved with an httpx client that is closed."""
    async with http:
        found = await A2ACardResolver(http, url).get_agent_card()
    config = ClientConfig(
        streaming=False, supported_protocol_bindings=["GRPC"], grpc_channel_factory=guard.grpc_channel_factory()
    )
    return ClientFactory(config).create(found, interceptors=[guard.interceptor()])


def tagged(document: dict[str, Any], asked: Asked) -> Reply | None:
    """Serve a card whose tag tells how many members it has, and answer 304 to who has it."""
    if asked.path != WELL_KNOWN:
        return None
    tag = ("etag", f'"{len(document)}"')
    return Reply(304, (tag,)) if asked.headers.get("if-none-match") == tag[1] else with_card(document, tag)


def reasons(ledger: ContractLedger) -> list[object]:
    return [record.data["reason"] for record in only(ledger, "freshness.decided")]


async def test_a_card_that_was_asked_for_without_credentials_is_asked_for_over_a_client_of_the_guards_own(
    open_ledger: OpenLedger, make_guard: MakeGuard, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = open_ledger(mode="enforce", limits=STALE)
    guard = make_guard(ledger)
    async with RawPeer(SendMessage=answers) as peer:
        now = served(peer.target)
        with Agent() as agent:
            front = in_front(agent, lambda asked: tagged(now, asked))
            client = await resolved(guard, guard.httpx_client(headers={"X-Request-Id": "of-the-caller"}), agent.url)
            await send(client, "hello")
            now["securityRequirements"] = [{"schemes": {"m": {"list": list[str]()}}}]
            with pytest.raises(ContractChangedError):
                await send(client, "again")
        await client.close()
        assert [name for name, _, _ in peer.asked] == ["SendMessage"]
    assert reasons(ledger)[1:] == ["not-modified", "contract-changed"]
    assert [one.headers.get("x-request-id") for one in front.cards()] == ["of-the-caller"] * 3
    assert IS_CLOSED not in caplog.text


@pytest.mark.parametrize("credential", ["header", "query"])
async def test_the_guard_asks_with_nobodys_credentials_and_says_that_it_cannot_ask(
    open_ledger: OpenLedger, make_guard: MakeGuard, caplog: pytest.LogCaptureFixture, credential: str
) -> None:
    ledger = open_ledger(mode="enforce", limits=STALE)
    guard = make_guard(ledger)
    async with RawPeer(SendMessage=answers) as peer:
        now = served(peer.target)
        with Agent() as agent:
            front = in_front(agent, lambda asked: tagged(now, asked))
            http = (
                guard.httpx_client(headers={"Authorization": "Bearer of-the-caller"})
                if credential == "header"
                else guard.httpx_client(params={"access_token": "of-the-caller"})
            )
            client = await resolved(guard, http, agent.url)
            await send(client, "hello")
            await send(client, "again")
        await client.close()
    assert len(front.cards()) == 1
    assert caplog.text.count(IS_CLOSED) == 1
    assert reasons(ledger)[1:] == ["refetch-failed"] * 2


async def test_a_transport_of_the_callers_own_is_not_made_again_and_that_is_said_once(
    open_ledger: OpenLedger, make_guard: MakeGuard, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = open_ledger(mode="enforce", limits=STALE)
    guard = make_guard(ledger)
    async with RawPeer(SendMessage=answers) as peer:
        one = httpx.MockTransport(lambda _: httpx.Response(200, json=served(peer.target), headers={"etag": '"1"'}))
        client = await resolved(guard, guard.httpx_client(transport=one), ORIGIN)
        await send(client, "hello")
        await send(client, "again")
        await client.close()
    said = [record.getMessage() for record in caplog.records if IS_CLOSED in record.getMessage()]
    assert len(said) == 1
    assert said[0].startswith(f"{ORIGIN}/.well-known/agent-card.json: the httpx client that this card was resolved")
    assert reasons(ledger)[1:] == ["refetch-failed"] * 2
