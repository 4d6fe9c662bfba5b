"""The high-water mark: forward only, twice, and a database held against it."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import pytest

from a2a_ledger.checkpoint import Checkpoint, sign_checkpoint
from a2a_ledger.errors import (
    BusyError,
    ConsistencyError,
    RollbackError,
    SignatureError,
    StoreError,
    UsageError,
    VerificationError,
)
from a2a_ledger.keys import generate
from a2a_ledger.merkle import leaf_hash
from a2a_ledger.store.mark import HighWaterMark
from tests.log.marked import LOG, ORIGIN, Log

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
    assert HighWaterMark(tmp_path, ORIGIN, keys=list).apart == Path("/state/a2a-ledger") / name
    for unusable in ("", "relative/state"):
        monkeypatch.setenv("XDG_STATE_HOME", unusable)
        assert HighWaterMark(tmp_path, ORIGIN, keys=list).apart == Path("/home/ann/.local/state/a2a-ledger") / name


def test_without_a_home_directory_a_place_must_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(StoreError, match=r"set mark_dir in config\.toml"):
        HighWaterMark(tmp_path, ORIGIN, keys=list)
    assert HighWaterMark(tmp_path, ORIGIN, keys=list, elsewhere=tmp_path).read() is None


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


@pytest.mark.parametrize("size", [3, 1_000_000])
def test_a_mark_that_the_log_did_not_sign_is_damaged_and_no_proof_of_an_old_copy(log: Log, size: int) -> None:
    """Whoever can write the file can damage it, and cannot make the database look old by it."""
    stranger = generate(ORIGIN, lambda size: b"\x03" * size)
    log.mark.beside.write_text(sign_checkpoint(Checkpoint(ORIGIN, size, bytes(32)), stranger))
    refused = r"high-water is damaged \(no known key signed this note.* move it away, and it is written again from"
    for look in (log.mark.read, log.check, log.sign):
        with pytest.raises(StoreError, match=refused):
            look()
    log.mark.beside.unlink()
    assert log.check() == [f"the high-water mark {log.mark.beside} was missing and was written again, at size 3"]


def test_a_mark_with_a_bent_signature_is_damaged(log: Log) -> None:
    log.mark.apart.write_text(log.notes[0].replace("\n3\n", "\n9\n"))
    with pytest.raises(StoreError, match=r"is damaged \(a signature by key .* does not verify"):
        log.check()


def test_no_mark_is_recovered_from_a_note_of_a_stranger(log: Log) -> None:
    log.mark.beside.unlink()
    log.mark.apart.unlink()
    stranger = generate(ORIGIN, lambda size: b"\x03" * size)
    with log.mark.exclusive() as held, pytest.raises(SignatureError, match="no known key"):
        held.recover(sign_checkpoint(Checkpoint(ORIGIN, 3, log.root(3)), stranger))
    assert log.copies() == [None, None]


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
        HighWaterMark(tmp_path / "nowhere", ORIGIN, keys=list, elsewhere=tmp_path).exclusive(),
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
