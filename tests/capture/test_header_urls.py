"""Urls in headers that are kept: what is secret in them is recorded nowhere, and everything else is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from a2a_ledger.capture.credentials import find_mentioned
from a2a_ledger.capture.recorder import card_ask_of
from a2a_ledger.capture.redact import KEPT_HEADERS, cut, filled, kept_headers
from a2a_ledger.capture.redacted import recorded_uri, see
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


def test_what_a_header_says_in_a_url_is_a_secret_of_the_exchange_though_the_header_is_not_kept() -> None:
    found = find_mentioned(
        [
            ("a2a-extensions", "urn:a, https://x.example/ext?key=ext-key-1"),
            ("Referer", "https://h/?token=ref-token"),
            ("Origin", "https://me:a-password@h"),
            ("Link", "<https://h/?sig=link-sig>; rel=next"),
            ("DPoP", "proof"),
            ("X-CSRF-Token", "csrf"),
            ("Accept", "text/html;q=0.8"),
            ("Cookie", "a=https://h/?token=no"),
        ]
    )
    assert {secret.scheme for secret in found} == {""}
    assert [secret.value for secret in found] == [
        b"ext-key-1",
        b"ref-token",
        b"me:a-password",
        b"link-sig",
        b"proof",
        b"csrf",
    ]
    assert found[2].parts == (b"me", b"a-password")


def test_a_proof_in_a_header_is_no_other_caller_of_a_card() -> None:
    asked = [
        card_ask_of(CARD_URL, [("DPoP", proof), ("A2A-Extensions", f"urn:x?key={proof}")]) for proof in ("a1", "b2")
    ]
    assert {ask.caller for ask in asked} == {"anonymous"}
    assert [ask.telling for ask in asked] == [(), ()]
    assert [secret.value for secret in asked[0].secrets] == [b"a1", b"a1"]


@pytest.mark.parametrize(
    "credentials",
    [
        f'Digest username="u", realm="r", nonce="n", uri="/rpc", response="{SECRET}"',
        f"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/iam, SignedHeaders=host, Signature={SECRET}",
        f'OAuth oauth_consumer_key="{SECRET}",oauth_version="1.0"',
    ],
)
def test_a_secret_parameter_of_credentials_is_cut_wherever_it_comes_back(credentials: str) -> None:
    seen = see([("Authorization", credentials)], b"")
    assert (
        filled(cut("body", f"no {SECRET} for /rpc of host".encode(), seen.secrets)) == f"no {'*' * 16} for /rpc of host"
    )


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
