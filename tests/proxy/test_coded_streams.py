"""Event streams in a content coding through the proxy: octets pass as they came, and are read through all members."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.proxy.conftest import only
from tests.proxy.peer import Peer, answering
from tests.proxy.serving import Serving
from tests.proxy.test_streams import SEND, SSE, event, read_into, wait_for

if TYPE_CHECKING:
    from a2a_ledger import ContractLedger
    from tests.proxy.conftest import OpenLedger, StartProxy

EVENTS = [event("SUBMITTED"), event("WORKING"), event("COMPLETED")]
MEMBERS = b"".join(gzip.compress(one) for one in EVENTS)
STORED = b"\x20\x00\x10sk-live-token\x03"  # no brotli that is valid: nobody here can tell


def bodies(ledger: ContractLedger, leg: str) -> list[bytes | None]:
    return [one.content("body") for one in only(ledger, "message.recorded") if one.data["leg"] == leg]


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize("mode", ["observe", "enforce"])
async def test_members_of_gzip_pass_as_they_came_and_each_is_recorded(
    open_ledger: OpenLedger, start_proxy: StartProxy, side: str, mode: str
) -> None:
    ledger, got = open_ledger(mode=mode), bytearray()
    with Serving(Peer(answering(200, MEMBERS, SSE, (b"content-encoding", b"gzip")))) as upstream:
        await read_into(got, start_proxy(ledger, upstream.url, side=side).url)
        (end,) = await wait_for(ledger)
    assert got == MEMBERS
    assert bodies(ledger, "stream-event") == EVENTS
    assert end.data.get("error_kind") is None


@pytest.mark.parametrize("side", ["client", "server"])
async def test_octets_behind_the_last_member_pass_and_the_record_says_so(
    open_ledger: OpenLedger, start_proxy: StartProxy, side: str
) -> None:
    ledger, got, octets = open_ledger(mode="observe"), bytearray(), MEMBERS + b"no member"
    with Serving(Peer(answering(200, octets, SSE, (b"content-encoding", b"gzip")))) as upstream:
        await read_into(got, start_proxy(ledger, upstream.url, side=side).url)
        (end,) = await wait_for(ledger)
    assert got == octets
    assert bodies(ledger, "stream-event") == EVENTS
    assert end.data["error_kind"] == "other"


@pytest.mark.parametrize("side", ["client", "server"])
async def test_a_stream_in_an_unknown_coding_passes_and_leaves_holes(
    open_ledger: OpenLedger, start_proxy: StartProxy, side: str
) -> None:
    ledger, got = open_ledger(mode="observe"), bytearray()
    with Serving(Peer(answering(200, STORED, SSE, (b"content-encoding", b"br")))) as upstream:
        await read_into(got, start_proxy(ledger, upstream.url, side=side).url)
    assert got == STORED
    assert bodies(ledger, "response") == [b"*" * len(STORED)]


async def test_a_stream_in_an_unknown_coding_is_refused_where_it_is_enforced(
    open_ledger: OpenLedger, start_proxy: StartProxy
) -> None:
    ledger = open_ledger(mode="enforce")
    with Serving(Peer(answering(200, STORED, SSE, (b"content-encoding", b"br")))) as upstream:
        proxy = start_proxy(ledger, upstream.url)
        async with httpx.AsyncClient(trust_env=False) as http:
            answer = await http.post(proxy.url, content=SEND)
    assert (answer.status_code, answer.json()["title"]) == (502, "contract-divergence")
    assert b"sk-live-token" not in answer.content


async def test_a_coded_body_over_the_limit_is_one_hole(open_ledger: OpenLedger, start_proxy: StartProxy) -> None:
    ledger = open_ledger(mode="observe", keep_body=1000)
    octets = gzip.compress(b'{"a": "sk-live-token"}' + b" " * 5000, compresslevel=0)
    assert b"sk-live-token" in octets
    kind = (b"content-type", b"application/json")
    with Serving(Peer(answering(200, octets, kind, (b"content-encoding", b"gzip")))) as at:
        url = start_proxy(ledger, at.url).url
        async with httpx.AsyncClient(trust_env=False) as http:
            answer = await http.post(url, content=SEND)
    assert len(answer.content) == 5022
    assert bodies(ledger, "response") == [b"*" * 1000]


@pytest.mark.parametrize("coding", ["identity", "gzip"])
async def test_a_stream_that_lacks_its_last_event_is_cut_where_it_is_enforced(
    open_ledger: OpenLedger, start_proxy: StartProxy, coding: str
) -> None:
    ledger, got, said = open_ledger(mode="enforce"), bytearray(), EVENTS[0] + b"data: {"
    octets = gzip.compress(said) if coding == "gzip" else said
    with Serving(Peer(answering(200, octets, SSE, (b"content-encoding", coding.encode())))) as upstream:
        with pytest.raises(httpx.RemoteProtocolError):  # what it got is less than the length that it was told
            await read_into(got, start_proxy(ledger, upstream.url).url)
        await wait_for(ledger)
    assert got == (b"" if coding == "gzip" else EVENTS[0])
    assert bodies(ledger, "stream-event") == [EVENTS[0], b"data: {"]
