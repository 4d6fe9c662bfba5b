"""A redaction of one's own that fails: nothing of what it was to look through is kept, and no call fails for it."""

from __future__ import annotations

import json
import logging
import re
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from a2a.types import SendMessageResponse

from a2a_ledger import Guard
from a2a_ledger.audit import audit_ledger
from a2a_ledger.capture.asgi import ContractLedgerMiddleware
from a2a_ledger.capture.own_redaction import OwnRedaction
from a2a_ledger.codec import Hole
from a2a_ledger_projections.verifier import follower
from tests.capture.conftest import only, send
from tests.capture.peer import CARD_URL, URL, Peer, card, event, message, said
from tests.capture.raw_rpc import RawPeer
from tests.capture.stored import all_octets
from tests.capture.test_grpc_guard import WORKING, client_of, served

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from a2a_ledger import ContractLedger
    from a2a_ledger.codec import Record
    from tests.capture.conftest import OpenLedger

VERSION = {"a2a-version": "1.0"}
PRIVATE = "Frau Holle, Zimmer 7"


def failing(_: str, octets: bytes) -> list[tuple[int, int]]:
    if b"Zimmer" in octets:
        raise KeyError(octets)
    return []


def failing_late(_: str, octets: bytes) -> Iterable[tuple[int, int]]:
    yield 0, 1
    raise ValueError(octets)


def failing_but_for_urls(role: str, octets: bytes) -> list[tuple[int, int]]:
    if role != "url":
        raise ValueError(octets)
    return []


def whole(record: Record, role: str = "body") -> bool:
    """Say whether all octets of a blob are holes."""
    return lengths(record, role) is not None


def lengths(record: Record, role: str = "body") -> list[int] | None:
    """Return the lengths of the holes of a blob that is nothing else."""
    holes = [part.length for part in record.stored_parts(role) or () if isinstance(part, Hole)]
    return holes if holes and len(holes) == len(record.stored_parts(role) or ()) else None


@pytest.mark.parametrize(
    "spans",
    [None, 7, "text", [1], [(1,)], [(1, 2, 3)], [("0", "1")], [(0.0, 1.0)], [(-5, 3)], [(5, 2)], [(11, 12)]],
    ids=repr,
)
def test_what_is_no_span_withholds_all(spans: Any) -> None:  # noqa: ANN401 - what no type checker would let pass
    assert OwnRedaction(lambda _, __: spans)("body", b"0123456789") == [(0, 10)]


def test_spans_are_taken_as_slices() -> None:
    assert OwnRedaction(lambda _, __: iter([(2, 2), (8, 99), (10, 10)]))("body", b"0123456789") == [
        (2, 2),
        (8, 99),
        (10, 10),
    ]


@pytest.mark.parametrize("redact", [failing, failing_late])
def test_the_first_failure_is_logged_by_its_class_and_place_and_quotes_nothing(
    redact: Any,  # noqa: ANN401 - either kind of redaction
    caplog: pytest.LogCaptureFixture,
) -> None:
    own = OwnRedaction(redact)
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            assert own("header:x-token", PRIVATE.encode()) == [(0, len(PRIVATE))]
    [line] = caplog.messages
    assert re.search(rf"(Key|Value)Error in line [0-9]+ of {re.escape(__file__)};", line)
    assert "Holle" not in caplog.text


@pytest.mark.parametrize("mode", ["observe", "enforce"])
@pytest.mark.parametrize("size", [1, 200_000], ids=["small", "in-a-thread"])
async def test_a_call_gets_its_answer_and_the_log_has_its_length(
    open_ledger: OpenLedger, tmp_path: Path, mode: str, size: int
) -> None:
    ledger, answer = open_ledger(mode=mode), said(PRIVATE * size)
    peer = Peer(card(), lambda _: httpx.Response(200, json=answer))
    async with Guard(ledger, redact=failing).httpx_client(peer) as client:
        await client.get(CARD_URL)
        got = await client.post(URL, json=message("m1"), headers=VERSION)
    assert got.json() == answer
    asked, answered = only(ledger, "message.recorded")
    assert asked.content("body") is not None
    assert sum(lengths(answered) or []) == len(got.content)
    assert b"Holle" not in all_octets(tmp_path / "audit")


@pytest.mark.parametrize("mode", ["observe", "enforce"])
async def test_a_redaction_that_fails_for_card_headers_and_bodies_leaves_holes_alone(
    open_ledger: OpenLedger, tmp_path: Path, mode: str
) -> None:
    ledger = open_ledger(mode=mode)
    peer = Peer(card(description=PRIVATE), lambda _: httpx.Response(200, json=said(PRIVATE)))
    async with Guard(ledger, redact=failing_but_for_urls).httpx_client(peer) as client:
        await client.get(CARD_URL)
        assert (await client.post(URL, json=message("m1"), headers=VERSION)).json() == said(PRIVATE)
    [fetched] = only(ledger, "card.fetched")
    assert all(whole(record) for record in (fetched, *only(ledger, "message.recorded")))
    follower(ledger).catch_up()
    assert only(ledger, "violation.detected") == []
    assert audit_ledger(ledger).clean
    assert b"Holle" not in all_octets(tmp_path / "audit")


async def test_a_stream_goes_on(open_ledger: OpenLedger) -> None:
    ledger = open_ledger()
    events = event("WORKING", metadata={"n": PRIVATE}) + event("COMPLETED")
    sse = {"content-type": "text/event-stream"}
    peer = Peer(card(), lambda _: httpx.Response(200, headers=sse, content=events))
    async with Guard(ledger, redact=failing).httpx_client(peer) as client:
        await client.get(CARD_URL)
        asked = {**message("m1"), "method": "SendStreamingMessage"}
        assert (await client.post(URL, json=asked, headers=VERSION)).content == events
    _, first, second, end = only(ledger, "message.recorded")
    assert (whole(first), whole(second)) == (True, False)
    assert (end.data["leg"], end.data.get("error_kind")) == ("stream-end", None)


async def test_a_grpc_call_gets_its_answer(open_ledger: OpenLedger) -> None:
    async def answers(_: bytes, __: object) -> bytes:
        return SendMessageResponse(task=WORKING).SerializeToString()

    def redact(_: str, octets: bytes) -> list[tuple[int, int]]:
        return [] if b"TASK_STATE" not in octets else [(0, 1, 2)]  # type: ignore[list-item] # pyright: ignore[reportReturnType]

    ledger = open_ledger()
    guard = Guard(ledger, redact=redact)
    async with RawPeer(SendMessage=answers) as peer:
        client = await client_of(guard, served(peer.target))
        [got] = await send(client, "hello")
        await client.close()
    await guard.aclose()
    assert got.task.id == "T1"
    _, answered = only(ledger, "message.recorded")
    assert (whole(answered), whole(answered, "wire")) == (True, True)


async def test_what_a_failed_connection_says_is_withheld(open_ledger: OpenLedger) -> None:
    def refused(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("no route")

    ledger = open_ledger()
    async with Guard(ledger, redact=failing_late).httpx_client(Peer(card(), refused)) as client:
        await client.get(CARD_URL)
        with pytest.raises(httpx.ConnectError):
            await client.post(URL, json=message("m1"), headers=VERSION)
    _, failed = only(ledger, "message.recorded")
    assert failed.data["leg"] == "error"
    assert whole(failed, "error")


async def test_an_agent_goes_on_answering(open_ledger: OpenLedger) -> None:
    async def agent(_: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - ASGI's own types
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": json.dumps(said(PRIVATE)).encode()})

    ledger: ContractLedger = open_ledger()
    app = ContractLedgerMiddleware(agent, ledger, CARD_URL, redact=failing_late)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as client:
        assert (await client.post(URL, json=message("m1"), headers=VERSION)).json() == said(PRIVATE)
    assert [whole(record) for record in only(ledger, "message.recorded")] == [True, True]
