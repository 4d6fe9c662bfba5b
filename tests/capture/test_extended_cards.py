"""The extended card of a real a2a-sdk agent, on every way it comes: another card than the public one, kept apart."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from a2a_ledger import ContractChangedError
from a2a_ledger.address import peer_id
from a2a_ledger.capture.peerview import PeerViews
from a2a_ledger.card import read_card
from a2a_ledger.contract import require_contract
from a2a_ledger.settings import Limits
from tests.capture.agent import Agent
from tests.capture.conftest import STALE, only, send
from tests.capture.extending import ASK, agent, bearer, build, closing, decisions, extended, message_of
from tests.capture.front import BEARER, JSON, WELL_KNOWN, Asked, Reply, card_of, in_front, served
from tests.evidence.test_real_traffic import check_all

if TYPE_CHECKING:
    from tests.capture.conftest import MakeGuard, OpenLedger

__all__ = ["agent", "closing"]  # fixtures, found by their names

WAYS = {
    "JSON-RPC 1.0": (("1.0",), "JSONRPC", "/rpc"),
    "JSON-RPC 0.3": (("0.3",), "JSONRPC", "/rpc"),
    "REST 1.0": (("1.0",), "HTTP+JSON", "/rest/extendedAgentCard"),
    "REST 0.3": (("0.3",), "HTTP+JSON", "/rest/v1/card"),
}


# ---- on every way it comes


@pytest.mark.parametrize("way", WAYS)
async def test_it_is_recorded_with_its_exact_octets_and_the_client_goes_on_under_it(
    way: str, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    versions, binding, path = WAYS[way]
    with Agent(versions=versions, extended=True) as agent:
        for card in (agent.card, agent.extended):  # the agent's REST interface, said to be of this version
            card.supported_interfaces.add(
                url=agent.url + "/rest", protocol_binding="HTTP+JSON", protocol_version=versions[0]
            )
        ledger = open_ledger()
        client = await build(make_guard(ledger), agent, binding, **bearer("alice-secret"))
        assert (await client.get_extended_agent_card(ASK)).description == "for those who may know"
        await send(client, "hello")
    public, came = only(ledger, "card.fetched")
    assert (came.data["url"], came.data["source"]) == (agent.url + path, "extended")
    assert (public.data["source"], public.stream) == ("well-known", came.stream)
    assert came.data["caller"] == "authorization:bearer"
    marks: Any = came.data["credential"]
    assert [mark["scheme"] for mark in marks] == ["authorization:bearer"]
    assert b"alice-secret" not in came.raw
    body = came.content("body")
    assert body is not None
    if binding == "JSONRPC":
        message = message_of(ledger, came)
        assert (message.data["leg"], message.data["method"]) == ("response", "GetExtendedAgentCard")
        whole = message.content("body") or b""
        assert whole.count(body) == 1
        assert json.loads(whole)["result"] == json.loads(body)
    else:
        assert "within" not in came.data
    [captured] = only(ledger, "contract.captured")
    assert captured.data["fetch"] == came.ref
    assert captured.data["contract_hash"] == require_contract(read_card(body)).hash
    assert captured.data["caller"] == "authorization:bearer"


@pytest.mark.parametrize("path", ["/rest/extendedAgentCard", "/rest/acme/extendedAgentCard", "/rest/v1/card"])
async def test_by_a_get_of_any_version_it_belongs_to_the_peer_whose_card_lists_the_interface(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, path: str
) -> None:
    nested = "/agents/echo" + WELL_KNOWN
    card = await card_of(agent)
    in_front(agent, lambda asked: served(card) if asked.path in {nested, path} else None)
    ledger = open_ledger()
    async with make_guard(ledger).httpx_client() as http:
        await http.get(agent.url + WELL_KNOWN.replace("agent-card", "other/agent-card"))
        await http.get(agent.url + nested)
        await http.get(agent.url + path)
    public, came = only(ledger, "card.fetched")
    assert came.data["source"] == "extended"
    assert came.data["peer"] == public.data["peer"] == peer_id(agent.url + nested)
    assert came.data["peer_url"] == agent.url + nested


async def test_the_path_of_0_2_beside_the_url_belongs_to_the_public_card_there(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    public: dict[str, Any] = {**(await card_of(agent)), "url": f"{agent.url}/agents/a/"}
    del public["supportedInterfaces"]
    old = "/agents/a/agent/authenticatedExtendedCard"
    in_front(agent, lambda asked: served(public) if asked.path in {"/agents/a/.well-known/agent.json", old} else None)
    ledger = open_ledger()
    async with make_guard(ledger).httpx_client() as http:
        await http.get(f"{agent.url}/agents/a/.well-known/agent.json")
        await http.get(agent.url + old)
    assert {str(r.data["peer"]) for r in only(ledger, "card.fetched")} == {peer_id(f"{agent.url}/agents/a{WELL_KNOWN}")}
    assert [r.data["source"] for r in only(ledger, "card.fetched")] == ["well-known", "extended"]


async def test_two_tenants_and_two_spellings_of_the_method_at_one_url_are_cards_apart(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    with Agent(extended=True) as agent:
        async with make_guard(ledger).httpx_client() as http:
            await http.get(agent.url + WELL_KNOWN)
            for method, params in (
                ("GetExtendedAgentCard", {}),
                ("GetExtendedAgentCard", {"tenant": "a"}),
                ("GetExtendedAgentCard", {"tenant": "b"}),
                ("agent/getAuthenticatedExtendedCard", {}),
            ):
                call = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
                version = "0.3" if "/" in method else "1.0"
                answer = await http.post(agent.url + "/rpc", json=call, headers={"A2A-Version": version})
                assert answer.json()["result"]["description"] == "for those who may know"
    assert len({str(r.data["variant"]) for r in extended(ledger)}) == 4
    peer = str(only(ledger, "card.fetched")[0].data["peer"])
    assert len(PeerViews(ledger.store).of(peer).cards) == 5


# ---- what it does to the public one


async def test_that_it_differs_from_the_public_card_is_no_change_of_contract(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    agent.require_oauth("more", card=agent.extended)
    ledger = open_ledger(limits=STALE, acceptance="manual")
    guard = make_guard(ledger)
    public = await build(guard, agent)
    client = await build(guard, agent)
    await client.get_extended_agent_card(ASK)
    for one in (public, client, public):
        await send(one, "hello")
    assert decisions(ledger) == [
        ("proceed", "not-modified"),
        ("never-refetch", "no-validator"),
        ("proceed", "not-modified"),
    ]
    hashes = [r.data["contract_hash"] for r in only(ledger, "contract.captured")]
    assert hashes[0] == hashes[2] != hashes[1]
    assert only(ledger, "contract.accepted") == []
    kinds = [r.data["inputs"]["card"]["kind"] for r in only(ledger, "freshness.decided") if r.stream[0] == "t"]  # type: ignore[index,call-overload]  # JSON as recorded
    assert kinds == ["well-known", "extended", "well-known"]
    assert [r.data["source"] for r in only(ledger, "card.fetched")].count("extended") == 1


async def test_a_method_has_no_conditional_request_so_row_7_holds_whatever_its_answer_says_of_caching(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    card = await card_of(agent)
    answer = json.dumps({"jsonrpc": "2.0", "id": "1", "result": card}).encode()

    def front(asked: Asked) -> Reply | None:
        is_call = asked.path == "/rpc" and not calls
        calls.append(asked.path) if asked.path == "/rpc" else None
        return Reply(200, (JSON, ("etag", '"1"'), ("cache-control", "max-age=1")), answer) if is_call else None

    calls: list[str] = []
    asked = in_front(agent, front)
    ledger = open_ledger(limits=STALE)
    client = await build(make_guard(ledger), agent)
    await client.get_extended_agent_card(ASK)
    del asked.asked[:]
    await send(client, "hello")
    await send(client, "hello")
    assert [one.method for one in asked.asked] == ["POST", "POST"]
    assert decisions(ledger) == [("never-refetch", "no-validator")] * 2
    [came] = extended(ledger)
    assert {"etag", "max_age"} & came.data.keys() == set()


async def test_an_extended_card_by_get_is_validated_by_its_own_tag(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    card = {**(await card_of(agent)), **BEARER}

    def front(asked: Asked) -> Reply | None:
        if not asked.path.endswith("extendedAgentCard"):
            return None
        return Reply(304) if asked.headers.get("if-none-match") == '"x"' else served(card, ("etag", '"x"'))

    in_front(agent, front)
    ledger = open_ledger(limits=STALE)
    client = await build(make_guard(ledger), agent, "HTTP+JSON", **bearer("alice-secret"))
    await client.get_extended_agent_card(ASK)
    await send(client, "hello")
    assert decisions(ledger) == [("proceed", "not-modified")]
    assert [(r.data["status"], r.data["url"]) for r in extended(ledger)] == [
        (200, agent.url + "/rest/extendedAgentCard"),
        (304, agent.url + "/rest/extendedAgentCard"),
    ]


async def test_a_task_frozen_from_it_replays_exports_and_audits_as_any_other(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(limits=Limits(contract=0, cache=0))
    client = await build(make_guard(ledger), agent, **bearer("alice-secret"))
    await client.get_extended_agent_card(ASK)
    await send(client, "hello")
    agent.require_oauth(card=agent.extended)
    with pytest.raises(ContractChangedError):
        await send(client, "hello")
    assert check_all(ledger) == 2
    assert only(ledger, "violation.detected") == []


# ---- a changed one


async def test_a_changed_extended_contract_stops_the_client_and_a_second_call_takes_it_on(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(limits=STALE)
    client = await build(make_guard(ledger), agent)
    await client.get_extended_agent_card(ASK)
    await send(client, "plain")
    agent.require_oauth(card=agent.extended)
    with pytest.raises(ContractChangedError, match="oauth"):
        await client.get_extended_agent_card(ASK)
    [aborted] = only(ledger, "send.aborted")
    first, second = extended(ledger)
    assert (aborted.data["old_hash"], aborted.data["new_hash"]) == (
        first.data["contract_hash"],
        second.data["contract_hash"],
    )
    assert only(ledger, "contract.accepted") == []
    await client.get_extended_agent_card(ASK)
    [accepted] = only(ledger, "contract.accepted")
    assert accepted.data["old_hash"] == first.data["contract_hash"]
    await send(client, "hello")
    assert only(ledger, "contract.captured")[-1].data["contract_hash"] == second.data["contract_hash"]


async def test_a_client_that_was_stopped_still_acts_on_the_card_that_it_had(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    client = await build(make_guard(ledger), agent)
    await client.get_extended_agent_card(ASK)
    agent.require_oauth(card=agent.extended)
    with pytest.raises(ContractChangedError):
        await client.get_extended_agent_card(ASK)
    await send(client, "hello")
    [captured] = only(ledger, "contract.captured")
    assert captured.data["contract_hash"] == extended(ledger)[0].data["contract_hash"]


async def test_past_the_cache_limit_the_method_is_called_again_and_its_messages_are_recorded(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(limits=Limits(contract=0, cache=0))
    client = await build(make_guard(ledger), agent, **bearer("alice-secret"))
    await client.get_extended_agent_card(ASK)
    await send(client, "hello")
    assert decisions(ledger) == [("proceed", "contract-equal")]
    assert [(r.data["purpose"], message_of(ledger, r).data["leg"]) for r in extended(ledger)] == [
        ("discovery", "response"),
        ("discovery", "response"),
    ]
    agent.require_oauth(card=agent.extended)
    posts = agent.posts
    with pytest.raises(ContractChangedError):
        await send(client, "hello")
    assert agent.posts == posts + 1
    assert agent.wire.seen[-1][2]["authorization"] == "Bearer alice-secret"


async def test_in_the_context_of_a_running_task_the_kept_card_is_given_and_nothing_is_sent(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    client = await build(make_guard(ledger), agent)
    await client.get_extended_agent_card(ASK)
    await send(client, "ask me")
    posts = agent.posts
    agent.extended.description = "changed"
    card = await client.get_extended_agent_card(ASK)
    assert (card.description, agent.posts) == ("for those who may know", posts)
    assert decisions(ledger)[-1] == ("never-refetch", "frozen")
