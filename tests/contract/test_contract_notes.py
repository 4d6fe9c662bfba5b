"""What the changes of a card are besides changes: spellings and near misses; and which item is which."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeAlias

import pytest

from a2a_ledger.card import read_card
from a2a_ledger.contract import Diff, diff

if TYPE_CHECKING:
    from pathlib import Path

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Object: TypeAlias = "dict[str, Json]"
Told: TypeAlias = "list[tuple[str, str, str]]"

RPC: Object = {"url": "https://h.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
REST: Object = {"url": "https://h.example/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}
GRPC: Object = {"url": "h.example:50051", "protocolBinding": "GRPC", "protocolVersion": "1.0"}
OIDC: Object = {"openIdConnectSecurityScheme": {"openIdConnectUrl": "https://i.example/x"}}


def changed(old: Object, new: Object) -> Diff:
    before, after = (read_card(json.dumps({"name": "n", **card}).encode()) for card in (old, new))
    return diff(before, after)


def told(old: Object, new: Object) -> Told:
    """Return pointer, class and note of every change."""
    return [(one.pointer, one.kind, one.note) for one in changed(old, new).changes]


def offering(*interfaces: Json) -> Object:
    return {"supportedInterfaces": list(interfaces)}


def at(url: Json) -> Object:
    return {"url": url, "protocolVersion": "0.3.0"}


URLS: list[tuple[str, str, str, str]] = [
    ("https://h.example/a2a", "https://h.example/a2a/", "contract", "trailing-slash"),
    ("https://h.example/a2a", "https://h.example/A2A", "contract", "path-case"),
    ("https://h.example/a2a", "http://h.example/a2a", "contract", "scheme-only"),
    ("https://münchen.example/", "https://xn--mnchen-3ya.example/", "contract", "url-spelling"),
    ("https://h.example/%7ea", "https://h.example/~a", "contract", "url-spelling"),
    ("https://h.example/%c3%a4", "https://h.example/ä", "contract", "url-spelling"),
    ("https://[2001:DB8:0::1]/", "https://[2001:db8::1]/", "contract", "url-spelling"),
    ("https://h.example/a/../b", "https://h.example/b", "contract", "url-spelling"),
    ("h.example:50051", "dns:///h.example:50051", "contract", "url-spelling"),
    ("https://h.example", "HTTPS://H.example:443/", "prose", "url-spelling"),
    ("https://h.example/a", "https://u:p@h.example/a", "contract", ""),  # a credential came: no spelling
    ("https://h.example/a", "https://g.example/a", "contract", ""),
    ("https://h.example/a?x", "https://h.example/a", "contract", ""),
    ("https://h.example/a", " https://h.example/a", "contract", "white-space"),
]


@pytest.mark.parametrize(("old", "new", "kind", "note"), URLS)
def test_a_url_that_changed_says_how_little(old: str, new: str, kind: str, note: str) -> None:
    assert told(at(old), at(new)) == [("/url", kind, note)]
    assert told(at(new), at(old)) == [("/url", kind, note)]
    there = offering({**RPC, "url": old}), offering({**RPC, "url": new})
    assert told(*there) == [("/supportedInterfaces/0/url", kind, note)]


TWO = "/supportedInterfaces"


def without(member: str, holder: Object) -> Object:
    return {name: value for name, value in holder.items() if name != member}


INTERFACES: list[tuple[Object, Object, Told]] = [
    # one inserted interface is one change, wherever it stands
    (offering(RPC, REST), offering(GRPC, RPC, REST), [(f"{TWO}/0", "contract", "")]),
    (offering(RPC, REST), offering(RPC, GRPC, REST), [(f"{TWO}/1", "contract", "")]),
    (offering(RPC, GRPC, REST), offering(RPC, REST), [(f"{TWO}/1", "contract", "")]),
    (offering(RPC, REST), offering(REST, RPC), [(TWO, "contract", "order")]),
    (offering(RPC, REST), offering(RPC, REST, RPC), [(f"{TWO}/2", "same", "repeat")]),
    (
        offering(RPC),
        offering({**RPC, "protocolVersion": "0.3"}),
        [(f"{TWO}/0/protocolVersion", "contract", "version-only")],
    ),
    (
        offering(RPC),
        offering({**RPC, "protocolVersion": "1.0.1"}),
        [(f"{TWO}/0/protocolVersion", "same", "patch-version")],
    ),
    (offering(RPC), offering(RPC, {**RPC, "protocolVersion": "0.3"}), [(f"{TWO}/1", "contract", "version-only")]),
    (
        offering(RPC),
        offering(without("protocolVersion", RPC)),
        [(f"{TWO}/0/protocolVersion", "contract", "version-only")],
    ),
    (
        offering(RPC),
        offering({**RPC, "protocolBinding": "jsonrpc"}),
        [(f"{TWO}/0/protocolBinding", "contract", "letter-case")],
    ),
    (offering(RPC), offering({**RPC, "tenant": "t"}), [(f"{TWO}/0/tenant", "contract", "")]),
    (offering(RPC), offering({**RPC, "tenant": ""}), [(f"{TWO}/0/tenant", "same", "default")]),
    (offering(RPC, REST), offering(RPC, {**REST, "url": "https://h.example/r"}), [(f"{TWO}/1/url", "contract", "")]),
    # a member of one interface is judged by itself, whatever else of the list changed
    (
        offering(RPC, REST),
        offering({**RPC, "x-cost": 1}, {**REST, "protocolVersion": "1.0.3"}, GRPC),
        [
            (f"{TWO}/0/x-cost", "unclassified", ""),
            (f"{TWO}/1/protocolVersion", "same", "patch-version"),
            (f"{TWO}/2", "contract", ""),
        ],
    ),
    # 0.3
    (
        {**at("https://h.example/a"), "protocolVersion": "0.2.6"},
        at("https://h.example/a"),
        [("/protocolVersion", "contract", "version-only")],
    ),
    (
        at("https://h.example/a"),
        {**at("https://h.example/a"), "protocolVersion": "0.3.1"},
        [("/protocolVersion", "same", "patch-version")],
    ),
    (
        at("https://h.example/a"),
        {**at("https://h.example/a"), "preferredTransport": "JSONRPC"},
        [("/preferredTransport", "same", "default")],
    ),
    (
        {**at("https://h.example/a"), "additionalInterfaces": [{"url": "https://h.example/b", "transport": "JSONRPC"}]},
        {**at("https://h.example/b"), "additionalInterfaces": [{"url": "https://h.example/a", "transport": "JSONRPC"}]},
        [("/additionalInterfaces/0/url", "contract", "order"), ("/url", "contract", "order")],
    ),
    (
        at("https://h.example/a"),
        {**at("https://h.example/a"), "additionalInterfaces": [{"url": "https://h.example/a", "transport": "JSONRPC"}]},
        [("/additionalInterfaces", "same", "default")],
    ),
]


@pytest.mark.parametrize(("old", "new", "expected"), INTERFACES)
def test_interfaces_are_told_apart_by_what_they_are(old: Object, new: Object, expected: Told) -> None:
    # "same": prose, for the terms are the same
    assert told(old, new) == [(pointer, "prose" if kind == "same" else kind, note) for pointer, kind, note in expected]


def test_a_0_3_card_its_1_0_equivalent_and_their_hybrid_differ_in_the_version_of_each_interface() -> None:
    old: Object = {
        **at("https://h.example/rpc"),
        "preferredTransport": "JSONRPC",
        "additionalInterfaces": [
            {"url": "https://h.example/rpc", "transport": "JSONRPC"},
            {"url": "https://h.example/rest", "transport": "HTTP+JSON"},
        ],
    }
    new = offering(RPC, REST)
    hybrid: Object = {
        **old,
        **offering(*(one for pair in ((x, {**x, "protocolVersion": "0.3"}) for x in (RPC, REST)) for one in pair)),
    }

    for one, other in ((old, new), (old, hybrid), (new, hybrid)):
        for found in (changed(one, other), changed(other, one)):
            assert found.authorization == "same"
            contract = [change for change in found.changes if change.kind == "contract"]
            assert contract
            assert {change.note for change in contract} == {"version-only"}


def test_real_cards_in_two_dialects_differ_in_versions(corpus: Path) -> None:
    old, new = (read_card((corpus / "corpus" / "cards" / f"{name}.json").read_bytes()) for name in ("162", "161"))
    found = {one.pointer: one.note for one in diff(old, new).changes if one.kind == "contract"}

    assert {pointer for pointer, note in found.items() if note == "version-only"} == {
        *("/additionalInterfaces", "/preferredTransport", "/protocolVersion", "/supportedInterfaces", "/url"),
    }


def with_skills(*skills: Json) -> Object:
    return {**offering(RPC), "skills": list(skills)}


def skill(name: str, *, key: bool = False, words: str = "w") -> Object:
    own: Object = {"securityRequirements": [{"schemes": {"key": {}}}]} if key else {}
    return {"id": name, "name": words, **own}


SKILLS: list[tuple[Json, Json, Told]] = [
    # without requirements of their own: capability
    ([skill("a"), skill("b")], [skill("b")], [("/skills/0", "capability", "")]),
    ([skill("a"), skill("b")], [skill("b"), skill("a")], []),
    ([skill("a"), skill("b")], [skill("z"), skill("b")], [("/skills/0/id", "capability", "renamed")]),
    ([skill("a"), skill("b")], [skill("A"), skill("b")], [("/skills/0/id", "capability", "letter-case")]),
    ([skill("a"), skill("b")], [skill("b"), skill("c"), skill("a")], [("/skills/1", "capability", "")]),
    (
        [skill("a"), skill("b", words="x")],
        [skill("z", words="y"), skill("b", words="x")],
        [("/skills/0", "capability", "")],
    ),
    # security that appeared, changed, vanished: contract
    ([skill("a")], [skill("a", key=True)], [("/skills/0/securityRequirements", "contract", "")]),
    ([skill("a", key=True)], [skill("a")], [("/skills/0/securityRequirements", "contract", "")]),
    ([skill("a", key=True)], [], [("/skills/0", "contract", "")]),
    ([skill("a", key=True)], [skill("z", key=True)], [("/skills/0/id", "contract", "renamed")]),
    (
        [skill("a", key=True), skill("b")],
        [skill("b", key=True), skill("a")],
        [("/skills/0/securityRequirements", "contract", ""), ("/skills/1/securityRequirements", "contract", "")],
    ),
    # a skill that goes beside one whose security changes is capability all the same
    (
        [skill("a"), skill("b")],
        [skill("b", key=True)],
        [("/skills/0", "capability", ""), ("/skills/0/securityRequirements", "contract", "")],
    ),
    # duplicate ids
    (
        [skill("a"), skill("a", key=True)],
        [skill("a"), skill("a")],
        [("/skills/1/securityRequirements", "contract", "")],
    ),
    (
        [skill("a", key=True), skill("a", words="x")],
        [skill("a", words="y"), skill("a", key=True)],
        [("/skills/0/name", "prose", "")],
    ),
    (
        [skill("a"), skill("a"), skill("b")],
        [skill("b", words="x"), skill("a"), skill("a")],
        [("/skills/0/name", "prose", "")],
    ),
    # odd types
    ([skill("a", key=True)], "none", [("/skills", "contract", "")]),
    ([skill("a")], "none", [("/skills", "capability", "")]),
    ([skill("a", key=True)], skill("a"), [("/skills", "contract", "")]),
    (skill("a", key=True), skill("a"), [("/skills/securityRequirements", "contract", "")]),
    (["a", "b"], ["b"], [("/skills", "capability", "")]),
    (
        [{"id": 7}],
        [{"id": 7, "securityRequirements": [{"schemes": {"key": {}}}]}],
        [("/skills/0/securityRequirements", "contract", "")],
    ),
    ([{"name": "x"}], [{"name": "y"}], [("/skills/0/name", "prose", "")]),
]


@pytest.mark.parametrize(("old", "new", "expected"), SKILLS)
def test_a_skill_is_capability_and_its_security_is_contract(old: Json, new: Json, expected: Told) -> None:
    found = told({**offering(RPC), "skills": old}, {**offering(RPC), "skills": new})
    assert found == expected


def requiring(**members: Json) -> Object:
    return {**offering(RPC), "securitySchemes": {"i": OIDC}, **members}


def extended(*extensions: Json) -> Object:
    return {**offering(RPC), "capabilities": {"extensions": list(extensions)}}


MUST: Object = {"uri": "https://e.example/v1", "required": True, "params": {"a": [1, 2]}}
OTHERS: list[tuple[Object, Object, Told]] = [
    (
        requiring(),
        requiring(securitySchemes={"j": OIDC}),
        [("/securitySchemes/i", "contract", "renamed"), ("/securitySchemes/j", "contract", "renamed")],
    ),
    (
        requiring(),
        requiring(securitySchemes={"i": {"openIdConnectSecurityScheme": {"openIdConnectUrl": "https://i.example/x/"}}}),
        [("/securitySchemes/i/openIdConnectSecurityScheme/openIdConnectUrl", "contract", "trailing-slash")],
    ),
    (requiring(), requiring(securityRequirements=[]), [("/securityRequirements", "prose", "default")]),
    (
        requiring(securityRequirements=[{"schemes": {"i": {}}}]),
        requiring(securityRequirements=[{"schemes": {"i": {"list": []}}}]),
        [("/securityRequirements", "prose", "spelling")],
    ),
    (requiring(), requiring(capabilities={"extendedAgentCard": False}), [("/capabilities", "capability", "")]),
    (
        extended(MUST),
        extended({**MUST, "uri": "https://e.example/v1/"}),
        [("/capabilities/extensions/0", "contract", "trailing-slash")],
    ),
    (
        extended(MUST),
        extended({**MUST, "uri": "https://e.example/v2"}),
        [("/capabilities/extensions/0", "contract", "renamed")],
    ),
    (
        extended(MUST),
        extended({**MUST, "params": {"a": [2, 1]}}),
        [("/capabilities/extensions/0/params/a", "contract", "order")],
    ),
    (
        {**offering(RPC), "extra": ["a", {"b": 1}]},
        {**offering(RPC), "extra": [{"b": 1}, "a"]},
        [("/extra", "unclassified", "order")],
    ),
    (
        {**offering(RPC), "extra": [{"id": "a", "v": 1}, {"id": "b", "v": 2}]},
        {**offering(RPC), "extra": [{"id": "x"}, {"id": "a", "v": 1}, {"id": "b", "v": 3}]},
        [("/extra/0", "unclassified", ""), ("/extra/2/v", "unclassified", "")],
    ),
    (
        {**offering(RPC), "skills": [{"id": "caf\u00e9"}]},
        {**offering(RPC), "skills": [{"id": "cafe\u0301"}]},
        [("/skills/0", "capability", "")],
    ),
    (
        {**offering(RPC), "version": "caf\u00e9"},
        {**offering(RPC), "version": "cafe\u0301"},
        [("/version", "capability", "unicode-form")],
    ),
]


@pytest.mark.parametrize(("old", "new", "expected"), OTHERS)
def test_other_spellings_and_near_misses(old: Object, new: Object, expected: Told) -> None:
    assert told(old, new) == expected


def test_a_note_is_printed_with_its_change() -> None:
    shown = changed(at("https://h.example/a"), at("https://h.example/a/")).to_json()["changes"]
    assert shown == [
        {
            "pointer": "/url",
            "class": "contract",
            "note": "trailing-slash",
            "old": "https://h.example/a",
            "new": "https://h.example/a/",
        }
    ]
