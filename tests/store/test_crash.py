"""Crashes: at every step of the transaction, and by kill -9 at random points; acknowledged appends are all there."""

from __future__ import annotations

import random
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.store.checks import check_log
from tests.store.facts import message, new_store
from tests.store.recording_child import crash, record, running, write

if TYPE_CHECKING:
    from pathlib import Path


def test_dying_before_any_statement_leaves_all_or_nothing(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    store.append([message("ledger") for _ in range(253)])  # with the child's own first event, two short of a full tile
    store.close()
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    died: list[str] = []
    for step in range(1, 40):
        with running(crash, tmp_path, step) as child:
            (said,) = child.rest()
        commitments = check_log(tmp_path)
        if said == "committed":
            assert len(commitments) == 257
            break
        died.append(said)
        assert len(commitments) == 254  # the append before the crash, and nothing of the one that died
        for path in tmp_path.iterdir():
            path.unlink()
        for name, content in files.items():
            (tmp_path / name).write_bytes(content)
    else:
        pytest.fail("the transaction has more statements than this test expects")
    assert (died[0], died[-1]) == ("BEGIN IMMEDIATE", "COMMIT")
    for table in ("events", "blobs", "tags", "tiles"):
        assert any(f"INTO ledger_{table}" in said for said in died)


def test_kill_9_at_random_points_loses_no_acknowledged_append(tmp_path: Path) -> None:
    new_store(tmp_path).close()
    chance = random.Random(20260818)  # noqa: S311 - the same points in every run
    acknowledged: dict[int, str] = {}
    for _ in range(50):
        with running(record, tmp_path) as child:
            said = [child.pipe.recv_bytes().decode()]  # the first acknowledgement: it records now
            time.sleep(chance.random() * 0.03)
            child.process.kill()
            said += child.rest()
        for line in said:
            acknowledged.update((int(n), c) for n, c in (pair.split(":") for pair in line.split()))
    commitments = check_log(tmp_path)
    assert len(acknowledged) > 50
    assert {n: commitments[n] for n in acknowledged} == acknowledged


def test_four_processes_write_a_thousand_events_each(tmp_path: Path) -> None:
    new_store(tmp_path).close()
    with ExitStack() as stack:
        children = [stack.enter_context(running(write, tmp_path, 1000)) for _ in range(4)]
        for child in children:
            assert child.pipe.recv_bytes() == b"ready"
        for child in children:
            child.pipe.send_bytes(b"go")
        longest = [float(child.pipe.recv_bytes()) for child in children]
        for child in children:
            child.process.join()
            assert child.process.exitcode == 0
    assert len(check_log(tmp_path)) == 4000
    assert max(longest) < 5  # nobody starves; the aim of 0.2 s on an idle machine is measured by `bench`
