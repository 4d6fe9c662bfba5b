"""Whatever comes between the decision and the first byte: the first send that leaves was decided and is frozen."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import httpx
import pytest
from a2a.types import GetTaskRequest
from google.protobuf.json_format import MessageToDict

from a2a_ledger import ContractChangedError
from a2a_ledger.errors import BusyError, LedgerUnavailableError
from a2a_ledger.wire import EXTENSION
from tests.capture.conftest import STALE, only, request, send, tasks, types
from tests.capture.front import JSON, Reply, in_front

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from a2a.client import Client
    from a2a.types import SendMessageRequest

    from a2a_ledger import ContractLedger
    from a2a_ledger.codec import Draft
    from a2a_ledger.store import Appended
    from tests.capture.agent import Agent
    from tests.capture.conftest import MakeGuard, OpenLedger
    from tests.capture.front import Asked

TOKEN = b'{"access_token": "granted-0001", "token_type": "Bearer"}'


async def collect(client: Client, sent: SendMessageRequest) -> None:
    async for _ in client.send_message(sent):
        pass


def assert_every_send_is_frozen(ledger: ContractLedger) -> None:
    """Each task that a request of ours is in has its capture before that request, and its decision before that."""
    for stream in tasks(ledger):
        events = types(ledger.store.read_stream(stream))
        if "message.recorded" in events:
            assert events[:3] == ["freshness.decided", "contract.captured", "message.recorded"]
            assert events.count("contract.captured") == 1


class FetchesToken(httpx.Auth):
    """Asks for a token through the guarded client before each send, as httpx's own flows do."""

    requires_response_body = True

    def __init__(self, url: str) -> None:
        self.url = url

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        if request.method == "POST":
            answer = yield httpx.Request("POST", self.url, data={"grant_type": "client_credentials"})
            request.headers["authorization"] = f"Bearer {answer.json()['access_token']}"
        yield request


class FailsOnce(httpx.Auth):
    """Has no token at the first try."""

    def __init__(self) -> None:
        self.failed = False

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        if request.method == "POST" and not self.failed:
            self.failed = True
            raise httpx.ConnectError("the token endpoint is down")
        yield request


class SendsAnother(httpx.Auth):
    """Sends a message of its own before each send, in the same context: a nested delegation."""

    def __init__(self) -> None:
        self.other: Callable[[], Awaitable[object]] | None = None
        self.inside = False

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        if request.method == "POST" and self.other is not None and not self.inside:
            self.inside = True
            await self.other()
        yield request


async def test_a_token_fetched_between_decision_and_send_leaves_the_call_open(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    in_front(agent, lambda asked: Reply(200, (JSON,), TOKEN) if asked.path == "/token" else None)
    ledger = open_ledger()
    client = await make_guard(ledger).create_client(agent.url, auth=FetchesToken(agent.url + "/token"))
    sent = request("hello")
    await collect(client, sent)
    assert_every_send_is_frozen(ledger)
    [capture] = only(ledger, "contract.captured")
    assert [r.data["reason"] for r in only(ledger, "freshness.decided")][-1] == "fresh"
    assert capture.data["pin"] == MessageToDict(sent.message.metadata)[EXTENSION]
    assert tasks(ledger) == [capture.stream]


@pytest.mark.parametrize("changed", [False, True])
async def test_a_decision_that_grew_old_while_the_token_was_waited_for_is_made_anew(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, monkeypatch: pytest.MonkeyPatch, changed: bool
) -> None:
    ledger = open_ledger()
    clock = ledger.clock

    def answer(asked: Asked) -> Reply | None:
        if asked.path != "/token":
            return None
        monkeypatch.setattr(ledger, "clock", lambda: clock() + timedelta(seconds=70))  # somebody had to log in
        if changed:
            agent.require_oauth()
        return Reply(200, (JSON,), TOKEN)

    in_front(agent, answer)
    client = await make_guard(ledger).create_client(agent.url, auth=FetchesToken(agent.url + "/token"))
    if changed:
        with pytest.raises(ContractChangedError):
            await send(client, "hello")
        assert [path for method, path, _ in agent.wire.seen if method == "POST"] == ["/token"]
        assert types(ledger.store.read_stream(tasks(ledger)[0])) == ["freshness.decided", "send.aborted"]
    else:
        sent = request("hello")
        await collect(client, sent)
        assert [r.data["reason"] for r in only(ledger, "freshness.decided")] == ["no-card", "not-modified"]
        assert only(ledger, "contract.captured")[0].data["pin"] == MessageToDict(sent.message.metadata)[EXTENSION]
    assert_every_send_is_frozen(ledger)


async def test_a_message_sent_between_decision_and_send_is_a_task_of_its_own(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    auth = SendsAnother()
    client = await make_guard(ledger).create_client(agent.url, auth=auth)
    auth.other = lambda: send(client, "inner")
    sent = request("outer")
    await collect(client, sent)
    assert_every_send_is_frozen(ledger)
    pins = {capture.stream: capture.data["pin"] for capture in only(ledger, "contract.captured")}
    assert len(pins) == len(tasks(ledger)) == 2
    assert MessageToDict(sent.message.metadata)[EXTENSION] in pins.values()
    assert agent.posts == 2


@pytest.mark.parametrize("changed", [False, True])
async def test_a_send_that_its_authentication_stopped_is_decided_anew(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, changed: bool
) -> None:
    ledger = open_ledger(limits=STALE)
    client = await make_guard(ledger).create_client(agent.url, auth=FailsOnce())
    sent = request("hello")
    with pytest.raises(Exception, match="token endpoint is down"):
        await collect(client, sent)
    if changed:
        agent.require_oauth()
        with pytest.raises(ContractChangedError):
            await collect(client, sent)
        assert agent.posts == 0
        assert only(ledger, "contract.captured") == []
    else:
        await collect(client, sent)
        assert agent.posts == 1
        assert len(tasks(ledger)) == 1
    assert_every_send_is_frozen(ledger)


def busy_at(ledger: ContractLedger, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """Let one append fail: the one of this number, counted from now."""
    calls = iter(range(1_000))
    append = ledger.append_async

    async def failing(drafts: list[Draft]) -> list[Appended]:
        if next(calls) == at:
            raise BusyError("the database is locked")
        return await append(drafts)

    monkeypatch.setattr(ledger, "append_async", failing)


@pytest.mark.parametrize("changed", [False, True])
async def test_a_send_that_could_not_be_recorded_is_decided_anew(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, monkeypatch: pytest.MonkeyPatch, changed: bool
) -> None:
    ledger = open_ledger(limits=STALE)
    client = await make_guard(ledger).create_client(agent.url)
    sent = request("hello")
    busy_at(ledger, monkeypatch, 1)  # the pre-send fetch is recorded, the opening append is not
    with pytest.raises(LedgerUnavailableError):
        await collect(client, sent)
    assert agent.posts == 0
    if changed:
        agent.require_oauth()
        with pytest.raises(ContractChangedError):
            await collect(client, sent)
        assert agent.posts == 0
    else:
        await collect(client, sent)
        assert len(only(ledger, "contract.captured")) == agent.posts == 1
    assert_every_send_is_frozen(ledger)


async def test_an_adoption_that_could_not_be_recorded_is_made_anew(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = open_ledger()
    client = await make_guard(ledger).create_client(agent.url)
    busy_at(ledger, monkeypatch, 0)
    with pytest.raises(LedgerUnavailableError):
        await client.get_task(GetTaskRequest(id="elsewhere"))
    with pytest.raises(Exception, match=r"(?i)not found"):
        await client.get_task(GetTaskRequest(id="elsewhere"))
    [task] = tasks(ledger)
    assert types(ledger.store.read_stream(task)) == ["task.adopted", "message.recorded", "message.recorded"]


async def test_a_caller_that_gives_up_at_any_moment_and_sends_again_is_decided_and_frozen(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(limits=STALE)
    client = await make_guard(ledger).create_client(agent.url, headers={"authorization": "Bearer abcdefgh-1234"})
    for steps in range(0, 48, 3):
        sent = request("hello")
        job = asyncio.create_task(collect(client, sent))
        for _ in range(steps):
            await asyncio.sleep(0.0005)
        job.cancel()
        await asyncio.gather(job, return_exceptions=True)
        await collect(client, sent)
    assert_every_send_is_frozen(ledger)
    requests = [record for record in only(ledger, "message.recorded") if record.data["leg"] == "request"]
    assert len(tasks(ledger)) == len({str(record.data["message_id"]) for record in requests}) == 16


async def test_a_head_that_cannot_be_signed_before_the_send_leaves_a_request_that_says_so(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = open_ledger(checkpoint="before-send")
    client = await make_guard(ledger).create_client(agent.url)

    def failing() -> None:
        raise BusyError("the signer's lock is held")

    monkeypatch.setattr(ledger, "sign_checkpoint", failing)
    with pytest.raises(LedgerUnavailableError):
        await send(client, "hello")
    assert agent.posts == 0
    assert [r.data["leg"] for r in only(ledger, "message.recorded")] == ["request", "error"]


async def test_a_message_id_that_no_record_has_room_for_is_pinned_and_resent_in_its_task(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    client = await make_guard(ledger).create_client(agent.url)
    sent = request("hello")
    sent.message.message_id = "x" * 3000
    await collect(client, sent)
    [task] = tasks(ledger)
    pin = MessageToDict(sent.message.metadata)[EXTENSION]
    assert f"task:{pin['task']}" == task
    assert only(ledger, "contract.captured")[0].data["pin"] == pin
    await collect(client, sent)
    assert tasks(ledger) == [task]


async def test_a_request_sent_twice_by_its_authentication_is_one_task(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    class Refreshes(httpx.Auth):
        async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
            request.headers["authorization"] = "Bearer old-token-1"
            answer = yield request
            if answer.status_code == 401:
                request.headers["authorization"] = "Bearer new-token-2"
                yield request

    def answer(asked: Asked) -> Reply | None:
        return Reply(401, (JSON,), b"{}") if asked.headers.get("authorization") == "Bearer old-token-1" else None

    ledger = open_ledger()
    auth = Refreshes()
    client = await make_guard(ledger).create_client(agent.url, auth=auth)
    in_front(agent, lambda asked: answer(asked) if asked.method == "POST" else None)
    await send(client, "hello")
    assert_every_send_is_frozen(ledger)
    assert len(tasks(ledger)) == 1


async def test_an_id_that_is_counted_anew_opens_a_task_under_the_contract_of_its_time(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    """A resend is the same id and the same content; two runs of a client that counts from 1 share ids alone."""
    ledger = open_ledger(mode="observe")

    async def run(*texts: str) -> None:
        guard = make_guard(ledger)
        client = await guard.create_client(agent.url)
        for text in texts:
            sent = request(text)
            sent.message.message_id = "1"
            await collect(client, sent)

    await run("hello", "hello")
    agent.require_oauth()
    await run("other work", "hello", "other work")
    assert_every_send_is_frozen(ledger)
    first, second = only(ledger, "contract.captured")
    assert first.data["contract_hash"] != second.data["contract_hash"]
    asked = [r.stream for r in only(ledger, "message.recorded") if r.data["leg"] == "request"]
    assert asked == [first.stream, first.stream, second.stream, first.stream, second.stream]


async def test_one_id_at_once_with_two_contents_opens_two_tasks(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    client = await make_guard(ledger).create_client(agent.url)
    sends = [request(text) for text in ("hello", "other work", "hello", "other work")]
    for sent in sends:
        sent.message.message_id = "1"
    await asyncio.gather(*[collect(client, sent) for sent in sends])
    assert_every_send_is_frozen(ledger)
    assert len(tasks(ledger)) == 2
