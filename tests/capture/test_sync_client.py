"""A synchronous `httpx.Client` under the guard: the same decisions, captures and records, from any thread."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import httpx
import pytest

from a2a_ledger import Guard
from a2a_ledger.capture.loop_thread import LoopThread
from a2a_ledger.capture.sync import ClientOnThread
from a2a_ledger.errors import ContractChangedError, ContractDivergenceError
from a2a_ledger_projections.verifier import follower
from tests.capture.conftest import STALE, only, tasks, types
from tests.capture.peer import CARD_URL, URL, Chunks, Peer, Tagged, card, event, message, with_key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from a2a_ledger import ContractLedger
    from tests.capture.agent import Agent
    from tests.capture.conftest import OpenLedger

CARD_PATH = "/.well-known/agent-card.json"
VERSION = {"A2A-Version": "1.0"}


FORKING = """
import os, signal, sys
import httpx
from a2a_ledger import ContractLedger, Guard
from a2a_ledger.errors import UsageError
guard = Guard(ContractLedger.open(sys.argv[1]))
absent = httpx.MockTransport(lambda _: httpx.Response(404))
client = guard.sync_httpx_client(absent)
client.get("https://vendor.example/.well-known/agent-card.json")
child = os.fork()
if child == 0:
    signal.alarm(10)
    try:
        client.get("https://vendor.example/x")
    except UsageError as error:
        print(f"UsageError: {error}".splitlines()[0], flush=True)
    client.close()
    mine = guard.sync_httpx_client(absent)
    print("child", mine.get("https://vendor.example/x").status_code, flush=True)
    guard.close()
    os._exit(0)
print(os.waitpid(child, 0)[1], flush=True)
print("parent", client.get("https://vendor.example/x").status_code)
guard.close()
"""


def call(text: str, method: str = "SendMessage") -> dict[str, Any]:
    sent = {"messageId": str(uuid4()), "role": "ROLE_USER", "parts": [{"text": text}]}
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"message": sent}}


def get_task(task: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 2, "method": "GetTask", "params": {"id": task}}


@pytest.fixture
def ledger(open_ledger: OpenLedger) -> ContractLedger:
    return open_ledger(mode="enforce", limits=STALE)


@pytest.fixture
def client(agent: Agent, ledger: ContractLedger) -> Iterator[httpx.Client]:
    with closing(Guard(ledger)) as guard, guard.sync_httpx_client(base_url=agent.url, headers=VERSION) as opened:
        yield opened


def test_a_conversation_is_recorded_as_over_an_asynchronous_client(
    client: httpx.Client, ledger: ContractLedger
) -> None:
    assert client.get(CARD_PATH).json()["name"] == "Echo"
    task = client.post("/rpc", json=call("hello")).json()["result"]["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert client.post("/rpc", json=get_task(task["id"])).json()["result"]["id"] == task["id"]
    (stream,) = tasks(ledger)
    assert types(ledger.store.read_stream(stream)) == [
        "freshness.decided",
        "contract.captured",
        "message.recorded",
        "message.recorded",
        "task.bound",
        "message.recorded",
        "message.recorded",
    ]
    assert [record.data["purpose"] for record in only(ledger, "card.fetched")] == ["discovery", "pre-send"]


def test_a_changed_contract_stops_the_send(client: httpx.Client, ledger: ContractLedger, agent: Agent) -> None:
    client.get(CARD_PATH)
    agent.require_oauth()
    with pytest.raises(ContractChangedError):
        client.post("/rpc", json=call("hello"))
    assert agent.posts == 0
    assert len(only(ledger, "send.aborted")) == 1


def test_the_card_is_asked_for_again_as_the_client_would_now(client: httpx.Client, agent: Agent) -> None:
    client.headers["authorization"] = "Bearer first-token"
    client.get(CARD_PATH)
    client.headers["authorization"] = "Bearer second-token"
    client.post("/rpc", json=call("hello"))
    asked = [headers["authorization"] for method, _, headers in agent.wire.seen if method == "GET"]
    assert asked == ["Bearer first-token", "Bearer second-token"]


def test_a_stream_passes_live_and_leaving_it_is_recorded(client: httpx.Client, ledger: ContractLedger) -> None:
    client.get(CARD_PATH)
    accept = {"accept": "text/event-stream"}
    with client.stream("POST", "/rpc", json=call("chunks", "SendStreamingMessage"), headers=accept) as whole:
        lines = [line for line in whole.iter_lines() if line.startswith("data:")]
    with client.stream("POST", "/rpc", json=call("wait", "SendStreamingMessage"), headers=accept) as left:
        next(left.iter_lines())
    ends = [record.data for record in only(ledger, "message.recorded") if record.data["leg"] == "stream-end"]
    assert [end.get("error_kind") for end in ends] == [None, "closed-by-caller"]
    assert ends[0]["sequence"] == len(lines)


def test_threads_share_one_client(client: httpx.Client, ledger: ContractLedger) -> None:
    client.get(CARD_PATH)
    together = threading.Barrier(8)

    def one(number: int) -> str:
        together.wait()
        states = [
            client.post("/rpc", json=call(f"{number}.{turn}")).json()["result"]["task"]["status"]["state"]
            for turn in range(3)
        ]
        return " ".join(sorted(set(states)))

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(one, range(8))) == {"TASK_STATE_COMPLETED"}
    assert len(only(ledger, "contract.captured")) == 24
    verifier = follower(ledger)
    verifier.catch_up()
    assert (verifier.could_not_verify, only(ledger, "violation.detected")) == (0, [])


class NeedsAWorker(Tagged):
    """Needs a worker of its event loop for each card, as a look-up of the host's name does."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            await asyncio.to_thread(len, "vendor.example")
        return await super().handle_async_request(request)


def test_more_waiting_sends_than_the_loop_has_workers_hold_none_of_them(open_ledger: OpenLedger) -> None:
    ledger, many = open_ledger(mode="enforce", limits=STALE), 40  # asyncio has 32 workers at most
    peer, together = NeedsAWorker(card(), lambda _: httpx.Response(200)), threading.Barrier(many)

    def one(client: httpx.Client, number: int) -> str:
        together.wait()
        try:
            client.post(URL, json=message(f"m{number}"))
        except ContractChangedError:
            return "stopped"
        return "sent"

    with closing(Guard(ledger)) as guard, guard.sync_httpx_client(peer) as client:
        client.get(CARD_URL)
        peer.served = with_key("header", "X-Key")
        with ThreadPoolExecutor(many) as pool:
            assert list(pool.map(one, [client] * many, range(many))) == ["stopped"] * many
    assert [request.method for request in peer.asked if request.method != "GET"] == []


def test_more_questions_than_the_loop_has_workers_hold_none_of_them() -> None:
    thread = LoopThread()

    async def look_up() -> httpx.Response:
        return httpx.Response(await asyncio.to_thread(len, "x" * 200))

    async def ask(client: httpx.Client) -> list[int]:
        asking = ClientOnThread(client)
        async with asyncio.timeout(5):
            answers = await asyncio.gather(*(asking.send(httpx.Request("GET", CARD_URL)) for _ in range(40)))
        return [answer.status_code for answer in answers]

    with httpx.Client(transport=httpx.MockTransport(lambda _: thread.run(look_up()))) as client:
        assert thread.run(ask(client)) == [200] * 40
    thread.close()


def test_what_leaves_the_contract_raises_and_is_read_to_its_end(open_ledger: OpenLedger) -> None:
    ledger = open_ledger(mode="enforce")
    moved = httpx.Response(307, headers={"location": "https://elsewhere.example/rpc"})
    peer = Peer(card(), lambda _: moved)
    with closing(Guard(ledger)) as guard, guard.sync_httpx_client(peer) as client:
        client.get(CARD_URL)
        with pytest.raises(ContractDivergenceError, match="interface-drift"):
            client.post(URL, json=message("m1"))
    assert [record.data["leg"] for record in only(ledger, "message.recorded")] == ["request", "response"]


def test_a_failure_in_a_stream_reaches_the_caller_and_the_record(open_ledger: OpenLedger) -> None:
    ledger = open_ledger()
    pieces = Chunks(event("WORKING"), httpx.ReadError("gone"))
    streamed = httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=pieces)
    with closing(Guard(ledger)) as guard, guard.sync_httpx_client(Peer(card(), lambda _: streamed)) as client:
        client.get(CARD_URL)
        with pytest.raises(httpx.ReadError), client.stream("POST", URL, json=message("m1")) as answer:
            list(answer.iter_bytes())
    end = only(ledger, "message.recorded")[-1].data
    assert (end["leg"], end["error_kind"], end["sequence"]) == ("stream-end", "closed", 1)


def test_the_thread_ends_with_the_guard(open_ledger: OpenLedger) -> None:
    guard = Guard(open_ledger())
    client = guard.sync_httpx_client(Peer(card(), lambda _: httpx.Response(404)))
    client.get(CARD_URL)
    assert any(thread.name == "a2a-ledger-sync" for thread in threading.enumerate())
    guard.close()
    client.close()
    assert not any(thread.name == "a2a-ledger-sync" for thread in threading.enumerate())


def test_a_caller_that_is_interrupted_cancels_what_it_waits_for() -> None:
    thread, ended = LoopThread(), threading.Event()

    async def long() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            ended.set()

    def interrupt(_: int, __: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            thread.run(long())
    finally:
        signal.signal(signal.SIGALRM, before)
    assert ended.wait(5)
    thread.close()


def test_a_forked_child_is_told_and_makes_clients_of_its_own(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKING, str(tmp_path / "audit")],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")},
    )
    told, own, status, parent = done.stdout.splitlines()
    assert told.startswith("UsageError: expected a guarded client of this process")
    assert (own, status, parent) == ("child 404", "0", "parent 404")


def test_the_task_of_the_context_counts_on_the_thread_too(open_ledger: OpenLedger) -> None:
    ledger = open_ledger()
    said = httpx.Response(200, json={"jsonrpc": "2.0", "id": 1, "result": {"task": {"id": "T1", "status": {}}}})
    with closing(Guard(ledger)) as guard, guard.sync_httpx_client(Peer(card(), lambda _: said)) as client:
        client.get(CARD_URL)
        with ledger.task() as task:
            client.post(URL, json=message("m1"))
            client.post(URL, json=message("m2"))
    assert tasks(ledger) == [f"task:{task}"]
