"""The guard on a real a2a-sdk client and agent: what is recorded, and what never leaves."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any, cast

import httpx
import pytest
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import CancelTaskRequest, GetTaskRequest

from a2a_ledger import (
    ContractChangedError,
    ContractDivergenceError,
    LedgerUnavailableError,
    SpentClientError,
    StoreError,
)
from a2a_ledger.wire import EXTENSION
from tests.capture.conftest import STALE, only, request, send, tasks, types
from tests.capture.stored import all_octets

if TYPE_CHECKING:
    from a2a_ledger import ContractLedger
    from a2a_ledger.codec import Draft
    from a2a_ledger.store import Appended
    from tests.capture.agent import Agent
    from tests.capture.conftest import MakeGuard, OpenLedger

JSONRPC = ["JSONRPC"]
REST = ["HTTP+JSON"]


async def test_one_streamed_task_is_recorded_from_the_card_to_the_end_of_the_stream(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    client = await make_guard(ledger).create_client(agent.url)
    await send(client, "hello")

    [task] = tasks(ledger)
    records = ledger.store.read_stream(task)
    assert types(records)[:4] == ["freshness.decided", "contract.captured", "message.recorded", "message.recorded"]
    legs = [(r.data["direction"], r.data["leg"], r.data.get("state_read")) for r in records if "leg" in r.data]
    assert legs == [
        ("out", "request", None),
        ("in", "stream-event", "submitted"),
        ("in", "stream-event", "working"),
        ("in", "stream-event", None),
        ("in", "stream-event", "completed"),
        ("in", "stream-end", None),
    ]
    [capture] = only(ledger, "contract.captured")
    assert capture.data["interface"] == {
        "binding": "JSONRPC",
        "tenant": "",
        "url": f"{agent.url}/rpc",
        "version": "1.0",
    }
    [fetch] = only(ledger, "card.fetched")
    assert capture.data["fetch"] == fetch.ref
    assert capture.data["contract_hash"] == fetch.data["contract_hash"]
    bound = only(ledger, "task.bound")
    assert len(bound) == 1
    assert ledger.find_task(cast("str", fetch.data["peer"]), cast("str", bound[0].data["task_id"])) == task[5:]


async def test_the_request_is_durable_before_its_bytes_leave(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    client = await make_guard(ledger).create_client(agent.url)
    assert ledger.home is not None
    database = ledger.home.database
    seen: list[list[str]] = []

    def at_arrival() -> None:
        with closing(sqlite3.connect(database)) as other:
            rows = other.execute("SELECT topic FROM ledger_events WHERE originator_id LIKE 'task:%'").fetchall()
        seen.append([row[0] for row in rows])

    agent.wire.on_post = at_arrival
    await send(client, "hello")
    assert seen == [["freshness.decided.v1", "contract.captured.v1", "message.recorded.v1"]]


@pytest.mark.parametrize(
    ("bindings", "streaming", "version"),
    [
        (JSONRPC, True, "1.0"),
        (JSONRPC, False, "1.0"),
        (REST, True, "1.0"),
        (REST, False, "1.0"),
        (JSONRPC, True, "0.3"),
    ],
)
async def test_the_pin_comes_back_on_every_binding(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, bindings: list[str], streaming: bool, version: str
) -> None:
    ledger = open_ledger()
    guard = make_guard(ledger)
    if version == "0.3":
        for interface in list(agent.card.supported_interfaces):
            if interface.protocol_version != "0.3":
                agent.card.supported_interfaces.remove(interface)
    config = ClientConfig(streaming=streaming, supported_protocol_bindings=bindings)
    client = await guard.create_client(agent.url, config=config)
    await send(client, "hello")

    [capture] = only(ledger, "contract.captured")
    pin = capture.data["pin"]
    assert isinstance(pin, dict)
    assert set(pin) == {"form", "contractHash", "cardHash", "capturedAt", "origin", "task", "seed0"}
    assert all(isinstance(value, str) for value in pin.values())
    assert pin["contractHash"] == capture.data["contract_hash"]
    assert capture.data["interface"]["version"] == version  # type: ignore[index, call-overload]  # it is an object
    echoed = [r.data["pin"] for r in only(ledger, "message.recorded") if r.data.get("pin_seen")]
    assert echoed
    assert all(echo == pin for echo in echoed)
    [(_, _, headers)] = [entry for entry in agent.wire.seen if entry[0] == "POST"]
    assert EXTENSION in headers["a2a-extensions"]
    assert EXTENSION in headers["x-a2a-extensions"]


async def test_a_send_on_a_changed_contract_makes_one_card_get_and_nothing_else(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(limits=STALE)
    client = await make_guard(ledger).create_client(agent.url)
    await send(client, "hello")
    agent.require_oauth()
    before = len(agent.wire.seen)

    with pytest.raises(ContractChangedError, match=r"Nothing was sent \(1 card GET, 0 requests\)") as raised:
        await send(client, "hello")

    assert [(m, p) for m, p, _ in agent.wire.seen[before:]] == [("GET", "/.well-known/agent-card.json")]
    assert "how authorization changed: stricter" in str(raised.value)
    [aborted] = only(ledger, "send.aborted")
    assert aborted.data["reason"] == "contract-changed"
    assert (aborted.data["card_gets"], aborted.data["requests"]) == (1, 0)
    assert types(ledger.store.read_stream(aborted.stream)) == ["freshness.decided", "send.aborted"]

    with pytest.raises(SpentClientError):
        await send(client, "hello")
    assert len(agent.wire.seen) == before + 1


async def test_building_the_client_again_accepts_the_new_contract(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(limits=STALE)
    guard = make_guard(ledger)
    client = await guard.create_client(agent.url)
    await send(client, "hello")
    agent.require_oauth()
    with pytest.raises(ContractChangedError):
        await send(client, "hello")

    again = await guard.create_client(agent.url)
    await send(again, "hello")

    [accepted] = only(ledger, "contract.accepted")
    old, new = only(ledger, "contract.captured")
    assert (accepted.data["old_hash"], accepted.data["new_hash"]) == (
        old.data["contract_hash"],
        new.data["contract_hash"],
    )
    assert accepted.data["authorization"] == "stricter"
    assert accepted.data["acceptance"] == "auto"


@pytest.mark.parametrize(("acceptance", "waits"), [("manual", True), ("not-weaker", False)])
async def test_acceptance_may_wait_for_a_person(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, acceptance: str, waits: bool
) -> None:
    ledger = open_ledger(limits=STALE, acceptance=acceptance)
    guard = make_guard(ledger)
    client = await guard.create_client(agent.url)
    await send(client, "hello")
    agent.require_oauth()  # stricter
    with pytest.raises(ContractChangedError) as aborted:
        await send(client, "hello")
    newest = only(ledger, "card.fetched")[-1].data
    place = ledger.home.root if ledger.home else None
    command = f"a2a-ledger --ledger {place} card accept {newest['peer']} {newest['contract_hash']}"
    assert ("Build it again to accept" in str(aborted.value), command in str(aborted.value)) == (not waits, waits)
    with pytest.raises(SpentClientError) as spent:
        await send(client, "hello")
    assert (command in str(spent.value)) == waits
    if waits:
        with pytest.raises(ContractChangedError, match="waits for a person") as waiting:
            await guard.create_client(agent.url)
        assert (command in str(waiting.value), waiting.value.hint) == (True, command)
        assert only(ledger, "contract.accepted") == []
    else:
        await guard.create_client(agent.url)
        assert len(only(ledger, "contract.accepted")) == 1


async def test_a_weaker_contract_waits_under_not_weaker(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    agent.require_oauth()
    ledger = open_ledger(limits=STALE, acceptance="not-weaker")
    guard = make_guard(ledger)
    client = await guard.create_client(agent.url)
    await send(client, "hello")
    agent.card.security_requirements.pop()
    with pytest.raises(
        ContractChangedError, match=r"(?s)how authorization changed: weaker.*a2a-ledger --ledger \S+ card accept"
    ):
        await send(client, "hello")
    with pytest.raises(ContractChangedError, match="not-weaker waits"):
        await guard.create_client(agent.url)


async def test_a_304_is_answered_from_the_ledger_and_never_reaches_the_sdk(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(limits=STALE)
    http = make_guard(ledger).httpx_client()
    resolver = A2ACardResolver(http, agent.url)
    first = await resolver.get_agent_card()
    second = await resolver.get_agent_card()
    await http.aclose()

    assert first == second
    full, not_modified = only(ledger, "card.fetched")
    assert (full.data["status"], not_modified.data["status"]) == (200, 304)
    assert not_modified.data["not_modified"] == full.ref
    assert not_modified.data["asked_etag"] == full.data["etag"]
    assert not_modified.content("body") is None


async def test_a_fresh_answer_that_is_asked_for_by_header_really_goes_to_the_wire(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()  # the kept card is fresh for 60 s
    http = make_guard(ledger).httpx_client()
    resolver = A2ACardResolver(http, agent.url)
    await resolver.get_agent_card()
    await resolver.get_agent_card()
    assert agent.gets == 1
    agent.card.description = "changed prose"
    card = await resolver.get_agent_card(http_kwargs={"headers": {"Cache-Control": "no-cache"}})
    await http.aclose()
    assert agent.gets == 2
    assert card.description == "changed prose"
    assert len(only(ledger, "card.fetched")) == 2


async def test_observe_lets_a_changed_contract_through_and_records_it(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(limits=STALE, mode="observe")
    client = await make_guard(ledger).create_client(agent.url)
    await send(client, "hello")
    agent.require_oauth()
    await send(client, "hello")
    decided = [r.data for r in only(ledger, "freshness.decided") if r.stream.startswith("task:")]
    assert [(d["decision"], d["reason"]) for d in decided] == [
        ("proceed", "not-modified"),
        ("abort-before-send", "contract-changed"),
    ]
    assert agent.posts == 2


async def test_a_multi_turn_task_keeps_its_first_capture_and_pin(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(limits=STALE)
    client = await make_guard(ledger).create_client(agent.url)
    events = await send(client, "ask me")
    ids = {"task_id": events[0].task.id, "context_id": events[0].task.context_id}
    agent.require_oauth()  # in mid-task: never fetched again, the first contract governs
    gets = agent.gets
    await send(client, "this one", **ids)

    assert agent.gets == gets
    [task] = tasks(ledger)
    records = ledger.store.read_stream(task)
    assert types(records).count("contract.captured") == 1
    reasons = [(r.data["decision"], r.data["reason"]) for r in records if r.type == "freshness.decided.v1"]
    assert reasons == [("proceed", "not-modified"), ("never-refetch", "frozen")]
    sent = [json.loads(r.content("body") or b"") for r in records if r.data.get("direction") == "out"]
    pins = [body["params"]["message"]["metadata"][EXTENSION] for body in sent]
    assert len(pins) == 2
    assert pins[0] == pins[1]


async def test_get_and_cancel_belong_to_the_task_by_its_id(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    client = await make_guard(ledger).create_client(agent.url)
    events = await send(client, "ask me")
    await client.get_task(GetTaskRequest(id=events[0].task.id))
    await client.cancel_task(CancelTaskRequest(id=events[0].task.id))
    [task] = tasks(ledger)
    methods = [r.data["method"] for r in ledger.store.read_stream(task) if r.data.get("direction") == "out"]
    assert methods == ["SendStreamingMessage", "GetTask", "CancelTask"]
    assert ledger.store.read_stream(task)[-1].data["state_read"] == "canceled"


async def test_a_task_that_another_process_began_is_adopted(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    bare = httpx.AsyncClient()
    other = await ClientFactory(ClientConfig(httpx_client=bare)).create_from_url(agent.url)
    events = await send(other, "ask me")
    await bare.aclose()
    ledger = open_ledger()
    client = await make_guard(ledger).create_client(agent.url)
    await client.get_task(GetTaskRequest(id=events[0].task.id))
    [adopted] = only(ledger, "task.adopted")
    assert adopted.data["task_id"] == events[0].task.id
    assert types(ledger.store.read_stream(adopted.stream)) == ["task.adopted", "message.recorded", "message.recorded"]


async def test_a_resent_message_is_the_same_task(agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard) -> None:
    ledger = open_ledger()
    client = await make_guard(ledger).create_client(agent.url)
    sent = request("hello")
    _ = [event async for event in client.send_message(sent)]
    _ = [event async for event in client.send_message(sent)]
    [task] = tasks(ledger)
    assert types(ledger.store.read_stream(task)).count("contract.captured") == 1
    ids = {str(r.data["task_id"]) for r in only(ledger, "task.bound")}
    assert len(ids) == 2  # the peer made two; both hang on the one submission


async def test_no_answer_is_recorded_as_what_stopped_it(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    client = await make_guard(ledger).create_client(agent.url)
    agent.__exit__()
    with pytest.raises(Exception, match="Network communication error"):
        await send(client, "hello")
    last = ledger.store.read(ledger.store.size() - 1, 1)[0]
    assert (last.data["leg"], last.data["error_kind"]) == ("error", "connect")
    assert last.content("error")


async def test_a_caller_that_gives_up_leaves_a_whole_record(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    config = ClientConfig(streaming=False, supported_protocol_bindings=JSONRPC)
    client = await make_guard(ledger).create_client(agent.url, config=config)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await send(client, "wait")
    for _ in range(100):
        await asyncio.sleep(0.01)
        if only(ledger, "message.recorded")[-1].data["leg"] == "error":
            break
    last = only(ledger, "message.recorded")[-1]
    assert (last.data["leg"], last.data["error_kind"]) == ("error", "cancelled")


async def test_a_caller_that_leaves_a_stream_early_is_recorded_as_that(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    client = await make_guard(ledger).create_client(agent.url)
    stream = client.send_message(request("slow"))
    async for event in stream:
        if event.HasField("status_update"):
            break
    await cast("Any", stream).aclose()
    for _ in range(100):  # the SDK leaves closing the response to the event loop
        await asyncio.sleep(0.01)
        if any(r.data["leg"] == "stream-end" for r in only(ledger, "message.recorded")):
            break
    ends = [r.data for r in only(ledger, "message.recorded") if r.data["leg"] == "stream-end"]
    assert [end["error_kind"] for end in ends] == ["closed-by-caller"]


async def test_block_sends_nothing_when_the_ledger_fails_and_pass_lets_it_through(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(_: ContractLedger, __: list[Draft]) -> list[Appended]:
        raise StoreError("expected room on the disk, found none")

    ledger = open_ledger()
    client = await make_guard(ledger).create_client(agent.url)
    monkeypatch.setattr(type(ledger), "append_async", fails)
    with pytest.raises(LedgerUnavailableError, match="expected room on the disk"):
        await send(client, "hello")
    assert agent.posts == 0

    loose = open_ledger(on_ledger_failure="pass")
    other = await make_guard(loose).create_client(agent.url)
    events = await send(other, "hello")
    assert events
    assert agent.posts == 1


async def test_a_demand_outside_the_frozen_contract_raises_at_arrival(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    client = await make_guard(ledger).create_client(agent.url)
    agent.wire.refuse_with = 401
    with pytest.raises(ContractDivergenceError, match="auth-demand"):
        await send(client, "hello")
    last = only(ledger, "message.recorded")[-1]
    assert last.data["status"] == 401
    assert last.content("body") == b"no"


async def test_a_credential_leaves_a_hole_and_a_mark_but_never_itself(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    secret = "tok-5f8e1c9a7b3d"
    agent.require_oauth()
    ledger = open_ledger()
    guard = make_guard(ledger)
    config = ClientConfig(
        httpx_client=guard.httpx_client(headers={"Authorization": f"Bearer {secret}"}),
        supported_protocol_bindings=JSONRPC,
    )
    client = await guard.create_client(agent.url, config=config)
    await send(client, f"echo {secret}")
    await send(client, "hello")
    assert config.httpx_client is not None
    await config.httpx_client.aclose()

    requests = [r for r in only(ledger, "message.recorded") if r.data["direction"] == "out"]
    marks = [r.data["credential"] for r in requests]
    assert marks[0] == marks[1]
    assert [mark["scheme"] for mark in cast("list[dict[str, str]]", marks[0])] == ["oauth"]
    [first, _] = only(ledger, "contract.captured")
    assert first.data["credential"] == ["oauth"]
    body = requests[0].content("body") or b""
    assert json.loads(body)["params"]["message"]["parts"][0]["text"] == "echo " + "*" * len(secret)
    ledger.close()
    assert ledger.home is not None
    assert secret.encode() not in all_octets(ledger.home.root)


@pytest.mark.parametrize("typed", ["/.well-known/agent-card.json", "/.well-known/agent.json", "/", ""])
async def test_diagnose_fetches_without_changing_what_the_client_acts_on(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, typed: str
) -> None:
    ledger = open_ledger()
    client = await make_guard(ledger).create_client(agent.url)
    agent.require_oauth()
    found = await ledger.diagnose(f"{agent.url}{typed}")
    probe = only(ledger, "card.fetched")[-1]
    assert probe.data["purpose"] == "diagnostic"
    assert found == probe.data["contract_hash"]
    assert client is not None


async def test_the_application_gets_the_kept_card_in_the_context_of_a_sent_task(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(limits=STALE)
    guard = make_guard(ledger)
    http = guard.httpx_client()
    client = await guard.create_client(agent.url, config=ClientConfig(httpx_client=http))
    events = await send(client, "ask me")
    [task] = tasks(ledger)
    agent.require_oauth()
    gets = agent.gets
    with ledger.task(task.removeprefix("task:")):
        card = await A2ACardResolver(http, agent.url).get_agent_card()
    await http.aclose()
    assert events
    assert agent.gets == gets
    assert len(card.security_requirements) == 0  # the card as it was when the task was sent
    decided = ledger.store.read_stream(task)[-1]
    assert (decided.data["decision"], decided.data["reason"]) == ("never-refetch", "frozen")


async def test_a_card_asked_for_between_two_events_of_a_stream_is_the_kept_one(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(limits=STALE)
    guard = make_guard(ledger)
    http = guard.httpx_client()
    client = await guard.create_client(agent.url, config=ClientConfig(streaming=True, httpx_client=http))
    resolver = A2ACardResolver(http, agent.url)
    gets, names = -1, list[str]()
    async for _ in client.send_message(request("chunks")):
        if gets < 0:
            gets = agent.gets
            agent.card.skills[0].name = "moved"
        names.append((await resolver.get_agent_card()).skills[0].name)
    assert set(names[:-1]) == {"echo"}
    assert names[-1] == "moved"  # the task has ended: this asks for one that does not exist yet
    await http.aclose()
    assert agent.gets == gets + 1
    [task] = tasks(ledger)
    decided = [r.data["reason"] for r in ledger.store.read_stream(task) if r.type == "freshness.decided.v1"]
    assert decided[1:] == ["frozen"] * (len(names) - 1)
