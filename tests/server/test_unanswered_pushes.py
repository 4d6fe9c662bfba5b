"""A push that gets no whole answer of success: whatever stopped it, the agent's record says so, once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx
import pytest

from a2a_ledger.capture.server.pushes import PushTransport
from tests.capture.peer import Chunks
from tests.proxy.conftest import only

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from a2a_ledger import ContractLedger
    from a2a_ledger.codec import Draft, Record
    from a2a_ledger.store import Appended
    from tests.proxy.conftest import OpenLedger

CARD_URL = "https://agent.example/.well-known/agent-card.json"
HOOK = "https://client.example/hook"
PUSH = {"task": {"id": "T1", "contextId": "C1", "status": {"state": "TASK_STATE_WORKING"}}}


class Webhook(httpx.AsyncBaseTransport):
    """Answers a push as `answer` does."""

    def __init__(self, answer: Callable[[httpx.Request], Awaitable[httpx.Response]]) -> None:
        self.answer = answer
        self.asked: list[str] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(str(request.url))
        return await self.answer(request)


class Silent(httpx.AsyncByteStream):
    """A body that begins, and goes on when nobody waits any more; `begun` says that its reader waits."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b"{"
        self.begun.set()
        await asyncio.Event().wait()


def sender(ledger: ContractLedger, webhook: Webhook) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=PushTransport(ledger, CARD_URL, webhook))


def told(ledger: ContractLedger) -> list[tuple[str, str | None, int | None]]:
    """Return leg, kind of failure and status of all that is recorded."""
    return [_told(record) for record in only(ledger, "message.recorded")]


def _told(record: Record) -> tuple[str, str | None, int | None]:
    kind, status = record.data.get("error_kind"), record.data.get("status")
    assert kind is None or isinstance(kind, str)
    assert status is None or isinstance(status, int)
    return str(record.data["leg"]), kind, status


async def test_a_sender_that_is_cancelled_while_the_webhook_is_silent(open_ledger: OpenLedger) -> None:
    ledger, asked = open_ledger("agent"), asyncio.Event()

    async def never(_: httpx.Request) -> httpx.Response:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with sender(ledger, Webhook(never)) as http:
        pushing = asyncio.ensure_future(http.post(HOOK, json=PUSH))
        await asked.wait()
        pushing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await pushing
    assert told(ledger) == [("push", None, None), ("error", "cancelled", None)]
    push, failure = only(ledger, "message.recorded")
    assert failure.data["answers"] == push.ref
    assert (failure.stream, failure.data["side"], failure.data["url"]) == (push.stream, "server", HOOK)


async def test_a_sender_that_times_out(open_ledger: OpenLedger) -> None:
    ledger = open_ledger("agent")

    async def late(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("late", request=request)

    async with sender(ledger, Webhook(late)) as http:
        with pytest.raises(httpx.ReadTimeout):
            await http.post(HOOK, json=PUSH)
    assert told(ledger) == [("push", None, None), ("error", "timeout", None)]


def test_a_push_under_way_when_its_event_loop_ends(open_ledger: OpenLedger) -> None:
    ledger = open_ledger("agent")

    async def use() -> None:
        asked = asyncio.Event()

        async def never(_: httpx.Request) -> httpx.Response:
            asked.set()
            await asyncio.Event().wait()
            raise AssertionError

        pushing = asyncio.ensure_future(sender(ledger, Webhook(never)).post(HOOK, json=PUSH))
        await asked.wait()
        assert not pushing.done()

    asyncio.run(use())
    assert told(ledger) == [("push", None, None), ("error", "cancelled", None)]


@pytest.mark.parametrize("given_up", [1, 2], ids=["by-the-loop", "by-its-sender-and-then-the-loop"])
def test_a_push_whose_record_is_being_written_when_its_event_loop_ends_was_never_sent(
    open_ledger: OpenLedger, monkeypatch: pytest.MonkeyPatch, given_up: int
) -> None:
    ledger = open_ledger("agent")
    append = ledger.append_async

    async def taken(_: httpx.Request) -> httpx.Response:
        return httpx.Response(204)

    webhook = Webhook(taken)

    async def use() -> None:
        written = asyncio.Event()

        async def slowly(drafts: Sequence[Draft]) -> list[Appended]:
            appended = await append(drafts)
            if not written.is_set():
                written.set()
                await asyncio.sleep(0.05)
            return appended

        monkeypatch.setattr(ledger, "append_async", slowly)
        pushing = asyncio.ensure_future(sender(ledger, webhook).post(HOOK, json=PUSH))
        await written.wait()
        for _ in range(given_up - 1):
            pushing.cancel()
            await asyncio.sleep(0)

    asyncio.run(use())
    assert webhook.asked == []
    assert told(ledger) == [("push", None, None), ("error", "cancelled", None)]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (httpx.RemoteProtocolError("peer closed"), "closed"),
        (httpx.ReadTimeout("late"), "timeout"),
        (ValueError("of a transport of its own"), "other"),
    ],
)
async def test_an_answer_that_breaks_off_while_the_sender_reads_it(
    open_ledger: OpenLedger, error: Exception, kind: str
) -> None:
    ledger = open_ledger("agent")

    async def broken(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, stream=Chunks(b"{", error))

    async with sender(ledger, Webhook(broken)) as http:
        with pytest.raises(type(error)):
            await http.post(HOOK, json=PUSH)
    assert told(ledger) == [("push", None, None), ("error", kind, 200)]


async def test_a_sender_that_is_cancelled_while_it_reads_the_answer(open_ledger: OpenLedger) -> None:
    ledger, body = open_ledger("agent"), Silent()

    async def slow(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, stream=body)

    async with sender(ledger, Webhook(slow)) as http:
        pushing = asyncio.ensure_future(http.post(HOOK, json=PUSH))
        await body.begun.wait()
        pushing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await pushing
    assert told(ledger) == [("push", None, None), ("error", "cancelled", 200)]


@pytest.mark.parametrize("reads", [0, 1, 3])
async def test_a_sender_that_reads_as_much_of_a_good_answer_as_it_likes(open_ledger: OpenLedger, reads: int) -> None:
    ledger, got = open_ledger("agent"), list[bytes]()

    async def taken(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"x-of": "webhook"}, stream=Chunks(b"{", b"}", b"\n"))

    async with sender(ledger, Webhook(taken)) as http, http.stream("POST", HOOK, json=PUSH) as answer:
        pieces = answer.aiter_raw()
        got += [await anext(pieces) for _ in range(reads)]
    assert (answer.headers["x-of"], got) == ("webhook", [b"{", b"}", b"\n"][:reads])
    assert told(ledger) == [("push", None, None)]


@pytest.mark.parametrize("status", [204, 299])
async def test_an_answer_of_success_is_no_failure(open_ledger: OpenLedger, status: int) -> None:
    ledger = open_ledger("agent")

    async def taken(_: httpx.Request) -> httpx.Response:
        return httpx.Response(status)

    async with sender(ledger, Webhook(taken)) as http:
        assert (await http.post(HOOK, json=PUSH)).status_code == status
    assert told(ledger) == [("push", None, None)]


@pytest.mark.parametrize("status", [302, 304, 307, 404, 500])
async def test_an_answer_of_any_other_status_is_one(open_ledger: OpenLedger, status: int) -> None:
    ledger = open_ledger("agent")

    async def elsewhere(_: httpx.Request) -> httpx.Response:
        return httpx.Response(status, headers={"location": "https://elsewhere.example/hook"})

    async with sender(ledger, Webhook(elsewhere)) as http:
        assert (await http.post(HOOK, json=PUSH)).status_code == status
    assert told(ledger) == [("push", None, None), ("error", "other", status)]


async def test_a_redirect_that_is_followed_is_a_push_of_its_own_there(open_ledger: OpenLedger) -> None:
    ledger, there = open_ledger("agent"), "https://elsewhere.example/hook"

    async def twice(request: httpx.Request) -> httpx.Response:
        return httpx.Response(204) if str(request.url) == there else httpx.Response(307, headers={"location": there})

    async with sender(ledger, Webhook(twice)) as http:
        assert (await http.post(HOOK, json=PUSH, follow_redirects=True)).status_code == 204
    assert told(ledger) == [("push", None, None), ("error", "other", 307), ("push", None, None)]
    assert [record.data["url"] for record in only(ledger, "message.recorded")] == [HOOK, HOOK, there]
