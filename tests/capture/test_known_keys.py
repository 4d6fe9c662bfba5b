"""An API key is cut wherever any card of the peer ever put it, also in a process that never saw that card."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import httpx
import pytest

from a2a_ledger.capture.credentials import ANYWHERE, ApiKeyPlace, place_text, read_place
from a2a_ledger.card import peer_id
from a2a_ledger.codec.tags import tags_of
from a2a_ledger.errors import CaptureError
from tests.capture.conftest import only
from tests.capture.peer import CARD_URL, URL, Peer, card, message, said, with_key
from tests.capture.stored import holding

if TYPE_CHECKING:
    from a2a_ledger import ContractLedger
    from tests.capture.conftest import MakeGuard, OpenLedger

KEY = "OLD-KEY-123456"
PEER = peer_id(CARD_URL)
QUERY = ("query", "subkey")
HEADER = ("header", "X-Vendor-Thing")
COOKIE = ("cookie", "vendorsession")


def echo(request: httpx.Request) -> httpx.Response:
    """Say back everything that was asked with."""
    seen = [str(request.url), *(f"{name}={value}" for name, value in request.headers.items() if name != "content-type")]
    return httpx.Response(200, json=said(" ".join(seen)))


async def fetch(make_guard: MakeGuard, ledger: ContractLedger, served: dict[str, Any]) -> None:
    """Let another process fetch the card."""
    async with make_guard(ledger).httpx_client(transport=Peer(served, echo)) as client:
        with suppress(CaptureError):
            await client.get(CARD_URL, headers={"cache-control": "no-cache"})


async def call(make_guard: MakeGuard, ledger: ContractLedger, place: tuple[str, str], name: str) -> None:
    """Let a process that fetched nothing send with the old key."""
    at, member = place
    async with make_guard(ledger).httpx_client(transport=Peer(card(), echo)) as client:
        await client.post(
            URL,
            params={member: KEY} if at == "query" else None,
            headers={member: KEY} if at == "header" else {"cookie": f"a=b; {member}={KEY}"} if at == "cookie" else None,
            json=message(name),
        )


@pytest.mark.parametrize("place", [QUERY, HEADER, COOKIE])
@pytest.mark.parametrize("rotations", [1, 12])
async def test_a_key_of_a_card_that_was_replaced_is_cut(
    open_ledger: OpenLedger, make_guard: MakeGuard, place: tuple[str, str], rotations: int
) -> None:
    ledger = open_ledger(mode="observe")
    await fetch(make_guard, ledger, with_key(*place))
    for i in range(rotations):
        await fetch(make_guard, ledger, with_key("header", f"X-New-{i}"))
    await call(make_guard, ledger, place, "m1")
    assert holding(ledger, KEY) == []
    sent = next(r for r in only(ledger, "message.recorded") if r.data["leg"] == "request")
    assert [mark["scheme"] for mark in cast("list[dict[str, str]]", sent.data["credential"])] == ["k"]


async def test_a_key_of_a_card_that_lies_far_back_in_the_peers_stream_is_cut(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    await fetch(make_guard, ledger, with_key(*QUERY))
    async with make_guard(ledger).httpx_client(transport=Peer(card(), lambda _: httpx.Response(200))) as client:
        for _ in range(260):  # two records each: more than what is read of a peer's stream at first
            await client.post(URL, json={"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}})
    await call(make_guard, ledger, QUERY, "m1")
    assert holding(ledger, KEY) == []


@pytest.mark.parametrize("text", ["", '{"a": 1, "a": 2, ', '{"odd": 1.5e999, '])
async def test_a_key_of_a_card_that_no_contract_could_be_frozen_from_is_cut(
    open_ledger: OpenLedger, make_guard: MakeGuard, text: str
) -> None:
    ledger = open_ledger(mode="observe")
    served = httpx.Response(200, json=with_key(*QUERY)).text
    odd = text + served[1:] if text else served
    async with make_guard(ledger).httpx_client(
        transport=httpx.MockTransport(lambda _: httpx.Response(200, text=odd))
    ) as client:
        await client.get(CARD_URL)
    await call(make_guard, ledger, QUERY, "m1")
    assert holding(ledger, KEY) == []


async def test_more_places_than_a_record_holds_make_every_query_value_secret(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    many = {f"s{i}": {"apiKeySecurityScheme": {"location": "query", "name": f"q{i}"}} for i in range(40)}
    await fetch(make_guard, ledger, card(securitySchemes=many))
    [fetched] = only(ledger, "card.fetched")
    assert len(cast("list[str]", fetched.data["api_keys"])) == 33
    await call(make_guard, ledger, ("query", "q39"), "m1")
    assert holding(ledger, KEY) == []


async def test_a_peer_with_more_places_than_are_told_apart_cannot_push_an_old_one_out(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(mode="observe")
    await fetch(make_guard, ledger, with_key("query", "zz-oldest"))
    for i in range(9):
        many = {f"s{j}": {"apiKeySecurityScheme": {"location": "query", "name": f"a{i}-{j}"}} for j in range(32)}
        await fetch(make_guard, ledger, card(securitySchemes=many))
    await call(make_guard, ledger, ("query", "zz-oldest"), "m1")
    assert holding(ledger, KEY) == []


async def test_a_secret_that_a_card_says_back_as_a_name_is_in_no_record(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger(mode="observe")
    async with make_guard(ledger).httpx_client(transport=Peer(with_key("query", KEY, KEY), echo)) as client:
        await client.get(CARD_URL, headers={"authorization": f"Bearer {KEY}"})
    [fetched] = only(ledger, "card.fetched")
    assert fetched.data["api_keys"] == [place_text(ANYWHERE)]


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (ApiKeyPlace("k", "header", "x-api-key"), "header:x-api-key:k"),
        (ApiKeyPlace("my key: 100%", "query", "a:b"), "query:a%3Ab:my%20key%3A%20100%25"),
        (ApiKeyPlace("schlüssel", "cookie", ""), "cookie::schl%C3%BCssel"),
        (ANYWHERE, "query:*:"),
    ],
)
def test_a_place_is_spelled_in_one_way_and_read_again(place: ApiKeyPlace, text: str) -> None:
    assert place_text(place) == text
    assert read_place(text) == place


def test_the_tags_of_a_card_name_its_places() -> None:
    data: dict[str, Any] = {"peer": PEER, "api_keys": ["query:subkey:k", "header:x:y"], "status": 200}
    assert tags_of(f"peer:{PEER}", "card.fetched.v1", data) == (
        f"apikey:{PEER}:header:x:y",
        f"apikey:{PEER}:query:subkey:k",
    )
