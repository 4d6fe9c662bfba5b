"""Event streams where mode "enforce" holds: all is recorded behind a refusal, and nothing is seen before its time."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import TYPE_CHECKING

import httpx
import pytest

from a2a_ledger import ContractDivergenceError
from tests.capture.conftest import only, send
from tests.capture.peer import ORIGIN, Chunks, Peer, card, event

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
