"""What an audit finds in a whole ledger, and what it says when there is nothing to find."""

from __future__ import annotations

import shutil
import sqlite3
import tracemalloc
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.audit import audit, audit_ledger
from a2a_ledger.checkpoint import Checkpoint, sign_checkpoint
from a2a_ledger.errors import StoreError
from a2a_ledger.events import MessageRecorded
from a2a_ledger.keys import generate
from a2a_ledger.merkle import leaf_hash, root_of
from a2a_ledger.store import open_store
from tests.evidence.conftest import reopened
from tests.evidence.recorded import dispute, entropy, opened

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from a2a_ledger.audit import AuditReport
    from tests.evidence.conftest import Case


def change(place: Path, *statements: str, values: Sequence[object] = ()) -> None:
    with closing(sqlite3.connect(place / "ledger.db")) as connection:
        for statement in statements:
            connection.execute(statement, values)
        connection.commit()


def audited(place: Path) -> AuditReport:
    with reopened(place) as ledger:
        return audit_ledger(ledger)


def kinds(report: AuditReport) -> set[str]:
    return {fault.kind for fault in report.faults}


def test_a_clean_ledger_is_summed_up(case: Case) -> None:
    with reopened(case.place) as ledger:
        report = audit_ledger(ledger)
        size = ledger.store.size()
        root = root_of(leaf_hash(line) for line in ledger.store.leaves(0, size))
    assert report.clean
    assert report.to_json() == {
        "events": size,
        "leaves": size,
        "checkpoint": {"size": size, "root": root.hex()},
        "anchored_size": 0,
        "faults": [],
    }
    assert report.uncovered == 0


def test_an_audit_writes_nothing(copy: Path) -> None:
    before = {path: path.read_bytes() for path in sorted(copy.rglob("*")) if path.is_file()}
    audited(copy)
    assert {path: path.read_bytes() for path in before} == before


def test_events_behind_the_last_head_are_counted(copy: Path) -> None:
    with reopened(copy, read_only=False) as ledger:
        size = ledger.store.size()
        ledger.store.append([ledger.draft(_message(), stream=f"task:{ledger.new_task()}") for _ in range(3)])
        report = audit_ledger(ledger)
    assert report.clean
    assert (report.events, report.checkpoint and report.checkpoint[0], report.uncovered) == (size + 3, size, 3)


def test_a_deleted_last_event_that_a_head_covers_is_found(case: Case, copy: Path) -> None:
    change(copy, "DELETE FROM ledger_events WHERE rowid = (SELECT max(rowid) FROM ledger_events)")
    report = audited(copy)
    truncated = [fault for fault in report.faults if fault.kind == "truncated"]
    assert len(truncated) == 3  # the kept head and both copies of the mark
    assert truncated[0].position == report.events == audited(case.place).events - 1


def test_a_deleted_middle_event_is_found_where_it_was(copy: Path) -> None:
    change(copy, "DELETE FROM ledger_events WHERE rowid = 11")
    report = audited(copy)
    assert ("index", 11) in [(fault.kind, fault.position) for fault in report.faults]
    assert report.leaves == 10


def test_two_swapped_payloads_are_found_at_both_places(copy: Path) -> None:
    change(
        copy,
        "CREATE TEMP TABLE kept AS SELECT rowid AS id, state FROM ledger_events WHERE rowid IN (10, 11)",
        "UPDATE ledger_events SET state = (SELECT state FROM kept WHERE id = 21 - ledger_events.rowid)"
        " WHERE rowid IN (10, 11)",
    )
    found = {(fault.kind, fault.position) for fault in audited(copy).faults}
    assert {("box", 9), ("box", 10)} <= found


def test_two_whole_rows_that_changed_places_are_found(copy: Path) -> None:
    change(
        copy,
        "UPDATE ledger_events SET rowid = -1 WHERE rowid = 11",
        "UPDATE ledger_events SET rowid = 11 WHERE rowid = 12",
        "UPDATE ledger_events SET rowid = 12 WHERE rowid = -1",
    )
    assert {"stream", "tile", "checkpoint"} <= kinds(audited(copy))


def test_a_changed_topic_is_found(copy: Path) -> None:
    change(copy, "UPDATE ledger_events SET topic = 'os.system' WHERE rowid = 12")
    (fault,) = audited(copy).faults
    assert (fault.kind, fault.position) == ("envelope", 11)
    assert "os.system" in fault.detail


def test_a_restored_older_database_is_found(case: Case, copy: Path) -> None:
    shutil.copy(case.place / "ledger.db", copy / "older.db")
    with reopened(copy, read_only=False) as ledger:
        dispute(ledger, name="t9")
        ledger.sign_checkpoint()
    (copy / "older.db").replace(copy / "ledger.db")
    for name in ("ledger.db-wal", "ledger.db-shm"):
        (copy / name).unlink(missing_ok=True)
    report = audited(copy)
    assert [fault.kind for fault in report.faults] == ["truncated", "truncated"]
    assert "old copy" in report.faults[0].detail


def test_a_head_of_a_rewritten_log_does_not_fit_an_earlier_one(case: Case, copy: Path) -> None:
    with reopened(case.place) as ledger:
        size, earlier = ledger.store.checkpoints()[0]
    with reopened(copy) as ledger:
        assert audit_ledger(ledger, earlier={"head": earlier}).clean
    with opened(copy.parent / "another") as ledger:
        ledger.sign_checkpoint()
        assert kinds(audit_ledger(ledger, earlier={"head": earlier, "note": b"no note"})) == {"earlier", "truncated"}
        assert size > ledger.store.size()


def test_a_head_by_a_key_that_the_log_does_not_name_is_found(copy: Path) -> None:
    with reopened(copy) as ledger:
        size = ledger.store.size()
        forged = sign_checkpoint(
            Checkpoint(ledger.origin, size, ledger.store.root()), generate(ledger.origin, entropy())
        )
    change(copy, "UPDATE ledger_checkpoints SET note = ? WHERE size = ?", values=(forged, size))
    (fault,) = audited(copy).faults
    assert (fault.kind, fault.position) == ("checkpoint", size - 1)


def test_a_rewritten_last_event_is_found_by_the_mark_where_all_heads_are_gone(copy: Path) -> None:
    change(
        copy,
        "DELETE FROM ledger_checkpoints",
        "UPDATE ledger_events SET c = zeroblob(32) WHERE rowid = (SELECT max(rowid) FROM ledger_events)",
    )
    report = audited(copy)
    assert [fault.kind for fault in report.faults] == ["record", "mark", "mark"]
    assert report.checkpoint is None


def test_two_leaves_with_one_tag_are_named(copy: Path) -> None:
    change(copy, "UPDATE ledger_events SET t = (SELECT t FROM ledger_events WHERE rowid = 9) WHERE rowid = 14")
    details = [fault.detail for fault in audited(copy).faults if fault.kind == "tag"]
    assert any("events 8 and 13 carry one tag" in detail for detail in details)


def test_a_missing_key_store_is_no_reason_to_stop(copy: Path) -> None:
    (copy / "keys.db").unlink()
    with closing(open_store(copy, read_only=True)) as store:
        report = audit(store)
    assert kinds(report) == {"key"}
    assert report.checkpoint is not None


def test_a_missing_copy_of_the_mark_is_said_and_is_no_fault(copy: Path) -> None:
    (copy / "high-water").unlink()
    report = audited(copy)
    assert report.clean
    assert "high-water" in report.notes[0]


def test_a_damaged_mark_is_a_fault(copy: Path) -> None:
    (copy / "high-water").write_text("nonsense\n")
    assert kinds(audited(copy)) == {"mark"}


@pytest.mark.parametrize("page", [2, 5, 9, 20])
def test_a_page_of_noise_is_a_fault_and_no_traceback(copy: Path, page: int) -> None:
    file = copy / "ledger.db"
    noisy = bytearray(file.read_bytes())
    noisy[page * 4096 : (page + 1) * 4096] = bytes(range(256)) * 16
    file.write_bytes(noisy)
    try:
        ledger = reopened(copy)
    except StoreError:
        return  # where the noise hides what the ledger is, one clear line says so
    with ledger:
        assert not audit_ledger(ledger).clean


def test_memory_stays_flat(tmp_path: Path) -> None:
    """Ten times the events in ten times the streams, and the peak grows by far less than the rows do."""
    peaks: list[int] = []
    with opened(tmp_path / "audit") as ledger:
        for _ in range(2):
            for _ in range(40 if not peaks else 360):
                stream = f"task:{ledger.new_task()}"
                ledger.store.append([ledger.draft(_message(), stream=stream, blobs={"body": b"x" * 2000})] * 5)
            tracemalloc.start()
            assert audit(ledger.store).clean
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] - peaks[0] < 400_000


def _message() -> MessageRecorded:
    return MessageRecorded(
        peer="ab" * 16, direction="out", leg="request", binding="JSONRPC", url="https://vendor.example/a2a"
    )


def test_no_flipped_byte_of_a_state_is_missed_or_stops_the_audit(tmp_path: Path) -> None:
    """Framing, salt, record, blob ids, salts of parts, contents: each in turn, and only this event is blamed first."""
    place = tmp_path / "audit"
    with opened(place) as ledger:
        dispute(ledger, polls=0)
    with closing(sqlite3.connect(place / "ledger.db")) as connection:
        (state,) = connection.execute("SELECT state FROM ledger_events WHERE rowid = 9").fetchone()
        for at in range(0, len(state), 11):
            changed = state[:at] + bytes([state[at] ^ 0x20]) + state[at + 1 :]
            connection.execute("UPDATE ledger_events SET state = ? WHERE rowid = 9", (changed,))
            connection.commit()
            with closing(open_store(place, read_only=True)) as store:
                report = audit(store)
            assert report.faults, at
            assert report.faults[0].kind in {"container", "box", "key"}, (at, report.faults)
            assert report.faults[0].position == 8
