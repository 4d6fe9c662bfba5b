"""A message with more headers than any HTTP stack takes is unreadable, in whatever format, and costs no other."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from a2a_ledger.capture.formats.har import read_entry
from a2a_ledger.capture.formats.lone import read_message
from a2a_ledger.capture.formats.vcr import read_json_interaction
from a2a_ledger.capture.jsonl_line import read_line
from a2a_ledger.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Callable

URL = "https://vendor.example/x"
Headers = list[tuple[str, str]]


def as_line(headers: Headers) -> bytes:
    return json.dumps({"request": {"method": "GET", "url": URL, "headers": headers}}).encode()


def as_har(headers: Headers) -> bytes:
    listed = [{"name": name, "value": value} for name, value in headers]
    entry: dict[str, Any] = {"request": {"method": "GET", "url": URL, "headers": listed}, "response": {"status": 200}}
    return json.dumps(entry).encode()


def as_cassette(headers: Headers) -> bytes:
    told: dict[str, list[str]] = {}
    for name, value in headers:
        told.setdefault(name, []).append(value)
    asked = {"method": "GET", "uri": URL, "headers": told}
    return json.dumps({"request": asked, "response": {"status": {"code": 200}}}).encode()


def as_text(headers: Headers) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    return f"GET {URL} HTTP/1.1\r\n{lines}\r\n".encode()


@pytest.mark.parametrize(
    ("spelled", "read"),
    [
        (as_line, read_line),
        (as_har, read_entry),
        (as_cassette, read_json_interaction),
        (as_text, read_message),
    ],
    ids=["lines", "har", "cassette", "text"],
)
def test_headers_are_read_up_to_ten_thousand_and_a_mebi_of_characters(
    spelled: Callable[[Headers], bytes], read: Callable[..., Any]
) -> None:
    assert len(read(spelled([("a", "b")] * 10_000)).request.headers) == 10_000
    assert len(read(spelled([("a", "b" * (2**20 - 1))])).request.headers) == 1
    for more in ([("a", "b")] * 10_001, [("a", "b" * 2**20)]):
        with pytest.raises(FormatError, match="headers: expected at most 10000 headers of 1048576 characters in all"):
            read(spelled(more))
