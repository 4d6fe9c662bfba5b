"""Two values of JSON are one or not, whatever Python makes of them."""

from __future__ import annotations

import json

import pytest

from a2a_ledger.divergence.reading import same_json


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("1", "true", False),
        ("0", "false", False),
        ("1", "1.0", False),
        ('{"a":[{"b":1}]}', '{"a":[{"b":true}]}', False),
        ("[]", "{}", False),
        ('{"a":1,"b":2}', ' {"b":2, "a":1}', True),
        ('"\\u00e9"', '"é"', True),
        ("1e2", "100.0", True),
    ],
)
def test_same_json(one: str, other: str, same: bool) -> None:
    assert same_json(json.loads(one), json.loads(other)) == same
