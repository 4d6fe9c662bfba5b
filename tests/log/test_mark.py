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
    assert f"written again from {log.mark.apart}" in str(error.value)
    log.mark.beside.write_bytes(b"")
    with pytest.raises(StoreError, match="is damaged"):
        log.mark.read()


def test_a_damaged_copy_may_have_been_the_larger_one_and_is_not_moved_away_unseen(log: Log) -> None:
    old = log.notes[0]
    log.grow(8)
    log.sign()
    log.mark.beside.write_text(old)  # the directory is put back from before, and the copy elsewhere is torn
    log.mark.apart.write_bytes(log.mark.apart.read_bytes()[:-3])
    log.grow(3)
    with pytest.raises(StoreError, match="may have been ahead of the other copy, which stands at size 3") as error:
        log.check()
    said = str(error.value)
    assert said.index("compare the newest checkpoint with one that somebody else holds") < said.index("move it away")


@pytest.mark.parametrize("left", [None, b"torn"])
def test_nothing_is_written_again_from_a_copy_that_is_no_copy(log: Log, left: bytes | None) -> None:
    log.mark.beside.write_bytes(b"torn")
    if left is None:
        log.mark.apart.unlink()
    else:
        log.mark.apart.write_bytes(left)
    with pytest.raises(StoreError, match=r"nothing shows any more that this database is not an old copy") as error:
        log.check()
    said = str(error.value)
    assert f"{log.mark.apart}, is {'missing' if left is None else 'damaged as well'}" in said
    assert "written again" not in said
    assert "checkpoint --recover-mark" in said


@pytest.mark.parametrize("size", [3, 1_000_000])
def test_a_mark_by_a_key_that_the_database_does_not_name_stops_all_writing_and_stays(log: Log, size: int) -> None:
    """An old copy lacks the keys that came later: to take such a mark for damage lets the log fork."""
    stranger = generate(ORIGIN, lambda size: b"\x03" * size)
    note = sign_checkpoint(Checkpoint(ORIGIN, size, bytes(32)), stranger)
    log.mark.beside.write_text(note)
    for torn in (False, True):
        if torn:
            log.mark.apart.write_bytes(b"")
        for look in (log.mark.read, log.check, log.sign):
            with pytest.raises(RollbackError, match="a key that this database does not name: either") as error:
                look()
            said = str(error.value)
            assert f"over {size} events of {ORIGIN}, is signed by {ORIGIN}+{stranger.key_id}" in said
            assert "the mark is somebody else's" in said
            assert "Restore the newest copy of ledger.db" in said
            assert "move" not in said
    assert log.mark.beside.read_text() == note


def test_a_key_file_here_that_signed_the_mark_shows_that_the_database_is_older(log: Log, tmp_path: Path) -> None:
    successor = generate(ORIGIN, lambda size: b"\x03" * size)
    other = generate(ORIGIN, lambda size: b"\x04" * size)
    keys = {tmp_path / "log.next.pem": other, tmp_path / "log.pem": successor}
    log.mark.apart.write_text(sign_checkpoint(Checkpoint(ORIGIN, 5, bytes(32)), successor))
    mark = HighWaterMark(
        log.mark.root,
        ORIGIN,
        keys=lambda: [LOG.verifier],
        here=lambda: [(path, signer.verifier) for path, signer in keys.items()],
        elsewhere=log.mark.apart.parent,
    )
    with pytest.raises(RollbackError, match="the database is an old copy, from before that key was added") as error:
        mark.read()
    assert f"is signed by the key in {tmp_path / 'log.pem'}, which this database does not name" in str(error.value)
    assert "move" not in str(error.value)


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
