"""Files of recorded exchanges: which format is it, and its entries one by one.

The format is told by the content, never by the name. JSON lines of exchanges, HAR 1.2, cassettes (vcrpy, betamax,
Ruby's VCR), dumps of a task store, and one message alone (docs/format.md section 13.4). What is none of these is
taken for JSON lines, each of which is then recorded as unreadable.
"""

from __future__ import annotations

import json
import mmap
import os
import re
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from a2a_ledger.capture.formats import har, lone, task_dump, vcr
from a2a_ledger.capture.formats.entry import Entry, Lone, Snapshot
from a2a_ledger.capture.formats.order import entries_in_order, instant
from a2a_ledger.capture.formats.scan import end_of, member, repeated, spans, start_of_value
from a2a_ledger.capture.jsonl_line import read_line
from a2a_ledger.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from datetime import datetime

    from a2a_ledger.capture.formats.scan import Text
    from a2a_ledger.events import Json, JsonObject

    Entries = Iterator[Entry]

__all__ = ["FORMATS", "Entry", "Lone", "Snapshot", "form_of", "opened"]

FORMATS = ("jsonl", "har", "vcr", "tasks", "message")
"""What `import --as` takes."""

_YAML_CASSETTE = re.compile(rb"^(?:http_)?interactions:", re.MULTILINE)
_HEAD = 64 * 1024
_MOST_LOOKED_AT = 1024 * 1024
_LINES_LOOKED_AT = 100
_LOOKED_INTO = 3
_ENVELOPES = frozenset({"jsonrpc", "method", "task", "message", "statusUpdate", "artifactUpdate"})
"""Members that only a message has at its top: a StreamResponse is no map of Tasks."""


@contextmanager
def opened(path: str | os.PathLike[str], form: str | None, url: str) -> Generator[tuple[str, Callable[[], Entries]]]:
    """Open a file: its format, and what yields its entries, from the first one each time that it is called.

    Args:
        path: the file; it is mapped, not read whole.
        form: one of FORMATS; None: told by the content.
        url: where a message was sent that does not say.

    Raises:
        UsageError: it cannot be read, or is not of the format that was named.
    """
    with ExitStack() as held:
        try:
            file = held.enter_context(Path(path).open("rb"))
            empty = os.fstat(file.fileno()).st_size == 0  # nothing can be mapped
            text = b"" if empty else held.enter_context(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except (OSError, ValueError) as error:  # ValueError: a length that cannot be mapped
            raise UsageError(f"{os.fspath(path)}: cannot be read: {error}") from error
        named = form or form_of(text)
        yield named, lambda: _entries(text, named, os.fspath(path), url)


def _entries(text: Text, form: str, path: str, url: str) -> Entries:
    if (name := _read_twice(text, form)) is not None:
        raise UsageError(f"{path}: expected {name} once, found it more than once: the file reads in two ways")
    found: Entries | None = None
    match form:
        case "jsonl":
            found = _exchange_lines(text)
        case "har":
            found = har.entries(text)
        case "vcr":
            found = _cassette(text, path)
        case "tasks":
            found = task_dump.line_entries(_lines(text)) if _is_lines(text) else task_dump.entries(text)
        case _ if len(text) <= lone.MOST_OCTETS:
            found = iter([lone.entry(text[:], url)])
        case _:
            raise UsageError(f"{path}: expected one message of at most {lone.MOST_OCTETS} octets, found {len(text)}")
    if found is None:
        expected = {"har": "an object with log.entries", "vcr": "interactions or http_interactions"}[form]
        raise UsageError(f"{path}: expected {expected}, found none")
    return found


def _read_twice(text: Text, form: str) -> str | None:
    """Return the member with what is imported if a file in JSON has more than one of it."""
    start = start_of_value(text)
    names = {"har": ("log",), "vcr": vcr.LISTS, "tasks": ("tasks",)}.get(form, ())
    if form == "tasks" and _is_lines(text):
        return None
    if names and repeated(text, start, *names):
        return " or ".join(names)
    log = member(text, start, "log") if form == "har" else None
    return "log.entries" if log is not None and repeated(text, log, "entries") else None


def _exchange_lines(text: Text) -> Entries:
    if text.find(b'"ended_at"') >= 0:
        yield from entries_in_order(text, _timed_lines(text), read_line)
        return
    done = 0
    for number, raw in _lines(text):
        done += len(raw)
        if line := raw.strip(b" \t\r\n"):
            yield Entry(number, line, done, read_line)


def _timed_lines(text: Text) -> Iterator[tuple[int, int, int, datetime | None, datetime | None]]:
    """Yield number and place of each line, and when its exchange began and ended as far as it says so."""
    at = 0
    for number, raw in _lines(text):
        start, at = at, at + len(raw)
        if raw.strip(b" \t\r\n"):
            first = start_of_value(raw)
            stated = {one.name: raw[one.start : one.end] for one in spans(raw, first) if one.name in {"at", "ended_at"}}
            times = [instant(stated.get(name, b"")) for name in ("at", "ended_at")]
            yield number, start, start + len(raw.rstrip(b" \t\r\n")), times[0], times[1]


def _lines(text: Text) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a text, line ends included, numbered from 1."""
    at, number = 0, 0
    while at < len(text):
        end = text.find(b"\n", at) + 1 or len(text)
        number += 1
        yield number, text[at:end]
        at = end


def _cassette(text: Text, path: str) -> Entries | None:
    start = start_of_value(text)
    if text[start : start + 1] == b"{":
        return vcr.json_entries(text)
    try:
        from a2a_ledger.capture.formats import vcr_yaml  # noqa: PLC0415 - PyYAML is an extra
    except ImportError as error:
        raise UsageError(f"{path}: a cassette in YAML needs PyYAML: pip install 'a2a-ledger[import]'") from error
    if len(text) > vcr_yaml.MOST_OCTETS:
        raise UsageError(
            f"{path}: expected at most {vcr_yaml.MOST_OCTETS} octets of YAML, found {len(text)}: split the cassette"
        )
    return vcr_yaml.entries(text[:]) if _YAML_CASSETTE.search(text) else None


# ---- which format is it


def form_of(text: Text) -> str:
    """Return the format of a file, one of FORMATS."""
    start = start_of_value(text)
    head = text[start : start + _HEAD]
    if any(line.match(head) for line in (lone.STATUS_LINE, lone.REQUEST_LINE, lone.EVENT_LINE)):
        return "message"
    if head[:1] == b"{":
        return _form_of_object(text, start)
    if head[:1] == b"[":
        return "tasks" if _holds_tasks(text, start) else "message"
    return "vcr" if _YAML_CASSETTE.search(head) else "jsonl"


def _form_of_object(text: Text, start: int) -> str:
    names = {span.name: span for span in spans(text, start, until={"log", *vcr.LISTS})}
    if "log" in names and member(text, names["log"].start, "entries") is not None:
        return "har"
    if names.keys() & set(vcr.LISTS):
        return "vcr"
    if "request" in names or _has_exchange_line(text):
        return "jsonl"
    shown: JsonObject = {
        name: _value(text, names[name].start, names[name].end) for name in ("id", "status") if name in names
    }
    if not names.keys() & {"jsonrpc", "method"} and task_dump.looks_like_task(shown):
        return "tasks"
    if "tasks" in names:
        return "tasks" if _holds_tasks(text, names["tasks"].start) else "message"
    return "tasks" if not names.keys() & _ENVELOPES and _holds_tasks(text, start) else "message"


def _has_exchange_line(text: Text) -> bool:
    """Say whether one of the first lines is an exchange: the very first may be broken."""
    for number, raw in _lines(text):
        if number > _LINES_LOOKED_AT or len(raw) > _MOST_LOOKED_AT:
            return False
        value = _value(raw, 0, len(raw))
        if isinstance(value, dict) and "request" in value:
            return True
    return False


def _holds_tasks(text: Text, start: int) -> bool:
    """Say whether one of the first values inside of an object or a list is a Task."""
    for number, span in enumerate(spans(text, start)):
        if number == _LOOKED_INTO:
            return False
        if task_dump.looks_like_task(_value(text, span.start, span.end)):
            return True
    return False


def _is_lines(text: Text) -> bool:
    """Say whether something stands behind the first value of a text, as behind a line."""
    start = start_of_value(text)
    return text[start : start + 1] == b"{" and bool(text[end_of(text, start) :].strip())


def _value(text: Text, start: int, end: int) -> Json:
    """Return the value at a place, None if it is not JSON or too long to be looked at."""
    if end - start > _MOST_LOOKED_AT:
        return None
    try:
        value: Json = json.loads(text[start:end])
    except (ValueError, RecursionError):
        return None
    return value
