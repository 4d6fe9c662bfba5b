"""Cards: passed as they are, or rewritten where that is asked for, and recorded as both."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from a2a.client import ClientConfig, ClientFactory

from a2a_ledger.settings import Limits
from tests.capture.conftest import send
from tests.proxy.conftest import only
from tests.proxy.peer import Peer, answering, get
from tests.proxy.serving import Serving, free_port

if TYPE_CHECKING:
    from tests.capture.agent import Agent
    from tests.proxy.conftest import OpenLedger, StartProxy

WELL_KNOWN = "/.well-known/agent-card.json"
JSON = (b"content-type", b"application/json")


def card(url: str, **members: object) -> dict[str, Any]:
    return {
        "name": "Vendor",
        "description": "Zürich",
        "version": "1",
        "capabilities": {"streaming": True},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": list[Any](),
        "supportedInterfaces": [{"url": f"{url}/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        **members,
    }


@pytest.mark.parametrize("mode", ["observe", "enforce"])
async def test_a_card_passes_octet_for_octet(
    agent: Agent, open_ledger: OpenLedger, start_proxy: StartProxy, mode: str
) -> None:
    ledger = open_ledger(mode=mode)
    proxy = start_proxy(ledger, agent.url)
    direct, through = await get(agent.url + WELL_KNOWN), await get(proxy.url + WELL_KNOWN)
    assert through.content == direct.content
    assert through.headers["etag"] == direct.headers["etag"]
    (fetched,) = only(ledger, "card.fetched")
    assert fetched.content("body") == direct.content
    assert fetched.data["url"] == agent.url + WELL_KNOWN
    assert only(ledger, "card.served") == []


async def test_a_question_with_a_validator_passes_as_it_is(
    agent: Agent, open_ledger: OpenLedger, start_proxy: StartProxy
) -> None:
    ledger = open_ledger(mode="observe")
    proxy = start_proxy(ledger, agent.url)
    etag = (await get(proxy.url + WELL_KNOWN)).headers["etag"]
    again = await get(proxy.url + WELL_KNOWN, **{"if-none-match": etag})
    assert (again.status_code, again.content) == (304, b"")
    assert [r.data["status"] for r in only(ledger, "card.fetched")] == [200, 304]


async def test_a_rewritten_card_names_the_proxy_and_is_recorded_as_both(
    open_ledger: OpenLedger, start_proxy: StartProxy, caplog: pytest.LogCaptureFixture
) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    signed = card(url, signatures=[{"protected": "eyJhbGciOiJFUzI1NiJ9", "signature": "AAAA"}])
    signed["additionalInterfaces"] = [
        {"url": f"{url}/rest/", "transport": "HTTP+JSON"},
        {"url": "https://else.example/a"},
    ]
    signed["provider"] = {"organization": "V", "url": f"{url}/about"}
    original = json.dumps(signed, indent=1).encode()
    ledger = open_ledger()
    with Serving(Peer(answering(200, original, JSON)), port) as upstream, caplog.at_level(logging.WARNING):
        proxy = start_proxy(ledger, upstream.url, rewrite_card=True)
        got = await get(proxy.url + WELL_KNOWN)
    served = got.json()
    assert served["supportedInterfaces"][0]["url"] == f"{proxy.url}/rpc"
    assert [one["url"] for one in served["additionalInterfaces"]] == [f"{proxy.url}/rest/", "https://else.example/a"]
    assert served["provider"]["url"] == f"{url}/about"
    assert "signatures" not in served
    assert got.headers["content-length"] == str(len(got.content))
    (fetched,), (given,) = only(ledger, "card.fetched"), only(ledger, "card.served")
    assert fetched.content("body") == original
    assert given.content("body") == got.content
    assert given.data["fetch"] == fetched.ref
    assert given.data["url"] == proxy.url + WELL_KNOWN
    said = caplog.text
    assert "without its signatures" in said
    assert "https://else.example/a is not under" in said


async def test_the_contract_that_is_frozen_is_the_agents_own(
    agent: Agent, open_ledger: OpenLedger, start_proxy: StartProxy
) -> None:
    ledger = open_ledger()
    proxy = start_proxy(ledger, agent.url, rewrite_card=True)
    async with httpx.AsyncClient() as http:
        client = await ClientFactory(ClientConfig(httpx_client=http)).create_from_url(proxy.url)
        await send(client, "hello")
    (captured,), fetched = only(ledger, "contract.captured"), only(ledger, "card.fetched")[0]
    assert captured.data["fetch"] == fetched.ref
    assert captured.data["contract_hash"] == fetched.data["contract_hash"]
    interface = captured.data["interface"]
    assert isinstance(interface, dict)
    assert interface["url"] == f"{agent.url}/rpc"


async def test_an_extended_card_that_a_method_answers_with_is_rewritten_too(
    agent: Agent, open_ledger: OpenLedger, start_proxy: StartProxy
) -> None:
    ledger = open_ledger()
    proxy = start_proxy(ledger, agent.url, rewrite_card=True)
    await get(proxy.url + WELL_KNOWN)
    ask = {"jsonrpc": "2.0", "id": 7, "method": "GetExtendedAgentCard", "params": dict[str, str]()}
    async with httpx.AsyncClient() as http:
        got = await http.post(f"{proxy.url}/rpc", json=ask, headers={"A2A-Version": "1.0"})
    assert got.json()["id"] == 7
    assert {one["url"] for one in got.json()["result"]["supportedInterfaces"]} == {
        f"{proxy.url}/rpc",
        f"{proxy.url}/rest",
    }


async def test_a_card_that_names_the_proxy_itself_is_honest_without_rewriting(
    open_ledger: OpenLedger, start_proxy: StartProxy
) -> None:
    answer = (
        b'{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"T","contextId":"C","status":{"state":"TASK_STATE_WORKING"}}}}'
    )
    peer = Peer(answering(200, answer, JSON))
    ledger = open_ledger(mode="enforce")
    with Serving(peer) as upstream:
        proxy = start_proxy(ledger, upstream.url)
        peer.answer = answering(200, json.dumps(card(proxy.url)).encode(), JSON)
        await get(proxy.url + WELL_KNOWN)
        peer.answer = answering(200, answer, JSON)
        message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}
        call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
        async with httpx.AsyncClient() as http:
            assert (await http.post(f"{proxy.url}/rpc", json=call)).content == answer
    assert dict(peer.came[-1].headers)[b"host"] == f"127.0.0.1:{upstream.port}".encode()
    (captured,) = only(ledger, "contract.captured")
    assert captured.data["contract_hash"] == only(ledger, "card.fetched")[0].data["contract_hash"]
    assert {str(r.data["url"]) for r in only(ledger, "message.recorded")} == {f"{proxy.url}/rpc"}


async def test_enforce_refuses_what_the_guard_would(
    agent: Agent, open_ledger: OpenLedger, start_proxy: StartProxy, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = open_ledger(mode="enforce", limits=Limits(contract=0))
    proxy = start_proxy(ledger, agent.url, rewrite_card=True)
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    async with httpx.AsyncClient() as http:
        await http.get(proxy.url + WELL_KNOWN)
        agent.require_oauth()
        agent.card.version = "2.0.0"
        posts = agent.posts
        refused = await http.post(f"{proxy.url}/rpc", json=call, headers={"A2A-Version": "1.0"})
        again = await http.post(f"{proxy.url}/rpc", json=call, headers={"A2A-Version": "1.0"})
        assert agent.posts == posts
        read = await http.get(proxy.url + WELL_KNOWN)
        lifted = await http.post(f"{proxy.url}/rpc", json=call, headers={"A2A-Version": "1.0"})
    assert (refused.status_code, refused.json()["title"]) == (409, "contract-changed")
    (aborted,) = only(ledger, "send.aborted")
    assert aborted.data["reason"] == "contract-changed"
    place = f"See event {aborted.n} of task {aborted.stream.removeprefix('task:')} in the ledger"
    lift = "GET the card here again, then send again"
    for answer in (refused, again):
        assert answer.json()["detail"] == f"the agent's contract changed since its card was read: {lift}. {place}"
    assert (read.status_code, lifted.status_code, agent.posts) == (200, 200, posts + 1)
    assert "let a client read" not in caplog.text  # nobody has to accept it first
    assert "No send passes before a client reads the card through this proxy again, which accepts" in caplog.text


async def test_a_client_is_told_that_a_person_accepts_a_changed_contract_first(
    agent: Agent, open_ledger: OpenLedger, start_proxy: StartProxy, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = open_ledger(mode="enforce", limits=Limits(contract=0), acceptance="manual")
    proxy = start_proxy(ledger, agent.url, rewrite_card=True)
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    async with httpx.AsyncClient() as http:
        await http.get(proxy.url + WELL_KNOWN)
        first = await http.post(f"{proxy.url}/rpc", json=call, headers={"A2A-Version": "1.0"})
        agent.require_oauth()
        message["messageId"] = "n"
        refused = await http.post(f"{proxy.url}/rpc", json=call, headers={"A2A-Version": "1.0"})
        card = await http.get(proxy.url + WELL_KNOWN)
    assert (first.status_code, refused.status_code, card.status_code) == (200, 409, 409)
    for answer in (refused, card):
        assert "who runs this ledger has to accept the changed contract (`card accept`)" in answer.json()["detail"]
    assert "first, then let a client read the card again:\n    a2a-ledger --ledger " in caplog.text
