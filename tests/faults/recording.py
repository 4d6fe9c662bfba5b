"""A process that records on a watched disk, and says in the disk's log what it was told is durable.

Started with tests/faults/disk.c in front of the C library: `python -m tests.faults.recording`.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from a2a_ledger.erasing import erase_content
from a2a_ledger.ledger import ContractLedger
from a2a_ledger.rotation import rotate
from tests.store.facts import message

OPENED, SIGNED, ROTATED, ERASED = "opened", "signed", "rotated", "erased"


def say(text: str) -> None:
    """Note what a caller may rely on from here."""
    ctypes.CDLL(None).fault_note(text.encode())


def append(ledger: ContractLedger, stream: str, name: str, count: int = 1) -> None:
    """Append messages in one call; say the commitments when it has returned."""
    appended = ledger.append([message(stream, f"{name}-{number}") for number in range(count)])
    say(" ".join(["appended", *(entry.c for entry in appended)]))


def record(root: Path) -> None:
    """Make a ledger, and do what a process does with it in its life; open it a second time in between."""
    place, mark = root / "audit", str(root / "mark")
    with ContractLedger.open(place, origin="faults", mark_dir=mark) as ledger:
        say(OPENED)
        first = ledger.new_task()
        for number in range(6):
            append(ledger, f"task:{first}", f"first-{number}")
        ledger.sign_checkpoint()
        say(SIGNED)
        append(ledger, f"task:{ledger.new_task()}", "many", 40)
    with ContractLedger.open(place, mark_dir=mark) as ledger:
        append(ledger, f"task:{ledger.new_task()}", "again", 3)
        for role in ("statement", "log"):
            rotate(ledger, role, sleep=lambda _: None)
            say(f"{ROTATED} {role}")
            append(ledger, f"task:{ledger.new_task()}", f"behind-{role}")
        erase_content(ledger, first, reason="request 17", requested_by="Jo Doe")
        say(f"{ERASED} {first}")
        append(ledger, f"task:{ledger.new_task()}", "last")


if __name__ == "__main__":
    record(Path(os.environ["FAULT_ROOT"]))
