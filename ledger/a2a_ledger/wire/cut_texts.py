"""Which texts and numbers of a JSON body redaction cut something out of, told by reading the body in two ways. Pure.

What is cut is a hole, filled with one sign for each octet (docs/format.md section 3), outside of strings with one
digit. A value that differs when the holes are filled otherwise was cut; a sign that the peer wrote itself stays what
it is.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_ledger.events import Json

_DEEPEST = 128
_ESCAPED = re.compile(rb"\\.", re.DOTALL)
_ZERO = re.compile(rb"(?:^|[^0-9.eE+-])-?0\Z")


class Cut(str):
    """A text, a number, or the name of a member, that something was cut out of."""

    __slots__ = ()


def filled_numbers(octets: bytes, holes: Iterable[tuple[int, int]], digit: bytes) -> bytes:
    """Return a JSON text whose holes outside of strings are numbers, so that what stands beside them can be read.

    A secret of digits is cut wherever it stands, in a number too; one that begins with a colon, or with the point of a
    fraction, takes that along.

    Args:
        octets: holes filled in any way.
        holes: where each begins and how long it is, in the order of the text.
        digit: what to fill them with; not a zero, with which no number of several digits begins.
    """
    made = bytearray()
    at, inside = 0, False
    for start, length in holes:
        before = octets[at:start]
        made += before
        inside ^= _ESCAPED.sub(b"", before).count(b'"') % 2 == 1
        at = start + length
        made += octets[start:at] if inside else _number(made, length, digit)
    return bytes(made + octets[at:])


def _number(before: bytes | bytearray, length: int, digit: bytes) -> bytes:
    lost = b""
    if before.rstrip().endswith(b'"'):
        lost = b":"
    elif _ZERO.search(before[-3:]):
        lost = b"."
    return lost + digit * (length - len(lost))


def both(one: Json, other: Json, depth: int = 0) -> Json:
    """Return a value as the first reading has it, what the second one has otherwise in it as a `Cut`."""
    if depth > _DEEPEST:
        return one
    if isinstance(one, (str, float)) and isinstance(other, (str, float)):
        return one if one == other else Cut(one)
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [both(a, b, depth + 1) for a, b in zip(one, other, strict=True)]
    if isinstance(one, dict) and isinstance(other, dict):
        if len(one) != len(other):  # a cut name reads like another one, with one of the signs
            return {**one, Cut("*"): None}
        pairs = zip(one, other, strict=True)
        return {a if a == b else Cut(a): both(one[a], other[b], depth + 1) for a, b in pairs}
    return one


def is_merged(octets: bytes) -> bool:
    """Say whether an object names a member twice beside a text with a `*`: a hole there may have joined two objects."""
    merged = False

    def pairs(members: list[tuple[str, Json]]) -> Json:
        nonlocal merged
        if len(dict(members)) != len(members):
            merged |= any("*" in text for pair in members for text in pair if isinstance(text, str))
        return None

    try:
        json.loads(octets.decode("utf-8-sig"), object_pairs_hook=pairs)
    except (ValueError, RecursionError):
        return False
    return merged


def lacks(value: Json, *names: str) -> bool:
    """Say whether an object, out of which something was cut, has none of these members: one may have been there."""
    if not isinstance(value, dict) or not any(isinstance(text, Cut) for pair in value.items() for text in pair):
        return False
    return not any(name in value for name in names)
