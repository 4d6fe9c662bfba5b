"""A ledger that lives without its keys: a signer process has them."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from a2a_ledger.audit import audit_ledger
from a2a_ledger.cli import cli
from a2a_ledger.errors import RollbackError, StoreError, UsageError
from a2a_ledger.export import export_task
from a2a_ledger.keys import generate, load_pem, parse_vkey
from a2a_ledger.ledger import ContractLedger
from a2a_ledger.rotation import revoke, rotate
from tests.evidence.forging import judged
from tests.evidence.recorded import dispute, entropy
from tests.signing.serving import serving

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path


def open_at(tmp_path: Path, **options: Any) -> ContractLedger:  # noqa: ANN401 - passed through
    return ContractLedger.open(
        tmp_path / "audit", origin="acme/audit", follow=False, mark_dir=str(tmp_path / "mark"), **options
    )


def command(*words: object) -> list[str]:
    return [sys.executable, "-c", "from a2a_ledger.cli import main; main()", *map(str, words)]


@contextmanager
def signer_process(tmp_path: Path, origin: str) -> Generator[subprocess.Popen[str]]:
    words = ["keys", "serve", "--keys", tmp_path / "held", "--origin", origin, "--socket", tmp_path / "socket"]
    with subprocess.Popen(command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"{tmp_path / 'socket'}: signs as log, statement, export for {origin}\n"
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(10)
    assert process.returncode == 0


def use(ledger: Path, place: Path) -> Result:
    return CliRunner().invoke(cli, ["--ledger", str(ledger), "keys", "use", f"unix:{place}"])


@contextmanager
def served(tmp_path: Path, origin: str) -> Generator[None]:
    """Serve the keys that were moved, in a thread."""
    signers = {role: load_pem(tmp_path / "held" / f"{role}.pem", origin) for role in ("log", "statement", "export")}
    with serving(tmp_path / "held", signers["log"], others=signers):
        yield


def moved(tmp_path: Path) -> str:
    """Make a ledger and move its keys away; return its origin."""
    with open_at(tmp_path) as ledger:
        origin = ledger.origin
    (tmp_path / "held").mkdir()
    for path in (tmp_path / "audit" / "keys").iterdir():
        path.rename(tmp_path / "held" / path.name)
    return origin


@pytest.mark.slow
def test_a_ledger_whose_keys_another_process_has_records_signs_and_exports(tmp_path: Path) -> None:
    origin = moved(tmp_path)
    with signer_process(tmp_path, origin):
        done = use(tmp_path / "audit", tmp_path / "socket")
        assert (done.exit_code, done.stdout.split(":")[0]) == (0, "log, statement, export"), done.stderr
        assert sorted(path.name for path in (tmp_path / "audit" / "keys").iterdir()) == [
            "export.uri",
            "log.uri",
            "statement.uri",
        ]
        with open_at(tmp_path) as ledger:
            assert not ledger.read_only
            story = dispute(ledger)
            ledger.catch_up()
            bundle = export_task(ledger, story.tasks["t1"]).data
            log = ledger.signers["log"].vkey
            assert audit_ledger(ledger).faults == ()
            assert any(record.type == "violation.detected.v1" for record in ledger.store.read(0, 1000))
            with pytest.raises(UsageError, match="signs no hand-over"):
                rotate(ledger, "log", sleep=lambda _: None)
    assert judged(bundle, log).verdict == "verified"
    assert parse_vkey(log).name == origin
    with pytest.raises(StoreError, match="gives no answer"), open_at(tmp_path) as ledger:
        ledger.sign_checkpoint()


def test_the_signer_refuses_an_older_copy_even_where_both_marks_were_put_back(tmp_path: Path) -> None:
    origin = moved(tmp_path)
    shutil.copytree(tmp_path / "audit", tmp_path / "older")
    shutil.copytree(tmp_path / "mark", tmp_path / "older-mark")
    with served(tmp_path, origin):
        for name in ("audit", "older"):
            assert use(tmp_path / name, tmp_path / "held" / "socket").exit_code == 0
        with open_at(tmp_path) as ledger:
            dispute(ledger)
            size = ledger.store.size()
            ledger.sign_checkpoint()
        shutil.rmtree(tmp_path / "audit")
        shutil.rmtree(tmp_path / "mark")
        (tmp_path / "older").rename(tmp_path / "audit")
        (tmp_path / "older-mark").rename(tmp_path / "mark")
        with open_at(tmp_path) as ledger, pytest.raises(StoreError, match=f"and one of {size} was before"):
            ledger.sign_checkpoint()
    assert issubclass(RollbackError, StoreError)


def test_keys_that_the_log_does_not_name_or_that_still_lie_here_are_not_used(tmp_path: Path) -> None:
    with open_at(tmp_path) as ledger:
        origin, log = ledger.origin, ledger.signers["log"]
    for signer, said in ((generate(origin, entropy()), "does not name now"), (log, "still lies here")):
        with serving(tmp_path / "at", signer):
            done = use(tmp_path / "audit", tmp_path / "at" / "socket")
        assert (done.exit_code, said in done.stderr) == (2, True), done.stderr
    assert not list((tmp_path / "audit" / "keys").glob("*.uri"))


def test_a_key_that_a_signer_has_can_be_revoked_and_gets_a_successor_here(tmp_path: Path) -> None:
    origin = moved(tmp_path)
    with served(tmp_path, origin):
        assert use(tmp_path / "audit", tmp_path / "held" / "socket").exit_code == 0
        with open_at(tmp_path) as ledger:
            done = revoke(ledger, ledger.signers["export"].key_id, 4)
            assert done.new is not None
            assert ledger.signers["export"].vkey == done.new.vkey
    assert (tmp_path / "audit" / "keys" / "export.pem").exists()
