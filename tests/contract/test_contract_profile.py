"""Profiles and the terms that they see in a card."""

from __future__ import annotations

import hashlib
import json
from importlib import resources
from typing import TYPE_CHECKING, cast

import pytest

from a2a_ledger.card import read_card
from a2a_ledger.contract import TERMS_FORM, Alias, default_profile, diff, parse_profile, terms_of
from a2a_ledger.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

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
        '"form":"a2a-terms/1",'
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


def test_a_step_with_a_slash_in_its_name_can_be_named() -> None:
    profile = parse_profile(b'[terms]\npaths = ["/a~1b~0c"]')
    value = terms_of(read_card(b'{"name": "n", "url": "u", "a/b~c": 1, "a": {"b~0c": 2}}'), profile).value
    assert value["paths"] == {"/a~1b~0c": 1}


def test_no_term_hides_another() -> None:
    def paths(*skills: object) -> object:
        card = read_card(json.dumps({"name": "n", "url": "u", "skills": list(skills)}).encode())
        return terms_of(card, parse_profile(PROFILE)).value["paths"]

    same = [{"id": "a", "price": 1}, {"id": "a", "price": 2}, {"id": "b", "price": 3}]
    assert paths(*same) == {"/skills/0/price": 1, "/skills/1/price": 2, "/skills/b/price": 3}
    like_a_place = [{"id": "1", "price": 1}, {"price": 2}]
    assert paths(*like_a_place) == {"/skills/0/price": 1, "/skills/1/price": 2}


def test_two_profiles_never_have_the_same_terms() -> None:
    card = read_card(json.dumps(CARD).encode())
    one, other = parse_profile(PROFILE), parse_profile(PROFILE + b"# a comment\n")

    assert (one.paths, one.extensions) == (other.paths, other.extensions)
    assert one.hash != other.hash
    a, b = terms_of(card, one), terms_of(card, other)
    assert (a.value["paths"], a.value["extensions"]) == (b.value["paths"], b.value["extensions"])
    assert a.canonical != b.canonical
    assert a.hash != b.hash


def test_a_profile_makes_a_vendor_path_contract_and_without_it_the_change_is_unclassified() -> None:
    old = read_card(json.dumps({**CARD, "sla": {"hours": 4}}).encode())
    new = read_card(json.dumps({**CARD, "sla": {"hours": 8}}).encode())
    named, left_out = parse_profile(b'[terms]\npaths = ["/sla"]'), parse_profile(b"[terms]\npaths = []")

    for profile, verdict in ((named, "contract"), (left_out, "unclassified"), (named, "contract")):
        found = diff(old, new, profile)
        assert (found.verdict, found.profile) == (verdict, profile.hash)
        assert [(one.pointer, one.kind) for one in found.changes] == [("/sla/hours", verdict)]
        assert found.old["contract"] == found.new["contract"]


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
    assert {"/auth", "/auth_schemes", "/endpoints", "/interfaces", "/endPoints", "/pricing", "/x402/payTo"} <= set(
        profile.paths
    )
    assert (profile.sibling, profile.skew, profile.failed) == ("proceed", "proceed", "proceed")
    assert profile.names_extension("https://github.com/google-agentic-commerce/ap2/v1")


def _member(holder: object, name: str) -> object:
    return cast("dict[str, object]", holder)[name]


@pytest.mark.parametrize(
    ("name", "pointer", "value", "verdict"),
    [
        ("032b", "/x402/payTo", "0x0", "contract"),  # somebody else is paid
        ("032b", "/x402/facilitator", "https://f.example", "contract"),
        ("032b", "/x402/endpoints", {}, "unclassified"),  # prices, which the 402 challenge settles
        ("032b", "/identity/wallet", "0x0", "contract"),
        ("032b", "/identity/basename", "x", "unclassified"),
        ("028a", "/pricing", {"model": "free"}, "contract"),
        ("054a", "/extensions/anchor-x402:a2a/authorization", "closed", "contract"),
        ("054a", "/extensions/anchor-x402:a2a/endpoint", "https://e.example", "contract"),
        ("054a", "/capabilities/x402", False, "contract"),
        ("055b", "/extensions/anchor-x402:x402/networks", [], "contract"),
        ("055b", "/extensions/anchor-x402:x402/price_authority", "the card", "unclassified"),
        ("055b", "/extensions/anchor-x402:a2a/card_signing_keys", [], "unclassified"),
        ("055b", "/skills/0/price_usd", 9, "unclassified"),
        ("055b", "/skills/0/url", "https://e.example", "contract"),
        ("072a", "/endpoints/scan_api", "GET /", "contract"),
        ("072a", "/trust_score/overall", 1, "unclassified"),
        ("103", "/protocolVersions", ["1.0"], "contract"),
        ("011", "/supported_protocols", [], "contract"),
        ("006", "/supportsExtendedAgentCard", False, "contract"),
        ("018", "/capabilities/extensions/0/params/supportedSettlement", [], "contract"),
        ("071a", "/capabilities/extensions/1/params", {}, "contract"),
        ("071a", "/capabilities/extensions/3/params", {}, "capability"),  # a registry of identities
    ],
)
def test_what_the_shipped_profile_makes_of_members_of_real_cards(
    corpus: Path, name: str, pointer: str, value: object, verdict: str
) -> None:
    card = read_card((corpus / "corpus" / "cards" / f"{name}.json").read_bytes())
    document = cast("dict[str, object]", json.loads(card.raw.decode("utf-8-sig")))
    *steps, last = pointer.split("/")[1:]
    holder: object = document
    for step in steps:
        holder = cast("list[object]", holder)[int(step)] if isinstance(holder, list) else _member(holder, step)
    assert _member(holder, last) != value
    cast("dict[str, object]", holder)[last] = value

    assert diff(card, read_card(json.dumps(document).encode())).verdict == verdict


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"name = ", "TOML"),
        (b"\xff", "TOML"),
        (b'colour = "red"', "found 'colour'"),
        (b"name = 'x'\nname = 'y'\n[terms]", "line 2"),
        (b'[terms]\npath = ["/auth"]', r"expected only paths, extensions in \[terms\], found 'path'"),
        (b'[terms]\npaths = ["auth"]', r"pattern such as .* in paths of \[terms\], found .auth."),
        (b'[terms]\npaths = ["/auth/"]', r"in paths of \[terms\], found ./auth/."),
        (b'[terms]\npaths = ["/"]', r"in paths of \[terms\]"),
        (b'[terms]\npaths = ["/skills/x*"]', "stands for one whole step"),
        (b'[terms]\npaths = ["/a~2b"]', "is spelled"),
        (b'[terms]\nextensions = ["https://*/x"]', r"in extensions of \[terms\], found .https://\*/x."),
        (b'[terms]\nextensions = [""]', r"in extensions of \[terms\]"),
        (b'[withhold]\npaths = ["params"]', r"in paths of \[withhold\], found .params."),
        (b'[[alias]]\nfrozen = "https://a.example"\nseen = "/gateway"', r"a url.* as seen of \[\[alias\]\]"),
        (b"name = 5", "a text as name of the profile, found 5"),
        (b"terms = 5", "a table as terms"),
        (b'[terms]\npaths = "/auth"', r"a list of texts as paths of \[terms\]"),
        (b"[terms]\npaths = [1]", "a list of texts"),
        (b'[freshness]\nskew = "wait"', r"proceed or abort as skew of \[freshness\], found 'wait'"),
        (b'[alias]\nfrozen = "a"', "a list of tables"),
        (b'[[alias]]\nfrozen = "https://a.example"', r"a text as seen of \[\[alias\]\]"),
    ],
)
def test_a_wrong_profile_is_refused_with_the_place(data: bytes, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_profile(data)
