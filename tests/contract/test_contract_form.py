"""The normal form, case by case."""

from __future__ import annotations

import hashlib
import json
import struct
from typing import TYPE_CHECKING, TypeAlias

import pytest

from a2a_ledger.card import read_card
from a2a_ledger.contract import FORM, major_minor, require_contract, summary
from a2a_ledger.contract.card_json import UnrepresentableError, canonical

if TYPE_CHECKING:
    from pathlib import Path

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Object: TypeAlias = "dict[str, Json]"
URL = "https://h.example/a2a"
MAIN: dict[str, Json] = {"binding": "JSONRPC", "tenant": "", "url": URL, "version": None}


def form(**members: Json) -> dict[str, Json]:
    """Return the normal form of a card with these members, as JSON read back from its canonical bytes."""
    card = read_card(json.dumps({"name": "n", **members}).encode())
    value: dict[str, Json] = json.loads(require_contract(card).canonical)
    return value


def flags(**members: Json) -> tuple[str, ...]:
    return read_card(json.dumps({"name": "n", **members}).encode()).flags


def test_the_whole_form_worked_by_hand() -> None:
    raw = json.dumps(
        {
            "name": "n",
            "protocolVersion": "0.3.0",
            "url": "HTTPS://H.example:443",
            "securitySchemes": {"k": {"type": "apiKey", "in": "header", "name": "X-Key", "description": "a key"}},
            "security": [{"k": []}],
            "skills": [{"id": "s", "security": [{"k": []}, {}]}, {"id": "t", "security": []}, {"id": "u"}],
        }
    ).encode()
    expected = (
        b'{"extendedCard":false,"extensions":[],"form":"' + FORM.encode() + b'",'
        b'"interfaces":[{"binding":"JSONRPC","tenant":"","url":"https://h.example/","version":"0.3"}],'
        b'"schemes":{"k":{"in":"header","kind":"apiKey","name":"X-Key"}},'
        b'"security":[{"k":[]}],"skills":{"s":[{"k":[]},{}]}}'
    )

    contract = require_contract(read_card(raw))
    assert contract.canonical == expected
    assert contract.hash == "sha256:" + hashlib.sha256(expected).hexdigest()
    assert contract.form == FORM


@pytest.mark.parametrize(
    ("stated", "read"),
    [("0.3.0", "0.3"), ("0.3", "0.3"), ("1.0.1", "1.0"), ("1", "1.0"), ("01.2", "1.2"), ("1.0-rc.1", "1.0-rc.1"),
     ("", None), (None, None), ("a2a-2025-06", "a2a-2025-06"), ("1.0.0-rc.1", "1.0"), ("1.5-rc.1", "1.5-rc.1"),
     ("9" * 5000, "9" * 5000), ("1.", "1."), ("v1.0", "v1.0")],
)  # fmt: skip
def test_patch_numbers_do_not_count_and_not_stated_is_no_default(stated: str | None, read: str | None) -> None:
    assert major_minor(stated) == read
    assert form(url=URL, protocolVersion=stated)["interfaces"] == [{**MAIN, "version": read}]


def test_an_interface_without_a_version_states_none() -> None:
    card = read_card(
        b'{"name":"n","supportedInterfaces":[{"url":"https://h.example/a2a","protocolBinding":"JSONRPC"}]}'
    )

    assert require_contract(card).interfaces == [MAIN]
    assert summary(card)["stated"] == {"protocolVersion": False, "security": False}


def test_interfaces_keep_their_order_and_drop_exact_repeats() -> None:
    main: dict[str, Json] = {"url": URL, "transport": "JSONRPC"}
    other: dict[str, Json] = {"url": URL, "transport": "GRPC"}

    def bindings(*listed: Json) -> list[Json]:
        found = form(url=URL, protocolVersion="0.3.0", additionalInterfaces=list(listed))["interfaces"]
        assert isinstance(found, list)
        return [one["binding"] for one in found if isinstance(one, dict)]

    assert bindings(main, other, main) == ["JSONRPC", "GRPC"]
    assert bindings(other, other) == ["JSONRPC", "GRPC"]
    listed: list[Json] = [
        {"url": URL, "protocolBinding": "GRPC", "protocolVersion": "1.0", "tenant": "t"},
        {"url": "h.example:50051", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
    ]
    assert form(supportedInterfaces=listed)["interfaces"] == [
        {"binding": "GRPC", "tenant": "t", "url": URL, "version": "1.0"},
        {"binding": "GRPC", "tenant": "", "url": "h.example:50051", "version": "1.0"},
    ]


@pytest.mark.parametrize(
    ("spelled", "read"),
    [
        ({"type": "apiKey", "in": "header", "name": "K"}, {"kind": "apiKey", "in": "header", "name": "K"}),
        ({"type": "apiKey", "in_": "header", "name": "K"}, {"kind": "apiKey", "in": "header", "name": "K"}),
        ({"apiKeySecurityScheme": {"location": "query", "name": "k"}}, {"kind": "apiKey", "in": "query", "name": "k"}),
        ({"api_key_security_scheme": {"location": "query"}}, {"kind": "apiKey", "in": "query", "name": ""}),
        ({"type": "http", "scheme": "Bearer", "bearerFormat": "JWT"}, {"kind": "http", "scheme": "bearer"}),
        ({"httpAuthSecurityScheme": {"scheme": "BASIC"}}, {"kind": "http", "scheme": "basic"}),
        ({"type": "openIdConnect", "openIdConnectUrl": "https://I"}, {"kind": "openIdConnect", "url": "https://i/"}),
        ({"openIdConnectSecurityScheme": {}}, {"kind": "openIdConnect", "url": ""}),
        ({"type": "mutualTLS"}, {"kind": "mutualTLS"}),
        ({"mtlsSecurityScheme": {}}, {"kind": "mutualTLS"}),
        ({"type": "oauth2"}, {"kind": "oauth2", "flows": {}, "metadataUrl": ""}),
    ],
)
def test_every_spelling_of_a_scheme_has_one_form(spelled: dict[str, Json], read: dict[str, Json]) -> None:
    assert form(url=URL, securitySchemes={"x": spelled})["schemes"] == {"x": read}
    assert flags(url=URL, securitySchemes={"x": spelled}) == ()


def test_oauth2_flows_with_every_member() -> None:
    flow: Json = {"tokenUrl": "https://T.example", "scopes": {"write": "W", "read": "R"}, "pkceRequired": True}
    read = {
        "kind": "oauth2",
        "metadataUrl": "https://m.example",
        "flows": {
            "authorizationCode": {
                "authorizationUrl": "",
                "deviceAuthorizationUrl": "",
                "pkceRequired": True,
                "refreshUrl": "",
                "scopes": ["read", "write"],
                "tokenUrl": "https://T.example",
            }
        },
    }
    new: Json = {
        "oauth2SecurityScheme": {"flows": {"authorizationCode": flow}, "oauth2MetadataUrl": "https://m.example"}
    }
    old: Json = {"type": "oauth2", "flows": {"authorization_code": flow}, "oauth2MetadataUrl": "https://m.example"}
    assert form(url=URL, securitySchemes={"o": new})["schemes"] == {"o": read}
    assert form(url=URL, securitySchemes={"o": old})["schemes"] == {"o": read}


@pytest.mark.parametrize(
    "odd",
    [
        {"type": "httpAuth", "scheme": "Bearer"},
        {"type": "x402", "description": "pay"},
        {"type": 7},
        {"type": "http", "scheme": 7},
        {"type": "oauth2", "flows": []},
        {"type": "oauth2", "flows": {"implicit": "yes"}},
        {"type": "oauth2", "flows": {"implicit": {"scopes": 1}}},
        {"type": "oauth2", "flows": {"implicit": {"scopes": [1]}}},
        {"oauth2SecurityScheme": {"flows": {"authorizationCode": {"pkceRequired": "yes"}}}},
        {"apiKeySecurityScheme": {"name": "k"}, "mtlsSecurityScheme": {}},
        {"mtlsSecurityScheme": True},
        {},
        [],
        "bearer",
        None,
    ],
)
def test_a_scheme_that_nobody_understands_is_kept_verbatim_and_flagged(odd: Json) -> None:
    assert form(url=URL, securitySchemes={"x": odd})["schemes"] == {"x": {"kind": "unknown", "raw": odd}}
    assert flags(url=URL, securitySchemes={"x": odd}) == ("unknown-scheme",)


def test_a_scheme_table_that_is_no_object_is_kept_verbatim() -> None:
    assert form(url=URL, securitySchemes=["bearer"])["schemes"] == {
        "securitySchemes": {"kind": "unknown", "raw": ["bearer"]}
    }


REQUIREMENTS: list[tuple[Json, Json]] = [
    ([], []),
    ([{}], [{}]),
    ([{"b": ["y", "x", "y"]}, {"a": []}, {"b": ["x", "y"]}], [{"a": []}, {"b": ["x", "y"]}]),
    ([{"schemes": {"a": {"list": ["s"]}}}], [{"a": ["s"]}]),
    ([{"schemes": {"a": {}}}], [{"a": []}]),
    ([{"schemes": {"a": ["s"]}}], [{"a": ["s"]}]),
    ([{"schemes": {}}], [{}]),
    ([{"schemes": []}], [{"schemes": []}]),  # a scheme that is called so
    ([{"a": None}], [{"a": []}]),
]


@pytest.mark.parametrize(
    ("spelled", "read"),
    REQUIREMENTS,
)
@pytest.mark.parametrize("member", ["security", "securityRequirements"])
def test_requirements_are_a_set_of_sets(member: str, spelled: Json, read: Json) -> None:
    assert form(url=URL, **{member: spelled})["security"] == read
    assert flags(url=URL, **{member: spelled}) == ()
    skill: Json = {"id": "s", member: spelled}
    assert form(url=URL, skills=[skill])["skills"] == ({"s": read} if read else {})


ODD_REQUIREMENTS: list[tuple[Json, Json]] = [
    ({"a": []}, [{"a": []}]),
    (["a"], ["a"]),
    ([{"a": "scope"}], [{"a": "scope"}]),
    ([{"a": [1]}], [{"a": [1]}]),
    ("a", ["a"]),
    ([{"schemes": {"a": 5}}], [{"schemes": {"a": 5}}]),
]


@pytest.mark.parametrize(
    ("odd", "read"),
    ODD_REQUIREMENTS,
)
def test_requirements_of_another_shape_are_kept_and_flagged(odd: Json, read: Json) -> None:
    assert form(url=URL, security=odd)["security"] == read
    assert flags(url=URL, security=odd) == ("odd-shape",)


AUTHENTICATION: list[tuple[Json, dict[str, Json], Json]] = [
    ({"schemes": ["b", "a", "a"]}, {"a": {}, "b": {}}, [{"a": []}, {"b": []}]),
    ({"schemes": ["A"], "credentials": "c", "x": 1}, {"A": {"raw": {"credentials": "c", "x": 1}}}, [{"A": []}]),
    ({"schemes": ["A"], "credentials": None, "x": ""}, {"A": {}}, [{"A": []}]),
    ({"schemes": "Bearer"}, {"Bearer": {}}, [{"Bearer": []}]),
    (["Bearer"], {"Bearer": {}}, [{"Bearer": []}]),
    ("Bearer", {"Bearer": {}}, [{"Bearer": []}]),
    ({"schemes": []}, {}, []),
    ({"schemes": None, "credentials": None}, {}, []),
    ({}, {}, []),
    ([], {}, []),
    ("", {}, []),
]


@pytest.mark.parametrize(("spelled", "schemes", "security"), AUTHENTICATION)
def test_each_scheme_of_0_1_is_one_alternative(spelled: Json, schemes: dict[str, Object], security: Json) -> None:
    read = form(url=URL, authentication=spelled)
    assert read["schemes"] == {name: {"kind": "legacy", "name": name, **rest} for name, rest in schemes.items()}
    assert read["security"] == security
    assert flags(url=URL, authentication=spelled) == ()


ODD_AUTHENTICATION: list[tuple[Json, Json]] = [
    ([{"type": "oauth2"}], [{"authentication": []}]),
    ({"type": "bearer"}, [{"authentication": []}]),
    ({"credentials": "c"}, [{"authentication": []}]),
    ({"schemes": [1]}, [{"authentication": []}]),
    (True, [{"authentication": []}]),
    ({"schemes": [], "x402": {}}, []),  # it says that no scheme is asked for
]


@pytest.mark.parametrize(("odd", "security"), ODD_AUTHENTICATION)
def test_an_authentication_of_another_shape_is_kept_verbatim(odd: Json, security: Json) -> None:
    read = form(url=URL, authentication=odd)

    assert read["schemes"] == {"authentication": {"kind": "unknown", "raw": odd}}
    assert read["security"] == security
    assert flags(url=URL, authentication=odd) == ("unknown-scheme",)


def test_the_authentication_of_0_1_is_not_read_beside_what_replaced_it() -> None:
    stated: list[Object] = [{"securitySchemes": {}}, {"security": []}, {"securityRequirements": []}]
    for later in stated:
        read = form(url=URL, authentication={"schemes": ["Bearer"]}, **later)
        assert (read["schemes"], read["security"]) == ({}, [])


def test_only_required_extensions_are_contract() -> None:
    listed: list[Json] = [
        {"uri": "urn:b", "required": True, "description": "B", "params": {"n": 1}},
        {"uri": "urn:a", "required": True},
        {"uri": "urn:a", "required": True, "params": None},
        {"uri": "urn:c", "required": False},
        {"uri": "urn:d"},
    ]
    read = [{"params": None, "uri": "urn:a"}, {"params": {"n": 1}, "uri": "urn:b"}]
    assert form(url=URL, capabilities={"extensions": listed})["extensions"] == read
    assert form(url=URL, capabilities={"extensions": listed[::-1]})["extensions"] == read
    text: Json = {"extensions": [{"uri": "urn:x", "required": "True"}]}
    assert form(url=URL, capabilities=text)["extensions"] == [{"params": None, "uri": "urn:x"}]
    assert flags(url=URL, capabilities=text) == ("odd-shape",)


def test_the_extended_card_in_both_vocabularies() -> None:
    assert form(url=URL, supportsAuthenticatedExtendedCard=True)["extendedCard"] is True
    assert form(url=URL, capabilities={"extendedAgentCard": True})["extendedCard"] is True
    assert form(url=URL, supports_authenticated_extended_card=False)["extendedCard"] is False
    assert form(url=URL)["extendedCard"] is False


@pytest.mark.parametrize(
    "members",
    [
        {"capabilities": []},
        {"capabilities": {"extensions": ["urn:x"]}},
        {"skills": {"id": "s"}},
        {"supportedInterfaces": {"url": "https://h.example"}},
        {"supportedInterfaces": ["https://h.example"]},
        {"additionalInterfaces": "https://h.example"},
        {"url": 5},
        {"protocolVersion": 1},
        {"preferredTransport": ["JSONRPC"]},
        {"supportsAuthenticatedExtendedCard": "yes"},
    ],
)
def test_lists_where_objects_belong_and_the_reverse_never_throw(members: dict[str, Json]) -> None:
    assert "odd-shape" in flags(**{"url": URL, "skills": [], **members})
    assert form(**{"url": URL, "skills": [], **members})["form"] == FORM


def test_two_skills_of_one_id_do_not_depend_on_their_order() -> None:
    a: Json = {"id": "s", "security": [{"a": []}]}
    b: Json = {"id": "s", "security": [{"b": []}]}

    assert form(url=URL, skills=[a, b])["skills"] == form(url=URL, skills=[b, a])["skills"]
    assert form(url=URL, skills=[a, b])["skills"] == {"s": [{"a": []}, {"b": []}]}
    assert flags(url=URL, skills=[a, b]) == ("duplicate-skill-ids",)


def test_a_key_order_beyond_the_basic_plane_is_that_of_utf_16() -> None:
    """U+1F600 sorts before U+FF01 by UTF-16 code units and behind it by code points (RFC 8785 section 3.2.3)."""
    raw = '{"name":"n","url":"https://h.example/a2a","securitySchemes":{"\uff01":{"type":"mutualTLS"},"😀":{"type":"mutualTLS"}}}'
    data = require_contract(read_card(raw.encode())).canonical

    assert data.index("😀".encode()) < data.index("\uff01".encode())


def test_our_canonical_json_meets_the_published_vectors(corpus: Path) -> None:
    place = corpus / "vectors" / "jcs"
    names = sorted(file.name for file in (place / "input").iterdir())
    assert len(names) == 6
    for name in names:
        value: object = json.loads((place / "input" / name).read_bytes())
        assert canonical(value) == (place / "output" / name).read_bytes()
    lines = (place / "es6_numbers_1000.txt").read_text().splitlines()
    assert len(lines) == 1000
    for line in lines:
        bits, _, text = line.partition(",")
        (value,) = struct.unpack(">d", int(bits, 16).to_bytes(8, "big"))
        assert canonical(value) == text.encode()


def test_what_rfc_8785_cannot_express_is_said() -> None:
    for value in (2**53, "\ud800", {"\udc00": 1}, float("nan")):
        with pytest.raises(UnrepresentableError):
            canonical(value)
