"""The measuring commands measure what they say, at a size that a test can wait for."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.ledger import ContractLedger
from tests.scale import many_tasks
from tests.scale.grow import STRETCH, grow, summary
from tests.scale.measure import ROWS, measured
from tests.scale.memory import Memory

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.events import JsonObject

STORES = 20
MOST_GROWTH = 6.0
"""MB that the second half of many exports may need beyond the first half."""


@pytest.fixture(autouse=True)
def _away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.mark.slow
def test_a_ledger_is_grown_on_where_it_stopped_and_measured(tmp_path: Path) -> None:
    place = tmp_path / "long"
    (first,) = grow(place, 100, left=0)
    (second,) = grow(place, STRETCH + 100, left=0)
    assert (first["events"], second["events"]) == (STRETCH + 4, 2 * STRETCH + 4)  # four are of the log and its keys
    assert len(place.with_name("long.jsonl").read_text("utf-8").splitlines()) == 2
    assert grow(place, 10 * STRETCH, left=1e18) == []  # no disk has so much left
    found = measured(place, [row for row in ROWS if row != "tasks"])
    assert str(found["disk"]).startswith(f"{2 * STRETCH + 4:,} events")
    assert re.match(r"\d+ µs of the processor an event in a fresh ledger, \d+ behind ", str(found["append"]))
    assert re.search(r"41 events, 1\d\d KB: .*: verified", str(found["bundle"]))
    assert ", 0 faults; " in str(found["audit"])
    assert "tasks/" not in str(found["publish"])
    assert re.match(r"\d+ files, ", str(found["publish"]))


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_tasks_that_are_exported(tmp_path: Path) -> None:
    place = tmp_path / "many"
    many_tasks.record(place, STORES, tasks=24)
    made = many_tasks.export(place, STORES)
    assert made.tasks == STORES * 24
    assert len(made.peaks) == 10
    assert made.peaks[-1] < 256
    assert made.peaks[-1] - made.peaks[4] < MOST_GROWTH
    with ContractLedger.open(place, read_only=True) as ledger:
        assert len(ledger.store.streams("task:")) == made.tasks


@pytest.mark.slow
def test_the_short_soak_runs_everything_and_loses_nothing() -> None:
    run = [sys.executable, "-m", "tests.scale.soak", "--minutes", "0.3"]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\d+ guarded; .*\d+ through the proxy", done.stdout)
    assert re.search(
        r"ledger of the guard: [\d,]+ events, 0 faults\nledger of the proxy: [\d,]+ events, 0 faults", done.stdout
    )
    assert done.stdout.endswith("too short to judge memory; whole and clean\n")


def test_memory_that_climbs_is_not_flat() -> None:
    flat, climbing = Memory("flat"), Memory("climbing")
    for second in range(0, 1800, 10):
        flat.samples.append((second, 60.0 if second < 100 else 90.0 + second % 3))
        climbing.samples.append((second, 90.0 + second / 60))
    assert flat.is_flat(300, 8.0)
    assert not climbing.is_flat(300, 8.0)
    first, last = climbing.after(300)
    assert (round(first), round(last)) == (98, 117)  # a MB a minute: the middles of 300..675 and of 1425..1800
    assert flat.is_flat(3000, 8.0)  # nothing after the warm-up: the newest sample stands for all


def test_windows_are_of_one_process_and_say_events_a_second_of_the_processor() -> None:
    lines: list[JsonObject] = [{"events": 4001 * number, "cpu": "2.000", "wall": "4.000"} for number in range(1, 11)]
    assert summary(lines, width=20_000) == [
        "up to 20,005 events: 500 µs of the processor an event, 1,000 µs by the clock",
        "up to 40,010 events: 500 µs of the processor an event, 1,000 µs by the clock",
    ]
