"""Bytes that should be a card: whatever comes is judged, nothing raises."""

from __future__ import annotations

import hashlib
import json
import time

import pytest

from a2a_ledger.card import MAX_CARD, MAX_DEPTH, read_card
from a2a_ledger.contract import contract_of, diff, require_contract, summary
from a2a_ledger.errors import CardError

CARD: dict[str, object] = {
    "protocolVersion": "0.3.0",
    "name": "Echo",
    "description": "Says it again.",
    "version": "1.0.0",
    "url": "https://echo.example/a2a",
    "capabilities": {},
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
    "skills": [{"id": "echo", "name": "Echo", "description": "Echoes.", "tags": []}],
}
GOOD = json.dumps(CARD).encode()


def changed(old: str, new: str) -> bytes:
    """Return the good card with some text of it replaced."""
    assert old.encode() in GOOD
    return GOOD.replace(old.encode(), new.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize(
    ("raw", "flag"),
    [
        (b"", "not-json"),
        (b"<!doctype html><html><body>Not found</body></html>", "not-json"),
        (b"null", "not-a-card"),
        (b"[]", "not-a-card"),
        (b'"card"', "not-a-card"),
        (b"{}", "not-a-card"),
        (b'{"agents": [{"name": "a", "url": "https://a.example"}], "name": "index"}', "not-a-card"),
        (b'{"jsonrpc": "2.0", "id": 1, "error": {"code": -32600, "message": "no"}}', "not-a-card"),
        (b'{"openapi": "3.1.0", "info": {}, "paths": {}, "security": []}', "not-a-card"),
        (b'{"detail": "Not Found"}', "not-a-card"),
        (GOOD + b"x", "not-json"),
        (GOOD + GOOD, "not-json"),
        (changed('"capabilities": {}', '"capabilities": {"streaming": NaN}'), "not-json"),
        (changed('"capabilities": {}', '"capabilities": {"x": Infinity}'), "not-json"),
        (changed('"capabilities": {}', '"capabilities": {"x": -Infinity}'), "not-json"),
        (changed("Echo", "Ec\nho"), "not-json"),
        (changed('"tags": []', '"tags": [],'), "not-json"),
        (changed("Says", "\ud800"), "not-utf-8"),
        (b"\xff\xfe" + GOOD.decode().encode("utf-16-le"), "not-utf-8"),
        (GOOD.replace(b"Says", b"S\xc3"), "not-utf-8"),
        (b"[" * 1_000_000, "too-deep"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "too-deep"),
    ],
)
def test_what_is_no_card_is_refused_and_kept(raw: bytes, flag: str) -> None:
    card = read_card(raw, content_type="text/html")

    assert not card.is_card
    assert card.raw == raw
    assert card.raw_hash == "sha256:" + hashlib.sha256(raw).hexdigest()
    assert {flag, "not-a-card"} <= set(card.flags)
    assert card.document_hash is None
    assert contract_of(card) is None
    assert card.problem
    with pytest.raises(CardError, match="cannot be captured"):
        require_contract(card)
    shown = summary(card)
    assert shown["contract"] is None
    assert shown["is_card"] is False
    assert diff(card, read_card(GOOD)).verdict == "undecidable"
    assert diff(card, card).verdict == "undecidable"


def test_fifty_megabytes_are_refused_at_once() -> None:
    raw = b'{"name": "' + b"x" * 50_000_000 + b'", "url": "https://a.example"}'
    begun = time.perf_counter()
    card = read_card(raw)

    assert time.perf_counter() - begun < 2
    assert card.flags == ("not-a-card", "too-large")
    assert card.problem == f"expected at most 1048576 bytes, found {len(raw)}"


def test_the_limits_themselves_are_allowed() -> None:
    room = MAX_CARD - len(changed("Says it again.", ""))
    assert contract_of(read_card(changed("Says it again.", "x" * room))) is not None
    assert contract_of(read_card(changed("Says it again.", "x" * (room + 1)))) is None

    inner = MAX_DEPTH - 2  # the card and its capabilities
    fits = changed('"capabilities": {}', '"capabilities": {"x": ' + "[" * inner + "]" * inner + "}")
    deeper = changed('"capabilities": {}', '"capabilities": {"x": ' + "[" * (inner + 1) + "]" * (inner + 1) + "}")
    assert contract_of(read_card(fits)) is not None
    assert read_card(deeper).flags == ("not-a-card", "too-deep")


def test_brackets_inside_strings_are_no_depth() -> None:
    assert contract_of(read_card(changed("Says it again.", '\\"' + "[{" * 500 + "\\\\"))) is not None


@pytest.mark.parametrize(
    "raw",
    [
        changed('"url":', '"url": "https://evil.example", "url":'),
        changed('"url":', '"ur\\u006c": "https://evil.example", "url":'),
        changed('"capabilities": {}', '"capabilities": {"streaming": true, "streaming": false}'),
        changed('"id": "echo"', '"id": "echo", "id": "other"'),
        changed('"tags": []', '"tags": [{"a": 1, "\\u0061": 1}]'),
    ],
)
def test_duplicate_keys_at_any_level_are_refused_though_it_is_a_card(raw: bytes) -> None:
    card = read_card(raw)

    assert card.is_card
    assert card.flags == ("duplicate-keys",)
    assert contract_of(card) is None
    assert card.document_hash is None
    assert summary(card)["hashes"] == {"raw": card.raw_hash, "document": None, "contract": None, "seed0": None}


@pytest.mark.parametrize("twin", ["Url", "URL", "u_rl"])
def test_a_key_that_some_reader_mixes_up_is_flagged_and_captured(twin: str) -> None:
    card = read_card(changed('"url":', f'"{twin}": "https://evil.example", "url":'))

    assert card.flags == ("ambiguous-keys",)
    contract = require_contract(card)
    assert [one["url"] for one in contract.interfaces] == ["https://echo.example/a2a"]


def test_both_spellings_of_a_member_are_flagged_and_camel_case_stands() -> None:
    card = read_card(changed('"protocolVersion":', '"protocol_version": "1.0", "protocolVersion":'))

    assert card.flags == ("ambiguous-keys",)
    assert require_contract(card).interfaces[0]["version"] == "0.3"


@pytest.mark.parametrize(
    "number", ["9007199254740992", "-9007199254740993", "1e400", "3.141592653589793238462643", "1e-400", "9" * 5000]
)
def test_a_number_beyond_i_json_matters_only_in_the_contract_part(number: str) -> None:
    outside = read_card(changed('"tags": []', f'"tags": [], "price": {number}'))
    assert outside.flags == ()
    assert outside.document_hash is None
    assert contract_of(outside) == contract_of(read_card(GOOD))

    required = '"capabilities": {"extensions": [{"uri": "urn:x", "required": true, "params": {"n": %s}}]}'
    inside = read_card(changed('"capabilities": {}', required % number))
    assert inside.is_card
    assert inside.flags == ("unrepresentable",)
    assert contract_of(inside) is None
    with pytest.raises(CardError, match="unrepresentable"):
        require_contract(inside)


@pytest.mark.parametrize(
    ("token", "shown"),
    [("1e20", b"100000000000000000000"), ("10.0", b"10"), ("-0.0", b"0"), ("1e-7", b"1e-7"), ("0.1", b"0.1"),
     ("9007199254740991", b"9007199254740991"), ("1E2", b"100")],
)  # fmt: skip
def test_numbers_that_a_double_holds_are_written_by_rfc_8785(token: str, shown: bytes) -> None:
    required = '"capabilities": {"extensions": [{"uri": "urn:x", "required": true, "params": {"n": %s}}]}'
    contract = require_contract(read_card(changed('"capabilities": {}', required % token)))

    assert b'"params":{"n":' + shown + b"}" in contract.canonical


def test_a_lone_surrogate_matters_only_in_the_contract_part() -> None:
    outside = read_card(changed("Says it again.", "\\ud83d"))
    assert outside.flags == ()
    assert outside.document_hash is None
    assert contract_of(outside) is not None

    inside = read_card(changed("https://echo.example/a2a", "https://echo.example/\\udead"))
    assert inside.flags == ("unrepresentable",)
    assert contract_of(inside) is None
    json.dumps(summary(inside)).encode("ascii")


def test_a_pair_of_surrogate_escapes_is_one_character() -> None:
    assert read_card(changed("Echo", "\\ud83d\\ude00")).document_hash == read_card(changed("Echo", "😀")).document_hash


def test_bom_and_line_ends_change_the_raw_hash_only() -> None:
    base = read_card(GOOD)
    marked = read_card(b"\xef\xbb\xbf" + GOOD)
    crlf = read_card(json.dumps(CARD, indent=2).replace("\n", "\r\n").encode())

    assert marked.flags == ("bom",)
    assert crlf.flags == ()
    assert len({base.raw_hash, marked.raw_hash, crlf.raw_hash}) == 3
    assert base.document_hash == marked.document_hash == crlf.document_hash
    assert contract_of(base) == contract_of(marked) == contract_of(crlf)
    assert read_card(b"\xef\xbb\xbf\xef\xbb\xbf" + GOOD).flags == ("bom", "not-a-card", "not-json")


def test_composed_and_decomposed_text_are_different() -> None:
    composed, decomposed = read_card(changed("/a2a", "/caf\u00e9")), read_card(changed("/a2a", "/cafe\u0301"))

    assert require_contract(composed).hash != require_contract(decomposed).hash
    assert composed.document_hash != decomposed.document_hash
