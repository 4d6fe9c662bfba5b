"""Over generated cards of every dialect: what means the same has the same hash, what means another thing has not."""

from __future__ import annotations

import copy
import json
import random
import re
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from a2a_ledger.card import read_card
from a2a_ledger.contract import require_contract
from tests.contract.generated_cards import (
    DIALECTS,
    Json,
    Object,
    as_0_3,
    as_0_3_proto,
    as_1_0,
    as_hybrid,
    at,
    places,
    put,
    terms,
)

if TYPE_CHECKING:
    from collections.abc import Callable

FEW = settings(max_examples=40, deadline=None)
# Members whose lists are sets; the order of interfaces is a term.
SETS = {"skills", "security", "securityRequirements", "extensions", "schemes", "list"}


def hash_of(card: Json, **spelled: object) -> str:
    text = json.dumps(card, **spelled)  # type: ignore[arg-type]  # options of json.dumps
    return require_contract(read_card(text.encode())).hash


def turned(value: Json, rng: random.Random, *, within: str = "") -> Json:
    """Return the same card with objects and sets in another order, some items of sets twice."""
    if isinstance(value, dict):
        items = [*value.items()]
        rng.shuffle(items)
        return {name: turned(item, rng, within=name) for name, item in items}
    if not isinstance(value, list):
        return value
    found = [turned(item, rng) for item in value]
    if within in SETS:
        rng.shuffle(found)
        if within != "skills":  # two skills of one id are flagged
            found += found[: rng.randint(0, 1)]
    return found


def snake(value: Json) -> Json:
    """Return the card with its members in snake_case; what stands under a scheme table or scopes are names."""
    if isinstance(value, list):
        return [snake(item) for item in value]
    if not isinstance(value, dict):
        return value
    named = {"securitySchemes", "schemes", "scopes", "security", "params"}
    found: Object = {}
    for name, item in value.items():
        spelled = re.sub("(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()
        if name in named and isinstance(item, dict):
            found[spelled] = {key: snake(inner) for key, inner in item.items()} if name == "securitySchemes" else item
        else:
            found[spelled] = item if name in {"security", "securityRequirements"} else snake(item)
    return found


def decorated(value: Json, words: str) -> Json:
    """Return the card with prose wherever an A2A object may have some, and a member of a vendor at the top."""
    if isinstance(value, list):
        return [decorated(item, words) for item in value]
    if not isinstance(value, dict):
        return value
    found: Object = {}
    for name, item in value.items():
        closed = {"security", "securityRequirements", "params", "scopes", "authentication"}
        found[name] = item if name in closed else decorated(item, words)
        if name in {"id", "uri", "type", "scheme", "url"}:
            found["description"] = words
    return found


@given(said=terms(), dialect=st.sampled_from(DIALECTS), seed=st.integers(0, 2**32), ascii_only=st.booleans())
@FEW
def test_order_repeats_white_space_and_escapes_mean_nothing(
    said: Object, dialect: Callable[[Object], Object], seed: int, *, ascii_only: bool
) -> None:
    card = dialect(said)
    other = turned(card, random.Random(seed))  # noqa: S311 - an order, not a secret

    assert hash_of(other, indent=seed % 3, ensure_ascii=ascii_only) == hash_of(card)
    crlf = b"\xef\xbb\xbf" + json.dumps(other, indent=1).replace("\n", "\r\n").encode()
    assert require_contract(read_card(crlf)).hash == hash_of(card)


@given(terms(), st.sampled_from(DIALECTS), st.text(max_size=10))
@FEW
def test_prose_means_nothing(said: Object, dialect: Callable[[Object], Object], words: str) -> None:
    card = dialect(said)
    more: Object = {**cast("Object", decorated(card, words)), "description": words, "x-vendor": [words]}

    assert hash_of(more) == hash_of(card)


@given(terms(), st.sampled_from(DIALECTS))
@FEW
def test_snake_case_means_the_same(said: Object, dialect: Callable[[Object], Object]) -> None:
    assert hash_of(snake(dialect(said))) == hash_of(dialect(said))


@given(st.integers(-(2**53) + 1, 2**53 - 1), st.sampled_from(["{}.0", "{}.00e0", "{}e0", "{}0e-1", "{}E+0"]))
@FEW
def test_a_number_means_its_value(number: int, spelled: str) -> None:
    card = '{"name":"n","url":"https://h.example","capabilities":{"extensions":[{"uri":"u","required":true,"params":[%s]}]}}'
    contracts = [
        require_contract(read_card((card % token).encode())) for token in (str(number), spelled.format(number))
    ]

    assert contracts[0] == contracts[1]


@given(terms())
@FEW
def test_dialects_mean_the_same_but_for_the_version(said: Object) -> None:
    old, proto = require_contract(read_card(json.dumps(as_0_3(said)).encode())), as_0_3_proto(said)
    new, hybrid = as_1_0(said), read_card(json.dumps(as_hybrid(said)).encode())

    assert hash_of(proto) == old.hash
    assert "halves-disagree" not in hybrid.flags
    assert require_contract(hybrid).hash == hash_of(new)
    assert hash_of(as_1_0(said, version="0.3")) == old.hash


@given(terms(), st.sampled_from(DIALECTS), st.data())
@settings(max_examples=80, deadline=None)
def test_another_value_of_a_term_means_another_thing(
    said: Object, dialect: Callable[[Object], Object], data: st.DataObject
) -> None:
    card = dialect(said)
    spots = [path for path in places(card) if is_term(path, card)]
    assume(spots)
    path = data.draw(st.sampled_from(spots))
    changed = copy.deepcopy(card)
    value = at(card, path)
    put(changed, path, (not value) if isinstance(value, bool) else f"other-{value}")

    assert hash_of(changed) != hash_of(card), path


@given(terms(), st.sampled_from([as_0_3, as_0_3_proto, as_1_0]), st.data())
@settings(max_examples=80, deadline=None)
def test_an_alternative_or_a_scheme_more_or_less_means_another_thing(
    said: Object, dialect: Callable[[Object], Object], data: st.DataObject
) -> None:
    card = dialect(said)
    more: Object = copy.deepcopy(said)
    cast("list[Json]", more["requirement"]).append({"entirely": ["new"]})
    cast("list[Json]", more["skills"]).append({"id": "w", "requirement": [{"entirely": ["new"]}]})
    wider = dialect(more)
    member = data.draw(st.sampled_from(["requirement", "skills", "schemes"]))
    if member == "schemes":
        cast("Object", wider["securitySchemes"])["entirely"] = {"type": "mutualTLS"}
    spelled = {"requirement": "securityRequirements" if "securityRequirements" in card else "security"}
    name = {"skills": "skills", "schemes": "securitySchemes", **spelled}[member]

    assert hash_of({**card, name: wider[name]}) != hash_of(card)


def is_term(path: tuple[str | int, ...], card: Object) -> bool:
    """Say whether another text or flag at this place of a generated card is another term."""
    root = path[0]
    if not isinstance(at(card, path), str | bool):
        return False
    if root in {"url", "preferredTransport", "additionalInterfaces", "protocolVersion"}:
        return "supportedInterfaces" not in card
    if root == "capabilities" and path[1] == "extensions":
        return path[-1] == "required" or cast("Object", at(card, path[:3]))["required"] is True
    if root == "skills":
        skill = cast("Object", at(card, path[:2]))
        return bool(skill.get("security") or skill.get("securityRequirements"))
    return root != "name" and "scopes" not in path


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_has_terms_that_are_tried(dialect: Callable[[Object], Object]) -> None:
    said: Object = {
        "schemes": {"a": {"kind": "mutualTLS"}},
        "requirement": [{"a": ["s"]}],
        "skills": [{"id": "s", "requirement": [{"a": []}]}],
        "extensions": [{"uri": "urn:x", "required": True, "params": {"p": "v"}}],
        "extended": True,
        "urls": ["https://h.example/a2a"],
    }
    card = dialect(said)
    tried = {str(path[0]) for path in places(card) if is_term(path, card)}

    expected = {
        "as_0_1": {"url", "authentication", "capabilities"},
        "as_0_3": {"url", "preferredTransport", "additionalInterfaces", "protocolVersion", "securitySchemes",
                   "security", "skills", "capabilities", "supportsAuthenticatedExtendedCard"},
        "as_1_0": {"supportedInterfaces", "securityRequirements", "skills", "capabilities"},
        "as_hybrid": {"supportedInterfaces", "securityRequirements", "security", "skills", "capabilities",
                      "supportsAuthenticatedExtendedCard", "securitySchemes"},
    }  # fmt: skip
    expected["as_0_3_proto"] = expected["as_0_3"] - {"securitySchemes"}  # its one scheme has no text inside
    assert tried == expected[dialect.__name__]
