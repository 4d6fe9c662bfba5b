"""Cassettes in YAML: the events of a YAML reader as plain values, one interaction at a time.

The only module that uses PyYAML (extra `import`). No tag is followed but `!!binary` and the names for text: a
cassette is somebody else's file, and no file makes an object here.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Protocol

import yaml

from a2a_ledger.capture.formats.entry import Entry
from a2a_ledger.capture.formats.vcr import LISTS, read_interaction
from a2a_ledger.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.capture.jsonl_line import ExchangeLine
    from a2a_ledger.events import Json

MOST_OCTETS = 64 * 1024 * 1024
"""A longer cassette is refused: its text is held while it is read."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # its parser alone: nothing is constructed
_TAG = "tag:yaml.org,2002:"
_TEXTS = frozenset({"!", f"{_TAG}str", f"{_TAG}python/str", f"{_TAG}python/unicode"})
_OCTETS = frozenset({f"{_TAG}binary", f"{_TAG}python/bytes"})
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_MOST_DIGITS = 17
_DEEPEST = 32


def entries(octets: bytes) -> Iterator[Entry]:
    """Yield the interactions of a cassette, as far as its YAML can be read; the rest is one that cannot."""
    try:
        text = octets.decode("utf-8-sig")
    except UnicodeDecodeError:
        yield _unreadable(1, octets, len(octets), "expected YAML in UTF-8, found other bytes")
        return
    reader = _Reader(text)
    number, done, reached = 0, 0, 0
    try:
        for number, (start, end, value) in enumerate(reader.interactions(), start=1):
            done += len(text[reached:end].encode())
            reached = end
            yield Entry(number, text[start:end].encode(), done, _Read(value))
    except yaml.YAMLError as error:
        mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
        at = f" at line {mark.line + 1}" if mark is not None else ""
        problem = f"expected an interaction, found text that is not YAML{at}"
        yield _unreadable(number + 1, text[reached:].encode(), len(octets), problem)


def _unreadable(number: int, raw: bytes, done: int, problem: str) -> Entry:
    return Entry(number, raw, done, _Read(FormatError(problem)))


class _Read:
    """What was read of an interaction already, since YAML is read from its beginning only."""

    def __init__(self, value: Json | FormatError) -> None:
        self._value = value

    def __call__(self, raw: bytes) -> ExchangeLine:
        del raw
        if isinstance(self._value, FormatError):
            raise self._value
        return read_interaction(self._value)


class _Mark(Protocol):
    """A place in the text; PyYAML has two classes of it."""

    @property
    def index(self) -> int:
        """Characters before it."""
        ...


def _at(mark: _Mark | None) -> int:
    return mark.index if mark is not None else 0


class _Reader:
    """Walks over the events of one text."""

    def __init__(self, text: str) -> None:
        self._events: Iterator[yaml.Event] = yaml.parse(text, Loader=_LOADER)
        self._anchors: dict[str, Json] = {}
        self._problem = ""
        self._end = 0

    def interactions(self) -> Iterator[tuple[int, int, Json | FormatError]]:
        """Yield where each interaction begins and ends, and its value or why it has none."""
        if not any(isinstance(event, yaml.MappingStartEvent) for event in self._events):
            return
        for key in self._events:
            if isinstance(key, yaml.MappingEndEvent):
                return
            name = self._value(key)
            value = next(self._events)
            if name in LISTS and isinstance(value, yaml.SequenceStartEvent):
                yield from self._listed()
            else:
                self._value(value)

    def _listed(self) -> Iterator[tuple[int, int, Json | FormatError]]:
        for event in self._events:
            if isinstance(event, yaml.SequenceEndEvent):
                return
            self._problem = ""
            value = self._value(event)
            yield _at(event.start_mark), self._end, FormatError(self._problem) if self._problem else value

    def _value(self, event: yaml.Event, depth: int = 0) -> Json:
        """Return the plain value that begins with an event; of what is refused the problem is noted."""
        self._end = _at(event.end_mark)
        value: Json = None
        if isinstance(event, yaml.ScalarEvent):
            value = self._scalar(event)
        elif isinstance(event, yaml.AliasEvent):
            return self._anchors.get(event.anchor or "")
        elif isinstance(event, yaml.CollectionStartEvent):
            plain = {None, "!", f"{_TAG}map", f"{_TAG}seq"}
            if event.tag not in plain or depth > _DEEPEST:
                self._problem = "expected plain values, found a YAML tag that makes an object, or too deep a nesting"
            value = self._mapping(depth) if isinstance(event, yaml.MappingStartEvent) else self._sequence(depth)
        if isinstance(event, yaml.NodeEvent) and event.anchor is not None:
            self._anchors[event.anchor] = value
        return value

    def _mapping(self, depth: int) -> Json:
        made: dict[str, Json] = {}
        for key in self._events:
            if isinstance(key, yaml.MappingEndEvent):
                self._end = _at(key.end_mark)
                break
            name = self._value(key, depth + 1)
            value = self._value(next(self._events), depth + 1)
            if not isinstance(name, str) or name in made:
                self._problem = "expected each key once and as a text, found another one"
            else:
                made[name] = value
        return made if depth <= _DEEPEST else None

    def _sequence(self, depth: int) -> Json:
        made: list[Json] = []
        for item in self._events:
            if isinstance(item, yaml.SequenceEndEvent):
                self._end = _at(item.end_mark)
                break
            made.append(self._value(item, depth + 1))
        return made if depth <= _DEEPEST else None

    def _scalar(self, event: yaml.ScalarEvent) -> Json:
        """Return text, null, an integer, or octets as `{"base64_string": text}`; every other scalar is its text."""
        text = event.value
        if event.tag in _OCTETS:
            try:
                octets = base64.b64decode("".join(text.split()), validate=True)
            except (binascii.Error, ValueError):
                self._problem = "expected base64 behind !!binary, found something else"
                return None
            return {"base64_string": base64.b64encode(octets).decode()}
        if event.tag is not None and event.tag not in _TEXTS and not event.implicit[0]:
            self._problem = "expected plain values, found a YAML tag that makes an object"
            return None
        if event.tag is not None or not event.implicit[0]:
            return text
        if text in _NULLS:
            return None
        digits = text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
        return int(text) if digits and not (text.startswith("0") and len(text) > 1) else text
