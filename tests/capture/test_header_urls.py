"""Urls in headers that are kept: what is secret in them is recorded nowhere, and everything else is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from a2a_ledger.capture.credentials import find_secrets
from a2a_ledger.capture.redact import KEPT_HEADERS, filled, kept_headers
from a2a_ledger.capture.redacted import recorded_uri
from tests.capture.conftest import only
from tests.capture.peer import CARD_URL, URL, Peer, card, message, said
from tests.capture.stored import headers, holding

if TYPE_CHECKING:
    from tests.capture.conftest import MakeGuard, OpenLedger

SECRET = "s3cret-in-here-1"
EXTENSION = "https://x.example/ext"


@pytest.mark.parametrize("name", sorted(KEPT_HEADERS))
@pytest.mark.parametrize(
    "url",
    [
        f"https://h.example/a?v=1&access_token={SECRET}#f",
        f"https://me:{SECRET}@h.example/a?v=1",
        f"https://h/a;sig={SECRET}",
    ],
)
def test_no_kept_header_shows_what_is_secret_in_a_url(name: str, url: str) -> None:
    (blob,) = kept_headers([(name, url)], [])
    assert SECRET not in filled(blob)
    assert filled(blob).startswith(f'["{name}","https://')


@pytest.mark.parametrize(
    ("value", "recorded"),
    [
        (f"{EXTENSION}?token=abc", f"{EXTENSION}?token=***"),
        (f"{EXTENSION}?token=abc, urn:b?v=1&key=x,{EXTENSION}", f"{EXTENSION}?token=***, urn:b?v=1&key=*,{EXTENSION}"),
        ("//me:pw@x.example/ext", "//*****@x.example/ext"),
        ("/ext?sig=1;v=2", "/ext?sig=*;v=2"),
        (f"{EXTENSION}?v=2", f"{EXTENSION}?v=2"),
    ],
)
@pytest.mark.parametrize("name", ["A2A-Extensions", "X-A2A-Extensions"])
def test_each_uri_of_a_list_is_read_as_a_url(name: str, value: str, recorded: str) -> None:
    (blob,) = kept_headers([(name, value)], [])
    assert filled(blob) == f'["{name.lower()}","{recorded}"]'


def test_what_a_header_says_in_a_url_is_a_secret_of_the_exchange() -> None:
    found = find_secrets(
        [("a2a-extensions", f"urn:a, {EXTENSION}?key={SECRET}"), ("Referer", f"/?key={SECRET}x")], "", {}
    )
    assert [(secret.scheme, secret.value) for secret in found] == [("", SECRET.encode())]


@pytest.mark.parametrize("short", ["", "ab", SECRET])
async def test_a_token_in_an_extension_uri_is_in_no_record(
    open_ledger: OpenLedger, make_guard: MakeGuard, short: str
) -> None:
    uri, starry = f"{EXTENSION}?access_token={short}", f"{EXTENSION}?access_token={'*' * len(short)}"
    ledger = open_ledger()
    peer = Peer(
        card(),
        lambda _: httpx.Response(200, json=said(f"under {uri}"), headers={"A2A-Extensions": uri, "ETag": f'"{uri}"'}),
    )
    async with make_guard(ledger).httpx_client(transport=peer) as client:
        await client.get(CARD_URL)
        await client.post(URL, json=message("m1"), headers={"A2A-Extensions": uri, "Referer": uri})
    asked, answered = only(ledger, "message.recorded")
    assert asked.data["extensions"] == [starry]
    assert answered.data["extensions"] == [starry]
    if len(short) > 2:
        assert holding(ledger, short) == []
    if short:
        assert ["a2a-extensions", uri] not in headers(asked)
    captured = only(ledger, "contract.captured")
    assert [record.data["extensions"] for record in captured] == [[]]


def test_a_name_is_recorded_whole_but_for_its_secrets() -> None:
    assert recorded_uri("urn:x") == "urn:x"
    assert recorded_uri(f"{EXTENSION}?v=1&key=ab#x") == f"{EXTENSION}?v=1&key=**#x"
