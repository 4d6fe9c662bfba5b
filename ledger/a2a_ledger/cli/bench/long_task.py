"""Rows about a long task: how much memory its export and its verification take, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from a2a_ledger.cli.bench.material import PEER, URL
from a2a_ledger.cli.bench.row import Row, Target
from a2a_ledger.errors import LedgerError
from a2a_ledger.events import MessageRecorded

if TYPE_CHECKING:
    from a2a_ledger.cli.bench.place import Place
    from a2a_ledger.ledger import ContractLedger

_AT_ONCE = 1000
_EXPORT = """
import json, sys, time
from pathlib import Path
from a2a_ledger.cli.bench.started import peak_memory
from a2a_ledger.export import export_task
from a2a_ledger.ledger import ContractLedger

with ContractLedger.open(sys.argv[1], create=False, follow=False, mark_dir=sys.argv[2]) as ledger:
    before, began = peak_memory(), time.perf_counter()
    made = export_task(ledger, sys.argv[3], Path(sys.argv[4]))
    took = time.perf_counter() - began
    print(json.dumps([None if before is None else peak_memory() - before, took, made.octets / 1e6]))
"""


_VERIFY = """
import json, sys, time
from pathlib import Path
from a2a_ledger.cli.bench.started import peak_memory
from a2a_ledger.verify import verify

began = time.perf_counter()
verdict = verify(Path(sys.argv[1]), trust=[sys.argv[2]]).verdict
print(json.dumps([peak_memory(), time.perf_counter() - began, verdict]))
"""


def long_task(place: Place) -> list[Row]:
    """Export a task of very many events, each a short event of a stream, and verify the bundle."""
    with place.ledger("long-task") as ledger:
        task, key = _record(ledger, place.scale.long_task), ledger.signers["log"].vkey
    out = place.path("long-task.zip")
    grown, took, size = _apart(_EXPORT, place.path("long-task"), place.path("long-task-mark"), task, out)
    peak, judged, verdict = _apart(_VERIFY, out, key)
    if verdict != "verified":
        raise LedgerError(f"expected the long bundle of the benchmark to verify, found {verdict!r}")
    events = f"{place.scale.long_task:,} events"
    exported = f"most memory of the export beside what was held before; {events}, {size:.0f} MB in {took:.0f} s"
    verified = f"most memory of the process that verifies them; {events} in {judged:.0f} s"
    return [
        Row("evidence.export_100k", grown, "MB", target=Target(100), remark=exported),
        Row("evidence.verify_100k", peak, "MB", target=Target(256), remark=verified),
    ]


def _apart(code: str, *arguments: object) -> Any:  # noqa: ANN401 - what json.loads gives
    """Run this in a process of its own; return what it prints."""
    run = [sys.executable, "-c", code, *map(str, arguments)]
    return json.loads(subprocess.run(run, capture_output=True, text=True, check=True).stdout)  # noqa: S603 - our own words


def _record(ledger: ContractLedger, count: int) -> str:
    """Append a task of that many events; return its local id."""
    task = ledger.new_task()
    event = MessageRecorded(
        peer=PEER,
        direction="in",
        leg="stream-event",
        binding="JSONRPC",
        url=URL,
        method="SendStreamingMessage",
        wire_version="1.0",
        task_id="T",
    )
    body = b'data: {"jsonrpc":"2.0","id":1,"result":{"statusUpdate":{"taskId":"T","n":%d}}}\n\n'
    for start in range(0, count, _AT_ONCE):
        numbers = range(start, min(start + _AT_ONCE, count))
        ledger.append([ledger.draft(event, stream=f"task:{task}", blobs={"body": body % n}) for n in numbers])
    return task
