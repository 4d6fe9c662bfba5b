"""What a peer sends takes time as it is long, whatever it is: four times the octets, never ten times the time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.capture.log_text import without_credentials
from a2a_ledger.capture.redacted import see
from a2a_ledger.wire import (
    answer_contents,
    parse_push,
    parse_request,
    parse_response,
    parse_stream_event,
    payload_digest,
    repeated_members,
    request_contents,
)
from a2a_ledger.wire.caching import forbids_keeping, max_age
from a2a_ledger.wire.demand import challenges
from a2a_ledger.wire.string_places import string_places

if TYPE_CHECKING:
    from collections.abc import Callable

SMALL, LARGE = 8_000, 32_000
AT_ONCE = 0.1
"""Seconds of the processor that say nothing; what is read more than once takes many times that."""

MANY_LISTS = b'{"artifact":' + b"[]," * 500
BEGINNINGS = {
    "string": b'"',
    "text": b'{"artifact":{"parts":[{"text":"',
    "lists": MANY_LISTS + b'"',
    "open-lists": b'{"artifact":' + b"[" * 480 + b'"',
    "secret": b'{"pushNotificationConfig":{"token":"',
}
REPEATED = [
    rb"\"",
    rb"\\",
    b"\\",
    b'"',
    b'""',
    b'"\\',
    b'{"a":"',
    b"[",
    b"a",
    b" ",
    b"a=",
    b'a="',
    b"a,",
    b"://",
    b"\r",
]
ASKED = parse_request("POST", "https://vendor.example/rpc", [("a2a-version", "1.0")], b'{"method":"SendMessage"}')

READERS: dict[str, Callable[[bytes], object]] = {
    "answer_contents": lambda text: answer_contents(text, 200, whole=True),
    "request_contents": request_contents,
    "payload_digest": payload_digest,
    "repeated_members": repeated_members,
    "string_places": lambda text: string_places(text, ["/artifact/parts/*/text"]),
    "parse_request": lambda text: parse_request("POST", "https://vendor.example/rpc", [], text),
    "parse_response": lambda text: parse_response(ASKED, 400, [], text),
    "parse_stream_event": lambda text: parse_stream_event(ASKED, b"data: " + text + b"\n\n"),
    "parse_push": lambda text: parse_push([], text),
    "see": lambda text: see([], text),
}
HEADERS: dict[str, Callable[[str], object]] = {
    "challenges": lambda text: challenges([text]),
    "max_age": max_age,
    "forbids_keeping": forbids_keeping,
    "see": lambda text: see([("www-authenticate", text), ("set-cookie", text), ("location", text)], b""),
    "without_credentials": without_credentials,
}
HEADER_BEGINNINGS = ["", '"', 'Bearer realm="', "Basic a", "max-age", ",", "http://", "Bearer a = "]


def took(work: Callable[[], object]) -> float:
    """Return the seconds of this thread's processor time that it took, the least of three."""
    found: list[float] = []
    for _ in range(2):
        began = time.thread_time()
        work()
        found.append(time.thread_time() - began)
        if found[-1] < AT_ONCE:
            break
    return min(found)


def check_growth(read: Callable[[int], Callable[[], object]]) -> None:
    large = took(read(LARGE))
    assert large < AT_ONCE or large < 10 * took(read(SMALL))


@pytest.mark.parametrize("beginning", BEGINNINGS)
@pytest.mark.parametrize("reader", READERS)
def test_a_body_is_read_in_time_as_it_is_long(reader: str, beginning: str) -> None:
    for unit in REPEATED:

        def read(length: int, unit: bytes = unit) -> Callable[[], object]:
            text = BEGINNINGS[beginning] + unit * (length // len(unit))
            return lambda: READERS[reader](text)

        check_growth(read)


@pytest.mark.parametrize("beginning", HEADER_BEGINNINGS)
@pytest.mark.parametrize("reader", HEADERS)
def test_a_header_is_read_in_time_as_it_is_long(reader: str, beginning: str) -> None:
    for unit in [*(one.decode() for one in REPEATED if one != b"\r"), "\t", "=", "a =", "a==", ";a", ", a ", "~"]:

        def read(length: int, unit: str = unit) -> Callable[[], object]:
            text = beginning + unit * (length // len(unit))
            return lambda: HEADERS[reader](text)

        check_growth(read)
