"""Odd shapes that real servers write, one by one: what the contract says of them, and what it must tell apart."""

from __future__ import annotations

import json
from typing import TypeAlias, cast

import pytest

from a2a_ledger.card import Card, read_card
from a2a_ledger.contract import contract_of, require_contract

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Object: TypeAlias = "dict[str, Json]"
URL = "https://h.example/a2a"
OLD: Object = {"name": "n", "url": URL, "protocolVersion": "0.3"}
OFFER: Object = {"url": URL, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}


def card(document: Json) -> Card:
    return read_card(json.dumps(document).encode())


def value(document: Json) -> Object:
    return cast("Object", json.loads(require_contract(card(document)).canonical))


def hash_of(document: Json) -> str:
    return require_contract(card(document)).hash


def scheme(raw: Json) -> Json:
    return cast("Object", value({**OLD, "securitySchemes": {"x": raw}})["schemes"])["x"]


ENVELOPES: list[tuple[Object, str]] = [
    ({"agentCard": OLD}, "agentCard"),
    ({"card": {**OLD, "skills": []}, "registeredAt": "2026-01-01"}, "card"),
    ({"jsonrpc": "2.0", "id": 1, "result": OLD}, "result"),
    # A registry's own name and url would pass for a card that requires nothing.
    (
        {"name": "entry", "url": "https://registry.example/1", "agent_card": {**OLD, "security": [{"k": []}]}},
        "agent_card",
    ),
]


@pytest.mark.parametrize(("envelope", "member"), ENVELOPES)
def test_a_card_one_level_down_is_refused_and_the_member_is_named(envelope: Object, member: str) -> None:
    read = card(envelope)

    assert (read.is_card, read.dialect) == (False, "unknown")
    assert read.flags == ("card-inside", "not-a-card")
    assert f"inside the member '{member}'" in read.problem
    assert contract_of(read) is None
    assert contract_of(card(envelope[member])) is not None


def test_what_merely_looks_like_an_envelope_is_a_card() -> None:
    for member in ("provider", "metadata", "card"):
        read = card({"name": "n", "url": URL, member: {"name": "m", "url": "https://m.example"}})
        assert (read.is_card, read.flags) == (True, ())
    assert card({**OLD, "card": {**OLD, "url": "https://other.example"}}).is_card
    assert card({"data": {"agentCard": OLD}}).flags == ("not-a-card",)  # two levels down


KINDS: list[Json] = ["APIKEY", "apikey", "openIDConnect", "OAuth2", "mutualTls", "oauth", "httpAuth"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_of_scheme_in_another_case_is_no_kind_that_a_client_knows(kind: Json) -> None:
    raw: Object = {"type": kind, "in": "header", "name": "K"}
    assert scheme(raw) == {"kind": "unknown", "raw": raw}


def test_a_schemes_place_may_be_spelled_as_an_sdk_misspelled_it() -> None:
    right = {"kind": "apiKey", "in": "header", "name": "K"}
    assert scheme({"type": "apiKey", "in_": "header", "name": "K"}) == right
    assert scheme({"type": "apiKey", "location": "header", "name": "K"}) == right
    assert scheme({"apiKeySecurityScheme": {"in": "header", "name": "K"}}) == right
    assert scheme({"type": "apiKey", "name": "K"}) == {**right, "in": ""}


def test_an_http_scheme_has_no_case_of_ascii_letters_alone() -> None:
    assert scheme({"type": "http", "scheme": "BEARER"}) == {"kind": "http", "scheme": "bearer"}
    assert scheme({"type": "http", "scheme": "\u212aERBEROS"}) == {"kind": "http", "scheme": "\u212aerberos"}


def test_flows_in_both_spellings_do_not_depend_on_their_order() -> None:
    camel: Object = {"tokenUrl": "https://camel.example"}
    snake: Object = {"tokenUrl": "https://snake.example"}
    both = [
        {"authorizationCode": camel, "authorization_code": snake},
        {"authorization_code": snake, "authorizationCode": camel},
    ]
    read = [scheme({"type": "oauth2", "flows": cast("Json", flows)}) for flows in both]

    assert read[0] == read[1] == scheme({"type": "oauth2", "flows": {"authorizationCode": camel}})
    assert scheme({"type": "oauth2", "flows": {"authorization_code": snake}}) == scheme(
        {"type": "oauth2", "flows": {"authorizationCode": snake}}
    )
    assert scheme({"type": "oauth2", "flows": {"authorizationCodeFlow": camel}}) != read[0]


VERSIONS: list[tuple[Json, str | None, tuple[str, ...]]] = [
    (1.0, "1.0", ("odd-shape",)),
    (1, "1.0", ("odd-shape",)),
    (0.3, "0.3", ("odd-shape",)),
    (1e20, "100000000000000000000", ("odd-shape", "odd-version")),
    (-0.0, "0.0", ("odd-shape",)),
    ("1", "1.0", ()),
    ("v1.0", "v1.0", ("odd-version",)),
    (" 1.0", " 1.0", ("odd-version",)),
    ("1.0.0-rc1", "1.0", ()),
    ("1.0\n", "1.0\n", ("odd-version",)),
    ("", None, ()),
    (None, None, ()),
    ([0.3], "[0.3]", ("odd-shape", "odd-version")),
]


@pytest.mark.parametrize(("stated", "read", "flags"), VERSIONS)
def test_a_version_of_any_type_is_read_or_kept(stated: Json, read: str | None, flags: tuple[str, ...]) -> None:
    document: Object = {"name": "n", "supportedInterfaces": [{**OFFER, "protocolVersion": stated}]}

    assert require_contract(card(document)).interfaces[0]["version"] == read
    assert card(document).flags == flags


def test_the_number_1_0_and_the_number_1_are_one_version() -> None:
    raw = '{"name":"n","url":"https://h.example","protocolVersion":%s}'
    hashes = {require_contract(read_card((raw % token).encode())).hash for token in ("1", "1.0", "1e0", '"1.0.5"')}
    assert len(hashes) == 1


MAIN: Object = {"binding": "JSONRPC", "tenant": "", "url": URL, "version": "0.3"}
EMPTY: Object = {"binding": "", "tenant": "", "url": "", "version": None}
OFFERS: list[tuple[Object, list[Json], tuple[str, ...]]] = [
    ({**OLD, "supportedInterfaces": {}}, [MAIN], ("odd-shape",)),
    ({**OLD, "supportedInterfaces": []}, [MAIN], ()),
    ({**OLD, "supportedInterfaces": None}, [MAIN], ()),
    ({"name": "n", "skills": [], "url": ""}, [], ()),
    ({"name": "n", "skills": []}, [], ()),
    ({"name": "n", "url": URL, "preferredTransport": ""}, [{**MAIN, "version": None}], ()),
    ({"name": "n", "preferredTransport": "GRPC"}, [{**EMPTY, "binding": "GRPC"}], ()),
    ({"name": "n", "supportedInterfaces": [{"protocolBinding": "GRPC"}]}, [{**EMPTY, "binding": "GRPC"}], ()),
    ({"name": "n", "supportedInterfaces": [None]}, [EMPTY], ("odd-shape",)),
    (
        {**OLD, "additionalInterfaces": [{"transport": "GRPC"}]},
        [MAIN, {**EMPTY, "binding": "GRPC", "version": "0.3"}],
        (),
    ),
    # A version beside the interfaces is the 0.3 half's; an interface that states none has none.
    ({"name": "n", "protocolVersion": "1.0", "supportedInterfaces": [{"url": URL}]}, [{**EMPTY, "url": URL}], ()),
]


@pytest.mark.parametrize(("document", "interfaces", "flags"), OFFERS)
def test_interfaces_of_every_shape(document: Object, interfaces: list[Json], flags: tuple[str, ...]) -> None:
    assert value(document)["interfaces"] == interfaces
    assert card(document).flags == flags


def test_names_of_bindings_and_schemes_are_compared_as_they_are_written() -> None:
    offers = [{**OFFER, "protocolBinding": binding} for binding in ("JSONRPC", "jsonrpc", "JsonRpc")]
    assert len({hash_of({"name": "n", "supportedInterfaces": [offer]}) for offer in offers}) == 3
    named = [{"Key": {"type": "mutualTLS"}}, {"key": {"type": "mutualTLS"}}]
    assert len({hash_of({**OLD, "securitySchemes": cast("Json", one)}) for one in named}) == 2
    assert hash_of({**OLD, "security": [{"k": ["Read"]}]}) != hash_of({**OLD, "security": [{"k": ["read"]}]})


NULLS: Object = {
    "preferredTransport": None,
    "additionalInterfaces": None,
    "supportedInterfaces": None,
    "securitySchemes": None,
    "security": None,
    "securityRequirements": None,
    "authentication": None,
    "capabilities": None,
    "supportsAuthenticatedExtendedCard": None,
    "skills": None,
}


@pytest.mark.parametrize("member", NULLS)
def test_null_is_not_stated(member: str) -> None:
    assert hash_of({**OLD, member: None}) == hash_of(OLD)
    assert card({**OLD, member: None}).flags == ()


TRUTHS: list[tuple[Json, bool]] = [
    (True, True), ("true", True), ("True", True), ("yes", True), (1, True), ({"a": 1}, True),
    (False, False), (None, False), ("false", False), ("FALSE", False), ("", False), (0, False), (-0.0, False),
    ({}, True), ([], True),
]  # fmt: skip


@pytest.mark.parametrize(("stated", "read"), TRUTHS)
def test_a_flag_that_some_client_takes_for_true_is_true(stated: Json, read: bool) -> None:
    document: Object = {
        **OLD,
        "capabilities": {"extensions": [{"uri": "urn:x", "required": stated}], "extendedAgentCard": stated},
    }
    flags = () if isinstance(stated, bool | None) else ("odd-shape",)

    assert value(document)["extensions"] == ([{"params": None, "uri": "urn:x"}] if read else [])
    assert value(document)["extendedCard"] is read
    assert card(document).flags == flags


def test_a_requirement_without_schemes_is_the_anonymous_way() -> None:
    spellings: list[Object] = [{"schemes": {}}, {"schemes": None}, {}]
    for one in spellings:
        assert value({**OLD, "security": [one]})["security"] == [{}]


def test_credentials_of_0_1_are_terms() -> None:
    """The sample card of A2A 0.1 writes its OAuth2 endpoints there: a token could be asked for elsewhere."""

    def credentials(token_url: str) -> Object:
        asked = {"schemes": ["OAuth2"], "credentials": json.dumps({"tokenUrl": token_url})}
        return {"name": "n", "url": URL, "authentication": cast("Json", asked)}

    assert hash_of(credentials("https://good.example/token")) != hash_of(credentials("https://evil.example/token"))


TWICE: list[tuple[Object, Json, Json]] = [
    # A 0.3 card with a stray 1.0 list: an SDK 1.x client reads that one and drops the other.
    ({**OLD, "security": [{"a": []}], "securityRequirements": []}, [], [{"a": []}]),
    ({**OLD, "security": [], "securityRequirements": [{"schemes": {"a": {}}}]}, [{"a": []}], []),
]


@pytest.mark.parametrize(("document", "new", "old"), TWICE)
def test_a_0_3_card_with_a_requirement_of_1_0_binds_two_generations_to_different_terms(
    document: Object, new: Json, old: Json
) -> None:
    read = value(document)

    assert card(document).flags == ("halves-disagree",)
    assert card(document).dialect == "0.3"
    assert read["security"] == new
    assert cast("Object", read["legacy"])["security"] == old


def test_a_1_0_card_has_no_half_for_clients_that_find_no_address_in_it() -> None:
    pure: Object = {"name": "n", "supportedInterfaces": [OFFER], "securityRequirements": [{"schemes": {"a": {}}}]}
    stray = card({**pure, "security": [{"b": []}]})

    assert (stray.dialect, stray.flags) == ("1.0", ())
    assert contract_of(stray) == contract_of(card(pure))


def test_an_empty_0_3_address_makes_no_half() -> None:
    pure: Object = {"name": "n", "supportedInterfaces": [OFFER], "security": [{"a": []}]}
    spellings: list[Object] = [{"url": ""}, {"additionalInterfaces": []}, {"preferredTransport": ""}]
    for empty in spellings:
        assert card({**pure, **empty}).dialect == "1.0"


def test_the_scheme_table_of_both_vocabularies_at_once_keeps_what_only_1_0_says() -> None:
    flow: Object = {"authorizationUrl": "https://a.example", "tokenUrl": "https://t.example", "scopes": {}}
    both: Object = {
        "type": "oauth2",
        "flows": {"authorizationCode": flow},
        "oauth2SecurityScheme": {"flows": {"authorizationCode": {**flow, "pkceRequired": True}}},
    }
    read = card({**OLD, "securitySchemes": {"x": both}})

    assert (read.dialect, read.flags) == ("0.3", ())
    assert b'"pkceRequired":true' in require_contract(read).canonical
