"""Two cards laid side by side."""

from __future__ import annotations

import copy
import json
from typing import TypeAlias

import pytest

from a2a_ledger.card import Card, read_card
from a2a_ledger.contract import Difference, default_profile, diff, parse_profile

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Object: TypeAlias = "dict[str, Json]"

OAUTH: Object = {
    "type": "oauth2",
    "description": "Our login",
    "flows": {"clientCredentials": {"tokenUrl": "https://t.example", "scopes": {"read": "Read"}}},
}
BASE: Object = {
    "protocolVersion": "0.3.0",
    "name": "n",
    "description": "d",
    "version": "1",
    "url": "https://h.example/a2a",
    "preferredTransport": "JSONRPC",
    "provider": {"organization": "o", "url": "https://o.example"},
    "capabilities": {
        "streaming": True,
        "extensions": [
            {"uri": "urn:must", "required": True, "params": {"n": 1}, "description": "d"},
            {"uri": "urn:may", "params": {"n": 1}},
        ],
    },
    "securitySchemes": {"oauth": OAUTH, "mtls": {"type": "mutualTLS"}, "key": {"type": "apiKey", "in": "header"}},
    "security": [{"oauth": ["read"]}],
    "defaultInputModes": ["text/plain", "application/json"],
    "skills": [
        {"id": "a", "name": "A", "description": "d", "tags": ["x", "y"], "examples": ["e"]},
        {"id": "b", "name": "B", "security": [{"oauth": []}, {}]},
        {"id": "c", "name": "C", "price": 5},
    ],
    "auth": {"kind": "vendor"},
    "extra": {"a": [1, 2]},
}


def read(document: Json) -> Card:
    return read_card(json.dumps(document).encode())


def inside(holder: Json, step: str) -> Json:
    """Return what one step of a pointer leads to."""
    if isinstance(holder, list):
        return holder[int(step)]
    assert isinstance(holder, dict)
    return holder[step]


def edited(pointer: str, value: Json) -> Object:
    """Return the base card with one pointer set, or removed if the value is "REMOVE"."""
    document = copy.deepcopy(BASE)
    *steps, last = pointer.split("/")[1:]
    holder: Json = document
    for step in steps:
        holder = inside(holder, step)
    if isinstance(holder, list):
        index = int(last)
        holder[index : index + 1] = [] if value == "REMOVE" else [value]
    elif isinstance(holder, dict):
        if value == "REMOVE":
            del holder[last]
        else:
            holder[last] = value
    return document


FLOW = "/securitySchemes/oauth/flows/clientCredentials"


CHANGES: list[tuple[str, Json, str, str]] = [
    ("/description", "other", "prose", "same"),
    ("/skills/0/description", "other", "prose", "same"),
    ("/skills/0/name", "other", "prose", "same"),
    ("/skills/0/examples", ["f"], "prose", "same"),
    ("/documentationUrl", "https://d.example", "prose", "same"),
    ("/securitySchemes/oauth/description", "other", "prose", "same"),
    ("/securitySchemes/oauth/bearerFormat", "JWT", "prose", "same"),
    (f"{FLOW}/scopes/read", "Other words", "prose", "same"),
    ("/capabilities/extensions/0/description", "other", "prose", "same"),
    ("/signatures", [{"protected": "e30", "signature": "x"}], "prose", "same"),
    ("/protocolVersion", "0.3.1", "prose", "same"),
    ("/url", "HTTPS://H.EXAMPLE:443/a2a", "prose", "same"),
    ("/preferredTransport", "REMOVE", "prose", "same"),
    ("/skills/0/security", [], "prose", "same"),
    ("/supportsAuthenticatedExtendedCard", False, "prose", "same"),
    ("/security", [{"schemes": {"oauth": {"list": ["read"]}}}], "prose", "same"),
    ("/name", "other", "capability", "same"),
    ("/version", "2", "capability", "same"),
    ("/provider/organization", "other", "capability", "same"),
    ("/capabilities/streaming", False, "capability", "same"),
    ("/capabilities/extensions/1/params/n", 2, "capability", "same"),
    ("/capabilities/extensions/1", "REMOVE", "capability", "same"),
    ("/defaultInputModes", ["text/plain"], "capability", "same"),
    ("/skills/0/tags", ["x"], "capability", "same"),
    ("/skills/0", "REMOVE", "capability", "same"),
    ("/skills/3", {"id": "new", "name": "N"}, "capability", "same"),
    ("/extra/a", [1, 2, 3], "unclassified", "same"),
    ("/capabilities/vendor", 1, "unclassified", "same"),
    ("/skills/2/price", 6, "unclassified", "same"),
    ("/securitySchemes/oauth/x-vendor", 1, "unclassified", "same"),
    ("/capabilities/extensions/0/x-vendor", 1, "unclassified", "same"),
    ("/authentication", {"schemes": ["Bearer"]}, "unclassified", "same"),
    ("/url", "https://h.example/a2a/", "contract", "same"),
    ("/protocolVersion", "0.2.6", "contract", "same"),
    ("/protocolVersion", "REMOVE", "contract", "same"),
    ("/preferredTransport", "GRPC", "contract", "same"),
    ("/additionalInterfaces", [{"url": "https://h.example/g", "transport": "GRPC"}], "contract", "same"),
    ("/capabilities/extensions/0/params/n", 2, "contract", "same"),
    ("/capabilities/extensions/0/required", False, "contract", "same"),
    ("/capabilities/extensions/1/required", True, "contract", "same"),
    ("/capabilities/extensions/0", "REMOVE", "contract", "same"),
    ("/supportsAuthenticatedExtendedCard", True, "contract", "same"),
    ("/security", [], "contract", "weaker"),
    ("/security", "REMOVE", "contract", "weaker"),
    ("/security", [{"oauth": ["read"]}, {}], "contract", "weaker"),
    ("/security", [{"oauth": []}], "contract", "weaker"),
    ("/security", [{"oauth": ["read", "write"]}], "contract", "stricter"),
    ("/security", [{"oauth": ["read"], "mtls": []}], "contract", "stricter"),
    ("/security", [{"mtls": []}], "contract", "incomparable"),
    (f"{FLOW}/tokenUrl", "https://evil.example", "contract", "incomparable"),
    (f"{FLOW}/scopes/write", "W", "contract", "incomparable"),
    ("/securitySchemes/key/in", "query", "contract", "incomparable"),
    ("/securitySchemes/key", "REMOVE", "contract", "same"),
    ("/securitySchemes/new", {"type": "mutualTLS"}, "contract", "same"),
    ("/securitySchemes/new", {"type": "x402"}, "contract", "same"),  # no requirement names it
    ("/skills/0/security", [{"mtls": []}], "contract", "incomparable"),
    ("/skills/0/security", [{"oauth": ["read"], "mtls": []}], "contract", "stricter"),
    ("/skills/0/security", [{}], "contract", "weaker"),
    ("/skills/1/security", [{"oauth": []}], "contract", "stricter"),  # the silent downgrade, backwards
    ("/skills/1/security", "REMOVE", "contract", "stricter"),  # now the card's own list governs
    ("/skills/1", "REMOVE", "contract", "same"),
    ("/skills/3", {"id": "new", "name": "N", "security": [{"mtls": []}]}, "contract", "same"),
    ("/auth/kind", "other", "contract", "incomparable"),
    ("/auth", "REMOVE", "contract", "incomparable"),
    ("/pricing", {"usd": 1}, "contract", "incomparable"),
    ("/skills/2/price_usd", 1, "unclassified", "same"),  # x402 settles it in the challenge
    ("/skills/2/pricing", {"usd": 1}, "contract", "incomparable"),
]


@pytest.mark.parametrize(
    ("pointer", "value", "verdict", "authorization"),
    CHANGES,
)
def test_one_change_has_one_class_and_its_path(pointer: str, value: Json, verdict: str, authorization: str) -> None:
    old, new = read(BASE), read(edited(pointer, value))
    found = diff(old, new)

    assert (found.verdict, found.authorization) == (verdict, authorization)
    (change,) = found.changes
    assert change.pointer == pointer
    assert change.kind == verdict
    core = found.old["contract"] != found.new["contract"]
    vendor = pointer.startswith(("/auth/", "/pricing")) or pointer in {"/auth", "/skills/2/pricing"}
    assert core == (verdict == "contract" and not vendor)
    back = diff(new, old)
    mirror = {"weaker": "stricter", "stricter": "weaker"}
    assert (back.verdict, back.authorization) == (verdict, mirror.get(authorization, authorization))


ORDERLESS: list[tuple[str, Json]] = [
    ("/skills", [{"id": "a"}, {"id": "b", "security": [{"oauth": []}]}]),
    ("/defaultInputModes", ["application/json", "text/plain"]),
]


@pytest.mark.parametrize(("pointer", "value"), ORDERLESS)
def test_order_that_means_nothing_is_no_change(pointer: str, value: Json) -> None:
    straight = edited(pointer, value)
    listed = straight[pointer[1:]]
    assert isinstance(listed, list)
    turned = {**straight, pointer[1:]: listed[::-1]}
    found = diff(read(straight), read(turned))

    assert (found.verdict, found.authorization, found.changes) == ("prose", "same", ())
    assert found.old["contract"] == found.new["contract"]
    assert found.old["document"] != found.new["document"]


def test_two_skills_of_one_id_swapped_are_no_change_of_substance() -> None:
    twins: list[Json] = [{"id": "s", "name": "one"}, {"id": "s", "name": "two"}]
    found = diff(read({**BASE, "skills": twins}), read({**BASE, "skills": twins[::-1]}))

    assert (found.verdict, found.changes) == ("prose", ())


def test_bytes_and_documents() -> None:
    base = json.dumps(BASE).encode()
    card = read_card(base)
    assert diff(card, read_card(base)).verdict == "same-bytes"
    assert diff(card, read_card(b"\xef\xbb\xbf" + json.dumps(BASE, indent=1).encode())).verdict == "same-document"
    assert diff(card, read_card(base.replace(b'"n"', b'"\\u006e"'))).verdict == "same-document"
    big = base.replace(b'"price": 5', b'"price": 90071992547409930')
    assert big != base
    other = big.replace(b"09930", b"09931")
    assert diff(read_card(big), read_card(b" " + big)).verdict == "same-document"
    found = diff(read_card(big), read_card(other))
    assert found.changes == (Difference("/skills/2/price", "unclassified", "90071992547409930", "90071992547409931"),)


def test_a_card_that_cannot_be_captured_is_undecidable() -> None:
    twice = read_card(json.dumps(BASE).encode().replace(b'"name": "n"', b'"name": "n", "name": "n"'))
    found = diff(read(BASE), twice)

    assert (found.verdict, found.authorization, found.changes) == ("undecidable", None, ())
    assert found.new["contract"] is None


def test_the_json_of_a_difference() -> None:
    old, new = read(BASE), read(edited("/security", [{"mtls": []}]))
    shown = diff(old, new).to_json()

    assert set(shown) == {"verdict", "authorization", "skills", "profile", "changes", "old", "new"}
    assert shown["skills"] == {"a": "incomparable", "c": "incomparable"}  # b has a list of its own
    assert shown["verdict"] == "contract"
    assert shown["authorization"] == "incomparable"
    assert shown["changes"] == [
        {
            "pointer": "/security",
            "class": "contract",
            "note": None,
            "old": [{"oauth": ["read"]}],
            "new": [{"mtls": []}],
        }
    ]
    assert shown["profile"] == default_profile().hash
    hashes = shown["old"]
    assert isinstance(hashes, dict)
    assert list(hashes) == ["raw", "document", "contract", "seed0"]
    json.dumps(shown)


def test_the_stuck_case_oauth_to_mutual_tls_is_incomparable() -> None:
    old: Object = {**BASE, "securitySchemes": {"oauth": OAUTH}, "security": [{"oauth": []}]}
    new: Object = {**BASE, "securitySchemes": {"mtls": {"type": "mutualTLS"}}, "security": [{"mtls": []}]}
    found = diff(read(old), read(new))

    assert (found.verdict, found.authorization) == ("contract", "incomparable")
    kinds = {change.pointer: change.kind for change in found.changes}
    assert kinds == dict.fromkeys(["/security", "/securitySchemes/oauth", "/securitySchemes/mtls"], "contract")
    silent_old, silent_new = (read({**document, "security": []}) for document in (old, new))
    assert diff(silent_old, silent_new).authorization == "incomparable"


def test_a_downgrade_in_the_0_3_half_of_a_hybrid_alone_is_seen() -> None:
    hybrid: Object = {
        **BASE,
        "supportedInterfaces": [{"url": "https://h.example", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "securityRequirements": [{"schemes": {"oauth": {"list": ["read"]}}}],
    }
    found = diff(read(hybrid), read({**hybrid, "security": []}))

    assert (found.verdict, found.authorization) == ("contract", "weaker")
    assert [(change.pointer, change.kind) for change in found.changes] == [("/security", "contract")]


def test_a_stray_list_of_the_other_vocabulary_is_unclassified_and_not_prose() -> None:
    pure: Object = {
        "name": "n",
        "supportedInterfaces": [{"url": "https://h.example", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "securityRequirements": [{"schemes": {"a": {}}}],
        "security": [{"a": []}],
    }
    found = diff(read(pure), read({**pure, "security": [{"b": []}]}))
    assert [(change.pointer, change.kind) for change in found.changes] == [("/security", "unclassified")]


def test_a_profile_of_ones_own_names_the_terms() -> None:
    mine = parse_profile(b'[terms]\npaths = ["/extra/a"]\nextensions = ["urn:may"]')
    base = read(BASE)

    assert diff(base, read(edited("/extra/a", [2, 1, 0])), mine).verdict == "contract"
    assert diff(base, read(edited("/auth/kind", "other")), mine).verdict == "unclassified"
    assert diff(base, read(edited("/capabilities/extensions/1/params/n", 2)), mine).verdict == "contract"


def test_names_with_slashes_are_escaped_in_pointers() -> None:
    found = diff(read({**BASE, "a/b~c": 1}), read({**BASE, "a/b~c": 2}))
    assert [change.pointer for change in found.changes] == ["/a~1b~0c"]
