"""The command line over a ledger whose events lie on a PostgreSQL server."""

from __future__ import annotations

import json
import secrets
import time
from typing import TYPE_CHECKING

import psycopg
import pytest

from a2a_ledger.cli.unfinished import VERIFIER
from a2a_ledger.errors import StoreError, UnreachableError
from a2a_ledger.ledger import ContractLedger
from a2a_ledger.store import Server
from tests.evidence.recorded import dispute
from tests.projections.logbook import CARD, MTLS, Logbook

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    from tests.postgres_server import PostgresServer

    Run = Callable[..., Result]


@pytest.fixture
def server(postgres: PostgresServer) -> Server:
    return Server(postgres.url, f"t_{secrets.token_hex(8)}")


@pytest.fixture
def audit(home: Path, server: Server) -> Path:
    """Make a ledger on the server with one stuck, one finished and one stopped task, and follow it once."""
    place = home / "audit"
    with ContractLedger.open(place, origin="acme/audit", follow=False, server=server) as ledger:
        log = Logbook(store=ledger.store)
        log.stuck()
        task, _, request = log.sent(body=CARD)
        log.bind(task, request, task_id="T2")
        log.answer(task, "completed", answers=request, task_id="T2")
        log.fetch(MTLS, etag='"b"', purpose="pre-send", body=CARD)
        stopped = log.task()
        log.decide(stopped)
        log.abort(stopped)
        ledger.catch_up()
    return place


def lines(result: Result) -> list[dict[str, object]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_lists_and_stories_are_those_of_any_ledger(run: Run, audit: Path) -> None:
    assert not (audit / "ledger.db").exists()
    tasks = lines(run("--ledger", str(audit), "--format", "json", "tasks"))
    assert sorted(str(task["state"]) for task in tasks) == ["aborted", "completed", "input-required"]
    for task in tasks:
        shown = run("--ledger", str(audit), "--format", "json", "show", str(task["task"]))
        assert json.loads(shown.stdout)["task"] == task["task"]
    assert [row["fetches"] for row in lines(run("--ledger", str(audit), "--format", "json", "peers"))] != []
    found = run("--ledger", str(audit), "--format", "json", "violations")
    assert (found.exit_code, "auth-demand" in found.stdout) == (1, True)
    replayed = run("--ledger", str(audit), "replay", str(tasks[0]["task"]))
    assert replayed.exit_code == 0, replayed.output


def test_an_audit_is_clean_and_finds_what_an_owner_changed(run: Run, audit: Path, server: Server) -> None:
    clean = run("--ledger", str(audit), "--format", "json", "audit")
    report = json.loads(clean.stdout)
    assert (clean.exit_code, report["faults"]) == (0, [])
    assert report["events"] == report["leaves"] == report["checkpoint"]["size"]
    with psycopg.connect(server.url, options=f"-c search_path={server.schema}") as owner:
        owner.execute("SET session_replication_role = replica")
        owner.execute("UPDATE ledger_events SET c = sha256(c) WHERE rowid = 9")
        owner.execute("DELETE FROM ledger_tags WHERE ctid IN (SELECT min(ctid) FROM ledger_tags)")
        owner.execute("UPDATE ledger_tracking SET notification_id = 3 WHERE application_name LIKE 'peers%'")
    damaged = run("--ledger", str(audit), "--format", "json", "audit")
    kinds = {fault["kind"] for fault in json.loads(damaged.stdout)["faults"]}
    assert damaged.exit_code == 1
    assert kinds == {"record", "checkpoint", "lookup", "tracking", "view"}


def test_a_bundle_of_it_verifies(run: Run, home: Path, server: Server) -> None:
    audit = home / "audit"
    with ContractLedger.open(audit, origin="acme/audit", follow=False, server=server) as ledger:
        dispute(ledger)
        ledger.catch_up()
    made = run("--ledger", str(audit), "export", "T-t1", "-o", str(home / "one.zip"))
    assert made.exit_code == 0, made.output
    keys = run("--ledger", str(audit), "keys", "vkeys", "--role", "log").stdout.strip()
    judged = run("--format", "json", "verify", str(home / "one.zip"), "--trust", keys)
    assert (judged.exit_code, json.loads(judged.stdout)["verdict"]) == (0, "verified")


def test_init_names_the_server_in_the_settings_and_begins_the_log(run: Run, home: Path, server: Server) -> None:
    place = home / "new"
    made = run("--ledger", str(place), "init", "--store", server.url, "--schema", server.schema)
    assert made.exit_code == 0, made.output
    assert f'url = "{server.url}"\nschema = "{server.schema}"\n' in (place / "config.toml").read_text()
    assert run("--ledger", str(place), "audit").exit_code == 0
    again = run("--ledger", str(home / "other"), "init", "--store", server.url, "--schema", server.schema)
    assert again.exit_code != 0
    assert "expected no log in" in again.stderr
    assert not (home / "other").exists()


def test_a_directory_whose_log_never_began_begins_it(
    home: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: object) -> None:
        raise StoreError("the machine stops here")

    with monkeypatch.context() as patch:
        patch.setattr("a2a_ledger.making.open_log", dies)
        with pytest.raises(StoreError, match="stops here"):
            ContractLedger.open(home / "audit", server=server)
    with ContractLedger.open(home / "audit", follow=False) as ledger:
        assert [record.type for record in ledger.store.read(0, 9)] == ["ledger.opened.v1", *["key.added.v1"] * 3]
        assert ledger.sign_checkpoint()


def test_a_server_that_is_not_there_leaves_no_directory(home: Path) -> None:
    with pytest.raises(UnreachableError):
        ContractLedger.open(home / "audit", server=Server("postgresql://127.0.0.1:1/none"))
    assert not (home / "audit").exists()


def test_a_server_that_ends_every_connection_stops_neither_writers_nor_followers(home: Path, server: Server) -> None:
    with ContractLedger.open(home / "audit", server=server) as ledger:
        log = Logbook(store=ledger.store)
        log.stuck()
        reached(ledger)
        end_connections(server)
        log.stuck()  # recorded, and judged by the follower's thread, over new connections
        reached(ledger)
        assert [len(ledger.store.streams(kind)) for kind in ("task:", "findings:")] == [2, 2]


def end_connections(server: Server) -> None:
    """End every connection of a ledger's processes, and wait until each is gone."""
    theirs = "SELECT pid FROM pg_stat_activity WHERE application_name = 'a2a-ledger'"
    with psycopg.connect(server.url, autocommit=True) as owner:
        ended = {pid for (pid,) in owner.execute(theirs)}
        assert ended
        for pid in ended:
            owner.execute("SELECT pg_terminate_backend(%s)", (pid,))
        while ended & {pid for (pid,) in owner.execute(theirs)}:
            time.sleep(0.01)


def reached(ledger: ContractLedger) -> None:
    """Wait until the verifier has read all of the log."""
    deadline = time.monotonic() + 60
    while ledger.store.position(VERIFIER) != ledger.store.size():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_what_needs_files_is_refused(run: Run, audit: Path, home: Path) -> None:
    task = str(lines(run("--ledger", str(audit), "--format", "json", "tasks"))[0]["task"])
    erased = run("--ledger", str(audit), "erase", task, "--reason", "asked", "--requested-by", "me")
    assert (erased.exit_code, "erase: expected the events in files" in erased.stderr) == (2, True)
    copied = run("--ledger", str(audit), "backup", str(home / "copy"))
    assert (copied.exit_code, "on a server" in copied.stderr) == (2, True)


def test_tables_are_made_once_and_rights_are_printed(run: Run, server: Server) -> None:
    chosen = ("--url", server.url, "--schema", server.schema)
    assert [run("db", "migrate", *chosen).stdout for _ in range(2)] == [
        f"Schema {server.schema}: tables and functions made.\n",
        f"Schema {server.schema}: nothing to do.\n",
    ]
    role = f"w_{server.schema}"
    said = run("db", "grants", "--writer", role, "--schema", server.schema)
    with psycopg.connect(server.url) as owner:
        owner.execute(f"CREATE ROLE {role} LOGIN".encode())
        owner.execute(said.stdout.encode())
        held = owner.execute(
            "SELECT table_name, privilege_type FROM information_schema.role_table_grants WHERE grantee = %s", (role,)
        ).fetchall()
    events = {
        right for table, right in held if table in {"ledger_events", "ledger_tags", "ledger_blobs", "ledger_tiles"}
    }
    assert events == {"SELECT"}
    assert {right for table, right in held if table.startswith("ledger_view_")} == {
        "SELECT",
        "INSERT",
        "UPDATE",
        "DELETE",
    }
    assert run("db", "grants").exit_code == 2
    assert run("db", "migrate").exit_code == 2


def test_a_writer_without_the_right_to_make_anything_records_and_follows(
    run: Run, home: Path, postgres: PostgresServer, server: Server
) -> None:
    run("db", "migrate", "--url", server.url, "--schema", server.schema)
    role = f"w_{server.schema}"
    rights = run("db", "grants", "--writer", role, "--schema", server.schema).stdout
    with psycopg.connect(server.url) as owner:
        owner.execute(f"CREATE ROLE {role} LOGIN".encode())
        owner.execute(rights.encode())
    own = Server(postgres.url_of(role), server.schema)
    with ContractLedger.open(home / "audit", follow=False, server=own) as ledger:
        Logbook(store=ledger.store).stuck()
        assert ledger.catch_up() > 0
        ledger.catch_up(from_start=True)
    assert run("--ledger", str(home / "audit"), "audit").exit_code == 0


def test_health_and_metrics_are_those_of_any_ledger_and_whether_somebody_follows_the_server_knows(
    run: Run, audit: Path
) -> None:
    result = run("--ledger", str(audit), "--format", "json", "health")
    (said,) = lines(result)
    assert (result.exit_code, said["healthy"], said["following"]) == (0, True, None)
    assert said["mark"] == said["head"] == said["events"]
    events = f"a2a_ledger_events_total {said['events']}\n"
    assert events in run("--ledger", str(audit), "metrics").stdout
    assert "the server knows" in run("--ledger", str(audit), "health").stdout
