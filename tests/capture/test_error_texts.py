"""What is recorded of an error tells what happened to the connection, and nothing of what was sent or came."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import zlib
from typing import TYPE_CHECKING

import httpx
import pytest
from pydantic import BaseModel, ValidationError

from a2a_ledger.capture.failures import describe_failure
from a2a_ledger.capture.fragments import find_begun, find_parts
from a2a_ledger.capture.redact import Secret, cut, filled, kept_headers, wanted_of
from a2a_ledger.errors import StoreError
from tests.capture.conftest import only
from tests.capture.peer import CARD_URL, URL, Peer, card, message
from tests.capture.stored import clear, holding

if TYPE_CHECKING:
    from tests.capture.conftest import MakeGuard, OpenLedger

TOKEN = "pt-8f3a91c07e55d2b46a-end"
SECRET = Secret("push-token", TOKEN.encode())


class Config(BaseModel):
    """What an SDK reads a push configuration as."""

    url: int
    token: int


def refused(value: object) -> ValidationError:
    """Return what pydantic says of a value that it refuses."""
    with pytest.raises(ValidationError) as raised:
        Config.model_validate(value)
    return raised.value


class RequestsError(OSError):
    """Of a library whose errors are `OSError`s and quote urls without their scheme."""


WIRE = [
    (ConnectionRefusedError(111, "Connection refused"), "ConnectionRefusedError: [Errno 111] Connection refused"),
    (httpx.ReadTimeout("no answer in 5 s"), "ReadTimeout: no answer in 5 s"),
    (TimeoutError("too late"), "TimeoutError: too late"),
    (socket.gaierror(-2, "Name or service not known"), "gaierror: [Errno -2] Name or service not known"),
    (ssl.SSLError(1, "[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED]"), "SSLError: [SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED]"),
    (asyncio.CancelledError("nobody waits"), "CancelledError: nobody waits"),
    (httpx.DecodingError("Error -3 while decompressing"), "DecodingError: Error -3 while decompressing"),
    (StoreError("the disk is full"), "StoreError: the disk is full"),
    (
        httpx.RemoteProtocolError(f"illegal header line: bytearray(b'Set-Cookie {TOKEN}')"),
        "RemoteProtocolError: illegal header line: bytearray(…)",
    ),
    (
        httpx.LocalProtocolError(f"Illegal header value b'Bearer {TOKEN}\\n'"),
        "LocalProtocolError: Illegal header value …",
    ),
]
OTHERS = [
    refused({"url": 1, "token": TOKEN}),
    refused({"url": TOKEN, "token": [TOKEN]}),
    ValueError(f"no such skill: {TOKEN}"),
    KeyError(TOKEN),
    RequestsError(f"HTTPSConnectionPool(host='h'): Max retries exceeded with url: /p?access_token={TOKEN}"),
    zlib.error(TOKEN),
    RuntimeError(TOKEN),
]


@pytest.mark.parametrize(("error", "text"), WIRE, ids=lambda value: type(value).__name__)
def test_an_error_of_the_connection_says_what_it_is(error: BaseException, text: str) -> None:
    assert describe_failure(error).text == text


@pytest.mark.parametrize("error", OTHERS, ids=lambda error: type(error).__name__)
def test_of_any_other_error_only_the_class_is_told(error: Exception) -> None:
    assert TOKEN[:6] in str(error)
    assert describe_failure(error).text == type(error).__name__


# ---- parts of a secret, in the error that somebody answers with


def kept(text: str) -> str:
    """Return what is recorded of an error answer."""
    return filled(cut("body", text.encode(), [SECRET], is_error=True))


def test_what_pydantic_shows_around_an_ellipsis_is_cut() -> None:
    text = str(refused({"url": 1, "token": {"long": "x" * 40 + TOKEN}}))
    assert "..." in text
    assert "6a-end" in text
    for answer in (text, json.dumps({"error": {"code": -32602, "message": text}})):
        assert "6a-end" not in kept(answer)
        assert "Input should be a valid integer" in kept(answer)


@pytest.mark.parametrize(
    ("text", "recorded"),
    [
        (f"bad token {TOKEN[:9]}...{TOKEN[-8:]}", "bad token *********...********"),
        ("input_value='pt-...end'", "input_value='***...***'"),
        (
            "Unexpected token 'x', ...\"8f3a91c\"... is not valid JSON",
            "Unexpected token 'x', ...\"*******\"... is not valid JSON",
        ),
        ("expired: 91c07e\u2026", "expired: ******\u2026"),
        (r'{"message": "expired: 1c07\u2026"}', r'{"message": "expired: ****\u2026"}'),
        (r'{"message": "pt-8f3a\u0039\u0031c0"}', '{"message": "' + "*" * 21 + '"}'),
        ("pt-8f expired, ask again... please", "pt-8f expired, ask again... please"),
        ("nothing of it", "nothing of it"),
    ],
)
def test_parts_of_a_secret_are_cut_in_an_error(text: str, recorded: str) -> None:
    assert kept(text) == recorded


def test_parts_are_left_in_what_is_no_error() -> None:
    text = f"as in {TOKEN[:9]}"
    assert filled(cut("body", f"{text}.".encode(), [SECRET])) == f"{text}."


def test_parts_are_not_looked_for_in_what_is_too_long() -> None:
    wanted = wanted_of([SECRET])
    assert find_parts(b" " * 262_138 + b"8f3a91", wanted) == [(262_138, 262_144)]
    assert find_parts(b" " * 262_139 + b"8f3a91", wanted) == []
    assert find_parts(b"8f3a91", [b"8f3a91" * 20_000]) == []


def test_a_challenge_shows_no_part_of_a_token() -> None:
    header = ("WWW-Authenticate", f'Bearer error="invalid_token", error_description="{TOKEN[:8]}... expired"')
    (blob,) = kept_headers([header], [SECRET])
    assert filled(blob) == (
        '["www-authenticate","Bearer error=\\"invalid_token\\", error_description=\\"********... expired\\""]'
    )


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        (b'{"token": "pt-8f3a91c0', 11),
        (b'{"token": "pt-8f3a\\u0039\\u0031', 11),
        (b'{"token": "pt-8f3a91\\u00', 11),
        (b"?token=pt%2D8f3a91c%3", 7),
        (b'{"raw": "cHQtOGYzYTkx', 9),
        (b"pt-8f3", 0),
    ],
)
def test_a_text_that_breaks_off_in_a_secret_loses_that_end(text: bytes, begins: int) -> None:
    assert find_begun(text, wanted_of([SECRET])) == [(begins, len(text))]


def test_a_beginning_within_a_beginning_is_cut_from_the_first_on() -> None:
    assert find_begun(b"x abcabcabcabc", [b"abcabcabcabcXYZ"]) == [(2, 14)]


@pytest.mark.parametrize("text", [b'{"a": "pt-8f"', b"nothing", b"", b'{"a": "pt-8f3a"}'])
def test_a_text_that_does_not_break_off_in_a_secret_stays(text: bytes) -> None:
    assert find_begun(text, wanted_of([SECRET])) == []


# ---- in the log


async def test_no_part_of_a_push_token_is_in_the_log(open_ledger: OpenLedger, make_guard: MakeGuard) -> None:
    """The agent answers with what its SDK says of the request; then the client's own parser fails in the transport."""
    text = str(refused({"url": 1, "token": {"long": "x" * 40 + TOKEN}}))
    answers: list[httpx.Response | Exception] = [
        httpx.Response(200, json={"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": text}}),
        httpx.Response(422, json={"detail": text}),
        refused({"url": 1, "token": TOKEN}),
    ]

    def answer(_: httpx.Request) -> httpx.Response:
        came = answers.pop(0)
        if isinstance(came, Exception):
            raise came
        return came

    ledger = open_ledger()
    async with make_guard(ledger).httpx_client(transport=Peer(card(), answer)) as client:
        await client.get(CARD_URL)
        for number in range(3):
            call = message(f"m{number}")
            call["params"]["configuration"] = {"taskPushNotificationConfig": {"url": "https://h/p", "token": TOKEN}}
            if len(answers) == 1:
                with pytest.raises(ValidationError):
                    await client.post(URL, json=call)
            else:
                await client.post(URL, json=call)
    records = only(ledger, "message.recorded")
    assert [record.data["leg"] for record in records] == ["request", "response"] * 2 + ["request", "error"]
    assert records[-1].content("error") == b"ValidationError"
    assert [part for part in (TOKEN[:6], TOKEN[6:12], TOKEN[-6:]) if holding(ledger, part)] == []
    assert b"Input should be a valid integer" in clear(records[1])
