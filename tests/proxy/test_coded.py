"""Cards in a content coding that nobody asked for: their octets pass, what they say is recorded."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.proxy.conftest import only
from tests.proxy.peer import Peer, answering
from tests.proxy.serving import Serving
from tests.proxy.test_passing import JSON

if TYPE_CHECKING:
    from tests.proxy.conftest import OpenLedger, StartProxy

PLAIN = b'{"name": "a", "description": "d", "version": "1", "protocolVersion": "0.3.0", "url": "http://a.example/rpc"}'
BROKEN = gzip.compress(PLAIN)[:-9]


async def get_raw(url: str) -> tuple[httpx.Response, bytes]:
    async with (
        httpx.AsyncClient(trust_env=False) as http,
        http.stream("GET", f"{url}/.well-known/agent-card.json") as answer,
    ):
        return answer, b"".join([piece async for piece in answer.aiter_raw()])


@pytest.mark.parametrize(
    ("coding", "octets", "read", "flags"),
    [
        (b"gzip", gzip.compress(PLAIN), PLAIN, set[str]()),
        (b"deflate", zlib.compress(PLAIN), PLAIN, set[str]()),
        (b"gzip", b"no gzip at all", b"*" * 14, {"not-a-card"}),
        (b"gzip", BROKEN, b"*" * len(BROKEN), {"not-a-card"}),
    ],
    ids=["gzip", "deflate", "another", "cut"],
)
async def test_a_coded_card_passes_as_it_is_and_is_recorded_as_far_as_it_can_be_read(
    open_ledger: OpenLedger, start_proxy: StartProxy, coding: bytes, octets: bytes, read: bytes, flags: set[str]
) -> None:
    ledger = open_ledger(mode="observe")
    with Serving(Peer(answering(200, octets, JSON, (b"content-encoding", coding)))) as upstream:
        answer, passed = await get_raw(start_proxy(ledger, upstream.url).url)
    assert (answer.status_code, passed) == (200, octets)
    assert answer.headers["content-encoding"] == coding.decode()
    assert answer.headers["content-length"] == str(len(octets))
    (fetched,) = only(ledger, "card.fetched")
    assert fetched.content("body") == read
    assert flags <= set(fetched.data["flags"] or ())  # type: ignore[arg-type]  # a list of texts
    kept = [json.loads(fetched.content(role) or b"[]") for role in fetched.blobs if role.startswith("header.")]
    assert ["content-encoding", coding.decode()] in kept


async def test_a_broken_coding_is_no_fault_of_ours_where_it_is_enforced(
    open_ledger: OpenLedger, start_proxy: StartProxy
) -> None:
    ledger = open_ledger(mode="enforce")
    with Serving(Peer(answering(200, b"no gzip at all", JSON, (b"content-encoding", b"gzip")))) as upstream:
        answer, _ = await get_raw(start_proxy(ledger, upstream.url).url)
    assert answer.status_code == 502
    assert [record.data["outcome"] for record in only(ledger, "card.fetch_failed")] == ["no-answer"]


async def test_a_card_in_a_coding_is_rewritten_without_it(open_ledger: OpenLedger, start_proxy: StartProxy) -> None:
    with Serving(Peer(answering(200, gzip.compress(PLAIN), JSON, (b"content-encoding", b"gzip")))) as upstream:
        proxy = start_proxy(open_ledger(mode="observe"), upstream.url, rewrite_card=True)
        answer, passed = await get_raw(proxy.url)
    assert "content-encoding" not in answer.headers
    assert json.loads(passed)["name"] == "a"
