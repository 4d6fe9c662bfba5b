"""Commands that are printed can be pasted: each names the ledger that it is about."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.commands import command, placed
from a2a_ledger.ledger import ContractLedger

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    Run = Callable[..., Result]


def test_a_command_names_the_place_of_its_ledger_as_a_shell_reads_it() -> None:
    assert command("/srv/audit", "show T1") == "a2a-ledger --ledger /srv/audit show T1"
    assert shlex.split(command("/srv/an audit", "show T1")) == ["a2a-ledger", "--ledger", "/srv/an audit", "show", "T1"]
    assert command(None, "show T1") == "a2a-ledger show T1"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("run `a2a-ledger audit`", "run `a2a-ledger --ledger L audit`"),
        ("a2a-ledger checkpoint export > head.txt", "a2a-ledger --ledger L checkpoint export > head.txt"),
        ("`a2a-ledger keys list` has it", "`a2a-ledger --ledger L keys list` has it"),
        ("a2a-ledger --ledger THEIRS anchor peers x", "a2a-ledger --ledger THEIRS anchor peers x"),  # another one
        ("begin a new log with `a2a-ledger init`", "begin a new log with `a2a-ledger init`"),
        ("expected `a2a-ledger keys serve` there", "expected `a2a-ledger keys serve` there"),
        ("see `a2a-ledger anchor --help`", "see `a2a-ledger anchor --help`"),
        ("a2a-ledger verify THIS.zip", "a2a-ledger verify THIS.zip"),
        ("a defect of a2a-ledger. Please report it", "a defect of a2a-ledger. Please report it"),
    ],
)
def test_what_works_on_a_ledger_is_given_its_place_and_nothing_else(said: str, expected: str) -> None:
    assert placed(said, "L") == expected
    assert placed(said, None) == said


def test_a_note_and_the_hint_of_an_error_name_the_ledger_of_the_run(run: Run, home: Path) -> None:
    place = home / "a ledger"
    with ContractLedger.open(place, follow=False):
        pass
    note = run("--ledger", place, "checkpoint", "sign").stderr
    error = run("--ledger", place, "tasks", "--now", "2026-09-14T12:00:00Z").stderr
    assert f"a2a-ledger --ledger '{place}' checkpoint export >" in note
    assert f"a2a-ledger --ledger '{place}' tasks --stalled --now TIME" in error
