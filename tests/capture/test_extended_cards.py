"""The extended card of a real a2a-sdk agent, on every way it comes: another card than the public one, kept apart."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from a2a.client import AuthInterceptor, ClientConfig, CredentialService
from a2a.types import AgentCard, GetExtendedAgentCardRequest
from a2a.utils.errors import ExtendedAgentCardNotConfiguredError

from a2a_ledger import ContractChangedError, Guard
from a2a_ledger.address import peer_id
from a2a_ledger.capture.peerview import PeerViews
from a2a_ledger.card import read_card
from a2a_ledger.contract import require_contract
from a2a_ledger.errors import CardError
from a2a_ledger.settings import Limits
from tests.capture.agent import Agent
from tests.capture.conftest import STALE, only, send
from tests.capture.front import BEARER, JSON, WELL_KNOWN, Asked, Reply, card_of, in_front, served
from tests.evidence.test_real_traffic import check_all

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from a2a.client import Client, ClientCallContext

    from a2a_ledger import ContractLedger
    from a2a_ledger.codec import Record
    from tests.capture.conftest import MakeGuard, OpenLedger

ASK = GetExtendedAgentCardRequest()
WAYS = {
    "JSON-RPC 1.0": (("1.0",), "JSONRPC", "/rpc"),
    "JSON-RPC 0.3": (("0.3",), "JSONRPC", "/rpc"),
    "REST 1.0": (("1.0",), "HTTP+JSON", "/rest/extendedAgentCard"),
    "REST 0.3": (("0.3",), "HTTP+JSON", "/rest/v1/card"),
}

_open: list[httpx.AsyncClient] = []


@pytest.fixture(autouse=True)
async def _closing() -> AsyncGenerator[None]:
    yield
    for http in _open:
        await http.aclose()
    _open.clear()


@pytest.fixture
def agent() -> Iterator[Agent]:
    """Return a running agent that has an extended card, with one skill more."""
    with Agent(versions=("1.0",), extended=True) as running:
        yield running


async def build(guard: Guard, agent: Agent, binding: str = "JSONRPC", **options: Any) -> Client:  # noqa: ANN401 - passed to httpx as they are
    """Return a client of one binding; its httpx client is closed at the test's end."""
    _open.append(guard.httpx_client(**options))
    config = ClientConfig(httpx_client=_open[-1], streaming=False, supported_protocol_bindings=[binding])
    return await guard.create_client(agent.url, config=config)


def bearer(token: str) -> dict[str, Any]:
    """Return the options of a client that sends this token."""
    return {"headers": {"Authorization": f"Bearer {token}"}}


def decisions(ledger: ContractLedger) -> list[tuple[object, object]]:
    """Return the decisions before sends, in the log's order."""
    found = [r.data for r in only(ledger, "freshness.decided") if r.stream.startswith("task:")]
    return [(data["decision"], data["reason"]) for data in found]


def extended(ledger: ContractLedger) -> list[Record]:
    """Return the fetches of extended cards."""
    return [record for record in only(ledger, "card.fetched") if record.data["source"] == "extended"]


def message_of(ledger: ContractLedger, record: Record) -> Record:
    """Return the message that a card came in."""
    ref: Any = record.data["within"]
    [found] = ledger.store.read_stream(ref["stream"], gt=ref["ver"] - 1, limit=1)
    assert found.c == ref["c"]
    return found


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
    kinds = [r.data["inputs"]["card"]["kind"] for r in only(ledger, "freshness.decided") if r.stream[0] == "t"]  # type: ignore[index,call-overload]
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


# ---- what is no card


@pytest.mark.parametrize(
    ("reply", "outcome", "status"),
    [
        (Reply(200, (JSON,), b'{"jsonrpc":"2.0","id":1,"error":{"code":-32007,"message":"none"}}'), "error", 200),
        (Reply(200, (JSON,), b'{"jsonrpc":"2.0","id":1,"error":{"code":-32004,"message":"no"}}'), "error", 200),
        (Reply(401, (("www-authenticate", "Bearer"),), b"who?"), "status", 401),
        (Reply(403, (JSON,), b"{}"), "status", 403),
    ],
)
async def test_an_error_is_a_failed_fetch_of_that_card_and_withdraws_nothing(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, reply: Reply, outcome: str, status: int
) -> None:
    front = in_front(agent, lambda asked: reply if asked.path == "/rpc" else None)
    ledger = open_ledger(limits=Limits())
    client = await build(make_guard(ledger), agent)
    with pytest.raises(Exception, match=r"none|no|40[13]"):
        await client.get_extended_agent_card(ASK)
    front.answer = lambda _: None
    [failed] = only(ledger, "card.fetch_failed")
    assert (failed.data["source"], failed.data["outcome"], failed.data["status"]) == ("extended", outcome, status)
    assert message_of(ledger, failed).data.get("status") == status
    await send(client, "hello")
    [captured] = only(ledger, "contract.captured")
    assert captured.data["fetch"] == only(ledger, "card.fetched")[0].ref


async def test_the_sdks_own_error_for_a_card_that_is_declared_and_missing(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    with Agent(versions=("1.0",)) as agent:
        agent.card.capabilities.extended_agent_card = True
        ledger = open_ledger()
        client = await build(make_guard(ledger), agent)
        with pytest.raises(ExtendedAgentCardNotConfiguredError):
            await client.get_extended_agent_card(ASK)
    [failed] = only(ledger, "card.fetch_failed")
    assert (failed.data["outcome"], message_of(ledger, failed).data["error_code"]) == ("error", -32007)


async def test_an_error_after_a_card_leaves_the_client_under_that_card(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    client = await build(make_guard(ledger), agent)
    await client.get_extended_agent_card(ASK)
    agent.wire.refuse_with = 403
    with pytest.raises(Exception, match="403"):
        await client.get_extended_agent_card(ASK)
    agent.wire.refuse_with = None
    await send(client, "hello")
    [captured] = only(ledger, "contract.captured")
    assert captured.data["fetch"] == extended(ledger)[0].ref


@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"name":"a","name":"b","supportedInterfaces":[{"url":"u"}],"skills":[]}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"name":"a"},"result":{"name":"b"}}',
        b"<html>",
    ],
)
async def test_what_no_contract_can_be_frozen_from_is_recorded_and_refused(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, body: bytes
) -> None:
    in_front(agent, lambda asked: Reply(200, (JSON,), body) if asked.path == "/rpc" else None)
    ledger = open_ledger()
    client = await build(make_guard(ledger), agent)
    with pytest.raises(CardError):
        await client.get_extended_agent_card(ASK)
    [came] = extended(ledger)
    assert "contract_hash" not in came.data


async def test_a_card_that_never_came_is_a_failed_fetch_too(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()

    def refuse(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/rpc":
            raise httpx.ReadTimeout("too long")
        return httpx.Response(200, json=card)

    card = await card_of(agent)
    client = await build(make_guard(ledger), agent, transport=httpx.MockTransport(refuse))
    with pytest.raises(Exception, match="timed out"):
        await client.get_extended_agent_card(ASK)
    [failed] = only(ledger, "card.fetch_failed")
    assert (failed.data["outcome"], message_of(ledger, failed).data["leg"]) == ("timeout", "error")


# ---- by caller


async def test_handed_to_anyone_with_any_token_it_is_one_card_a_caller_and_no_token_is_kept(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    guard = make_guard(ledger)
    for options in ({}, bearer("utter-nonsense"), bearer("alice-secret")):
        client = await build(guard, agent, **options)
        await client.get_extended_agent_card(ASK)
    found = extended(ledger)
    assert [r.data["caller"] for r in found] == ["anonymous", "authorization:bearer", "authorization:bearer"]
    assert len({str(r.data["raw_hash"]) for r in found}) == 1
    peer = str(found[0].data["peer"])
    kept = PeerViews(ledger.store).of(peer).cards
    assert len({key for key in kept if key.source == "extended"}) == 3
    for record in ledger.store.read(0, 1000):
        blobs = b"".join(record.content(role) or b"" for role in record.blobs)
        assert b"utter-nonsense" not in record.raw + blobs
        assert b"alice-secret" not in record.raw + blobs


async def test_what_two_callers_are_served_is_no_change_of_either(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    def for_caller(card: AgentCard, who: str) -> AgentCard:
        mine = AgentCard()
        mine.CopyFrom(card)
        if "bob" in who:
            agent.require_oauth("bob", card=mine)
        return mine

    agent.for_caller = for_caller
    ledger = open_ledger(limits=STALE)
    guard = make_guard(ledger)
    alice = await build(guard, agent, **bearer("alice-secret"))
    nobody = await build(guard, agent, headers={"Authorization": "Basic Ym9iOmJvYg=="})
    agent.for_caller = lambda card, who: for_caller(card, "bob" if who.startswith("Basic") else who)
    for _ in range(2):
        for client in (alice, nobody):
            await client.get_extended_agent_card(ASK)
            await send(client, "plain")
    assert decisions(ledger) == [("never-refetch", "no-validator")] * 4
    hashes = [r.data["contract_hash"] for r in only(ledger, "contract.captured")]
    assert hashes[:2] == hashes[2:]
    assert hashes[0] != hashes[1]
    assert only(ledger, "contract.accepted") == []


class Tokens(CredentialService):
    """Gives the token of the hour."""

    token = "token-one"

    async def get_credentials(self, security_scheme_name: str, context: ClientCallContext | None) -> str | None:
        assert security_scheme_name
        assert context is None or context.state is not None
        return self.token


async def test_the_first_re_fetch_after_a_rotation_carries_the_new_token_of_the_sdks_interceptor(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    card = agent.card
    card.security_schemes["b"].http_auth_security_scheme.scheme = "Bearer"
    card.security_requirements.add().schemes["b"].SetInParent()
    agent.extended.CopyFrom(card)
    ledger = open_ledger(limits=Limits(contract=0, cache=0))
    guard = make_guard(ledger)
    tokens = Tokens()
    _open.append(guard.httpx_client())
    config = ClientConfig(httpx_client=_open[-1], streaming=False, supported_protocol_bindings=["JSONRPC"])
    client = await guard.create_client(agent.url, config=config, interceptors=[AuthInterceptor(tokens)])
    await client.get_extended_agent_card(ASK)
    tokens.token = "token-two"
    del agent.wire.seen[:]
    await send(client, "hello")
    assert [headers.get("authorization") for _, _, headers in agent.wire.seen] == ["Bearer token-two"] * 2
