"""Cards that lie elsewhere: a redirect is part of the one request that follows it, and of no other."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.errors import AgentCardResolutionError
from a2a.types import GetTaskRequest

from a2a_ledger import ContractChangedError
from a2a_ledger.address import peer_id
from tests.capture.agent import Agent
from tests.capture.conftest import STALE, only, send, tasks
from tests.capture.front import BEARER, WELL_KNOWN, Asked, Reply, card_of, in_front, served

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    import httpx
    from a2a.client import Client

    from a2a_ledger import ContractLedger, Guard
    from tests.capture.conftest import MakeGuard, OpenLedger

ELSEWHERE = "/cards/v1.json"
OTHER_PLACE = "/v2" + WELL_KNOWN

_open: list[httpx.AsyncClient] = []


@pytest.fixture(autouse=True)
async def _closing() -> AsyncGenerator[None]:
    yield
    for http in _open:
        await http.aclose()
    _open.clear()


def over(guard: Guard, **options: Any) -> httpx.AsyncClient:  # noqa: ANN401 - passed to httpx as they are
    """Return a guarded client that the test's end closes."""
    _open.append(guard.httpx_client(**options))
    return _open[-1]


async def build(guard: Guard, http: httpx.AsyncClient, agent: Agent, binding: str = "JSONRPC") -> Client:
    config = ClientConfig(httpx_client=http, streaming=False, supported_protocol_bindings=[binding])
    return await guard.create_client(agent.url, config=config)


def to(where: str, status: int = 302) -> Reply:
    return Reply(status, (("location", where),))


def sent_on(card: dict[str, Any], *stations: str, tag: str = '"1"') -> Callable[[Asked], Reply | None]:
    """Answer each station with a redirect to the next one, and the last with the card, by a validator if it has it."""

    def answer(asked: Asked) -> Reply | None:
        if asked.path not in stations:
            return None
        after = stations[stations.index(asked.path) + 1 :]
        if after:
            return to(after[0])
        if asked.headers.get("if-none-match") == tag:
            return Reply(304, (("etag", tag),))
        return served(card, ("etag", tag))

    return answer


def peers_of(ledger: ContractLedger, kind: str) -> set[str]:
    return {str(record.data["peer"]) for record in only(ledger, kind)}


def id_of(agent: Agent) -> str:
    return peer_id(agent.url + WELL_KNOWN)


# ---- whose the next request is


@pytest.mark.parametrize(
    ("status", "follows"), [(302, False), (308, False), (301, True), (302, True), (303, True), (307, True)]
)
async def test_a_redirect_to_another_peers_card_says_nothing_about_that_peer(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, status: int, *, follows: bool
) -> None:
    with Agent() as evil:
        in_front(evil, lambda asked: to(agent.url + WELL_KNOWN, status) if asked.path == WELL_KNOWN else None)
        ledger = open_ledger(limits=STALE)
        guard = make_guard(ledger)
        http = over(guard, follow_redirects=follows)
        if follows:
            await build(guard, http, evil)
        else:
            with pytest.raises(AgentCardResolutionError, match=str(status)):
                await build(guard, http, evil)
        before = len(only(ledger, "card.fetched"))
        await send(await build(guard, http, agent), "hello")
        theirs, his = only(ledger, "card.fetched")[:before], only(ledger, "card.fetched")[before:]
        assert {str(record.data["peer"]) for record in his} == {id_of(agent)}
        assert {str(record.data["peer"]) for record in theirs} == ({id_of(evil)} if follows else set())
        assert [record.data["answered_url"] for record in theirs] == [agent.url + WELL_KNOWN] * before
        for kind in ("contract.captured", "message.recorded"):
            assert peers_of(ledger, kind) == {id_of(agent)}


@pytest.mark.parametrize("place", ["task", "/rest/extendedAgentCard", "/anywhere.json"])
async def test_a_redirect_that_nobody_follows_makes_no_card_of_what_is_asked_next(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, place: str
) -> None:
    with Agent() as evil:
        ledger = open_ledger()
        guard = make_guard(ledger)
        http = over(guard)
        client = await build(guard, http, agent, "HTTP+JSON")
        [answer] = await send(client, "hello")
        path = f"/rest/tasks/{answer.task.id}" if place == "task" else place
        in_front(evil, lambda asked: to(agent.url + path) if asked.path == WELL_KNOWN else None)
        with pytest.raises(AgentCardResolutionError):
            await build(guard, http, evil)
        cards, failed = len(only(ledger, "card.fetched")), only(ledger, "card.fetch_failed")
        if place == "task":
            assert (await client.get_task(GetTaskRequest(id=answer.task.id))).id == answer.task.id
            assert only(ledger, "message.recorded")[-1].stream == tasks(ledger)[0]
        else:
            await http.get(agent.url + path)
        later = only(ledger, "card.fetch_failed")[len(failed) :]
        assert len(only(ledger, "card.fetched")) == cards
        assert {str(record.data["peer"]) for record in later} <= {id_of(agent)}
        assert bool(later) == path.endswith("extendedAgentCard")


async def test_what_passes_between_a_redirect_and_the_request_that_follows_it_is_its_own(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    with Agent() as evil:
        in_front(evil, lambda asked: to(agent.url + WELL_KNOWN) if asked.path == WELL_KNOWN else None)
        ledger = open_ledger()
        http = over(make_guard(ledger), follow_redirects=True)

        async def meanwhile(response: httpx.Response) -> None:
            if response.is_redirect:
                await http.get(agent.url + WELL_KNOWN)

        http.event_hooks["response"].append(meanwhile)
        await http.get(evil.url + WELL_KNOWN)
        assert [record.data["peer"] for record in only(ledger, "card.fetched")] == [id_of(agent), id_of(evil)]


async def test_a_request_that_is_sent_again_follows_no_redirect_and_one_sent_on_by_hand_does(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    in_front(agent, sent_on(await card_of(agent), WELL_KNOWN, ELSEWHERE))
    ledger = open_ledger()
    http = over(make_guard(ledger))
    own: dict[str, Any] = {}
    request = http.build_request("GET", agent.url + WELL_KNOWN, extensions=own)
    assert (await http.send(request)).status_code == 302
    answer = await http.send(request)
    assert answer.status_code == 302
    assert "location" in answer.headers
    assert answer.next_request is not None
    await http.send(answer.next_request)
    await http.get(agent.url + ELSEWHERE, extensions=own)  # the application's own mapping is as it was
    assert [record.data["url"] for record in only(ledger, "card.fetch_failed")] == [agent.url + WELL_KNOWN] * 2
    [fetched] = only(ledger, "card.fetched")
    assert (fetched.data["url"], fetched.data["answered_url"]) == (agent.url + WELL_KNOWN, agent.url + ELSEWHERE)
    assert [record.data["leg"] for record in only(ledger, "message.recorded")] == ["request", "response"]


# ---- what it means


@pytest.mark.parametrize("place", [ELSEWHERE, OTHER_PLACE, "/.well-known/agent.json"])
async def test_a_redirect_is_no_way_round_a_person(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, place: str
) -> None:
    card = await card_of(agent)
    in_front(agent, sent_on({**card, **BEARER}, WELL_KNOWN))
    ledger = open_ledger(limits=STALE, acceptance="manual")
    guard = make_guard(ledger)
    http = over(guard, follow_redirects=True)
    await send(await build(guard, http, agent), "hello")
    in_front(agent, sent_on(card, WELL_KNOWN, place, tag='"2"'))  # weaker, and elsewhere
    for _ in range(3):
        with pytest.raises(ContractChangedError):
            await build(guard, http, agent)
    assert agent.posts == 1
    assert peers_of(ledger, "card.fetched") == {id_of(agent)}


@pytest.mark.parametrize("stations", [(ELSEWHERE,), (OTHER_PLACE,), ("/cards/v0.json", "/cards/v0/v1.json")])
@pytest.mark.parametrize("failed", ["proceed", "abort"])
async def test_a_card_that_lies_elsewhere_is_refetched_and_built_again_as_any_other(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, failed: str, stations: tuple[str, ...]
) -> None:
    in_front(agent, sent_on(await card_of(agent), WELL_KNOWN, *stations))
    ledger = open_ledger(limits=STALE)
    ledger.profile = replace(ledger.profile, failed=failed)
    guard = make_guard(ledger)
    http = over(guard, follow_redirects=True)
    for _ in range(3):
        await send(await build(guard, http, agent), "hello")
    reasons = [record.data["reason"] for record in only(ledger, "freshness.decided")]
    assert reasons == ["no-card", *["not-modified"] * 5]
    assert len(only(ledger, "contract.captured")) == 3
    assert {str(record.data["answered_url"]) for record in only(ledger, "card.fetched")} == {agent.url + stations[-1]}


async def test_a_redirect_that_the_application_follows_at_one_call_is_followed_before_a_send_too(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    in_front(agent, sent_on(await card_of(agent), WELL_KNOWN, ELSEWHERE))
    ledger = open_ledger(limits=STALE)
    guard = make_guard(ledger)
    http = over(guard)
    card = await A2ACardResolver(http, agent.url).get_agent_card(http_kwargs={"follow_redirects": True})
    config = ClientConfig(httpx_client=http, streaming=False)
    await send(ClientFactory(config).create(card, interceptors=[guard.interceptor()]), "hello")
    assert [record.data["reason"] for record in only(ledger, "freshness.decided")] == ["no-card", "not-modified"]


async def test_a_redirect_that_nobody_follows_hands_out_no_card_and_decides_nothing(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(limits=STALE)
    guard = make_guard(ledger)
    http = over(guard)
    card = await card_of(agent)
    in_front(agent, sent_on(card, WELL_KNOWN))
    await send(await build(guard, http, agent), "hello")
    decided = len(only(ledger, "freshness.decided"))
    in_front(agent, sent_on(card, WELL_KNOWN, ELSEWHERE))
    with pytest.raises(AgentCardResolutionError, match="302"):
        await build(guard, http, agent)
    assert len(only(ledger, "freshness.decided")) == decided
    assert only(ledger, "card.fetch_failed")[-1].data["status"] == 302


async def test_builds_at_once_over_one_client_follow_a_redirect_each_and_fetch_one_card(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    front = in_front(agent, sent_on(await card_of(agent), WELL_KNOWN, ELSEWHERE))
    ledger = open_ledger()
    guard = make_guard(ledger)
    http = over(guard, follow_redirects=True)
    clients = await asyncio.gather(*(build(guard, http, agent) for _ in range(5)))
    assert len(clients) == 5
    assert only(ledger, "message.recorded") == []
    assert {str(record.data["reason"]) for record in only(ledger, "freshness.decided")} <= {"no-card", "fresh"}
    assert len(only(ledger, "card.fetched")) == len([asked for asked in front.cards() if asked.path == ELSEWHERE]) == 1


async def test_a_build_that_begins_while_another_follows_its_redirect_takes_no_answer_of_the_wrong_place(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    card = await card_of(agent)
    in_front(agent, sent_on(card, WELL_KNOWN, "/a/v1.json", "/a/v2.json"))
    ledger = open_ledger()
    guard = make_guard(ledger)
    http = over(guard, follow_redirects=True)

    async def later(seconds: float) -> Client:
        await asyncio.sleep(seconds)
        return await build(guard, http, agent)

    await asyncio.gather(*(later(0.004 * step) for step in range(12)))
    assert only(ledger, "message.recorded") == []
    assert {str(record.data["answered_url"]) for record in only(ledger, "card.fetched")} == {agent.url + "/a/v2.json"}
