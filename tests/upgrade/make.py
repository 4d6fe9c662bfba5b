"""Writes a small ledger and its bundle as the release that is installed does; see README.md beside this file."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from a2a_ledger.export import export_task
from tests.evidence.recorded import dispute, opened


def make(place: Path) -> None:
    """Record two disputes, judge them, sign a head, and export the first.

    Clock and entropy are those of the tests, so that a run of the same release gives the same log, head and bundle.

    Args:
        place: the directory to make; the ledger goes to `ledger` in it.
    """
    with opened(place / "ledger") as ledger:
        first = dispute(ledger, polls=0)
        dispute(ledger, name="t2", polls=0)
        ledger.catch_up()
        ledger.sign_checkpoint()
        export_task(ledger, first.tasks["t1"], place / "bundle.zip")
        (place / "policy.txt").write_text(f"log {ledger.signers['log'].vkey}\nquorum none\n", "utf-8")
    for name in ("ledger.db", "keys.db"):  # no pages of what was deleted, nothing beside the file
        with closing(sqlite3.connect(place / "ledger" / name)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            database.execute("VACUUM")
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
