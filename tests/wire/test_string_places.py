"""Where the strings stand that a profile's patterns name, told by hand and against a JSON parser."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_ledger.wire.string_places import MOST_PLACES, string_places

if TYPE_CHECKING:
    from a2a_ledger.events import Json


@pytest.mark.parametrize(
    ("text", "patterns", "found"),
    [
        (b'{"a":"one","b":"two"}', ["/a"], [b"one"]),
        (b'{"a":{"b":"one","c":["two",{"d":"three"}]},"e":"four"}', ["/a"], [b"one", b"two", b"three"]),
        (b'{"p":[{"t":"one"},{"t":"two"}],"t":"no"}', ["/p/*/t"], [b"one", b"two"]),
        (b'{"p":[{"t":"one"},{"t":"two"}]}', ["/p/1"], [b"two"]),
        (b'{"a":"","b":12,"c":null,"d":"x"}', ["/*"], [b"x"]),
        (b'{"a" : "q \\" , {" , "b":"no"}', ["/a"], [b'q \\" , {']),
        (b'{"\\u0061":"one"}', ["/a"], [b"one"]),
        (b'{"a/b":"one","c~d":"two"}', ["/a~1b", "/c~0d"], [b"one", b"two"]),
        (b'event: x\ndata: {"a":\ndata: "one"}\n\n', ["/a"], [b"one"]),
        (b'{"a":"one","a":"two"}', ["/a"], [b"one", b"two"]),
        (b'"lone"', ["/a"], []),
        (b'{"a":"one', ["/a"], []),
        (b'{"a":"one"}', [], []),
    ],
)
def test_by_hand(text: bytes, patterns: list[str], found: list[bytes]) -> None:
    assert [text[start:end] for start, end in string_places(text, patterns)] == found


def test_what_is_more_than_can_be_told_apart_is_one_place_to_the_end() -> None:
    text = json.dumps({"a": ["x"] * (MOST_PLACES + 50)}).encode()
    places = string_places(text, ["/a"])
    assert len(places) == MOST_PLACES
    assert text[places[-1][1] :] == b'"]}'


def test_what_lies_deeper_than_anything_is_still_left_out() -> None:
    text = b'{"a":' + b"[" * 5000 + b'"deep"' + b"]" * 5000 + b',"b":"no"}'
    assert [text[start:end] for start, end in string_places(text, ["/a"])] == [b"deep"]


_NAMES = st.sampled_from(["a", "b", "é", 'q"t'])
_VALUES = st.recursive(
    st.none() | st.integers() | st.text('ab"\\é{}[],:\n', max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3),
    max_leaves=12,
)


def _strings(value: Json) -> list[str]:
    if isinstance(value, str):
        return [value] if value else []
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in items for text in _strings(item)]


@settings(deadline=None)
@given(st.dictionaries(_NAMES, _VALUES, max_size=4), st.booleans())
def test_the_strings_below_a_member_are_those_that_a_parser_finds(value: dict[str, Json], escaped: bool) -> None:
    text = json.dumps(value, ensure_ascii=escaped).encode()
    found = [json.loads(b'"' + text[start:end] + b'"') for start, end in string_places(text, ["/a"])]
    assert found == _strings(value.get("a"))


@given(st.binary(max_size=60))
def test_no_octets_raise(text: bytes) -> None:
    for start, end in string_places(text, ["/*", "/a/*"]):
        assert 0 <= start < end <= len(text)
