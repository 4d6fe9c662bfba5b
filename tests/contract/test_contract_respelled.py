"""Cards that are written again in another vocabulary, and words for people that are terms all the same."""

from __future__ import annotations

import json
from typing import TypeAlias

import pytest

from a2a_ledger.card import read_card
from a2a_ledger.contract import Diff, diff, parse_profile

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Object: TypeAlias = "dict[str, Json]"

FLOWS: Object = {"authorizationCode": {"authorizationUrl": "https://a.example", "tokenUrl": "https://t.example"}}
NEW: Object = {
    "name": "n",
    "documentationUrl": "https://d.example",
    "defaultInputModes": ["text/plain"],
    "supportedInterfaces": [{"url": "https://h.example/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
    "capabilities": {"extendedAgentCard": True, "pushNotifications": True},
    "securitySchemes": {
        "my_oauth": {"oauth2SecurityScheme": {"flows": FLOWS}},
        "myKey": {"apiKeySecurityScheme": {"location": "header", "name": "X"}},
    },
    "securityRequirements": [{"schemes": {"my_oauth": {"list": ["r"]}}}, {"schemes": {"myKey": {}}}],
    "skills": [{"id": "s", "inputModes": ["a"], "securityRequirements": [{"schemes": {"myKey": {}}}]}],
}
SNAKE: Object = {
    "name": "n",
    "documentation_url": "https://d.example",
    "default_input_modes": ["text/plain"],
    "supported_interfaces": [{"url": "https://h.example/", "protocol_binding": "JSONRPC", "protocol_version": "1.0"}],
    "capabilities": {"extended_agent_card": True, "push_notifications": True},
    "security_schemes": {
        "my_oauth": {
            "oauth2_security_scheme": {
                "flows": {
                    "authorization_code": {"authorization_url": "https://a.example", "token_url": "https://t.example"}
                }
            }
        },
        "myKey": {"api_key_security_scheme": {"location": "header", "name": "X"}},
    },
    "security_requirements": [{"schemes": {"myKey": {}}}, {"schemes": {"my_oauth": {"list": ["r"]}}}],
    "skills": [{"id": "s", "input_modes": ["a"], "security_requirements": [{"schemes": {"myKey": {}}}]}],
}
OLD: Object = {
    "name": "n",
    "url": "https://h.example/",
    "preferredTransport": "JSONRPC",
    "protocolVersion": "0.3.0",
    "capabilities": {"pushNotifications": True},
    "supportsAuthenticatedExtendedCard": True,
    "securitySchemes": {
        "my_oauth": {"type": "oauth2", "flows": FLOWS},
        "myKey": {"type": "apiKey", "in": "header", "name": "X"},
    },
    "security": [{"my_oauth": ["r"]}, {"myKey": []}],
    "skills": [{"id": "s", "inputModes": ["a"], "security": [{"myKey": []}]}],
}


def compared(old: Object, new: Object) -> Diff:
    before, after = (read_card(json.dumps(card).encode()) for card in (old, new))
    return diff(before, after)


def told(old: Object, new: Object) -> dict[str, tuple[str, str]]:
    return {one.pointer: (one.kind, one.note) for one in compared(old, new).changes}


def test_a_card_in_snake_case_says_the_same() -> None:
    for old, new in ((NEW, SNAKE), (SNAKE, NEW)):
        found = compared(old, new)
        assert (found.verdict, found.authorization) == ("prose", "same")
        assert found.old["contract"] == found.new["contract"]
        assert {(one.kind, one.note) for one in found.changes} == {("prose", "spelling")}
    assert len(told(NEW, SNAKE)) == 2 * 9


def test_a_0_3_card_and_its_1_0_equivalent_differ_in_versions_and_spell_the_rest() -> None:
    for old, new in ((OLD, {**NEW}), (NEW, OLD)):
        found = told(old, new)
        spelled = {pointer for pointer, one in found.items() if one == ("prose", "spelling")}
        assert spelled == {
            *("/supportsAuthenticatedExtendedCard", "/capabilities/extendedAgentCard"),
            *("/security", "/securityRequirements", "/skills/0/security", "/skills/0/securityRequirements"),
            *(f"/securitySchemes/my_oauth/{one}" for one in ("type", "flows", "oauth2SecurityScheme")),
            *(f"/securitySchemes/myKey/{one}" for one in ("type", "in", "name", "apiKeySecurityScheme")),
        }
        contract = {pointer: one[1] for pointer, one in found.items() if one[0] == "contract"}
        assert set(contract.values()) == {"version-only"}
        assert set(found) - spelled - set(contract) == {"/documentationUrl", "/defaultInputModes"}


def without(name: str, card: Object, **members: Json) -> Object:
    return {**{key: value for key, value in card.items() if key != name}, **members}


OTHER_WORDS: list[tuple[Object, Object, str, str, str]] = [
    # a value that is another one under the other name is a change of what it was
    (
        NEW,
        without("securityRequirements", NEW, security_requirements=[{"schemes": {"myKey": {}}}]),
        "/security_requirements",
        "contract",
        "",
    ),
    (
        NEW,
        without("defaultInputModes", NEW, default_input_modes=["text/html"]),
        "/default_input_modes",
        "capability",
        "",
    ),
    # names of a vendor, of schemes and of scopes are free: another spelling is another name
    ({**NEW, "tollFee": 1}, {**NEW, "toll_fee": 1}, "/toll_fee", "unclassified", ""),
    (
        {**NEW, "securitySchemes": {"tokenUrl": {"mtlsSecurityScheme": {}}}},
        {**NEW, "securitySchemes": {"token_url": {"mtlsSecurityScheme": {}}}},
        "/securitySchemes/token_url",
        "contract",
        "renamed",
    ),
    # a spelling that no reader takes for the name
    (OLD, without("preferredTransport", OLD, preferred_Transport="GRPC"), "/preferred_Transport", "unclassified", ""),
    # one that left for no other is a default
    (NEW, {**NEW, "security": []}, "/security", "prose", "default"),
    ({**OLD, "url": "https://g.example/"}, without("preferredTransport", OLD), "/preferredTransport", "contract", ""),
    # a respelled member beside one that changed
    (
        OLD,
        without("preferredTransport", OLD, preferred_transport="JSONRPC", url="https://g.example/"),
        "/preferred_transport",
        "prose",
        "spelling",
    ),
]


@pytest.mark.parametrize(("old", "new", "pointer", "kind", "note"), OTHER_WORDS)
def test_what_is_another_spelling_and_what_is_not(old: Object, new: Object, pointer: str, kind: str, note: str) -> None:
    assert told(old, new)[pointer] == (kind, note)


def test_a_list_of_the_other_dialect_that_says_something_else_is_no_spelling() -> None:
    old: Object = {**OLD, "security": [{"my_oauth": ["r"]}]}
    found = compared(old, NEW)
    assert found.authorization == "weaker"  # one more way
    assert {one.kind for one in found.changes if one.pointer in {"/security", "/securityRequirements"}} == {"contract"}


ODD: Object = {"type": "saml", "description": "d", "bearerFormat": "f", "deep": {"description": "d"}}
BASE: Object = {"name": "n", "url": "https://h.example/", "protocolVersion": "0.3"}


def schemes(one: Json) -> Object:
    return {**BASE, "securitySchemes": {"x": one}}


KEPT_AS_IT_STANDS: list[tuple[Object, Object, str]] = [
    (schemes(ODD), schemes({**ODD, "description": "e"}), "/securitySchemes/x/description"),
    (schemes(ODD), schemes({**ODD, "bearerFormat": "e"}), "/securitySchemes/x/bearerFormat"),
    (schemes(ODD), schemes({**ODD, "deep": {"description": "e"}}), "/securitySchemes/x/deep/description"),
    (
        schemes(ODD),
        schemes({"type": "saml", "description": "d", "deep": {"description": "d"}}),
        "/securitySchemes/x/bearerFormat",
    ),
    (
        {**BASE, "securitySchemes": [{"description": "d"}]},
        {**BASE, "securitySchemes": [{"description": "e"}]},
        "/securitySchemes/0/description",
    ),
    (
        {"name": "n", "url": "https://h.example/", "authentication": {"schemes": ["a"], "description": "d"}},
        {"name": "n", "url": "https://h.example/", "authentication": {"schemes": ["a"], "description": "e"}},
        "/authentication/description",
    ),
    ({**BASE, "url": {"description": "d"}}, {**BASE, "url": {"description": "e"}}, "/url/description"),
    (
        {"supportedInterfaces": [{"url": {"description": "d"}}]},
        {"supportedInterfaces": [{"url": {"description": "e"}}]},
        "/supportedInterfaces/0/url/description",
    ),
    (
        {**BASE, "skills": {"id": {"description": "d"}, "security": [{"x": []}]}},
        {**BASE, "skills": {"id": {"description": "e"}, "security": [{"x": []}]}},
        "/skills/id/description",
    ),
    (
        {
            **BASE,
            "capabilities": {"extensions": [{"uri": "u", "required": True, "params": {"l": [{"description": 1}]}}]},
        },
        {
            **BASE,
            "capabilities": {"extensions": [{"uri": "u", "required": True, "params": {"l": [{"description": 2}]}}]},
        },
        "/capabilities/extensions/0/params/l/0/description",
    ),
]


@pytest.mark.parametrize(("old", "new", "pointer"), KEPT_AS_IT_STANDS)
def test_words_that_the_contract_holds_are_what_decides(old: Object, new: Object, pointer: str) -> None:
    found = compared(old, new)
    assert found.verdict == "contract"
    assert {(one.pointer, one.kind) for one in found.changes} == {(pointer, "contract")}


def test_words_beside_what_the_contract_holds_are_prose() -> None:
    known: Object = {"type": "http", "scheme": "bearer", "description": "d"}
    assert told(schemes(known), schemes({**known, "description": "e", "scheme": "basic"})) == {
        "/securitySchemes/x/description": ("prose", ""),
        "/securitySchemes/x/scheme": ("contract", ""),
    }
    offered: Object = {"url": "https://h.example/", "description": "d"}
    assert told(
        {"supportedInterfaces": [offered]}, {"supportedInterfaces": [{**offered, "description": "e", "type": "t"}]}
    ) == {
        "/supportedInterfaces/0/description": ("prose", ""),
        "/supportedInterfaces/0/type": ("unclassified", ""),
    }


def test_an_id_under_which_a_vendor_term_stands_is_a_term() -> None:
    profile = parse_profile(b'[terms]\npaths = ["/skills/*/price"]')
    old, new = (read_card(json.dumps({**BASE, "skills": [{"id": name, "price": 1}]}).encode()) for name in ("s", "t"))
    found = diff(old, new, profile)
    assert [(one.pointer, one.kind, one.note) for one in found.changes] == [("/skills/0/id", "contract", "renamed")]
