"""On a ledger that was changed from outside every verb says so, names the audit, and leaves with 1; 3 for lost keys."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from .conftest import objects

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

AUDIT = "The ledger was changed from outside: run `a2a-ledger --ledger "


@pytest.fixture
def demand(ledger: Path, run: Callable[..., Result]) -> int:
    """Return the position of the message by which the peer asks for a client certificate."""
    (told,) = objects(run("--ledger", ledger, "--format", "json", "show", "T1"))
    return next(int(line["position"]) for line in told["events"] if "input-required" in line["words"])


def change(ledger: Path, statement: str, *values: object, name: str = "ledger.db") -> None:
    with closing(sqlite3.connect(ledger / name)) as connection, connection:
        assert connection.execute(statement, values).rowcount


def flip(ledger: Path, n: int) -> None:
    """Change the last bit of a row, as the README does: the box of its content."""
    with closing(sqlite3.connect(ledger / "ledger.db")) as connection, connection:
        (state,) = connection.execute("SELECT state FROM ledger_events WHERE rowid = ?", (n + 1,)).fetchone()
        changed = (state[:-1] + bytes([state[-1] ^ 1]), n + 1)
        connection.execute("UPDATE ledger_events SET state = ? WHERE rowid = ?", changed)


def test_a_message_whose_box_no_longer_opens_is_not_shown_as_silence(
    ledger: Path, run: Callable[..., Result], demand: int
) -> None:
    flip(ledger, demand)
    told = run("--ledger", ledger, "show", "T1")
    assert told.exit_code == 1
    (line,) = (line for line in told.stdout.splitlines() if line.lstrip().startswith(f"#{demand} "))
    assert line.endswith("pin unacknowledged  (cannot be opened: it was changed; run `a2a-ledger --ledger … audit`)")
    assert f"event {demand} cannot be opened: it was changed.\n" in told.stderr
    assert f"{AUDIT}{ledger} audit`." in told.stderr
    assert told.stdout.count("cannot be opened") == 1


def test_a_capture_whose_box_no_longer_opens_still_has_its_story_told(ledger: Path, run: Callable[..., Result]) -> None:
    (told,) = objects(run("--ledger", ledger, "--format", "json", "show", "T1"))
    n = told["contract"]["position"]
    flip(ledger, n)
    result = run("--ledger", ledger, "--format", "json", "show", "T1")
    assert result.exit_code == 1
    (told,) = objects(result)
    assert told["contract"]["value"] is None
    (words,) = (line["words"] for line in told["events"] if line["position"] == n)
    assert "cannot be opened: it was changed" in words
    assert len([line for line in told["events"] if "cannot be opened" in line["words"]]) == 1


def test_an_event_that_is_missing_is_said(ledger: Path, run: Callable[..., Result], demand: int) -> None:
    change(ledger, "DELETE FROM ledger_events WHERE rowid = ?", demand + 1)
    shown = run("--ledger", ledger, "show", "T1")
    replayed = run("--ledger", ledger, "replay", "T1")
    for result in (shown, replayed):
        assert result.exit_code == 1
        assert f", before event {demand + 1}, is missing: it was removed" in result.stderr
        assert AUDIT in result.stderr
    assert "differs" not in replayed.output


@pytest.mark.parametrize("verb", ["replay", "export"])
def test_nothing_is_judged_or_exported_that_does_not_open(
    ledger: Path, run: Callable[..., Result], demand: int, verb: str
) -> None:
    flip(ledger, demand)
    more = ["-o", "case.zip"] if verb == "export" else []
    result = run("--ledger", ledger, verb, "T1", *more)
    assert result.exit_code == 1
    assert f"Error: event {demand}: the box 'parts' of task:" in result.stderr
    assert AUDIT in result.stderr
    assert "FormatError" not in result.output


@pytest.mark.parametrize(
    "words",
    [["show", "T1"], ["tasks"], ["peers"], ["violations"], ["replay", "T1"], ["export", "T1", "-o", "case.zip"]],
    ids=" ".join,
)
def test_a_log_that_was_cut_short_is_said(ledger: Path, run: Callable[..., Result], words: list[str]) -> None:
    change(ledger, "DELETE FROM ledger_events WHERE rowid > (SELECT max(rowid) - 3 FROM ledger_events)")
    result = run("--ledger", ledger, *words)
    assert result.exit_code == 1
    assert "and the log ends at " in result.stderr
    assert AUDIT in result.stderr


@pytest.mark.parametrize("words", [["show"], ["replay"], ["export", "-o", "case.zip"]], ids=lambda words: words[0])
def test_content_whose_key_is_gone_cannot_be_decided(
    ledger: Path, run: Callable[..., Result], words: list[str]
) -> None:
    change(ledger, "DELETE FROM box_keys WHERE stream LIKE 'task:%'", name="keys.db")
    verb, *more = words
    (task, *_) = objects(run("--ledger", ledger, "--format", "json", "tasks", "--skip", "2"))
    result = run("--ledger", ledger, verb, task["task"], *more)
    assert result.exit_code == 3
    assert "cannot be opened: expected the keys" in result.stderr
    assert " audit`" in result.stderr


def test_an_audit_of_a_log_that_was_cut_short_counts_nothing_as_uncovered(
    ledger: Path, run: Callable[..., Result]
) -> None:
    change(ledger, "DELETE FROM ledger_events WHERE rowid > (SELECT max(rowid) - 3 FROM ledger_events)")
    result = run("--ledger", ledger, "audit")
    assert result.exit_code == 1
    assert "truncated" in result.stdout
    assert "no head covers yet" not in result.stdout


def test_an_export_names_whichever_event_was_removed(ledger: Path, run: Callable[..., Result]) -> None:
    with closing(sqlite3.connect(ledger / "ledger.db")) as connection:
        (size,) = connection.execute("SELECT max(rowid) FROM ledger_events").fetchone()
    for n in range(size - 1):  # a log whose last event is gone ends too early, which every verb says
        with closing(sqlite3.connect(ledger / "ledger.db", isolation_level=None)) as connection:
            row = connection.execute("SELECT rowid, * FROM ledger_events WHERE rowid = ?", (n + 1,)).fetchone()
            names = [name for _, name, *_ in connection.execute("PRAGMA table_xinfo(ledger_events)")]
            connection.execute("DELETE FROM ledger_events WHERE rowid = ?", (n + 1,))
            result = run("--ledger", ledger, "export", "T1", "-o", "case.zip")
            places = ", ".join(["rowid", *names])
            connection.execute(f"INSERT INTO ledger_events ({places}) VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608 - of the table itself
        assert result.exit_code == 1, (n, result.output)
        # a stream that is exported tells a gap by the event behind it, the tree tells the number itself
        named = re.search(
            r"no event (\d+): it was removed|before event (\d+), is missing: it was removed", result.stderr
        )
        assert named is not None, result.stderr
        assert named[1] == str(n) if named[1] else int(named[2]) > n
        assert AUDIT in result.stderr
        assert "tile" not in result.stderr


@pytest.mark.parametrize("format_", ["text", "json"])
@pytest.mark.parametrize(
    ("verb", "unchecked"),
    [
        ("tasks", "Read models and the events behind them were"),
        ("peers", "Read models and the events behind them were"),
        ("violations", "Events other than the findings themselves were"),
    ],
)
def test_a_list_says_what_of_it_was_not_checked(
    ledger: Path, run: Callable[..., Result], demand: int, verb: str, unchecked: str, format_: str
) -> None:
    flip(ledger, demand)
    result = run("--ledger", ledger, "--format", format_, verb)
    said = f"{unchecked} not checked for changes from outside: `a2a-ledger --ledger {ledger} audit` checks all.\n"
    assert result.stderr.count(said) == 1
    assert "changed from outside" not in result.stdout
    assert run("--ledger", ledger, "audit").exit_code == 1


def test_a_finding_whose_own_box_was_changed_is_not_listed_as_if_it_was_whole(
    ledger: Path, run: Callable[..., Result]
) -> None:
    found = objects(run("--ledger", ledger, "--format", "json", "violations"))
    for violation in found:
        run("--ledger", ledger, "violations", "ack", violation["position"], "--why", "agreed")
    assert run("--ledger", ledger, "violations").exit_code == 0
    n = int(found[0]["position"])
    flip(ledger, n)
    result = run("--ledger", ledger, "violations")
    assert result.exit_code == 1
    assert f"event {n} cannot be opened: it was changed.\n" in result.stderr
    assert AUDIT in result.stderr
