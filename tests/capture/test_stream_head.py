"""A stream's status and headers are recorded once, its secrets are cut everywhere, and how it ended is told rightly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from a2a_ledger import ContractDivergenceError
from tests.capture.conftest import only, send
from tests.capture.peer import ORIGIN, Chunks, Peer, card, event
from tests.capture.stored import headers, holding

if TYPE_CHECKING:
    from a2a_ledger import ContractLedger
    from a2a_ledger.codec import Record
    from tests.capture.conftest import MakeGuard, OpenLedger

COOKIE = "COOKIEVALUE-1234"
TRACE = "00-" + "1" * 32 + "-" + "2" * 16 + "-01"
HEAD = [
    ("content-type", "text/event-stream"),
    ("a2a-extensions", "https://x.example/ext"),
    ("date", "Mon, 01 Jan 2026 00:00:00 GMT"),
    ("set-cookie", f"sid={COOKIE}; Path=/"),
    ("traceparent", TRACE),
    ("x-internal", "dropped"),
]
KEPT = [
    ["a2a-extensions", "https://x.example/ext"],
    ["content-type", "text/event-stream"],
    ["date", "Mon, 01 Jan 2026 00:00:00 GMT"],
    ["traceparent", TRACE],
]


def answers(ledger: ContractLedger) -> list[Record]:
    """Return what came in."""
    return [record for record in only(ledger, "message.recorded") if record.data["direction"] == "in"]


def open_headers(record: Record) -> list[list[str]]:
    return [pair for pair in headers(record) if pair[0] != "set-cookie"]


async def test_status_and_headers_stand_with_the_first_event_alone(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    pieces = [event("WORKING", metadata={"echo": COOKIE}), event("WORKING") + event("COMPLETED", metadata={COOKIE: 1})]
    peer = Peer(card(), lambda _: httpx.Response(200, headers=HEAD, stream=Chunks(*pieces)))
    await send(await make_guard(ledger).create_client(ORIGIN, transport=peer), "hello")
    first, *others, end = answers(ledger)
    assert [first.data["leg"], first.data["status"], end.data["leg"]] == ["stream-event", 200, "stream-end"]
    assert open_headers(first) == KEPT
    assert first.data["trace"] == "1" * 32
    assert [(other.data.get("status"), headers(other)) for other in others] == [(None, []), (None, [])]
    assert (end.data["status"], headers(end)) == (200, [])
    assert holding(ledger, COOKIE) == []


async def test_a_stream_without_events_has_its_headers_with_its_end(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    peer = Peer(card(), lambda _: httpx.Response(200, headers=HEAD, stream=Chunks()))
    await send(await make_guard(ledger).create_client(ORIGIN, transport=peer), "hello")
    [end] = answers(ledger)
    assert (end.data["leg"], end.data["status"], open_headers(end)) == ("stream-end", 200, KEPT)
    assert holding(ledger, COOKIE) == []


@pytest.mark.parametrize(
    ("error", "kind", "raised"),
    [
        (httpx.ReadError("reset"), "closed", "reset"),
        (httpx.ReadTimeout("late"), "timeout", "timed out"),
        (ValueError("odd"), "other", "odd"),
        (RuntimeError("odder"), "other", "odder"),
        (OSError("gone"), "other", "gone"),
    ],
)
async def test_whatever_a_stream_dies_of_is_recorded_and_not_laid_to_the_caller(
    open_ledger: OpenLedger, make_guard: MakeGuard, error: Exception, kind: str, raised: str
) -> None:
    ledger = open_ledger()
    peer = Peer(card(), lambda _: httpx.Response(200, headers=HEAD, stream=Chunks(event("WORKING"), error)))
    client = await make_guard(ledger).create_client(ORIGIN, transport=peer)
    with pytest.raises(Exception, match=raised):
        await send(client, "hello")
    end = answers(ledger)[-1]
    assert (end.data["leg"], end.data["error_kind"], end.data["sequence"]) == ("stream-end", kind, 1)


async def test_a_caller_that_leaves_is_recorded_as_that(open_ledger: OpenLedger, make_guard: MakeGuard) -> None:
    ledger = open_ledger()
    peer = Peer(card(), lambda _: httpx.Response(200, headers=HEAD, stream=Chunks(event("WORKING"), event("WORKING"))))
    async with make_guard(ledger).httpx_client(transport=peer) as client, client.stream("POST", f"{ORIGIN}/rpc") as got:
        async for _ in got.aiter_bytes():
            break
    assert answers(ledger)[-1].data["error_kind"] == "closed-by-caller"


@pytest.mark.parametrize("body", [b"", b'data: {"error": "no"}\n\n', b"plain text"])
async def test_a_demand_cannot_hide_in_an_answer_that_calls_itself_a_stream(
    open_ledger: OpenLedger, make_guard: MakeGuard, body: bytes
) -> None:
    ledger = open_ledger()
    head = [*HEAD, ("www-authenticate", 'Bearer scope="admin"')]
    peer = Peer(card(), lambda _: httpx.Response(401, headers=head, stream=Chunks(body)))
    client = await make_guard(ledger).create_client(ORIGIN, transport=peer)
    with pytest.raises(ContractDivergenceError, match="auth-demand"):
        await send(client, "hello")
    [answer] = answers(ledger)
    assert (answer.data["leg"], answer.data["status"]) == ("response", 401)
