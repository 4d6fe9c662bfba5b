"""Pushes: as an agent sends them, and as a client receives them, over a real webhook of a real SDK agent."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import httpx
import pytest
from a2a.helpers import new_text_message
from a2a.server.context import ServerCallContext
from a2a.server.tasks import BasePushNotificationSender, InMemoryPushNotificationConfigStore, InMemoryTaskStore
from a2a.types import (
    AuthenticationInfo,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
    TaskStatus,
)

from a2a_ledger import guard
from a2a_ledger.capture.asgi import ContractLedgerMiddleware
from a2a_ledger.capture.server.pushes import PushReceiver, PushTransport
from a2a_ledger.capture.server.served import ServedRequest, being_served
from a2a_ledger.capture.server.task_store import RecordedTaskStore
from a2a_ledger.events import TaskSnapshot
from a2a_ledger_projections.verifier import follower
from tests.capture.agent import Agent
from tests.capture.stored import holding
from tests.proxy.conftest import only
from tests.proxy.serving import Serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger import ContractLedger
    from a2a_ledger.codec import Record
    from tests.proxy.conftest import OpenLedger

WELL_KNOWN = "/.well-known/agent-card.json"
TOKEN = "a-token-that-was-agreed"
CREDENTIALS = "credentials-that-were-agreed"
"""What the client asks its pushes to carry; both must be in no store."""


def _one_by_one() -> httpx.AsyncHTTPTransport:
    """Return a transport that keeps no connection, since nobody closes it in the agent's own thread."""
    return httpx.AsyncHTTPTransport(limits=httpx.Limits(max_keepalive_connections=0))


class Pushing:
    """A real agent with a ledger of its own: middleware, task store and pushes."""

    def __init__(self, ledger: ContractLedger) -> None:
        configs = InMemoryPushNotificationConfigStore()
        self.agent = Agent(
            pushes=lambda url: (
                configs,
                BasePushNotificationSender(
                    httpx.AsyncClient(transport=PushTransport(ledger, url + WELL_KNOWN, _one_by_one())), configs
                ),
            ),
            tasks=lambda url: RecordedTaskStore(InMemoryTaskStore(), ledger, url + WELL_KNOWN),
        )
        self.agent.wire.app = ContractLedgerMiddleware(self.agent.wire.app, ledger, self.agent.url + WELL_KNOWN)


@pytest.fixture
def pushing(open_ledger: OpenLedger) -> Iterator[tuple[Agent, ContractLedger]]:
    """Return a running agent that pushes, and its ledger."""
    ledger = open_ledger("agent")
    with Pushing(ledger).agent as running:
        yield running, ledger


def pushes(ledger: ContractLedger) -> list[Record]:
    return [record for record in only(ledger, "message.recorded") if record.data["leg"] == "push"]


async def wait_for_pushes(ledger: ContractLedger, state: str) -> list[Record]:
    for _ in range(3000):
        if any(record.data.get("state_read") == state for record in pushes(ledger)):
            break
        await asyncio.sleep(0.01)
    return pushes(ledger)


@pytest.mark.parametrize("agreed", ["token", "credentials", "both"])
async def test_both_sides_record_the_same_pushes_in_the_same_task(
    pushing: tuple[Agent, ContractLedger], open_ledger: OpenLedger, agreed: str
) -> None:
    agent, theirs = pushing
    ours = open_ledger("client", mode="enforce")
    handled: list[bytes] = []

    async def handle(body: bytes) -> None:
        handled.append(body)

    with Serving(PushReceiver(ours, [agent.url + WELL_KNOWN], handle), lifespan=False) as webhook:
        async with guard(ours) as guarded:
            client = await guarded.create_client(agent.url)
            config = TaskPushNotificationConfig(url=webhook.url + "/hook")
            if agreed != "credentials":
                config.token = TOKEN
            if agreed != "token":
                config.authentication.CopyFrom(AuthenticationInfo(scheme="Bearer", credentials=CREDENTIALS))
            request = SendMessageRequest(
                message=new_text_message("slow", role=Role.ROLE_USER),
                configuration=SendMessageConfiguration(task_push_notification_config=config, return_immediately=True),
            )
            async for _ in client.send_message(request):
                pass
            received = await wait_for_pushes(ours, "completed")
    sent = pushes(theirs)
    assert [r.content("body") for r in received] == handled
    assert sorted(r.content("body") or b"" for r in sent) == sorted(handled)
    assert {str(r.data["direction"]) for r in received} == {"in"}
    assert {str(r.data["direction"]) for r in sent} == {"out"}
    assert {r.stream for r in received} == {r.stream for r in only(ours, "contract.captured")}
    assert {r.stream for r in sent} == {r.stream for r in only(theirs, "contract.captured")}
    assert all(holding(ledger, secret) == [] for ledger in (ours, theirs) for secret in (TOKEN, CREDENTIALS))
    for ledger in (ours, theirs):
        verifier = follower(ledger)
        verifier.catch_up()
        assert verifier.could_not_verify == 0
        assert only(ledger, "violation.detected") == []


async def test_a_push_whose_task_is_named_while_it_is_looked_for_is_in_that_task(
    pushing: tuple[Agent, ContractLedger], open_ledger: OpenLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, _ = pushing
    ours = open_ledger("client")
    find_task, asked = ours.find_task, list[str]()

    def just_before_the_answer(peer: str, task_id: str) -> str | None:
        asked.append(task_id)
        return None if len(asked) == 1 else find_task(peer, task_id)

    async with guard(ours) as guarded:
        client = await guarded.create_client(agent.url)
        config = TaskPushNotificationConfig(url="http://127.0.0.1:9/hook", token=TOKEN)
        configuration = SendMessageConfiguration(task_push_notification_config=config)
        request = SendMessageRequest(
            message=new_text_message("hello", role=Role.ROLE_USER), configuration=configuration
        )
        async for _ in client.send_message(request):
            pass
    task_id = str(only(ours, "task.bound")[0].data["task_id"])
    monkeypatch.setattr(ours, "find_task", just_before_the_answer)
    with Serving(PushReceiver(ours, [agent.url + WELL_KNOWN]), lifespan=False) as webhook:
        push = {"task": {"id": task_id, "contextId": "C", "status": {"state": "TASK_STATE_COMPLETED"}}}
        async with httpx.AsyncClient() as http:
            headers = {"X-A2A-Notification-Token": TOKEN}
            answer = await http.post(webhook.url, content=json.dumps(push), headers=headers)
    assert answer.status_code == 204
    assert [record.stream for record in pushes(ours)] == [only(ours, "contract.captured")[0].stream]


async def test_another_task_that_is_saved_meanwhile_is_not_the_one_that_is_served(open_ledger: OpenLedger) -> None:
    ledger = open_ledger("agent")
    store = RecordedTaskStore(InMemoryTaskStore(), ledger, f"https://agent.example{WELL_KNOWN}")
    opened, named = f"task:{ledger.new_task()}", f"task:{ledger.new_task()}"
    ledger.append([ledger.draft(TaskSnapshot(peer="0" * 32, task_id="-"), stream=one) for one in (opened, named)])
    states = (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING, TaskState.TASK_STATE_COMPLETED)
    for served, names in (
        (ServedRequest(opened, None), ("A", "CHILD", "A")),
        (ServedRequest(named, "B"), ("CHILD", "B")),
    ):
        token = being_served.set(served)
        for number, name in enumerate(names):
            task = Task(id=name, status=TaskStatus(state=states[number]))
            await store.save(task, ServerCallContext())
        being_served.reset(token)
    saved = [(str(r.data["task_id"]), r.stream) for r in only(ledger, "task.snapshot") if r.data["task_id"] != "-"]
    peer = next(stream for name, stream in saved if name == "CHILD")
    assert peer.startswith("peer:")
    assert saved == [("A", opened), ("CHILD", peer), ("A", opened), ("CHILD", peer), ("B", named)]


async def test_each_state_that_is_saved_is_recorded_once(
    pushing: tuple[Agent, ContractLedger], open_ledger: OpenLedger
) -> None:
    agent, theirs = pushing
    async with guard(open_ledger("client")) as guarded:
        client = await guarded.create_client(agent.url)
        async for _ in client.send_message(SendMessageRequest(message=new_text_message("chunks", role=Role.ROLE_USER))):
            pass
    saved = only(theirs, "task.snapshot")
    bodies = [r.content("body") for r in saved]
    assert len(bodies) == len(set(bodies)) > 3
    assert [r.data["state_read"] for r in saved][-1] == "completed"
    assert {r.stream for r in saved} == {only(theirs, "contract.captured")[0].stream}


@pytest.mark.parametrize("later", [0, 600, 1200])
@pytest.mark.parametrize(("token", "flag"), [("another-token-than-agreed", "token-differs"), ("", "token-missing")])
async def test_a_push_without_the_agreed_token_is_nobodys_word(
    open_ledger: OpenLedger, pushing: tuple[Agent, ContractLedger], token: str, flag: str, later: int
) -> None:
    agent, _ = pushing
    ours = open_ledger("client")  # however much was recorded of the task since its token was agreed
    handled: list[bytes] = []

    async def handle(body: bytes) -> None:
        handled.append(body)

    with Serving(PushReceiver(ours, [agent.url + WELL_KNOWN], handle), lifespan=False) as webhook:
        async with guard(ours) as guarded:
            client = await guarded.create_client(agent.url)
            config = TaskPushNotificationConfig(url=webhook.url + "/hook", token=TOKEN)
            request = SendMessageRequest(
                message=new_text_message("hello", role=Role.ROLE_USER),
                configuration=SendMessageConfiguration(task_push_notification_config=config),
            )
            async for _ in client.send_message(request):
                pass
        await wait_for_pushes(ours, "completed")
        before, count = len(handled), len(pushes(ours))
        (bound,) = only(ours, "task.bound")
        task_id = str(bound.data["task_id"])
        held = TaskSnapshot(peer=str(bound.data["peer"]), task_id=task_id, state_read="working")
        ours.append([ours.draft(held, stream=bound.stream) for _ in range(later)])
        forged = {"task": {"id": task_id, "contextId": "C", "status": {"state": "TASK_STATE_FAILED"}}}
        headers = {"X-A2A-Notification-Token": token} if token else {}
        async with httpx.AsyncClient() as http:
            answer = await http.post(webhook.url + "/hook", content=json.dumps(forged), headers=headers)
    assert answer.status_code == 401
    assert len(handled) == before
    assert len(pushes(ours)) == count + 1
    forgery = pushes(ours)[-1]
    assert forgery.stream.startswith("peer:")
    assert flag in json.dumps(forgery.data["flags"])
    verifier = follower(ours)
    verifier.catch_up()
    assert only(ours, "violation.detected") == []
