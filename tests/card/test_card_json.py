"""JSON of a card: the fast way to canonical bytes is the standard's, the reader's limits are exact."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
import rfc8785
from hypothesis import example, given, settings
from hypothesis import strategies as st

from a2a_ledger.contract.card_json import MAX_DEPTH, UnrepresentableError, canonical, parse

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = st.text(max_size=4) | st.sampled_from(
    ["\uff01", "😀", "\ud800", "\udead\ud83d", "\x7f", "\u2028", '"\\/\b\f\x00\x1f']
)
NUMBERS = st.one_of(
    st.integers(),
    st.integers(-(2**53) - 2, 2**53 + 2),
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(min_value=1e-8, max_value=1e-3),
    st.floats(min_value=1e14, max_value=1e23),
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=12,
)


def by_the_standard(value: object) -> bytes | None:
    """Return what the standard's implementation writes; None where it refuses."""
    try:
        return rfc8785.dumps(value)  # type: ignore[arg-type]  # any JSON value; it refuses the rest
    except (rfc8785.CanonicalizationError, UnicodeError):
        return None


@given(VALUES, st.booleans())
@settings(max_examples=400, deadline=None)
@example({"\uff01": 1, "😀": 2}, True)  # noqa: FBT003 - an option of json.dumps
@example([1e-4, 0.00012, 1e16, 1.5e16, 123456789012345.6, -0.0, 1.0, 1e-7], True)  # noqa: FBT003 - same
def test_the_fast_way_writes_what_the_standard_writes(value: object, ascii_only: bool) -> None:
    raw = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    parsed = parse(raw)
    if not parsed.ok:
        assert "not-utf-8" in parsed.flags
        return
    expected = by_the_standard(parsed.value)

    for simple in {False, parsed.simple_numbers}:
        if expected is None:
            with pytest.raises(UnrepresentableError):
                canonical(parsed.value, simple_numbers=simple)
        else:
            assert canonical(parsed.value, simple_numbers=simple) == expected


NUMBER_TOKENS = [
    ("1", True), ("-7", True), ("0", True), ("-0", True), ("0.5", True), ("0.0001", True), ("1234567.89", True),
    ("9007199254740991", True), ("1e-1", True), ("1.0", False), ("-0.0", False), ("1e5", False),
    ("9007199254740992", False), ("9007199254740992.0", False), ("1e-7", False), ("0.00001", False),
    ("1e20", False), ("1e400", False), ("1e-400", False), ("3.141592653589793238462643", False),
]  # fmt: skip


@pytest.mark.parametrize(("token", "simple"), NUMBER_TOKENS)
def test_numbers_that_python_writes_otherwise_take_the_slow_way(token: str, simple: bool) -> None:
    assert parse(f'{{"a":["text",{token}]}}'.encode()).simple_numbers is simple


@pytest.mark.parametrize("name", ["arrays", "french", "structures", "unicode", "values", "weird"])
def test_published_vectors_go_the_way_of_a_card(corpus: Path, name: str) -> None:
    place = corpus / "vectors" / "jcs"
    parsed = parse((place / "input" / f"{name}.json").read_bytes())

    assert parsed.ok
    if name != "values":  # it holds numbers that only a lossy reader takes
        data = canonical(parsed.value, simple_numbers=parsed.simple_numbers)
        assert data == (place / "output" / f"{name}.json").read_bytes()


def depth_of(text: str) -> int:
    """Count open brackets outside texts, character by character."""
    depth = deepest = 0
    for mark in re.sub(r'"(?:[^"\\]|\\.)*"', "", text, flags=re.DOTALL):
        depth += (mark in "[{") - (mark in "]}")
        deepest = max(deepest, depth)
    return deepest


TRICKY = st.sampled_from(['"[[["', '"]]]"', '"\\\\"', '"\\""', '"\\\\\\"[{"', '"\\u005b["', "7", "true", '"{\\\\}"'])


@given(st.integers(MAX_DEPTH - 2, MAX_DEPTH + 2), st.lists(TRICKY, min_size=1, max_size=4), st.booleans())
@settings(max_examples=60, deadline=None)
def test_depth_is_counted_outside_texts_alone(depth: int, texts: list[str], objects: bool) -> None:
    inner = ",".join(texts)
    opening, closing = ('{"k":', "}") if objects else ("[", "]")
    text = f"[{inner},{opening * (depth - 1)}1{closing * (depth - 1)}]"

    assert depth_of(text) == depth
    parsed = parse(text.encode())
    assert parsed.ok == (depth <= MAX_DEPTH)
    assert ("too-deep" in parsed.flags) == (depth > MAX_DEPTH)


@given(st.text(alphabet='[]{}"\\:,1', max_size=300))
@settings(max_examples=100, deadline=None)
def test_no_text_overflows_the_stack(text: str) -> None:
    parse(text.encode())
    parse(b"[" * 70 + text.encode())


def test_keys_are_mixed_up_with_their_twins_in_one_object_alone() -> None:
    known = ["protocolVersion", "url", "securitySchemes", "id", "pushNotifications"]
    assert parse(json.dumps(dict.fromkeys(known, 1)).encode()).flags == frozenset()
    for key in known:
        for twin in (key.upper(), "_".join(key)):
            document = dict.fromkeys([*known, twin], 1)
            assert parse(json.dumps({"x": [document]}).encode()).flags == {"ambiguous-keys"}, twin
            assert parse(json.dumps([{key: 1}, {twin: {key: 1}}]).encode()).flags == frozenset(), twin
