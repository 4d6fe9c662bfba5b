"""Canonical JSON of the record profile, against an independent RFC 8785 implementation and by refused input."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from a2a_ledger.codec.canonical import MAX_SAFE, canonical, parse_canonical, timestamp
from a2a_ledger.errors import FormatError

if TYPE_CHECKING:
    from a2a_ledger.events import Json

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-MAX_SAFE, MAX_SAFE)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
)
keys = st.text(st.characters(max_codepoint=127), max_size=8)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4), max_leaves=20
)


@given(values)
def test_is_rfc_8785_within_the_profile(value: Json) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@given(values)
def test_reads_back_what_it_wrote(value: Json) -> None:
    assert parse_canonical(canonical(value)) == value


@given(st.binary(max_size=60))
def test_reads_nothing_that_it_would_spell_otherwise(data: bytes) -> None:
    try:
        value = parse_canonical(data)
    except FormatError:
        return
    assert canonical(value) == data


@pytest.mark.parametrize(
    ("value", "spelled"),
    [
        # RFC 8785 section 3.2.2.2: the escapes that have a short form, then lower-case hex, then nothing else
        ('\b\t\n\f\r"\\/\x00\x1f\x7f\u2028é€😀', '"\\b\\t\\n\\f\\r\\"\\\\/\\u0000\\u001f\x7f\u2028é€😀"'),
        ({"b": 1, "a": [True, None, -5], "B": {}}, '{"B":{},"a":[true,null,-5],"b":1}'),
        (MAX_SAFE, "9007199254740991"),
        (-MAX_SAFE, "-9007199254740991"),
    ],
)
def test_spells_as_worked_by_hand(value: Json, spelled: str) -> None:
    assert canonical(value) == spelled.encode()


@pytest.mark.parametrize(
    "value",
    [1.0, 2**53, -(2**53), "\ud800", {"\udfff": 1}, {"é": 1}, {1: 2}, (1,), b"x", {"a": {1, 2}}, [float("nan")]],
)
def test_refuses_values_outside_of_the_profile(value: Json) -> None:
    with pytest.raises(FormatError):
        canonical(value)


def nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


def test_allows_sixteen_levels_and_no_more() -> None:
    assert canonical(parse_canonical(nested(16))) == nested(16)
    for levels in (17, 1000, 30000):
        with pytest.raises(FormatError, match="levels"):
            parse_canonical(nested(levels))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "JSON"),
        (b"1.0", "float"),
        (b"1e3", "float"),
        (b"1E3", "float"),
        (b"-0", "another one from byte 0"),
        (b"01", "Extra data"),
        (b"NaN", "float"),
        (b"Infinity", "float"),
        (b"-Infinity", "float"),
        (b"9007199254740992", "integer"),
        (b"-9007199254740992", "integer"),
        (b"1" * 5000, "JSON"),
        (b'"\\ud800"', "surrogate"),
        (b'"\\udc00\\ud800"', "surrogate"),
        (b'"\xed\xa0\x80"', "UTF-8"),
        (b'"\xff"', "UTF-8"),
        (b'"\xc0\x80"', "UTF-8"),
        (b'{"a":1,"a":1}', "the key 'a' twice"),
        (b'{"a":1,"a":2}', "the key 'a' twice"),
        (b"\xef\xbb\xbf1", "JSON"),
        (b" 1", "JSON"),
        (b"1 ", "another one"),
        (b"1\n", "another one"),
        (b"[1, 2]", "another one"),
        (b'{"a" :1}', "another one"),
        (b'{"b":1,"a":2}', "another one"),
        (b'"\\u0041"', "another one"),
        (b'"\\u00e9"', "another one"),
        (b'"\\u000A"', "another one"),
        (b'"\\u000a"', "another one"),
        (b'"\\/"', "another one"),
        (b'"\n"', "JSON"),
        (b"'a'", "JSON"),
        (b"[1,]", "JSON"),
        (b"True", "JSON"),
        (b"[1", "JSON"),
        (b"1 2", "Extra data"),
        (b"null,", "Extra data"),
        ('{"é":1}'.encode(), "ASCII"),
    ],
)
def test_refuses_every_other_spelling(data: bytes, says: str) -> None:
    with pytest.raises(FormatError, match=says):
        parse_canonical(data)


def test_spells_a_time_in_utc_with_six_digits() -> None:
    assert timestamp(datetime(2026, 8, 18, 12, tzinfo=UTC)) == "2026-08-18T12:00:00.000000Z"
    east = timezone(timedelta(hours=2))
    assert timestamp(datetime(2026, 8, 18, 0, 30, 1, 7, tzinfo=east)) == "2026-08-17T22:30:01.000007Z"
    assert timestamp(datetime(999, 1, 1, tzinfo=UTC)) == "0999-01-01T00:00:00.000000Z"


def test_refuses_a_time_without_a_zone() -> None:
    with pytest.raises(FormatError, match="time zone"):
        timestamp(datetime(2026, 8, 18))  # noqa: DTZ001 - the naive time is what is refused
