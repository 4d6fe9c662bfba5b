"""Faults that people reported of other programs that hash or compare cards: each tried here, from bytes."""

from __future__ import annotations

import json
from typing import TypeAlias

import pytest

from a2a_ledger.card import read_card
from a2a_ledger.contract import contract_of, diff, require_contract

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Object: TypeAlias = "dict[str, Json]"
CARD: Object = {
    "protocolVersion": "0.3.0",
    "name": "Café",
    "description": "Déjà vu",
    "url": "https://h.example/a2a",
    "capabilities": {"extensions": [{"uri": "urn:x", "required": True, "params": {"n": 1}}]},
    "securitySchemes": {"k": {"type": "apiKey", "in": "header", "name": "X-Key"}},
    "security": [{"k": []}],
    "skills": [{"id": "a", "name": "A", "description": "first"}, {"id": "b", "name": "B", "description": "second"}],
}


def raw(**changes: Json) -> bytes:
    return json.dumps({**CARD, **changes}, ensure_ascii=False).encode()


def with_params(token: str) -> bytes:
    """Return the card with a JSON number, spelled so, in the params of its required extension."""
    return raw().replace(b'{"n": 1}', b'{"n": %s}' % token.encode())


def hash_of(data: bytes) -> str:
    return require_contract(read_card(data)).hash


def test_escapes_and_literal_utf_8_are_one_card() -> None:
    """A2A#2122, a2a-python#1174: two SDKs write one card to different bytes."""
    escaped = json.dumps(CARD, ensure_ascii=True).encode()

    assert escaped != raw()
    assert read_card(escaped).document_hash == read_card(raw()).document_hash
    assert hash_of(escaped) == hash_of(raw())


def test_key_order_is_that_of_utf_16_in_every_part_of_the_contract() -> None:
    names: Object = {"\uff01": {"type": "mutualTLS"}, "😀": {"type": "mutualTLS"}}
    listed: list[Json] = [{"\uff01": []}, {"😀": []}, {"😀": [], "\uff01": ["x"]}]
    skills: list[Json] = [{"id": "\uff01", "security": listed}, {"id": "😀", "security": listed}]
    contract = require_contract(read_card(raw(securitySchemes=names, security=listed, skills=skills)))

    # By hand: U+1F600 begins with the code unit D83D, before FF01. Sets are in the order of UTF-8 octets: EF before
    # F0, and behind the same octets a comma before a brace.
    alternatives = '[{"\uff01":[]},{"😀":[],"\uff01":["x"]},{"😀":[]}]'
    assert contract.canonical.decode().endswith(
        '"schemes":{"😀":{"kind":"mutualTLS"},"\uff01":{"kind":"mutualTLS"}},"security":'
        f'{alternatives},"skills":{{"😀":{alternatives},"\uff01":{alternatives}}}}}'
    )


@pytest.mark.parametrize(
    ("spelled", "written"),
    [("1e-7", "1e-7"), ("0.0000001", "1e-7"), ("10.0", "10"), ("10", "10"), ("-0.0", "0"), ("0", "0"),
     ("1e20", "100000000000000000000"), ("1E+21", "1e+21"), ("0.000001", "0.000001"), ("4.50", "4.5")],
)  # fmt: skip
def test_numbers_are_written_as_ecmascript_writes_them(spelled: str, written: str) -> None:
    assert f'"params":{{"n":{written}}}'.encode() in require_contract(read_card(with_params(spelled))).canonical


@pytest.mark.parametrize(
    ("first", "again"),
    [
        ('"capabilities":', '"capabilities": {}, "capabilities":'),
        ('"skills":', '"skills": [], "skills":'),
        ('"url":', '"ur\\u006c": "https://evil.example", "url":'),
        ('"params":', '"\\u0070arams": {}, "params":'),
    ],
)
def test_a_key_twice_is_refused_and_its_bytes_are_kept(first: str, again: str) -> None:
    """canonicalize#26, in-toto#74: one of two values is gone before anybody looks."""
    data = raw().replace(first.encode(), again.encode())
    card = read_card(data)

    assert data != raw()
    assert (card.is_card, card.flags, card.raw) == (True, ("duplicate-keys",), data)
    assert contract_of(card) is None
    assert diff(read_card(raw()), card).verdict == "undecidable"


def test_a_key_in_another_case_is_flagged_and_never_read() -> None:
    card = read_card(raw(Url="https://evil.example", SECURITY=[]))

    assert card.flags == ("ambiguous-keys",)
    assert require_contract(card).hash == hash_of(raw())


def test_composed_and_decomposed_text_are_two_texts_wherever_they_stand() -> None:
    """agent-manifest#338: normalising made one hash of two."""
    composed, decomposed = "caf\u00e9", "cafe\u0301"

    def hashes(text: str) -> set[str]:
        scheme: Json = {"type": "apiKey", "in": "header", "name": text}
        return {
            hash_of(raw(url=f"https://h.example/{text}")),
            hash_of(raw(security=[{text: []}])),
            hash_of(raw(security=[{"k": [text]}])),
            hash_of(raw(securitySchemes={"k": scheme})),
            hash_of(raw(skills=[{"id": text, "security": [{"k": []}]}])),
        }

    assert len(hashes(composed) | hashes(decomposed)) == 10


def test_integers_that_a_double_cannot_tell_apart_are_refused() -> None:
    """agent-manifest#404: they collapse."""
    for token in ("9007199254740993", "9007199254740992", "-9007199254740993"):
        card = read_card(with_params(token))
        assert (card.flags, contract_of(card)) == (("unrepresentable",), None)
    assert hash_of(with_params("9007199254740991")) != hash_of(with_params("9007199254740990"))


def test_of_harmless_edits_none_is_a_change_of_substance() -> None:
    """pipelock#1537: every text edit blocked, reordered skills looked structural."""
    a: Object = {"id": "a", "name": "A", "description": "first"}
    b: Object = {"id": "b", "name": "B", "description": "second"}
    old = read_card(raw())
    tried: list[tuple[list[Json], str]] = [
        ([b, a], "prose"),
        ([{**a, "description": "rewritten"}, b], "prose"),
        ([a, b, {"id": "c", "name": "C"}], "capability"),
        ([a, b, {"id": "c", "name": "C", "security": [{"k": []}]}], "contract"),
    ]
    for skills, verdict in tried:
        new = read_card(raw(skills=skills))
        assert diff(old, new).verdict == verdict
        assert (hash_of(raw(skills=skills)) == hash_of(raw())) == (verdict != "contract")
    twins: list[Json] = [{"id": "a", "name": "A", "security": [{"k": []}]}, {"id": "a", "name": "B", "security": []}]
    assert hash_of(raw(skills=twins)) == hash_of(raw(skills=twins[::-1]))
