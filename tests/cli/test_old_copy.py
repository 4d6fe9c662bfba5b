"""An old copy of a ledger, put back after its log key was replaced: it is read and exported from, never written on."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.ledger import ContractLedger
from tests.cli.conftest import objects
from tests.cli.test_errors import one_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    Run = Callable[..., Result]


def put_back(run: Run, ledger: Path, *names: str, rotated: bool = True) -> None:
    """Go on with a ledger, its log key replaced or not, and put parts of it, or all, back from before."""
    old = ledger.with_name("old")
    shutil.copytree(ledger, old)
    if rotated:
        assert run("--ledger", ledger, "keys", "rotate", "--role", "log").exit_code == 0
    assert run("--ledger", ledger, "erase", "T1", "--reason", "asked").exit_code == 0
    for name in names:
        shutil.copy(old / name, ledger / name)
        for suffix in ("-wal", "-shm"):
            (ledger / f"{name}{suffix}").unlink(missing_ok=True)
    if not names:
        shutil.rmtree(ledger)
        old.rename(ledger)


def marks(home: Path) -> dict[Path, bytes]:
    found = [home / "audit" / "high-water", *(home / "home" / "a2a-ledger").iterdir()]
    return {path: path.read_bytes() for path in found if path.is_file()}


WRITING = (
    ["checkpoint", "sign"],
    ["checkpoint", "--recover-mark", "--yes"],
    ["erase", "T1", "--reason", "again"],
    ["follow", "--once"],
)


@pytest.mark.parametrize("words", WRITING, ids=" ".join)
def test_whose_key_the_old_copy_does_not_name_is_no_damage(
    run: Run, ledger: Path, home: Path, words: list[str]
) -> None:
    put_back(run, ledger)
    before = marks(home), (ledger / "ledger.db").read_bytes()
    result = run("--ledger", ledger, *words)
    said = one_line(result)
    assert result.exit_code == 3
    assert "either the database is an old copy, from before the log key was replaced" in said
    assert "or the mark is somebody else's" in said
    assert "move" not in said
    assert "damaged" not in said
    assert (marks(home), (ledger / "ledger.db").read_bytes()) == before


@pytest.mark.parametrize("words", WRITING, ids=" ".join)
def test_the_key_of_today_beside_an_old_database_shows_its_age(
    run: Run, ledger: Path, home: Path, words: list[str]
) -> None:
    put_back(run, ledger, "ledger.db", "keys.db")
    before = marks(home)
    result = run("--ledger", ledger, *words)
    said = one_line(result)
    assert result.exit_code == 3
    assert f"is signed by the key in {ledger / 'keys' / 'log.pem'}, which this database does not name" in said
    assert "the database is an old copy, from before that key was added" in said
    assert "move" not in said
    assert marks(home) == before


@pytest.mark.parametrize("names", [(), ("ledger.db", "keys.db")])
@pytest.mark.parametrize("rotated", [False, True])
def test_an_old_copy_is_exported_from_under_the_head_that_it_has(
    run: Run, ledger: Path, home: Path, *, names: tuple[str, ...], rotated: bool
) -> None:
    with ContractLedger.open(ledger, read_only=True) as opened:
        newest = opened.store.latest_checkpoint()
    assert newest is not None
    vkeys = run("--ledger", ledger, "keys", "vkeys").stdout.split()
    put_back(run, ledger, *names, rotated=rotated)
    before = marks(home), (ledger / "ledger.db").read_bytes()
    done = run("--ledger", ledger, "--format", "json", "export", "T2", "-o", "old.zip")
    assert done.exit_code == 0, done.stderr
    assert "Opened to read: the export ends at the newest signed head of this copy." in done.stderr
    (told,) = objects(done)
    assert (told["checkpoint"], told["signed"]) == (newest[0], True)
    assert (marks(home), (ledger / "ledger.db").read_bytes()) == before
    trust = [word for vkey in vkeys if "+" in vkey for word in ("--trust", vkey)]
    (judged,) = objects(run("--format", "json", "verify", "old.zip", *trust))
    statuses = {claim["claim"]: claim["status"] for claim in judged["claims"]}
    assert (statuses["L"], statuses["C2"]) == ("VALID", "VALID")  # a trusted key's head, and all of the task up to it


def test_an_old_copy_signs_no_export_by_a_key_that_it_does_not_name(run: Run, ledger: Path) -> None:
    old = ledger.with_name("old")
    shutil.copytree(ledger, old)
    assert run("--ledger", ledger, "keys", "rotate", "--role", "export").exit_code == 0
    for name in ("ledger.db", "keys.db"):
        shutil.copy(old / name, ledger / name)
    done = run("--ledger", ledger, "--format", "json", "export", "T2", "-o", "old.zip")
    assert done.exit_code == 0, done.stderr
    assert objects(done)[0]["signed"] is False


def test_a_head_kept_elsewhere_by_a_later_key_is_left_there(run: Run, ledger: Path, home: Path) -> None:
    """Both copies of the mark are put back too: the file elsewhere is all that shows the age."""
    old = home / "old"
    shutil.copytree(home / "home", home / "old-home")
    shutil.copytree(ledger, old)
    assert run("--ledger", ledger, "keys", "rotate", "--role", "log").exit_code == 0
    assert run("--ledger", ledger, "anchor", "file", home / "kept").exit_code == 0
    for now, before in ((ledger, old), (home / "home", home / "old-home")):
        shutil.rmtree(now)
        before.rename(now)
    (ledger / "config.toml").write_text(f'[anchor]\nfiles = ["{home / "kept"}"]\n')
    result = run("--ledger", ledger, "checkpoint", "sign")
    said = one_line(result)
    assert result.exit_code == 3
    assert "Leave the file there: if the log key was replaced since, this database is an old copy" in said
    assert "or no file" not in said
