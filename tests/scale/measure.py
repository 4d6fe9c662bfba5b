"""Measures what a long ledger costs to open, to prove from, to read, to audit and to publish: `make scale`.

    python -m tests.scale.measure DIR

Each row in a process of its own, so that nothing is warm but the system's own cache of the file; processor time stands
beside the time by the clock, since only that says something on a machine that does other things too. Memory is the
most that the process ever held (VmHWM). The ledger is written to: heads are signed, and the read models are
made.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from a2a_ledger.audit import audit_ledger
from a2a_ledger.cli.bench.material import EVENTS_OF_A_TASK, Vendor, record_tasks
from a2a_ledger.cli.bench.started import peak_memory
from a2a_ledger.export import export_task
from a2a_ledger.followers import load_followers
from a2a_ledger.ledger import ContractLedger
from a2a_ledger.merkle import leaf_hash, verify_inclusion
from a2a_ledger.publish import publish
from a2a_ledger.verify import verify
from a2a_ledger_projections.base import ViewFollower

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2a_ledger.events import JsonObject

_SEED = 20261130  # which leaves and tasks are taken is the same in every run
_REPEATS = 9
_TASKS = 20  # of one round of appending
_ENTRY = "from a2a_ledger.cli import main; main()"


class Took:
    """How long something took: seconds by the clock and of the processor."""

    def __init__(self, work: Callable[[], object]) -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        self.wall, self.cpu = time.perf_counter() - wall, time.process_time() - cpu

    def __str__(self) -> str:
        """Say both in the unit that can be read."""
        return f"{_spelled(self.wall)} ({_spelled(self.cpu)})"


def _spelled(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def _again(work: Callable[[], object]) -> str:
    """Say what it takes the first time, and then, as a median."""
    first, rest = Took(work), [Took(work) for _ in range(_REPEATS)]
    wall, cpu = median(one.wall for one in rest), median(one.cpu for one in rest)
    return f"first {first}, then {_spelled(wall)} ({_spelled(cpu)})"


def _opened(place: Path) -> ContractLedger:
    return ContractLedger.open(place, create=False, follow=False, mark_dir=f"{place}-mark")


def _a_task(ledger: ContractLedger) -> str:
    """Return one of the tasks, the first behind a place of our choice."""
    (stream,) = ledger.store.streams("task:", after="task:8", limit=1)
    return stream.removeprefix("task:")


def opening(place: Path) -> str:
    """Opens and closes the ledger."""
    return _again(lambda: _opened(place).close())


def appending(place: Path) -> str:
    """Appends whole tasks to it and to a fresh ledger in turn, so that whatever else the machine does meets both."""
    beside = place.with_name(f"{place.name}-fresh")
    mark_dir = f"{beside}-mark"
    for folder in (beside, Path(mark_dir)):
        shutil.rmtree(folder, ignore_errors=True)
    with (
        _opened(place) as long,
        ContractLedger.open(beside, origin="scale/fresh", follow=False, mark_dir=mark_dir) as fresh,
    ):
        pairs = [[_append(ledger, number) for ledger in (fresh, long)] for number in range(_REPEATS + 1)][1:]
        size = long.store.size()
    at_first, at_last = (median(pair[side] for pair in pairs) for side in (0, 1))
    ratio = median(long / fresh for fresh, long in pairs)
    return (
        f"{at_first * 1e6:.0f} µs of the processor an event in a fresh ledger, {at_last * 1e6:.0f} behind {size:,} "
        f"events: {ratio:.2f} x"
    )


def _append(ledger: ContractLedger, number: int) -> float:
    """Return what an event of some tasks takes, in seconds of the processor."""
    vendor = Vendor(f"beside-{ledger.store.size()}-{number}.example")
    return Took(lambda: record_tasks(ledger, _TASKS, vendor=vendor)).cpu / (_TASKS * EVENTS_OF_A_TASK + 1)


def proof(place: Path) -> str:
    """Proves inclusion of leaves here and there."""
    choose = random.Random(_SEED)  # noqa: S311 - which leaves are proved is no secret
    with _opened(place) as ledger:
        size = ledger.store.size()
        root = ledger.store.root(size)

        def prove() -> None:
            n = choose.randrange(size)
            (leaf,) = ledger.store.leaves(n, n + 1)
            verify_inclusion(n, size, leaf_hash(leaf), ledger.store.inclusion(n, size), root)

        return _again(prove)


def bundle(place: Path) -> str:
    """Exports a task and verifies the bundle."""
    with _opened(place) as ledger:
        task, key = _a_task(ledger), ledger.signers["log"].vkey
        made = export_task(ledger, task)
        out = _again(lambda: export_task(ledger, task))
        verdict = verify(made.data, trust=[key]).verdict
        checked = _again(lambda: verify(made.data, trust=[key]))
    return f"{made.events} events, {made.octets / 1e3:.0f} KB: {out}; verification {checked}: {verdict}"


def task_verbs(place: Path) -> str:
    """Runs `tasks`, `tasks --state` and `show`, as typed."""
    with _opened(place) as ledger:
        task = _a_task(ledger)
    said: list[str] = []
    for words in (("tasks",), ("tasks", "--state", "failed"), ("show", task)):
        command = [sys.executable, "-c", _ENTRY, "--ledger", str(place), *words]
        took = Took(lambda command=command: subprocess.run(command, check=True, capture_output=True))  # type: ignore[misc]  # a lambda with a default
        said.append(f"{words[0]} {_spelled(took.wall)}")
    return ", ".join(said)


def rebuilding(place: Path) -> str:
    """Makes the read models from the first event; the verifier is none of them."""
    with _opened(place) as ledger:
        size = ledger.store.size()
        views = [one for one in load_followers(ledger) if isinstance(one, ViewFollower)]
        took = {view.name: Took(view.start_over) for view in views}
    rates = (f"{name} {one}: {size / one.cpu:,.0f} events a second of the processor" for name, one in took.items())
    return ", ".join(rates)


def auditing(place: Path) -> str:
    """Audits the whole."""
    with ContractLedger.open(place, read_only=True, mark_dir=f"{place}-mark") as ledger:
        size = ledger.store.size()
        faults: list[int] = []
        took = Took(lambda: faults.append(len(audit_ledger(ledger).faults)))
    return f"{took}: {size / took.cpu:,.0f} events a second of the processor, {faults[0]} faults"


def publishing(place: Path) -> str:
    """Publishes all tiles, and then what is new, which is nothing."""
    folder = place.with_name(f"{place.name}-tiles")
    shutil.rmtree(folder, ignore_errors=True)
    with _opened(place) as ledger:
        first, again = Took(lambda: publish(ledger, folder)), Took(lambda: publish(ledger, folder))
    files = [file for file in folder.rglob("*") if file.is_file()]
    octets = sum(file.stat().st_size for file in files)
    return f"{len(files):,} files, {octets / 1e6:.0f} MB: {first}; with nothing new {again}"


ROWS = {
    "append": appending,
    "open": opening,
    "proof": proof,
    "bundle": bundle,
    "rebuild": rebuilding,
    "tasks": task_verbs,
    "publish": publishing,
    "audit": auditing,
}
"""What is measured, by the name that `--row` takes."""


def measured(place: Path, rows: Sequence[str]) -> JsonObject:
    """Measure rows, each in a process of its own.

    Returns:
        By name: what it took, and the most memory that its process held.
    """
    found: JsonObject = {"disk": _disk(place)}
    for row in rows:
        run = [sys.executable, "-m", __spec__.name, str(place), "--alone", row]
        done = subprocess.run(run, check=True, capture_output=True, text=True)
        found[row] = json.loads(done.stdout)
    return found


def _disk(place: Path) -> str:
    with _opened(place) as ledger:
        size = ledger.store.size()
    octets = sum(file.stat().st_size for file in place.glob("*.db*"))
    return f"{size:,} events, {octets / 1e9:.2f} GB, {octets / size * 1e6 / 1e9:.2f} GB a million events"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("place", type=Path, help="directory of the ledger")
    parser.add_argument("--row", action="append", choices=list(ROWS), help="only this; may be repeated")
    parser.add_argument("--alone", choices=list(ROWS), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.alone:
        said = ROWS[chosen.alone](chosen.place)
        sys.stdout.write(json.dumps(f"{said}; {peak_memory() or 0:.0f} MB"))
        return
    for name, took in measured(chosen.place, chosen.row or list(ROWS)).items():
        sys.stdout.write(f"| {name} | {took} |\n")


if __name__ == "__main__":
    main()
