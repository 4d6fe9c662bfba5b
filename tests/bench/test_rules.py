"""How numbers become rows: medians, ratios, targets; all worked by hand."""

from __future__ import annotations

import sqlite3
import time
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.cli.bench.floor import Floor, alternate, slow_commits
from a2a_ledger.cli.bench.row import Row, Target

if TYPE_CHECKING:
    from pathlib import Path


def test_the_ratio_is_the_median_of_the_rounds_and_not_the_ratio_of_medians() -> None:
    ours, floor = iter([1.0, 9.0, 4.0]), iter([1.0, 1.0, 2.0])
    # ratios 1, 9, 2: median 2; medians 4 and 1, whose ratio would be 4
    assert alternate(lambda: next(ours), lambda: next(floor), 3) == (4.0, 1.0, 2.0)


def test_each_side_goes_first_in_every_other_round() -> None:
    order: list[str] = []

    def side(name: str) -> float:
        order.append(name)
        return 1.0

    alternate(lambda: side("ours"), lambda: side("floor"), 4)
    assert order == ["ours", "floor", "floor", "ours", "ours", "floor", "floor", "ours"]


@pytest.mark.parametrize(
    ("target", "value", "ratio", "ok"),
    [
        (Target(2.0, "ratio"), 9.0, 2.0, True),
        (Target(2.0, "ratio"), 1.0, 2.01, False),
        (Target(1.2, "ratio", at_most=False), 0.0, 1.2, True),
        (Target(1.2, "ratio", at_most=False), 9.0, 1.1, False),
        (Target(1.5), 1.5, None, True),
        (Target(100, at_most=False), 99.9, None, False),
        (Target(2.0, "ratio"), 1.0, None, False),
    ],
)
def test_a_target_holds_the_value_or_the_ratio(target: Target, value: float, ratio: float | None, ok: bool) -> None:
    assert Row("r", value, "ms", ratio=ratio, target=target).ok is ok


def test_a_row_that_was_not_measured_is_neither_met_nor_missed() -> None:
    assert Row("r", None, "ms", target=Target(1)).ok is None
    assert Row("r", 1.0, "ms").ok is None


def test_numbers_are_printed_with_four_digits() -> None:
    row = Row("append", 0.123456, "ms", 0.0987654, 1.25001, Target(2.0, "ratio"), "for people only")
    assert row.to_json() == {
        "name": "append",
        "value": 0.1235,
        "unit": "ms",
        "floor": 0.09877,
        "ratio": 1.25,
        "target": "ratio <= 2",
        "ok": True,
    }
    assert Row("r", 103_456.7, "events/s").to_json()["value"] == 103_500


def test_the_floor_is_durable_rows_of_the_size_that_was_asked_for(tmp_path: Path) -> None:
    with Floor(tmp_path, 777) as floor:
        floor.insert(3)
        floor.insert_batched(2, 5)
        assert floor.connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert floor.connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
    connection = sqlite3.connect(tmp_path / "floor.db")
    assert connection.execute("SELECT count(*), min(length(b)), max(length(b)) FROM f").fetchone() == (13, 777, 777)
    connection.close()


def test_slowed_commits_wait_once_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    with Floor(tmp_path, 10) as floor:
        slow_commits(floor.connection, 0.002)
        floor.insert(3)
        slow_commits(floor.connection, 0)
        floor.insert(1)
    assert waits == [0.002] * 3
