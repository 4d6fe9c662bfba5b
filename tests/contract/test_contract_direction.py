"""Which way authorization moved, held against a model that enumerates everything a caller could hold.

A caller holds, of each scheme, nothing or one credential: a definition that it was made for, the way it was
obtained, and scopes. `meets` asks for each alternative in turn whether what is held is enough. No rule about
directions is in the model: a move is weaker when some caller gained entry and none lost it, and so on.
"""

from __future__ import annotations

import itertools
import json
from typing import NamedTuple, TypeAlias, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_ledger.card import read_card
from a2a_ledger.contract import compare_definitions, compare_requirements, diff

Requirement: TypeAlias = "list[dict[str, list[str]]]"
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Object: TypeAlias = "dict[str, Json]"

MIRROR = {"same": "same", "stricter": "weaker", "weaker": "stricter", "incomparable": "incomparable"}


class Credential(NamedTuple):
    """One thing that a caller holds: the endpoint that gave it, the flow, whether PKCE was used, its scopes."""

    endpoint: str
    flow: str
    pkce: bool
    scopes: frozenset[str]


def oauth(endpoint: str, flows: dict[str, bool]) -> dict[str, object]:
    """Return a definition in normal form: flows by name, with whether PKCE is required."""
    members: dict[str, object] = {
        "authorizationUrl": "",
        "deviceAuthorizationUrl": "",
        "refreshUrl": "",
        "scopes": [],
        "tokenUrl": "",
    }
    return {
        "kind": "oauth2",
        "flows": {name: {**members, "tokenUrl": endpoint, "pkceRequired": pkce} for name, pkce in flows.items()},
        "metadataUrl": "",
    }


def good_for(held: Credential, definition: dict[str, object], scopes: list[str]) -> bool:
    """Say whether one credential is what a definition and a list of scopes ask for."""
    flows = cast("dict[str, dict[str, object]]", definition["flows"])
    flow = flows.get(held.flow)
    return (
        flow is not None
        and flow["tokenUrl"] == held.endpoint
        and (held.pkce or flow["pkceRequired"] is False)
        and set(scopes) <= held.scopes
    )


def meets(held: dict[str, Credential], requirement: Requirement, schemes: dict[str, dict[str, object]]) -> bool:
    """Say whether what a caller holds meets a requirement list."""
    return any(met_alternative(held, alternative, schemes) for alternative in requirement or [{}])


def met_alternative(
    held: dict[str, Credential], alternative: dict[str, list[str]], schemes: dict[str, dict[str, object]]
) -> bool:
    return all(name in held and good_for(held[name], schemes[name], scopes) for name, scopes in alternative.items())


def callers(endpoints: list[str], flows: list[str], scopes: list[str]) -> list[dict[str, Credential]]:
    """Return everything that a caller could hold of the schemes a and b."""
    subsets = [frozenset(some) for n in range(len(scopes) + 1) for some in itertools.combinations(scopes, n)]
    each = [
        None,
        *(Credential(e, f, p, s) for e in endpoints for f in flows for p in (False, True) for s in subsets),
    ]
    return [
        {name: one for name, one in (("a", a), ("b", b)) if one is not None} for a, b in itertools.product(each, each)
    ]


def expected(gained: bool, lost: bool) -> str:
    if gained and lost:
        return "incomparable"
    if gained:
        return "weaker"
    return "stricter" if lost else "same"


PLAIN = {"a": oauth("t", {"clientCredentials": False}), "b": oauth("u", {"clientCredentials": False})}
ALTERNATIVES: Requirement = [
    {name: scopes for name, scopes in (("a", a), ("b", b)) if scopes is not None}
    for a in (None, [], ["x"])
    for b in (None, [], ["x"])
]
LISTS: list[Requirement] = [list(some) for n in range(3) for some in itertools.combinations(ALTERNATIVES, n)]


def test_every_pair_of_small_requirement_lists_moves_as_enumeration_of_all_callers_says() -> None:
    each: list[Credential | None] = [None]
    each += [Credential("t", "clientCredentials", pkce=False, scopes=frozenset(s)) for s in ([], ["x"])]
    held = [
        {name: one for name, one in (("a", a), ("b", b and b._replace(endpoint="u"))) if one is not None}
        for a in each
        for b in each
    ]
    admitted = [frozenset(n for n, one in enumerate(held) if meets(one, wanted, PLAIN)) for wanted in LISTS]

    assert len(LISTS) == 46
    for (old, before), (new, after) in itertools.product(zip(LISTS, admitted, strict=True), repeat=2):
        told = compare_requirements(old, new, PLAIN, PLAIN)
        assert told == expected(bool(after - before), bool(before - after)), (old, new)


UNREADABLE: list[object] = ["odd", {"undefined": []}, {"a": [], "strange": []}, {"a": "x"}]
"""Alternatives of which nobody can say what they ask for, but that each asks for something of its own."""


def test_what_nobody_can_read_asks_for_something_and_only_what_asks_for_nothing_is_weaker() -> None:
    """Each unreadable alternative is met by a thing of its own, held or not held beside everything else."""
    strange: dict[str, dict[str, object]] = {**PLAIN, "strange": STRANGE}
    callers = [
        ({} if scopes is None else {"a": Credential("t", "clientCredentials", pkce=False, scopes=scopes)}, things)
        for scopes in (None, frozenset[str](), frozenset({"x"}))
        for things in itertools.product((False, True), repeat=len(UNREADABLE))
    ]

    def met(held: dict[str, Credential], things: tuple[bool, ...], wanted: list[object]) -> bool:
        return any(
            things[UNREADABLE.index(one)]
            if one in UNREADABLE
            else met_alternative(held, cast("dict[str, list[str]]", one), PLAIN)
            for one in wanted or [{}]
        )

    alternatives: list[object] = [{}, {"a": []}, {"a": ["x"]}, *UNREADABLE]
    lists = [list(some) for n in range(3) for some in itertools.combinations(alternatives, n)]
    admitted = [frozenset(n for n, one in enumerate(callers) if met(*one, wanted)) for wanted in lists]
    assert len(lists) == 29
    for (old, before), (new, after) in itertools.product(zip(lists, admitted, strict=True), repeat=2):
        told = compare_requirements(old, new, strange, strange)
        assert told == expected(bool(after - before), bool(before - after)), (old, new)


@pytest.mark.parametrize("opened", [[], [{}], [{"key": []}, {}]])
def test_a_long_list_that_opens_is_weaker_all_the_same(opened: list[object]) -> None:
    long: list[object] = [{"key": [str(n)]} for n in range(65)]
    table = {"key": KEY}
    assert compare_requirements(long, opened, table, table) == "weaker"
    assert compare_requirements(opened, long, table, table) == "stricter"
    assert compare_requirements(long, [*long, {}], table, table) == "weaker"
    assert compare_requirements(long, long[:64], table, table) == "incomparable"


DEFINITIONS = st.builds(
    oauth,
    st.sampled_from(["t", "t", "u"]),
    st.dictionaries(st.sampled_from(["authorizationCode", "clientCredentials"]), st.booleans(), min_size=1, max_size=2),
)
TABLES = st.fixed_dictionaries({"a": DEFINITIONS, "b": DEFINITIONS})
SMALL_LISTS = st.lists(
    st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from([[], ["x"]]), max_size=2), max_size=3
)
CALLERS = callers(["t", "u"], ["authorizationCode", "clientCredentials"], ["x"])


@given(SMALL_LISTS, SMALL_LISTS, TABLES, TABLES)
@settings(max_examples=150, deadline=None)
def test_with_definitions_that_change_too_it_is_what_enumeration_says(
    old: Requirement, new: Requirement, before: dict[str, dict[str, object]], after: dict[str, dict[str, object]]
) -> None:
    gained = lost = False
    for held in CALLERS:
        met, meets_now = meets(held, old, before), meets(held, new, after)
        gained |= meets_now and not met
        lost |= met and not meets_now

    assert compare_requirements(old, new, before, after) == expected(gained, lost)
    assert compare_requirements(new, old, after, before) == MIRROR[expected(gained, lost)]


KEY: dict[str, object] = {"kind": "apiKey", "in": "header", "name": "X-Key"}
STRANGE: dict[str, object] = {"kind": "unknown", "raw": {"type": "x402"}}


OPAQUE: list[tuple[list[object], list[object], str]] = [
    (["odd"], ["odd"], "same"),
    (["odd"], [], "weaker"),
    (["odd"], ["other"], "incomparable"),
    (["odd"], ["odd", {"key": []}], "weaker"),  # whatever it asks for, there is one more way
    (["odd", {"key": []}], ["odd"], "stricter"),
    (["odd", {}], [{}], "same"),  # anybody may call, before and after
    ([{"key": "scope"}], [{"key": []}], "incomparable"),
    ([{"strange": []}], [{"strange": []}], "same"),
    ([{"strange": []}], [{"strange": [], "key": []}], "incomparable"),
    ([], [{"strange": []}], "stricter"),
    ([{"undefined": []}], [{"undefined": []}], "same"),
    ([{"undefined": []}], [{}], "weaker"),
    ([{"undefined": []}], [{"undefined": ["x"]}], "incomparable"),
    ([{"undefined": []}], [{"undefined": []}, {"key": []}], "weaker"),
]


@pytest.mark.parametrize(("old", "new", "moved"), OPAQUE)
def test_what_nobody_understands_compares_with_itself_and_with_what_is_open(
    old: list[object], new: list[object], moved: str
) -> None:
    schemes = {"key": KEY, "strange": STRANGE}
    assert compare_requirements(old, new, schemes, schemes) == moved
    assert compare_requirements(new, old, schemes, schemes) == MIRROR[moved]


def test_a_name_that_one_card_alone_defines_is_another_credential() -> None:
    assert compare_requirements([{"key": []}], [{"key": []}], {"key": KEY}, {}) == "incomparable"
    assert compare_requirements([{"key": []}], [{"key": []}], {"key": KEY}, {"key": STRANGE}) == "incomparable"


CODE = "authorizationCode"


REDEFINED: list[tuple[dict[str, object], dict[str, object], str]] = [
    (oauth("t", {CODE: False}), oauth("t", {CODE: True}), "stricter"),
    (oauth("t", {CODE: False}), oauth("t", {CODE: False, "deviceCode": False}), "weaker"),
    (oauth("t", {CODE: False}), oauth("t", {CODE: True, "deviceCode": False}), "incomparable"),
    (oauth("t", {}), oauth("t", {CODE: False}), "incomparable"),
    (oauth("t", {CODE: False}), oauth("u", {CODE: False}), "incomparable"),
    (oauth("t", {CODE: False}), {**oauth("t", {CODE: True}), "metadataUrl": "m"}, "incomparable"),
    (KEY, {**KEY, "in": "query"}, "incomparable"),
    (KEY, {"kind": "http", "scheme": "bearer"}, "incomparable"),
    (STRANGE, STRANGE, "same"),
]


@pytest.mark.parametrize(("old", "new", "moved"), REDEFINED)
def test_which_way_a_definition_moved_under_its_name(
    old: dict[str, object], new: dict[str, object], moved: str
) -> None:
    assert compare_definitions(old, new) == moved
    assert compare_definitions(new, old) == MIRROR[moved]


OAUTH: Object = {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "https://t.example", "scopes": {}}}}
ELSEWHERE: Object = {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "https://u.example", "scopes": {}}}}
MTLS: Object = {"type": "mutualTLS"}
HALF: Object = {
    "supportedInterfaces": [{"url": "https://h.example", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]
}


def moved(old: Object, new: Object) -> tuple[str | None, dict[str, str]]:
    """Return where authorization moved between two cards that have these members besides the usual ones."""
    common: Object = {"name": "n", "url": "https://h.example", "protocolVersion": "0.3.0"}
    before, after = (read_card(json.dumps({**common, **card}).encode()) for card in (old, new))
    found = diff(before, after)
    return found.authorization, dict(found.skills)


def schemes(**table: Json) -> Object:
    return {"securitySchemes": table}


CARDS: list[tuple[Object, Object, str]] = [
    # the scheme goes together with the requirement: the requirement says all
    ({**schemes(oauth=OAUTH), "security": [{"oauth": []}]}, {}, "weaker"),
    ({**schemes(oauth=OAUTH), "security": [{"oauth": []}]}, schemes(oauth=OAUTH), "weaker"),
    # schemes that no requirement names
    (schemes(oauth=OAUTH), {}, "same"),
    (schemes(), schemes(oauth=OAUTH, mtls=MTLS), "same"),
    (schemes(oauth=OAUTH), schemes(oauth=ELSEWHERE), "incomparable"),
    (schemes(oauth=OAUTH), schemes(mtls=MTLS), "incomparable"),  # the stuck case of a card that is silent
    # 0.1 schemes that ask for nothing
    ({"authentication": {"schemes": ["none"]}}, {}, "same"),
    ({"authentication": {"schemes": ["public"]}}, {"authentication": {"schemes": ["none"]}}, "same"),
    ({"authentication": {"schemes": ["public"]}}, {**schemes(m=MTLS), "security": [{"m": []}]}, "stricter"),
    ({"authentication": {"schemes": ["Bearer"]}}, {}, "weaker"),
    # from and to what asks for nothing, whatever nobody can read on the other side
    ({"authentication": {"schemes": [7]}}, {}, "weaker"),
    ({"authentication": {"schemes": ["none"]}}, {"security": [{"ghost": []}]}, "stricter"),
    ({**schemes(x={"type": "x402"}), "security": [{"x": []}]}, schemes(x={"type": "x402"}), "weaker"),
    ({"security": "odd"}, {"security": [{}]}, "weaker"),
    # each half of a hybrid governs the clients of its generation
    (
        {**HALF, **schemes(m=MTLS), "securityRequirements": [{"schemes": {"m": {}}}], "security": [{"m": []}]},
        {**HALF, **schemes(m=MTLS), "securityRequirements": [{"schemes": {"m": {}}}], "security": []},
        "weaker",
    ),
    (
        {**HALF, **schemes(m=MTLS), "securityRequirements": [{"schemes": {"m": {}}}], "security": []},
        {**HALF, **schemes(m=MTLS), "securityRequirements": [], "security": [{"m": []}]},
        "incomparable",
    ),
]


@pytest.mark.parametrize(("old", "new", "way"), CARDS)
def test_the_direction_between_two_cards(old: Object, new: Object, way: str) -> None:
    assert moved(old, new)[0] == way
    assert moved(new, old)[0] == MIRROR[way]


def skill(name: str, *alternatives: Json) -> Json:
    return {"id": name, "name": name, **({"security": list(alternatives)} if alternatives else {})}


def test_skills_move_by_what_governs_them() -> None:
    base = schemes(oauth=OAUTH, mtls=MTLS)
    old: Object = {
        **base,
        "security": [{"oauth": []}],
        "skills": [skill("own", {"mtls": []}), skill("inherits"), skill("freed", {"oauth": []}), skill("goes")],
    }
    new: Object = {
        **base,
        "security": [{"oauth": [], "mtls": []}],
        "skills": [skill("own", {"mtls": []}), skill("inherits"), skill("freed", {}), skill("comes", {"mtls": []})],
    }
    assert moved(old, new) == ("incomparable", {"inherits": "stricter", "freed": "weaker"})


@pytest.mark.parametrize("own", [{"ghost": []}, "odd", {"strange": []}, {"oauth": "work"}])
def test_a_skill_that_becomes_open_is_weaker_whatever_it_asked_for(own: Json) -> None:
    base = schemes(oauth=OAUTH, strange={"type": "x402"})

    def card(one: Json) -> Object:
        return {**base, "skills": [skill("s", one), skill("kept", own)]}

    old, new = card(own), card({})
    assert moved(old, new) == ("weaker", {"s": "weaker"})
    assert moved(new, old) == ("stricter", {"s": "stricter"})


def test_a_requirement_that_moves_from_the_card_to_each_skill_frees_the_rest_alone() -> None:
    base = schemes(oauth=OAUTH)
    old: Object = {**base, "security": [{"oauth": []}], "skills": [skill("a"), skill("b")]}
    new: Object = {**base, "skills": [skill("a", {"oauth": []}), skill("b", {"oauth": []})]}
    assert moved(old, new) == ("weaker", {})


def test_skills_of_both_halves_are_compared() -> None:
    both: Object = {**HALF, **schemes(m=MTLS)}
    strict: Json = {"id": "s", "securityRequirements": [{"schemes": {"m": {}}}], "security": [{"m": []}]}
    lax: Json = {"id": "s", "securityRequirements": [{"schemes": {"m": {}}}], "security": []}
    assert moved({**both, "skills": [strict]}, {**both, "skills": [lax]}) == ("weaker", {"s": "weaker"})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("1e21", "1e+21"),
        ("1E21", "1e+21"),
        ("0.000001", "0.000001"),
        ("7.0", "7"),
        ('{"b": 1e-7, "a": [1.50]}', '{"a":[1.5],"b":1e-7}'),
    ],
)
def test_a_skill_id_that_is_no_text_is_its_rfc_8785_text(name: str, text: str) -> None:
    """The spellings of numbers are those of RFC 8785 section 3.2.2.3."""

    def card(security: str) -> bytes:
        skill = f'{{"id":{name},"security":{security}}}'
        return f'{{"name":"n","url":"https://h.example","protocolVersion":"0.3","skills":[{skill}]}}'.encode()

    found = diff(read_card(card('[{"m":[]}]')), read_card(card("[{}]")))
    assert dict(found.skills) == {text: "weaker"}
    assert [(one.pointer, one.kind) for one in found.changes] == [("/skills/0/security", "contract")]


def test_a_skill_id_of_any_type_is_a_name() -> None:
    strict: Json = {"id": 7, "security": [{"m": []}]}
    assert moved({**schemes(m=MTLS), "skills": [strict]}, {**schemes(m=MTLS), "skills": {"id": 7}}) == (
        "weaker",
        {"7": "weaker"},
    )
