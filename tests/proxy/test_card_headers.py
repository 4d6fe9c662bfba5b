"""A rewritten card is other octets: no tag, digest, range or length of the agent's copy stands on it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from a2a_ledger import guard
from a2a_ledger.capture.proxy import proxy_app
from a2a_ledger.capture.proxy.card_headers import CardHeaders
from tests.capture.agent import Agent
from tests.proxy.conftest import only
from tests.proxy.peer import Peer, answering, get
from tests.proxy.serving import Serving, free_port
from tests.proxy.test_rewriting import WELL_KNOWN, card

if TYPE_CHECKING:
    from tests.proxy.conftest import OpenLedger, StartProxy

HEADERS = CardHeaders("https://agent.example", "https://proxy.example", "a2a-ledger/0.1.0")
OF_THE_COPY = [
    (b"content-digest", b"sha-256=:AAAA:"),
    (b"repr-digest", b"sha-256=:AAAA:"),
    (b"digest", b"sha-256=AAAA"),
    (b"content-md5", b"AAAA"),
    (b"accept-ranges", b"bytes"),
    (b"last-modified", b"Thu, 01 Jan 2026 00:00:00 GMT"),
]
KEPT = [(b"content-type", b"application/json"), (b"cache-control", b"max-age=60"), (b"vary", b"A2A-Version")]


def ours(tag: bytes, headers: CardHeaders = HEADERS) -> bytes:
    """Return the tag that stands on the rewritten card."""
    return headers.answered([(b"etag", tag)])[0][1]


def agents(asked: bytes, headers: CardHeaders = HEADERS) -> list[tuple[bytes, bytes]]:
    """Return what the agent is asked with."""
    return headers.asked([(b"If-None-Match", asked)])


@pytest.mark.parametrize("tag", [b'"v1"', b'W/"v1"', b'""', b'"a,b"', b'"\xe9"'])
def test_a_tag_goes_there_and_back(tag: bytes) -> None:
    assert ours(tag) != tag
    assert ours(tag).startswith(b"W/") == tag.startswith(b"W/")
    assert agents(ours(tag)) == [(b"If-None-Match", tag)]
    assert agents(b'"x", ' + ours(tag) + b" , " + ours(b'"v2"')) == [(b"If-None-Match", tag + b', "v2"')]


def test_one_tag_of_the_agent_is_one_tag_of_ours_and_another_is_another() -> None:
    """Whoever gives two cards one tag does so behind the proxy too."""
    assert ours(b'"v1"') == ours(b'"v1"') != ours(b'"v2"')


@pytest.mark.parametrize(
    "other",
    [
        CardHeaders("https://agent.example", "https://elsewhere.example", "a2a-ledger/0.1.0"),
        CardHeaders("https://other.example", "https://proxy.example", "a2a-ledger/0.1.0"),
        CardHeaders("https://agent.example", "https://proxy.example", "a2a-ledger/0.2.0"),
    ],
)
def test_a_card_that_was_rewritten_otherwise_is_never_confirmed(other: CardHeaders) -> None:
    assert agents(ours(b'"v1"', other)) == []
    assert agents(b'"v1"') == [], "of the card as the agent serves it"
    assert agents(b"*") == [(b"If-None-Match", b"*")]


def test_a_tag_that_is_none_is_left_out() -> None:
    assert HEADERS.answered([(b"etag", b"v1"), *OF_THE_COPY, *KEPT]) == KEPT


def test_a_part_is_never_asked_for() -> None:
    asked = [
        *((b"Range", b"bytes=0-9"), (b"If-Range", b'"v1"'), (b"If-Modified-Since", b"Thu, 01 Jan 2026 00:00:00 GMT")),
        (b"accept", b"*/*"),
    ]
    assert HEADERS.asked(asked) == [(b"accept", b"*/*")]


@pytest.mark.parametrize("mode", ["observe", "enforce"])
async def test_a_rewritten_card_on_the_wire(open_ledger: OpenLedger, start_proxy: StartProxy, mode: str) -> None:
    port = free_port()
    original = json.dumps(card(f"http://127.0.0.1:{port}")).encode()
    peer = Peer(answering(200, original, *KEPT, (b"etag", b'"v1"'), *OF_THE_COPY))
    with Serving(peer, port) as upstream:
        proxy = start_proxy(open_ledger(mode=mode), upstream.url, rewrite_card=True)
        got = await get(proxy.url + WELL_KNOWN, range="bytes=0-9", **{"if-none-match": '"v1"'})
        async with httpx.AsyncClient() as http:
            head = await http.head(proxy.url + WELL_KNOWN)
        peer.answer = answering(304, b"", (b"etag", b'"v1"'), (b"content-digest", b"sha-256=:AAAA:"))
        again = await get(proxy.url + WELL_KNOWN, **{"if-none-match": got.headers["etag"]})
    assert got.json()["supportedInterfaces"][0]["url"] == f"{proxy.url}/rpc"
    asked = [dict(one.headers) for one in peer.came]
    assert b"range" not in asked[0]
    assert b"if-none-match" not in asked[0]
    assert asked[-1][b"if-none-match"] == b'"v1"'
    assert again.headers["etag"] == got.headers["etag"]
    assert (again.status_code, again.content) == ((304, b"") if mode == "observe" else (200, got.content))
    for one in (got, head, again):
        assert one.headers["etag"].startswith('"v1-rewritten-')
        assert not {name.decode() for name, _ in OF_THE_COPY} & set(one.headers)
    assert got.headers["content-length"] == str(len(got.content))
    assert "content-length" not in head.headers
    assert got.headers["cache-control"] == head.headers["cache-control"] == "max-age=60"


async def test_what_is_no_card_passes_with_its_own_headers(open_ledger: OpenLedger, start_proxy: StartProxy) -> None:
    headers: list[Any] = [(b"content-type", b"text/plain"), (b"etag", b'"v1"'), *OF_THE_COPY]
    with Serving(Peer(answering(200, b"not a card", *headers))) as upstream:
        proxy = start_proxy(open_ledger(mode="observe"), upstream.url, rewrite_card=True)
        for path in (WELL_KNOWN, "/elsewhere"):
            got = await get(proxy.url + path)
            assert got.content == b"not a card"
            assert {name: got.headers[name.decode()].encode() for name, _ in headers} == dict(headers)


async def test_an_agent_behind_a_proxy_that_rewrites_no_longer_has_not_lied(open_ledger: OpenLedger) -> None:
    """One tag on two contracts is a certain finding about the peer: the proxy's copy has a tag of its own."""
    ours, port = open_ledger("client", mode="observe", follow=True), free_port()
    guarded = guard(ours)
    tags: list[str] = []
    with Agent(cache_control="no-cache") as agent:
        for rewrites in (True, False):
            theirs = open_ledger(f"proxy{rewrites}", mode="observe")
            app = proxy_app(theirs, agent.url, public=f"http://127.0.0.1:{port}", rewrite_card=rewrites)
            with Serving(app, port) as proxy:
                async with guarded.httpx_client() as client:
                    tags += [(await client.get(proxy.url + WELL_KNOWN)).headers["etag"]]
    await guarded.aclose()
    ours.catch_up()
    assert tags[0] != tags[1]
    first, second = only(ours, "card.fetched")
    assert first.data["raw_hash"] != second.data["raw_hash"]
    assert only(ours, "violation.detected") == []
