"""`export -o`: a bundle never lands on the ledger, on another file, or in something that is no file."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from io import BytesIO
from typing import TYPE_CHECKING

import pytest

from tests.cli.test_errors import COMMAND, one_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    Run = Callable[..., Result]


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and "ledger.db" not in path.name}


@pytest.mark.parametrize(
    "target",
    [
        "audit/ledger.db",
        "audit/keys.db",
        "audit/high-water",
        "audit/keys/log.pem",
        "audit/new.zip",
        "audit/keys/../new.zip",
        "alias/new.zip",
        "home/a2a-ledger/new.zip",
    ],
)
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_nothing_is_written_where_the_ledger_lives(
    run: Run, ledger: Path, home: Path, target: str, force: list[str]
) -> None:
    (home / "alias").symlink_to(ledger)
    before = contents(home)
    result = run("--ledger", ledger, "export", "T1", "-o", target, *force)
    assert (result.exit_code, "where the ledger keeps its own files" in one_line(result)) == (2, True)
    after = contents(home)
    assert after.keys() == before.keys() | {ledger / "signer.lock"}  # opening it to sign a head makes the lock
    assert after[ledger / "keys.db"] == before[ledger / "keys.db"]
    assert run("--ledger", ledger, "audit").exit_code == 0


def test_only_a_new_file_or_a_forced_one_is_written(run: Run, ledger: Path, home: Path) -> None:
    (home / "letter.txt").write_text("mine")
    (home / "link.zip").symlink_to(home / "letter.txt")
    (home / "dangling.zip").symlink_to(home / "nowhere")
    (home / "folder").mkdir()
    os.mkfifo(home / "fifo")
    for target, found in (
        ("link.zip", "a symbolic link"),
        ("dangling.zip", "a symbolic link"),
        ("folder", "a directory"),
        (".", "a directory"),
        ("fifo", "a pipe"),
        ("/dev/null", "a device"),
    ):
        result = run("--ledger", ledger, "export", "T1", "-o", target, "--force")
        assert (result.exit_code, f"found {found}" in one_line(result)) == (2, True), target
    assert run("--ledger", ledger, "export", "T1", "-o", "nowhere/case.zip").exit_code == 2
    assert run("--ledger", ledger, "export", "T1", "-o", "letter.txt/case.zip").exit_code == 2
    refused = run("--ledger", ledger, "export", "T1", "-o", "letter.txt")
    assert (refused.exit_code, refused.stderr.splitlines()[1]) == (2, "To replace it: --force")
    assert (home / "letter.txt").read_text() == "mine"
    assert run("--ledger", ledger, "export", "T1", "-o", "letter.txt", "--force").exit_code == 0
    assert zipfile.is_zipfile(home / "letter.txt")


def test_a_dash_is_standard_output(run: Run, ledger: Path, home: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "--ledger", str(ledger), "export", "T1", "-o", "-"], check=False, capture_output=True
    )
    assert (done.returncode, b" KB: " in done.stderr) == (0, True)
    assert zipfile.ZipFile(BytesIO(done.stdout)).testzip() is None
    assert not (home / "-").exists()
    both = run("--ledger", ledger, "--format", "json", "export", "T1", "-o", "-")
    assert (both.exit_code, both.stdout) == (2, "")


def test_a_bundle_is_not_written_to_a_terminal(ledger: Path) -> None:
    terminal, shown = os.openpty()
    done = subprocess.run(
        [sys.executable, *COMMAND[1:], "--ledger", str(ledger), "export", "T1", "-o", "-"],
        check=False,
        stdout=shown,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(shown)
    os.close(terminal)
    assert (done.returncode, "found a terminal" in done.stderr) == (2, True)
