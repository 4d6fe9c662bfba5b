"""Profiles and the terms that they see in a card."""

from __future__ import annotations

import hashlib
import json
from importlib import resources

import pytest

from a2a_ledger.card import read_card
from a2a_ledger.contract import TERMS_FORM, Alias, default_profile, parse_profile, terms_of
from a2a_ledger.errors import UsageError

EXTENSIONS = [
    {"uri": "urn:price", "params": {"cents": 5}, "description": "x"},
    {"uri": "urn:other"},
    {"uri": "https://x402.example/v1", "params": None, "required": False},
]
CARD = {
    "name": "n",
    "url": "https://h.example",
    "auth": {"type": "bearer"},
    "endPoints": [{"path": "/a", "security": "key"}, {"path": "/b"}],
    "skills": [{"id": "b/x", "price": 2}, {"id": "a", "price": 12345678901234567890123}, {"name": "no id", "price": 3}],
    "capabilities": {"extensions": EXTENSIONS},
}
PROFILE = b"""
name = "mine"
[terms]
paths = ["/auth", "/endPoints/*/security", "/skills/*/price", "/absent"]
extensions = ["https://x402.example/*"]
[freshness]
sibling = "wait"
[withhold]
paths = ["/params/message/parts/*/text"]
[[alias]]
frozen = "https://a.example/"
seen = "https://b.example/"
"""


def test_terms_worked_by_hand() -> None:
    profile = parse_profile(PROFILE)
    expected = (
        '{"extensions":[{"params":null,"uri":"https://x402.example/v1"},{"params":{"cents":5},"uri":"urn:price"}],'
        '"form":"a2a-terms/1-draft",'
        '"paths":{"/auth":{"type":"bearer"},"/endPoints/0/security":"key","/skills/2/price":3,'
        '"/skills/a/price":{"unrepresentable":"12345678901234567890123"},"/skills/b~1x/price":2},'
        f'"profile":"sha256:{hashlib.sha256(PROFILE).hexdigest()}"}}'
    ).encode()

    terms = terms_of(read_card(json.dumps(CARD).encode()), profile, activated=["urn:price"])
    assert terms.canonical == expected
    assert terms.hash == "sha256:" + hashlib.sha256(expected).hexdigest()
    assert terms.form == TERMS_FORM


def test_the_order_of_skills_is_no_term() -> None:
    profile = parse_profile(PROFILE)
    skills = [{"id": "a", "price": 1}, {"id": "b", "price": 2}]
    one, two = (
        read_card(json.dumps({"name": "n", "url": "u", "skills": order}).encode()) for order in (skills, skills[::-1])
    )
    assert terms_of(one, profile) == terms_of(two, profile)


def test_what_is_no_card_has_no_terms() -> None:
    value = terms_of(read_card(b"<html>"), default_profile()).value
    assert (value["extensions"], value["paths"]) == ([], {})


def test_a_profile_says_what_it_says() -> None:
    profile = parse_profile(PROFILE)

    assert profile.name == "mine"
    assert (profile.sibling, profile.skew, profile.failed) == ("wait", "proceed", "proceed")
    assert profile.aliases == (Alias("https://a.example/", "https://b.example/"),)
    assert profile.withhold == ("/params/message/parts/*/text",)
    assert profile.names_extension("https://x402.example/v9")
    assert not profile.names_extension("https://x402.example")


def test_the_shipped_profile_is_read_and_names_what_real_cards_use() -> None:
    data = resources.files("a2a_ledger").joinpath("profiles/default.toml").read_bytes()
    profile = default_profile()

    assert profile.hash == "sha256:" + hashlib.sha256(data).hexdigest()
    assert profile.name == "default"
    assert {"/auth", "/auth_schemes", "/endpoints", "/interfaces", "/endPoints", "/pricing", "/x402"} <= set(
        profile.paths
    )
    assert (profile.sibling, profile.skew, profile.failed) == ("proceed", "proceed", "proceed")
    assert profile.names_extension("https://github.com/google-agentic-commerce/ap2/v1")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"name = ", "TOML"),
        (b"\xff", "TOML"),
        (b'colour = "red"', "found colour"),
        (b"name = 5", "a text as name of the profile, found 5"),
        (b"terms = 5", "a table as terms"),
        (b'[terms]\npaths = "/auth"', r"a list of texts as paths of \[terms\]"),
        (b"[terms]\npaths = [1]", "a list of texts"),
        (b'[freshness]\nskew = "wait"', r"proceed or abort as skew of \[freshness\], found 'wait'"),
        (b'[alias]\nfrozen = "a"', "a list of tables"),
        (b'[[alias]]\nfrozen = "a"', r"a text as seen of \[\[alias\]\]"),
    ],
)
def test_a_wrong_profile_is_refused_with_the_place(data: bytes, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_profile(data)
