"""A copy taken while others write is one state of the log; put back, it never passes for the newest."""

from __future__ import annotations

import shutil
import sqlite3
import stat
import threading
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.audit import audit_ledger
from a2a_ledger.backup import Backup, back_up
from a2a_ledger.errors import MissingKeysError, RollbackError, StoreError, UsageError
from a2a_ledger.ledger import ContractLedger
from tests.evidence.recorded import dispute

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def ledger_dir(tmp_path: Path) -> Path:
    """Return a closed ledger that holds one dispute, whose second mark lies in `marks`."""
    place = tmp_path / "audit"
    with ContractLedger.open(place, origin="acme/audit", follow=False) as ledger:
        dispute(ledger)
        ledger.catch_up()
        ledger.sign_checkpoint()
    (place / "config.toml").write_text(f'mark_dir = "{tmp_path / "marks"}"\n')
    with ContractLedger.open(place, follow=False) as ledger:
        ledger.sign_checkpoint()
    return place


def contents(place: Path) -> tuple[list[object], str]:
    with ContractLedger.open(place, read_only=True) as ledger:
        newest = ledger.store.latest_checkpoint()
        return list(ledger.store.read(0, 1000)), newest[1] if newest else ""


def restored(tmp_path: Path, *parts: Path) -> Path:
    place = tmp_path / "restored"
    for part in parts:
        shutil.copytree(part, place, dirs_exist_ok=True)
    return place


def test_a_copy_holds_what_the_ledger_holds(ledger_dir: Path, tmp_path: Path) -> None:
    made = back_up(ledger_dir, tmp_path / "copy")
    assert contents(tmp_path / "copy") == contents(ledger_dir)
    size = len(contents(ledger_dir)[0])
    assert made == Backup(events=size, head=size, not_copied=())
    kept = sorted(path.relative_to(tmp_path / "copy").as_posix() for path in (tmp_path / "copy").rglob("*"))
    assert kept == [
        "config.toml",
        "keys",
        "keys.db",
        "keys/export.pem",
        "keys/log.pem",
        "keys/statement.pem",
        "ledger.db",
    ]


def test_the_keys_lie_apart_and_the_database_does_not_open_without_them(ledger_dir: Path, tmp_path: Path) -> None:
    back_up(ledger_dir, tmp_path / "copy", keys=tmp_path / "keys")
    assert sorted(path.name for path in (tmp_path / "keys").iterdir()) == ["keys", "keys.db"]
    assert sorted(path.name for path in (tmp_path / "copy").iterdir()) == ["config.toml", "ledger.db"]
    with pytest.raises(MissingKeysError):
        ContractLedger.open(tmp_path / "copy", read_only=True)
    assert contents(restored(tmp_path, tmp_path / "copy", tmp_path / "keys")) == contents(ledger_dir)


def test_only_its_user_reads_the_copy(ledger_dir: Path, tmp_path: Path) -> None:
    back_up(ledger_dir, tmp_path / "copy", keys=tmp_path / "keys")
    secret = [tmp_path / "copy" / "ledger.db", *(path for path in (tmp_path / "keys").rglob("*") if path.is_file())]
    assert {stat.S_IMODE(path.stat().st_mode) for path in secret} == {0o600}
    assert {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("copy", "keys")} == {0o700}


def test_what_stands_in_the_write_ahead_log_alone_is_copied(ledger_dir: Path, tmp_path: Path) -> None:
    with ContractLedger.open(ledger_dir, follow=False) as ledger:
        dispute(ledger, name="t2")
        ledger.catch_up()
        size = ledger.store.size()
        assert (ledger_dir / "ledger.db-wal").stat().st_size > 0
        assert back_up(ledger_dir, tmp_path / "copy").events == size


def test_a_copy_taken_under_writers_is_one_state_of_the_log(ledger_dir: Path, tmp_path: Path) -> None:
    """Each copy is made while a thread appends, and each is whole: chain, leaves, tags and boxes."""
    with ContractLedger.open(ledger_dir, follow=False) as ledger:
        stop, wrote = threading.Event(), threading.Event()

        def write() -> None:
            number = 2
            while not stop.is_set():
                dispute(ledger, name=f"t{number}")
                wrote.set()
                number += 1

        writer = threading.Thread(target=write)
        writer.start()
        try:
            made: list[Backup] = []
            for number in range(3):
                wrote.clear()
                assert wrote.wait(60)
                made.append(back_up(ledger_dir, tmp_path / f"copy-{number}"))
        finally:
            stop.set()
            writer.join()
    assert sorted({copy.events for copy in made}) == [copy.events for copy in made]
    for number, copy in enumerate(made):
        with ContractLedger.open(tmp_path / f"copy-{number}", read_only=True) as ledger:
            report = audit_ledger(ledger)
        # The thread wrote on behind the copy, and signed: that the copy is older than the mark is what is right.
        assert [fault.kind for fault in report.faults if fault.kind != "truncated"] == []
        assert report.events == copy.events


def test_put_back_where_nothing_was_signed_since_it_goes_on(ledger_dir: Path, tmp_path: Path) -> None:
    back_up(ledger_dir, tmp_path / "copy")
    place = restored(tmp_path, tmp_path / "copy")
    with ContractLedger.open(place, follow=False) as ledger:
        dispute(ledger, name="t2")
        ledger.catch_up()
        ledger.sign_checkpoint()
        assert audit_ledger(ledger).faults == ()


def test_put_back_where_more_was_signed_it_is_read_and_not_written_on(ledger_dir: Path, tmp_path: Path) -> None:
    back_up(ledger_dir, tmp_path / "copy")
    with ContractLedger.open(ledger_dir, follow=False) as ledger:
        dispute(ledger, name="t2")
        ledger.catch_up()
        ledger.sign_checkpoint()
    place = restored(tmp_path, tmp_path / "copy")
    with pytest.raises(RollbackError, match="this database is an old copy"):
        ContractLedger.open(place, follow=False)
    assert contents(place) == contents(tmp_path / "copy")
    with ContractLedger.open(place, read_only=True) as ledger:
        assert "truncated" in [fault.kind for fault in audit_ledger(ledger).faults]


def test_put_back_where_no_mark_is_left_it_asks_for_a_comparison(ledger_dir: Path, tmp_path: Path) -> None:
    back_up(ledger_dir, tmp_path / "copy")
    shutil.rmtree(tmp_path / "marks")
    with pytest.raises(StoreError, match="compare the newest checkpoint"):
        ContractLedger.open(restored(tmp_path, tmp_path / "copy"), follow=False)


def test_files_that_settings_name(ledger_dir: Path, tmp_path: Path) -> None:
    outside = tmp_path / "keys.jwks.json"
    outside.write_text('{"keys": []}')
    (ledger_dir / "rules").mkdir()
    (ledger_dir / "rules" / "p.toml").write_text("")
    with (ledger_dir / "config.toml").open("a") as config:
        config.write(f'profile = "rules/p.toml"\ncard_keys = "{outside}"\n')
    assert back_up(ledger_dir, tmp_path / "copy").not_copied == (str(outside),)
    assert (tmp_path / "copy" / "rules" / "p.toml").is_file()


NAMED = ["profile", "card_keys", "key_passphrase_file", "witnesses", "peers", "timestamp_roots"]


def name_files(ledger_dir: Path, place: str) -> None:
    """Put a file of each kind that a setting can name into a folder, and have `config.toml` name them all."""
    (ledger_dir / place).mkdir()
    for name in [*NAMED, "head"]:
        (ledger_dir / place / name).write_text(name)
    lines = [f'{name} = "{place}/{name}"' for name in NAMED]
    lines[3:3] = ["[anchor]", f'files = ["{place}/head"]']
    with (ledger_dir / "config.toml").open("a") as config:
        config.write("\n".join([*lines, ""]))


@pytest.mark.parametrize("spelling", ["named", "./sub/../named", "../audit/named", "{audit}/named"])
def test_every_file_that_settings_name_comes_along_but_heads(ledger_dir: Path, tmp_path: Path, spelling: str) -> None:
    """An old head must not come back together with the old database, for which it would vouch."""
    (ledger_dir / "sub").mkdir()
    place = spelling.format(audit=ledger_dir)
    name_files(ledger_dir, place)
    made = back_up(ledger_dir, tmp_path / "copy", keys=tmp_path / "keys")
    assert made.not_copied == (f"{place}/head",)
    assert {path.name: path.read_text() for path in (tmp_path / "copy" / "named").iterdir()} == {n: n for n in NAMED}


def test_files_that_lie_elsewhere_are_named(ledger_dir: Path, tmp_path: Path) -> None:
    place = str(tmp_path / "elsewhere")
    name_files(ledger_dir, place)
    (ledger_dir / "linked").symlink_to(tmp_path / "elsewhere" / "profile")
    config = (ledger_dir / "config.toml").read_text()
    (ledger_dir / "config.toml").write_text(config.replace(f"{place}/profile", "linked"))
    made = back_up(ledger_dir, tmp_path / "copy")
    assert made.not_copied == ("linked", *(f"{place}/{name}" for name in [*NAMED[1:], "head"]))
    assert sorted(path.name for path in (tmp_path / "copy").iterdir()) == [
        "config.toml",
        "keys",
        "keys.db",
        "ledger.db",
    ]


@pytest.mark.parametrize("place", ["audit", "audit/copy", "taken"])
def test_places_that_are_none(ledger_dir: Path, tmp_path: Path, place: str) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").touch()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UsageError):
        back_up(ledger_dir, tmp_path / place)
    with pytest.raises(UsageError):
        back_up(ledger_dir, tmp_path / "copy", keys=tmp_path / place)
    with pytest.raises(UsageError, match="another place for the keys"):
        back_up(ledger_dir, tmp_path / "copy", keys=tmp_path / "copy")
    assert sorted(tmp_path.rglob("*")) == before


def test_no_ledger(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected a ledger, found none"):
        back_up(tmp_path / "nothing", tmp_path / "copy")


def test_a_copy_that_fails_leaves_nothing(ledger_dir: Path, tmp_path: Path) -> None:
    """The key store is damaged, which is met behind the database."""
    with closing(sqlite3.connect(ledger_dir / "keys.db")) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
    (ledger_dir / "keys.db").write_bytes(b"no database" * 500)
    with pytest.raises(StoreError, match=r"keys\.db"):
        back_up(ledger_dir, tmp_path / "copy", keys=tmp_path / "keys")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["audit", "marks"]
