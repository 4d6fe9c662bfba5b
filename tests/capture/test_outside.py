"""What is no A2A call is recorded without what it says: tokens and client secrets pass through the same client."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from a2a_ledger.capture.outside import field_values
from a2a_ledger.codec import Hole
from tests.capture.conftest import only
from tests.capture.peer import CARD_URL, ORIGIN, URL, Chunks, Peer, card, message, said
from tests.capture.stored import clear, headers, holding

if TYPE_CHECKING:
    from a2a_ledger import ContractLedger
    from a2a_ledger.codec import Record
    from tests.capture.conftest import MakeGuard, OpenLedger

SECRETS = ["VerySecretClientSecret1", "AccessTokenAbc123456", "RefreshTok987654", "BasicPass-4711"]
GRANT = {"grant_type": "client_credentials", "client_id": "me", "client_secret": SECRETS[0]}
GRANTED = {"access_token": SECRETS[1], "token_type": "Bearer", "refresh_token": SECRETS[2]}
FORM = "grant_type=client_credentials&client_id=me&client_secret=VerySecretClientSecret1"
SSE = {"content-type": "text/event-stream"}


def at(ledger: ContractLedger, url: str) -> list[Record]:
    """Return the messages to or from one url."""
    return [record for record in only(ledger, "message.recorded") if record.data["url"] == url]


@pytest.mark.parametrize("url", [f"{ORIGIN}/token", "https://login.example/oauth2/token", f"{URL}/token"])
@pytest.mark.parametrize("asked", [{"data": GRANT}, {"json": GRANT}, {"json": {**GRANT, "method": "client"}}])
@pytest.mark.parametrize(
    "answered",
    [
        {"json": GRANTED},
        {"json": [{"deep": {"er": GRANTED}}]},
        {"text": json.dumps(GRANTED), "headers": SSE},
        {"content": b"data: " + json.dumps(GRANTED).encode() + b"\n\n", "headers": SSE},
        {"status_code": 400, "text": f"bad secret {SECRETS[0]}: {SECRETS[1]} {SECRETS[2]}"},
    ],
)
async def test_a_token_request_is_recorded_without_its_bodies(
    open_ledger: OpenLedger, make_guard: MakeGuard, url: str, asked: dict[str, Any], answered: dict[str, Any]
) -> None:
    ledger = open_ledger()
    answer: dict[str, Any] = {"status_code": 200, **answered}
    async with make_guard(ledger).httpx_client(transport=Peer(card(), lambda _: httpx.Response(**answer))) as client:
        await client.get(CARD_URL)
        assert (await client.post(url, auth=("me", SECRETS[3]), **asked)).status_code == answer["status_code"]
    recorded = at(ledger, url)
    assert [record.data["leg"] for record in recorded][:2] in (["request", "response"], ["request", "stream-event"])
    for record in recorded:
        parts = record.stored_parts("body") or ()
        assert all(isinstance(part, Hole) for part in parts)
        assert record.blobs["body"].size > 0 if record.data["leg"] != "stream-end" else "body" not in record.blobs
    assert [holding(ledger, secret) for secret in SECRETS] == [[], [], [], []]


async def test_without_any_card_and_over_plain_http_the_same(open_ledger: OpenLedger, make_guard: MakeGuard) -> None:
    ledger = open_ledger()
    peer = Peer(card(), lambda _: httpx.Response(302, headers={"location": "/x?code=AuthCode-1234567&state=s"}))
    async with make_guard(ledger).httpx_client(transport=peer) as client:
        await client.get("http://login.example/authorize?login_hint=somebody-here&state=state-of-mine-1")
    assert [holding(ledger, text) for text in ("AuthCode-1234567", "somebody-here", "state-of-mine-1")] == [[], [], []]
    assert [record.data["url"] for record in only(ledger, "message.recorded")] == ["http://login.example/authorize"] * 2


async def test_what_an_agent_is_asked_in_another_protocol_is_kept_but_for_the_oauth_members(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    peer = Peer(card(), lambda _: httpx.Response(200, json={"ok": "kept as it is", "nested": [GRANTED]}))
    async with make_guard(ledger).httpx_client(transport=peer) as client:
        await client.get(CARD_URL)
        await client.post(URL, content=FORM + "&note=kept-too")
    stored = b"".join(clear(record) for record in at(ledger, URL))
    assert b"kept as it is" in stored
    assert b"note=kept-too" in stored
    assert b"grant_type=client_credentials" in stored
    assert [holding(ledger, secret) for secret in SECRETS] == [[], [], [], []]


async def test_an_a2a_message_keeps_its_words_whatever_they_are(open_ledger: OpenLedger, make_guard: MakeGuard) -> None:
    ledger = open_ledger()
    answer = {**said("code=12345678 password=12345678"), "code": "assertion"}
    async with make_guard(ledger).httpx_client(
        transport=Peer(card(), lambda _: httpx.Response(200, json=answer))
    ) as client:
        await client.get(CARD_URL)
        await client.post(URL, json=message("m1"))
    assert only(ledger, "message.recorded")[-1].content("body") == httpx.Response(200, json=answer).content


async def test_a_large_download_leaves_holes_that_a_reader_can_fill(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    body = bytes(3 * 1024 * 1024 + 5)
    peer = Peer(card(), lambda _: httpx.Response(200, content=body))
    async with make_guard(ledger).httpx_client(transport=peer) as client:
        await client.get("https://files.example/report.pdf")
    record = only(ledger, "message.recorded")[-1]
    assert record.content("body") == b"*" * len(body)
    assert clear(record).count(b"\0") < 16


async def test_what_came_of_a_token_answer_that_broke_off_is_withheld_too(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ledger = open_ledger()
    came = json.dumps(GRANTED).encode()[:-3]
    peer = Peer(card(), lambda _: httpx.Response(200, stream=Chunks(came, httpx.ReadError("reset"))))
    async with make_guard(ledger).httpx_client(transport=peer) as client:
        with pytest.raises(httpx.ReadError):
            await client.post(f"{ORIGIN}/token", data=GRANT)
    assert [record.data["leg"] for record in only(ledger, "message.recorded")] == ["request", "response", "error"]
    assert [holding(ledger, secret) for secret in SECRETS] == [[], [], [], []]
    assert headers(only(ledger, "message.recorded")[1]) == []


@pytest.mark.parametrize(
    ("body", "values"),
    [
        (b"client_secret=a%20b&x=1", [b"a%20b"]),
        (b"x=1&Client%5FSecret=ab", [b"ab"]),
        (b'{"access_token" : "a\\"b", "x": "y"}', [b'a\\"b']),
        (b'{"\\u0061ccess_token": "ab"}', [b"ab"]),
        (b'{"accessToken": 12345, "refresh-token": "cd"}', [b"12345", b"cd"]),
        (b'{"password": ["a", "b"], "x": 1}', [b'["a", "b"], "x": 1}']),
        (b'{"access_token": "cut sho', [b"cut sho"]),
        (b'--x\r\nContent-Disposition: form-data; name="password"\r\n\r\na b\r\n--x--', [b"a b"]),
        (b"--x\nContent-Disposition: form-data; name=code; x=y\nContent-Type: text/plain\n\ncd", [b"cd"]),
        (b'--x\r\nContent-Disposition: form-data; name="file"; filename="password"\r\n\r\na\r\n--x--', []),
        (b'{"tokens": "x", "code_of": "y", "mycode": "z"}', []),
        (b"", []),
    ],
)
def test_oauth_members_are_found_in_forms_and_json(body: bytes, values: list[bytes]) -> None:
    assert [body[start:end] for start, end in field_values(body)] == values


async def test_what_a_login_redirects_with_is_withheld_under_whatever_name(
    open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    secrets = ["ST-TicketSecret1", "SamlSecret99", "NamelessSecret5", "FragmentSecret7", "Qx7"]
    place = "/cb?ticket={}&SAMLResponse={}&{}&p={last}#{}".format(*secrets[:4], last=secrets[4])

    def login(request: httpx.Request) -> httpx.Response:
        back = httpx.Response(302, headers={"location": f"https://sso.example{place}"})
        return back if request.url.path == "/login" else httpx.Response(200, text="in")

    ledger = open_ledger()
    transport = httpx.MockTransport(login)
    async with make_guard(ledger).httpx_client(transport=transport, follow_redirects=True) as client:
        assert (await client.post("https://sso.example/login", data={"u": "x"})).text == "in"
    assert [record.data["leg"] for record in only(ledger, "message.recorded")] == ["request", "response"] * 2
    assert [holding(ledger, secret) for secret in secrets] == [[], [], [], [], []]
    answer = only(ledger, "message.recorded")[1]
    assert b"https://sso.example/cb?ticket=" in clear(answer)
