"""Large messages: they are unpacked, read and redacted in threads, and every record stays whole and in order."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
import zlib
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from a2a_ledger import Guard
from a2a_ledger.capture import arrival, attribution, leaving, redacted, resends
from a2a_ledger.capture import exchange as exchanges
from a2a_ledger.capture.asgi import ContractLedgerMiddleware
from a2a_ledger.capture.proxy.addresses import Addresses
from a2a_ledger.capture.proxy.recording import ProxyTransport
from a2a_ledger.capture.redact import cut
from a2a_ledger.capture.server.pushes import PushReceiver, PushTransport
from a2a_ledger.divergence import judge
from a2a_ledger.wire import message_digest
from tests.capture.conftest import only
from tests.capture.peer import CARD_URL, ORIGIN, URL, Chunks, Peer, card, event, message, said

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from a2a_ledger import ContractLedger
    from a2a_ledger.codec import Record
    from a2a_ledger.divergence import Finding
    from tests.capture.conftest import OpenLedger

LARGE = json.dumps(said("a word and so on, " * 20_000)).encode()
SMALL = json.dumps(said("a word")).encode()
JSON, GZIP = ("content-type", "application/json"), ("content-encoding", "gzip")
COOKIES = [("set-cookie", f"name-{number}=value-of-{number}; Path=/") for number in range(1000)]
OF_LOOP = threading.main_thread()


class Watch:
    """Notes which kinds of work are done in which thread."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.here: set[str] = set()
        self.elsewhere: set[str] = set()
        self._much = 100_000
        monkeypatch.setattr(json, "loads", self._noting("parse", json.loads))
        monkeypatch.setattr(redacted, "cut", self._noting("redact", cut, at=1))
        inflate = zlib.decompressobj

        def inflating(wbits: int) -> object:
            self._note("unpack")
            return inflate(wbits=wbits)

        monkeypatch.setattr(zlib, "decompressobj", inflating)

    def _noting(self, what: str, work: Callable[..., object], *, at: int = 0) -> Callable[..., object]:
        def noted(*args: Any, **options: Any) -> object:  # noqa: ANN401 - of what it stands for
            if len(args[at]) > self._much or COOKIES[0][1] in str(args[2:3]):
                self._note(what)
            return work(*args, **options)

        return noted

    def _note(self, what: str) -> None:
        (self.here if threading.current_thread() is OF_LOOP else self.elsewhere).add(what)


async def by_client(ledger: ContractLedger, headers: list[tuple[str, str]], body: bytes) -> None:
    peer = Peer(card(), lambda _: httpx.Response(200, headers=headers, stream=Chunks(body)))
    async with Guard(ledger).httpx_client(peer) as client:
        await client.get(CARD_URL)
        await client.post(URL, json=message("m1"), headers={"a2a-version": "1.0"})


async def by_proxy(ledger: ContractLedger, headers: list[tuple[str, str]], body: bytes) -> None:
    peer = Peer(card(), lambda _: httpx.Response(200, headers=headers, stream=Chunks(body)))
    proxy = ProxyTransport.over(peer, ledger, Addresses(ORIGIN, "http://proxy.example"), rewrites=False)
    asked = httpx.AsyncClient(transport=proxy).stream("POST", URL, json=message("m1"), headers={"a2a-version": "1.0"})
    async with asked as answer:
        assert b"".join([octets async for octets in answer.aiter_raw()]) == body


async def by_server(ledger: ContractLedger, headers: list[tuple[str, str]], body: bytes) -> None:
    async def agent(
        _: MutableMapping[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
    ) -> None:
        await receive()
        raw = [(name.encode(), value.encode()) for name, value in headers]
        await send({"type": "http.response.start", "status": 200, "headers": raw})
        await send({"type": "http.response.body", "body": body})

    app = ContractLedgerMiddleware(agent, ledger, CARD_URL)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app)).stream("POST", URL, json=message("m1")):
        pass


async def of_server(ledger: ContractLedger, headers: list[tuple[str, str]], body: bytes) -> None:
    async def agent(
        _: MutableMapping[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
    ) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    app = ContractLedgerMiddleware(agent, ledger, CARD_URL)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as client:
        await client.post(URL, content=body, headers=headers)


async def of_client(ledger: ContractLedger, headers: list[tuple[str, str]], body: bytes) -> None:
    peer = Peer(card(), lambda _: httpx.Response(200, headers=[JSON], content=SMALL))
    async with Guard(ledger).httpx_client(peer) as client:
        await client.post(URL, content=body, headers=headers)


async def of_receiver(ledger: ContractLedger, headers: list[tuple[str, str]], body: bytes) -> None:
    app = PushReceiver(ledger, [CARD_URL])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as client:
        await client.post(URL, content=body, headers=headers)


async def of_sender(ledger: ContractLedger, headers: list[tuple[str, str]], body: bytes) -> None:
    peer = Peer(card(), lambda _: httpx.Response(204))
    async with httpx.AsyncClient(transport=PushTransport(ledger, CARD_URL, peer)) as client:
        await client.post(URL, content=body, headers=headers)


WAYS = [by_client, by_proxy, by_server, of_server, of_client, of_receiver, of_sender]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", ["observe", "enforce"])
async def test_a_large_message_is_worked_on_in_a_thread(
    open_ledger: OpenLedger, monkeypatch: pytest.MonkeyPatch, way: Callable[..., Awaitable[None]], mode: str
) -> None:
    ledger, watch = open_ledger(mode=mode), Watch(monkeypatch)
    await way(ledger, [JSON, GZIP], gzip.compress(LARGE, compresslevel=0))
    assert watch.here == set()
    assert watch.elsewhere == {"unpack", "parse", "redact"}
    assert LARGE in [record.content("body") for record in only(ledger, "message.recorded")]


@pytest.mark.parametrize("way", WAYS)
async def test_a_small_message_is_worked_on_where_it_is(
    open_ledger: OpenLedger, monkeypatch: pytest.MonkeyPatch, way: Callable[..., Awaitable[None]]
) -> None:
    ledger, watch = open_ledger(), Watch(monkeypatch)
    await way(ledger, [JSON, GZIP], gzip.compress(SMALL))
    assert (watch.here, watch.elsewhere) == ({"unpack"}, set())
    assert SMALL in [record.content("body") for record in only(ledger, "message.recorded")]


@pytest.mark.parametrize("way", WAYS)
async def test_a_small_body_beside_a_thousand_cookies_is_worked_on_in_a_thread(
    open_ledger: OpenLedger, monkeypatch: pytest.MonkeyPatch, way: Callable[..., Awaitable[None]]
) -> None:
    ledger, watch = open_ledger(), Watch(monkeypatch)
    await way(ledger, [JSON, *COOKIES], SMALL)
    assert (watch.here, watch.elsewhere) == (set(), {"redact"})


@pytest.mark.parametrize("way", [of_client, of_server])
async def test_what_a_large_send_says_is_digested_in_a_thread(
    open_ledger: OpenLedger, monkeypatch: pytest.MonkeyPatch, way: Callable[..., Awaitable[None]]
) -> None:
    sent = message("m1")
    sent["params"]["message"]["parts"] = [{"text": "a word and so on, " * 20_000}]
    threads: list[threading.Thread] = []

    def noted(body: bytes, *, other: bytes | None = None) -> str | None:
        threads.append(threading.current_thread())
        return message_digest(body, other=other)

    for place in (leaving, attribution):
        monkeypatch.setattr(place, "message_digest", noted)
    await way(open_ledger(), [JSON, ("a2a-version", "1.0")], json.dumps(sent).encode())
    assert threads
    assert OF_LOOP not in threads


@pytest.mark.parametrize("again", ["a word and so on, " * 20_000, "a word"])
@pytest.mark.parametrize("way", [of_client, of_server])
async def test_what_was_sent_before_under_the_same_id_is_digested_in_a_thread(
    open_ledger: OpenLedger, monkeypatch: pytest.MonkeyPatch, again: str, way: Callable[..., Awaitable[None]]
) -> None:
    ledger, sent, threads = open_ledger(), message("m1"), list[threading.Thread]()

    def noted(body: bytes, *, other: bytes | None = None) -> str | None:
        threads.append(threading.current_thread())
        return message_digest(body, other=other)

    monkeypatch.setattr(resends, "message_digest", noted)
    for text in ("a word and so on, " * 20_000, again):
        sent["params"]["message"]["parts"] = [{"text": text}]
        await way(ledger, [JSON, ("a2a-version", "1.0")], json.dumps(sent).encode())
    assert threads
    assert OF_LOOP not in threads
    requests = [r.stream for r in only(ledger, "message.recorded") if r.data["leg"] == "request"]
    assert len(set(requests)) == (1 if again != "a word" else 2)  # the same message is the same task


async def test_a_long_task_that_another_guard_recorded_is_read_and_judged_whole_in_a_thread(
    open_ledger: OpenLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = open_ledger(mode="enforce")
    stream = b"".join(event("WORKING", metadata={"i": number}) for number in range(40))
    await by_client(ledger, [("content-type", "text/event-stream")], stream)
    judged: list[tuple[int, bool]] = []

    def noted(record: Record, *others: Any) -> list[Finding]:  # noqa: ANN401 - of what it stands for
        judged.append((record.ver, threading.current_thread() is OF_LOOP))
        return judge(record, *others)

    monkeypatch.setattr(arrival, "judge", noted)
    monkeypatch.setattr(arrival, "_PAGE", 7)
    ask = {"jsonrpc": "2.0", "id": 2, "method": "GetTask", "params": {"id": "T1"}}
    task = {"id": "T1", "contextId": "C1", "status": {"state": "TASK_STATE_WORKING"}}
    peer = Peer(card(), lambda _: httpx.Response(200, json={"jsonrpc": "2.0", "id": 2, "result": task}))
    async with Guard(ledger).httpx_client(peer) as client:
        await client.post(URL, json=ask, headers={"a2a-version": "1.0"})
    assert len(judged) > 40
    assert judged == [(number, False) for number in range(len(judged))]


class Held:
    """Holds what reads an answer in its thread until the test lets it go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, reads: str) -> None:
        self.began, self.goes_on = threading.Event(), threading.Event()
        read = getattr(exchanges, reads)

        def held(*args: object) -> object:
            if len(str(args[-1])) > len(SMALL) * 10:
                self.began.set()
                assert self.goes_on.wait(10)
            return read(*args)

        monkeypatch.setattr(exchanges, reads, held)


def test_an_answer_whose_caller_gives_up_while_it_is_read_is_recorded(
    open_ledger: OpenLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, held = open_ledger(), Held(monkeypatch, "parse_response")

    async def use() -> None:
        asking = asyncio.ensure_future(by_client(ledger, [JSON], LARGE))
        await asyncio.to_thread(held.began.wait, 10)
        asking.cancel()
        asyncio.get_running_loop().call_later(0.05, held.goes_on.set)
        with pytest.raises(asyncio.CancelledError):
            await asking

    asyncio.run(use())
    assert [r.data["leg"] for r in only(ledger, "message.recorded")] == ["request", "response"]


def test_the_end_of_a_stream_stands_behind_an_event_that_is_still_being_read(
    open_ledger: OpenLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, held = open_ledger(), Held(monkeypatch, "parse_stream_event")
    large = event("WORKING", metadata={"n": "x" * 300_000})

    async def use() -> None:
        sse = [("content-type", "text/event-stream")]
        asking = asyncio.ensure_future(by_client(ledger, sse, event("SUBMITTED") + large))
        await asyncio.to_thread(held.began.wait, 10)
        asking.cancel()
        asyncio.get_running_loop().call_later(0.05, held.goes_on.set)
        with pytest.raises(asyncio.CancelledError):
            await asking

    asyncio.run(use())
    legs = [(r.data["leg"], r.data.get("sequence")) for r in only(ledger, "message.recorded")]
    assert legs == [("request", None), ("stream-event", 0), ("stream-event", 1), ("stream-end", 2)]
