"""Which card is kept, validated, asked for again and handed out: never another one, never by somebody else's way."""

from __future__ import annotations

import asyncio
import contextvars
import gzip
import json
import logging
import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory

from a2a_ledger import ContractChangedError, Guard
from a2a_ledger.capture.card_identity import selecting, variant_of
from a2a_ledger.capture.redact import Secret
from a2a_ledger.settings import Limits
from tests.capture.agent import Agent
from tests.capture.conftest import STALE, only, send, tasks
from tests.capture.front import BEARER, WELL_KNOWN, Asked, Reply, card_of, in_front, served

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from a2a_ledger import ContractLedger
    from tests.capture.conftest import MakeGuard, OpenLedger

JSONRPC = ["JSONRPC"]
NO_CACHE: dict[str, Any] = {"headers": {"Cache-Control": "no-cache"}}


_open: list[httpx.AsyncClient] = []


@pytest.fixture(autouse=True)
async def _closing() -> AsyncGenerator[None]:
    yield
    for http in _open:
        await http.aclose()
    _open.clear()


def reasons(ledger: ContractLedger) -> list[tuple[object, object]]:
    """Return the decisions before sends, in the log's order."""
    found = [r.data for r in only(ledger, "freshness.decided") if r.stream.startswith("task:")]
    return [(data["decision"], data["reason"]) for data in found]


def plain(guard: Guard, **options: Any) -> ClientConfig:  # noqa: ANN401 - passed to httpx as they are
    """Return a configuration for sends without a stream, over a client of its own, which the test's end closes."""
    _open.append(guard.httpx_client(**options))
    return ClientConfig(httpx_client=_open[-1], streaming=False, supported_protocol_bindings=JSONRPC)


# ---- what a 304 says


async def test_a_304_about_a_newer_card_does_not_let_the_clients_contract_stand(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(limits=STALE)
    guard = make_guard(ledger)
    old = await guard.create_client(agent.url)
    agent.require_oauth()
    with pytest.raises(ContractChangedError):
        await guard.create_client(agent.url)
    await guard.create_client(agent.url)  # another client, on the new contract
    with pytest.raises(ContractChangedError):
        await send(old, "hello")
    assert agent.posts == 0


async def test_a_304_to_a_question_without_a_condition_is_a_failed_fetch(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    card = await card_of(agent)
    front = in_front(agent, lambda _: None)
    front.answer = lambda asked: None if asked.method == "POST" else served(card) if not front.cards() else Reply(304)
    ledger = open_ledger(limits=Limits(contract=0, cache=0))
    client = await make_guard(ledger).create_client(agent.url)
    await send(client, "hello")
    assert reasons(ledger) == [("proceed", "refetch-failed")]
    [failed] = only(ledger, "card.fetch_failed")
    assert (failed.data["outcome"], failed.data["status"]) == ("status", 304)


async def test_a_validator_beyond_ascii_is_sent_as_it_came(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    card = await card_of(agent)
    front = in_front(agent, lambda asked: served(card, ("etag", '"caf\xe9"')) if asked.path == WELL_KNOWN else None)
    ledger = open_ledger(limits=STALE)
    client = await make_guard(ledger).create_client(agent.url)
    await send(client, "hello")
    assert front.cards()[-1].headers["if-none-match"] == '"caf\xe9"'


# ---- how the application asked


async def test_a_card_get_carries_what_the_application_sends_with_it(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    own = {"X-API-Key": "key-1234567", "X-Tenant": "t1", "Accept-Language": "de"}
    ledger = open_ledger(limits=STALE)
    front = in_front(agent, lambda _: None)
    client = await make_guard(ledger).create_client(agent.url, headers=own)
    await send(client, "hello")
    first, again = front.cards()
    for asked in (first, again):
        assert {name: asked.headers[name.lower()] for name in own} == own
        assert asked.headers["accept-encoding"] == "identity"
    assert ("if-none-match" in first.headers, "if-none-match" in again.headers) == (False, True)


@pytest.mark.parametrize("mode", ["enforce", "observe"])
async def test_the_applications_own_validators_stay_and_a_304_to_them_is_answered_with_the_kept_card(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, mode: str
) -> None:
    ledger = open_ledger(mode=mode)
    async with make_guard(ledger).httpx_client() as http:
        first = await http.get(agent.url + WELL_KNOWN)
        again = await http.get(agent.url + WELL_KNOWN, headers={"If-None-Match": first.headers["etag"]})
    assert agent.wire.seen[-1][2]["if-none-match"] == first.headers["etag"]
    assert (again.status_code, again.content) == (200, first.content)
    assert [r.data["status"] for r in only(ledger, "card.fetched")] == [200, 304]


async def test_a_304_about_bytes_that_only_the_application_has_is_handed_on(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    async with httpx.AsyncClient() as bare:
        tag = (await bare.get(agent.url + WELL_KNOWN)).headers["etag"]
    async with make_guard(open_ledger()).httpx_client() as http:
        answer = await http.get(agent.url + WELL_KNOWN, headers={"If-None-Match": tag})
    assert answer.status_code == 304


# ---- by whose way it is asked again


class Rotating(httpx.Auth):
    """Puts the newest token on every request, as an OAuth client does."""

    token = "token-one"

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        request.headers["Authorization"] = f"Bearer {self.token}"
        yield request


async def test_a_card_is_asked_for_again_with_the_clients_newest_credential(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    auth = Rotating()
    front = in_front(agent, lambda _: None)
    ledger = open_ledger(limits=STALE)
    client = await make_guard(ledger).create_client(agent.url, auth=auth)
    auth.token = "token-two"
    await send(client, "hello")
    assert [asked.headers["authorization"] for asked in front.cards()] == ["Bearer token-one", "Bearer token-two"]
    assert reasons(ledger) == [("proceed", "not-modified")]


async def test_a_credential_of_a_later_request_is_taken_over_by_the_route(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    guard = make_guard(ledger)
    transport = httpx.AsyncHTTPTransport()
    http = guard.httpx_client(transport)
    await http.get(agent.url + WELL_KNOWN, headers={"Authorization": "Bearer token-one", "X-Tenant": "t1"})
    peer = str(only(ledger, "card.fetched")[0].data["peer"])
    route = guard.desk.cards.route_of_peer(peer)
    assert route is not None
    other = [("Authorization", "Bearer token-of-another-host")]
    guard.desk.cards.refresh(route.transport, "http://elsewhere.example/rpc", other)
    guard.desk.cards.refresh(object(), agent.url + "/rpc", other)
    guard.desk.cards.refresh(route.transport, agent.url + "/rpc", [("Authorization", "Bearer token-two"), ("X-B", "b")])
    sent = {name.lower(): value for name, value in route.headers}
    assert (sent["authorization"], sent["x-tenant"], "x-b" in sent) == ("Bearer token-two", "t1", False)
    await http.aclose()
    assert guard.desk.cards.route_of_peer(peer) is None


async def test_each_client_asks_again_as_itself(agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard) -> None:
    now = [datetime.now(UTC)]
    ledger = open_ledger(limits=Limits(contract=5), clock=lambda: now[0])
    guard = make_guard(ledger)
    front = in_front(agent, lambda _: None)
    clients = [
        await guard.create_client(agent.url, config=plain(guard, headers={"Authorization": f"Bearer {who}-secret"}))
        for who in ("alice", "bob")
    ]
    gone = guard.httpx_client(headers={"Authorization": "Bearer carol-secret"})
    await A2ACardResolver(gone, agent.url).get_agent_card()
    await gone.aclose()
    now[0] += timedelta(seconds=6)
    del front.asked[:]
    await send(clients[0], "hello")
    assert [(asked.method, asked.headers["authorization"]) for asked in front.asked] == [
        ("GET", "Bearer alice-secret"),
        ("POST", "Bearer alice-secret"),
    ]


def test_clients_of_two_event_loops_never_share_a_fetch(agent: Agent, open_ledger: OpenLedger) -> None:
    ledger = open_ledger(limits=STALE)
    guard = Guard(ledger)
    together = threading.Barrier(2)
    failures: list[BaseException] = []

    def work() -> None:
        async def sends() -> None:
            config = plain(guard)
            client = await guard.create_client(agent.url, config=config)
            await asyncio.to_thread(together.wait)
            for _ in range(4):
                await send(client, "hello")
            assert config.httpx_client is not None
            await config.httpx_client.aclose()

        try:
            asyncio.run(sends())
        except BaseException as error:  # noqa: BLE001 - whatever it is, the test says it
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert failures == []
    assert only(ledger, "card.fetch_failed") == []
    assert agent.posts == 8


# ---- which card it is


async def test_cards_of_two_users_two_queries_and_two_paths_are_never_mixed(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    card = await card_of(agent)

    def answer(asked: Asked) -> Reply:
        who = asked.headers.get("authorization", "") + asked.headers.get("x-tenant", "")
        return served({**card, "description": f"{asked.path}?{asked.query} {who}"})

    in_front(agent, answer)
    guard = make_guard(open_ledger())
    async with guard.httpx_client() as http:
        for path in (WELL_KNOWN, f"{WELL_KNOWN}?agent=1", f"{WELL_KNOWN}?agent=2", "/.well-known/agent.json"):
            for headers in (
                {},
                {"Authorization": "Bearer alice-1"},
                {"Authorization": "Bearer bob-22"},
                {"X-Tenant": "t"},
            ):
                told = (await http.get(agent.url + path, headers=headers)).json()["description"]
                assert told == f"{path}{'' if '?' in path else '?'} {''.join(headers.values())}"


def test_a_variant_tells_queries_apart_and_no_secrets() -> None:
    assert variant_of("https://a.example/card.json", []) is None
    one, two = (variant_of(f"https://A.example:443/card.json?agent={n}", []) for n in (1, 2))
    assert one is not None
    assert (len(one), one == two) == (16, False)
    assert variant_of("https://a.example/card.json?agent=1#x", []) == one
    keyed = [variant_of(f"https://a.example/c?k={k}", [Secret("key", k.encode())]) for k in ("sesame", "open-sesame")]
    assert keyed[0] == keyed[1]
    assert selecting([("Host", "a"), ("If-None-Match", '"1"'), ("X-Request-Id", "7"), ("Accept", "*/*")]) is None
    assert selecting([("X-Tenant", "t1"), ("Host", "a")]) == Secret("headers", b"x-tenant: t1")


async def test_flapping_is_of_one_card_not_of_two_that_differ(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    extended = {**(await card_of(agent)), **BEARER}
    in_front(agent, lambda asked: served(extended, ("etag", '"e"')) if "xtended" in asked.path else None)
    ledger = open_ledger(limits=STALE)
    guard = make_guard(ledger)
    config = plain(guard, headers={"Authorization": "Bearer abcdefgh"})
    client = await guard.create_client(agent.url, config=config)
    assert config.httpx_client is not None
    for _ in range(2):
        await config.httpx_client.get(agent.url + "/rest/extendedAgentCard")
        await send(client, "hello")
    assert reasons(ledger) == [("proceed", "not-modified")] * 2


# ---- which card a client is bound to


async def test_two_peers_that_serve_the_same_bytes_are_two_peers(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    with Agent() as mirror:
        mirror.card.CopyFrom(agent.card)
        ledger = open_ledger(limits=STALE)
        guard = make_guard(ledger)
        client = await guard.create_client(agent.url)
        await guard.create_client(mirror.url)
        gets = mirror.gets
        agent.require_oauth()
        with pytest.raises(ContractChangedError):
            await send(client, "hello")
        assert mirror.gets == gets


async def test_a_client_stays_bound_however_many_cards_are_read_meanwhile(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("a2a_ledger.capture.desk._RECENT_CARDS", 3)
    card = await card_of(agent)
    in_front(agent, lambda asked: served({**card, "name": asked.path}) if asked.path.startswith("/p") else None)
    ledger = open_ledger(limits=STALE)
    guard = make_guard(ledger)
    client = await guard.create_client(agent.url)
    async with guard.httpx_client() as http:
        for i in range(4):
            await http.get(f"{agent.url}/p{i}{WELL_KNOWN}")
    await send(client, "hello")
    assert reasons(ledger) == [("proceed", "not-modified")]


async def test_a_card_at_a_path_of_its_own_is_known_in_every_spelling_of_its_host(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    card = await card_of(agent)
    in_front(agent, lambda asked: served(card, ("etag", '"1"')) if asked.path == "/cards/mine.json" else None)
    ledger = open_ledger(limits=STALE)
    url = agent.url.replace("127.0.0.1", "LOCALHOST")
    client = await make_guard(ledger).create_client(url, relative_card_path="cards/mine.json")
    card.update(BEARER)
    in_front(agent, lambda asked: served(card, ("etag", '"2"')) if asked.path == "/cards/mine.json" else None)
    with pytest.raises(ContractChangedError):
        await send(client, "hello")
    assert [r.data["source"] for r in only(ledger, "card.fetched")] == ["registry", "registry"]


async def test_a_redirect_is_part_of_the_fetch(agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard) -> None:
    card = await card_of(agent)
    tag = ['"1"']

    def answer(asked: Asked) -> Reply | None:
        if asked.path == WELL_KNOWN:
            return Reply(302, (("location", "/cards/v7.json"),))
        return served(card, ("etag", tag[0])) if asked.path == "/cards/v7.json" else None

    in_front(agent, answer)
    ledger = open_ledger(limits=STALE)
    client = await make_guard(ledger).create_client(agent.url, follow_redirects=True)
    card.update(BEARER)
    tag[0] = '"2"'
    with pytest.raises(ContractChangedError):
        await send(client, "hello")
    assert [(r.data["url"], r.data["answered_url"], r.data["purpose"]) for r in only(ledger, "card.fetched")] == [
        (agent.url + WELL_KNOWN, agent.url + "/cards/v7.json", "discovery"),
        (agent.url + WELL_KNOWN, agent.url + "/cards/v7.json", "pre-send"),
    ]


async def test_clients_without_an_interceptor_are_told_apart_by_their_transport(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    card = await card_of(agent)
    changed: dict[str, Any] = {}

    def answer(asked: Asked) -> Reply | None:
        name = asked.path.removesuffix(WELL_KNOWN)
        if name not in {"/one", "/two"}:
            return None
        body = {**card, "name": name, **(changed if name == "/one" else {})}
        return served(body, ("etag", f'"{name}{len(changed)}"'))

    in_front(agent, answer)
    ledger = open_ledger(limits=STALE)
    guard = make_guard(ledger)
    one = await ClientFactory(plain(guard)).create_from_url(agent.url + "/one")
    await ClientFactory(plain(guard)).create_from_url(agent.url + "/two")
    changed.update(BEARER)
    with pytest.raises(ContractChangedError):
        await send(one, "hello")
    assert agent.posts == 0


async def test_a_card_from_elsewhere_is_bound_with_a_warning_that_it_can_never_be_fetched_again(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = open_ledger(limits=STALE)
    guard = make_guard(ledger)
    client = ClientFactory(plain(guard)).create(agent.card, interceptors=[guard.interceptor()])
    with caplog.at_level(logging.WARNING):
        await send(client, "hello")
    assert "can never be fetched again" in caplog.text


# ---- siblings and hints


@pytest.mark.parametrize("status", [500, 401])
async def test_a_send_that_failed_shields_no_other(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, status: int
) -> None:
    ledger = open_ledger(limits=STALE, mode="observe")
    guard = make_guard(ledger)
    client = await guard.create_client(agent.url, config=plain(guard))
    agent.wire.refuse_with = status
    with pytest.raises(Exception, match=str(status)):
        await send(client, "hello")
    agent.wire.refuse_with = None
    agent.require_oauth()
    await send(client, "hello")
    assert reasons(ledger)[-1] == ("abort-before-send", "contract-changed")
    assert not guard.desk.in_flight(str(only(ledger, "card.fetched")[0].data["peer"]))


async def test_a_send_that_waits_shields_those_of_its_own_caller_class_alone(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    started = asyncio.Event()
    loop = asyncio.get_running_loop()

    def arrived() -> None:
        loop.call_soon_threadsafe(started.set)

    agent.wire.on_post = arrived
    ledger = open_ledger(limits=STALE)
    guard = make_guard(ledger)
    known = await guard.create_client(agent.url, config=plain(guard, headers={"Authorization": "Bearer abcdefgh"}))
    unknown = await guard.create_client(agent.url, config=plain(guard))
    waiting = asyncio.create_task(send(known, "slow"))
    await started.wait()
    await send(unknown, "hello")
    await send(known, "hello")
    await waiting
    assert [reason for _, reason in reasons(ledger)] == ["not-modified", "not-modified", "sibling-submitted"]


async def test_a_hint_counts_by_its_place_in_the_log_though_the_clock_was_set_back(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    shift = [timedelta(0)]
    ledger = open_ledger(clock=lambda: datetime.now(UTC) + shift[0])
    guard = make_guard(ledger)
    client = await guard.create_client(agent.url)
    agent.require_oauth()
    shift[0] = timedelta(seconds=-20)
    async with Guard(ledger).httpx_client() as http:  # another client sees the new card, earlier by the clock
        await A2ACardResolver(http, agent.url).get_agent_card(http_kwargs=NO_CACHE)
        await A2ACardResolver(http, agent.url).get_agent_card()
    with pytest.raises(ContractChangedError):
        await send(client, "hello")
    assert agent.posts == 0


# ---- diagnostics


async def test_a_probes_answer_reaches_no_sdk_and_serves_no_build(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    guard = make_guard(ledger)
    http = guard.httpx_client()
    client = await guard.create_client(agent.url, config=ClientConfig(streaming=True, httpx_client=http))
    await send(client, "ask me")
    [task] = tasks(ledger)
    agent.card.skills[0].name = "moved"
    await ledger.diagnose(agent.url + WELL_KNOWN)
    gets = agent.gets
    with ledger.task(task.removeprefix("task:")):
        card = await A2ACardResolver(http, agent.url).get_agent_card()
    assert (card.skills[0].name, agent.gets) == ("echo", gets)
    await http.aclose()


async def test_in_a_sent_tasks_context_its_own_frozen_card_is_given_not_the_newest(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(limits=STALE)
    guard = make_guard(ledger)
    http = guard.httpx_client()
    client = await guard.create_client(agent.url, config=ClientConfig(streaming=True, httpx_client=http))
    await send(client, "ask me")
    [task] = tasks(ledger)
    agent.card.skills[0].name = "moved"
    async with guard.httpx_client() as other:
        resolver = A2ACardResolver(other, agent.url)
        await asyncio.create_task(resolver.get_agent_card(), context=contextvars.Context())  # where nothing was sent
    assert len(only(ledger, "card.fetched")) == 3
    with ledger.task(task.removeprefix("task:")):
        card = await A2ACardResolver(http, agent.url).get_agent_card()
    assert card.skills[0].name == "echo"
    await http.aclose()


async def test_a_build_joins_no_probe_in_flight(agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard) -> None:
    front = in_front(agent, lambda _: None)
    inner = front.app

    async def slow(scope: Any, receive: Any, send_: Any) -> None:  # noqa: ANN401 - an ASGI application
        if "agent-card" in scope.get("path", ""):
            await asyncio.sleep(0.1)
        await inner(scope, receive, send_)

    front.app = slow
    ledger = open_ledger(limits=STALE)
    async with make_guard(ledger).httpx_client() as http:
        resolver = A2ACardResolver(http, agent.url)
        await resolver.get_agent_card()
        probe = asyncio.create_task(ledger.diagnose(agent.url + WELL_KNOWN))
        await asyncio.sleep(0.03)
        await resolver.get_agent_card()
        await probe
    assert sorted(str(r.data["purpose"]) for r in only(ledger, "card.fetched")) == [
        "diagnostic",
        "discovery",
        "pre-send",
    ]


# ---- what is handed out


async def test_a_kept_body_with_a_hole_is_never_handed_out(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(keep_body=300)
    bodies: list[bytes] = []
    for _ in range(2):  # the second guard has nothing in memory
        async with make_guard(ledger).httpx_client() as http:
            bodies += [(await http.get(agent.url + WELL_KNOWN)).content for _ in range(2)]
    assert len(set(bodies)) == 1
    assert json.loads(bodies[0])["name"] == "Echo"
    assert agent.gets == 2


async def test_a_kept_card_is_handed_out_as_the_answer_that_it_was(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    card = await card_of(agent)
    headers = (("etag", '"1"'), ("cache-control", "max-age=50"), ("set-cookie", "sid=abcdefgh12345"))
    front = in_front(agent, lambda _: served(card, *headers, status=203))
    async with make_guard(open_ledger()).httpx_client() as http:
        live = await http.get(agent.url + WELL_KNOWN)
    async with make_guard(open_ledger()).httpx_client() as http:
        kept = await http.get(agent.url + WELL_KNOWN)
    assert len(front.asked) == 1
    assert (live.status_code, kept.status_code, kept.content) == (203, 203, live.content)
    assert (kept.headers["etag"], kept.headers["cache-control"]) == ('"1"', "max-age=50")
    assert ("set-cookie" in live.headers, "set-cookie" in kept.headers) == (True, False)


async def test_a_failed_card_get_is_handed_on_decoded(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    packed = Reply(
        404, (("content-type", "text/html"), ("content-encoding", "gzip")), gzip.compress(b"<p>not here</p>")
    )
    in_front(agent, lambda _: packed)
    async with make_guard(open_ledger()).httpx_client() as http:
        answer = await http.get(agent.url + WELL_KNOWN)
    assert (answer.status_code, answer.content) == (404, b"<p>not here</p>")
