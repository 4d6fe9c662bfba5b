"""Cassettes in YAML: the events of a YAML reader as plain values, one interaction at a time.

The only module that uses PyYAML (extra `import`). No tag is followed but `!!binary` and the names for text: a
cassette is somebody else's file, and no file makes an object here. What Ruby calls a value of a class of its own
(`!ruby/hash:…`, `!ruby/string:…`) is taken as the plain value that it is written as.
"""

from __future__ import annotations

import base64
import binascii
import re
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
"""A longer cassette is refused: its text is held while it is read. Nor do its aliases stand for more, all in all."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # its parser alone: nothing is constructed
_TAG = "tag:yaml.org,2002:"
_TEXTS = frozenset({"!", "!str", f"{_TAG}str", f"{_TAG}python/str", f"{_TAG}python/unicode"})
_OCTETS = frozenset({"!binary", f"{_TAG}binary", f"{_TAG}python/bytes"})
_PLAIN = frozenset({None, "!", "!map", "!seq", "!str", f"{_TAG}map", f"{_TAG}seq"})
_RUBY = re.compile(r"!(?:ruby/(?:hash|array|string|sym(?:bol)?|struct|object)(?::|\Z)|str:)")
_RUBY_TEXT = "str"
"""Where Ruby writes the text of a string that has instance variables beside it."""
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
        if not reader.found:
            yield _unreadable(1, octets, len(octets), "expected a list of interactions, found none")
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
        self._anchors: dict[str, tuple[Json, int]] = {}
        """What each stands for, and how much that is: an alias of many aliases is read in no time, and never ends."""
        self._read = 0  # characters and values so far, those that aliases stand for included
        self._repeated = 0  # those alone
        self._problem = ""
        self._end = 0
        self.found = False
        """There was a list of interactions, be it an empty one."""

    def interactions(self) -> Iterator[tuple[int, int, Json | FormatError]]:
        """Yield where each interaction begins and ends, and its value or why it has none; of every document."""
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                self._anchors.clear()
            elif isinstance(event, yaml.MappingStartEvent):
                yield from self._document()
            elif isinstance(event, yaml.NodeEvent):
                self._value(event)

    def _document(self) -> Iterator[tuple[int, int, Json | FormatError]]:
        for key in self._events:
            if isinstance(key, yaml.MappingEndEvent):
                return
            name = self._value(key)
            value = next(self._events)
            if name in LISTS and isinstance(value, yaml.SequenceStartEvent):
                self.found = True
                yield from self._listed()
            else:
                self._value(value)
            self._problem = ""

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
        before = self._read
        self._read += 1
        value: Json = None
        if isinstance(event, yaml.ScalarEvent):
            self._read += len(event.value)
            value = self._scalar(event)
        elif isinstance(event, yaml.AliasEvent):
            return self._repeat(event.anchor)
        elif isinstance(event, yaml.CollectionStartEvent):
            if event.tag not in _PLAIN and not _RUBY.match(event.tag or ""):
                self._problem = "expected plain values, found a YAML tag that makes an object"
            if depth > _DEEPEST:
                self._problem = f"expected at most {_DEEPEST} lists and maps within each other, found more"
                self._pass_over()
            else:
                value = self._mapping(depth) if isinstance(event, yaml.MappingStartEvent) else self._sequence(depth)
                if isinstance(value, dict) and _is_ruby_text(event.tag):
                    value = value.get(_RUBY_TEXT)
        if isinstance(event, yaml.NodeEvent) and event.anchor is not None and not self._problem:
            self._anchors[event.anchor] = (value, self._read - before)
        return value

    def _repeat(self, anchor: str | None) -> Json:
        """Return what an alias stands for."""
        if anchor not in self._anchors:
            self._problem = "expected plain values, found a YAML alias of what stands nowhere before it, or is refused"
            return None
        value, size = self._anchors[anchor]
        if self._repeated + size > MOST_OCTETS:
            self._problem = f"expected YAML aliases that stand for at most {MOST_OCTETS} characters in all, found more"
            return None
        self._read += size
        self._repeated += size
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
        return made

    def _sequence(self, depth: int) -> Json:
        made: list[Json] = []
        for item in self._events:
            if isinstance(item, yaml.SequenceEndEvent):
                self._end = _at(item.end_mark)
                break
            made.append(self._value(item, depth + 1))
        return made

    def _pass_over(self) -> None:
        """Go behind the end of a list or map that has just begun, however deep it is."""
        depth = 1
        for event in self._events:
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if not depth:
                self._end = _at(event.end_mark)
                return

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
        is_ruby = event.tag is not None and _RUBY.match(event.tag)
        if event.tag is not None and event.tag not in _TEXTS and not is_ruby and not event.implicit[0]:
            self._problem = "expected plain values, found a YAML tag that makes an object"
            return None
        if event.tag is not None or not event.implicit[0]:
            return text
        if text in _NULLS:
            return None
        digits = text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
        return int(text) if digits and not (text.startswith("0") and len(text) > 1) else text


def _is_ruby_text(tag: str | None) -> bool:
    return tag is not None and tag.startswith(("!str", "!ruby/string"))
