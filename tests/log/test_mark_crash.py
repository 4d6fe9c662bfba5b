"""The high-water mark after a crash at any step, and its one signer at a time."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from a2a_ledger.checkpoint import Checkpoint, sign_checkpoint
from a2a_ledger.errors import BusyError, RollbackError
from a2a_ledger.store.mark import HighWaterMark
from tests.log import trees
from tests.log.marked import LOG, ORIGIN, Log


class CrashError(BaseException):
    """The process ends here, as far as the code under test can tell: nothing may catch it."""


# ---- Crashes


def crash_before(monkeypatch: pytest.MonkeyPatch, step: int) -> list[str]:
    """End the process, as far as the code can tell, before its durable step of that number; return those done."""
    done: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def count(name: str) -> None:
        if len(done) == step:
            raise CrashError(name)
        done.append(name)

    def counted_fsync(descriptor: int) -> None:
        count("fsync")
        fsync(descriptor)

    def counted_replace(self: Path, target: Path) -> Path:
        count("rename")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", counted_fsync)
    monkeypatch.setattr(Path, "replace", counted_replace)
    return done


STEPS = ["fsync", "rename", "fsync", "fsync", "rename", "fsync"]  # file, name, directory: beside, then apart


@pytest.mark.parametrize(
    ("step", "left"),
    [
        (0, "old old"),  # the temporary file is written, and perhaps not durable
        (1, "old old"),  # it is durable, and has not got its name
        (2, "new old"),  # it has its name, perhaps not durably
        (3, "new old"),  # between the two copies
        (4, "new old"),
        (5, "new new"),
        (6, "new new"),  # the mark is durable, and the note not in the database
    ],
)
def test_after_a_crash_at_any_step_the_log_goes_on(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, left: str
) -> None:
    old = log.notes[0]
    log.grow(5)
    new = sign_checkpoint(Checkpoint(ORIGIN, 5, trees.mth(0, 5)), LOG)
    with monkeypatch.context() as faults:
        done = crash_before(faults, step)
        if step < len(STEPS):
            with pytest.raises(CrashError):
                log.sign()
            assert log.notes == [old], "no note may leave before its mark is durable"
        else:
            log.sign()
            log.notes.pop()  # the database never got it
        assert done == STEPS[:step]
    assert log.copies() == [{"old": old, "new": new}[word] for word in left.split()]

    restarted = Log(tmp_path / "ledger", tmp_path / "state")
    restarted.grow(5)
    restarted.notes = [old]
    said = restarted.check(strict=True)
    behind = f"the high-water mark {log.mark.apart} was behind, at size 3, and was written again, at size 5"
    assert said == ([behind] if left == "new old" else [])
    mark = restarted.mark.read()
    assert mark is not None
    assert mark.note == (old if left == "old old" else new), "a signer puts this note into the database"
    assert restarted.sign() == new, "signing again gives the same bytes"
    restarted.grow(9)
    assert restarted.copies() == [new, new]
    newest = restarted.sign()
    assert restarted.copies() == [newest, newest]


@pytest.mark.parametrize("step", range(1, 7))
def test_after_a_crash_an_older_database_is_still_refused(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """From the first rename on, the new head may have been seen: a database without its leaves must not go on."""
    log.grow(5)
    with monkeypatch.context() as faults:
        crash_before(faults, step)
        with contextlib.suppress(CrashError):
            log.sign()
    restored = Log(tmp_path / "ledger", tmp_path / "state")
    restored.grow(4)
    restored.notes = [log.notes[0]]
    if step == 1:
        assert restored.check() == []  # nothing was named yet: nobody can have seen the head of 5
    else:
        with pytest.raises(RollbackError, match="the database holds 4 events, but a tree head of 5"):
            restored.check()


def test_a_crash_while_the_first_mark_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log(tmp_path / "ledger", tmp_path / "new" / "state")
    log.grow(3)
    with monkeypatch.context() as faults:
        crash_before(faults, 3)
        with pytest.raises(CrashError):
            log.sign()
    again = Log(tmp_path / "ledger", tmp_path / "new" / "state")
    again.grow(3)
    [said] = again.check()
    assert "was missing and was written again, at size 3" in said
    note = again.sign()
    assert again.copies() == [note, note]


# ---- One signer at a time


def test_a_second_signer_waits_and_then_gives_up(log: Log) -> None:
    with (
        log.mark.exclusive(),
        pytest.raises(BusyError, match=r"has held the signer's lock .* for 0\.05 s"),
        log.mark.exclusive(),
    ):
        pass
    log.sign()


def test_a_second_signer_gets_the_lock_when_it_is_given_back(log: Log) -> None:
    patient = HighWaterMark(log.mark.beside.parent, ORIGIN, keys=list, elsewhere=log.mark.apart.parent)
    order: list[str] = []

    def wait() -> None:
        with patient.exclusive():
            order.append("second")

    with log.mark.exclusive():
        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.05)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_a_signer_that_is_killed_gives_the_lock_back(log: Log) -> None:
    script = (
        "import sys, time\nfrom pathlib import Path\nfrom a2a_ledger.store.mark import HighWaterMark\n"
        "with HighWaterMark(Path(sys.argv[1]), sys.argv[2], keys=list, elsewhere=Path(sys.argv[3])).exclusive():\n"
        "    print('held', flush=True)\n    time.sleep(60)\n"
    )
    places = [str(log.mark.beside.parent), ORIGIN, str(log.mark.apart.parent)]
    with subprocess.Popen([sys.executable, "-c", script, *places], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(BusyError):
            log.sign()
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert log.sign() == log.notes[0]
