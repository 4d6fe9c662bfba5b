"""An API key in a query is found however its client spelled the name that the card gives it."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast
from urllib.parse import quote, quote_plus

import httpx
import pytest

from a2a_ledger.capture.credentials import ApiKeyPlace, find_secrets
from tests.capture.conftest import only
from tests.capture.peer import CARD_URL, URL, Peer, message, with_key
from tests.capture.stored import holding

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.capture.conftest import MakeGuard, OpenLedger

SECRET = "SeCrEtVaLuE123456"
NAMES = (
    "user_member",
    "user member",
    "user+member",
    "user % member",
    "user%20member",
    "a+b c%2Bd",
    "schlüssel wört",
    "鍵 +",
)
WORKING = {
    "jsonrpc": "2.0",
    "id": 1,
    "result": {"task": {"id": "T1", "contextId": "C1", "status": {"state": "TASK_STATE_WORKING"}}},
}


def percent(name: str) -> str:
    """Spell a name as RFC 3986 section 2.1 does."""
    return quote(name, safe="")


def plus_as_it_is(name: str) -> str:
    """Spell a name as RFC 3986 section 3.4 allows too: `+` is no delimiter of a query."""
    return quote(name, safe="+")


@pytest.mark.parametrize("spell", [quote_plus, percent, plus_as_it_is])
@pytest.mark.parametrize("name", NAMES)
async def test_a_key_under_any_name_is_a_hole_and_shows_that_its_scheme_was_exercised(
    open_ledger: OpenLedger, make_guard: MakeGuard, name: str, spell: Callable[[str], str]
) -> None:
    ledger = open_ledger(mode="observe")
    peer = Peer(with_key("query", name), lambda _: httpx.Response(200, json=WORKING))
    async with make_guard(ledger).httpx_client(transport=peer) as client:
        await client.get(CARD_URL)
        await client.post(f"{URL}?x=1&{spell(name)}={SECRET}", json=message("m1"), headers={"A2A-Version": "1.0"})
    ledger.catch_up()
    assert SECRET in str(peer.asked[-1].url)
    assert holding(ledger, SECRET) == []
    sent = next(r for r in only(ledger, "message.recorded") if r.data["leg"] == "request")
    assert [mark["scheme"] for mark in cast("list[dict[str, str]]", sent.data["credential"])] == ["k"]
    assert [r.data["rule"] for r in ledger.store.read(0, 100) if "violation" in r.type] == []


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("https://h/a?a+b=v1", ["a b", "a+b"]),  # who spelled it is not known: neither scheme is said to be unused
        ("https://h/a?a%20b=v1", ["a b"]),
        ("https://h/a?a%2Bb=v1", ["a+b"]),
        ("https://h/a#a+b=v1", ["a b", "a+b"]),
        ("https://h/a;a+b=v1", ["a+b"]),  # in a path `+` is always itself
        ("https://h/a;a%20b=v1", ["a b"]),
        ("https://h/a?access+token=v1", [""]),
        ("https://h/a?a++b=v1", []),
    ],
)
def test_a_plus_is_a_space_only_behind_the_path(url: str, found: list[str]) -> None:
    places = [ApiKeyPlace(name, "query", name) for name in ("a b", "a+b")]
    secrets = find_secrets((), url, {}, places)
    assert sorted(one.scheme for one in secrets) == found
    assert {one.value for one in secrets} <= {b"v1"}
