"""Event streams where mode "enforce" holds: all is recorded behind a refusal, and nothing is seen before its time."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
from typing import TYPE_CHECKING

import httpx
import pytest

from a2a_ledger import ContractDivergenceError
from a2a_ledger.capture.held_back import HeldBack
from a2a_ledger.wire import SseParser
from tests.capture.conftest import only, send
from tests.capture.peer import CARD_URL, ORIGIN, URL, Chunks, Peer, card, event, message

if TYPE_CHECKING:
    from a2a_ledger import ContractLedger
    from a2a_ledger.codec import Record
    from tests.capture.conftest import MakeGuard, OpenLedger

SSE = ("content-type", "text/event-stream")
OLD_TASK = {"kind": "task", "id": "T1", "contextId": "C1", "status": {"state": "working"}}
DIVERGENT = b"data: " + json.dumps({"jsonrpc": "2.0", "id": 1, "result": OLD_TASK}).encode() + b"\n\n"


def streamed(ledger: ContractLedger) -> list[Record]:
    return [one for one in only(ledger, "message.recorded") if one.data["leg"] in {"stream-event", "stream-end"}]


async def ended(ledger: ContractLedger) -> tuple[list[Record], Record]:
    """Return the events of a stream and its end, which is recorded behind the caller's back."""
    for _ in range(1000):
        *events, end = streamed(ledger)
        if end.data["leg"] == "stream-end":
            return events, end
        await asyncio.sleep(0.01)
    pytest.fail("the stream has no end")


async def test_what_follows_a_divergent_event_in_the_same_piece_is_recorded(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    said = [event("WORKING"), DIVERGENT, *(event("WORKING", metadata={"n": "x" * 3000, "i": i}) for i in range(400))]
    packed = gzip.compress(b"".join(said))  # one piece that says more than is read of it at a time
    ledger = open_ledger(mode="enforce")
    head = [SSE, ("content-encoding", "gzip")]
    peer = Peer(card(), lambda _: httpx.Response(200, headers=head, stream=Chunks(packed)))
    with pytest.raises(ContractDivergenceError):
        await send(await make_guard(ledger).create_client(ORIGIN, transport=peer), "hello")
    events, end = await ended(ledger)
    assert [one.content("body") for one in events] == said
    assert end.data.get("error_kind") is None


async def seen_of(ledger: ContractLedger, make_guard: MakeGuard, *pieces: bytes) -> list[bytes]:
    """Return what a caller got of a stream, piece by piece, up to its end or its error."""
    got: list[bytes] = []
    peer = Peer(card(), lambda _: httpx.Response(200, headers=[SSE], stream=Chunks(*pieces)))
    body = message("m1") | {"method": "SendStreamingMessage"}
    async with make_guard(ledger).httpx_client(transport=peer) as client:
        await client.get(CARD_URL)
        async with client.stream("POST", URL, json=body, headers={"a2a-version": "1.0"}) as answer:
            with contextlib.suppress(ContractDivergenceError):
                async for octets in answer.aiter_raw():
                    got.append(octets)  # noqa: PERF401 - kept when it raises
    return got


@pytest.mark.parametrize("mode", ["observe", "enforce"])
async def test_an_event_waits_until_it_is_whole_only_where_it_may_be_refused(
    open_ledger: OpenLedger, make_guard: MakeGuard, mode: str
) -> None:
    first, second = event("WORKING"), event("COMPLETED")
    pieces = [first + second[:9], second[9:-1], second[-1:] + b": ping\n\n", b"data: no end"]
    ledger = open_ledger(mode=mode)
    got = await seen_of(ledger, make_guard, *pieces)
    assert got == (pieces if mode == "observe" else [first, second + b": ping\n\n"])
    events, end = await ended(ledger)
    assert [one.content("body") for one in events] == [first, second, b": ping\n\n", b"data: no end"]
    assert end.data.get("error_kind") is None


@pytest.mark.parametrize("whole", [True, False])
async def test_nothing_of_a_divergent_event_is_seen_where_it_is_refused(
    open_ledger: OpenLedger, make_guard: MakeGuard, whole: bool
) -> None:
    pieces = [event("WORKING"), DIVERGENT[:-1], *([b"\n"] if whole else [])]
    ledger = open_ledger(mode="enforce")
    assert await seen_of(ledger, make_guard, *pieces) == [event("WORKING")]
    events, _ = await ended(ledger)
    assert [one.content("body") for one in events] == [event("WORKING"), DIVERGENT[: None if whole else -1]]


@pytest.mark.parametrize("size", [1, 3000])
async def test_a_stream_is_cut_where_more_of_an_event_waits_than_is_kept(
    open_ledger: OpenLedger, make_guard: MakeGuard, size: int
) -> None:
    large = event("WORKING", metadata={"n": "x" * 5000})
    pieces = [large[at : at + size] for at in range(0, len(large), size)]
    ledger = open_ledger(mode="enforce", keep_body=4000)
    assert await seen_of(ledger, make_guard, event("WORKING"), *pieces, event("COMPLETED")) == [event("WORKING")]
    events, end = await ended(ledger)
    assert (len(events), end.data.get("error_kind")) == (3, None)


def test_a_piece_in_a_coding_waits_for_the_last_event_in_it() -> None:
    held, parser = HeldBack(splits=False), SseParser()

    def take(said: bytes) -> bytes:
        held.read(len(said), parser.feed(said))
        return held.passing(said.upper())  # as if that were its coding

    assert [take(said) for said in (b"a\n\nb", b"c\n\n", b"d", b"\n", b"\ne\n\n")] == [
        b"",
        b"A\n\nBC\n\n",
        b"",
        b"",
        b"D\n\nE\n\n",
    ]
    assert (held.size, held.ends_between_events) == (0, True)
