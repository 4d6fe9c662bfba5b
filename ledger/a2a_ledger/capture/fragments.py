"""Where a text shows a part of a secret. Pure, and linear in the text.

An error seldom quotes a whole message: validators show the two ends of a value around an ellipsis, parsers what
stands around the place where they stopped. A text that breaks off shows the beginning of what it broke off in
(docs/format.md section 3.3).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from a2a_ledger.capture.search import Search, Span
from a2a_ledger.capture.spelled import merge, readings, spans_in_each

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SHORTEST = 6
"""Octets of a part that is no chance match."""

_SHORTEST_AT_ELLIPSIS = 3
_LONGEST_TEXT = 256 * 1024
"""Octets of a text that is looked through for parts; in a longer one only whole secrets are found."""

_LONGEST_SECRET = 64 * 1024
_ELLIPSIS = re.compile(rb"\.{2,}|\xe2\x80\xa6|\\u2026")
_BROKEN_ESCAPE = re.compile(rb"(?:\\(?:u[0-9a-fA-F]{0,3})?|%[0-9a-fA-F]?|&[#A-Za-z0-9]{0,8})\Z")
_ESCAPE = re.compile(rb"[\\%&]")
_ENDS = frozenset({b"}", b"]"})
_OCTETS_OF_ONE = 48
"""Octets that one octet of a secret may be spelled in: an escape within an escape, in wide units."""


def find_parts(text: bytes, wanted: Sequence[bytes]) -> list[Span]:
    """Return where a text shows six octets or more of what is wanted, or three or more beside an ellipsis.

    Args:
        text: of an error, 256 KiB at most; nothing is found in a longer one.
        wanted: octet strings.
    """
    wanted = [value for value in wanted if len(value) <= _LONGEST_SECRET]
    if not wanted or len(text) > _LONGEST_TEXT:
        return []
    parts = {size: _parts(wanted, size) for size in range(_SHORTEST_AT_ELLIPSIS, SHORTEST + 1)}

    def find(octets: bytes) -> list[Span]:
        return [
            reading.source(span)
            for reading in readings(octets, wanted)
            for span in merge((*_runs(reading.text, parts[SHORTEST]), *_beside(reading.text, parts)), len(reading.text))
        ]

    return spans_in_each(text, find)


def find_begun(text: bytes, wanted: Sequence[bytes]) -> list[Span]:
    """Return the end of a text that breaks off in the middle of what is wanted, six octets of it or more."""
    last = text.rstrip(b" \t\r\n")[-1:]
    if last in _ENDS and b"\0" not in text and not any(last in value for value in wanted):
        return []  # whole JSON, as nearly always
    longest = max(map(len, wanted), default=0)
    heads = Search(list({value[:SHORTEST] for value in wanted}))
    begin = max(0, len(text) - _OCTETS_OF_ONE * longest)

    def find(octets: bytes) -> list[Span]:
        if not (any(True for _ in heads.spans(octets)) or _ESCAPE.search(octets)):
            return []  # nearly always
        whole = _BROKEN_ESCAPE.sub(b"", octets)
        starts = [
            reading.source((at, len(reading.text)))[0]
            for reading in readings(whole, wanted)
            for value in wanted
            if (at := _begins(reading.text, value)) is not None
        ]
        return [(start, len(octets)) for start in starts]

    return [(begin + start, len(text)) for start, _ in spans_in_each(text[begin:], find)]


def _parts(wanted: Iterable[bytes], size: int) -> set[bytes]:
    return {value[at : at + size] for value in wanted for at in range(len(value) - size + 1)}


def _runs(text: bytes, parts: set[bytes]) -> list[Span]:
    return [(at, at + SHORTEST) for at in range(len(text) - SHORTEST + 1) if text[at : at + SHORTEST] in parts]


def _beside(text: bytes, parts: dict[int, set[bytes]]) -> list[Span]:
    found: list[Span] = []
    for ellipsis in _ELLIPSIS.finditer(text):
        start, end = ellipsis.span()
        sizes = range(_SHORTEST_AT_ELLIPSIS, SHORTEST)
        found += [(start - size, start) for size in sizes if text[max(0, start - size) : start] in parts[size]]
        found += [(end, end + size) for size in sizes if text[end : end + size] in parts[size]]
    return found


def _begins(text: bytes, value: bytes) -> int | None:
    """Return where the end of a text begins that is the beginning of a value, and not all of it."""
    at = text.find(value[:SHORTEST], max(0, len(text) - len(value) + 1))
    while at >= 0:
        if value.startswith(text[at:]):
            return at
        at = text.find(value[:SHORTEST], at + 1)
    return None
