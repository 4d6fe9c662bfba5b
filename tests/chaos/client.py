"""Clients in one process: each records one event after the other, and asks again until each is acknowledged.

`python -m tests.chaos.client LEDGER ACKNOWLEDGED CLIENTS`; it ends at SIGTERM, when all that was begun is acknowledged.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from a2a_ledger.errors import BusyError, DiskFullError, UnreachableError
from a2a_ledger.ledger import ContractLedger
from tests.store.facts import message

if TYPE_CHECKING:
    from types import FrameType

_AGAIN = 0.05  # seconds before the same draft is handed in again
_PACE = 0.05  # seconds between two events of a client: the log is to stay short enough to be judged and audited


def main() -> None:
    """Record until SIGTERM."""
    place, acknowledged, clients = sys.argv[1:]
    stopping = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopping.set()

    signal.signal(signal.SIGTERM, stop)
    with ContractLedger.open(place, follow=False) as ledger, Path(acknowledged).open("w", encoding="utf-8") as out:
        running = [threading.Thread(target=_record, args=(ledger, out, stopping)) for _ in range(int(clients))]
        for client in running:
            client.start()
        while not stopping.wait(1):
            pass
        for client in running:
            client.join()


def _record(ledger: ContractLedger, out: TextIO, stopping: threading.Event) -> None:
    """Write a line for each acknowledged event: when, its message id, its place, its c.

    Then how often it was asked for, and how often it was refused because a disk was full.
    """
    task = ledger.new_task()
    count = 0
    while not stopping.is_set():
        name = f"{task}-{count}"
        draft = message(f"task:{task}", name)
        asked = refused = 0
        while True:
            asked += 1
            try:
                (at,) = ledger.append([draft])
            except (UnreachableError, BusyError):
                time.sleep(_AGAIN)
            except DiskFullError:
                refused += 1
                time.sleep(_AGAIN)
            else:
                break
        out.write(json.dumps([time.time(), name, at.n, at.c, asked, refused]) + "\n")
        out.flush()
        count += 1
        time.sleep(_PACE)


if __name__ == "__main__":
    main()
