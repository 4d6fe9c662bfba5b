"""Many processes record on a server while the verifier reads on: each event is judged once, each thing found once."""

from __future__ import annotations

import multiprocessing
import os
import secrets
import time
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.audit import audit_ledger
from a2a_ledger.divergence import Cases
from a2a_ledger.ledger import ContractLedger
from a2a_ledger.store import Server
from a2a_ledger_projections.verifier import NAME
from tests.projections.logbook import Logbook

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.synchronize import Barrier, Event
    from pathlib import Path

    from a2a_ledger.codec import Record
    from a2a_ledger.divergence import Finding
    from tests.postgres_server import PostgresServer

STORY = 10
"""Appends of a task that gets stuck, in which the verifier finds two things."""

WAIT = 600.0
"""Seconds for the verifier to come as far as it should: far more than it takes, for a machine that is busy."""

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["tests.divergence.test_verifier_on_server"])


def record_stories(directory: Path, stories: int, begin: Barrier, judged: Event) -> None:
    """Record in a process of its own, one append at a time; the last story waits until something was judged."""
    begin.wait()
    with ContractLedger.open(directory, create=False, follow=False) as ledger:
        book = Logbook(store=ledger.store, draw=os.urandom)
        for _ in range(stories - 1):
            book.stuck()
        assert judged.wait(WAIT)
        book.stuck()


def until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("processes", "appends"), [(3, 30), pytest.param(8, 2000, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])]
)
def test_all_that_many_processes_record_is_verified_exactly_once(
    tmp_path: Path,
    postgres: PostgresServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    processes: int,
    appends: int,
) -> None:
    stories = appends // STORY
    judged: list[int] = []
    real = Cases.judge

    def judge(self: Cases, record: Record) -> list[Finding]:
        judged.append(record.n)
        return real(self, record)

    monkeypatch.setattr(Cases, "judge", judge)
    begin, some = _context.Barrier(processes), _context.Event()
    server = Server(postgres.url, f"t_{secrets.token_hex(8)}")
    with ContractLedger.open(tmp_path / "audit", server=server) as ledger:  # follows, as a program's own ledger does
        before = ledger.store.size()
        arguments = (tmp_path / "audit", stories, begin, some)
        writers = [_context.Process(target=record_stories, args=arguments) for _ in range(processes)]
        for writer in writers:
            writer.start()
        until(lambda: ledger.store.position(NAME) > before)
        some.set()
        for writer in writers:
            writer.join()
        assert [writer.exitcode for writer in writers] == [0] * processes

        told = processes * stories
        size = before + told * (STORY + 2)
        until(lambda: ledger.store.position(NAME) >= size)
        assert ledger.store.size() == size
        assert judged == list(range(size))
        found = [record for record in ledger.store.read(0, size) if record.type == "violation.detected.v1"]
        assert len({(record.stream, record.data["rule"], str(record.data["trigger"])) for record in found}) == 2 * told
        assert len(found) == 2 * told
        per_task = {record.stream for record in found}
        assert len(per_task) == told
        assert not audit_ledger(ledger).faults
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
