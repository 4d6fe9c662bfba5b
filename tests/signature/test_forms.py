"""Canonical forms: worked examples by hand, the vectors of RFC 8785, and the SDK itself over real cards."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from a2a.client.card_resolver import parse_agent_card
from a2a.types import AgentCard
from a2a.utils import signing as sdk_signing
from google.protobuf.json_format import ParseDict, ParseError

from a2a_ledger.contract.card_json import parse
from a2a_ledger.signature import FORMS
from tests.signature.signing import CARD

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_ledger.contract.card_json import CardObject
    from a2a_ledger.events import JsonObject

# The SDK signs what this function returns, and has no public name for it.
_canonicalize = cast("Callable[[AgentCard], str]", vars(sdk_signing)["_canonicalize_agent_card"])

BYTES_OF = {form.name: form.bytes_of for form in FORMS}


def made(form: str, text: str) -> str | None:
    """Return the payload of a form for a card's JSON text."""
    payload = BYTES_OF[form](cast("CardObject", parse(text.encode()).value))
    return None if payload is None else payload.decode()


def test_the_names_are_these_and_stay() -> None:
    assert [form.name for form in FORMS] == [
        "jcs",
        "a2a-1.0",
        "a2a-1.0-filled",
        "a2a-python-1.1.4",
        "a2a-python-1.0",
        "a2a-python-0.3",
        "a2a-js-1.0.1",
        "a2a-js-1.0.0",
        "a2a-python-1.1.4-rewrapped",
        "a2a-python-1.0-rewrapped",
        "a2a-1.0-without-defaults",
        "jcs-rounded",
        "jcs-without-empty",
        "jcs-without-defaults",
        "python-json",
        "javascript-json",
        "gson",
        "go-json-without-empty",
    ]


# The example of A2A 1.0 section 8.4.1: required members stay though empty, optional ones that are set stay though
# false, what is neither goes when it has its default.
SPECIFIED = """{"name": "Example Agent", "description": "", "skills": [], "securitySchemes": {},
 "capabilities": {"streaming": false, "pushNotifications": false, "extensions": []},
 "signatures": [{"protected": "e30", "signature": "AA"}]}"""


def test_the_example_of_the_specification() -> None:
    assert made("a2a-1.0", SPECIFIED) == (
        '{"capabilities":{"pushNotifications":false,"streaming":false},"description":"","name":"Example Agent",'
        '"skills":[]}'
    )


def test_required_members_that_are_absent_may_be_filled_in() -> None:
    assert made("a2a-1.0-filled", SPECIFIED) == (
        '{"capabilities":{"pushNotifications":false,"streaming":false},"defaultInputModes":[],"defaultOutputModes":[],'
        '"description":"","name":"Example Agent","skills":[],"supportedInterfaces":[],"version":""}'
    )


# One card, and what each form makes of it by the rules of its author, worked out by hand. `x` is no member of A2A.
SAMPLE = """{"name": "é😀", "x": {"y": ""}, "description": "<&>", "version": "", "documentationUrl": "",
 "capabilities": {"streaming": false, "extensions": [{"uri": "u", "required": false,
   "params": {"n": 2, "f": 0.5, "t": 1e-7, "e": [], "z": 0}}]},
 "skills": [{"id": "s", "tags": ["", "t"]}],
 "securitySchemes": {"m": {"mtlsSecurityScheme": {}}, "b": {"httpAuthSecurityScheme": {"scheme": "bearer"}}},
 "signatures": [{"protected": "e30", "signature": "AA"}]}"""

BY_HAND = {
    "jcs": (
        '{"capabilities":{"extensions":[{"params":{"e":[],"f":0.5,"n":2,"t":1e-7,"z":0},"required":false,"uri":"u"}],'
        '"streaming":false},"description":"<&>","documentationUrl":"","name":"é😀","securitySchemes":{"b":'
        '{"httpAuthSecurityScheme":{"scheme":"bearer"}},"m":{"mtlsSecurityScheme":{}}},'
        '"skills":[{"id":"s","tags":["","t"]}],"version":"","x":{"y":""}}'
    ),
    "jcs-without-empty": (
        '{"capabilities":{"extensions":[{"params":{"f":0.5,"n":2,"t":1e-7,"z":0},"required":false,"uri":"u"}],'
        '"streaming":false},"description":"<&>","name":"é😀","securitySchemes":{"b":'
        '{"httpAuthSecurityScheme":{"scheme":"bearer"}}},"skills":[{"id":"s","tags":["t"]}]}'
    ),
    "jcs-without-defaults": (
        '{"capabilities":{"extensions":[{"params":{"f":0.5,"n":2,"t":1e-7},"uri":"u"}]},"description":"<&>",'
        '"name":"é😀","securitySchemes":{"b":{"httpAuthSecurityScheme":{"scheme":"bearer"}}},'
        '"skills":[{"id":"s","tags":["","t"]}]}'
    ),
    "a2a-1.0": (
        '{"capabilities":{"extensions":[{"params":{"e":[],"f":0.5,"n":2,"t":1e-7,"z":0},"uri":"u"}],"streaming":false},'
        '"description":"<&>","documentationUrl":"","name":"é😀","securitySchemes":{"b":'
        '{"httpAuthSecurityScheme":{"scheme":"bearer"}},"m":{"mtlsSecurityScheme":{}}},'
        '"skills":[{"id":"s","tags":["","t"]}],"version":""}'
    ),
    "a2a-1.0-without-defaults": (
        '{"capabilities":{"extensions":[{"params":{"e":[],"f":0.5,"n":2,"t":1e-7,"z":0},"uri":"u"}]},'
        '"description":"<&>","name":"é😀","securitySchemes":{"b":'
        '{"httpAuthSecurityScheme":{"scheme":"bearer"}},"m":{"mtlsSecurityScheme":{}}},'
        '"skills":[{"id":"s","tags":["","t"]}]}'
    ),
    "a2a-python-1.1.4": (
        '{"capabilities":{"extensions":[{"params":{"f":0.5,"n":2,"t":1e-7,"z":0},"uri":"u"}],"streaming":false},'
        '"description":"<&>","name":"é😀","securitySchemes":{"b":{"httpAuthSecurityScheme":{"scheme":"bearer"}}},'
        '"skills":[{"id":"s","tags":["t"]}]}'
    ),
    "a2a-python-1.0": (
        '{"capabilities":{"extensions":[{"params":{"f":0.5,"n":2.0,"t":1e-07,"z":0.0},"uri":"u"}],"streaming":false},'
        '"description":"<&>","name":"\\u00e9\\ud83d\\ude00","securitySchemes":{"b":{"httpAuthSecurityScheme":'
        '{"scheme":"bearer"}}},"skills":[{"id":"s","tags":["t"]}]}'
    ),
    "a2a-js-1.0.1": (
        '{"capabilities":{"extensions":[{"params":{"f":0.5,"n":2,"t":1e-7,"z":0},"uri":"u"}],"streaming":false},'
        '"description":"<&>","name":"é😀","skills":[{"id":"s","tags":["t"]}]}'
    ),
    "a2a-js-1.0.0": (
        '{"capabilities":{"extensions":[{"params":{"f":0.5,"n":2,"t":1e-7,"z":0},"required":false,"uri":"u"}],'
        '"streaming":false},"description":"<&>","name":"é😀","securitySchemes":{"b":{"scheme":{"$case":'
        '"httpAuthSecurityScheme","value":{"scheme":"bearer"}}},"m":{"scheme":{"$case":"mtlsSecurityScheme"}}},'
        '"skills":[{"id":"s","tags":["t"]}]}'
    ),
    "python-json": (
        '{"capabilities":{"extensions":[{"params":{"e":[],"f":0.5,"n":2,"t":1e-07,"z":0},"required":false,"uri":"u"}],'
        '"streaming":false},"description":"<&>","documentationUrl":"","name":"\\u00e9\\ud83d\\ude00",'
        '"securitySchemes":{"b":{"httpAuthSecurityScheme":{"scheme":"bearer"}},"m":{"mtlsSecurityScheme":{}}},'
        '"skills":[{"id":"s","tags":["","t"]}],"version":"","x":{"y":""}}'
    ),
    "javascript-json": (
        '{"name":"é😀","x":{"y":""},"description":"<&>","version":"","documentationUrl":"","capabilities":'
        '{"streaming":false,"extensions":[{"uri":"u","required":false,"params":{"n":2,"f":0.5,"t":1e-7,"e":[],"z":0}}]},'
        '"skills":[{"id":"s","tags":["","t"]}],"securitySchemes":{"m":{"mtlsSecurityScheme":{}},'
        '"b":{"httpAuthSecurityScheme":{"scheme":"bearer"}}}}'
    ),
    "gson": (
        '{"name":"é😀","x":{"y":""},"description":"\\u003c\\u0026\\u003e","version":"","documentationUrl":"",'
        '"capabilities":{"streaming":false,"extensions":[{"uri":"u","required":false,"params":'
        '{"n":2,"f":0.5,"t":1e-07,"e":[],"z":0}}]},"skills":[{"id":"s","tags":["","t"]}],"securitySchemes":'
        '{"m":{"mtlsSecurityScheme":{}},"b":{"httpAuthSecurityScheme":{"scheme":"bearer"}}}}'
    ),
    "go-json-without-empty": (
        '{"capabilities":{"extensions":[{"params":{"f":0.5,"n":2,"t":1e-7,"z":0},"required":false,"uri":"u"}],'
        '"streaming":false},"description":"\\u003c\\u0026\\u003e","name":"é😀","securitySchemes":{"b":'
        '{"httpAuthSecurityScheme":{"scheme":"bearer"}}},"skills":[{"id":"s","tags":["t"]}]}'
    ),
    "a2a-python-0.3": None,  # no url: its model refuses the card
}


@pytest.mark.parametrize("form", BY_HAND)
def test_each_form_of_one_card_by_hand(form: str) -> None:
    assert made(form, SAMPLE) == BY_HAND[form]


def test_an_sdk_0_3_card_by_hand() -> None:
    text = """{"name": "n", "description": "", "url": "https://a.example", "version": "1", "protocolVersion": "0.3.0",
     "preferredTransport": "JSONRPC", "capabilities": {"streaming": false}, "defaultInputModes": [], "x": 1,
     "defaultOutputModes": ["t"], "skills": [{"id": "s", "name": "é", "description": "d", "tags": []}],
     "securitySchemes": {"k": {"type": "apiKey", "in": "header", "name": "X"}}, "security": [{"k": ["r"]}],
     "supportsAuthenticatedExtendedCard": false}"""
    assert made("a2a-python-0.3", text) == (
        '{"capabilities":{"streaming":false},"defaultOutputModes":["t"],"name":"n","security":[{"k":["r"]}],'
        '"securitySchemes":{"k":{"in":"header","name":"X"}},"skills":[{"description":"d","id":"s","name":"\\u00e9"}],'
        '"supportsAuthenticatedExtendedCard":false,"url":"https://a.example","version":"1"}'
    )


def test_numbers_that_a_double_does_not_hold() -> None:
    text = '{"name": "n", "params": {"i": 12345678901234567890, "whole": 100000000000000000000}}'
    assert made("jcs", text) is None
    # 12345678901234567890 lies between two doubles; ECMAScript prints the nearer one as 12345678901234567000.
    rounded = '{"name":"n","params":{"i":12345678901234567000,"whole":100000000000000000000}}'
    assert made("jcs-rounded", text) == rounded
    assert made("python-json", text) == text.replace(" ", "")
    assert made("jcs-rounded", '{"n": 1e400}') is None


@pytest.mark.parametrize("form", [name for name in BYTES_OF if not name.startswith("a2a")])
def test_a_lone_surrogate_has_no_form_but_the_escaped_one(form: str) -> None:
    expected = '{"name":"\\ud800"}' if form == "python-json" else None
    assert made(form, '{"name": "\\ud800"}') == expected


REFUSED_BY_PARSERS: dict[str, JsonObject] = {
    "a number for a text": {"name": 1},
    "a text for a flag": {"capabilities": {"streaming": "yes"}},
    "a text for a list": {"skills": "s"},
    "a number for a message": {"provider": 1},
    "a list for a map": {"securitySchemes": []},
    "null in a list": {"skills": [None]},
    "two spellings": {"documentationUrl": "a", "documentation_url": "b"},
    "two alternatives": {"securitySchemes": {"s": {"mtlsSecurityScheme": {}, "apiKeySecurityScheme": {}}}},
    "params that are no object": {"capabilities": {"extensions": [{"params": []}]}},
}


@pytest.mark.parametrize("name", REFUSED_BY_PARSERS)
def test_what_the_sdk_refuses_has_no_form_of_the_sdk(name: str) -> None:
    card = REFUSED_BY_PARSERS[name]
    with pytest.raises(ParseError):
        ParseDict(dict(card), AgentCard(), ignore_unknown_fields=True)
    assert made("a2a-1.0", json.dumps(card)) is None
    assert made("a2a-python-1.1.4", json.dumps(card)) is None
    assert made("jcs", json.dumps(card)) is not None


def by_the_sdk(document: object, how: str) -> str | None:
    """Return what the installed SDK signs of a card, read as it is or through its own repairs of older cards."""
    card = cast("dict[str, object]", copy.deepcopy(document))
    try:
        if how == "rewrapped":
            return _canonicalize(parse_agent_card(card))
        return _canonicalize(ParseDict(card, AgentCard(), ignore_unknown_fields=True))
    except (ParseError, ValueError):
        return None


def test_the_sdk_signs_the_same_bytes_of_every_real_card(corpus: Path) -> None:
    counted = 0
    for place in sorted((corpus / "corpus" / "cards").glob("*.json")):
        raw = place.read_bytes()
        parsed = parse(raw)
        if not isinstance(parsed.value, dict) or "duplicate-keys" in parsed.flags:
            continue
        document = json.loads(raw.removeprefix(b"\xef\xbb\xbf"))
        for form, how in (("a2a-python-1.1.4", "plain"), ("a2a-python-1.1.4-rewrapped", "rewrapped")):
            payload = BYTES_OF[form](parsed.value)
            assert (None if payload is None else payload.decode()) == by_the_sdk(document, how), (place.name, form)
            counted += payload is not None
    assert counted > 100


HYBRIDS: dict[str, JsonObject] = {
    "0.3 alone": {
        "name": "n",
        "url": "https://a.example",
        "protocolVersion": "0.3.0",
        "preferredTransport": "GRPC",
        "additionalInterfaces": [{"url": "https://b.example", "transport": "JSONRPC"}],
        "supportsAuthenticatedExtendedCard": True,
        "security": [{"k": ["r"]}],
        "securitySchemes": {"k": {"type": "apiKey", "in": "header", "name": "X"}},
        "skills": [{"id": "s", "security": [{"k": []}]}],
    },
    "both halves": {
        **CARD,
        "url": "https://old.example",
        "security": [{"oauth": []}],
        "securitySchemes": {
            "oauth": {"type": "http", "scheme": "bearer", "httpAuthSecurityScheme": {"scheme": "basic"}},
            "odd": {"type": "odd", "mtlsSecurityScheme": {"description": "m"}},
        },
    },
    "wrong types": {
        "name": "n",
        "provider": "Acme",
        "skills": [{"securityRequirements": [{"schemes": {"oauth": ["read"]}}]}],
        "capabilities": ["streaming of sorts"],
    },
    "no skills": {"name": "n", "url": "", "skills": [], "securitySchemes": {}},
}


@pytest.mark.parametrize("name", HYBRIDS)
def test_older_members_are_put_where_the_sdk_puts_them(name: str) -> None:
    card = HYBRIDS[name]
    for form, how in (("a2a-python-1.1.4", "plain"), ("a2a-python-1.1.4-rewrapped", "rewrapped")):
        expected = by_the_sdk(card, how)
        assert expected is not None
        assert made(form, json.dumps(card)) == expected


def test_the_vectors_of_rfc_8785(corpus: Path) -> None:
    folder = corpus / "vectors" / "jcs"
    names = sorted(place.name for place in (folder / "input").glob("*.json"))
    assert len(names) >= 5
    for name in names:
        source = (folder / "input" / name).read_text()
        expected = (folder / "output" / name).read_text()
        # Inside a card, where RFC 8785 asks for the same bytes.
        assert made("jcs-rounded", f'{{"params": {source}, "signatures": []}}') == f'{{"params":{expected}}}'


def test_the_format_page_has_the_same_forms_in_the_same_order() -> None:
    page = (Path(__file__).parents[2] / "docs" / "format.md").read_text()
    table = page.split("#### Canonical forms")[1].split("### 7.7")[0]
    first_cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert [name for cell in first_cells for name in re.findall("`([^`]+)`", cell)] == [form.name for form in FORMS]
