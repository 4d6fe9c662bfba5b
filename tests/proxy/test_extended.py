"""An extended card that was read through the proxy is what its client acts on, whichever way it was asked for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import httpx
import pytest
from a2a.client import ClientConfig, ClientFactory
from a2a.client.errors import A2AClientError
from a2a.types import GetExtendedAgentCardRequest

from tests.capture.conftest import send
from tests.proxy.conftest import only
from tests.proxy.peer import Peer, say, start
from tests.proxy.serving import Serving
from tests.proxy.test_clients import CARD, Rotating, client
from tests.proxy.test_clients import send as post
from tests.proxy.test_passing import JSON

if TYPE_CHECKING:
    from a2a_ledger.capture.server.incoming import Receive, Send
    from tests.capture.agent import Agent
    from tests.proxy.conftest import OpenLedger, StartProxy
    from tests.proxy.peer import Came


@pytest.mark.parametrize("mode", ["observe", "enforce"])
@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
async def test_an_agent_that_asks_for_what_its_extended_card_says_is_found_nothing_of(
    agent: Agent, open_ledger: OpenLedger, start_proxy: StartProxy, binding: str, mode: str
) -> None:
    agent.require_oauth(card=agent.extended)
    ledger = open_ledger(mode=mode)
    proxy = start_proxy(ledger, agent.url, rewrite_card=True)
    async with httpx.AsyncClient() as http:
        config = ClientConfig(streaming=False, supported_protocol_bindings=[binding], httpx_client=http)
        sdk = await ClientFactory(config).create_from_url(proxy.url)
        await sdk.get_extended_agent_card(GetExtendedAgentCardRequest())
        agent.wire.refuse_with = 401
        with pytest.raises(A2AClientError, match="401"):
            await send(sdk, "hello")
    public, extended = only(ledger, "card.fetched")
    assert [public.data["source"], extended.data["source"]] == ["well-known", "extended"]
    (captured,) = only(ledger, "contract.captured")
    assert captured.data["fetch"] == extended.ref
    assert [record.data.get("fetch") for record in only(ledger, "card.served")] == [public.ref, extended.ref]
    ledger.catch_up()
    assert only(ledger, "violation.detected") == []


class Extended(Rotating):
    """An agent whose extended card asks for a bearer token, and comes without its length, as all of its answers."""

    async def __call__(self, came: Came, send: Send, receive: Receive) -> None:
        self.secured = b"ExtendedAgentCard" in came.body
        if not self.secured:
            await super().__call__(came, send, receive)
            return
        await start(send, 200, JSON)
        await say(send, b'{"jsonrpc":"2.0","id":1,"result":', more=True)
        await say(send, self.card() + b"}")


async def test_an_extended_card_whose_length_is_not_told_counts_before_it_leaves(
    open_ledger: OpenLedger, start_proxy: StartProxy
) -> None:
    ledger, agent = open_ledger(mode="observe"), Extended()
    with Serving(Peer(agent)) as upstream:
        agent.url = upstream.url
        url = start_proxy(ledger, upstream.url).url
        async with client("reads") as reads, client("none") as none:
            await reads.get(url + CARD)
            await none.get(url + CARD)
            call = {"jsonrpc": "2.0", "id": 1, "method": "GetExtendedAgentCard", "params": dict[str, str]()}
            got = await reads.post(f"{url}/rpc", json=call)
            await post(reads, url, "1")
            await post(none, url, "2")
    agent.secured = True
    assert got.json()["result"] == json.loads(agent.card())
    public, _, extended = [record.data["contract_hash"] for record in only(ledger, "card.fetched")]
    assert public != extended
    assert [record.data["contract_hash"] for record in only(ledger, "contract.captured")] == [extended, public]
