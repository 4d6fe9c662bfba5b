"""What a hostile agent sends without end: it passes, is committed to, and takes no memory."""

from __future__ import annotations

import gzip
import hashlib
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from a2a_ledger.card import MAX_CARD
from tests.proxy.conftest import only
from tests.proxy.peer import Peer, answering, get
from tests.proxy.serving import Serving

if TYPE_CHECKING:
    from tests.proxy.conftest import OpenLedger, StartProxy

JSON = (b"content-type", b"application/json")
CARD = "/.well-known/agent-card.json"
SMALL = b'{"name":"a","url":"http://127.0.0.1:1/","skills":[],"capabilities":{},"version":"1"}'
LARGE = SMALL + b" " * (MAX_CARD + 100_000)


@pytest.mark.parametrize("keep", [1000, 16 * 1024 * 1024])
@pytest.mark.parametrize("coded", [False, True])
@pytest.mark.parametrize("rewrites", [False, True])
async def test_a_card_that_is_too_large_passes_whole_and_is_said_to_be_that(
    open_ledger: OpenLedger, start_proxy: StartProxy, *, keep: int, coded: bool, rewrites: bool
) -> None:
    octets = gzip.compress(LARGE) if coded else LARGE
    headers = (JSON, (b"content-encoding", b"gzip")) if coded else (JSON,)
    ledger = open_ledger(keep_body=keep, mode="observe")
    with Serving(Peer(answering(200, octets, *headers))) as upstream:
        proxy = start_proxy(ledger, upstream.url, rewrite_card=rewrites)
        async with httpx.AsyncClient(trust_env=False) as http, http.stream("GET", proxy.url + CARD) as response:
            got = b"".join([chunk async for chunk in response.aiter_raw()])
    assert (response.status_code, got) == (200, octets)
    (fetch,) = only(ledger, "card.fetched")
    assert fetch.data["flags"] == ["not-a-card", "too-large"]
    assert fetch.data["raw_hash"] == f"sha256:{hashlib.sha256(LARGE).hexdigest()}"
    assert (fetch.blobs["body"].kept, fetch.blobs["body"].size) == ("head", len(LARGE))
    assert fetch.content("body") == LARGE[: min(keep, MAX_CARD + 1)]
    assert "contract_hash" not in fetch.data


async def test_a_card_that_is_too_large_does_not_pass_where_it_is_enforced(
    open_ledger: OpenLedger, start_proxy: StartProxy
) -> None:
    ledger = open_ledger(mode="enforce")
    with Serving(Peer(answering(200, LARGE, JSON))) as upstream:
        got = await get(start_proxy(ledger, upstream.url).url + CARD)
    assert got.status_code == 502
    (failed,) = only(ledger, "card.fetch_failed")
    assert f"expected a body of {MAX_CARD} octets at most" in (failed.content("error") or b"").decode()


HOSTILE = """
import asyncio, sys
import httpx
from tests.proxy.peer import Peer, say, start
from tests.proxy.serving import Serving, free_port
from a2a_ledger import ContractLedger
from a2a_ledger.cli.bench.started import peak_memory
from a2a_ledger.capture.proxy import proxy_app

pieces, piece = int(sys.argv[2]), b"x" * (1 << 20)
kind = b"text/event-stream" if sys.argv[3] == "event" else b"application/json"

async def answer(_, send, __):
    await start(send, 200, (b"content-type", kind))
    for _ in range(pieces):
        await say(send, piece, more=True)
    await say(send, b"")

async def main(url):
    seen = 0
    before = peak_memory()
    method, path = ("POST", "/rpc") if sys.argv[3] == "event" else ("GET", "/.well-known/agent-card.json")
    async with httpx.AsyncClient(timeout=None) as http, http.stream(method, url + path) as response:
        async for chunk in response.aiter_raw():
            seen += len(chunk)
    print(seen, peak_memory() - before)

words = dict(mark_dir=sys.argv[1] + "/m", mode="observe", follow=False, keep_body=1 << 20)
with ContractLedger.open(sys.argv[1] + "/l", **words) as ledger:
    with Serving(Peer(answer)) as upstream:
        port = free_port()
        with Serving(proxy_app(ledger, upstream.url, public=f"http://127.0.0.1:{port}"), port) as proxy:
            asyncio.run(main(proxy.url))
"""


@pytest.mark.slow
@pytest.mark.parametrize("what", ["card", "event"])
def test_what_comes_without_end_takes_no_memory(tmp_path: Path, what: str) -> None:
    root = Path(__file__).parents[2]
    words = [sys.executable, "-c", HOSTILE, str(tmp_path), "64", what]
    done = subprocess.run(words, cwd=root, capture_output=True, text=True, timeout=150, check=True)
    passed, grown = map(float, done.stdout.split())
    assert passed == 64 * 1024 * 1024
    assert grown < 40, f"{grown} MB more"
