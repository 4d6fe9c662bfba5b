"""One httpx client that serves several callers of one agent, whose card depends on the caller."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import httpx
import pytest
from a2a.client import A2ACardResolver, ClientCallInterceptor, ClientConfig, ClientFactory
from a2a.client.client import ClientCallContext
from a2a.types import ListTasksRequest

from a2a_ledger import ContractChangedError
from tests.capture.conftest import STALE, only, request
from tests.capture.two_agents import HOST, WELL_KNOWN, card_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from a2a.client import Client
    from a2a.client.interceptors import AfterArgs, BeforeArgs

    from a2a_ledger import ContractLedger, Guard
    from tests.capture.conftest import MakeGuard, OpenLedger

_open: list[httpx.AsyncClient] = []


@pytest.fixture(autouse=True)
async def _closing() -> AsyncGenerator[None]:
    yield
    for http in _open:
        await http.aclose()
    _open.clear()


class PerCaller:
    """Serves each caller a card that asks for a scope of his name, and notes who asked for one."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.scopes: dict[str, str] = {}

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        token: str = request.headers.get("authorization", "").removeprefix("Bearer ")
        caller = token.split("-", maxsplit=1)[0]
        await asyncio.sleep(0)
        if request.method == "GET":
            self.asked.append(token)
            scope: str = self.scopes.get(caller, caller)
            if request.headers.get("if-none-match") == f'"{scope}"':
                return httpx.Response(304, headers={"etag": f'"{scope}"'})
            return httpx.Response(200, json=card_of("A", scopes=(scope,)), headers={"etag": f'"{scope}"'})
        message = {"messageId": "r", "role": "ROLE_AGENT", "parts": [{"text": "hi"}]}
        answer = {"jsonrpc": "2.0", "id": json.loads(request.content)["id"], "result": {"message": message}}
        return httpx.Response(200, json=answer)


class PutsIn(ClientCallInterceptor):
    """Puts the caller's token in, behind the guard's interceptor."""

    def __init__(self, token: str) -> None:
        self.token = token

    async def before(self, args: BeforeArgs) -> None:
        args.context = args.context or ClientCallContext()
        args.context.service_parameters = {**(args.context.service_parameters or {}), **header(self.token)}

    async def after(self, args: AfterArgs) -> None:
        """Leave the answer as it is."""


def header(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def as_caller(token: str) -> ClientCallContext:
    return ClientCallContext(service_parameters=header(token))


def shared(guard: Guard, agent: PerCaller) -> httpx.AsyncClient:
    _open.append(guard.httpx_client(transport=httpx.MockTransport(agent)))
    return _open[-1]


async def build(http: httpx.AsyncClient, token: str, interceptors: Sequence[ClientCallInterceptor] = ()) -> Client:
    card = await A2ACardResolver(http, HOST).get_agent_card(http_kwargs={"headers": header(token)})
    config = ClientConfig(httpx_client=http, streaming=False, supported_protocol_bindings=["JSONRPC"])
    return ClientFactory(config).create(card, interceptors=list(interceptors))


async def send(client: Client, token: str | None = None) -> None:
    context = as_caller(token) if token is not None else None
    assert [event async for event in client.send_message(request("hi"), context=context)]


def scopes_of(ledger: ContractLedger) -> list[str]:
    """Return the scope that each task froze."""
    frozen = [json.loads(record.content("contract") or b"{}") for record in only(ledger, "contract.captured")]
    return [next(iter(one["security"][0].values()))[0] for one in frozen]


@pytest.mark.parametrize("how", ["in the call", "behind the guard"])
async def test_a_callers_card_is_asked_for_with_his_own_credential_whoever_called_before(
    open_ledger: OpenLedger, make_guard: MakeGuard, how: str
) -> None:
    ledger = open_ledger(limits=STALE)
    guard, agent = make_guard(ledger), PerCaller()
    http = shared(guard, agent)
    clients: dict[str, Client] = {}
    for caller in ("alice", "bob", "carol"):
        late = [PutsIn(f"{caller}-1")] if how == "behind the guard" else []
        clients[caller] = await build(http, f"{caller}-1", [guard.interceptor(), *late])
    turns = ["alice", "bob", "carol", "carol", "alice", "bob", "alice"]
    agent.asked.clear()
    for caller in turns:
        await send(clients[caller], f"{caller}-1" if how == "in the call" else None)
    assert agent.asked == [f"{caller}-1" for caller in turns]
    assert scopes_of(ledger) == turns


async def test_callers_at_once_are_each_held_to_their_own_card(open_ledger: OpenLedger, make_guard: MakeGuard) -> None:
    ledger = open_ledger(limits=STALE)
    guard, agent = make_guard(ledger), PerCaller()
    http = shared(guard, agent)
    names = [f"caller{number}" for number in range(8)]
    clients = [await build(http, f"{name}-1", [guard.interceptor()]) for name in names]
    agent.asked.clear()
    for _ in range(3):
        await asyncio.gather(*(send(client, f"{name}-1") for name, client in zip(names, clients, strict=True)))
    assert sorted(agent.asked) == sorted(f"{name}-1" for name in names * 3)
    assert sorted(scopes_of(ledger)) == sorted(names * 3)


async def test_one_callers_change_stops_him_alone(open_ledger: OpenLedger, make_guard: MakeGuard) -> None:
    ledger = open_ledger(limits=STALE)
    guard, agent = make_guard(ledger), PerCaller()
    http = shared(guard, agent)
    alice, bob = [await build(http, f"{name}-1", [guard.interceptor()]) for name in ("alice", "bob")]
    for client, token in ((alice, "alice-1"), (bob, "bob-1")):
        await send(client, token)
    agent.scopes["bob"] = "more"
    await send(alice, "alice-1")
    with pytest.raises(ContractChangedError):
        await send(bob, "bob-1")
    await send(alice, "alice-1")


async def test_a_new_token_renews_the_cards_of_its_caller_and_of_nobody_else(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(limits=STALE)
    guard, agent = make_guard(ledger), PerCaller()
    http = shared(guard, agent)
    alice, bob = [
        await build(http, f"{name}-1", [guard.interceptor(), PutsIn(f"{name}-2")]) for name in ("alice", "bob")
    ]
    agent.asked.clear()
    for client in (alice, bob, bob, alice):  # each learns of the new token by the first call that carries it
        await send(client)
    assert agent.asked == ["alice-2", "bob-2", "bob-2", "alice-2"]
    agent.asked.clear()
    await guard.diagnose(HOST + WELL_KNOWN)
    assert agent.asked == ["bob-2"]  # the way that was asked last


async def test_without_an_interceptor_a_send_is_under_the_card_that_was_asked_for_with_its_credential(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(limits=STALE)
    guard, agent = make_guard(ledger), PerCaller()
    http = shared(guard, agent)
    clients = {caller: await build(http, f"{caller}-1") for caller in ("alice", "bob")}
    turns = ["alice", "bob", "bob", "alice"]
    agent.asked.clear()
    for caller in turns:
        await send(clients[caller], f"{caller}-1")
    assert agent.asked == [f"{caller}-1" for caller in turns]
    assert scopes_of(ledger) == turns


async def test_without_an_interceptor_the_new_token_of_the_only_caller_renews_his_card(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(limits=STALE)
    guard, agent = make_guard(ledger), PerCaller()
    client = await build(shared(guard, agent), "alice-1")
    agent.asked.clear()
    for token in ("alice-1", "alice-2", "alice-3"):
        await send(client, token)
    assert agent.asked == ["alice-1", "alice-2", "alice-3"]


async def test_a_call_that_is_no_send_renews_the_card_of_its_caller_alone(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(limits=STALE)
    guard, agent = make_guard(ledger), PerCaller()
    http = shared(guard, agent)
    alice, bob = [await build(http, f"{name}-1", [guard.interceptor()]) for name in ("alice", "bob")]
    for client, token in ((alice, "alice-2"), (bob, "bob-2"), (alice, "alice-3")):
        await client.list_tasks(ListTasksRequest(), context=as_caller(token))
    agent.asked.clear()
    for client in (bob, alice):
        await send(client)
    assert agent.asked == ["bob-2", "alice-3"]
