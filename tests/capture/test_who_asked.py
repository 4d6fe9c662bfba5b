"""Who asked for a card is told by the application's own request: a redirect or a cookie of the peer changes nothing."""

from __future__ import annotations

import asyncio
from http.cookiejar import CookieJar
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from a2a.client import ClientConfig

from a2a_ledger import ContractChangedError, SendRefusedError
from a2a_ledger.address import peer_id
from a2a_ledger.capture.credentials import ApiKeyPlace
from a2a_ledger.capture.served_cookies import ServedCookies, without_served
from tests.capture.agent import Agent
from tests.capture.conftest import STALE, only, send
from tests.capture.extending import ASK, agent, bearer, build, closing, extended
from tests.capture.front import BEARER, WELL_KNOWN, Asked, Reply, card_of, in_front, served
from tests.capture.stored import holding
from tests.capture.two_agents import HOST, REST, TwoAgents, card_url
from tests.capture.two_agents import card_of as card_at

if TYPE_CHECKING:
    from a2a.client import Client

    from a2a_ledger import Guard
    from tests.capture.conftest import MakeGuard, OpenLedger

__all__ = ["agent", "closing"]  # fixtures, found by their names

TOKEN = "alice-token-0001"
EXTENDED = "/rest/extendedAgentCard"
ELSEWHERE = "/cards/x.json"


class Served:
    """A card at a path that changes when the test says so, with a cookie or at another place if that is wanted."""

    def __init__(self, card: dict[str, Any], path: str, *, cookie: str = "", redirect: str = "") -> None:
        self.card, self.path, self.cookie, self.redirect = card, path, cookie, redirect
        self.answers = 0
        self.asked: list[Asked] = []

    def change(self) -> None:
        self.card = {**self.card, **BEARER}

    def __call__(self, asked: Asked) -> Reply | None:
        if asked.path not in {self.path, ELSEWHERE}:
            return None
        self.answers += 1
        self.asked.append(asked)
        if self.redirect and asked.path == self.path:
            return Reply(302, (("location", self.redirect),))
        tag = ("etag", f'"{len(self.card)}"')
        cookies = (("set-cookie", self.cookie.format(self.answers)),) if self.cookie else ()
        if asked.headers.get("if-none-match") == tag[1]:
            return Reply(304, (tag, *cookies))
        return served(self.card, tag, *cookies)


async def extended_of(agent: Agent) -> dict[str, Any]:
    async with httpx.AsyncClient() as plain:
        found: dict[str, Any] = (await plain.get(agent.url + EXTENDED, headers={"A2A-Version": "1.0"})).json()
    return found


# ---- acceptance = manual


@pytest.mark.parametrize("way", ["plain", "cookie", "rotating", "redirect"])
async def test_a_changed_extended_card_waits_for_a_person_whatever_the_peer_answers_with(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, way: str
) -> None:
    ledger = open_ledger(limits=STALE, acceptance="manual")
    with Agent() as other:
        cookie = {"cookie": "AWSALB=abcdefgh1; Path=/", "rotating": "AWSALB=node{}abcdef; Path=/"}.get(way, "")
        redirect = other.url + ELSEWHERE if way == "redirect" else ""
        source = Served(await extended_of(agent), EXTENDED, cookie=cookie, redirect=redirect)
        in_front(agent, source)
        in_front(other, source)

        async def new_process() -> None:
            client = await build(make_guard(ledger), agent, REST, follow_redirects=True, **bearer(TOKEN))
            await client.get_extended_agent_card(ASK)
            for text in ("one", "two"):
                await send(client, text)

        await new_process()
        captured = only(ledger, "contract.captured")
        assert {str(record.data["caller"]) for record in captured} == {"authorization:bearer"}
        assert len({str(record.data["card_ids"]) for record in captured}) == 1
        source.change()
        for _ in range(3):
            with pytest.raises(ContractChangedError):
                await new_process()
    assert len(only(ledger, "contract.captured")) == len(captured)
    assert only(ledger, "contract.accepted") == []


# ---- cookies


@pytest.mark.parametrize("cookie", ["", "AWSALB=node{}abcdef; Path=/"], ids=["plain", "rotating"])
async def test_a_card_that_comes_and_goes_is_seen_to_flap_through_a_rotating_cookie(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, cookie: str
) -> None:
    one = await card_of(agent)
    source = Served(one, WELL_KNOWN, cookie=cookie)
    in_front(agent, source)
    ledger = open_ledger(limits=STALE)
    guard = make_guard(ledger)
    http = guard.httpx_client()
    came: list[str] = []
    waits: list[int | None] = []
    for card in (one, {**one, **BEARER}, one, {**one, **BEARER}):
        source.card = card
        for _ in range(2):
            try:
                config = ClientConfig(httpx_client=http, streaming=False)
                await send(await guard.create_client(agent.url, config=config), "x")
                came.append("sent")
            except ContractChangedError:
                came.append("changed")
            except SendRefusedError as refused:
                waits.append(refused.retry_after)
                came.append(refused.reason)
    await http.aclose()
    assert came == ["sent", "sent", "changed", "sent", "changed", "flapping", "flapping", "flapping"]
    assert all(wait is not None and 590 < wait <= 600 for wait in waits)  # of `[limits] flap`, less what passed
    fetched = [record.data for record in only(ledger, "card.fetched")]
    assert [(data["caller"], data.get("credential")) for data in fetched] == [("anonymous", None)] * len(came)


async def test_a_cookie_of_the_application_tells_its_cards_apart_and_is_asked_with_again(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    source = Served(await card_of(agent), WELL_KNOWN, cookie="lb=node{}; Path=/")
    in_front(agent, source)
    ledger = open_ledger(limits=STALE)
    guard = make_guard(ledger)
    http = guard.httpx_client()
    for session in ("alice-session", "bob-session"):
        await http.get(agent.url + WELL_KNOWN, headers={"Cookie": f"sid={session}"})
        await guard.diagnose(agent.url + WELL_KNOWN)
    await http.aclose()
    cookies = ["sid=alice-session", "sid=alice-session", "sid=bob-session", "sid=bob-session"]
    assert [asked.headers["cookie"] for asked in source.asked] == cookies
    marks: list[Any] = [record.data["credential"] for record in only(ledger, "card.fetched")]
    macs = [[mark["mac"] for mark in found] for found in marks]
    assert macs[0] == macs[1] != macs[2] == macs[3]


def test_a_cookie_that_a_server_set_counts_where_a_card_names_it_and_else_not() -> None:
    set_by_server = ServedCookies()
    set_by_server.note(
        [("Set-Cookie", "lb=n1; Path=/"), ("set-cookie", "key=k1;Secure"), ("x", "own=o1")], lambda: None
    )
    sent = [("Accept", "*/*"), ("Cookie", "lb=n1; key=k1; own=o1; lb=n2")]
    assert without_served(sent, set_by_server, ()) == [("Accept", "*/*"), ("Cookie", "own=o1; lb=n2")]
    named = [ApiKeyPlace("", "cookie", "key"), ApiKeyPlace("", "header", "lb")]
    assert without_served(sent, set_by_server, named) == [("Accept", "*/*"), ("Cookie", "key=k1; own=o1; lb=n2")]
    assert without_served([("cookie", "lb=n1")], set_by_server, ()) == []
    assert without_served(sent, None, ()) == sent


def test_what_the_client_still_holds_stays_known_however_many_cookies_a_server_sets() -> None:
    held = httpx.Cookies({"lb": "first"})
    set_by_server = ServedCookies()
    set_by_server.note([("set-cookie", "lb=first")], lambda: held.jar)
    for n in range(5000):
        set_by_server.note([("set-cookie", f"r=n{n}")], lambda: held.jar)
    assert (("lb", "first") in set_by_server, ("r", "n4999") in set_by_server) == (True, True)
    assert ("r", "n0") not in set_by_server
    set_by_server.note([("set-cookie", f"s{n}=v") for n in range(5000)], CookieJar)
    assert ("s0", "v") not in set_by_server


# ---- redirects


@pytest.mark.parametrize("way", ["request", "client", "sync"])
async def test_a_card_behind_another_origin_is_asked_for_again_where_and_as_it_was_asked_for(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, way: str
) -> None:
    ledger = open_ledger(limits=STALE)
    guard = make_guard(ledger)
    with Agent() as other:
        source = Served(await card_of(agent), WELL_KNOWN, redirect=other.url + ELSEWHERE)
        in_front(agent, source)
        in_front(other, source)
        if way == "sync":
            await asyncio.to_thread(_sent, guard, agent)
        else:
            always, once = (bearer(TOKEN), {}) if way == "client" else ({}, bearer(TOKEN))
            async with guard.httpx_client(follow_redirects=True, **always) as http:
                await http.get(agent.url + WELL_KNOWN, **once)
                await guard.diagnose(agent.url + WELL_KNOWN)
        here, there = agent.url.removeprefix("http://"), other.url.removeprefix("http://")
    asked = [(one.headers["host"], one.headers.get("authorization")) for one in source.asked]
    assert asked == [(here, f"Bearer {TOKEN}"), (there, None)] * 2
    fetched = only(ledger, "card.fetched")
    assert [record.data["caller"] for record in fetched] == ["authorization:bearer"] * 2
    assert fetched[1].data["purpose"] == ("pre-send" if way == "sync" else "diagnostic")


def _sent(guard: Guard, agent: Agent) -> None:
    with guard.sync_httpx_client(follow_redirects=True, **bearer(TOKEN)) as http:
        http.get(agent.url + WELL_KNOWN)
        message = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "x"}]}
        call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
        http.post(agent.url + "/rpc", json=call, headers={"A2A-Version": "1.0"})


# ---- what the client adds by itself


async def test_a_card_is_asked_for_again_with_the_token_that_the_client_has_now(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    source = Served(await card_of(agent), WELL_KNOWN)
    in_front(agent, source)
    guard = make_guard(open_ledger(limits=STALE))
    http = guard.httpx_client(headers={"Authorization": "Bearer token-before", "X-Other": "a"})
    client = await guard.create_client(agent.url, config=ClientConfig(httpx_client=http, streaming=False))
    http.headers["Authorization"] = "Bearer token-now"
    del http.headers["X-Other"]
    await send(client, "x")
    await http.aclose()
    asked = [(one.headers["authorization"], one.headers.get("x-other")) for one in source.asked]
    assert asked == [("Bearer token-before", "a"), ("Bearer token-now", None)]


# ---- two agents, and what is no agent


async def test_two_agents_at_one_url_never_share_an_answer(open_ledger: OpenLedger, make_guard: MakeGuard) -> None:
    cards = {"alpha": card_at("alpha"), "beta": card_at("beta", scopes=("x",)), "extended": card_at("ext")}
    ledger = open_ledger()
    guard = make_guard(ledger)
    http = guard.httpx_client(transport=httpx.MockTransport(TwoAgents(cards, ["T1", "T2"])))

    async def client_of(name: str) -> Client:
        config = ClientConfig(httpx_client=http, streaming=False, supported_protocol_bindings=[REST])
        return await guard.create_client(f"{HOST}/{name}", config=config)

    alpha, beta = await client_of("alpha"), await client_of("beta")
    await asyncio.gather(alpha.get_extended_agent_card(ASK), beta.get_extended_agent_card(ASK))
    await send(beta, "x")
    await http.aclose()
    peers = {name: peer_id(card_url(name)) for name in ("alpha", "beta")}
    assert sorted(str(record.data["peer"]) for record in extended(ledger)) == sorted(peers.values())
    [captured] = only(ledger, "contract.captured")
    assert (captured.data["peer"], captured.data["fetch"]) == (
        peers["beta"],
        next(one.ref for one in extended(ledger) if one.data["peer"] == peers["beta"]),
    )


@pytest.mark.parametrize("path", ["/v1/card", "/pay/v1/card", "/x/extendedAgentCard"])
async def test_another_apis_answer_at_the_path_of_an_extended_card_is_no_card(
    open_ledger: OpenLedger, make_guard: MakeGuard, path: str
) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith(WELL_KNOWN):
            return httpx.Response(200, json=card_at("A"))
        return httpx.Response(200, json={"cards": ["4111-2222"]})

    ledger = open_ledger()
    guard = make_guard(ledger)
    async with guard.httpx_client(transport=httpx.MockTransport(answer)) as http:
        await http.get(HOST + WELL_KNOWN)
        assert (await http.get(HOST + path)).json() == {"cards": ["4111-2222"]}
        assert extended(ledger) == []
    assert len(only(ledger, "card.fetched")) == 1
    assert len(only(ledger, "message.recorded")) == 2
    assert holding(ledger, "4111-2222") == []
