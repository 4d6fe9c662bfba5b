"""Two agents whose cards list one interface url, over one httpx client: every call belongs to the one it is made to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pytest
from a2a.client import ClientConfig, ClientFactory
from a2a.client.card_resolver import parse_agent_card
from a2a.types import CancelTaskRequest, GetExtendedAgentCardRequest, GetTaskRequest

from a2a_ledger.address import peer_id
from tests.capture.conftest import only, send
from tests.capture.two_agents import HOST, JSONRPC, REST, TwoAgents, card_of, card_url

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from a2a.client import Client

    from a2a_ledger import ContractLedger, Guard
    from tests.capture.conftest import MakeGuard, OpenLedger

ALPHA, BETA = (peer_id(card_url(name)) for name in ("alpha", "beta"))
BINDINGS = pytest.mark.parametrize("binding", [JSONRPC, REST])
GUARDED = pytest.mark.parametrize("guarded", [True, False], ids=["interceptor", "transport-alone"])

_open: list[httpx.AsyncClient] = []


@pytest.fixture(autouse=True)
async def _closing() -> AsyncGenerator[None]:
    yield
    for http in _open:
        await http.aclose()
    _open.clear()


def shared(guard: Guard, agents: TwoAgents) -> httpx.AsyncClient:
    """Return one httpx client for all; the test's end closes it."""
    _open.append(guard.httpx_client(transport=httpx.MockTransport(agents)))
    return _open[-1]


async def build(guard: Guard, http: httpx.AsyncClient, name: str, binding: str, *, guarded: bool = True) -> Client:
    config = ClientConfig(httpx_client=http, streaming=False, supported_protocol_bindings=[binding])
    if guarded:
        return await guard.create_client(f"{HOST}/{name}", config=config)
    return await ClientFactory(config).create_from_url(f"{HOST}/{name}")


def whose(ledger: ContractLedger, since: int = 0) -> list[str]:
    """Return the peers of the messages that were recorded."""
    return [str(record.data["peer"]) for record in only(ledger, "message.recorded")[since:]]


def apart(*, by_tenant: bool) -> dict[str, Any]:
    return {name: card_of(name, tenant=name if by_tenant else "") for name in ("alpha", "beta")}


@BINDINGS
@pytest.mark.parametrize("by_tenant", [True, False])
async def test_a_guarded_clients_calls_are_to_its_own_agent_even_where_both_know_the_task_id(
    open_ledger: OpenLedger, make_guard: MakeGuard, binding: str, *, by_tenant: bool
) -> None:
    ledger = open_ledger()
    guard = make_guard(ledger)
    http = shared(guard, TwoAgents(apart(by_tenant=by_tenant), ["T"]))
    alpha, beta = [await build(guard, http, name, binding) for name in ("alpha", "beta")]
    for client, peer in ((alpha, ALPHA), (beta, BETA), (alpha, ALPHA)):
        before = len(only(ledger, "message.recorded"))
        await send(client, "work")
        await client.get_task(GetTaskRequest(id="T"))
        await client.cancel_task(CancelTaskRequest(id="T"))
        await client.get_task(GetTaskRequest(id="unknown"))
        assert whose(ledger, before) == [peer] * 8
    assert [record.data["peer"] for record in only(ledger, "task.adopted")] == [ALPHA, BETA]


@BINDINGS
@pytest.mark.parametrize("by_tenant", [True, False])
@GUARDED
async def test_a_call_about_a_task_is_to_the_agent_that_knows_it(
    open_ledger: OpenLedger, make_guard: MakeGuard, binding: str, *, guarded: bool, by_tenant: bool
) -> None:
    ledger = open_ledger()
    guard = make_guard(ledger)
    agents = TwoAgents(apart(by_tenant=by_tenant), ["T-alpha", "T-beta"])
    http = shared(guard, agents)
    clients: dict[str, Client] = {}
    for name in ("alpha", "beta"):
        clients[name] = await build(guard, http, name, binding, guarded=guarded)
        await send(clients[name], "work")
    before = len(only(ledger, "message.recorded"))
    for name in ("alpha", "beta", "alpha"):
        await clients[name].get_task(GetTaskRequest(id=f"T-{name}"))
        await clients[name].cancel_task(CancelTaskRequest(id=f"T-{name}"))
    assert whose(ledger, before) == [*[ALPHA] * 4, *[BETA] * 4, *[ALPHA] * 4]
    assert only(ledger, "task.adopted") == []


@BINDINGS
@GUARDED
async def test_a_call_about_a_task_that_nobody_knows_is_to_the_agent_of_its_tenant(
    open_ledger: OpenLedger, make_guard: MakeGuard, binding: str, *, guarded: bool
) -> None:
    ledger = open_ledger()
    guard = make_guard(ledger)
    http = shared(guard, TwoAgents(apart(by_tenant=True), ["T"]))
    alpha, beta = [await build(guard, http, name, binding, guarded=guarded) for name in ("alpha", "beta")]
    await alpha.get_task(GetTaskRequest(id="one"))
    await beta.get_task(GetTaskRequest(id="two"))
    await send(alpha, "work")
    assert whose(ledger) == [ALPHA, ALPHA, BETA, BETA, ALPHA, ALPHA]


@BINDINGS
@pytest.mark.parametrize("by_tenant", [True, False])
async def test_another_process_that_never_saw_a_card_finds_the_agent_in_the_log(
    open_ledger: OpenLedger, make_guard: MakeGuard, binding: str, *, by_tenant: bool
) -> None:
    ledger = open_ledger()
    guard = make_guard(ledger)
    agents = TwoAgents(apart(by_tenant=by_tenant), ["T-alpha", "T-beta"])
    http = shared(guard, agents)
    for name in ("alpha", "beta"):
        await send(await build(guard, http, name, binding), "work")
    later = make_guard(ledger)
    before = len(only(ledger, "message.recorded"))
    config = ClientConfig(httpx_client=shared(later, agents), streaming=False, supported_protocol_bindings=[binding])
    client = ClientFactory(config).create(parse_agent_card(agents.cards["alpha"]))
    await client.get_task(GetTaskRequest(id="T-alpha"))
    if by_tenant:
        await client.get_task(GetTaskRequest(id="unknown"))
    assert set(whose(ledger, before)) == {ALPHA}


@BINDINGS
async def test_the_extended_card_is_of_the_agent_whose_client_asks_for_it(
    open_ledger: OpenLedger, make_guard: MakeGuard, binding: str
) -> None:
    ledger = open_ledger()
    guard = make_guard(ledger)
    cards = {**apart(by_tenant=False), "extended": card_of("extended")}
    http = shared(guard, TwoAgents(cards, ["T"]))
    alpha, beta = [await build(guard, http, name, binding) for name in ("alpha", "beta")]
    for client in (alpha, beta):
        await client.get_extended_agent_card(GetExtendedAgentCardRequest())
    extended = [record for record in only(ledger, "card.fetched") if record.data["source"] == "extended"]
    assert [record.data["peer"] for record in extended] == [ALPHA, BETA]


@BINDINGS
async def test_of_two_tenants_of_one_card_the_one_that_is_spoken_to_is_frozen(
    open_ledger: OpenLedger, make_guard: MakeGuard, binding: str
) -> None:
    ledger = open_ledger()
    guard = make_guard(ledger)
    agents = TwoAgents({"alpha": card_of("alpha", tenants=("one", "two"))}, ["T"])
    agents.cards["alpha"]["supportedInterfaces"].reverse()
    await send(await build(guard, shared(guard, agents), "alpha", binding), "work")
    [captured] = only(ledger, "contract.captured")
    first = next(one for one in agents.cards["alpha"]["supportedInterfaces"] if one["protocolBinding"] == binding)
    used: Any = captured.data["interface"]
    assert used["tenant"] == first["tenant"] == "two"


async def test_a_call_that_ended_says_nothing_of_what_its_context_asks_next(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    guard = make_guard(ledger)
    http = shared(guard, TwoAgents(apart(by_tenant=False), ["T-alpha", "T-beta"]))
    beta = await build(guard, http, "beta", JSONRPC, guarded=False)
    alpha = await build(guard, http, "alpha", JSONRPC)
    await send(alpha, "work")
    await alpha.get_task(GetTaskRequest(id="T-alpha"))
    await send(await build(guard, http, "beta", JSONRPC), "work")
    before = len(only(ledger, "message.recorded"))
    await alpha.get_task(GetTaskRequest(id="T-alpha"))
    await beta.get_task(GetTaskRequest(id="T-beta"))  # no interceptor speaks for this one
    assert whose(ledger, before) == [ALPHA, ALPHA, BETA, BETA]
