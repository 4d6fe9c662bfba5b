"""Four processes that append to one ledger: is anything lost or refused, and how long does one wait?

    python -m a2a_ledger.cli.bench.processes DIR MARK_DIR COUNT

is one of them: it says when it is ready, waits for a line on stdin, appends, and prints one line of JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import ExitStack
from typing import IO, TYPE_CHECKING, cast

from a2a_ledger.audit import audit_ledger
from a2a_ledger.cli.bench.material import Messages
from a2a_ledger.cli.bench.row import Row, Target
from a2a_ledger.errors import LedgerError
from a2a_ledger.ledger import ContractLedger

if TYPE_CHECKING:
    from a2a_ledger.cli.bench.place import Place
    from a2a_ledger.events import JsonObject

WRITERS = 4
_NAME = "processes"


def processes(place: Place) -> list[Row]:
    """Run four writers at once, then audit what they left."""
    count = place.scale.writes
    with place.ledger(_NAME) as ledger:
        before = ledger.store.size()
    took, told = _run(place, count)
    with place.ledger(_NAME) as ledger:
        lost = before + WRITERS * count - ledger.store.size()
        faults = len(audit_ledger(ledger).faults)
    refused = sum(cast("int", one["refused"]) for one in told)
    worst = max(cast("int", one["worst_us"]) for one in told) / 1e3
    wrong = abs(lost) + refused + faults
    remark = f"{WRITERS * count} events in {took:.2f} s; lost {lost}, refused {refused}, faults of the audit {faults}"
    return [
        Row("processes", wrong, "events", target=Target(0), remark=remark),
        Row("processes.worst-append", worst, "ms", target=Target(200), remark="the target is an aim"),
    ]


def _run(place: Place, count: int) -> tuple[float, list[JsonObject]]:
    """Return how long all writers took together, in seconds, and what each one told."""
    words = [sys.executable, "-m", __name__, str(place.path(_NAME)), str(place.folder / f"{_NAME}-mark"), str(count)]
    with ExitStack() as stack:
        running = [
            stack.enter_context(
                subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603 - ours
            )
            for _ in range(WRITERS)
        ]
        for process in running:
            _line(process.stdout)
        began = time.perf_counter()
        for process in running:
            _say(process.stdin)
        told = [cast("JsonObject", json.loads(_line(process.stdout))) for process in running]
        return time.perf_counter() - began, told


def _line(stream: IO[str] | None) -> str:
    line = stream.readline() if stream else ""
    if not line:
        raise LedgerError("a writing process of the benchmark ended early; its own error stands above")
    return line


def _say(stream: IO[str] | None) -> None:
    if stream:
        stream.write("go\n")
        stream.flush()


def _write(directory: str, mark_dir: str, count: int) -> JsonObject:
    refused, worst = 0, 0.0
    with ContractLedger.open(directory, create=False, follow=False, mark_dir=mark_dir) as ledger:
        messages = Messages(ledger, WRITERS)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        for number in range(count):
            draft = messages.draft(number)
            began = time.perf_counter()
            try:
                ledger.append([draft])
            except LedgerError as error:
                refused += 1
                sys.stderr.write(f"{error}\n")
            worst = max(worst, time.perf_counter() - began)
    return {"refused": refused, "worst_us": int(worst * 1e6)}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_write(sys.argv[1], sys.argv[2], int(sys.argv[3]))) + "\n")
