"""Whose a push is takes reading all that was recorded of its task: off the event loop, and in the order it came."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import httpx
import pytest

from a2a_ledger.capture.attribution import peer_of_card
from a2a_ledger.capture.server.pushes import PushReceiver
from a2a_ledger.events import TaskBound
from tests.proxy.conftest import only

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger import ContractLedger
    from a2a_ledger.codec import Record
    from a2a_ledger.events import Ref
    from tests.proxy.conftest import OpenLedger

CARD_URL = "https://vendor.example/.well-known/agent-card.json"
HOOK = "https://us.example/hook"
ANSWERED: Ref = {"c": "0" * 64, "stream": "task:before", "ver": 0}

FORKING = """
import asyncio, os, signal, sys
import httpx
from a2a_ledger import ContractLedger
from a2a_ledger.capture.server.pushes import PushReceiver
receiver = PushReceiver(ContractLedger.open(sys.argv[1]), ["https://vendor.example/.well-known/agent-card.json"])
async def push():
    async with httpx.AsyncClient(transport=httpx.ASGITransport(receiver)) as sender:
        update = {"statusUpdate": {"taskId": "T1", "status": {"state": "TASK_STATE_WORKING"}}}
        return (await sender.post("https://us.example/hook", json=update)).status_code
print("parent", asyncio.run(push()), flush=True)
child = os.fork()
if child == 0:
    signal.alarm(20)
    print("child", asyncio.run(push()), flush=True)
    os._exit(0)
print(os.waitpid(child, 0)[1], flush=True)
"""


class Held:
    """Holds the first reading of a task until the test lets it go on, and notes who reads."""

    def __init__(self, ledger: ContractLedger, monkeypatch: pytest.MonkeyPatch) -> None:
        self.began, self.goes_on = asyncio.Event(), threading.Event()
        self.readers: set[threading.Thread] = set()
        read, loop = ledger.store.read_stream, asyncio.get_running_loop()

        def held(stream: str, *, gt: int | None = None, limit: int | None = None, desc: bool = False) -> list[Record]:
            self.readers.add(threading.current_thread())
            loop.call_soon_threadsafe(self.began.set)
            assert self.goes_on.wait(10)
            return read(stream, gt=gt, limit=limit, desc=desc)

        monkeypatch.setattr(ledger.store, "read_stream", held)


def with_tasks(ledger: ContractLedger, *names: str) -> dict[str, str]:
    """Record that the peer has tasks of these names, and return their streams."""
    peer, streams = peer_of_card(CARD_URL).id, {name: f"task:{ledger.new_task()}" for name in names}
    ledger.append(
        [
            ledger.draft(TaskBound(peer=peer, task_id=name, answers=ANSWERED), stream=stream)
            for name, stream in streams.items()
        ]
    )
    return streams


def pushed(ledger: ContractLedger) -> list[str]:
    return [record.stream for record in only(ledger, "message.recorded") if record.data["leg"] == "push"]


async def push(receiver: PushReceiver, task: str) -> int:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(receiver)) as sender:
        update = {"statusUpdate": {"taskId": task, "contextId": "C", "status": {"state": "TASK_STATE_WORKING"}}}
        return (await sender.post(HOOK, json=update)).status_code


async def test_pushes_are_recorded_and_answered_in_their_order_however_much_is_read_for_one(
    open_ledger: OpenLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, handled = open_ledger("client"), list[bytes]()
    streams = with_tasks(ledger, "T1", "T2")

    async def handle(body: bytes) -> None:
        handled.append(body)

    receiver = PushReceiver(ledger, [CARD_URL], handle)
    held = Held(ledger, monkeypatch)
    first = asyncio.create_task(push(receiver, "T1"))
    await held.began.wait()  # on the loop, which goes on
    others = [asyncio.create_task(push(receiver, task)) for task in ("T2", "T1", "unknown", "T2")]
    overtaking, _ = await asyncio.wait(others, timeout=0.2)
    assert (overtaking, pushed(ledger)) == (set(), [])
    held.goes_on.set()
    assert await asyncio.gather(first, *others) == [204, 204, 204, 404, 204]
    theirs = f"peer:{peer_of_card(CARD_URL).id}"
    assert pushed(ledger) == [streams["T1"], streams["T2"], streams["T1"], theirs, streams["T2"]]
    assert [b'"T1"' in body for body in handled] == [True, False, True, False]
    assert len(held.readers) == 1
    assert threading.main_thread() not in held.readers


async def test_a_push_whose_sender_goes_away_while_it_is_judged_is_recorded_and_not_handled(
    open_ledger: OpenLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, handled = open_ledger("client"), list[bytes]()
    streams = with_tasks(ledger, "T1", "T2")

    async def handle(body: bytes) -> None:
        handled.append(body)

    receiver = PushReceiver(ledger, [CARD_URL], handle)
    held = Held(ledger, monkeypatch)
    leaving = asyncio.create_task(push(receiver, "T1"))
    await held.began.wait()
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    staying = asyncio.create_task(push(receiver, "T2"))
    held.goes_on.set()
    assert await staying == 204
    assert pushed(ledger) == [streams["T1"], streams["T2"]]
    assert [b'"T2"' in body for body in handled] == [True]


def test_a_forked_child_judges_pushes_of_its_own(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKING, str(tmp_path / "audit")],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")},
    )
    assert done.stdout.splitlines() == ["parent 404", "child 404", "0"]
