"""Grows a ledger on disk to very many events and writes down how fast each stretch of them was: `make scale`.

    python -m tests.scale.grow DIR --events 10000000

Whole tasks of 40 events, with bodies of 1 KB as they are on the wire, 100 tasks at a time and a vendor with a card of
8 KB for each hundred; batches as an importer makes them, heads signed as always, read models not running. A ledger
that is there already is grown on. Beside it, `DIR.jsonl` has one line a stretch, in seconds and octets.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from a2a_ledger.cli.bench.material import EVENTS_OF_A_TASK, Vendor, record_tasks
from a2a_ledger.cli.bench.started import peak_memory
from a2a_ledger.ledger import ContractLedger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_ledger.events import JsonObject

AT_ONCE = 100
"""Tasks that run side by side, all of one vendor."""

STRETCH = AT_ONCE * EVENTS_OF_A_TASK + 1
"""Events of one line of what is written down: those tasks, and the fetch of the vendor's card."""

_WIDTH = 100_000  # events of one line of the summary
_LEFT = 15e9  # octets of the disk that are left alone


def grow(place: Path, events: int, left: float = _LEFT) -> list[JsonObject]:
    """Grow the ledger in a directory until it has that many events, or the disk is nearly full.

    Args:
        place: the ledger's directory; made when it is not there. Both copies of its mark lie beside it.
        events: how many at least.
        left: octets of the disk to leave free.

    Returns:
        What was measured of each stretch, which is also in the file beside the ledger.
    """
    measured: list[JsonObject] = []
    mark_dir = str(place.with_name(f"{place.name}-mark"))
    with (
        ContractLedger.open(place, origin="scale/ledger", follow=False, mark_dir=mark_dir) as ledger,
        place.with_name(f"{place.name}.jsonl").open("a", encoding="utf-8") as said,
    ):
        while (size := ledger.store.size()) < events:
            free = shutil.disk_usage(place).free
            if free < left:
                sys.stderr.write(f"stopped at {size:,} events: {free / 1e9:.1f} GB are free\n")
                break
            wall, cpu = time.perf_counter(), time.process_time()
            record_tasks(ledger, AT_ONCE, vendor=Vendor(f"vendor-{size}-{os.getpid()}.example"))
            line: JsonObject = {
                "process": os.getpid(),
                "events": ledger.store.size(),
                "wall": f"{time.perf_counter() - wall:.3f}",
                "cpu": f"{time.process_time() - cpu:.3f}",
                "octets": sum(file.stat().st_size for file in place.glob("*.db*")),
                "peak": f"{peak_memory() or 0:.1f}",
            }
            measured.append(line)
            said.write(f"{json.dumps(line)}\n")
            said.flush()
    return measured


def summary(lines: Sequence[JsonObject], width: int = _WIDTH) -> list[str]:
    """Say what an event took in each stretch of that many events, in the order of their sizes."""
    said: list[str] = []
    taken: list[JsonObject] = []
    ends = width
    for line in sorted(lines, key=lambda line: int(str(line["events"]))):
        taken.append(line)
        if int(str(line["events"])) >= ends:
            events = len(taken) * STRETCH
            cpu, wall = (sum(float(str(one[name])) for one in taken) / events * 1e6 for name in ("cpu", "wall"))
            said.append(
                f"up to {line['events']:,} events: {cpu:,.0f} µs of the processor an event, {wall:,.0f} µs by the clock"
            )
            taken = []
            ends = (int(str(line["events"])) // width + 1) * width
    return said


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("place", type=Path, help="directory of the ledger")
    parser.add_argument("--events", type=int, default=10_000_000, help="how many it is grown to")
    chosen = parser.parse_args()
    grow(chosen.place, chosen.events)
    lines = chosen.place.with_name(f"{chosen.place.name}.jsonl").read_text("utf-8").splitlines()
    sys.stdout.write("".join(f"{said}\n" for said in summary([json.loads(line) for line in lines])))


if __name__ == "__main__":
    _main()
