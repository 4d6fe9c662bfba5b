"""Several true cards of one agent, live: two card paths, nested paths, copies from a registry, cards from a file."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import pytest
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.card_resolver import parse_agent_card
from a2a.client.errors import AgentCardResolutionError

from a2a_ledger import ContractChangedError, Guard
from a2a_ledger.address import peer_id
from a2a_ledger.capture.card_identity import variant_of
from a2a_ledger.capture.peerview import PeerViews
from a2a_ledger.card import read_card
from a2a_ledger.contract import summary
from a2a_ledger.errors import CardError
from a2a_ledger_projections.verifier import follower
from tests.capture.conftest import STALE, only, send
from tests.capture.front import BEARER, JSON, WELL_KNOWN, Asked, Reply, card_of, in_front, served

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import httpx

    from a2a_ledger import ContractLedger
    from tests.capture.agent import Agent
    from tests.capture.conftest import MakeGuard, OpenLedger

FALLBACK = "/.well-known/agent.json"
NESTED = "/agents/echo" + WELL_KNOWN
NO_CACHE = {"Cache-Control": "no-cache"}

_open: list[httpx.AsyncClient] = []


@pytest.fixture(autouse=True)
async def _closing() -> AsyncGenerator[None]:
    yield
    for http in _open:
        await http.aclose()
    _open.clear()


def plain(guard: Guard, **options: Any) -> ClientConfig:  # noqa: ANN401 - passed to httpx as they are
    """Return a configuration for sends without a stream over a client of its own, which the test's end closes."""
    _open.append(guard.httpx_client(**options))
    return ClientConfig(httpx_client=_open[-1], streaming=False, supported_protocol_bindings=["JSONRPC"])


def decisions(ledger: ContractLedger) -> list[tuple[object, object]]:
    """Return the decisions before sends, in the log's order."""
    found = [r.data for r in only(ledger, "freshness.decided") if r.stream.startswith("task:")]
    return [(data["decision"], data["reason"]) for data in found]


# ---- two paths, nested paths


async def test_agent_json_beside_agent_card_json_is_another_card_of_the_same_peer(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    """Two paths answer with different cards, and no sign says which one is canonical (bugs.md 5)."""
    card = await card_of(agent)
    old = {**card, **BEARER}
    in_front(
        agent,
        lambda asked: served(old, ("etag", '"1"')) if asked.path == FALLBACK else _tagged(asked, card, WELL_KNOWN),
    )
    ledger = open_ledger(limits=STALE, acceptance="manual")
    guard = make_guard(ledger)
    config = plain(guard)
    client = await guard.create_client(agent.url, config=config)
    assert config.httpx_client is not None
    for _ in range(2):
        await config.httpx_client.get(agent.url + FALLBACK, headers=NO_CACHE)
        await send(client, "plain")
    assert decisions(ledger) == [("proceed", "not-modified")] * 2
    fetched = only(ledger, "card.fetched")
    assert {str(r.data["peer"]) for r in fetched} == {peer_id(agent.url + WELL_KNOWN)}
    assert {str(r.data["source"]) for r in fetched} == {"well-known"}
    assert [str(r.data["url"]).endswith("agent.json") for r in fetched].count(True) == 2
    seen = PeerViews(ledger.store).of(peer_id(agent.url + WELL_KNOWN)).seen
    assert sorted((key.url, len(contracts)) for key, contracts in seen.items()) == [
        (agent.url + WELL_KNOWN, 1),
        (agent.url + FALLBACK, 1),
    ]
    assert only(ledger, "contract.accepted") == []
    verifier = follower(ledger)
    verifier.catch_up()
    assert only(ledger, "violation.detected") == []


def _tagged(asked: Asked, card: dict[str, Any], path: str) -> Reply | None:
    if asked.path != path:
        return None
    return Reply(304) if asked.headers.get("if-none-match") == '"1"' else served(card, ("etag", '"1"'))


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (404, (("content-type", "text/html"),), b"<h1>Not Found</h1>"),
        (401, (("www-authenticate", 'Bearer realm="platform"'),), b"who are you?"),
        (405, (("content-type", "text/html"), ("allow", "POST")), b"<h1>Method Not Allowed</h1>"),
    ],
)
@pytest.mark.parametrize("broken", [FALLBACK, WELL_KNOWN])
async def test_what_one_path_refuses_is_evidence_of_the_attempt_and_withdraws_nothing(
    agent: Agent,
    open_ledger: OpenLedger,
    make_guard: MakeGuard,
    status: int,
    headers: tuple[tuple[str, str], ...],
    body: bytes,
    broken: str,
) -> None:
    """The root answers for a platform, the agent is elsewhere (bugs.md 7, 9)."""
    card = await card_of(agent)
    other = NESTED if broken == WELL_KNOWN else WELL_KNOWN
    in_front(agent, lambda asked: Reply(status, headers, body) if asked.path == broken else _tagged(asked, card, other))
    ledger = open_ledger(limits=STALE)
    guard = make_guard(ledger)
    config = plain(guard)
    client = await guard.create_client(agent.url + other.removesuffix(WELL_KNOWN), config=config)
    assert config.httpx_client is not None
    with pytest.raises(AgentCardResolutionError, match=str(status)):
        await A2ACardResolver(config.httpx_client, agent.url).get_agent_card(relative_card_path=broken)
    await send(client, "hello")
    [failed] = only(ledger, "card.fetch_failed")
    assert (failed.data["outcome"], failed.data["status"]) == ("status", status)
    assert failed.data["url"] == agent.url + broken
    assert failed.content("body") == body
    kept = [json.loads(failed.content(role) or b"") for role in failed.blobs if role.startswith("header.")]
    assert [name for name, _ in headers if name != "allow"][0] in {name for name, _ in kept}  # noqa: RUF015 - a list reads better
    assert decisions(ledger) == [("proceed", "not-modified")]
    assert only(ledger, "contract.captured")[0].data["peer"] == peer_id(agent.url + other)


async def test_two_nested_agents_of_one_host_are_two_peers(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    card = await card_of(agent)
    in_front(agent, lambda asked: served({**card, "name": asked.path}) if asked.path.startswith("/agents/") else None)
    ledger = open_ledger()
    async with make_guard(ledger).httpx_client() as http:
        for name in ("a", "b"):
            await http.get(f"{agent.url}/agents/{name}{WELL_KNOWN}")
            await http.get(f"{agent.url}/agents/{name}{FALLBACK}")
    peers = [str(r.data["peer"]) for r in only(ledger, "card.fetched")]
    ids = [peer_id(f"{agent.url}/agents/{name}{WELL_KNOWN}") for name in ("a", "b")]
    assert peers == [ids[0], ids[0], ids[1], ids[1]]


# ---- a fresh answer that was asked for, no validators, contradicting ones, too little of a card


async def test_no_cache_is_a_second_fetch_with_the_new_bytes(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    """Asking for a fresh card is never answered from what is kept (bugs.md 1)."""
    ledger = open_ledger(mode="observe")
    async with make_guard(ledger).httpx_client() as http:
        resolver = A2ACardResolver(http, agent.url)
        await resolver.get_agent_card()
        agent.require_oauth()
        fresh = await resolver.get_agent_card(http_kwargs={"headers": NO_CACHE})
    assert [list(r.schemes) for r in fresh.security_requirements] == [["oauth"]]
    first, second = only(ledger, "card.fetched")
    assert b"oauth" not in (first.content("body") or b"")
    assert b"oauth" in (second.content("body") or b"")
    assert first.data["contract_hash"] != second.data["contract_hash"]


@pytest.mark.parametrize(
    ("headers", "found"), [((), []), ((("etag", '"same"'),), ["validator-lied"])], ids=["none", "contradictory"]
)
async def test_without_validators_or_with_a_tag_that_lies_the_bytes_count(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, headers: tuple[tuple[str, str], ...], found: list[str]
) -> None:
    """A card answer carries no caching headers, or an ETag that stays when the body does not (bugs.md 3)."""
    card = await card_of(agent)
    in_front(agent, lambda asked: served(card, *headers) if asked.path == WELL_KNOWN else None)
    ledger = open_ledger(limits=STALE)
    guard = make_guard(ledger)
    config = plain(guard)
    client = await guard.create_client(agent.url, config=config)
    card.update(BEARER)
    assert config.httpx_client is not None
    with pytest.raises(ContractChangedError):
        await config.httpx_client.get(agent.url + WELL_KNOWN, headers=NO_CACHE)
    first, second = only(ledger, "card.fetched")
    assert first.data["raw_hash"] != second.data["raw_hash"]
    assert first.data["contract_hash"] != second.data["contract_hash"]
    await send(client, "hello")
    assert decisions(ledger) == [("abort-before-send", "contract-changed"), ("never-refetch", "no-validator")]
    follower(ledger).catch_up()
    rules = [r.data["rule"] for r in only(ledger, "violation.detected")]
    assert rules == [*found, "weaker-authorization"]  # it ran without what the newer card asks for


async def test_an_empty_card_is_refused_and_a_thin_one_states_no_security(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    """An SDK takes a card without its required fields; "not stated" is not "none needed" (bugs.md 11)."""
    thin = {"name": "t", "url": f"{agent.url}/rpc", "protocolVersion": "0.3.0"}
    body: list[Any] = [{}]
    in_front(agent, lambda asked: served(body[0]) if asked.path == WELL_KNOWN else None)
    ledger = open_ledger(mode="enforce")
    guard = make_guard(ledger)
    with pytest.raises(CardError):
        await guard.create_client(agent.url, config=plain(guard))
    body[0] = thin
    client = await guard.create_client(agent.url, config=plain(guard))
    await send(client, "hello")
    [captured] = only(ledger, "contract.captured")
    frozen = json.loads(captured.content("contract") or b"")
    assert (frozen["security"], frozen["schemes"]) == ([], {})
    fetched = only(ledger, "card.fetched")[-1]
    assert summary(read_card(fetched.content("body") or b""))["stated"] == {"protocolVersion": True, "security": False}


async def test_the_version_that_a_request_states_is_recorded_and_one_that_states_none_is_not_given_one(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    """A gateway never sends A2A-Version, and the agent then answers that the version is not supported (bugs.md 9)."""
    ledger = open_ledger()
    call = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "no-such-task"}}
    async with make_guard(ledger).httpx_client() as http:
        for headers in ({"A2A-Version": "1.0"}, {}):
            await http.get(agent.url + WELL_KNOWN, headers=headers)
            await http.post(agent.url + "/rpc", json=call, headers=headers)
    assert [r.data.get("asked_version") for r in only(ledger, "card.fetched")] == ["1.0", None]
    answers = [r.data["error_code"] for r in only(ledger, "message.recorded") if r.data["direction"] == "in"]
    sent = [r for r in only(ledger, "message.recorded") if r.data["direction"] == "out"]
    stated = [any(b"a2a-version" in (r.content(role) or b"") for role in r.blobs) for r in sent]
    assert stated == [True, False]
    assert answers == [-32001, -32009]


# ---- cards that no card fetch brought


def _entry(card: dict[str, Any]) -> dict[str, Any]:
    return {"id": 7, "owner": "somebody", "agentCard": card}


def wrapped(card: dict[str, Any], shape: str) -> dict[str, Any]:
    """Return a registry's answer that holds a card."""
    if shape == "envelope":
        return {"version": "3", "data": _entry(card)}
    return card if shape == "document" else {"items": [_entry({**card, "name": "Other"}), _entry(card)]}


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        ("document", "?name=Echo"),
        ("envelope", "/data/agentCard?name=Echo"),
        ("list", "/items/*/agentCard?name=Echo"),
    ],
)
async def test_a_card_out_of_a_registrys_answer_has_the_octets_that_stood_there(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, shape: str, told: str
) -> None:
    card = {**(await card_of(agent)), "description": "a copy", "x-vendor": 1.0}
    registry = agent.url.replace("127.0.0.1", "localhost") + "/registry/agents"
    text = json.dumps(wrapped(card, shape), indent=2).encode()
    in_front(agent, lambda asked: Reply(200, (JSON,), text) if asked.path == "/registry/agents" else None)
    ledger = open_ledger(limits=STALE)
    guard = make_guard(ledger)
    config = plain(guard, headers={"Authorization": "Bearer for-the-registry"})
    public = await guard.create_client(agent.url, config=config)
    assert config.httpx_client is not None
    answer: Any = (await config.httpx_client.get(registry)).json()
    entry = {"document": answer, "envelope": answer.get("data"), "list": answer.get("items", [{}])[-1]}[shape]
    card_taken = parse_agent_card(entry if shape == "document" else entry["agentCard"])
    client = ClientFactory(config).create(card_taken, interceptors=[guard.interceptor()])
    await send(client, "plain")
    await send(public, "plain")
    first, second = only(ledger, "card.fetched")[:2]
    assert (second.data["source"], second.data["url"]) == ("registry", registry)
    assert second.data["peer"] == first.data["peer"] == peer_id(agent.url + WELL_KNOWN)
    body = second.content("body") or b""
    assert text.count(body) == 1
    assert json.loads(body) == card
    assert "lossy" not in str(second.data["flags"])
    within: Any = second.data["within"]
    [message] = ledger.store.read_stream(within["stream"], gt=within["ver"] - 1, limit=1)
    assert (message.c, message.data["url"]) == (within["c"], registry)
    assert only(ledger, "contract.captured")[0].data["fetch"] == second.ref
    assert decisions(ledger) == [("never-refetch", "no-validator"), ("proceed", "not-modified")]
    assert second.data["variant"] == variant_of(registry, [], told)
    assert b"for-the-registry" not in second.raw + body


async def test_a_card_from_a_file_is_configured_lossy_and_apart(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(limits=STALE)
    guard = make_guard(ledger)
    public = await guard.create_client(agent.url, config=plain(guard))
    agent.require_oauth()
    other = ClientFactory(plain(guard)).create(agent.card, interceptors=[guard.interceptor()])
    await send(other, "plain")
    first, second = only(ledger, "card.fetched")
    assert (second.data["source"], second.data["flags"], second.data["peer"]) == (
        "configured",
        ["lossy"],
        first.data["peer"],
    )
    assert decisions(ledger) == [("never-refetch", "no-validator")]
    assert only(ledger, "contract.captured")[0].data["fetch"] == second.ref
    with pytest.raises(ContractChangedError):  # its own card did change
        await send(public, "hello")


async def test_a_document_of_another_host_that_is_asked_for_as_a_card_is_validated_as_one(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    card = await card_of(agent)
    in_front(agent, lambda asked: _tagged(asked, card, "/registry/echo.json"))
    ledger = open_ledger(limits=STALE)
    guard = make_guard(ledger)
    registry = agent.url.replace("127.0.0.1", "localhost")
    client = await guard.create_client(registry, config=plain(guard), relative_card_path="/registry/echo.json")
    await send(client, "hello")
    assert decisions(ledger) == [("proceed", "not-modified")]
    for record in only(ledger, "card.fetched"):
        assert record.data["source"] == "registry"
        assert record.data["peer"] == peer_id(f"{registry}/registry/echo.json")


# ---- what cannot be told apart


async def test_two_cards_with_one_url_on_one_httpx_client_without_the_interceptor_are_said_to_be_unclear(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, caplog: pytest.LogCaptureFixture
) -> None:
    card = await card_of(agent)
    in_front(agent, lambda asked: served({**card, **BEARER}) if asked.path == NESTED else None)
    ledger = open_ledger()
    guard = make_guard(ledger)
    factory = ClientFactory(plain(guard))
    one = await factory.create_from_url(agent.url)
    await factory.create_from_url(agent.url + "/agents/echo")
    with caplog.at_level(logging.WARNING):
        await send(one, "plain")
        await send(one, "plain")
    said = [r.getMessage() for r in caplog.records if "came over one httpx client" in r.getMessage()]
    assert len(said) == 1
    assert agent.url + NESTED in said[0]
    assert {str(r.data["peer"]) for r in only(ledger, "contract.captured")} == {peer_id(agent.url + NESTED)}


async def test_with_the_interceptor_each_client_of_one_httpx_client_is_under_its_own_card(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, caplog: pytest.LogCaptureFixture
) -> None:
    card = await card_of(agent)
    in_front(agent, lambda asked: served({**card, **BEARER}) if asked.path == NESTED else None)
    ledger = open_ledger()
    guard = make_guard(ledger)
    config = plain(guard)
    one = await guard.create_client(agent.url, config=config)
    two = await guard.create_client(agent.url + "/agents/echo", config=config)
    for client in (one, two):
        await send(client, "plain")
    assert [r.data["peer"] for r in only(ledger, "contract.captured")] == [
        peer_id(agent.url + WELL_KNOWN),
        peer_id(agent.url + NESTED),
    ]
    assert "came over one httpx client" not in caplog.text
