"""The second half of the demo: timeline, replay, export, verification, and one changed byte."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

from a2a_ledger.cli.demo import copy_ledger
from a2a_ledger.cli.demo.cases import Outcome
from a2a_ledger.ledger import ContractLedger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    Say = Callable[[str], None]

_SHOWN = 30


def examine(place: Path, scratch: Path, outcomes: Sequence[Outcome], say: Say) -> Outcome:
    """Take the stuck task through every reading verb, as commands, and say how each ended.

    Args:
        place: holds `ledger`; `bundles` and `policy.txt` are written beside it.
        scratch: for a copy of the ledger that is tampered with.
        outcomes: of the cases; their tasks are exported.
        say: prints.
    """
    outcome = Outcome("evidence")
    ledger, policy, bundles = place / "ledger", place / "policy.txt", place / "bundles"
    bundles.mkdir(exist_ok=True)
    policy.write_text(_policy(ledger), encoding="utf-8")
    task = outcomes[0].task
    say("\n4. What the person on call sees, and what an arbiter can check.")
    shown = _run(say, "--ledger", ledger, "show", task, limit=_SHOWN)
    outcome.check("the timeline says STUCK", holds=shown[0] == 0 and "STUCK" in shown[1])
    replayed = _run(say, "--ledger", ledger, "replay", task)
    outcome.check("the replay says the same", holds=replayed[0] == 0)
    for case in outcomes:
        file = bundles / f"{case.name.replace(' ', '-')}.zip"
        code, _ = _run(say if case is outcomes[0] else _quiet, "--ledger", ledger, "export", case.task, "-o", file)
        verified, _ = _run(say if case is outcomes[0] else _quiet, "verify", file, "--policy", policy)
        outcome.check(f"the bundle of {case.name!r} verifies", holds=(code, verified) == (0, 0))
    unknown, _ = _run(say, "verify", bundles / "stuck.zip", limit=3)
    outcome.check("without a trusted key it is self-consistent only", holds=unknown == 3)  # noqa: PLR2004 - exit code 3
    clean, _ = _run(say, "--ledger", ledger, "audit")
    outcome.check("the audit is clean", holds=clean == 0)
    say("\n5. One byte of the database is changed.")
    copy_ledger(ledger, scratch / "tampered")
    say(f"  changed: {_change_one_byte(scratch / 'tampered' / 'ledger.db')}")
    caught, text = _run(say, "--ledger", scratch / "tampered", "audit")
    outcome.check("the changed byte is caught", holds=caught == 1 and "record" in text.lower())
    return outcome


def _policy(ledger: Path) -> str:
    """Return the reader's trust, as an arbiter would hold it: the log's key, read out by telephone."""
    with ContractLedger.open(ledger, read_only=True) as opened:
        opening = opened.store.record(0)
        added = [r for r in opened.store.read_stream("ledger") if r.type == "key.added.v1"]
    log = next(str(record.data["vkey"]) for record in added if record.data["role"] == "log")
    return f"# Keys that the reader trusts for log {opening.log}\nlog {log}\nquorum none\n"


def _change_one_byte(database: Path) -> str:
    """Flip one bit in the stored record of a message, as a database administrator could."""
    with closing(sqlite3.connect(database)) as connection, connection:
        rows = "SELECT rowid, state FROM ledger_events WHERE topic = 'message.recorded.v1' ORDER BY rowid DESC LIMIT 1"
        rowid, state = connection.execute(rows).fetchone()
        at = len(state) // 2
        changed = state[:at] + bytes([state[at] ^ 1]) + state[at + 1 :]
        connection.execute("UPDATE ledger_events SET state = ? WHERE rowid = ?", (changed, rowid))
    return f"byte {at} of event {rowid - 1}, {state[at]:02x} to {changed[at]:02x}"


def _run(say: Say, *words: object, limit: int | None = None) -> tuple[int, str]:
    """Run one command of the real command line and print it as a transcript."""
    arguments = [str(word) for word in words]
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-c", "from a2a_ledger.cli import main; main()", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    say("\n  $ a2a-ledger " + " ".join(arguments))
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    for line in lines[:limit]:
        say(f"  {line}")
    if limit is not None and len(lines) > limit:
        say(f"  … {len(lines) - limit} more lines")
    say(f"  (exit {done.returncode})")
    return done.returncode, done.stdout + done.stderr


def _quiet(_: str) -> None:
    """Print nothing."""
