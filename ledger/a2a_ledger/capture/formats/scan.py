"""Where the members of a large JSON text stand: found without reading it whole into memory. Pure.

Works on a memory map as well as on bytes. What it yields is a place; whether JSON stands there is for the reader
of that place to say, so that one broken entry costs no other.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Container, Iterator
    from mmap import mmap

Text: TypeAlias = "bytes | mmap"

_STRING = (
    rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'  # one that never ends reaches to the end, so that no scan is made twice
)
_TOKEN = re.compile(_STRING + rb'|[\[\]{},:]|[^\s\[\]{},:"]++', re.DOTALL)
_BRACKET = re.compile(_STRING + rb"|[\[\]{}]", re.DOTALL)
_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*+")


class Span(NamedTuple):
    """A member of an object or an item of a list, and its octets: from `start` up to `end`."""

    name: str
    """Of a member; of an item "", as of a member whose name cannot be read."""
    start: int
    end: int


def start_of_value(text: Text) -> int:
    """Return where the first value of a text begins: behind a byte order mark and white space."""
    found = _START.match(text)
    return found.end() if found else 0


def spans(text: Text, start: int, *, until: Container[str] = ()) -> Iterator[Span]:
    """Yield the members of an object, or the items of a list, that begins at `start`; nothing of another value.

    Of a text that is cut short the last span reaches to its end.

    Args:
        text: JSON.
        start: where the object or list begins.
        until: names that end the walk: the end of such a member is not looked for, it may be far away.
    """
    if text[start : start + 1] not in {b"{", b"["}:
        return
    named = text[start : start + 1] == b"{"
    name: str | None = None if named else ""
    at = start + 1
    while found := _TOKEN.search(text, at):
        begin, at = found.span()
        first = text[begin : begin + 1]
        if first in {b"]", b"}"}:
            return
        if first == b",":
            name = None if named else ""
        elif first == b":":
            continue
        elif name is None:
            name = _name(text[begin:at])
        elif name in until:
            yield Span(name, begin, begin)
            return
        else:
            at = end_of(text, begin) if first in {b"{", b"["} else at
            yield Span(name, begin, at)


def end_of(text: Text, start: int) -> int:
    """Return where the object or list that begins at `start` ends: the end of the text if it is cut short."""
    depth = 0
    for found in _BRACKET.finditer(text, start):
        first = text[found.start()]
        if first in b"[{":
            depth += 1
        elif first in b"]}":
            depth -= 1
            if not depth:
                return found.end()
    return len(text)


def member(text: Text, start: int, *names: str) -> int | None:
    """Return where the value begins of the first member of an object that has one of these names."""
    return next((span.start for span in spans(text, start, until=names) if span.name in names), None)


def repeated(text: Text, start: int, *names: str) -> bool:
    """Say whether an object has more than one member of these names: it then reads in more than one way."""
    found = (span for span in spans(text, start) if span.name in names)
    return text[start : start + 1] == b"{" and next(found, None) is not None and next(found, None) is not None


def _name(octets: bytes) -> str:
    try:
        value = json.loads(octets)
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""
