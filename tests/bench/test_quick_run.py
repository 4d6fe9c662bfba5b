"""A quick run of every row: the output's shape, and that what was measured did its work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.bench.conftest import Output

TARGETS = {
    "append": "ratio <= 2",
    "group.threads": "ratio >= 1.2",
    "group.asyncio": "ratio >= 2.5",
    "group.threads-slow": "ratio >= 12",
    "group.asyncio-slow": "ratio >= 18",
    "batch": "ratio <= 5",
    "metrics": None,
    "processes": "value <= 0",
    "processes.worst-append": "value <= 200",
    "audit": "value <= 0.01215",
    "rebuild.records": "value >= 100000",
    "rebuild.verifier": "value >= 50000",
    "evidence.proof": "value <= 1",
    "evidence.bundle": "value <= 50",
    "evidence.bundle-size": "value <= 200",
    "evidence.verify": "value <= 50",
    "evidence.export_100k": "value <= 100",
    "evidence.verify_100k": "value <= 256",
    "guard.added": "value <= 1.5",
    "guard.share": "value <= 5",
    "proxy": "ratio >= 0.7",
    "stream.guard": "value <= 5",
    "stream.guard-memory": "value <= 16",
    "stream.proxy": "value <= 5",
    "stream.proxy-memory": "value <= 16",
    "card": "value >= 10000",
    "start.help": None,
    "start.import": None,
    "start.import-ledger": None,
    "postgres": None,
}
"""Every row, in order, and what section 12 of the design holds it to; the audit's limit for 405 events."""

WITH_FLOOR = {
    "append",
    "group.threads",
    "group.asyncio",
    "group.threads-slow",
    "group.asyncio-slow",
    "batch",
    "metrics",
    "guard.added",
    "proxy",
    "card",
    "start.help",
    "start.import",
}


def rows(output: Output) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in output["rows"]}


def test_the_output_has_the_members_that_are_promised(quick: Output) -> None:
    assert list(quick) == ["machine", "rows"]
    assert list(quick["machine"]) == ["cpu", "cores", "load", "system", "python", "sqlite"]
    for row in quick["rows"]:
        assert list(row) == ["name", "value", "unit", "floor", "ratio", "target", "ok"]


def test_every_row_is_there_with_its_target(quick: Output) -> None:
    assert {name: row["target"] for name, row in rows(quick).items()} == TARGETS


def test_a_row_has_a_floor_where_bare_sqlite_or_bare_python_could_do_the_work(quick: Output) -> None:
    found = {name for name, row in rows(quick).items() if row["floor"] is not None}
    assert found == WITH_FLOOR
    assert {name for name, row in rows(quick).items() if row["ratio"] is not None} == WITH_FLOOR


def test_every_row_was_measured_but_those_that_need_a_server(quick: Output) -> None:
    found = rows(quick)
    assert found.pop("postgres")["value"] is None
    for name, row in found.items():
        if name == "processes":
            continue
        assert row["value"] is not None, name
        if not name.startswith(("guard", "stream", "evidence.export")):  # a difference, here of little
            assert row["value"] > 0, name


def test_ok_says_whether_the_target_is_met(quick: Output) -> None:
    for row in quick["rows"]:
        if row["target"] is None:
            assert row["ok"] is None
            continue
        held, relation, limit = row["target"].split(" ")
        within = row[held] <= float(limit) if relation == "<=" else row[held] >= float(limit)
        assert row["ok"] is within, row


def test_four_writing_processes_lose_nothing(quick: Output) -> None:
    assert rows(quick)["processes"] == {
        "name": "processes",
        "value": 0,
        "unit": "events",
        "floor": None,
        "ratio": None,
        "target": "value <= 0",
        "ok": True,
    }


def test_the_bundle_is_one_real_task_with_a_card(quick: Output) -> None:
    # 40 events with 20 bodies of 1,024 octets, a card of about 8 KB, a proof and a record each: over 60 KB of content.
    size = rows(quick)["evidence.bundle-size"]
    assert size["unit"] == "KB"
    assert 60 < size["value"] < 1000


@pytest.mark.parametrize("name", ["group.threads", "group.asyncio", "rebuild.records", "rebuild.verifier"])
def test_rates_are_events_a_second(quick: Output, name: str) -> None:
    assert rows(quick)[name]["unit"] == "events/s"
