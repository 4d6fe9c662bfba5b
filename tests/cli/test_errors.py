"""Every error is one line and an exit code; a user never meets a traceback."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING

import click
import pytest

from a2a_ledger import errors
from a2a_ledger.cli import cli
from a2a_ledger.cli.errors import exit_code
from a2a_ledger.cli.output import clean, clock, host, quoted, short_hash, span
from tests.cli.conftest import opened
from tests.projections.logbook import PEER

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from click.testing import Result

    Run = Callable[..., Result]

COMMAND = [sys.executable, "-c", "from a2a_ledger.cli import main; main()"]


def one_line(result: Result) -> str:
    assert "Traceback" not in result.stderr
    return result.stderr.splitlines()[0]


def test_no_ledger_named(run: Run) -> None:
    result = run("tasks")
    assert (result.exit_code, one_line(result)) == (
        2,
        "Error: no ledger named: expected --ledger DIR before the verb, or A2A_LEDGER in the environment",
    )


def test_no_ledger_there(run: Run, home: Path) -> None:
    for verb in (["tasks"], ["follow", "--once"], ["export", "T1", "-o", "x.zip"]):
        result = run("--ledger", "nowhere", *verb)
        assert (result.exit_code, one_line(result)) == (2, "Error: nowhere: expected a ledger, found no ledger.db")
        assert "a2a-ledger --ledger nowhere init" in result.stderr
    assert not (home / "nowhere").exists()


def test_a_database_url_is_refused_with_what_is_expected(run: Run) -> None:
    result = run("--ledger", "postgresql://u@h/db", "tasks")
    assert (
        result.exit_code,
        "expected --ledger DIR, found a URL: a ledger on a server is named by" in one_line(result),
    ) == (2, True)


def test_making_a_ledger_where_one_is_or_cannot_be(run: Run, ledger: Path, home: Path) -> None:
    assert run("--ledger", ledger, "init").exit_code == 2
    (home / "file").write_text("x")
    assert run("--ledger", "file", "init").exit_code == 2
    assert run("--ledger", "file/below", "init").exit_code == 2
    (home / "full").mkdir()
    (home / "full" / "letter.txt").write_text("x")
    assert run("--ledger", "full", "init").exit_code == 2
    assert (home / "full" / "letter.txt").read_text() == "x"


def test_missing_key_store_and_a_key_that_others_can_read(run: Run, ledger: Path, home: Path) -> None:
    shutil.copytree(ledger, home / "copy")
    (home / "copy" / "keys.db").unlink()
    result = run("--ledger", "copy", "follow", "--once")
    assert (result.exit_code, "keys.db" in one_line(result)) == (3, True)
    (ledger / "keys" / "log.pem").chmod(0o644)
    result = run("--ledger", ledger, "checkpoint", "sign")
    assert (result.exit_code, "0644" in one_line(result)) == (2, True)


def test_a_database_behind_its_mark_refuses_to_be_written(run: Run, home: Path) -> None:
    run("--ledger", "audit", "init")
    shutil.copy(home / "audit" / "ledger.db", home / "old.db")
    with opened(home / "audit") as (service, log):
        log.sent()
        service.sign_checkpoint()
    for name in ("ledger.db", "ledger.db-wal", "ledger.db-shm"):
        (home / "audit" / name).unlink(missing_ok=True)
    shutil.copy(home / "old.db", home / "audit" / "ledger.db")
    result = run("--ledger", "audit", "follow", "--once")
    assert result.exit_code == 3, result.stderr
    assert "older" in one_line(result) or "behind" in one_line(result)
    assert run("--ledger", "audit", "tasks").exit_code == 0
    assert run("--ledger", "audit", "audit").exit_code == 1


def test_a_file_that_is_no_ledger(run: Run, home: Path) -> None:
    (home / "audit").mkdir()
    (home / "audit" / "ledger.db").write_bytes(b"not a database at all" * 100)
    (home / "audit" / "keys.db").write_bytes(b"")
    result = run("--ledger", "audit", "tasks")
    assert result.exit_code in {2, 3}
    assert one_line(result).startswith("Error: ")


def test_the_exit_code_of_each_error() -> None:
    assert {
        error.__name__: exit_code(error("x"))
        for error in (
            errors.UsageError,
            errors.FormatError,
            errors.CardError,
            errors.StoreError,
            errors.BusyError,
            errors.ReadOnlyError,
            errors.MissingKeysError,
            errors.RollbackError,
            errors.SignatureError,
            errors.InclusionError,
            errors.ConsistencyError,
            errors.PolicyError,
        )
    } == {
        "UsageError": 2,
        "FormatError": 2,
        "CardError": 3,
        "StoreError": 2,
        "BusyError": 3,
        "ReadOnlyError": 2,
        "MissingKeysError": 3,
        "RollbackError": 3,
        "SignatureError": 1,
        "InclusionError": 1,
        "ConsistencyError": 1,
        "PolicyError": 3,
    }


def test_clicks_own_errors_are_usage(run: Run) -> None:
    for words in (["nonsense"], ["tasks", "--limit", "0"], ["show"], ["--format", "xml", "tasks"]):
        assert run(*words).exit_code == 2


def test_an_unexpected_error_is_one_line_and_a_traceback_only_on_request(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise ZeroDivisionError("of all things\nover two lines")

    monkeypatch.setitem(cli.commands, "broken", click.Command("broken", callback=broken))
    result = run("broken")
    assert (result.exit_code, one_line(result)) == (
        2,
        "Error: unexpected ZeroDivisionError: of all things over two lines",
    )
    assert "A2A_LEDGER_DEBUG=1" in result.stderr
    monkeypatch.setenv("A2A_LEDGER_DEBUG", "1")
    assert "Traceback" in run("broken").stderr


@contextmanager
def running(*words: object) -> Generator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [*COMMAND, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_an_interrupt_ends_with_130(ledger: Path) -> None:
    with running("--ledger", ledger, "follow") as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("Caught up to #")
        process.send_signal(signal.SIGINT)
        try:
            _, problem = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:  # say where each of its threads stands
            process.send_signal(signal.SIGABRT)
            _, problem = process.communicate()
    assert (process.returncode, problem.strip()) == (130, "Interrupted.")


def test_following_goes_on_with_what_is_new(ledger: Path) -> None:
    with (
        running("--ledger", ledger, "--format", "json", "violations", "--follow") as findings,
        running("--ledger", ledger, "show", "T1", "--follow") as story,
    ):
        assert findings.stdout is not None
        assert story.stdout is not None
        for _ in range(2):
            assert json.loads(findings.stdout.readline())["rule"] == "auth-demand"
        while " violation auth-demand, about: peer, certain" not in story.stdout.readline():
            pass
        with opened(ledger) as (service, log):
            task = service.find_task(PEER, "T1")
            assert task is not None
            poll = log.request(task, "GetTask")
            found = log.finding("task-error-mismatch", poll, task=task, rule_class="error-surface", about="either")
        assert json.loads(findings.stdout.readline())["position"] == found.n
        assert f"#{poll.n} " in story.stdout.readline()
        assert f"#{found.n} " in story.stdout.readline()


def test_a_reader_that_goes_away_is_met_in_silence(ledger: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*COMMAND, "--ledger", str(ledger), "show", "T1"],
        check=False,
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def test_the_door_in_the_root_is_the_same_command() -> None:
    from pathlib import Path as File  # noqa: PLC0415 - only here at run time

    door = File(__file__).parents[2] / "cli.py"
    done = subprocess.run([sys.executable, str(door), "--version"], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()[0]) == (0, "a2a-ledger,")


HEAVY = {
    "a2a", "asyncio", "cryptography", "eventsourcing", "httpx", "joserfc", "json", "msgpack", "pathlib", "rfc8785",
    "rich", "socket", "sqlite3", "ssl", "tempfile", "tomllib",
}  # fmt: skip


def imported_by(words: list[str]) -> set[str]:
    """Return the modules that one call of the command line has imported when it ends."""
    probe = (
        "import sys, io, contextlib\nbefore = set(sys.modules)\nfrom a2a_ledger.cli import cli\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n"
        f"    try: cli.main({words!r})\n"
        "    except SystemExit: pass\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-S", "-c", PATHS + probe], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


PATHS = f"import sys\nsys.path[:] = {sys.path!r}\n"
"""What `site` would find: it imports modules itself, which the command line is not to be blamed for."""


@pytest.mark.parametrize("words", [["--help"], []], ids=["help", "nothing"])
def test_help_imports_no_verb_and_nothing_heavy(words: list[str]) -> None:
    imported = imported_by(words)
    assert imported & HEAVY == set()
    assert {name for name in imported if name.startswith("a2a_ledger")} == {
        "a2a_ledger", "a2a_ledger.errors", "a2a_ledger.cli", "a2a_ledger.cli.errors", "a2a_ledger.cli.verb",
        "a2a_ledger.cli.verb_lines", "a2a_ledger.cli.logs",
    }  # fmt: skip


def test_help_of_one_verb_imports_no_other_verb_and_no_library() -> None:
    imported = imported_by(["show", "--help"])
    assert "a2a_ledger.cli.tasks" in imported  # so this looks where it should
    assert imported & {"a2a_ledger.cli.evidence", "a2a_ledger.cli.run", "a2a_ledger.ledger"} == set()
    assert imported & {"asyncio", "cryptography", "eventsourcing", "httpx", "msgpack", "rich", "sqlite3"} == set()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[2J", "\\u001b[2J"),
        ("a\u202eb", "a\\u202eb"),
        ("a\nb", "a\\u000ab"),
        ("é漢", "é漢"),
        ("\U000e0041", "\\U000e0041"),
        ("\udc80", "\\udc80"),
    ],
)
def test_text_of_the_wire_is_made_safe(text: str, shown: str) -> None:
    assert clean(text) == shown


TODAY = datetime(2026, 9, 14, 23, 59, tzinfo=UTC)
MIDNIGHT = datetime(2026, 9, 15, 1, 30, tzinfo=timezone(timedelta(hours=2)))
"""Still the 14th in UTC."""


@pytest.mark.parametrize(
    ("at", "now", "shown", "to_the_millisecond"),
    [
        ("2026-09-14T09:00:01.002003Z", TODAY, "09:00:01", "09:00:01.002Z"),
        ("2026-09-14T09:00:01.002003Z", MIDNIGHT, "09:00:01", "09:00:01.002Z"),
        ("2026-09-13T09:00:01.002003Z", TODAY, "2026-09-13 09:00:01", "2026-09-13 09:00:01.002Z"),
        ("2025-09-14T09:00:01.002003Z", TODAY, "2025-09-14 09:00:01", "2025-09-14 09:00:01.002Z"),
        ("2026-09-15T00:00:00.000000Z", TODAY, "2026-09-15 00:00:00", "2026-09-15 00:00:00.000Z"),
    ],
)
def test_a_time_has_its_date_where_that_is_not_today(
    at: str, now: datetime, shown: str, to_the_millisecond: str
) -> None:
    assert (clock(at, now), clock(at, now, millis=True)) == (shown, to_the_millisecond)


def test_small_spellings() -> None:
    assert [span(s) for s in (7, 60, 15_127, 200_000)] == ["7 s", "1 min", "4 h 12 min", "2 d 7 h"]
    assert short_hash("sha256:" + "ab" * 32) == "sha256:abababab…"
    assert (short_hash(None), host(None), clock(None, TODAY)) == ("-", "-", "-")
    assert host("https://vendor.example:8443/card") == "vendor.example:8443"
    assert clock("yesterday\x07", TODAY) == "yesterday\\u0007"
    assert quoted("a  b\x00", 3) == '"a b…"'
