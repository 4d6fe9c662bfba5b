"""An event loop that ends with a request under way: what was recorded of it has an outcome."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import httpx
import pytest

from a2a_ledger import Guard
from a2a_ledger.capture.loop_thread import LoopThread
from a2a_ledger.capture.whole import Underway
from tests.capture.conftest import only
from tests.capture.peer import CARD_URL, URL, Peer, card

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_ledger.codec import Draft
    from a2a_ledger.store import Appended
    from tests.capture.conftest import OpenLedger

ASKED = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "T1"}}


@pytest.mark.parametrize("given_up", [1, 2], ids=["by-the-loop", "by-its-caller-and-then-the-loop"])
def test_a_request_whose_record_was_being_written_is_recorded_as_never_sent(
    open_ledger: OpenLedger, monkeypatch: pytest.MonkeyPatch, given_up: int
) -> None:
    """The record is in the log already when the loop cancels everything, and whoever waits for it is not told yet."""
    ledger, peer = open_ledger(), Peer(card(), lambda _: httpx.Response(404))
    guard, append = Guard(ledger), ledger.append_async

    async def use() -> None:
        written = asyncio.Event()

        async def late(drafts: Sequence[Draft]) -> list[Appended]:
            appended = await append(drafts)
            if not written.is_set():
                written.set()
                await asyncio.sleep(0.05)
            return appended

        client = guard.httpx_client(peer)
        await client.get(CARD_URL)
        monkeypatch.setattr(ledger, "append_async", late)
        asking = asyncio.ensure_future(client.post(URL, json=ASKED))
        await written.wait()
        for _ in range(given_up - 1):
            asking.cancel()
            await asyncio.sleep(0)

    asyncio.run(use())
    assert [request.method for request in peer.asked] == ["GET"]
    sent, outcome = only(ledger, "message.recorded")
    assert (sent.data["leg"], outcome.data["leg"], outcome.data["error_kind"]) == ("request", "error", "cancelled")


def test_what_was_begun_is_done_when_the_thread_of_a_loop_is_closed() -> None:
    thread, began, done = LoopThread(), threading.Event(), list[str]()

    async def write() -> None:
        began.set()
        await asyncio.sleep(0.05)
        done.append("written")

    async def ask() -> None:
        await asyncio.shield(Underway().begin(write()))

    def wait() -> None:
        try:
            thread.run(ask())
        except asyncio.CancelledError:
            done.append("told")

    waiter = threading.Thread(target=wait)
    waiter.start()
    assert began.wait(10)
    thread.close()
    assert "written" in done
    waiter.join()
