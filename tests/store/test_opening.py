"""Opening: what is made, what is refused with one clear error, and reading without any right to write."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import tempfile
import threading
from contextlib import closing
from itertools import takewhile
from pathlib import Path

import pytest

from a2a_ledger.errors import BusyError, MissingKeysError, ReadOnlyError, StoreError
from a2a_ledger.store import Store, open_store
from tests.store.facts import BODY, ORIGIN, PEER, keep, message, new_store, new_stream


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_makes_private_files(tmp_path: Path) -> None:
    place = tmp_path / "new" / "ledger"
    new_store(place).close()
    assert mode(place) == 0o700
    assert {path.name: mode(path) for path in place.iterdir()} == {"ledger.db": 0o600, "keys.db": 0o600}


def test_a_ledger_opens_again_under_its_own_name(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    stream = new_stream(store)
    store.append([message(stream)])
    store.close()
    again = open_store(tmp_path)
    assert (again.origin, again.size()) == (ORIGIN, 1)
    assert again.append([message(stream)])[0].ver == 1
    again.close()
    with pytest.raises(StoreError, match="expected the log other/00000000"):
        open_store(tmp_path, origin="other/00000000")


def test_an_unfinished_making_can_be_made_again_under_another_name(tmp_path: Path) -> None:
    open_store(tmp_path, origin="first/00000000", create=True).close()
    store = open_store(tmp_path, origin=ORIGIN, create=True)
    store.append([message("ledger")])
    store.close()
    with closing(open_store(tmp_path)) as again:
        assert again.origin == ORIGIN


def test_refuses_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"no ledger\.db"):
        open_store(tmp_path / "nowhere")
    (tmp_path / "ledger.db").touch()
    with pytest.raises(StoreError, match=r"no ledger\.db"):
        open_store(tmp_path)
    assert list(tmp_path.iterdir()) == [tmp_path / "ledger.db"]


def test_refuses_a_database_without_its_keys(tmp_path: Path) -> None:
    new_store(tmp_path).close()
    (tmp_path / "keys.db").unlink()
    for create in (False, True):
        with pytest.raises(MissingKeysError, match=r"keys\.db"):
            open_store(tmp_path, origin=ORIGIN, create=create)


@pytest.mark.parametrize("name", ["ledger.db", "keys.db"])
def test_refuses_a_file_that_is_no_database(tmp_path: Path, name: str) -> None:
    new_store(tmp_path).close()
    (tmp_path / name).write_bytes(b"this is no database, and it is long enough to be told from one\n" * 20)
    with pytest.raises(StoreError, match="another kind of file"):
        open_store(tmp_path)


def test_refuses_the_key_store_of_another_log(tmp_path: Path) -> None:
    for name in ("ours", "theirs"):
        with closing(new_store(tmp_path / name)) as store:
            store.append([message("ledger")])
    shutil.copy(tmp_path / "theirs" / "keys.db", tmp_path / "ours" / "keys.db")
    with pytest.raises(MissingKeysError, match="found those of another log") as error:
        open_store(tmp_path / "ours")
    assert "same backup" in error.value.hint
    with closing(open_store(tmp_path / "ours", read_only=True)) as reader:
        assert reader.size() == 1


def test_a_task_that_began_the_log_needs_its_key_too(tmp_path: Path) -> None:
    for name in ("ours", "theirs"):
        with closing(new_store(tmp_path / name)) as store:
            store.append([message(new_stream(store))])
    open_store(tmp_path / "ours").close()
    shutil.copy(tmp_path / "theirs" / "keys.db", tmp_path / "ours" / "keys.db")
    with pytest.raises(MissingKeysError, match="this key store is of another time than the database"):
        open_store(tmp_path / "ours")


@pytest.mark.parametrize("create", [False, True])
def test_an_empty_key_store_is_not_filled_where_there_is_a_log(tmp_path: Path, *, create: bool) -> None:
    with closing(new_store(tmp_path)) as store:
        store.append([message("ledger")])
    (tmp_path / "keys.db").write_bytes(b"")
    with pytest.raises(MissingKeysError, match="found it empty"):
        open_store(tmp_path, origin=ORIGIN, create=create)
    assert (tmp_path / "keys.db").read_bytes() == b""
    with closing(open_store(tmp_path, read_only=True)) as reader:
        assert reader.size() == 1
        with pytest.raises(MissingKeysError, match="found it empty"):
            reader.keys.stream_key("ledger")


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("beside", ["keys.db", "high-water"])
def test_an_empty_database_beside_what_a_log_left_is_a_loss(tmp_path: Path, beside: str, *, read_only: bool) -> None:
    (tmp_path / "ledger.db").touch()
    (tmp_path / beside).write_bytes(b"whatever it is")
    with pytest.raises(StoreError, match="found an empty file") as error:
        open_store(tmp_path, read_only=read_only)
    assert "restore ledger.db from a backup" in error.value.hint


@pytest.mark.parametrize("name", ["ledger.db", "keys.db"])
def test_refuses_another_programs_database(tmp_path: Path, name: str) -> None:
    new_store(tmp_path).close()
    (tmp_path / name).unlink()
    with closing(sqlite3.connect(tmp_path / name)) as other, other:
        other.execute("CREATE TABLE theirs (x)")
    other.close()
    with pytest.raises(StoreError, match="found another database"):
        open_store(tmp_path)


def test_refuses_a_newer_format(tmp_path: Path) -> None:
    new_store(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as newer, newer:
        newer.execute("PRAGMA user_version = 2")
    newer.close()
    with pytest.raises(StoreError, match="format 2"):
        open_store(tmp_path)


def test_says_so_when_the_place_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"make a ledger in .*, found: Not a directory"):
        open_store(tmp_path / "file" / "ledger", origin=ORIGIN, create=True)


def test_gives_up_on_a_lock_after_the_time_out(tmp_path: Path) -> None:
    new_store(tmp_path).close()
    store = open_store(tmp_path, busy_timeout=0.05)
    stream = new_stream(store)
    holder = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    fact = message(stream)
    with pytest.raises(BusyError, match="locked"):
        store.append([fact])
    holder.execute("ROLLBACK")
    holder.close()
    assert store.append([fact])[0].n == 0
    store.close()


@pytest.mark.parametrize("read_only", [True, False])
def test_says_so_when_a_database_is_locked_as_a_whole(tmp_path: Path, *, read_only: bool) -> None:
    new_store(tmp_path).close()
    holder = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
    holder.execute("PRAGMA locking_mode = EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    holder.execute("CREATE TABLE theirs (x)")
    with pytest.raises(BusyError, match="locked"):
        open_store(tmp_path, busy_timeout=0.05, read_only=read_only)
    holder.close()


def test_waits_for_a_lock_that_is_given_up(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    stream = new_stream(store)
    holder = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.1, lambda: holder.execute("ROLLBACK"))
    release.start()
    assert store.append([message(stream)])[0].n == 0
    release.join()
    holder.close()
    store.close()


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    for place in (tmp_path, None):
        store = new_store(place)
        stream = new_stream(store)
        store.close()
        with pytest.raises(StoreError, match="closed"):
            store.append([message(stream)])
        with pytest.raises(StoreError, match="closed"):
            store.size()


def everything(store: Store, stream: str) -> list[object]:
    """Return what every reading method gives."""
    with store.raw() as raw:
        rows = [list(raw.rows(table)) for table in ("ledger_events", "ledger_tags", "ledger_tiles", "ledger_blobs")]
        damage = raw.damage()
    return [
        store.origin,
        store.size(),
        [record.raw for record in store.read(0, 1000)],
        [record.c for record in store.read_stream(stream)],
        store.record(1).content("body"),
        [record.n for record in store.tagged(f"context:{PEER}:c-1")],
        store.tagged_prefix("context:", 9),
        store.streams(),
        list(store.leaves(0, 300)),
        store.root(),
        store.inclusion(3, 290),
        store.consistency(256, 300),
        store.checkpoints(),
        store.latest_checkpoint(),
        store.position("verifier"),
        rows,
        damage,
    ]


@pytest.mark.parametrize("with_keys", [True, False])
def test_a_copy_is_read_without_writing(tmp_path: Path, *, with_keys: bool) -> None:
    store = new_store(tmp_path / "ledger")
    stream = new_stream(store)
    store.append([message(stream, blobs={"body": BODY * 3000}) for _ in range(300)])
    keep(store, 300, "note\n")
    with store.transaction() as connection:
        store.advance(connection, "verifier", 7)
    expected = everything(store, stream)
    store.close()
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ["ledger.db", "keys.db"] if with_keys else ["ledger.db"]:
        shutil.copy(tmp_path / "ledger" / name, copy / name)
    before = {path.name: path.read_bytes() for path in copy.iterdir()}
    for path in copy.iterdir():
        path.chmod(0o400)
    reader = open_store(copy, read_only=True)
    assert reader.read_only
    if with_keys:
        assert everything(reader, stream) == expected
    else:
        assert reader.size() == 300
        with pytest.raises(MissingKeysError, match="found none"):
            reader.record(0)
    with pytest.raises(ReadOnlyError):
        reader.append([message(stream)])
    with pytest.raises(ReadOnlyError), reader.transaction():
        pass
    with pytest.raises((ReadOnlyError, MissingKeysError)):
        reader.keys.new_task()
    if with_keys:
        assert reader.keys.stream_key(stream)
    else:
        with pytest.raises(MissingKeysError):
            reader.keys.stream_key(stream)
    reader.close()
    assert {path.name: path.read_bytes() for path in copy.iterdir() if path.suffix == ".db"} == before


@pytest.mark.skipif(os.geteuid() != 0, reason="needs the right to give up rights: run as root")
def test_a_copy_in_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    store = new_store(tmp_path / "ledger")
    stream = new_stream(store)
    store.append([message(stream) for _ in range(300)])
    expected = everything(store, stream)
    store.close()
    for path in (tmp_path / "ledger").iterdir():
        path.chmod(0o444)
    shared = Path(tempfile.gettempdir()).resolve()
    above = [tmp_path / "ledger", tmp_path, *takewhile(lambda place: place != shared, tmp_path.parents)]
    above = above[:5]  # wherever the temporary directories lie: never those of the machine
    modes = [path.stat().st_mode for path in above]
    for path in above:
        path.chmod(0o555)
    child = os.fork()
    if child == 0:  # a user who may only read
        try:
            os.setuid(65534)
            reader = open_store(tmp_path / "ledger", read_only=True)
            os._exit(0 if everything(reader, stream) == expected else 1)
        except BaseException:  # noqa: BLE001 - a child must not return into the test run
            os._exit(2)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    for path, mode_before in zip(above, modes, strict=True):
        path.chmod(mode_before)
    assert code == 0
