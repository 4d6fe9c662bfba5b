"""A key in a url's query that no card has named yet: what nobody can tell from a key is in no record."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import httpx
import pytest

from a2a_ledger.capture.redact import cut, filled
from a2a_ledger.codec import Hole, Kept
from a2a_ledger.errors import CardError
from tests.capture.conftest import only
from tests.capture.peer import CARD_URL, ORIGIN, URL, Peer, card, message, said, with_key
from tests.capture.stored import holding

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.capture.conftest import MakeGuard, OpenLedger

KEY = "k3y-of-the-caller"
SIGNED = "p0licy-of-a-signed-url"
ELSEWHERE = f"https://cdn.example/card.json?zz={SIGNED}#{SIGNED}"


def to_elsewhere(request: httpx.Request) -> httpx.Response:
    if request.url.host == "cdn.example":
        return httpx.Response(200, json=with_key("query", "zz"))
    html = f'<a href="{ELSEWHERE}">moved</a> from {request.url}'
    return httpx.Response(302, headers={"location": ELSEWHERE}, text=html)


def lost_elsewhere(request: httpx.Request) -> httpx.Response:
    if request.url.host == "cdn.example":
        raise httpx.ConnectError(f"cannot reach {request.url} (asked for by {CARD_URL}?zz={KEY})")
    return to_elsewhere(request)


def refused(request: httpx.Request) -> httpx.Response:
    return httpx.Response(404, text=f"nothing at {request.url}", headers={"location": ELSEWHERE})


def not_a_card(request: httpx.Request) -> httpx.Response:
    return httpx.Response(200, text=f"<p>You asked for {request.url}</p>")


def no_answer(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError(f"cannot reach {request.url}")


def no_answer_spelled(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError(f"cannot reach {str(request.url).replace(KEY, KEY.replace('-', '%2D'))!r}")


@pytest.mark.parametrize("follow", [True, False])
@pytest.mark.parametrize(
    "answer",
    [to_elsewhere, lost_elsewhere, refused, not_a_card, no_answer, no_answer_spelled],
    ids=lambda f: f.__name__,
)
async def test_a_card_that_does_not_come_at_once_leaves_no_query_in_the_record(
    open_ledger: OpenLedger, make_guard: MakeGuard, answer: Callable[[httpx.Request], httpx.Response], follow: bool
) -> None:
    ledger = open_ledger()
    client = make_guard(ledger).httpx_client(
        transport=httpx.MockTransport(answer), params={"zz": KEY}, follow_redirects=follow
    )
    async with client:
        with suppress(httpx.ConnectError, CardError):
            await client.get(CARD_URL)
    assert only(ledger, "card.fetched") + only(ledger, "card.fetch_failed") != []
    assert [holding(ledger, secret) for secret in (KEY, SIGNED)] == [[], []]


async def test_where_a_redirect_leads_is_kept_without_what_it_says_there(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    async with make_guard(ledger).httpx_client(transport=httpx.MockTransport(to_elsewhere)) as client:
        await client.get(CARD_URL)
    failed = only(ledger, "card.fetch_failed")[0]
    parts = failed.stored_parts("header.01")
    assert parts is not None
    kept, hole = parts[:2]
    assert isinstance(kept, Kept)
    assert isinstance(hole, Hole)
    assert (kept.content, hole.length) == (b'["location","https://cdn.example/card.json?zz=', len(SIGNED))


async def test_a_first_card_that_names_its_key_still_tells_what_else_was_asked(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    peer = httpx.MockTransport(lambda _: httpx.Response(200, json=with_key("query", "zz")))
    async with make_guard(ledger).httpx_client(transport=peer) as client:
        await client.get(f"{CARD_URL}?tenant=northern-branch&zz={KEY}")
    assert holding(ledger, KEY) == []
    assert holding(ledger, "northern-branch") == [only(ledger, "card.fetched")[0].n]


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        ({"zz": KEY}, []),
        ({"contextId": "C1-of-this-talk", "zz": KEY}, ["C1-of-this-talk"]),
        ({"history_length": "1234567", "page-token": "after-number-20", "zz": KEY}, ["1234567", "after-number-20"]),
    ],
)
async def test_a_call_to_a_peer_without_a_card_keeps_what_a2a_itself_names(
    open_ledger: OpenLedger, make_guard: MakeGuard, asked: dict[str, str], kept: list[str]
) -> None:
    ledger = open_ledger()

    def fails(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError(f"cannot reach {request.url}")

    async with make_guard(ledger).httpx_client(transport=httpx.MockTransport(fails)) as client:
        with pytest.raises(httpx.ConnectError):
            await client.get(f"{ORIGIN}/v1/tasks/T1", params=asked)
    assert holding(ledger, KEY) == []
    request, error = only(ledger, "message.recorded")
    assert all(request.n in holding(ledger, value) for value in kept)
    assert error.stored_parts("error") is not None


async def test_a_peer_whose_card_is_known_keeps_the_queries_that_no_card_calls_a_key(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    peer = Peer(card(), lambda _: httpx.Response(200, json=said("done")))
    async with make_guard(ledger).httpx_client(transport=peer) as client:
        await client.get(CARD_URL)
        await client.post(URL, params={"region": "northern-branch"}, json=message("m1"))
    sent = only(ledger, "message.recorded")[0]
    assert sent.content("url") == f"{URL}?region=northern-branch".encode()


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("no https://a.example/x?zz=1&b=2 there", "no https://a.example/x?******** there"),
        ("URL('https://a.example?q#f') refused", "URL('https://a.example?***') refused"),
        ("is it up? ask https://a.example/", "is it up? ask https://a.example/"),
        ("https://u:p@a.example/#t", "https://***@a.example/#*"),
    ],
)
def test_an_error_text_has_no_query_of_any_url(text: str, kept: str) -> None:
    assert filled(cut("error", text.encode(), ())) == kept
