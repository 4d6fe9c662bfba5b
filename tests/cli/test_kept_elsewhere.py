"""`audit` with heads that are kept elsewhere and say nothing about this log: what is said, and the exit code."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.checkpoint import checkpoint_of, sign_checkpoint
from a2a_ledger.keys import generate, load_pem
from tests.cli.conftest import objects

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    Run = Callable[..., Result]


def kept(run: Run, ledger: Path, place: Path) -> Path:
    """Let the settings name a place, and put the ledger's head there; return the place."""
    place.write_text(run("--ledger", ledger, "checkpoint", "export").stdout)
    (ledger / "config.toml").write_text(f'[anchor]\nfiles = ["{place}"]\n')
    return place


def audited(run: Run, ledger: Path, *words: object) -> tuple[int, list[tuple[str, str]], str]:
    """Return exit code, faults by kind and detail, and what was said beside the report."""
    result = run("--ledger", ledger, "--format", "json", "audit", *words)
    (told,) = objects(result)
    return result.exit_code, [(fault["kind"], fault["detail"]) for fault in told["faults"]], result.stderr


def test_the_head_itself_is_fine(run: Run, ledger: Path, home: Path) -> None:
    kept(run, ledger, home / "kept")
    assert audited(run, ledger) == (0, [], "")


def test_a_head_by_a_foreign_key_decides_nothing(run: Run, ledger: Path, home: Path) -> None:
    place = kept(run, ledger, home / "kept")
    head = checkpoint_of(place.read_text())
    other = generate(head.origin, lambda size: b"o" * size)
    place.write_text(sign_checkpoint(head, other))
    code, faults, said = audited(run, ledger)
    assert (code, faults) == (3, [])
    assert f"the head kept in {place}: this head proves nothing about the log" in said
    assert "get it from its owner, and give it as --trust." in said
    assert audited(run, ledger, "--trust", other.vkey) == (0, [], "")
    refused = run("--ledger", ledger, "checkpoint", "sign")
    assert refused.exit_code == 3
    assert "Leave the file there" in refused.stderr


def test_a_head_of_another_log_decides_nothing(run: Run, ledger: Path, home: Path) -> None:
    place = kept(run, ledger, home / "kept")
    other = generate("acme/other-00112233", lambda size: b"o" * size)
    head = checkpoint_of(place.read_text())
    place.write_text(sign_checkpoint(type(head)(other.name, head.size, head.root), other))
    code, faults, said = audited(run, ledger)
    assert (code, faults) == (3, [])
    assert f"{place}: expected a head of {head.origin}, found one of acme/other-00112233" in said
    assert "--trust" not in said


@pytest.mark.parametrize("cut", [0, 1, 40, -2])
def test_a_head_that_is_cut_is_a_fault(run: Run, ledger: Path, home: Path, cut: int) -> None:
    place = kept(run, ledger, home / "kept")
    place.write_text(place.read_text()[:cut])
    code, faults, _ = audited(run, ledger)
    assert code == 1
    assert [kind for kind, _ in faults] == ["earlier"]
    assert faults[0][1].startswith(f"the head kept in {place} cannot be read: ")


def test_what_is_no_file_is_held_against_nothing(run: Run, ledger: Path, home: Path) -> None:
    place = kept(run, ledger, home / "kept")
    for make in (os.mkdir, os.mkfifo):
        (place.rmdir if place.is_dir() else place.unlink)()
        make(place)
        code, faults, said = audited(run, ledger)
        assert (code, faults) == (3, [])
        assert f"the head kept in {place} cannot be read (it is no file), so the log is not held against it" in said


def test_a_mount_that_is_away_stops_nobody(run: Run, ledger: Path, home: Path) -> None:
    kept(run, ledger, home / "kept").unlink()
    result = run("--ledger", ledger, "audit")
    assert result.exit_code == 0
    assert "no head could be read there (No such file or directory)" in " ".join(result.output.split())


def test_of_a_revoked_key_it_says_from_where_on(run: Run, ledger: Path, home: Path) -> None:
    """Whoever has the key can have made the head; that the key is known all the same, and what ended it, is said."""
    note = run("--ledger", ledger, "checkpoint", "export").stdout
    head = checkpoint_of(note)
    stolen = load_pem(ledger / "keys" / "log.pem", head.origin)
    revoked = run("--ledger", ledger, "keys", "revoke", stolen.key_id, "--size", head.size - 2)
    assert revoked.exit_code == 0, revoked.output
    size = checkpoint_of(run("--ledger", ledger, "checkpoint", "export").stdout).size
    for name, at in (("fork", head.size - 1), ("newest", size), ("beyond", size + 9)):
        place = home / name
        place.write_text(sign_checkpoint(type(head)(head.origin, at, bytes(32)), stolen))
        code, faults, said = audited(run, ledger, "--earlier", place)
        assert (code, faults) == (3, []), name
        assert "no known key" not in said
        assert f"signed over {at} events by {stolen.vkey}, which is revoked for heads larger than {head.size - 2}" in (
            said
        )
        assert "if you know that it was made before, give the key as --trust." in said
        assert audited(run, ledger, "--earlier", place, "--trust", stolen.vkey)[0] == 1
    early = home / "early"
    early.write_text(sign_checkpoint(type(head)(head.origin, head.size - 2, bytes(32)), stolen))
    assert audited(run, ledger, "--earlier", early)[0] == 1
