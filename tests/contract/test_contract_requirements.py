"""Requirement lists by themselves: what meets one, what is in force."""

from __future__ import annotations

import pytest

from a2a_ledger.contract import combine, in_force, satisfies

OAUTH = {"oauth": ["read"]}
BOTH = {"oauth": ["read"], "mtls": list[str]()}
MTLS = {"mtls": list[str]()}
OPEN: dict[str, list[str]] = {}


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
