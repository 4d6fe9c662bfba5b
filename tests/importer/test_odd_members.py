"""Every member of an entry, of whatever format, with every kind of value that does not belong there."""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import pytest

from a2a_ledger.capture.formats import opened
from a2a_ledger.capture.import_file import import_file
from a2a_ledger.divergence.reading import number
from a2a_ledger.errors import FormatError
from a2a_ledger.ledger import ContractLedger
from tests.importer.archive import entry, interaction, write_har
from tests.importer.lines import Line, send, task, write
from tests.importer.test_task_dump import dump, of_sdk, row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

ODD: tuple[Any, ...] = (
    *(None, True, -1, 1.5, float("nan"), float("inf"), 10**400, "", "x", "\ud800", "\x00"),
    *(
        [],
        ["a"],
        [["a"]],
        [None],
        {},
        {"a": ["b"]},
        {"text": ["a"], "params": []},
        {"base64_string": ["a"], "string": 1},
    ),
)
GOOD = send("m1", {"task": task("WORKING")}, headers=(), at="2026-09-14T09:00:00Z")
SECOND = send("m2", {"task": task("WORKING", task_id="T2")}, headers=(), at="2026-09-14T09:00:01Z")


def places(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the place of every value inside of one."""
    members: Iterable[tuple[str | int, object]] = ()
    if isinstance(value, dict):
        members = cast("dict[str | int, object]", value).items()
    elif isinstance(value, list):
        members = enumerate(cast("list[object]", value))
    for name, inner in members:
        yield (*path, name)
        yield from places(inner, (*path, name))


def spoiled(whole: Line) -> Iterator[Line]:
    """Yield copies of an entry with one odd value each."""
    for *path, last in places(whole):
        for value in ODD:
            one = copy.deepcopy(whole)
            holder: Any = one
            for name in path:
                holder = holder[name]
            holder[last] = value
            yield one


def written(folder: Path, form: str, entries: list[Line]) -> Path:
    if form == "har":
        return write_har(folder, *entries)
    if form == "vcr":
        path = folder / "cassette.json"
        path.write_text(json.dumps({"interactions": entries, "version": 1}))
        return path
    return write(folder, *entries) if form == "jsonl" else dump(folder, entries)


SAMPLES: dict[str, tuple[Line, Line]] = {
    "har": (entry(GOOD), entry(SECOND)),
    "vcr": (interaction(GOOD), interaction(SECOND)),
    "jsonl": (GOOD, SECOND),
    "tasks": (of_sdk("T1"), of_sdk("T2")),
    "tasks-of-rows": (row("T1"), row("T2")),
}


@pytest.mark.parametrize("sample", SAMPLES)
def test_an_odd_value_anywhere_is_read_or_refused_by_name(tmp_path: Path, sample: str) -> None:
    form = sample.partition("-")[0]
    first, second = SAMPLES[sample]
    entries = [*spoiled(first), second]
    assert len(entries) > 100
    with opened(written(tmp_path, form, entries), form, "https://vendor.example/a2a") as (_, begin):
        numbers: set[int] = set()
        for one in begin():
            numbers.add(one.number)
            with suppress(FormatError):
                one.read(one.raw)
    assert numbers == set(range(1, len(entries) + 1))


@pytest.mark.slow
@pytest.mark.parametrize("sample", SAMPLES)
def test_what_stands_behind_odd_entries_goes_in(tmp_path: Path, sample: str) -> None:
    form = sample.partition("-")[0]
    first, second = SAMPLES[sample]
    entries = [*list(spoiled(first))[::7], second]
    with ContractLedger.open(":memory:", follow=False) as ledger:
        report = import_file(ledger, written(tmp_path, form, entries), form=form)
        assert report.lines == len(entries)
        recorded = {number(record.data, "line") for record in ledger.store.tagged(f"import:{report.source}")}
        assert recorded == set(range(1, len(entries) + 1))
