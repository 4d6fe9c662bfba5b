"""A process whose disk refuses one change after another, in each thing that it does.

Started with tests/faults/disk.c in front of the C library: `python -m tests.faults.failing ACTION ERRNO once|on`.
Prints, as JSON, how each try ended: `done`, or the error's name and text.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from a2a_ledger.audit import audit_ledger
from a2a_ledger.backup import back_up
from a2a_ledger.erasing import erase_content
from a2a_ledger.errors import LedgerError
from a2a_ledger.ledger import ContractLedger
from a2a_ledger.publish import publish
from a2a_ledger.rotation import rotate
from tests.store.facts import message

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_ledger.codec import Draft

_library = ctypes.CDLL(None)


class Life:
    """A ledger on the disk that fails, and what was acknowledged in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.acknowledged: set[str] = set()
        self.ledger = self.open("audit")

    def open(self, name: str) -> ContractLedger:
        """Open a ledger, or make one; each has a mark of its own."""
        mark = str(self.root / f"{name}-mark")
        return ContractLedger.open(self.root / name, origin="faults", mark_dir=mark, follow=False)

    def append(self) -> None:
        """Append an event of a new task, and one of the task before."""
        self.record(message(f"task:{self.ledger.new_task()}"))

    def record(self, draft: Draft) -> None:
        """Append, and remember what was acknowledged."""
        self.acknowledged.update(entry.c for entry in self.ledger.append([draft]))

    def sign(self) -> None:
        """Sign a head that covers one event more."""
        self.append()
        self.ledger.sign_checkpoint()

    def make(self, number: int) -> None:
        """Make another ledger."""
        self.open(f"other-{number}").close()

    def open_again(self) -> None:
        """Open the ledger once more beside itself, as another process does, and close that."""
        self.open("audit").close()

    def erase(self) -> None:
        """Erase the content of a task that has one event."""
        task = self.ledger.new_task()
        self.record(message(f"task:{task}"))
        erase_content(self.ledger, task, reason="request 17", requested_by="Jo Doe")

    def actions(self, number: int) -> dict[str, Callable[[], object]]:
        """Return what is tried, by name."""
        return {
            "append": self.append,
            "sign": self.sign,
            "rotate": lambda: rotate(self.ledger, "log", sleep=lambda _: None),
            "erase": self.erase,
            "open": self.open_again,
            "make": lambda: self.make(number),
            "backup": lambda: back_up(self.root / "audit", self.root / f"copy-{number}"),
            "publish": lambda: publish(self.ledger, self.root / f"tiles-{number}"),
        }


def refuse_each(life: Life, action: str, code: int, *, on: bool) -> list[str]:
    """Refuse the first change, then the second, until an action asked for fewer; the ledger goes on after each."""
    ends: list[str] = []
    number = 0
    while True:
        _library.fault_arm(ctypes.c_long(number), ctypes.c_int(code), ctypes.c_int(on))
        try:
            life.actions(number)[action]()
        except LedgerError as error:
            ends.append(f"{type(error).__name__}: {error}")
        else:
            ends.append("done")
        asked = _library.fault_disarm()
        life.append()
        if asked <= number:
            return ends
        number += 1 + number // 10  # every one at first; of a database that is written anew not each page


def main(action: str, code: int, *, on: bool) -> None:
    """Try one action, and look at the ledger afterwards as a new process would."""
    life = Life(Path(os.environ["FAULT_ROOT"]))
    life.append()
    ends = refuse_each(life, action, code, on=on)
    life.ledger.close()
    with life.open("audit") as ledger:
        lost = life.acknowledged - {record.c for record in ledger.store.read(0, 100_000)}
        faults = [str(fault) for fault in audit_ledger(ledger).faults]
    sys.stdout.write(json.dumps({"ends": ends, "lost": sorted(lost), "faults": faults}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), on=sys.argv[3] == "on")
