"""docs/format.md section 2 and events.py say the same, and every event can be built from its table."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from a2a_ledger.codec import draft, parse_canonical, read_record, seal
from a2a_ledger.events import EVENT_TYPES, Event

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_ledger.events import Json

FORMAT = Path(__file__).parents[2] / "docs" / "format.md"
JSON_TYPES = {
    "str": "text",
    "int": "integer",
    "bool": "boolean",
    "JsonObject": "object",
    "Ref": "ref",
    "Interface": "interface",
    "Credential": "credential",
}
EXAMPLES: dict[str, Json] = {
    "text": "x",
    "integer": 1,
    "boolean": True,
    "object": {"a": "b"},
    "ref": {"c": "00" * 32, "stream": "ledger", "ver": 0},
    "interface": {"binding": "JSONRPC", "tenant": "", "url": "https://vendor.example/a2a", "version": None},
    "credential": {"k": "key", "mac": "00" * 32, "scheme": "oauth"},
}


@dataclass(frozen=True)
class Row:
    """One row of a table: a field as the page describes it."""

    field: str
    json_type: str
    required: bool
    meaning: str


def section_two() -> str:
    return FORMAT.read_text("utf-8").split("\n## 2 Events\n")[1].split("\n## 3 ")[0]


def rows_of(text: str) -> list[Row]:
    found = re.findall(r"^\| `(\w+)` \| ([a-z ]+) \| (yes|no) \| (.*) \|$", text, re.MULTILINE)
    return [Row(name, kind, required == "yes", meaning) for name, kind, required, meaning in found]


def tables() -> dict[str, list[Row]]:
    """Return the rows of every event by its name; a table may be given by naming another event's fields."""
    found: dict[str, list[Row]] = {}
    for part in re.split(r"\n(?=### `)", section_two())[1:]:
        name = cast("re.Match[str]", re.match(r"### `([^`]+)`", part))[1]
        if same := re.search(r"^The fields of `([^`]+)`\.$", part, re.MULTILINE):
            found[name] = found[same[1]]
        else:
            found[name] = rows_of(part)
    return found


def common() -> list[Row]:
    return rows_of(section_two().split("### Fields of every event\n")[1].split("\n### `")[0])


def described(cls: type[Event], *, own: bool) -> dict[str, tuple[str, bool]]:
    """Return (JSON type, required) of each field as events.py declares it."""
    base = {field.name: field.type for field in dataclasses.fields(Event)}
    found: dict[str, tuple[str, bool]] = {}
    for field in dataclasses.fields(cls):
        if (base.get(field.name) != field.type) != own:
            continue
        spelled = cast("str", field.type)
        bare = spelled.removesuffix(" | None")
        inner = re.fullmatch(r"list\[(\w+)\]", bare)
        kind = f"list of {JSON_TYPES[inner[1]]}" if inner else JSON_TYPES[bare]
        found[field.name] = (kind, bare == spelled)
    return found


def example(json_type: str) -> Json:
    if json_type.startswith("list of "):
        return [EXAMPLES[json_type.removeprefix("list of ")]]
    return EXAMPLES[json_type]


def test_the_page_has_one_table_for_each_event_and_no_other() -> None:
    assert set(tables()) == set(EVENT_TYPES)


def test_fields_of_every_event() -> None:
    assert {row.field: (row.json_type, row.required) for row in common()} == described(Event, own=False)


@pytest.mark.parametrize("name", EVENT_TYPES)
def test_table_equals_declaration(name: str) -> None:
    rows = tables()[name]
    assert {row.field: (row.json_type, row.required) for row in rows} == described(EVENT_TYPES[name], own=True)
    assert len(rows) == len({row.field for row in rows})
    assert all(row.meaning.strip() for row in rows)


@pytest.mark.parametrize("only_required", [False, True])
@pytest.mark.parametrize("name", EVENT_TYPES)
def test_event_can_be_built_from_its_table_and_read_back(name: str, only_required: bool) -> None:
    values = {row.field: example(row.json_type) for row in tables()[name] if row.required or not only_required}
    missing = {row.field: None for row in tables()[name] if row.field not in values}
    built = cast("Callable[..., Event]", EVENT_TYPES[name])(**values, **missing)
    stream = "task:" + "0" * 40
    fact = draft(built, stream=stream, at=datetime(2026, 8, 18, 12, tzinfo=UTC), entropy=bytes)
    raw, c = seal(fact, log="example/00000000", ver=0, prev=None)
    record = read_record(fact.salt, raw)
    assert parse_canonical(fact.data) == values
    assert record.c == c.hex()
    assert record.data == values
    assert record.event() == built


def test_every_field_name_is_snake_case_ascii() -> None:
    names = {field.name for cls in EVENT_TYPES.values() for field in dataclasses.fields(cls)}
    assert [name for name in sorted(names) if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name)] == []
