"""A guard that is closed while its synchronous clients are used: they are told as httpx would tell them."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

import httpx
import pytest

from a2a_ledger import Guard
from a2a_ledger.capture.loop_thread import LoopThread
from a2a_ledger.errors import UsageError
from tests.capture.conftest import only
from tests.capture.peer import CARD_URL, URL, Peer, card, event, message, said

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from a2a_ledger import ContractLedger
    from tests.capture.conftest import OpenLedger

STREAM = {"content-type": "text/event-stream"}


class Silent(Peer):
    """Never answers a call, and says when it was asked."""

    def __init__(self) -> None:
        super().__init__(card(), lambda _: httpx.Response(200))
        self.waits = threading.Event()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answer = await super().handle_async_request(request)
        if request.method == "POST":
            self.waits.set()
            await asyncio.Event().wait()
        return answer


class Unending(httpx.AsyncByteStream):
    """Two events, and then nothing."""

    def __init__(self) -> None:
        self.waits = threading.Event()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield event("SUBMITTED")
        yield event("WORKING")
        self.waits.set()
        await asyncio.Event().wait()


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "a2a-ledger-sync"]


def legs(ledger: ContractLedger) -> list[tuple[object, object]]:
    return [(record.data["leg"], record.data.get("error_kind")) for record in only(ledger, "message.recorded")]


def test_who_waits_for_an_answer_gets_an_error_of_httpx(open_ledger: OpenLedger) -> None:
    ledger, peer = open_ledger(), Silent()
    guard = Guard(ledger)
    client = guard.sync_httpx_client(peer)
    client.get(CARD_URL)
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(client.post, URL, json=message("m1"))
        assert peer.waits.wait(10)
        guard.close()
        error = asking.exception(10)
    assert isinstance(error, httpx.ReadError)
    assert str(error.request.url) == URL
    assert legs(ledger) == [("request", None), ("error", "cancelled")]
    assert threads() == []


def test_who_waits_for_a_piece_of_a_stream_gets_an_error_of_httpx(open_ledger: OpenLedger) -> None:
    ledger, body = open_ledger(), Unending()
    guard = Guard(ledger)
    client = guard.sync_httpx_client(Peer(card(), lambda _: httpx.Response(200, headers=STREAM, stream=body)))
    client.get(CARD_URL)

    def read() -> None:
        with client.stream("POST", URL, json=message("m1")) as answer:
            for _ in answer.iter_bytes():
                pass

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read)
        assert body.waits.wait(10)
        guard.close()
        assert isinstance(reading.exception(10), httpx.ReadError)
    events = [("stream-event", None)] * 2
    assert legs(ledger) == [("request", None), *events, ("stream-end", "closed-by-caller")]
    assert threads() == []


@pytest.mark.parametrize("read", [0, 1])
def test_a_stream_that_nobody_reads_just_now_is_closed_with_the_guard(open_ledger: OpenLedger, read: int) -> None:
    ledger, body = open_ledger(), Unending()
    guard = Guard(ledger)
    client = guard.sync_httpx_client(Peer(card(), lambda _: httpx.Response(200, headers=STREAM, stream=body)))
    client.get(CARD_URL)
    with client.stream("POST", URL, json=message("m1")) as answer:
        pieces = answer.iter_bytes()
        for _ in range(read):
            next(pieces)
        guard.close()
        recorded = legs(ledger)
        with pytest.raises(httpx.ReadError, match="was closed"):
            next(pieces)
    assert recorded == [("request", None), *[("stream-event", None)] * read, ("stream-end", "closed-by-caller")]
    assert legs(ledger) == recorded
    assert threads() == []


def test_a_stream_that_another_thread_closes_is_not_taken_for_a_whole_one(open_ledger: OpenLedger) -> None:
    ledger, body = open_ledger(), Unending()
    with closing(Guard(ledger)) as guard:
        client = guard.sync_httpx_client(Peer(card(), lambda _: httpx.Response(200, headers=STREAM, stream=body)))
        client.get(CARD_URL)
        answer = client.send(client.build_request("POST", URL, json=message("m1")), stream=True)
        with ThreadPoolExecutor(1) as pool:
            reading = pool.submit(answer.read)
            assert body.waits.wait(10)
            answer.close()
            assert isinstance(reading.exception(10), httpx.ReadError)
    events = [("stream-event", None)] * 2
    assert legs(ledger) == [("request", None), *events, ("stream-end", "closed-by-caller")]


def test_an_answer_that_came_whole_can_be_read_when_the_guard_is_closed(open_ledger: OpenLedger) -> None:
    guard = Guard(open_ledger())
    client = guard.sync_httpx_client(Peer(card(), lambda _: httpx.Response(200, json=said("hello"))))
    client.get(CARD_URL)
    with client.stream("POST", URL, json=message("m1")) as answer:
        guard.close()
        assert "hello" in answer.read().decode()


def test_a_client_of_a_closed_guard_is_told_and_another_one_can_be_made(open_ledger: OpenLedger) -> None:
    ledger = open_ledger()
    guard = Guard(ledger)
    before = guard.sync_httpx_client(Peer(card(), lambda _: httpx.Response(404)))
    before.get(CARD_URL)
    guard.close()
    with pytest.raises(UsageError, match="guard was closed"):
        before.post(URL, json=message("m1"))
    assert threads() == []
    after = guard.sync_httpx_client(Peer(card(), lambda _: httpx.Response(404)))
    assert after.post(URL, json=message("m2")).status_code == 404
    guard.close()
    guard.close()
    assert legs(ledger) == [("request", None), ("response", None)]
    assert threads() == []


def test_what_is_asked_while_the_thread_ends_is_refused_and_not_waited_for() -> None:
    thread, began = LoopThread(), threading.Event()
    ending, goes_on = threading.Event(), threading.Event()

    async def ends_late() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ending.set()
            await asyncio.to_thread(goes_on.wait, 10)

    async def nothing() -> None:
        pass

    with ThreadPoolExecutor(2) as pool:
        late = pool.submit(thread.run, ends_late())
        assert began.wait(10)
        closes = pool.submit(thread.close)
        assert ending.wait(10)
        with pytest.raises(UsageError, match="guard was closed"):
            thread.run(nothing())
        thread.finish(nothing())
        goes_on.set()
        closes.result(10)
        assert isinstance(late.exception(10), asyncio.CancelledError)


def test_what_fails_to_close_keeps_nothing_else_open(caplog: pytest.LogCaptureFixture) -> None:
    thread, closed = LoopThread(), list[str]()

    class Open:
        def __init__(self, name: str) -> None:
            self.name = name

        async def let_go(self) -> None:
            closed.append(self.name)
            raise OSError(f"{self.name} was gone")

    several = [Open("one"), Open("two")]

    async def hold() -> None:
        for one in several:
            thread.hold(one)

    thread.run(hold())
    thread.close()
    assert sorted(closed) == ["one", "two"]
    assert sorted(record.getMessage().rsplit(": ", 1)[1] for record in caplog.records) == [
        "one was gone",
        "two was gone",
    ]
    assert threads() == []
