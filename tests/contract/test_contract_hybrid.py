"""One contract for a 0.3 card, its 1.0 equivalent and their hybrid; and hybrids whose halves disagree."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, TypeAlias, cast

import httpx
import pytest
from a2a.server.routes import create_agent_card_routes
from a2a.types import AgentCard
from google.protobuf.json_format import ParseDict
from starlette.applications import Starlette

from a2a_ledger.card import Card, read_card
from a2a_ledger.contract import contract_of, diff, in_force, require_contract

if TYPE_CHECKING:
    from a2a_ledger.events import Interface

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Object: TypeAlias = "dict[str, Json]"

FLOW: Object = {"tokenUrl": "https://t.example/token", "scopes": {"read": "Read things"}}
COMMON: Object = {"name": "n", "description": "d", "version": "1", "defaultInputModes": ["text/plain"]}
NEW: Object = {
    **COMMON,
    "supportedInterfaces": [
        {"url": "https://h.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
        {"url": "https://h.example/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
    ],
    "capabilities": {"extendedAgentCard": True, "extensions": [{"uri": "urn:x", "required": True}]},
    "securitySchemes": {
        "oauth": {"oauth2SecurityScheme": {"flows": {"clientCredentials": FLOW}}},
        "key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}},
        "bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}},
        "mtls": {"mtlsSecurityScheme": {}},
        "oidc": {"openIdConnectSecurityScheme": {"openIdConnectUrl": "https://i.example/oidc"}},
    },
    "securityRequirements": [{"schemes": {"oauth": {"list": ["read"]}, "key": {}}}, {"schemes": {"mtls": {}}}],
    "skills": [
        {
            "id": "s",
            "name": "s",
            "description": "s",
            "tags": ["t"],
            "securityRequirements": [{"schemes": {"oidc": {}}}],
        },
        {"id": "t", "name": "t", "description": "t", "tags": ["t"]},
    ],
}
OLD: Object = {
    **COMMON,
    "protocolVersion": "0.3.0",
    "url": "https://h.example/rpc",
    "preferredTransport": "JSONRPC",
    "additionalInterfaces": [
        {"url": "https://h.example/rpc", "transport": "JSONRPC"},
        {"url": "https://h.example/rest", "transport": "HTTP+JSON"},
    ],
    "supportsAuthenticatedExtendedCard": True,
    "capabilities": {"extensions": [{"uri": "urn:x", "required": True}]},
    "securitySchemes": {
        "oauth": {"type": "oauth2", "flows": {"clientCredentials": FLOW}},
        "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
        "bearer": {"type": "http", "scheme": "bearer"},
        "mtls": {"type": "mutualTLS"},
        "oidc": {"type": "openIdConnect", "openIdConnectUrl": "https://i.example/oidc"},
    },
    "security": [{"oauth": ["read"], "key": []}, {"mtls": []}],
    "skills": [{"id": "s", "name": "s", "security": [{"oidc": []}]}, {"id": "t", "name": "t"}],
}
OLD_SPOKEN: Interface = {"binding": "JSONRPC", "tenant": "", "url": "https://h.example/rpc", "version": "0.3"}
NEW_SPOKEN: Interface = {"binding": "JSONRPC", "tenant": "", "url": "https://h.example/rpc", "version": "1.0"}


def merged(new: Json, old: Json) -> Json:
    """Lay two halves over each other; where both are lists of objects, item by item."""
    if isinstance(new, dict) and isinstance(old, dict):
        return {key: merged(new.get(key), old.get(key)) for key in {**new, **old}}
    if isinstance(new, list) and isinstance(old, list) and all(isinstance(item, dict) for item in (*new, *old)):
        return [merged(one, two) for one, two in zip(new, old, strict=True)]
    return old if new is None else new


HYBRID = cast("Object", merged(NEW, OLD))


def card(document: Json) -> Card:
    return read_card(json.dumps(document).encode())


def snake(value: Json) -> Json:
    """Spell the members of A2A in snake_case; names of schemes, ids and urls stay."""
    if isinstance(value, dict):
        return {
            "".join("_" + char.lower() if char.isupper() else char for char in key): snake(item)
            for key, item in value.items()
        }
    return [snake(item) for item in value] if isinstance(value, list) else value


def test_three_dialects_state_one_contract_but_for_the_version() -> None:
    old, new, hybrid = (require_contract(card(one)) for one in (OLD, NEW, HYBRID))

    assert (card(OLD).dialect, card(NEW).dialect, card(HYBRID).dialect) == ("0.3", "1.0", "hybrid")
    assert card(HYBRID).flags == ()
    assert hybrid == new
    assert {name for name in new.value if new.value[name] != old.value[name]} == {"interfaces"}
    assert [{**one, "version": "1.0"} for one in old.interfaces] == new.interfaces
    assert {one["version"] for one in old.interfaces} == {"0.3"}


def test_snake_case_copies_say_the_same() -> None:
    for document in (OLD, NEW, HYBRID):
        assert require_contract(card(snake(document))) == require_contract(card(document))


def test_the_0_3_proto_spelling_says_the_same() -> None:
    proto = {**OLD, "securitySchemes": NEW["securitySchemes"], "security": NEW["securityRequirements"]}
    assert require_contract(card(proto)) == require_contract(card(OLD))
    assert card(proto).dialect == "0.3"


async def served(document: Object) -> bytes:
    """Return the bytes that a real SDK 1.3 server serves for a card."""
    app = Starlette(routes=create_agent_card_routes(ParseDict(copy.deepcopy(document), AgentCard())))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://agent.test") as client:
        answer = await client.get("/.well-known/agent-card.json")
    assert answer.status_code == 200
    return answer.content


async def test_what_a_real_server_serves_states_the_contract_it_was_given() -> None:
    pure = read_card(await served(NEW))
    assert pure.dialect == "1.0"
    assert contract_of(pure) == contract_of(card(NEW))

    listed = cast("list[Json]", NEW["supportedInterfaces"])
    old_spoken: Object = {"url": "https://h.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"}
    both: Object = {**NEW, "supportedInterfaces": [*listed, old_spoken]}
    hybrid = read_card(await served(both))
    assert (hybrid.dialect, hybrid.flags) == ("hybrid", ())
    assert contract_of(hybrid) == contract_of(card(both))
    assert hybrid.document is not None
    assert {"url", "security", "supportsAuthenticatedExtendedCard"} <= hybrid.document.keys()


def offers(*versions: str) -> list[Json]:
    """Return the same two addresses, each in these versions."""
    listed = cast("list[Object]", NEW["supportedInterfaces"])
    return [{**one, "protocolVersion": version} for one in listed for version in versions]


async def test_what_a_real_server_serves_for_either_generation_or_both_agrees_per_interface() -> None:
    documents: list[Object] = [
        {**NEW, "supportedInterfaces": offers(*one)} for one in (["1.0"], ["0.3"], ["1.0", "0.3"])
    ]
    new, old, both = [read_card(await served(document)) for document in documents]

    assert (new.dialect, old.dialect, both.dialect) == ("1.0", "hybrid", "hybrid")
    assert (new.flags, old.flags, both.flags) == ((), (), ())
    values = [{**require_contract(one).value, "interfaces": None} for one in (new, old, both, card(OLD))]
    assert values == [values[0]] * 4
    spoken = [[*require_contract(one).interfaces] for one in (new, old, both)]
    assert spoken[2] == [offer for pair in zip(spoken[0], spoken[1], strict=True) for offer in pair]
    assert [{**one, "version": None} for one in spoken[0]] == [{**one, "version": None} for one in spoken[1]]
    for one in (new, old, both):
        value = require_contract(one).value
        governing = [in_force(value, offer, skill) for offer in spoken[2] for skill in (None, "s", "t")]
        assert (
            governing
            == [in_force(require_contract(card(OLD)).value, OLD_SPOKEN, skill) for skill in (None, "s", "t")] * 4
        )


OPEN_CARDS: list[Object] = [{"securityRequirements": []}, {"securityRequirements": [{"schemes": {}}]}]


@pytest.mark.parametrize("open_card", OPEN_CARDS)
async def test_a_real_server_keeps_nothing_required_and_the_anonymous_way_apart(open_card: Object) -> None:
    old_spoken: Object = {"url": "https://h.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"}
    document: Object = {**NEW, **open_card, "supportedInterfaces": [old_spoken]}
    hybrid = read_card(await served(document))

    assert hybrid.flags == ()
    assert require_contract(hybrid).value["security"] == ([] if not open_card["securityRequirements"] else [{}])


async def test_what_only_1_0_can_say_is_no_disagreement_and_is_not_lost() -> None:
    device: Object = {
        "deviceAuthorizationUrl": "https://d.example",
        "tokenUrl": "https://t.example",
        "scopes": {"s": ""},
    }
    code: Object = {
        "authorizationUrl": "https://a.example",
        "tokenUrl": "https://t.example",
        "scopes": {"s": ""},
        "pkceRequired": True,
    }
    document: Object = {
        **NEW,
        "securitySchemes": {
            "device": {"oauth2SecurityScheme": {"flows": {"deviceCode": device}}},
            "code": {"oauth2SecurityScheme": {"flows": {"authorizationCode": code}}},
        },
        "securityRequirements": [{"schemes": {"code": {"list": ["s"]}}}],
        "skills": [],
        "supportedInterfaces": [
            {"url": "https://h.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"}
        ],
    }
    hybrid = read_card(await served(document))

    assert (hybrid.dialect, hybrid.flags) == ("hybrid", ())
    assert contract_of(hybrid) == contract_of(card(document))
    assert b'"pkceRequired":true' in require_contract(hybrid).canonical
    assert b'"deviceAuthorizationUrl":"https://d.example"' in require_contract(hybrid).canonical


DISAGREEMENTS: list[tuple[Object, str]] = [
    ({"security": [{"mtls": []}]}, "security"),
    ({"security": []}, "security"),
    ({"securityRequirements": []}, "security"),
    ({"supportsAuthenticatedExtendedCard": False}, "extendedCard"),
]


@pytest.mark.parametrize(
    ("change", "member"),
    DISAGREEMENTS,
)
def test_halves_that_disagree_are_both_kept(change: Object, member: str) -> None:
    torn = card({**HYBRID, **change})
    value = require_contract(torn).value
    legacy = value["legacy"]
    assert isinstance(legacy, dict)

    assert torn.flags == ("halves-disagree",)
    assert set(legacy) == {"extendedCard", "schemes", "security", "skills"}
    assert {name for name in legacy if legacy[name] != value[name]} == {member}
    if "securityRequirements" not in change:
        new_half = require_contract(card(NEW)).value
        assert {name: value[name] for name in new_half} == new_half


def test_schemes_and_skills_that_disagree_are_both_kept() -> None:
    torn: Object = copy.deepcopy(HYBRID)
    schemes, skills = cast("Object", torn["securitySchemes"]), cast("list[Object]", torn["skills"])
    cast("Object", schemes["key"])["in"] = "query"
    skills[1]["security"] = [{"oidc": []}]
    skills[1]["securityRequirements"] = []
    read = card(torn)
    value = require_contract(read).value

    assert read.flags == ("halves-disagree",)
    new_scheme, old_scheme = (
        cast("Object", half["schemes"])["key"] for half in (value, cast("Object", value["legacy"]))
    )
    assert new_scheme == {"kind": "apiKey", "in": "header", "name": "X-Key"}
    assert old_scheme == {"kind": "apiKey", "in": "query", "name": "X-Key"}
    assert cast("Object", value["skills"]).keys() == {"s"}
    assert cast("Object", cast("Object", value["legacy"])["skills"]).keys() == {"s", "t"}


def test_a_0_3_scheme_with_two_flows_says_more_than_its_1_0_half() -> None:
    torn: Object = copy.deepcopy(HYBRID)
    oauth = cast("Object", cast("Object", torn["securitySchemes"])["oauth"])
    oauth["flows"] = {"clientCredentials": FLOW, "implicit": {"authorizationUrl": "https://a.example", "scopes": {}}}

    assert card(torn).flags == ("halves-disagree",)


def test_versions_and_lists_of_interfaces_are_no_disagreement() -> None:
    changes: list[Object] = [
        {"protocolVersion": "0.2.6"},
        {"url": ""},
        {"url": "HTTPS://H.example:443/rest", "preferredTransport": "REST"},  # a place that the list of 1.0 has
        {"additionalInterfaces": []},
    ]
    for change in changes:
        read = card({**HYBRID, **change})
        assert read.flags == ()
        assert contract_of(read) == contract_of(card(NEW))


def test_where_a_0_3_client_of_a_hybrid_calls_is_a_term_too() -> None:
    elsewhere: Object = {"url": "https://other.example/", "transport": "GRPC"}
    hybrid: Object = {**HYBRID, "url": "https://third.example", "additionalInterfaces": [elsewhere, elsewhere]}
    read = card(hybrid)
    listed = require_contract(card(NEW)).interfaces

    assert read.flags == ()
    assert require_contract(read).interfaces == [
        *listed,
        {"binding": "JSONRPC", "tenant": "", "url": "https://third.example/", "version": "0.3"},
        {"binding": "GRPC", "tenant": "", "url": "https://other.example/", "version": "0.3"},
    ]
    moved = diff(read, card({**hybrid, "url": "https://evil.example/"}))
    assert moved.verdict == "contract"
    assert [(one.pointer, one.kind) for one in moved.changes] == [("/url", "contract")]


@pytest.mark.parametrize("absent", ["security", "securityRequirements", "supportsAuthenticatedExtendedCard"])
def test_a_member_that_one_half_does_not_state_is_read_from_the_other(absent: str) -> None:
    read = card({name: value for name, value in HYBRID.items() if name != absent})

    assert read.flags == ()
    assert contract_of(read) == contract_of(card(NEW))


def test_an_empty_list_of_1_0_interfaces_is_no_half() -> None:
    read = card({**OLD, "supportedInterfaces": []})

    assert read.dialect == "0.3"
    assert contract_of(read) == contract_of(card(OLD))


def test_a_task_is_held_to_the_half_that_it_speaks() -> None:
    value = require_contract(card({**HYBRID, "security": [{"bearer": []}]})).value

    assert in_force(value, OLD_SPOKEN, None)["security"] == [{"bearer": []}]
    assert in_force(value, NEW_SPOKEN, None)["security"] == [{"key": [], "oauth": ["read"]}, {"mtls": []}]
    assert in_force(value, None, "s")["security"] == [{"oidc": []}]
    assert in_force(value, OLD_SPOKEN, "t")["security"] == [{"bearer": []}]
    agreeing = require_contract(card(HYBRID)).value
    assert in_force(agreeing, OLD_SPOKEN, None) == in_force(agreeing, NEW_SPOKEN, None)
