"""Exports very many tasks, and how much memory that takes: 24,000 tasks are a store of 240 a hundred times.

    python -m tests.scale.many_tasks DIR --stores 100

Each store is a context of 240 tasks, and becomes a bundle of its own, all of them in one process after another: what
one bundle can list ends at 5,000 tasks. Prints the most memory that the process held after each tenth of them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.cli.bench.material import PEER, URL
from a2a_ledger.cli.bench.started import peak_memory
from a2a_ledger.events import MessageRecorded
from a2a_ledger.export import export_context
from a2a_ledger.ledger import ContractLedger

if TYPE_CHECKING:
    from a2a_ledger.codec import Draft

STORE = 240
"""Tasks of one store."""

_MESSAGE = (
    b'{"jsonrpc": "2.0", "id": 1, "result": {"task": {"id": "%d", "contextId": "%d"}, "text": "' + b"x" * 900 + b'"}}'
)


class Exported(NamedTuple):
    """What was exported: tasks, octets of all bundles, and MB that the process held at most after each tenth."""

    tasks: int
    octets: int
    peaks: list[float]


def record(place: Path, stores: int, tasks: int = STORE) -> None:
    """Record that many stores of tasks, each task with a request and an answer of 1 KB."""
    with _opened(place, create=True) as ledger:
        for store in range(stores):
            drafts = [draft for number in range(tasks) for draft in _task(ledger, store, number)]
            ledger.append(drafts)


def _task(ledger: ContractLedger, store: int, number: int) -> list[Draft]:
    stream = f"task:{ledger.new_task()}"
    context = f"C-{store}"
    asked = MessageRecorded(peer=PEER, direction="out", leg="request", binding="JSONRPC", url=URL, context_id=context)
    answered = MessageRecorded(
        peer=PEER, direction="in", leg="response", binding="JSONRPC", url=URL, context_id=context
    )
    body = {"body": _MESSAGE % (number, store)}
    return [ledger.draft(event, stream=stream, blobs=body) for event in (asked, answered)]


def export(place: Path, stores: int) -> Exported:
    """Export every store in a process of its own, into files that are thrown away."""
    run = [sys.executable, "-m", __spec__.name, str(place), "--stores", str(stores), "--alone"]
    done = subprocess.run(run, check=True, capture_output=True, text=True)
    return Exported(*json.loads(done.stdout))


def _export(place: Path, stores: int) -> Exported:
    tasks = octets = 0
    peaks: list[float] = []
    with _opened(place, create=False) as ledger, tempfile.TemporaryDirectory(dir=place.parent) as folder:
        for store in range(stores):
            made = export_context(ledger, f"C-{store}", Path(folder) / "bundle.zip")
            tasks, octets = tasks + len(made.tasks), octets + made.octets
            if (store + 1) % max(1, stores // 10) == 0:
                peaks.append(round(peak_memory() or 0, 1))
    return Exported(tasks, octets, peaks)


def _opened(place: Path, *, create: bool) -> ContractLedger:
    mark_dir = f"{place}-mark"
    return ContractLedger.open(place, origin="scale/many", create=create, follow=False, mark_dir=mark_dir)


def main() -> None:
    """Record what is not there yet, export, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("place", type=Path, help="directory of the ledger")
    parser.add_argument("--stores", type=int, default=100, help=f"how many, of {STORE} tasks each")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.alone:
        sys.stdout.write(json.dumps(_export(chosen.place, chosen.stores)))
        return
    if not chosen.place.exists():
        record(chosen.place, chosen.stores)
    made = export(chosen.place, chosen.stores)
    peaks = ", ".join(f"{held:.0f}" for held in made.peaks)
    sys.stdout.write(f"{made.tasks:,} tasks, {made.octets / 1e6:.0f} MB of bundles; MB held at most: {peaks}\n")


if __name__ == "__main__":
    main()
