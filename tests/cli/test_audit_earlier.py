"""`audit --earlier` on a database that was tampered with: no change keeps the head from being held against it."""

from __future__ import annotations

import sqlite3
from base64 import b64decode
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.checkpoint import Checkpoint, sign_checkpoint
from a2a_ledger.keys import generate, load_pem
from tests.cli.conftest import objects

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    from a2a_ledger.keys import Signer

    Run = Callable[..., Result]

# Each takes away something by which heads, keys or leaves are found.
CHANGES = (
    "DELETE FROM ledger_tags",
    "DELETE FROM ledger_tags WHERE tag LIKE 'type:key%'",
    "UPDATE ledger_events SET topic = 'x' WHERE topic LIKE 'key.%'",
    "UPDATE ledger_events SET originator_id = 'peer:x', originator_version = 100 + rowid WHERE topic LIKE 'key.%'",
    "UPDATE ledger_events SET t = 'x' WHERE rowid = 12",
    "UPDATE ledger_events SET c = 1.5 WHERE rowid = 12",
    "UPDATE ledger_events SET state = x'00' WHERE rowid = 12",
    "DELETE FROM ledger_checkpoints",
    "UPDATE ledger_tiles SET hashes = 'x'",
)


@pytest.fixture
def signer(run: Run, ledger: Path) -> Signer:
    note = run("--ledger", ledger, "checkpoint", "export").stdout
    return load_pem(ledger / "keys" / "log.pem", note.splitlines()[0])


def head(path: Path, signer: Signer, size: int) -> Path:
    path.write_text(sign_checkpoint(Checkpoint(signer.name, size, bytes(32)), signer))
    return path


def change(ledger: Path, statement: str) -> None:
    with closing(sqlite3.connect(ledger / "ledger.db")) as db:
        db.execute(statement)
        db.commit()


@pytest.mark.parametrize("statement", CHANGES)
def test_a_head_of_another_history_is_told_whatever_else_was_done(
    run: Run, ledger: Path, home: Path, signer: Signer, statement: str
) -> None:
    fork, longer = head(home / "fork.txt", signer, 10), head(home / "longer.txt", signer, 99)
    change(ledger, statement)
    words = ["--format", "json", "audit", "--earlier", fork, "--earlier", longer]
    result = run("--ledger", ledger, *words)
    (told,) = objects(result)
    details = [(fault["kind"], fault["detail"]) for fault in told["faults"]]
    assert result.exit_code == 1
    assert ("earlier", f"the first 10 events are not those that {fork} was signed over") in details
    assert any(kind == "truncated" and f"{longer} covers 99 events" in detail for kind, detail in details)


def test_a_key_that_the_reader_trusts_speaks_for_kept_heads_and_the_mark_too(
    run: Run, ledger: Path, home: Path, signer: Signer
) -> None:
    """A head by a key that the log does not name accuses nobody; with --trust it is one of the log's."""
    other = generate(signer.name, lambda size: b"o" * size)
    size, root = run("--ledger", ledger, "checkpoint", "export").stdout.splitlines()[1:3]
    with closing(sqlite3.connect(ledger / "ledger.db")) as db:
        note = sign_checkpoint(Checkpoint(signer.name, int(size), b64decode(root)), other)
        db.execute("UPDATE ledger_checkpoints SET note = ? WHERE size = ?", (note, int(size)))
        db.commit()
    for mark in (ledger / "high-water", *(home / "home").rglob("*")):
        if mark.is_file():
            mark.write_text(note, encoding="utf-8")
    assert run("--ledger", ledger, "audit").exit_code == 1
    assert run("--ledger", ledger, "audit", "--trust", other.vkey).exit_code == 0
    assert run("--ledger", ledger, "audit", "--trust", "junk").exit_code == 2
