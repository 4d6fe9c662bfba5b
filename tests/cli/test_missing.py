"""What is said when a part of a ledger is not here: a key, the database, both copies of its mark, the right to read."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.ledger import ContractLedger
from tests.cli.conftest import objects, opened
from tests.cli.test_errors import one_line
from tests.cli.test_evidence import EXCHANGE

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.testing import Result

    Run = Callable[..., Result]


def test_init_names_its_log_key_by_name_and_id(run: Run, home: Path) -> None:
    for attempt in range(4):  # a quarter of all keys has a `+` in its base64
        name = f"audit-{attempt}"
        told = run("--ledger", name, "init").stdout
        vkey = run("--ledger", name, "keys", "vkeys", "--role", "log").stdout
        listed = objects(run("--ledger", name, "--format", "json", "keys", "list"))[0]
        shown = told.rsplit("Log key ", 1)[1].removesuffix(".\n")
        assert shown == f"{vkey.split('+')[0]}+{listed['key_id']}"
    assert (home / "audit-0").is_dir()


def test_without_the_statement_key_nobody_claims_to_have_judged(run: Run, ledger: Path) -> None:
    size = objects(run("--ledger", ledger, "--format", "json", "checkpoint", "show"))[0]["events"]
    with opened(ledger) as (_, log):
        log.sent()
    (ledger / "keys" / "statement.pem").unlink()
    for words in (["follow", "--once"], ["follow"]):
        done = run("--ledger", ledger, *words)
        assert done.exit_code == 3
        assert f"the verifier stands before #{size}." in done.stdout
        assert "statement.pem is missing, the key that signs findings" in done.stderr
    (told,) = objects(run("--ledger", ledger, "--format", "json", "follow", "--once"))
    assert told["verified"] == size < told["size"]
    hint = run("--ledger", ledger, "violations").stderr
    assert "statement.pem is missing" in hint
    assert "catches up where the key" in hint


def test_an_import_without_the_statement_key_says_what_is_left(run: Run, home: Path) -> None:
    import json  # noqa: PLC0415 - only this test writes an exchange

    run("--ledger", "audit", "init")
    (home / "audit" / "keys" / "statement.pem").unlink()
    (home / "file.jsonl").write_text(json.dumps(EXCHANGE) + "\n")
    done = run("--ledger", "audit", "import", "file.jsonl")
    assert (done.exit_code, "statement.pem is missing, the key that signs findings" in done.stderr) == (0, True)


def test_without_the_log_key_nobody_claims_that_heads_are_signed(run: Run, ledger: Path) -> None:
    (ledger / "keys" / "log.pem").unlink()
    with opened(ledger) as (_, log):
        log.sent()
    done = run("--ledger", ledger, "follow", "--once")
    assert (done.exit_code, "log.pem is missing, the key that signs heads" in done.stderr) == (3, True)
    assert done.stdout.startswith("Caught up to #")


@pytest.mark.parametrize("empty", [True, False])
def test_what_is_left_of_a_ledger_is_no_place_to_make_one(run: Run, ledger: Path, *, empty: bool) -> None:
    for name in ("ledger.db", "ledger.db-wal", "ledger.db-shm"):
        (ledger / name).unlink(missing_ok=True)
    if empty:
        (ledger / "ledger.db").touch()
    for verb in (["tasks"], ["follow", "--once"], ["audit"]):
        result = run("--ledger", ledger, *verb)
        assert (result.exit_code, "beside keys.db and high-water" in one_line(result)) == (3, True)
        assert "Restore ledger.db from a backup" in result.stderr
        assert "init" not in result.stderr


def test_a_database_that_is_a_directory(run: Run, home: Path) -> None:
    (home / "audit" / "ledger.db").mkdir(parents=True)
    result = run("--ledger", "audit", "tasks")
    assert (result.exit_code, "expected a database file" in one_line(result)) == (2, True)


def test_a_lost_mark_is_recovered_by_a_person(run: Run, ledger: Path, home: Path) -> None:
    needless = run("--ledger", ledger, "checkpoint", "--recover-mark", "--yes")
    assert (needless.exit_code, "is not missing" in one_line(needless)) == (2, True)
    (newest,) = objects(run("--ledger", ledger, "--format", "json", "checkpoint", "show"))
    (ledger / "high-water").unlink()
    shutil.rmtree(home / "home" / "a2a-ledger")
    refused = run("--ledger", ledger, "checkpoint", "sign")
    assert (refused.exit_code, "checkpoint --recover-mark" in refused.stderr) == (2, True)
    for answer in (b"", b"n\n"):
        unsure = run("--ledger", ledger, "checkpoint", "--recover-mark", stdin=answer)
        assert unsure.exit_code == 2
        assert "somebody else holds" in unsure.stderr
        assert "not confirmed; nothing was written" in unsure.stderr
        assert not (ledger / "high-water").exists()
    done = run("--ledger", ledger, "checkpoint", "--recover-mark", stdin=b"y\n")
    assert (done.exit_code, "The ledger can be written" in done.stdout) == (0, True), done.stderr
    with ContractLedger.open(ledger, follow=False) as service:
        assert service.mark is not None
        mark = service.mark.read()
        assert mark is not None
        assert (mark.head.size, mark.head.root.hex()) == tuple(newest["checkpoint"].values())
    acknowledged = objects(run("--ledger", ledger, "--format", "json", "violations"))[0]["position"]
    assert run("--ledger", ledger, "violations", "ack", acknowledged, "--why", "x", "--who", "ada").exit_code == 0
    assert run("--ledger", ledger, "audit").exit_code == 0


def test_a_mark_is_recovered_only_where_the_log_key_and_its_events_are(run: Run, ledger: Path, home: Path) -> None:
    (ledger / "high-water").unlink()
    shutil.rmtree(home / "home" / "a2a-ledger")
    (told,) = objects(run("--ledger", ledger, "--format", "json", "audit"))
    assert {fault["kind"] for fault in told["faults"]} <= {"mark"}
    shutil.copytree(ledger, home / "copy")
    (home / "copy" / "keys" / "log.pem").unlink()
    assert run("--ledger", "copy", "checkpoint", "--recover-mark", "--yes").exit_code == 3
    (recovered,) = objects(run("--ledger", ledger, "--format", "json", "checkpoint", "--recover-mark", "--yes"))
    assert recovered["checkpoint"] == told["checkpoint"]
    assert all(Path(place).is_file() for place in recovered["mark"])


def test_the_options_of_checkpoint_stand_alone(run: Run, ledger: Path) -> None:
    for words in ([], ["--yes"], ["--recover-mark", "show"]):
        result = run("--ledger", ledger, "checkpoint", *words)
        assert (result.exit_code, result.stdout) == (2, "")


def test_settings_that_cannot_be_read(run: Run, ledger: Path) -> None:
    config = ledger / "config.toml"
    for text, found in (
        ("contract = 5", "unknown setting 'contract'; it stands below the line [limits]"),
        ("[limits]\nmode = 'observe'", "unknown setting [limits] 'mode'; it stands above the line [limits]"),
        ("[limits]\nflap = -1", "setting [limits] flap: expected a whole number, 0 or more, found -1"),
        ("keep_body = 1.5", "setting keep_body: expected a whole number, 0 or more, found 1.5"),
        ("strict_mark = 1", "setting strict_mark: expected true or false, found 1"),
        ("mode = 'on'", "setting mode: expected one of enforce, observe, found 'on'"),
        ("limits = 3", "expected a table [limits], found limits = 3"),
        ("mode", "expected TOML"),
    ):
        config.write_text(text)
        result = run("--ledger", ledger, "tasks")
        assert (result.exit_code, one_line(result).startswith(f"Error: {config}: {found}")) == (2, True), text
    config.unlink()
    config.mkdir()
    result = run("--ledger", ledger, "tasks")
    assert (result.exit_code, "config.toml: the settings cannot be read" in one_line(result)) == (2, True)


def test_places_that_this_user_may_not_read(run: Run, ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    denied = PermissionError(13, "Permission denied")
    scandir, stat = os.scandir, Path.stat

    def scan(place: str | Path) -> object:
        if Path(place).name == "keys":
            raise denied
        return scandir(place)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", scan)
        for words in (["keys", "list"], ["follow", "--once"], ["export", "T1", "-o", "x.zip"]):
            result = run("--ledger", ledger, *words)
            assert result.exit_code == 2
            assert f"{ledger / 'keys'}: cannot be read (Permission denied)" in one_line(result)
            assert "No private key" not in result.stderr

    def look(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        if path.name == "ledger.db":
            raise denied
        return stat(path, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(Path, "stat", look)
    result = run("--ledger", ledger, "tasks")
    assert (result.exit_code, "ledger.db: cannot be read (Permission denied)" in one_line(result)) == (2, True)
