"""Files of any size: each verb reads up to its limit and says what it expected; so with a pipe that never ends."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from a2a_ledger import note
from a2a_ledger.archive import form
from a2a_ledger.cli import reading
from a2a_ledger.cli.reading import read_input
from a2a_ledger.errors import UsageError
from tests.cli.test_errors import COMMAND

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.testing import Result

    Run = Callable[..., Result]

HUGE = 6 << 30


def test_the_limits_are_those_of_the_formats() -> None:
    assert (reading.MAX_HEAD, reading.MAX_BUNDLE) == (note.MAX_NOTE, form.MAX_TOTAL)


@pytest.fixture
def huge(home: Path) -> Path:
    """Return a file with a hole in it: 6 GiB to read, nothing on the disk."""
    path = home / "huge"
    path.touch()
    os.truncate(path, HUGE)
    return path


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a bundle be small, so that a test of the way does not read a GiB."""
    monkeypatch.setattr("a2a_ledger.cli.evidence.MAX_BUNDLE", 1 << 20)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["verify", "HUGE"], "a bundle"),
        (["verify", "small.zip", "--policy", "HUGE"], "a policy"),
        (["verify", "small.zip", "--earlier", "HUGE"], "a signed head"),
        (["--ledger", "audit", "audit", "--earlier", "HUGE"], "a signed head"),
        (["--ledger", "audit", "export", "T1", "-o", "out.zip", "--since", "HUGE"], "a signed head"),
        (["decide", "--inputs", "HUGE"], "the JSON of a decision's inputs"),
        (["card", "show", "HUGE"], "a card's file"),
        (["card", "diff", "HUGE", "HUGE"], "a card's file"),
    ],
)
@pytest.mark.usefixtures("small")
def test_no_verb_reads_a_file_of_any_size(run: Run, ledger: Path, huge: Path, words: list[str], expected: str) -> None:
    (ledger.parent / "small.zip").write_bytes(b"no bundle")
    result = run(*(str(huge) if word == "HUGE" else word for word in words))
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{huge}: expected {expected}" in result.stderr
    assert "bytes, found more" in result.stderr


def test_what_has_just_the_size_that_it_may_have_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 5)
    assert read_input(tmp_path / "file", "text", limit=5) == b"xxxxx"
    with pytest.raises(UsageError, match="at most 4 bytes"):
        read_input(tmp_path / "file", "text", limit=4)


def test_a_device_without_an_end_is_left() -> None:
    with pytest.raises(UsageError, match="at most 3000000 bytes"):
        read_input(Path("/dev/zero"), "text", limit=3_000_000)


@pytest.mark.parametrize("words", ["--help", "verify --help", "card --help", "card show --help"])
def test_a_help_page_whose_reader_has_gone_disproves_nothing(words: str) -> None:
    """The reader closes before the page is printed: as after SIGPIPE, 141, and no word on stderr."""
    read, write = os.pipe()
    os.close(read)
    made = subprocess.run([*COMMAND, *words.split()], stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (made.returncode, made.stderr) == (141, b"")
