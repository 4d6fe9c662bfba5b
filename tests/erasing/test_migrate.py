"""Rows of the first release: sealed where they lie, with the same leaves, and nothing of them left in clear."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.audit import audit_ledger
from a2a_ledger.erasing import erase_content
from a2a_ledger.errors import BusyError
from a2a_ledger.export import export_task
from a2a_ledger.migrating import MIGRATING, seal_older_rows
from a2a_ledger.replay import replay_task
from a2a_ledger.store import Store, rewrap
from tests.erasing.dying import die_migrating
from tests.erasing.marked import LARGE, MARKER, files_with
from tests.evidence.conftest import reopened
from tests.evidence.forging import judged
from tests.store.recording_child import running

if TYPE_CHECKING:
    from pathlib import Path

    from tests.erasing.marked import Marked


def versions(place: Path) -> dict[bool, set[bytes]]:
    """Return how rows begin: those of the stream `ledger`, and all others."""
    with closing(sqlite3.connect(place / "ledger.db")) as connection:
        rows = connection.execute("SELECT originator_id = 'ledger', substr(state, 1, 2) FROM ledger_events").fetchall()
    return {bool(own): {begin for whose, begin in rows if whose == own} for own in (0, 1)}


def everything(place: Path) -> list[tuple[object, ...]]:
    """Return what the log consists of, without the containers."""
    with reopened(place) as ledger:
        size = ledger.store.size()
        records = ledger.store.read(0, size)
        contents = [
            (record.raw, record.salt, role, record.content(role)) for record in records for role in record.blobs
        ]
        return [(size, ledger.store.root(size), tuple(ledger.store.leaves(0, size))), *contents]


def test_the_older_shape_is_that_of_the_first_release(in_clear: Marked) -> None:
    """Container version 1 is `[1, salt, R, {…}]`, a list of four; the key store had no keys of boxes."""
    assert versions(in_clear.place) == {False: {b"\x94\x01"}, True: {b"\x94\x01"}}
    with closing(sqlite3.connect(in_clear.place / "keys.db")) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        assert "box_keys" not in tables
        assert connection.execute("PRAGMA user_version").fetchone() == (0,)


def test_rows_are_sealed_and_the_log_is_the_same(in_clear: Marked) -> None:
    before = everything(in_clear.place)
    assert files_with(in_clear.place, MARKER) == {"ledger.db"}
    with reopened(in_clear.place) as reader:
        assert any("`a2a-ledger migrate` seals them" in note for note in audit_ledger(reader).notes)
    seen: list[tuple[int, int]] = []
    with reopened(in_clear.place, read_only=False) as ledger:
        done = seal_older_rows(ledger, lambda rows, of: seen.append((rows, of)))
        assert files_with(in_clear.place, MARKER) == set()  # the write-ahead log is a file, too
        assert seal_older_rows(ledger) == (0, ())
        report = audit_ledger(ledger)
        assert (report.faults, report.notes) == ((), ())
        assert replay_task(ledger, in_clear.task).verdict == "same"
        bundles = [export_task(ledger, task).data for task in (in_clear.task, in_clear.other)]
    assert done.unread == ()
    assert seen[-1] == (done.sealed, done.sealed)
    assert versions(in_clear.place) == {False: {b"\x96\x02"}, True: {b"\x94\x01"}}
    assert everything(in_clear.place) == before
    assert files_with(in_clear.place, MARKER) == set()
    for data in (*in_clear.bundles, *bundles):
        assert judged(data, in_clear.log_key).verdict == "verified"


@pytest.mark.parametrize("step", ["noted", "in a page", "a page", "pages", "compact"])
def test_one_that_was_cut_short_goes_on(in_clear: Marked, step: str) -> None:
    before = everything(in_clear.place)
    with running(die_migrating, in_clear.place, step) as child:
        assert child.rest() == [step]
    assert everything(in_clear.place) == before
    with reopened(in_clear.place) as reader:
        report = audit_ledger(reader)
        assert report.faults == ()
        assert any("`a2a-ledger migrate`" in note for note in report.notes)
    with reopened(in_clear.place, read_only=False) as ledger:
        seal_older_rows(ledger)
        assert audit_ledger(ledger).notes == ()
    assert files_with(in_clear.place, MARKER) == set()
    assert everything(in_clear.place) == before


def test_an_erasure_after_one_that_was_cut_short_leaves_nothing_in_free_pages(in_clear: Marked) -> None:
    """The task's rows are sealed, and older octets of them may stand in clear where nobody looks."""
    with running(die_migrating, in_clear.place, "pages") as child:
        assert child.rest() == ["pages"]
    assert "ledger.db" in files_with(in_clear.place, MARKER)
    with reopened(in_clear.place, read_only=False) as ledger:
        erase_content(ledger, in_clear.task, reason="request 17", requested_by="Jo Doe")
    assert files_with(in_clear.place, MARKER) == set()


def test_a_row_that_cannot_be_read_keeps_no_other_in_clear(in_clear: Marked) -> None:
    with closing(sqlite3.connect(in_clear.place / "ledger.db")) as connection:
        connection.execute("UPDATE ledger_events SET state = x'9401c0c080' WHERE rowid = 8")
        connection.commit()
    with reopened(in_clear.place, read_only=False) as ledger:
        assert seal_older_rows(ledger).unread == (7,)
        assert [fault.position for fault in audit_ledger(ledger).faults if fault.kind == "container"] == [7]
    assert files_with(in_clear.place, MARKER) == set()


def test_rows_and_blobs_of_many_pages(in_clear: Marked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewrap, "_PAGE", 3)
    with reopened(in_clear.place, read_only=False) as ledger:
        own = len(ledger.store.read_stream("ledger"))
        assert seal_older_rows(ledger) == (ledger.store.size() - own, ())
        assert rewrap.clear_rows(ledger.store) == 0
        assert LARGE in {record.content("body") for record in ledger.store.read_stream(f"task:{in_clear.task}")}


def test_while_others_use_the_database_the_rest_waits(in_clear: Marked, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: object, **__: object) -> None:
        raise BusyError("another process reads it")

    with reopened(in_clear.place, read_only=False) as ledger:
        with monkeypatch.context() as patch:
            patch.setattr(Store, "compact", busy)
            with pytest.raises(BusyError):
                seal_older_rows(ledger)
        assert ledger.store.keys.fact(MIGRATING) is not None
        assert seal_older_rows(ledger) == (0, ())
        assert ledger.store.keys.fact(MIGRATING) is None
