"""A credential that comes back in another encoding than UTF-8, or in base64, is in the store nowhere."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import httpx
import pytest

from a2a_ledger.capture.charsets import shows_in_charset
from a2a_ledger.capture.redact import Secret, cut, filled_octets, wanted_of
from a2a_ledger.capture.redacted import see
from tests.capture.conftest import only
from tests.capture.peer import CARD_URL, URL, Peer, card, message
from tests.capture.stored import all_octets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from tests.capture.conftest import MakeGuard, OpenLedger

TOKEN = "tök/en-+of-mine-77"
PLAIN = "push-token-of-mine-77"
CODECS = ["utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"]


def spelled(token: str) -> Iterable[bytes]:
    """Yield how a token may stand in any of these encodings, in base64 too: what must be found nowhere."""
    for codec in ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"):
        yield token.encode(codec)
    yield base64.b64encode(token.encode()).rstrip(b"=")


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    "text",
    [
        f'{{"error": "bad token {TOKEN}"}}',
        '{"error": "bad token t\\u00f6k\\/en-\\u002bof-mine-77"}',
        f'{{"\U0001f511 schlüssel": "€€€ {TOKEN}", "n": 1}}',
        "/login?token=t%C3%B6k%2Fen-%2Bof-mine-77",
    ],
)
def test_a_known_secret_is_cut_in_every_unicode_encoding(text: str, codec: str) -> None:
    body = text.encode(codec)
    kept = filled_octets(cut("body", body, [Secret("b", TOKEN.encode())]))
    assert len(kept) == len(body)
    for part in ("-mine", "k/en", "k\\/en", "%2Fen", "77"):
        assert all(part.encode(one) not in kept for one in CODECS[:1] + CODECS[2:4] + CODECS[5:])
    assert kept[:4] == body[:4]


@pytest.mark.parametrize("codec", CODECS)
def test_a_push_token_of_a_wide_body_is_a_secret_and_is_cut_in_its_place(codec: str) -> None:
    body = json.dumps({"pushNotificationConfig": {"url": "https://h/p", "token": TOKEN}, "id": 1}).encode(codec)
    seen = see((), body)
    assert [secret.value for secret in seen.secrets] == [TOKEN.encode()]
    ((start, end),) = seen.places
    assert body[:start].decode(codec).endswith('"token": "')
    ordered = {"utf-16": "utf-16-le", "utf-32": "utf-32-le"}.get(codec, codec)
    assert body[start:end].decode(ordered) == json.dumps(TOKEN)[1:-1]
    assert b"mine" not in filled_octets(cut("body", body, seen.secrets, places=seen.places)).replace(b"\0", b"")


def test_a_secret_in_a_block_that_begins_within_a_unit_is_cut() -> None:
    body = b"\0" + f"data: {PLAIN}\n".encode("utf-16-le")
    assert b"push" not in filled_octets(cut("body", body, [Secret("b", PLAIN.encode())])).replace(b"\0", b"")


def test_a_wide_body_that_breaks_off_in_a_secret_shows_nothing_of_it() -> None:
    for codec in ("utf-16-le", "utf-16-be", "utf-32-be"):
        body = f'{{"a": "{PLAIN}'.encode(codec)[:-5]
        kept = filled_octets(cut("body", body, [Secret("b", PLAIN.encode())]))
        assert b"push" not in kept.replace(b"\0", b"")


@pytest.mark.parametrize("before", ["", "x", "xy", "xyz"])
@pytest.mark.parametrize("behind", ["", "!", "!!"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_secret_in_base64_is_cut_wherever_it_stands_in_the_octets(
    before: str, behind: str, encode: Callable[[bytes], bytes]
) -> None:
    """As bytes of gRPC stand in ProtoJSON. Two octets at either end may share a sign with what stands beside them."""
    secret = "k?>~k?>~token-of-mine"
    text = encode(f"{before}{secret}{behind}".encode())
    kept = filled_octets(cut("body", b'{"raw": "' + text + b'"}', [Secret("b", secret.encode())]))
    left = kept.removeprefix(b'{"raw": "').removesuffix(b'"}').replace(b"*", b"")
    assert len(left) <= 4 * 4
    assert encode(secret[3:-3].encode())[4:-4] not in kept


@pytest.mark.parametrize(
    ("charset", "octets"),
    [
        ("utf-7", b"bad push+AC0-token+AC0-of-mine+AC0-77"),  # RFC 2152: +AC0- is a hyphen
        ("IBM037", bytes.fromhex("97a4a28860a396928595609686609489958560f7f7")),  # EBCDIC, by IBM's code page 37
        ("hz-gb-2312", b"push-token-of-mine-77"),
    ],
)
def test_what_shows_a_secret_in_its_declared_charset_is_known(charset: str, octets: bytes) -> None:
    wanted = wanted_of([Secret("b", PLAIN.encode())])
    assert shows_in_charset(f'application/json; charset="{charset}"', octets, wanted)
    assert not shows_in_charset(f"application/json; charset={charset}", b"*" * len(octets), wanted)
    for other in ("application/json", "text/html; charset=utf-8", "text/html; charset=punycode"):
        assert not shows_in_charset(other, b"", wanted)


@pytest.mark.parametrize("codec", [*CODECS, "utf-7", "cp037"])
async def test_no_encoding_brings_a_token_into_the_store(
    open_ledger: OpenLedger, make_guard: MakeGuard, tmp_path: Path, codec: str
) -> None:
    answer = json.dumps({"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": f"no {PLAIN}"}}).encode(codec)
    headers = {"content-type": f"application/json; charset={codec}"}
    call = message("m1")
    call["params"]["configuration"] = {"taskPushNotificationConfig": {"url": "https://h/p", "token": PLAIN}}
    ledger = open_ledger()
    peer = Peer(card(), lambda _: httpx.Response(200, content=answer, headers=headers))
    async with make_guard(ledger).httpx_client(transport=peer) as client:
        await client.get(CARD_URL)
        assert (await client.post(URL, json=call)).content == answer
    assert len(only(ledger, "message.recorded")) == 2
    ledger.close()
    stored = all_octets(tmp_path / "audit")
    assert not any(octets in stored for octets in spelled(PLAIN))
    assert PLAIN.encode(codec) not in stored
    assert (answer[:20] in stored) == (codec != "cp037")  # that is read by nobody: all of it is a hole
