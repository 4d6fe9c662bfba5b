"""The algebra of requirement sets: an OR of ANDs of schemes with scopes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_ledger.contract import combine, compare_requirements, in_force, satisfies

OAUTH = {"oauth": ["read"]}
WIDER = {"oauth": ["read", "write"]}
BOTH = {"oauth": ["read"], "mtls": list[str]()}
MTLS = {"mtls": list[str]()}
OPEN: dict[str, list[str]] = {}


MOVES: list[tuple[list[object], list[object], str]] = [
    ([], [], "same"),
    ([], [OPEN], "same"),
    ([OAUTH], [OAUTH], "same"),
    ([OAUTH, MTLS], [MTLS, OAUTH], "same"),
    ([], [OAUTH], "stricter"),
    ([OAUTH], [], "weaker"),
    ([OPEN, OAUTH], [OAUTH], "stricter"),
    ([OAUTH], [OPEN, OAUTH], "weaker"),
    ([OAUTH], [OAUTH, MTLS], "weaker"),
    ([OAUTH, MTLS], [OAUTH], "stricter"),
    ([OAUTH], [WIDER], "stricter"),
    ([WIDER], [OAUTH], "weaker"),
    ([OAUTH], [BOTH], "stricter"),
    ([BOTH], [OAUTH], "weaker"),
    ([OAUTH], [MTLS], "incomparable"),
    ([WIDER], [BOTH], "incomparable"),
    ([OAUTH, MTLS], [WIDER, {"key": []}], "incomparable"),
    ([OAUTH], [OAUTH, WIDER], "same"),  # who meets the wider one met the other before
    ([BOTH], [OAUTH, MTLS], "weaker"),
    (["odd"], ["odd"], "same"),
    (["odd"], [OAUTH], "incomparable"),
    ([], ["odd"], "incomparable"),
]


@pytest.mark.parametrize(
    ("old", "new", "moved"),
    MOVES,
)
def test_which_way_a_requirement_moved(old: list[object], new: list[object], moved: str) -> None:
    assert compare_requirements(old, new) == moved


ALTERNATIVES = st.dictionaries(
    st.sampled_from(["a", "b"]), st.lists(st.sampled_from(["x", "y"]), unique=True).map(sorted), max_size=2
)
LISTS = st.lists(ALTERNATIVES, max_size=3)
MIRROR = {"same": "same", "stricter": "weaker", "weaker": "stricter", "incomparable": "incomparable"}
# Everything that a caller could hold of two schemes with two scopes each; None: not this scheme.
HELD = [
    {name: scopes for name, scopes in {"a": a, "b": b}.items() if scopes is not None}
    for a in (None, set[str](), {"x"}, {"y"}, {"x", "y"})
    for b in (None, set[str](), {"x"}, {"y"}, {"x", "y"})
]


def meets(held: dict[str, set[str]], requirement: list[dict[str, list[str]]]) -> bool:
    """Say by enumeration whether what a caller holds meets a requirement list."""
    return any(
        all(name in held and set(scopes) <= held[name] for name, scopes in alternative.items())
        for alternative in requirement or [{}]
    )


@given(LISTS, LISTS)
def test_the_direction_is_what_enumeration_of_all_callers_says(
    old: list[dict[str, list[str]]], new: list[dict[str, list[str]]]
) -> None:
    gained = any(meets(held, new) and not meets(held, old) for held in HELD)
    lost = any(meets(held, old) and not meets(held, new) for held in HELD)
    expected = {
        (False, False): "same",
        (True, False): "weaker",
        (False, True): "stricter",
        (True, True): "incomparable",
    }

    assert compare_requirements(old, new) == expected[gained, lost]
    assert compare_requirements(new, old) == MIRROR[expected[gained, lost]]


@pytest.mark.parametrize(
    ("requirement", "offered", "met"),
    [
        ([], [], True),
        ([OPEN], [], True),
        ([OAUTH], [], False),
        ([OAUTH], ["oauth"], True),
        ([BOTH], ["oauth"], False),
        ([BOTH], ["oauth", "mtls"], True),
        ([BOTH, MTLS], ["mtls"], True),
        ([OAUTH, OPEN], [], True),
        (["odd"], ["odd"], False),
        ([{"oauth": "read"}], ["oauth"], False),
    ],
)
def test_whether_offered_schemes_meet_a_requirement(
    requirement: list[object], offered: list[str], met: bool
) -> None:  # the expected value of a table
    assert satisfies(requirement, offered) is met


def test_several_lists_move_together() -> None:
    assert combine([]) == "same"
    assert combine(["same", "weaker", "same"]) == "weaker"
    assert combine(["stricter", "stricter"]) == "stricter"
    assert combine(["stricter", "weaker"]) == "incomparable"


def test_a_0_1_card_that_asks_for_none_or_public_asks_for_nothing() -> None:
    contract: dict[str, object] = {
        "schemes": {"Public": {"kind": "legacy", "name": "Public"}, "none": {"kind": "apiKey"}},
        "security": [{"Public": []}, {"none": []}],
        "skills": {},
    }
    assert in_force(contract, None, None)["security"] == [{}, {"none": []}]
