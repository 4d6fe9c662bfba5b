"""Whoever closes waits for what was begun: an answer that came is in the log before anybody can close the ledger."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from a2a.types import GetTaskRequest

from a2a_ledger import Guard
from a2a_ledger.capture import whole
from a2a_ledger.capture.asgi import ContractLedgerMiddleware
from a2a_ledger.capture.proxy import proxy_app
from a2a_ledger.capture.server.pushes import PushTransport
from tests.capture.conftest import only
from tests.capture.peer import CARD_URL, ORIGIN, URL, Peer, card, message, said
from tests.capture.raw_rpc import RawPeer
from tests.capture.test_grpc_guard import WORKING, client_of, served

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping, Sequence

    from a2a_ledger import ContractLedger
    from a2a_ledger.codec import Draft
    from a2a_ledger.store import Appended
    from tests.capture.conftest import OpenLedger

ASKED = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "T1"}}


class Held:
    """Holds the record of one leg, until some time after somebody began to close."""

    def __init__(self, ledger: ContractLedger, monkeypatch: pytest.MonkeyPatch, leg: str) -> None:
        self._ledger = ledger
        self._began, self._goes_on = asyncio.Event(), asyncio.Event()
        append = ledger.append_async

        async def late(drafts: Sequence[Draft]) -> list[Appended]:
            if any(f'"leg":"{leg}"'.encode() in draft.data for draft in drafts):
                self._began.set()
                await self._goes_on.wait()
            return await append(drafts)

        monkeypatch.setattr(ledger, "append_async", late)

    async def given_up(self, asking: Awaitable[object]) -> None:
        """Give up what somebody waits for while its record is written."""
        waiting = asyncio.ensure_future(asking)
        await self._began.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    async def legs_after(self, closing: Awaitable[object]) -> list[object]:
        """Close, and return what is in the log at once."""
        asyncio.get_running_loop().call_later(0.05, self._goes_on.set)
        await closing
        legs: list[object] = [record.data["leg"] for record in only(self._ledger, "message.recorded")]
        self._goes_on.set()
        return legs


@pytest.mark.parametrize("closes", ["the-client", "the-guard"])
async def test_a_client(open_ledger: OpenLedger, monkeypatch: pytest.MonkeyPatch, closes: str) -> None:
    ledger = open_ledger()
    guard, held = Guard(ledger), Held(ledger, monkeypatch, "response")
    client = guard.httpx_client(Peer(card(), lambda _: httpx.Response(200, json=said("done"))))
    await client.get(CARD_URL)
    await held.given_up(client.post(URL, json=message("m1"), headers={"a2a-version": "1.0"}))
    legs = await held.legs_after(client.aclose() if closes == "the-client" else guard.aclose())
    assert legs == ["request", "response"]


async def test_a_grpc_channel(open_ledger: OpenLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    async def answers(_: bytes, __: object) -> bytes:
        return WORKING.SerializeToString()

    ledger = open_ledger()
    guard, held = Guard(ledger), Held(ledger, monkeypatch, "response")
    async with RawPeer(GetTask=answers) as peer:
        client = await client_of(guard, served(peer.target))
        await held.given_up(client.get_task(GetTaskRequest(id="T1")))
        assert await held.legs_after(client.close()) == ["request", "response"]
    await guard.aclose()


async def test_a_sender_of_pushes(open_ledger: OpenLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = open_ledger()
    held = Held(ledger, monkeypatch, "error")
    transport = PushTransport(ledger, CARD_URL, Peer(card(), lambda _: httpx.Response(500)))
    client = httpx.AsyncClient(transport=transport)
    push = {"task": {"id": "T1", "contextId": "C1", "status": {"state": "TASK_STATE_WORKING"}}}
    await held.given_up(client.post("https://client.example/hook", json=push))
    assert await held.legs_after(client.aclose()) == ["push", "error"]


class Agent:
    """Answers, and notes when it is told that its server stops."""

    def __init__(self) -> None:
        self.told = asyncio.Event()

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ) -> None:
        if scope["type"] == "lifespan":
            assert (await receive())["type"] == "lifespan.shutdown"
            self.told.set()
            return
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": b"{}"})


async def stopping() -> MutableMapping[str, Any]:
    return {"type": "lifespan.shutdown"}


async def nowhere(_: MutableMapping[str, Any]) -> None:
    return None


@pytest.mark.parametrize(("leg", "recorded"), [("request", ["request"]), ("response", ["request", "response"])])
async def test_an_agent_whose_server_stops(
    open_ledger: OpenLedger, monkeypatch: pytest.MonkeyPatch, leg: str, recorded: list[str]
) -> None:
    ledger, agent = open_ledger(), Agent()
    app, held = ContractLedgerMiddleware(agent, ledger, CARD_URL), Held(ledger, monkeypatch, leg)
    await held.given_up(httpx.AsyncClient(transport=httpx.ASGITransport(app)).post(URL, json=ASKED))
    serving = asyncio.ensure_future(app({"type": "lifespan"}, stopping, nowhere))
    assert await held.legs_after(agent.told.wait()) == recorded
    await serving


async def test_a_proxy_on_the_agents_side(open_ledger: OpenLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = open_ledger()
    peer = Peer(card(), lambda _: httpx.Response(200, json=said("done")))
    proxy = proxy_app(ledger, ORIGIN, public="http://proxy.example", side="server", transport=peer)
    held = Held(ledger, monkeypatch, "response")
    url = "http://proxy.example/rpc"
    await held.given_up(httpx.AsyncClient(transport=httpx.ASGITransport(proxy)).post(url, json=ASKED))
    assert await held.legs_after(proxy.aclose()) == ["request", "response"]


async def test_a_ledger_that_does_not_answer_keeps_nothing_open(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(whole, "_ENDING_SECONDS", 0.01)
    underway, goes_on = whole.Underway(), asyncio.Event()
    late = underway.begin(goes_on.wait())
    with caplog.at_level(logging.ERROR):
        await underway.settled()
    assert "1 record(s) not done" in caplog.text
    goes_on.set()
    await late


def test_what_another_event_loop_began_is_its_own_to_wait_for() -> None:
    underway = whole.Underway()

    async def begin() -> None:
        underway.begin(asyncio.sleep(0.01))

    other = asyncio.new_event_loop()
    other.run_until_complete(begin())
    asyncio.run(underway.settled())
    other.run_until_complete(underway.settled())
    assert not asyncio.all_tasks(other)
    other.close()
