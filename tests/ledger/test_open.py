"""Opening a ledger: made whole, found again, refused with one clear line, and shared by processes."""

from __future__ import annotations

import importlib.metadata
import multiprocessing
import os
import shutil
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

import a2a_ledger
from a2a_ledger import ContractLedger
from a2a_ledger.audit import audit_ledger
from a2a_ledger.checkpoint import checkpoint_of
from a2a_ledger.errors import (
    LedgerError,
    MissingKeysError,
    ReadOnlyError,
    RollbackError,
    StoreError,
    UsageError,
)
from a2a_ledger.events import KeyAdded, KeyRetired, SendAborted
from a2a_ledger.keys import generate, save_pem
from a2a_ledger.making import SOFTWARE

if TYPE_CHECKING:
    from multiprocessing.synchronize import Barrier

    from a2a_ledger.codec import Draft


def note(ledger: ContractLedger, task: str) -> Draft:
    """Return some event of a task."""
    event = SendAborted(peer="0" * 32, reason="flapping", card_gets=0, requests=0)
    return ledger.draft(event, stream=f"task:{task}")


def open_at(place: Path, **options: Any) -> ContractLedger:  # noqa: ANN401 - passed through to ContractLedger.open
    """Open the ledger of a test without followers."""
    return ContractLedger.open(place, follow=False, **options)


def test_a_new_ledger_holds_its_opening_and_one_event_a_key_under_a_signed_head(tmp_path: Path) -> None:
    with open_at(tmp_path / "audit", origin="acme/audit") as ledger:
        assert ledger.origin.startswith("acme/audit")
        assert [r.type for r in ledger.store.read(0, 10)] == ["ledger.opened.v1"] + ["key.added.v1"] * 3
        assert [r.data["role"] for r in ledger.store.read(1, 3)] == ["log", "statement", "export"]
        vkeys = [signer.vkey for signer in ledger.signers.values()]
        assert sorted(cast("list[str]", ledger.store.record(0).data["keys"])) == sorted(vkeys)
        origin = ledger.origin
    home = tmp_path / "audit"
    assert {path.name for path in home.iterdir()} >= {"ledger.db", "keys.db", "keys", "config.toml", "high-water"}
    assert {path.stat().st_mode & 0o777 for path in (home / "keys").iterdir()} == {0o600}
    assert home.stat().st_mode & 0o777 == 0o700
    assert checkpoint_of((home / "high-water").read_text()).size == 4
    with open_at(home) as again:
        assert again.origin == origin
        assert not again.read_only


def test_the_software_names_its_own_version() -> None:
    assert f"a2a-ledger/{a2a_ledger.__version__}" == SOFTWARE
    assert importlib.metadata.version("a2a-ledger") == a2a_ledger.__version__


def test_without_private_keys_a_ledger_opens_read_only(tmp_path: Path) -> None:
    open_at(tmp_path / "audit").close()
    shutil.copytree(tmp_path / "audit", tmp_path / "copy", ignore=shutil.ignore_patterns("keys"))
    with open_at(tmp_path / "copy") as ledger:
        assert ledger.read_only
        assert ledger.store.size() == 4
        with pytest.raises(ReadOnlyError, match="opened read-only"):
            ledger.new_task()
        with pytest.raises(ReadOnlyError, match="no log key"):
            ledger.sign_checkpoint()


def test_a_database_without_its_key_store_is_refused(tmp_path: Path) -> None:
    open_at(tmp_path / "audit").close()
    (tmp_path / "audit" / "keys.db").unlink()
    with pytest.raises(MissingKeysError, match=r"without its keys\.db"):
        open_at(tmp_path / "audit")


def test_a_key_store_without_its_database_is_refused(tmp_path: Path) -> None:
    open_at(tmp_path / "audit").close()
    (tmp_path / "audit" / "ledger.db").unlink()
    with pytest.raises(MissingKeysError, match=r"without its ledger\.db"):
        open_at(tmp_path / "audit")


def test_a_key_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    open_at(tmp_path / "audit").close()
    (tmp_path / "audit" / "keys" / "log.pem").chmod(0o644)
    with pytest.raises(StoreError, match="chmod 600"):
        open_at(tmp_path / "audit")


@pytest.mark.parametrize("role", ["log", "statement", "export"])
def test_a_private_key_that_the_log_does_not_name_for_its_role_is_refused(tmp_path: Path, role: str) -> None:
    place = tmp_path / "audit"
    with open_at(place) as ledger:
        vkeys = {name: signer.vkey for name, signer in ledger.signers.items()}
    other = "export" if role != "export" else "log"
    shutil.copy(place / "keys" / f"{other}.pem", place / "keys" / f"{role}.pem")
    with pytest.raises(StoreError) as error:
        open_at(place)
    for part in (str(place / "keys" / f"{role}.pem"), vkeys[role], f"found {vkeys[other]}"):
        assert part in str(error.value)
    assert f"put the right {role}.pem back" in error.value.hint
    with open_at(place, read_only=True) as ledger:
        assert ledger.store.size() == 4


def test_a_retired_key_signs_no_more(tmp_path: Path) -> None:
    place = tmp_path / "audit"
    with open_at(place) as ledger:
        old = ledger.signers["statement"]
        new = generate(ledger.origin, os.urandom)
        retired = KeyRetired(key_id=old.key_id, role="statement", vkey=old.vkey)
        added = KeyAdded(key_id=new.key_id, public_key=new.verifier.public_key.hex(), role="statement", vkey=new.vkey)
        ledger.append([ledger.draft(event, stream="ledger") for event in (retired, added)])
    with pytest.raises(StoreError, match=r"statement\.pem: expected the statement key"):
        open_at(place)
    (place / "keys" / "statement.pem").rename(place / "keys" / "statement-until-2026.pem")
    save_pem(place / "keys" / "statement.pem", new)
    with open_at(place) as ledger:
        assert set(ledger.signers) == {"log", "statement", "export"}
        assert ledger.signers["statement"].vkey == new.vkey


def test_a_directory_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"x")
    with pytest.raises(UsageError, match=r"found 'cat\.jpg' and no ledger\.db"):
        open_at(tmp_path / "photos")
    assert [path.name for path in (tmp_path / "photos").iterdir()] == ["cat.jpg"]


@pytest.mark.parametrize("place", ["/dev/null/audit", "/proc/audit"])
def test_a_place_that_cannot_be_written_is_one_clear_error(place: str) -> None:
    with pytest.raises(LedgerError, match=place):
        open_at(Path(place))


def test_a_file_that_is_no_database_is_one_clear_error(tmp_path: Path) -> None:
    open_at(tmp_path / "audit").close()
    for path in (tmp_path / "audit").glob("ledger.db*"):
        path.unlink()
    (tmp_path / "audit" / "ledger.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(StoreError, match=r"ledger\.db"):
        open_at(tmp_path / "audit")


def test_an_older_database_refuses_to_write_and_reads_all_the_same(tmp_path: Path) -> None:
    place = tmp_path / "audit"
    open_at(place).close()
    shutil.copy(place / "ledger.db", tmp_path / "old.db")
    with open_at(place) as ledger:
        ledger.append([note(ledger, ledger.new_task())])
        ledger.sign_checkpoint()
    for path in place.glob("ledger.db*"):
        path.unlink()
    shutil.copy(tmp_path / "old.db", place / "ledger.db")
    with pytest.raises(RollbackError, match="old copy"):
        open_at(place)
    with open_at(place, read_only=True) as ledger:
        assert ledger.store.size() == 4
        report = audit_ledger(ledger)
    assert {fault.kind for fault in report.faults} == {"truncated"}


def test_a_misspelt_setting_is_refused(tmp_path: Path) -> None:
    open_at(tmp_path / "audit").close()
    (tmp_path / "audit" / "config.toml").write_text('on_ledger_failures = "pass"\n')
    with pytest.raises(UsageError, match="unknown setting 'on_ledger_failures'"):
        open_at(tmp_path / "audit")
    (tmp_path / "audit" / "config.toml").write_text('mode = "lenient"\n')
    with pytest.raises(UsageError, match="expected one of enforce, observe"):
        open_at(tmp_path / "audit")
    (tmp_path / "audit" / "config.toml").write_text("[limits]\ncontract = -1\n")
    with pytest.raises(UsageError, match="contract"):
        open_at(tmp_path / "audit")


def test_a_ledger_in_memory_works_the_same(tmp_path: Path) -> None:
    _ = tmp_path
    with ContractLedger.open(":memory:", follow=False) as ledger:
        task = ledger.new_task()
        [appended] = ledger.append([note(ledger, task)])
        assert ledger.store.record(appended.n).stream == f"task:{task}"


def test_time_and_randomness_come_in_from_outside(tmp_path: Path) -> None:
    at = datetime(2026, 8, 18, 12, tzinfo=UTC)
    count = iter(range(1, 1_000_000))

    def entropy(size: int) -> bytes:
        return next(count).to_bytes(4, "big") * (size // 4)

    with open_at(tmp_path / "audit", clock=lambda: at, entropy=entropy) as ledger:
        assert {record.at for record in ledger.store.read(0, 4)} == {"2026-08-18T12:00:00.000000Z"}
        assert ledger.origin.endswith("00000001")


def _record(place: Path, events: int, start: Barrier) -> None:
    start.wait()
    with ContractLedger.open(place, follow=False) as ledger:
        task = ledger.new_task()
        for _ in range(events):
            ledger.append([note(ledger, task)])


def test_processes_that_open_an_absent_ledger_at_once_share_one(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(4)
    workers = [context.Process(target=_record, args=(tmp_path / "audit", 25, start)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    with open_at(tmp_path / "audit", read_only=True) as ledger:
        assert ledger.store.size() == 4 + 100
        report = audit_ledger(ledger)
    assert report.faults == ()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_ends_without_its_parents_ledger(tmp_path: Path) -> None:
    with ContractLedger.open(tmp_path / "audit") as ledger:
        child = multiprocessing.get_context("fork").Process(target=ledger.close)
        child.start()
        child.join(10)
        assert child.exitcode == 0
        ledger.append([note(ledger, ledger.new_task())])
    with open_at(tmp_path / "audit", read_only=True) as again:
        assert audit_ledger(again).faults == ()


def test_the_followers_are_imported_before_anything_can_be_forked(tmp_path: Path) -> None:
    program = (
        "import os, sys, threading\n"
        "from a2a_ledger import ContractLedger\n"
        "ledger = ContractLedger.open(sys.argv[1])\n"
        "print(sorted(name for name in sys.modules if name.startswith('a2a_ledger_projections.'))[:1])\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    ledger.catch_up()\n"
        "    os._exit(0)\n"
        "print(os.waitpid(child, 0)[1])\n"
        "ledger.close()\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, str(tmp_path / "audit")],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")},
    )
    modules, status = done.stdout.splitlines()
    assert modules != "[]"
    assert status == "0"


def test_a_closed_ledger_opens_no_task(tmp_path: Path) -> None:
    ledger = open_at(tmp_path / "audit")
    ledger.new_task()
    ledger.close()
    with pytest.raises(StoreError, match="found it closed"):
        ledger.new_task()


def _append_in_child(ledger: ContractLedger, task: str) -> None:
    ledger.append([note(ledger, task)])


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_child_forked_in_the_middle_of_writes_can_write_itself(tmp_path: Path) -> None:
    with ContractLedger.open(tmp_path / "audit") as ledger:
        task = ledger.new_task()
        stop = threading.Event()

        def keep_writing() -> None:
            while not stop.is_set():
                ledger.append([note(ledger, task)])

        writer = threading.Thread(target=keep_writing)
        writer.start()
        fork = multiprocessing.get_context("fork")
        for _ in range(10):
            child = fork.Process(target=_append_in_child, args=(ledger, task))
            child.start()
            child.join(20)
            assert child.exitcode == 0
        stop.set()
        writer.join()
    with open_at(tmp_path / "audit", read_only=True) as again:
        assert audit_ledger(again).faults == ()
