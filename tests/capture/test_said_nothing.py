"""Sends that come back without a word of the peer about them: their tasks are sent, and no more is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pytest
from a2a.client.errors import A2AClientError
from a2a.types import Message, SendMessageResponse

from a2a_ledger.capture.situation import task_state
from a2a_ledger_projections.lookup import find_task
from a2a_ledger_projections.stalls import stalled
from tests.capture.conftest import request, tasks
from tests.capture.front import WELL_KNOWN
from tests.capture.raw_rpc import RawPeer
from tests.capture.test_as_its_client_asks import HOST, PUBLIC
from tests.capture.test_grpc_guard import client_of, served
from tests.capture.test_own_route import CALL, VERSION

if TYPE_CHECKING:
    from a2a_ledger import ContractLedger
    from tests.capture.conftest import MakeGuard, OpenLedger

ELSEWHERE = f"{HOST}/rpc/"
WORKING = {"task": {"id": "T1", "contextId": "C1", "status": {"state": "TASK_STATE_WORKING"}}}
WORD = {"message": {"messageId": "w1", "role": "ROLE_AGENT", "parts": [{"text": "done"}]}}


def rpc(result: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": "1", "result": result}


def standing(ledger: ContractLedger) -> tuple[str, bool, str]:
    """Return the state of the one task, whether it is open, and what the decisions take it for."""
    (stream,) = tasks(ledger)
    row = find_task(ledger.store, stream.removeprefix("task:"))
    return row["state"], row["open"], task_state(ledger.store, stream)


async def sent(ledger: ContractLedger, make_guard: MakeGuard, *answers: httpx.Response) -> None:
    """Send one message, with the redirects that come followed."""
    coming = iter(answers)

    async def vendor(asked: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=PUBLIC) if asked.method == "GET" else next(coming)

    options: dict[str, Any] = {"transport": httpx.MockTransport(vendor), "follow_redirects": True}
    async with make_guard(ledger).httpx_client(**options) as http:
        await http.get(HOST + WELL_KNOWN)
        await http.post(f"{HOST}/rpc", json=CALL, headers=VERSION)


@pytest.mark.parametrize("status", [307, 308])
async def test_a_task_behind_a_redirect_is_where_its_peer_says(
    open_ledger: OpenLedger, make_guard: MakeGuard, status: int
) -> None:
    ledger = open_ledger()
    led = httpx.Response(status, headers={"location": ELSEWHERE})
    await sent(ledger, make_guard, led, httpx.Response(200, json=rpc(WORKING)))
    assert standing(ledger) == ("working", True, "working")


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(200),
        httpx.Response(202),
        httpx.Response(202, json={}),
        httpx.Response(204),
        httpx.Response(200, html="<title>Log in</title>"),
        httpx.Response(200, json=rpc(None)),
        httpx.Response(200, json=rpc({})),
        httpx.Response(200, content=b'{"jsonrpc":"2.0","id":"1","result":{"mess'),
        httpx.Response(200, json=rpc({"message": {"role": "ROLE_AGENT", "parts": []}})),
    ],
    ids=["empty", "taken", "taken {}", "no content", "HTML", "null", "{}", "cut", "a Message without its id"],
)
async def test_an_answer_that_is_no_message_ends_nothing(
    open_ledger: OpenLedger, make_guard: MakeGuard, answer: httpx.Response
) -> None:
    ledger = open_ledger()
    await sent(ledger, make_guard, answer)
    assert standing(ledger) == ("sent", True, "sent")


async def test_a_redirect_that_nobody_follows_ends_nothing_though_a_message_stands_in_it(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    await sent(ledger, make_guard, httpx.Response(300, json=rpc(WORD)))
    assert standing(ledger) == ("sent", True, "sent")


async def test_a_message_ends_it(open_ledger: OpenLedger, make_guard: MakeGuard) -> None:
    ledger = open_ledger()
    await sent(ledger, make_guard, httpx.Response(200, json=rpc(WORD)))
    assert standing(ledger) == ("answered", False, "completed")
    assert stalled(ledger.store, ledger.clock()) == []


@pytest.mark.parametrize(
    ("answer", "then"),
    [
        (SendMessageResponse(), ("sent", True, "sent")),
        (SendMessageResponse(message=Message(message_id="w1")), ("answered", False, "completed")),
    ],
    ids=["nothing", "a Message"],
)
async def test_a_grpc_answer_ends_a_task_if_it_is_a_message(
    open_ledger: OpenLedger, make_guard: MakeGuard, answer: SendMessageResponse, then: tuple[str, bool, str]
) -> None:
    async def says(_: bytes, __: object) -> bytes:
        return answer.SerializeToString()

    ledger = open_ledger()
    async with RawPeer(SendMessage=says) as peer:
        client = await client_of(make_guard(ledger), served(peer.target))
        try:
            async for _ in client.send_message(request("hello")):
                pass
        except (A2AClientError, ValueError):
            pass  # what its SDK makes of an answer without content is its own matter
        await client.close()
    assert standing(ledger) == then
