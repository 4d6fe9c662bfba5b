"""A client's card is asked for as the client that sends: by nobody else, on no other loop, in no flow run twice."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, cast

import httpx
import pytest
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory

from a2a_ledger import ContractChangedError, Guard
from a2a_ledger.capture import own_route
from tests.capture.conftest import STALE, only, request, send, tasks
from tests.capture.front import BEARER, WELL_KNOWN, Asked, Reply, card_of, in_front, served

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Generator

    from a2a.client import Client
    from a2a.types import AgentCard

    from a2a_ledger import ContractLedger
    from a2a_ledger.events import Ref
    from tests.capture.agent import Agent
    from tests.capture.conftest import MakeGuard, OpenLedger


class Card:
    """Serves one card with a tag, and notes as whom each GET asked."""

    def __init__(self, agent: Agent, card: dict[str, Any]) -> None:
        self.card, self.tag = card, '"1"'
        self.asked: list[str] = []
        self.wait = 0.0
        in_front(agent, self)

    def __call__(self, asked: Asked) -> Reply | None:
        if asked.path != WELL_KNOWN:
            return None
        self.asked.append(asked.headers.get("authorization", ""))
        if asked.headers.get("if-none-match") == self.tag:
            return Reply(304, (("etag", self.tag),))
        return served(self.card, ("etag", self.tag))

    def change(self) -> None:
        """Serve another contract."""
        self.card, self.tag = {**self.card, **BEARER}, '"2"'


def as_user(guard: Guard, user: str) -> httpx.AsyncClient:
    return guard.httpx_client(headers={"Authorization": f"Bearer {user}-token"})


async def resolve(http: httpx.AsyncClient, agent: Agent) -> AgentCard:
    return await A2ACardResolver(http, agent.url).get_agent_card()


def client_of(guard: Guard, http: httpx.AsyncClient, card: AgentCard) -> Client:
    config = ClientConfig(httpx_client=http, streaming=True)
    return ClientFactory(config).create(card, interceptors=[guard.interceptor()])


def reasons(ledger: ContractLedger) -> list[object]:
    return [record.data["reason"] for record in only(ledger, "freshness.decided")]


@pytest.mark.parametrize("bob", ["open", "closed"])
async def test_a_card_that_another_caller_asked_for_last_is_asked_for_as_the_caller_that_sends(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, bob: str
) -> None:
    ledger, card = open_ledger(limits=STALE), Card(agent, await card_of(agent))
    guard = make_guard(ledger)
    async with as_user(guard, "alice") as hers, as_user(guard, "bob") as his:
        alice = client_of(guard, hers, await resolve(hers, agent))
        await resolve(his, agent)
        if bob == "closed":
            await his.aclose()
        card.asked.clear()
        await send(alice, "one")
        await send(alice, "two")
        assert card.asked == ["Bearer alice-token"] * 2
        card.change()
        with pytest.raises(ContractChangedError):
            await send(alice, "three")
        assert card.asked == ["Bearer alice-token"] * 3
    mine, theirs = [record.data["credential"] for record in only(ledger, "card.fetched")[:2]]
    refs = [cast("Ref", record.data["fetch"]) for record in only(ledger, "contract.captured")]
    fetches = {ref["ver"] for ref in refs}
    captured = [record.data["credential"] for record in only(ledger, "card.fetched") if record.ver in fetches]
    assert mine != theirs
    assert set(map(str, captured)) == {str(mine)}


async def test_a_card_that_is_kept_is_asked_for_over_each_client_that_is_made_of_it(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger, card = open_ledger(limits=STALE), Card(agent, await card_of(agent))
    guard = make_guard(ledger)
    async with as_user(guard, "first") as http:
        kept = await resolve(http, agent)
    card.asked.clear()
    for user in ("second", "third"):
        async with as_user(guard, user) as http:
            await send(client_of(guard, http, kept), "hi")
    assert card.asked == ["Bearer second-token", "Bearer third-token"]
    card.change()
    async with as_user(guard, "fourth") as http:
        with pytest.raises(ContractChangedError):
            await send(client_of(guard, http, kept), "hi")
    assert len(tasks(ledger)) == 3  # two that were sent, and one that was aborted
    assert only(ledger, "card.fetch_failed") == []


async def test_what_a_client_sends_elsewhere_does_not_go_to_where_the_card_lies(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    """A card in a registry: the token of a call to the agent is none of the registry's business."""
    asked: list[tuple[str, str]] = []
    card: dict[str, Any] = {
        "name": "A",
        "description": "d",
        "version": "1",
        "capabilities": {},
        "skills": [],
        "defaultInputModes": ["text"],
        "defaultOutputModes": ["text"],
        "supportedInterfaces": [
            {"url": "https://agent.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        ],
    }

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append((request.url.host, request.headers.get("authorization", "")))
        if request.method == "GET":
            return httpx.Response(200, json=card, headers={"etag": '"1"'})
        message = {"messageId": "r", "role": "ROLE_AGENT", "parts": [{"text": "hi"}]}
        return httpx.Response(200, json={"jsonrpc": "2.0", "id": "1", "result": {"message": message}})

    guard = make_guard(open_ledger(limits=STALE))
    async with guard.httpx_client(transport=httpx.MockTransport(answer)) as http:
        await http.get(f"https://registry.example{WELL_KNOWN}")
    async with guard.httpx_client(transport=httpx.MockTransport(answer)) as http:
        await http.post("https://agent.example/rpc", json=CALL, headers={**VERSION, "authorization": "Bearer mine-1"})
    assert asked == [("registry.example", ""), ("registry.example", ""), ("agent.example", "Bearer mine-1")]


CALL = {
    "jsonrpc": "2.0",
    "id": "1",
    "method": "SendMessage",
    "params": {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}},
}
VERSION = {"A2A-Version": "1.0"}


class Locked(httpx.Auth):
    """A flow that holds its lock across the request."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        async with self.lock:
            request.headers["Authorization"] = "Bearer locked-token"
            yield request


@pytest.mark.parametrize("mode", ["enforce", "observe"])
async def test_an_authentication_flow_that_holds_a_lock_across_the_request_is_not_run_within_itself(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, mode: str
) -> None:
    ledger, card = open_ledger(limits=STALE, mode=mode), Card(agent, await card_of(agent))
    async with make_guard(ledger).httpx_client(auth=Locked()) as http, asyncio.timeout(10):
        await http.get(agent.url + WELL_KNOWN)
        assert (await http.post(f"{agent.url}/rpc", json=CALL, headers=VERSION)).status_code == 200
    assert card.asked == ["Bearer locked-token"] * 2
    assert reasons(ledger) == ["no-card", "not-modified"]


def test_a_synchronous_flow_that_holds_a_lock_is_not_run_within_itself(agent: Agent, open_ledger: OpenLedger) -> None:
    lock = threading.Lock()

    class Flow(httpx.Auth):
        def sync_auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response]:
            assert lock.acquire(timeout=5)
            try:
                request.headers["Authorization"] = "Bearer locked-token"
                yield request
            finally:
                lock.release()

    ledger, card = open_ledger(limits=STALE), Card(agent, asyncio.run(card_of(agent)))
    guard = Guard(ledger)
    with guard.sync_httpx_client(auth=Flow()) as http:
        http.get(agent.url + WELL_KNOWN)
        assert http.post(f"{agent.url}/rpc", json=CALL, headers=VERSION).status_code == 200
    guard.close()
    assert card.asked == ["Bearer locked-token"] * 2
    assert reasons(ledger) == ["no-card", "not-modified"]


async def test_a_card_that_does_not_come_in_time_counts_as_failed(
    open_ledger: OpenLedger, make_guard: MakeGuard, monkeypatch: pytest.MonkeyPatch, agent: Agent
) -> None:
    monkeypatch.setattr(own_route, "_LONGEST", 0.05)
    card, asked = await card_of(agent), list[str]()

    async def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.method)
        if asked.count("GET") > 1 and request.method == "GET":
            await asyncio.sleep(30)
        if request.method == "GET":
            return httpx.Response(200, json=card, headers={"etag": '"1"'})
        return httpx.Response(200, json={"jsonrpc": "2.0", "id": "1", "result": {}})

    ledger = open_ledger(limits=STALE)
    async with make_guard(ledger).httpx_client(transport=httpx.MockTransport(answer)) as http, asyncio.timeout(10):
        await http.get(agent.url + WELL_KNOWN)
        await http.post(f"{agent.url}/rpc", json=CALL, headers=VERSION)
    assert asked == ["GET", "GET", "POST"]
    assert reasons(ledger)[-1] == "refetch-failed"
    (failed,) = only(ledger, "card.fetch_failed")
    assert failed.content("error") == b"ReadTimeout: no answer about the card within 0.05 s"


def on_two_loops(work: Callable[[int], Coroutine[object, object, None]]) -> None:
    threads = [threading.Thread(target=asyncio.run, args=(work(number),)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)


def test_a_client_asks_over_the_connections_of_its_own_event_loop(agent: Agent, open_ledger: OpenLedger) -> None:
    ledger = open_ledger(limits=STALE)
    Card(agent, asyncio.run(card_of(agent)))
    guard, both = Guard(ledger), threading.Barrier(2)

    async def work(number: int) -> None:
        async with guard.httpx_client() as http:
            client = client_of(guard, http, await resolve(http, agent))
            both.wait(10)
            for _ in range(3):
                await send(client, f"hi {number}")
            both.wait(10)

    on_two_loops(work)
    assert only(ledger, "card.fetch_failed") == []
    assert len(tasks(ledger)) == 6
    assert set(map(str, reasons(ledger)[2:])) <= {"not-modified", "sibling-submitted"}


def test_one_message_sent_from_two_loops_at_once_is_one_task(agent: Agent, open_ledger: OpenLedger) -> None:
    ledger = open_ledger(limits=STALE)
    guard, both, same = Guard(ledger), threading.Barrier(2), request("the same")

    async def work(_: int) -> None:
        async with guard.httpx_client() as http:
            client = await guard.create_client(agent.url, config=ClientConfig(httpx_client=http, streaming=False))
            both.wait(10)
            async for _event in client.send_message(same):
                pass

    on_two_loops(work)
    assert len(tasks(ledger)) == 1
    assert len(only(ledger, "contract.captured")) == 1
