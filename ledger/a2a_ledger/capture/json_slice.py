"""Where a value stands in the octets of a JSON text: a slice of what came, never a re-serialisation. Pure.

A card that came inside of another answer keeps its exact bytes (docs/format.md section 7.8).
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_SPACE = re.compile(r"[ \t\n\r]*")
_VALUES = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str, strict=False)
"""Numbers are passed over, so that none of them is too long to be one."""

_DEEPEST = 4
"""Objects and lists within each other that are looked into for a card: an envelope, a list, an entry, its card."""


class Place(NamedTuple):
    """A value inside of a JSON text: its JSON pointer (RFC 6901), and its octets."""

    pointer: str
    octets: bytes


class Span(NamedTuple):
    """A member of an object, or an item of a list: from its name to the end of its value, and the value by itself."""

    name: str
    begin: int
    start: int
    end: int
    value: object


def member_octets(body: bytes, name: str) -> bytes | None:
    """Return the octets of one member's value, as they stand in a body that is one JSON object.

    Returns:
        None where there is no such member, or two of them: such a body reads in two ways.
    """
    text = text_of(body)
    found = [span for span in spans(text, value_start(text)) if span.name == name]
    return text[found[0].start : found[0].end].encode() if len(found) == 1 else None


def objects_in(body: bytes) -> Iterator[Place]:
    """Yield the objects inside of a JSON body, itself first, with their exact octets, four levels deep."""
    text = text_of(body)
    yield from _objects(text, value_start(text), "", 0)


def _objects(text: str, start: int, pointer: str, depth: int) -> Iterator[Place]:
    if text[start : start + 1] == "{":
        yield Place(pointer, text[start : _end(text, start)].encode())
    if depth == _DEEPEST:
        return
    for span in spans(text, start):
        if isinstance(span.value, dict | list):
            name = span.name.replace("~", "~0").replace("/", "~1")
            yield from _objects(text, span.start, f"{pointer}/{name}", depth + 1)


def spans(text: str, start: int) -> Iterator[Span]:
    """Yield the members of an object, or the items of a list, that begins at `start`; nothing where it is broken."""
    opening = text[start : start + 1]
    if opening not in {"{", "["} or _end(text, start) < 0:
        return
    at, number = _after_space(text, start + 1), 0
    while text[at] not in "}]":
        name, begin = str(number), at
        if opening == "{":
            name, at = _VALUES.raw_decode(text, at)
            at = _after_space(text, _after_space(text, at) + 1)  # behind the colon
        value, end = _VALUES.raw_decode(text, at)
        yield Span(name, begin, at, end, value)
        at, number = _after_space(text, end), number + 1
        if text[at] == ",":
            at = _after_space(text, at + 1)


def _end(text: str, start: int) -> int:
    """Return where the value that begins at `start` ends; -1 where it is no JSON."""
    try:
        return _VALUES.raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        return -1


def value_start(text: str) -> int:
    """Return where the value of a whole text begins."""
    return _after_space(text, 0)


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def text_of(body: bytes) -> str:
    """Return a JSON text, without a byte order mark; "" where it is none that can be read."""
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        return ""
