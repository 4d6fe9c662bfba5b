"""The high-water mark: forward only, twice, durable before a note leaves, and whole after any crash."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from hashlib import sha256
from pathlib import Path

import pytest

from a2a_ledger.checkpoint import Checkpoint, sign_checkpoint
from a2a_ledger.errors import BusyError, ConsistencyError, RollbackError, StoreError, UsageError, VerificationError
from a2a_ledger.keys import generate
from a2a_ledger.merkle import leaf_hash, root_of, verify_consistency
from a2a_ledger.store.mark import HighWaterMark
from tests.log import trees

ORIGIN = "ledger.example/acme-0a1b2c3d"
LOG = generate(ORIGIN, lambda size: b"\x01" * size)


class CrashError(BaseException):
    """The process ends here, as far as the code under test can tell: nothing may catch it."""


class Log:
    """A log with a mark: a list of leaf hashes stands for the database, a list of notes for its table."""

    def __init__(self, root: Path, elsewhere: Path) -> None:
        root.mkdir(exist_ok=True)
        self.mark = HighWaterMark(root, ORIGIN, elsewhere=elsewhere, lock_timeout=0.05)
        self.hashes: list[bytes] = []
        self.notes: list[str] = []

    def grow(self, size: int) -> None:
        self.hashes = [leaf_hash(leaf) for leaf in trees.LEAVES[:size]]

    def root(self, size: int) -> bytes:
        return root_of(self.hashes[:size])

    def sign(self) -> str:
        """Do what a signer does, in its order."""
        with self.mark.exclusive() as held:
            head = Checkpoint(ORIGIN, len(self.hashes), self.root(len(self.hashes)))
            note = sign_checkpoint(head, LOG)
            held.advance(note, head, lambda old: self.prove(old, head))
            self.notes.append(note)
        return note

    def prove(self, old: Checkpoint, new: Checkpoint) -> None:
        verify_consistency(old.size, new.size, old.root, new.root, trees.proof(old.size, new.size))

    def check(self, *, strict: bool = False) -> list[str]:
        newest = self.notes[-1] if self.notes else None
        return self.mark.check(size=lambda: len(self.hashes), root=self.root, newest=newest, strict=strict)

    def copies(self) -> list[str | None]:
        return [path.read_text() if path.exists() else None for path in (self.mark.beside, self.mark.apart)]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Return a log of three leaves whose head was signed."""
    log = Log(tmp_path / "ledger", tmp_path / "state")
    assert log.check() == []
    log.grow(3)
    log.sign()
    return log


# ---- Forward, twice


def test_a_signed_note_lies_in_both_places(log: Log, tmp_path: Path) -> None:
    assert log.mark.beside == tmp_path / "ledger" / "high-water"
    assert log.mark.apart == tmp_path / "state" / sha256(ORIGIN.encode()).hexdigest()
    assert log.copies() == [log.notes[0], log.notes[0]]
    mark = log.mark.read()
    assert mark is not None
    assert (mark.head.size, mark.note) == (3, log.notes[0])
    log.grow(8)
    note = log.sign()
    assert log.copies() == [note, note]
    assert log.check() == []


def test_the_second_place_is_the_users_state_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = sha256(ORIGIN.encode()).hexdigest()
    monkeypatch.setenv("HOME", "/home/ann")
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert HighWaterMark(tmp_path, ORIGIN).apart == Path("/state/a2a-ledger") / name
    for unusable in ("", "relative/state"):
        monkeypatch.setenv("XDG_STATE_HOME", unusable)
        assert HighWaterMark(tmp_path, ORIGIN).apart == Path("/home/ann/.local/state/a2a-ledger") / name


def test_without_a_home_directory_a_place_must_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(StoreError, match=r"set mark_dir in config\.toml"):
        HighWaterMark(tmp_path, ORIGIN)
    assert HighWaterMark(tmp_path, ORIGIN, elsewhere=tmp_path).read() is None


def test_the_same_head_may_be_signed_again(log: Log) -> None:
    assert log.sign() == log.sign() == log.notes[0]


def test_a_smaller_head_is_not_signed(log: Log) -> None:
    log.grow(2)
    with pytest.raises(RollbackError, match="a head of 2 events was about to be signed, but a tree head of 3"):
        log.sign()
    assert log.copies() == [log.notes[0], log.notes[0]]


def test_a_head_that_does_not_extend_the_mark_is_not_signed(log: Log) -> None:
    log.grow(5)
    log.hashes[0] = leaf_hash(b"rewritten")
    with pytest.raises(ConsistencyError, match="does not extend"):
        log.sign()
    assert log.copies() == [log.notes[0], log.notes[0]]


def test_two_heads_of_one_size_are_a_fork(log: Log) -> None:
    log.hashes[0] = leaf_hash(b"rewritten")
    with pytest.raises(VerificationError, match=r"two tree heads of .* at size 3 with different roots"):
        log.sign()
    log.mark.beside.write_text(sign_checkpoint(Checkpoint(ORIGIN, 3, log.root(3)), LOG))
    with pytest.raises(VerificationError, match="the log has forked"):
        log.mark.read()
    with pytest.raises(VerificationError, match="the log has forked"):
        log.check()


def test_a_note_over_another_head_is_not_taken(log: Log) -> None:
    head = Checkpoint(ORIGIN, 4, bytes(32))
    other = generate("other.example/log-01234567", lambda size: b"\x02" * size)
    foreign = Checkpoint(other.name, 4, bytes(32))
    with log.mark.exclusive() as held:
        for note, stated in ((log.notes[0], head), (sign_checkpoint(foreign, other), foreign)):
            with pytest.raises(UsageError, match="found one over another head"):
                held.advance(note, stated, lambda _: None)
    assert log.copies() == [log.notes[0], log.notes[0]]


# ---- A database against its mark


def test_an_older_database_is_refused(log: Log) -> None:
    log.grow(2)
    with pytest.raises(RollbackError, match="the database holds 2 events, but a tree head of 3 was signed") as error:
        log.check()
    assert "restore the newest copy of ledger.db" in str(error.value)
    assert str(log.mark.apart) in str(error.value)


def test_another_database_of_that_size_is_refused(log: Log) -> None:
    log.grow(9)
    log.hashes[2] = leaf_hash(b"rewritten")
    with pytest.raises(VerificationError, match="the database is not what was signed: at size 3"):
        log.check()


def test_nobody_can_sign_while_a_database_is_compared(log: Log) -> None:
    """Size and root are asked for under the lock: else a head signed meanwhile would look like a rollback."""
    asked: list[str] = []

    def size() -> int:
        with pytest.raises(BusyError):
            log.sign()
        asked.append("size")
        return len(log.hashes)

    assert log.mark.check(size=size, root=log.root, newest=log.notes[0]) == []
    assert asked == ["size"]


@pytest.mark.parametrize("which", ["beside", "apart"])
def test_one_missing_copy_is_written_again_and_said(log: Log, which: str) -> None:
    lost: Path = getattr(log.mark, which)
    lost.unlink()
    with pytest.raises(StoreError, match="is missing, and strict_mark is set"):
        log.check(strict=True)
    assert not lost.exists()
    [said] = log.check()
    assert said == f"the high-water mark {lost} was missing and was written again, at size 3"
    assert log.copies() == [log.notes[0], log.notes[0]]
    assert log.check(strict=True) == []


def test_a_mounted_ledger_in_a_fresh_container(log: Log, tmp_path: Path) -> None:
    fresh = Log(tmp_path / "ledger", tmp_path / "no" / "such" / "state")
    fresh.grow(3)
    fresh.notes = log.notes
    [said] = fresh.check()
    assert "was missing and was written again" in said
    assert fresh.mark.apart.read_text() == log.notes[0]


@pytest.mark.parametrize("strict", [False, True])
def test_both_copies_missing_over_a_log_that_was_signed(log: Log, *, strict: bool) -> None:
    log.mark.beside.unlink()
    log.mark.apart.unlink()
    with pytest.raises(StoreError, match=r"missing in both places .* a checkpoint of size 3") as error:
        log.check(strict=strict)
    assert "a2a-ledger checkpoint --recover-mark" in str(error.value)
    assert log.copies() == [None, None]
    with log.mark.exclusive() as held:
        held.recover(log.notes[0])
    assert log.copies() == [log.notes[0], log.notes[0]]
    assert log.check(strict=True) == []


def test_nothing_is_recovered_that_is_not_lost(log: Log) -> None:
    with log.mark.exclusive() as held, pytest.raises(UsageError, match="is not missing"):
        held.recover(log.notes[0])
    log.mark.beside.unlink()
    log.mark.apart.unlink()
    other = generate("other.example/log-01234567", lambda size: b"\x02" * size)
    with log.mark.exclusive() as held, pytest.raises(UsageError, match="found one of other"):
        held.recover(sign_checkpoint(Checkpoint(other.name, 3, bytes(32)), other))


def test_a_damaged_copy_is_named_with_what_to_do(log: Log) -> None:
    log.mark.beside.write_bytes(log.mark.beside.read_bytes()[:-3])
    with pytest.raises(StoreError, match=r"high-water is damaged .* move it away") as error:
        log.check()
    assert str(log.mark.apart) in str(error.value)
    log.mark.beside.write_bytes(b"")
    with pytest.raises(StoreError, match="is damaged"):
        log.mark.read()


def test_the_mark_of_another_log(log: Log) -> None:
    other = generate("other.example/log-01234567", lambda size: b"\x02" * size)
    log.mark.beside.write_text(sign_checkpoint(Checkpoint(other.name, 3, bytes(32)), other))
    with pytest.raises(StoreError, match=r"is of log other\.example/log-01234567, expected ledger\.example"):
        log.check()


def test_places_that_cannot_be_read_or_written(log: Log, tmp_path: Path) -> None:
    log.mark.beside.unlink()
    log.mark.beside.mkdir()
    with pytest.raises(StoreError, match="cannot read the high-water mark"):
        log.mark.read()
    (tmp_path / "file").touch()
    blocked = Log(tmp_path / "other", tmp_path / "file")
    blocked.grow(3)
    with pytest.raises(StoreError, match="cannot read the high-water mark"):
        blocked.sign()
    with (
        pytest.raises(StoreError, match="cannot open the signer's lock"),
        HighWaterMark(tmp_path / "nowhere", ORIGIN, elsewhere=tmp_path).exclusive(),
    ):
        pass


def test_a_full_disk_leaves_the_old_mark(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    log.grow(5)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match=r"cannot write the high-water mark .*No space left on device"):
        log.sign()
    assert log.copies() == [log.notes[0], log.notes[0]]
    assert len(log.notes) == 1


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
    patient = HighWaterMark(log.mark.beside.parent, ORIGIN, elsewhere=log.mark.apart.parent)
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
        "with HighWaterMark(Path(sys.argv[1]), sys.argv[2], elsewhere=Path(sys.argv[3])).exclusive():\n"
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
