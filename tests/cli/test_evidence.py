"""replay, export, verify, audit, checkpoint, keys, import: verdicts and exit codes."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.checkpoint import Checkpoint, sign_checkpoint
from a2a_ledger.keys import generate, load_pem
from a2a_ledger.ledger import ContractLedger
from a2a_ledger_projections import peers, task_contracts
from tests.cli.conftest import objects, opened
from tests.divergence.story import PEER
from tests.evidence.forging import damaged
from tests.evidence.recorded import dispute, first_task, two_tasks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    Run = Callable[..., Result]


def test_replay_is_the_same_and_says_so(run: Run, ledger: Path) -> None:
    result = run("--ledger", ledger, "replay", "T1")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1].startswith("same: 11 events, 1 decision, 2 violations, equal byte for byte")
    (told,) = objects(run("--ledger", ledger, "--format", "json", "replay", "T1"))
    assert (told["verdict"], told["first_difference"], told["events"]) == ("same", None, 11)


def test_a_bundle_out_of_the_ledger_is_judged_by_what_the_reader_trusts(run: Run, home: Path) -> None:
    ledger = home / "disputed"
    with ContractLedger.open(ledger, origin="acme/audit", follow=False) as opening:
        dispute(opening)
        opening.catch_up()
    made = run("--ledger", ledger, "export", "T-t1", "-o", "case.zip")
    assert made.exit_code == 0
    assert made.stdout.startswith("case.zip ")
    blind = run("verify", "case.zip")
    assert (blind.exit_code, blind.stdout.splitlines()[0]) == (
        3,
        "self-consistent only. No key that you trust was given; keys inside a bundle prove nothing about who made it.",
    )
    vkey = run("--ledger", ledger, "keys", "vkeys", "--role", "log").stdout.strip()
    trusting = run("--format", "json", "verify", "case.zip", "--trust", vkey)
    (told,) = objects(trusting)
    assert (trusting.exit_code, told["verdict"], told["sides"]) == (0, "verified", "unilateral")
    assert {"claim": "I", "status": "VALID"}.items() <= told["claims"][0].items()
    (home / "policy.txt").write_text(f"log {vkey}\nquorum none\n")
    by_policy = run("verify", "case.zip", "--policy", "policy.txt")
    assert (by_policy.exit_code, by_policy.stdout.startswith("verified. Checkpoint ")) == (0, True)
    (home / "case.zip").write_bytes(damaged((home / "case.zip").read_bytes()))
    assert run("verify", "case.zip", "--trust", vkey).exit_code == 1


def test_verify_reads_only_its_arguments(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A2A_LEDGER", str(home / "there-is-no-such-ledger"))
    (home / "note.txt").write_text("no bundle")
    no_bundle = run("verify", "note.txt")
    assert (no_bundle.exit_code, no_bundle.stdout.splitlines()[0]) == (
        1,
        "invalid. No checkpoint can be read. not a bundle",
    )
    assert run("verify", "nowhere.zip").exit_code == 2
    (home / "bad.txt").write_text("nonsense\n")
    assert run("verify", "note.txt", "--policy", "bad.txt").exit_code == 2


def test_audit_is_clean_and_says_how_much_is_not_covered(run: Run, ledger: Path) -> None:
    with closing(sqlite3.connect(ledger / "ledger.db")) as db, db:
        db.execute("DELETE FROM ledger_checkpoints WHERE size > 10")
    (told,) = objects(run("--ledger", ledger, "--format", "json", "audit"))
    assert {"events", "leaves", "checkpoint", "anchored_size", "faults"} == told.keys()
    assert (told["events"], told["leaves"], told["anchored_size"]) == (25, 25, 0)


def test_audit_finds_a_changed_row_of_a_view(run: Run, ledger: Path) -> None:
    assert run("--ledger", ledger, "audit").exit_code == 0
    with closing(sqlite3.connect(ledger / "ledger.db")) as db, db:
        db.execute("UPDATE ledger_view_task_contracts_5 SET row = replace(row, 'input-required', 'completed')")
    result = run("--ledger", ledger, "audit")
    assert result.exit_code == 1
    assert result.stdout.startswith("1 fault: ")
    assert "task_contracts, row " in result.stdout
    (told,) = objects(run("--ledger", ledger, "--format", "json", "audit"))
    assert [fault["kind"] for fault in told["faults"]] == ["view"]


@pytest.mark.parametrize("column", ["key", "first", "row"])
@pytest.mark.parametrize("table", [task_contracts.VIEW.table, peers.VIEW.table])
def test_audit_finds_a_flipped_byte_in_any_column_of_a_view(run: Run, ledger: Path, table: str, column: str) -> None:
    changed = "first + 1" if column == "first" else f"substr({column}, 2) || 'x'"
    with closing(sqlite3.connect(ledger / "ledger.db")) as db, db:
        db.execute(f"UPDATE {table} SET {column} = {changed} WHERE key = (SELECT min(key) FROM {table})")  # noqa: S608 - our own names
    assert run("--ledger", ledger, "audit").exit_code == 1


def test_a_head_kept_elsewhere_is_held_against_the_log(run: Run, ledger: Path, home: Path) -> None:
    note = run("--ledger", ledger, "checkpoint", "export")
    assert note.exit_code == 0
    (home / "head.txt").write_text(note.stdout)
    assert run("--ledger", ledger, "audit", "--earlier", "head.txt").exit_code == 0
    signer = load_pem(ledger / "keys" / "log.pem", note.stdout.splitlines()[0])
    (home / "fork.txt").write_text(sign_checkpoint(Checkpoint(signer.name, 10, bytes(32)), signer))
    result = run("--ledger", ledger, "--format", "json", "audit", "--earlier", "fork.txt")
    (told,) = objects(result)
    assert (result.exit_code, [(f["kind"], f["detail"]) for f in told["faults"]]) == (
        1,
        [("earlier", "the first 10 events are not those that fork.txt was signed over")],
    )
    (home / "longer.txt").write_text(sign_checkpoint(Checkpoint(signer.name, 99, bytes(32)), signer))
    assert "the last 74 of them are not here" in run("--ledger", ledger, "audit", "--earlier", "longer.txt").stdout
    with opened(home / "elsewhere"):
        pass
    assert run("--ledger", "elsewhere", "audit", "--earlier", "head.txt").exit_code == 2


def test_a_head_that_nobody_known_signed_accuses_no_log(run: Run, ledger: Path, home: Path) -> None:
    note = run("--ledger", ledger, "checkpoint", "export").stdout
    (home / "broken.txt").write_text(note.replace(note.splitlines()[2], "A" * 43 + "=", 1))
    stranger = generate(note.splitlines()[0], lambda size: b"s" * size)
    (home / "strange.txt").write_text(sign_checkpoint(Checkpoint(stranger.name, 10, bytes(32)), stranger))
    for name in ("broken.txt", "strange.txt"):
        result = run("--ledger", ledger, "audit", "--earlier", name)
        assert (result.exit_code, result.stdout.startswith("no fault: ")) == (3, True)
        assert result.stderr.startswith(f"{name}: this head proves nothing about the log: ")
        assert "--trust" in result.stderr
    result = run("--ledger", ledger, "audit", "--earlier", "strange.txt", "--trust", stranger.vkey)
    assert (result.exit_code, "not those that strange.txt was signed over" in result.stdout) == (1, True)
    (home / "no.txt").write_text("no head")
    for words in (["--earlier", "no.txt"], ["--earlier", "strange.txt", "--trust", "no key"], ["--trust", "no key"]):
        assert run("--ledger", ledger, "audit", *words).exit_code == 2


@pytest.mark.parametrize("value", ["1.5", "x'ff00'", "4611686018427387904", "'x'"])
@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("ledger_events", "originator_id"),
        ("ledger_events", "topic"),
        ("ledger_events", "state"),
        ("ledger_tracking", "notification_id"),
        (task_contracts.VIEW.table, "row"),
        (task_contracts.VIEW.table, "first"),
    ],
)
def test_audit_reports_a_cell_of_any_type(run: Run, ledger: Path, table: str, column: str, value: str) -> None:
    with closing(sqlite3.connect(ledger / "ledger.db")) as db, db:
        place = "rowid = 8" if table == "ledger_events" else "1"
        db.execute(f"UPDATE {table} SET {column} = {value} WHERE {place}")  # noqa: S608 - our own names
    result = run("--ledger", ledger, "--format", "json", "audit")
    (told,) = objects(result)
    assert (result.exit_code, result.stderr, bool(told["faults"])) == (1, "", True)
    assert "unexpected" not in run("--ledger", ledger, "tasks").stderr


def test_an_event_that_was_put_far_away_keeps_no_reader_waiting(run: Run, ledger: Path) -> None:
    with closing(sqlite3.connect(ledger / "ledger.db")) as db, db:
        db.execute(
            "UPDATE ledger_events SET rowid = 4611686018427387904 WHERE rowid = (SELECT max(rowid) FROM ledger_events)"
        )
    assert run("--ledger", ledger, "audit").exit_code == 1
    assert run("--ledger", ledger, "tasks").exit_code == 0


def test_a_head_is_signed_shown_and_exported(run: Run, ledger: Path) -> None:
    (signed,) = objects(run("--ledger", ledger, "--format", "json", "checkpoint", "sign"))
    (shown,) = objects(run("--ledger", ledger, "--format", "json", "checkpoint", "show"))
    assert (signed["checkpoint"], shown["events"]) == (shown["checkpoint"], 25)
    exported = run("--ledger", ledger, "checkpoint", "export").stdout.splitlines()
    assert exported[:2] == [shown["origin"], "25"]
    help_text = run("checkpoint", "--help").stdout
    assert "Keep heads where he cannot reach" in help_text


def test_keys_are_listed_without_any_private_part(run: Run, ledger: Path) -> None:
    listed = objects(run("--ledger", ledger, "--format", "json", "keys", "list"))
    assert [(key["role"], key["state"], key["private_key_here"]) for key in listed] == [
        ("log", "current", True),
        ("statement", "current", True),
        ("export", "current", True),
    ]
    assert "PRIVATE" not in run("--ledger", ledger, "keys", "vkeys").stdout
    assert len(run("--ledger", ledger, "keys", "vkeys").stdout.splitlines()) == 4  # three keys, and the quorum


EXCHANGE = {
    "at": "2026-09-14T09:00:01Z",
    "request": {
        "method": "POST",
        "url": "https://vendor.example/a2a",
        "headers": [["content-type", "application/json"], ["a2a-version", "1.0"]],
        "body": json.dumps(
            {
                "jsonrpc": "2.0",
                "id": "1",
                "method": "SendMessage",
                "params": {"message": {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "hi"}]}},
            }
        ),
    },
    "response": {
        "status": 200,
        "headers": [["content-type", "application/json"]],
        "body": json.dumps(
            {
                "jsonrpc": "2.0",
                "id": "1",
                "result": {"task": {"id": "T1", "contextId": "C1", "status": {"state": "TASK_STATE_COMPLETED"}}},
            }
        ),
    },
    "error": None,
}


def test_importing_recorded_exchanges(run: Run, home: Path) -> None:
    run("--ledger", "audit", "init")
    (home / "file.jsonl").write_text(json.dumps(EXCHANGE) + "\n")
    done = run("--ledger", "audit", "import", "file.jsonl")
    assert done.exit_code == 0, done.stderr
    (task,) = objects(run("--ledger", "audit", "--format", "json", "tasks"))
    assert (task["peer_task"], task["state"], task["sent_at"]) == ("T1", "completed", "2026-09-14T09:00:01Z")
    again = run("--ledger", "audit", "import", "file.jsonl")
    assert (again.exit_code, again.stdout) == (2, "")
    (home / "broken.jsonl").write_text(json.dumps({**EXCHANGE, "at": "2026-09-14T09:00:02Z"}) + "\nnot json\n")
    broken = run("--ledger", "audit", "import", "broken.jsonl")
    assert (broken.exit_code, "line 2: " in broken.stderr) == (3, True)
    assert run("--ledger", "audit", "import", "nowhere.jsonl").exit_code == 2
    assert run("--ledger", "audit", "audit").exit_code == 0


def test_a_bundle_with_parts_withheld_verifies_for_what_its_reader_requires(run: Run, home: Path) -> None:
    ledger = home / "disputed"
    with ContractLedger.open(ledger, origin="acme/audit", follow=False) as opening:
        dispute(opening)
        opening.catch_up()
    assert run("--ledger", ledger, "export", "T-t1", "-o", "cut.zip", "--withhold", "blobs").exit_code == 0
    vkey = run("--ledger", ledger, "keys", "vkeys", "--role", "log").stdout.strip()
    whole = run("--format", "json", "verify", "cut.zip", "--trust", vkey)
    assert (whole.exit_code, objects(whole)[0]["verdict"]) == (3, "not proven")
    asked = run("--format", "json", "verify", "cut.zip", "--trust", vkey, "--require", "I,L,P,c2")
    assert (asked.exit_code, objects(asked)[0]["verdict"]) == (0, "verified")
    for wrong in ("I,Q", ""):
        refused = run("verify", "cut.zip", "--trust", vkey, "--require", wrong)
        assert (refused.exit_code, "--require: expected letters of I,L,P," in refused.stderr) == (2, True)


def test_an_export_whose_replay_is_open_says_so(run: Run, home: Path) -> None:
    with ContractLedger.open(home / "two", origin="acme/audit", follow=False) as opening:
        name = first_task(two_tasks(opening))
    done = run("--ledger", home / "two", "export", name, "-o", "case.zip")
    assert (done.exit_code, f"; `a2a-ledger --ledger {home / 'two'} export --peer {PEER}` does." in done.stdout) == (
        0,
        True,
    )
    (told,) = objects(run("--ledger", home / "two", "--format", "json", "export", name, "-o", "again.zip"))
    assert [one["peer"] for one in told["elsewhere"]] == [PEER]
