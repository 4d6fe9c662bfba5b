"""Octets in UTF-16 and UTF-32, read as UTF-8, and where what was found stands in them."""

from __future__ import annotations

import pytest

from a2a_ledger.wire.string_places import string_places
from a2a_ledger.wire.wide import Wide, as_utf8, wide_json, wide_readings

# RFC 2781 section 5: U+12345 "=Ra", with a byte order mark, in big-endian and in little-endian order.
BIG = bytes.fromhex("feff d808 df45 003d 0052 0061")
LITTLE = bytes.fromhex("fffe 08d8 45df 3d00 5200 6100")
# The same in UTF-32, by the definition of that: each code point in four octets.
WIDEST = bytes.fromhex("0000feff 00012345 0000003d 00000052 00000061")
UTF8 = bytes.fromhex("efbbbf f0928d85 3d 52 61")
"""By RFC 3629 section 3: U+FEFF in three octets, U+12345 in four."""


@pytest.mark.parametrize(
    ("octets", "codec", "unit", "ra"),
    [(BIG, "utf-16-be", 2, (8, 12)), (LITTLE, "utf-16-le", 2, (8, 12)), (WIDEST, "utf-32-be", 4, (12, 20))],
)
def test_the_example_of_the_standard_is_read_and_led_back(
    octets: bytes, codec: str, unit: int, ra: tuple[int, int]
) -> None:
    wide = Wide(octets, codec, unit)
    assert wide.text == UTF8
    assert wide.source((8, 10)) == ra
    assert wide.source((3, 7)) == (unit, unit * 3 if unit == 2 else unit * 2)


def test_the_way_back_holds_over_a_long_text_of_all_widths() -> None:
    signs = "a\u00e9\u20ac\U0001f511" * 3000 + "needle"
    for codec, unit in (("utf-16-le", 2), ("utf-16-be", 2), ("utf-32-le", 4), ("utf-32-be", 4)):
        octets = signs.encode(codec)
        wide = Wide(octets, codec, unit)
        at = wide.text.index(b"needle")
        start, end = wide.source((at, at + 6))
        assert (octets[start:end], end) == ("needle".encode(codec), len(octets))


@pytest.mark.parametrize("begin", [0, 1])
def test_what_is_no_text_takes_one_unit_and_shifts_nothing(begin: int) -> None:
    lone = b"\x00\xd8"  # half a surrogate pair
    octets = b"x" * begin + lone + "key".encode("utf-16-le") + b"\x00"
    wide = Wide(octets, "utf-16-le", 2, begin)
    assert wide.text == "\ufffdkey".encode()
    start, end = wide.source((3, 6))
    assert octets[start:end] == b"k\0e\0y\0"


@pytest.mark.parametrize(
    ("codec", "begins"),
    [
        ("utf-16", b"\xff\xfe"),
        ("utf-16-le", b"{\0"),
        ("utf-16-be", b"\0{"),
        ("utf-32-le", b"{\0\0\0"),
        ("utf-32-be", b"\0\0\0{"),
    ],
)
def test_a_json_text_tells_its_encoding_by_its_first_octets(codec: str, begins: bytes) -> None:
    octets = '{"token": "é"}'.encode(codec)
    assert octets.startswith(begins)
    text, source = as_utf8(octets)
    assert text.lstrip(b"\xef\xbb\xbf") == '{"token": "é"}'.encode()
    assert octets[slice(*source((text.index(b"token"), text.index(b"token") + 5)))].replace(b"\0", b"") == b"token"


@pytest.mark.parametrize("octets", [b"", b"{}", b"\xef\xbb\xbf{}", '{"a": "é"}'.encode(), b"\xff\xfe"])
def test_what_is_in_utf8_is_no_wide_text(octets: bytes) -> None:
    assert wide_json(octets) is None
    assert list(wide_readings(octets)) == []
    assert as_utf8(octets)[0] == octets


def test_the_strings_that_a_profile_names_are_found_in_a_wide_text() -> None:
    octets = '{"a": {"name": "Ann"}, "b": "Bob"}'.encode("utf-16-be")
    places = string_places(octets, ["/a/name"])
    assert [octets[slice(*place)] for place in places] == ["Ann".encode("utf-16-be")]


def test_a_long_text_is_read_in_the_encoding_that_it_tells_alone() -> None:
    long = ('{"a": "' + "x" * 140_000 + '"}').encode("utf-16-be")
    assert [wide.text[:5] for wide in wide_readings(long)] == [b'{"a":']
    assert list(wide_readings(b"x" * 300_000 + b"\0")) == []
    assert len(list(wide_readings(b"x\0"))) == 12
