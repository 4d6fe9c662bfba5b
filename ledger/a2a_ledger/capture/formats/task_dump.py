"""What was exported from a task store: Tasks as JSON, alone, in a list, by their ids, or as rows of a table.

A store holds what its owner made of a conversation, not what was said: each Task is a snapshot, which no rule
takes for a word of the peer (docs/format.md section 13.4).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from a2a_ledger.capture.formats.entry import Entry, Snapshot
from a2a_ledger.capture.formats.fields import an_object
from a2a_ledger.capture.formats.scan import member, spans, start_of_value
from a2a_ledger.errors import FormatError
from a2a_ledger.wire.jsontext import member as member_of
from a2a_ledger.wire.jsontext import read_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.capture.formats.scan import Text
    from a2a_ledger.events import Json

_COLUMNS = ("status", "artifacts", "history", "metadata")
"""Columns that hold JSON: of a2a-sdk's table `tasks` each, which an export may write as text."""


def entries(text: Text) -> Iterator[Entry]:
    """Yield the Tasks of one JSON value: a Task, a list of them, an object of them by id, or `{"tasks": [...]}`."""
    start = start_of_value(text)
    if text[start : start + 1] == b"{" and _is_map(text, start):
        listed = member(text, start, "tasks")
        start = listed if listed is not None and text[listed : listed + 1] in {b"[", b"{"} else start
        places = [(span.start, span.end) for span in spans(text, start)]
    elif text[start : start + 1] == b"[":
        places = [(span.start, span.end) for span in spans(text, start)]
    else:
        places = [(start, len(text))]
    for number, (begin, end) in enumerate(places, start=1):
        yield Entry(number, text[begin:end], end, read_snapshot)


def line_entries(lines: Iterator[tuple[int, bytes]]) -> Iterator[Entry]:
    """Yield the Tasks of JSON lines, one row each."""
    done = 0
    for number, raw in lines:
        done += len(raw)
        if line := raw.strip(b" \t\r\n"):
            yield Entry(number, line, done, read_snapshot)


def read_snapshot(raw: bytes) -> Snapshot:
    """Read one Task or row.

    Raises:
        FormatError: it is not JSON, or no Task; the message says what was expected and what was found.
    """
    read = read_json(raw)
    if not read.ok:
        raise FormatError(f"expected a Task, found bytes that are not JSON ({', '.join(sorted(read.flags))})")
    if "duplicate-keys" in read.flags:
        raise FormatError("the same key stands twice in one object, so the Task reads in two ways")
    row = an_object("the Task", read.value)
    inner = row.get("task")
    task, is_row = (inner, True) if isinstance(inner, dict) and "status" not in row else (row, False)
    columns = {name: _column(name, task[name]) for name in _COLUMNS if isinstance(task.get(name), str)}
    if not looks_like_task({**task, **columns}):
        raise FormatError("expected a Task with an id and a status, found an object that is none")
    return Snapshot(raw, json.dumps({**task, **columns}).encode() if columns or is_row else raw)


def looks_like_task(value: Json) -> bool:
    """Say whether a value is a Task, or a row that holds one: it has an id and a status with a state."""
    if not isinstance(value, dict) or not isinstance(value.get("id"), str):
        return False
    status = value.get("status")
    if isinstance(status, str):
        status = read_json(status.encode("utf-8", "replace")).value
    return member_of(status, "state") is not None


def _column(name: str, value: Json) -> Json:
    text = value if isinstance(value, str) else ""
    read = read_json(text.encode("utf-8", "surrogatepass"))
    if not read.ok and text:
        raise FormatError(f"{name}: expected JSON, found a text that is none")
    return read.value


def _is_map(text: Text, start: int) -> bool:
    """Say whether an object holds Tasks by name, rather than being one."""
    return member(text, start, "status") is None
