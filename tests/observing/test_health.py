"""`a2a-ledger health` and `metrics`: every fault made on purpose, and what a probe makes of it."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from a2a_ledger import ContractLedger
from a2a_ledger.cli import cli
from a2a_ledger_projections.health import Health, Limits, examine, past_limits
from tests.observing.conftest import Clock, adopt
from tests.observing.test_measures import values

if TYPE_CHECKING:
    from pathlib import Path

ENTRY = "from a2a_ledger.cli import main; main()"


def probe(place: Path, *words: str) -> tuple[int, dict[str, Any]]:
    """Run the verb; return its exit code and what it printed."""
    result = CliRunner().invoke(cli, ["--ledger", str(place), "--format", "json", "health", *words])
    return result.exit_code, json.loads(result.stdout)


@pytest.fixture
def place(home: Path) -> Path:
    """Return the directory of a ledger that everything has caught up with and nobody has open."""
    with ContractLedger.open(home / "audit", origin="acme/audit", follow=False) as ledger:
        adopt(ledger, 2)
        ledger.catch_up()
    return home / "audit"


def test_a_ledger_that_nobody_uses_is_well(place: Path) -> None:
    status, said = probe(place)
    with ContractLedger.open(place, read_only=True) as ledger:
        size = ledger.store.size()
    assert (status, said["healthy"], said["problems"]) == (0, True, [])
    assert said["events"] == said["mark"] == said["head"] == said["unanchored"]["events"] == size
    assert said["unsigned"] == {"events": 0, "age": 0.0}
    assert {name: waiting["events"] for name, waiting in said["projections"].items()} == {
        "peers": 0, "task_contracts": 0, "verifier-2": 0, "waits": 0,
    }  # fmt: skip
    assert said["keys"] == {"log": "readable", "statement": "readable", "export": "readable"}
    assert said["following"] is False
    assert abs(said["free_bytes"] - shutil.disk_usage(place).free) < 1 << 30


def test_for_people_it_says_the_same(place: Path) -> None:
    result = CliRunner().invoke(cli, ["--ledger", str(place), "health"])
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0] == "Well."
    assert ["projection", "peers", "nothing", "waits"] in [line.split() for line in result.stdout.splitlines()]


def test_a_command_in_a_problem_names_the_ledger_so_that_it_can_be_pasted(place: Path) -> None:
    with ContractLedger.open(place, follow=False) as ledger:
        adopt(ledger)
    status, said = probe(place, "--max-lag", "0")
    assert (status, f"`a2a-ledger --ledger {place} follow`" in said["problems"][0]) == (1, True)
    people = CliRunner().invoke(cli, ["--ledger", str(place), "health", "--max-lag", "0"])
    assert f"`a2a-ledger --ledger {place} follow`" in people.stdout


def test_it_writes_nothing(place: Path) -> None:
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in place.rglob("*") if path.is_file()}
    probe(place)
    after = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in place.rglob("*") if path.is_file()}
    assert {path: kept for path, kept in after.items() if path in before} == before
    assert {path.name for path in after.keys() - before.keys()} <= {"ledger.db-wal", "ledger.db-shm"}


def test_a_projection_that_is_behind_for_longer_than_it_may(ledger: ContractLedger, clock: Clock) -> None:
    ledger.catch_up()
    adopt(ledger)
    clock.on(61)
    ledger.sign_checkpoint()
    found = examine(ledger, Limits())
    assert len(found.problems) == 4
    assert all("behind by at most 60 s, found 1 waiting, the oldest for 61 s" in problem for problem in found.problems)
    assert all("no follower runs" in problem for problem in found.problems)
    assert examine(ledger, Limits(lag=61)).problems == []


def test_a_limit_of_age_is_for_what_waits_and_not_for_a_log_that_rests(ledger: ContractLedger, clock: Clock) -> None:
    ledger.catch_up()
    ledger.sign_checkpoint()
    clock.on(30 * 86400)
    assert examine(ledger, Limits()).problems == []
    (problem,) = examine(ledger, Limits(unanchored=86400)).problems
    assert problem.startswith("expected every event anchored within 86400 s")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"unsigned": {"events": 3, "age": 60.1}}, "under a signed head within 60 s, found 3 waiting"),
        ({"unanchored": {"events": 1, "age": 500.0}}, "expected every event anchored within 400 s"),
        ({"free": 99}, "expected 100 octets free where the ledger lies, found 99"),
        ({"projections": {"p": {"events": 1, "age": 60.1}}, "following": True}, "the follower does not keep up"),
        ({"unsigned": {"events": 3, "age": 60.0}, "free": 100, "unanchored": {"events": 1, "age": 400.0}}, ""),
        ({"free": None}, ""),
    ],
)  # fmt: skip
def test_limits_are_judged_by_numbers_alone(change: dict[str, Any], said: str) -> None:
    none: dict[str, Any] = {"events": 0, "age": 0.0}
    well: dict[str, Any] = {
        "events": 9, "mark": 9, "head": 9, "unsigned": none, "unanchored": none, "projections": {}, "keys": {},
        "following": False, "free": 1000,
    }  # fmt: skip
    problems = past_limits(Health(**{**well, **change}), Limits(unanchored=400, free=100))
    assert [said in problem for problem in problems] == ([True] if said else [])


def test_a_follower_is_seen_by_its_lock(place: Path) -> None:
    descriptor = os.open(place / "verifier.lock", os.O_RDWR | os.O_CREAT)
    assert probe(place)[1]["following"] is False
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    assert probe(place)[1]["following"] is True
    os.close(descriptor)


def test_an_open_ledger_that_follows_is_seen(place: Path) -> None:
    with ContractLedger.open(place) as ledger:
        ledger.catch_up()
        while not probe(place)[1]["following"]:
            pass  # its thread takes the lock as it starts


def test_an_old_copy_of_the_database(place: Path) -> None:
    shutil.copy(place / "ledger.db", place.parent / "old.db")
    with ContractLedger.open(place, follow=False) as ledger:
        adopt(ledger)
        ledger.catch_up()
        size = ledger.store.size()
    for name in ("ledger.db-wal", "ledger.db-shm"):
        (place / name).unlink(missing_ok=True)
    shutil.copy(place.parent / "old.db", place / "ledger.db")
    status, said = probe(place)
    assert (status, said["healthy"], said["mark"]) == (1, False, size)
    assert f"expected the {size} events that the high-water mark was signed over" in said["problems"][0]


def test_both_copies_of_the_mark_are_gone(place: Path, home: Path) -> None:
    shutil.rmtree(home / "home")
    (place / "high-water").unlink()
    status, said = probe(place)
    assert (status, said["mark"]) == (1, None)
    assert "expected a high-water mark" in said["problems"][0]


def test_a_damaged_mark(place: Path) -> None:
    (place / "high-water").write_text("nothing\n")
    status, said = probe(place)
    assert status == 1
    assert "is damaged" in said["problems"][0]


def test_a_key_that_others_may_read_or_that_is_another_logs(place: Path, home: Path) -> None:
    (place / "keys" / "log.pem").chmod(0o644)
    with ContractLedger.open(home / "other", origin="acme/other", follow=False):
        pass
    shutil.copy(home / "other" / "keys" / "export.pem", place / "keys" / "export.pem")
    (place / "keys" / "statement.pem").unlink()
    status, said = probe(place)
    assert (status, said["keys"]) == (1, {"log": "unusable", "statement": "absent", "export": "unusable"})
    assert "mode 0644" in said["problems"][0]
    assert "the export key that the log names" in said["problems"][1]


def test_an_encrypted_key_is_told_and_is_no_problem(place: Path) -> None:
    secret = place.parent / "passphrase.txt"
    secret.write_text("for a test\n")
    secret.chmod(0o600)
    words = ["--ledger", str(place), "keys", "encrypt", "--passphrase-file", str(secret)]
    assert CliRunner().invoke(cli, words).exit_code == 0
    status, said = probe(place)
    assert (status, said["keys"]["log"]) == (0, "encrypted")


def test_too_little_room(place: Path) -> None:
    status, said = probe(place, "--min-free", str(1 << 40))
    assert status == 1
    assert "octets free where the ledger lies" in said["problems"][0]


def test_where_nothing_is_known_it_says_so(place: Path, home: Path) -> None:
    (place / "keys.db").unlink()
    status, said = probe(place)
    assert (status, said["healthy"]) == (3, None)
    assert "keys.db" in said["problems"][0]
    missing = CliRunner().invoke(cli, ["--ledger", str(home / "nowhere"), "health"])
    assert missing.exit_code == 2
    (place / "ledger.db").write_bytes(b"no database" * 1000)
    assert probe(place)[0] == 3


def test_the_verb_prints_what_a_scrape_reads(place: Path) -> None:
    done = CliRunner().invoke(cli, ["--ledger", str(place), "metrics"])
    found = values(done.stdout)
    assert done.exit_code == 0
    assert found["a2a_ledger_events_total",] == found["a2a_ledger_head_size",]
    lines = [
        json.loads(line)
        for line in CliRunner().invoke(cli, ["--ledger", str(place), "--format", "json", "metrics"]).stdout.splitlines()
    ]
    events = found["a2a_ledger_events_total",]
    assert lines[0] == {"name": "a2a_ledger.events", "unit": "{event}", "labels": {}, "value": events}
    assert {"projection": "waits"} in [line["labels"] for line in lines]


@pytest.mark.slow
def test_a_process_that_follows_is_scraped_and_seen(place: Path) -> None:
    words = [sys.executable, "-c", ENTRY, "--ledger", str(place), "follow", "--metrics", "127.0.0.1:0"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        url = process.stderr.readline().split()[-1]
        fetch = f"import urllib.request; print(urllib.request.urlopen({url!r}).read().decode(), end='')"
        text = subprocess.run([sys.executable, "-c", fetch], capture_output=True, text=True, check=True).stdout
        assert probe(place)[1]["following"] is True
        process.terminate()
        process.communicate(timeout=30)
    assert values(text)["a2a_ledger_projection_lag", "waits"] == 0
    assert probe(place)[1]["following"] is False


def test_a_process_that_stops_cannot_be_scraped(place: Path) -> None:
    done = CliRunner().invoke(cli, ["--ledger", str(place), "follow", "--once", "--metrics", "127.0.0.1:0"])
    assert (done.exit_code, "expected no --once beside it" in done.stderr) == (2, True)
