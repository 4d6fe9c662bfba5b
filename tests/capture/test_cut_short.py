"""An answer that does not come whole: what came is recorded and judged, and what stopped it stands behind it."""

from __future__ import annotations

import asyncio
import gzip
from typing import TYPE_CHECKING

import httpx
import pytest

from a2a_ledger import ContractDivergenceError
from tests.capture.conftest import only, send, tasks, types
from tests.capture.peer import CARD_URL, ORIGIN, URL, Chunks, Peer, card, event, message
from tests.capture.stored import clear, headers, holding

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from a2a_ledger import ContractLedger
    from a2a_ledger.codec import Record
    from tests.capture.conftest import MakeGuard, OpenLedger

JSON = ("content-type", "application/json")
DEMAND = ("www-authenticate", 'Bearer realm="x", scope="admin"')
GZIP = ("content-encoding", "gzip")
BODY = b'{"error": "we need more of you"}'


def plain(ledger: ContractLedger) -> list[Record]:
    return [record for record in only(ledger, "message.recorded") if record.data["direction"] == "in"]


@pytest.mark.parametrize(
    "error",
    [
        httpx.RemoteProtocolError("peer closed"),
        httpx.ReadTimeout("late"),
        httpx.ReadError("reset"),
        ValueError("of a transport of its own"),
    ],
)
@pytest.mark.parametrize("came", [b"", BODY[:9], BODY])
async def test_a_demand_is_found_however_its_body_breaks_off(
    open_ledger: OpenLedger, make_guard: MakeGuard, error: Exception, came: bytes
) -> None:
    ledger = open_ledger()
    peer = Peer(card(), lambda _: httpx.Response(401, headers=[JSON, DEMAND], stream=Chunks(came, error)))
    client = await make_guard(ledger).create_client(ORIGIN, transport=peer)
    with pytest.raises(ContractDivergenceError, match="auth-demand") as raised:
        await send(client, "hello")
    assert raised.value.__cause__ is error
    answer, failure = plain(ledger)
    assert (answer.data["leg"], answer.data["status"]) == ("response", 401)
    assert "truncated" in str(answer.data["flags"])
    assert headers(answer) == [list(JSON), list(DEMAND)]
    assert (answer.content("body") or b"") == came
    assert (failure.data["leg"], failure.data["status"]) == ("error", 401)


async def test_in_mode_observe_the_caller_gets_the_error_of_the_wire(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(mode="observe")
    reset = httpx.ReadError("reset")
    peer = Peer(card(), lambda _: httpx.Response(401, headers=[JSON, DEMAND], stream=Chunks(BODY[:5], reset)))
    async with make_guard(ledger).httpx_client(transport=peer) as client:
        await client.get(CARD_URL)
        with pytest.raises(httpx.ReadError):
            await client.post(URL, json=message("m1"))
    ledger.catch_up()
    assert [r.data["rule"] for r in only(ledger, "violation.detected")] == ["auth-demand"]


async def test_an_answer_that_was_whole_before_the_connection_broke_binds_its_task(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    body = event("WORKING").removeprefix(b"data: ")
    broke = httpx.RemoteProtocolError("peer closed connection without sending complete message body")
    peer = Peer(card(), lambda _: httpx.Response(200, headers=[JSON], stream=Chunks(body, broke)))
    async with make_guard(ledger).httpx_client(transport=peer) as client:
        await client.get(CARD_URL)
        with pytest.raises(httpx.RemoteProtocolError):
            await client.post(URL, json=message("m1"))
    [task] = tasks(ledger)
    assert types(ledger.store.read_stream(task))[-3:] == ["message.recorded", "message.recorded", "task.bound"]


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (b"not gzip at all, SECRET-TOKEN-77", b"*" * 32),
        (gzip.compress(b"SECRET-TOKEN-77" * 3, mtime=0)[:10], b"*" * 10),
    ],
)
async def test_octets_that_cannot_be_decoded_are_withheld_whole(
    open_ledger: OpenLedger, make_guard: MakeGuard, sent: bytes, kept: bytes
) -> None:
    ledger = open_ledger()
    broke = httpx.ReadError("reset")
    peer = Peer(card(), lambda _: httpx.Response(401, headers=[JSON, GZIP, DEMAND], stream=Chunks(sent, broke)))
    client = await make_guard(ledger).create_client(ORIGIN, transport=peer)
    with pytest.raises(ContractDivergenceError, match="auth-demand"):
        await send(client, "hello")
    answer = plain(ledger)[0]
    assert answer.content("body") == kept
    assert sent not in clear(answer)
    assert list(GZIP) in headers(answer)


async def test_what_could_be_decoded_before_the_break_is_kept(open_ledger: OpenLedger, make_guard: MakeGuard) -> None:
    ledger = open_ledger()
    whole = gzip.compress(BODY)
    peer = Peer(card(), lambda _: httpx.Response(500, headers=[GZIP], stream=Chunks(whole, httpx.ReadError("reset"))))
    client = await make_guard(ledger).create_client(ORIGIN, transport=peer)
    with pytest.raises(Exception, match="reset"):
        await send(client, "hello")
    assert plain(ledger)[0].content("body") == BODY


@pytest.mark.parametrize("length", [6, 7, 16])
async def test_a_body_that_breaks_off_in_the_middle_of_a_secret_ends_before_it(
    open_ledger: OpenLedger, make_guard: MakeGuard, length: int
) -> None:
    ledger = open_ledger()
    token = "QZQZQZ-token-0001"
    came = b'{"seen": "' + token[:length].encode()
    peer = Peer(card(), lambda _: httpx.Response(500, stream=Chunks(came, httpx.ReadError("reset"))))
    client = await make_guard(ledger).create_client(
        ORIGIN, transport=peer, headers={"authorization": f"Bearer {token}"}
    )
    with pytest.raises(Exception, match="reset"):
        await send(client, "hello")
    assert plain(ledger)[0].content("body") == b'{"seen": "' + b"*" * length
    assert holding(ledger, token[:6]) == []


async def test_a_secret_in_what_came_is_cut_from_it_and_from_the_error(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    token, cookie = "caller-token-0001", "their-cookie-0002"
    head = [JSON, ("set-cookie", f"sid={cookie}")]
    broke = httpx.ReadError(f"reset while {cookie} for {token}")
    came = f'{{"seen": "{token} {cookie}'.encode()
    peer = Peer(card(), lambda _: httpx.Response(500, headers=head, stream=Chunks(came, broke)))
    client = await make_guard(ledger).create_client(
        ORIGIN, transport=peer, headers={"authorization": f"Bearer {token}"}
    )
    with pytest.raises(Exception, match="reset"):
        await send(client, "hello")
    assert (holding(ledger, token), holding(ledger, cookie)) == ([], [])


async def test_a_caller_that_gives_up_in_the_middle_of_a_body_leaves_what_came(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    begun = asyncio.Event()

    class Slow(Chunks):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield BODY[:9]
            begun.set()
            await asyncio.sleep(60)

    peer = Peer(card(), lambda _: httpx.Response(401, headers=[JSON, DEMAND], stream=Slow()))
    client = await make_guard(ledger).create_client(ORIGIN, transport=peer)
    job = asyncio.create_task(send(client, "hello"))
    await begun.wait()
    job.cancel()
    with pytest.raises(asyncio.CancelledError):
        await job
    answer, failure = plain(ledger)
    assert answer.content("body") == BODY[:9]
    assert failure.data["error_kind"] == "cancelled"
