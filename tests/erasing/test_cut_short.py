"""An erasure that dies behind any of its steps: no fault at any time, and whoever opens the ledger next finishes it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.audit import audit_ledger
from a2a_ledger.codec import erased_versions
from a2a_ledger.erasing import erase_content, unfinished_erasures
from a2a_ledger.errors import BusyError
from a2a_ledger.store import Store
from tests.erasing.dying import STEPS, die_erasing
from tests.erasing.marked import LARGE, MARKER, box_keys, files_with
from tests.evidence.conftest import reopened
from tests.store.recording_child import running

if TYPE_CHECKING:
    from tests.erasing.marked import Marked

NOT_LOGGED = {"noted", "keys made"}
"""Steps before the event: nothing was erased, and nothing is."""


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("older", [False, True], ids=["sealed", "in clear"])
def test_the_next_to_open_finishes_it(marked: Marked, in_clear: Marked, step: str, *, older: bool) -> None:
    ledger_of = in_clear if older else marked
    place, task = ledger_of.place, ledger_of.task
    keys = [] if older else box_keys(place, task)
    with running(die_erasing, place, task, step) as child:
        assert child.rest() == [step]
    with reopened(place) as reader:
        report = audit_ledger(reader)
        assert report.faults == ()
        assert any("was begun and is not finished" in note for note in report.notes)
        assert unfinished_erasures(reader) == [task]
    with reopened(place, read_only=False) as ledger:
        assert unfinished_erasures(ledger) == []
        assert audit_ledger(ledger).faults == ()
        stream = ledger.store.read_stream(f"task:{task}")
        erased = {ver for record in stream for ver in erased_versions(record)}
        bodies = {record.content("body") for record in stream}
        if step in NOT_LOGGED:
            assert erased == set()
            assert LARGE in bodies
            assert erase_content(ledger, task, reason="request 17", requested_by="Jo Doe").erased == 11
        else:
            assert len(erased) == 11
            assert LARGE not in bodies
    assert [files_with(place, octets) for octets in (MARKER, *keys)] == [set()] * (1 + len(keys))
    with reopened(place) as reader:
        assert audit_ledger(reader).faults == ()


def test_what_cannot_be_finished_keeps_nobody_from_opening(
    marked: Marked, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with running(die_erasing, marked.place, marked.task, "event") as child:
        child.rest()

    def busy(*_: object, **__: object) -> None:
        raise BusyError("another process reads it")

    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(Store, "compact", busy)
        with reopened(marked.place, read_only=False) as ledger:
            assert unfinished_erasures(ledger) == [marked.task]
    assert "an erasure was begun and is not finished: another process reads it" in caplog.text
    with reopened(marked.place, read_only=False) as ledger:
        assert unfinished_erasures(ledger) == []


def test_without_the_log_key_it_waits_for_who_has_it(marked: Marked) -> None:
    """Nothing is destroyed before a signed head covers the event."""
    with running(die_erasing, marked.place, marked.task, "event") as child:
        child.rest()
    key = marked.place / "keys" / "log.pem"
    away = key.rename(marked.place.parent / "log.pem")
    with reopened(marked.place, read_only=False) as ledger:
        assert unfinished_erasures(ledger) == [marked.task]
        assert LARGE in {record.content("body") for record in ledger.store.read_stream(f"task:{marked.task}")}
    away.rename(key)
    with reopened(marked.place, read_only=False) as ledger:
        assert unfinished_erasures(ledger) == []
        assert LARGE not in {record.content("body") for record in ledger.store.read_stream(f"task:{marked.task}")}


def test_without_the_log_key_it_is_finished_where_a_head_covers_it_already(marked: Marked) -> None:
    with running(die_erasing, marked.place, marked.task, "head") as child:
        child.rest()
    (marked.place / "keys" / "log.pem").rename(marked.place.parent / "log.pem")
    with reopened(marked.place, read_only=False) as ledger:
        assert "log" not in ledger.signers
        assert unfinished_erasures(ledger) == []
        assert LARGE not in {record.content("body") for record in ledger.store.read_stream(f"task:{marked.task}")}
