"""A ledger that was changed from outside: what tells a story, judges or exports says so, and judges nothing of it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.audit import audit_ledger
from a2a_ledger.errors import DamagedError, MissingKeysError
from a2a_ledger.export import export_task
from a2a_ledger.replay import replay_task
from a2a_ledger.store.damage import gaps, must_reach_its_heads
from a2a_ledger.what_if import what_if
from a2a_ledger_projections import task_contracts
from a2a_ledger_projections.base import catch_up, compare
from a2a_ledger_projections.lookup import find_task
from a2a_ledger_projections.timeline import tell
from tests.evidence.conftest import reopened

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from a2a_ledger.codec import Record
    from a2a_ledger.ledger import ContractLedger
    from tests.evidence.conftest import Case

JUDGES: dict[str, Callable[[ContractLedger, str], object]] = {
    "replay": replay_task,
    "what if": lambda ledger, task: what_if(ledger, task, rules="1"),
    "export": export_task,
}


def change(place: Path, statement: str, *values: object, name: str = "ledger.db") -> None:
    with closing(sqlite3.connect(place / name)) as connection, connection:
        assert connection.execute(statement, values).rowcount


def said_working(place: Path, task: str) -> Record:
    """Return the first answer of the peer."""
    with reopened(place) as ledger:
        return next(
            r for r in ledger.store.read_stream(f"task:{task}") if r.data.get("direction") == "in" and "body" in r.blobs
        )


def flip_last_bit(place: Path, n: int) -> None:
    """Change the box that holds the content of an event, and leave that of its record."""
    with closing(sqlite3.connect(place / "ledger.db")) as connection, connection:
        (state,) = connection.execute("SELECT state FROM ledger_events WHERE rowid = ?", (n + 1,)).fetchone()
        changed = (state[:-1] + bytes([state[-1] ^ 1]), n + 1)
        connection.execute("UPDATE ledger_events SET state = ? WHERE rowid = ?", changed)


@pytest.mark.parametrize("judge", JUDGES.values(), ids=JUDGES)
def test_content_that_does_not_open_is_not_judged_as_silence(
    case: Case, copy: Path, judge: Callable[[ContractLedger, str], object]
) -> None:
    n = said_working(copy, case.task).n
    flip_last_bit(copy, n)
    with (
        reopened(copy) as ledger,
        pytest.raises(DamagedError, match=f"^event {n}: the box 'parts' .*it was changed") as e,
    ):
        judge(ledger, case.task)
    assert "changed from outside" in e.value.hint
    assert "audit" in e.value.hint


@pytest.mark.parametrize("judge", [replay_task, JUDGES["what if"]], ids=["replay", "what if"])
def test_a_story_with_an_event_missing_is_not_judged(
    case: Case, copy: Path, judge: Callable[[ContractLedger, str], object]
) -> None:
    gone = said_working(copy, case.task)
    change(copy, "DELETE FROM ledger_events WHERE rowid = ?", gone.n + 1)
    expected = f"^version {gone.ver} of {gone.stream}, before event {gone.n + 1}, is missing: it was removed$"
    with reopened(copy) as ledger, pytest.raises(DamagedError, match=expected):
        judge(ledger, case.task)


def test_a_card_that_was_removed_is_missed_by_who_refers_to_it(case: Case, copy: Path) -> None:
    with reopened(copy) as ledger:
        story = ledger.store.read_stream(f"task:{case.task}")
        fetch = next(r.data["fetch"] for r in story if r.type == "contract.captured.v1")
    assert isinstance(fetch, dict)
    where = "WHERE originator_id = ? AND originator_version = ?"
    change(copy, f"DELETE FROM ledger_events {where}", fetch["stream"], fetch["ver"])  # noqa: S608 - ours
    missing = f"version {fetch['ver']} of {fetch['stream']}"
    with reopened(copy) as ledger:
        with pytest.raises(DamagedError, match=f"^{missing}, which an event refers to, is missing"):
            replay_task(ledger, case.task)
        told = tell(ledger.store, find_task(ledger.store, case.task), ledger.clock())
    assert any(said.startswith(f"{missing}, which event ") for said in told.damage)


def test_a_removed_key_is_missing_material_and_no_change(case: Case, copy: Path) -> None:
    change(copy, "DELETE FROM box_keys WHERE stream = ?", f"task:{case.task}", name="keys.db")
    with reopened(copy) as ledger, pytest.raises(MissingKeysError, match="cannot be opened: expected the keys"):
        replay_task(ledger, case.task)


def test_an_event_that_another_names_is_not_looked_for_behind_the_log(copy: Path) -> None:
    change(copy, "DELETE FROM ledger_events WHERE rowid = 9")
    with (
        reopened(copy) as ledger,
        pytest.raises(DamagedError, match=r"^expected event 8, which another one names, found"),
    ):
        ledger.store.record(8)


def test_a_log_that_ends_before_its_newest_head_is_seen(copy: Path) -> None:
    with reopened(copy) as ledger:
        size = ledger.store.size()
        must_reach_its_heads(ledger.store)
    change(copy, "DELETE FROM ledger_events WHERE rowid > ?", size - 3)
    expected = f"^a head over {size} events was signed, and the log ends at {size - 3}: the last were removed$"
    with reopened(copy) as ledger, pytest.raises(DamagedError, match=expected):
        must_reach_its_heads(ledger.store)


def test_a_large_content_that_is_gone_without_an_erasure_is_said(case: Case, copy: Path) -> None:
    change(copy, "DELETE FROM ledger_blobs")
    with reopened(copy) as ledger:
        n = ledger.store.read_stream(f"task:{case.other}")[-1].n
        told = tell(ledger.store, find_task(ledger.store, case.other), ledger.clock())
    assert told.damage == [f"event {n} has lost its content, and no erasure says so"]
    (line,) = (line for line in told.lines if line.record.n == n)
    assert line.words.endswith("(has lost its content, and no erasure says so; run `a2a-ledger --ledger … audit`)")
    with reopened(copy) as ledger, pytest.raises(DamagedError, match=f"^content body of event {n} is missing$"):
        export_task(ledger, case.other)


def test_what_was_told_of_a_whole_story_is_no_damage(case: Case) -> None:
    with reopened(case.place) as ledger:
        assert tell(ledger.store, find_task(ledger.store, case.task), ledger.clock()).damage == []


def test_gaps_are_named_by_their_versions(case: Case) -> None:
    with reopened(case.place) as ledger:
        records = ledger.store.read_stream(f"task:{case.task}")
    left = [record for record in records if record.ver not in {0, 3, 4}]
    at = {record.ver: record.n for record in left}
    assert gaps("s", records) == []
    assert gaps("s", left) == [
        f"version 0 of s, before event {at[1]}, is missing: it was removed",
        f"version 3 to 4 of s, before event {at[5]}, is missing: it was removed",
    ]
    assert gaps("s", left[:2], first=1) == []


@pytest.mark.parametrize("marks", [True, False], ids=["a kept head", "the marks alone"])
def test_an_audit_counts_no_event_as_uncovered_that_a_longer_head_covers(copy: Path, *, marks: bool) -> None:
    with reopened(copy) as ledger:
        first = ledger.store.size()
        assert audit_ledger(ledger).signed_size == first
    if not marks:
        change(copy, "DELETE FROM ledger_checkpoints")
    change(copy, "DELETE FROM ledger_events WHERE rowid > ?", first - 3)
    with reopened(copy) as ledger:
        report = audit_ledger(ledger)
    assert (report.events, report.signed_size, report.uncovered) == (first - 3, first, 0)
    assert "truncated" in {fault.kind for fault in report.faults}


def test_events_under_a_head_that_does_not_fit_them_any_more_are_covered(copy: Path) -> None:
    change(copy, "DELETE FROM ledger_events WHERE rowid = 11")
    with reopened(copy) as ledger:
        report = audit_ledger(ledger)
    assert (report.leaves, report.uncovered) == (10, 0)


def test_a_forged_head_covers_nothing(copy: Path) -> None:
    with reopened(copy) as ledger:
        size = ledger.store.size()
        (_, note) = ledger.store.checkpoints()[-1]
    forged = note.replace(f"\n{size}\n", f"\n{size + 5}\n")
    change(copy, "INSERT INTO ledger_checkpoints VALUES (?, ?)", size + 5, forged)
    with reopened(copy) as ledger:
        assert audit_ledger(ledger).signed_size == size


def test_of_a_view_only_what_differs_is_said(case: Case, copy: Path) -> None:
    with reopened(copy, read_only=False) as ledger:
        catch_up(ledger.store, task_contracts.VIEW)
    table = task_contracts.VIEW.table
    state = "json_set(row, '$.state', 'completed', '$.findings', 7)"
    change(copy, f"UPDATE {table} SET row = {state} WHERE key = ?", case.task)  # noqa: S608 - ours
    with reopened(copy) as ledger:
        (fault,) = compare(ledger.store, task_contracts.VIEW)
    assert fault.key == case.task
    assert fault.detail == "findings: stored 7, the log gives 1; state: stored 'completed', the log gives 'working'"
