"""What a person types and where the answer goes: odd bytes, odd encodings, closed and full streams, narrow screens."""

from __future__ import annotations

import fcntl
import json
import os
import re
import struct
import subprocess
import termios
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.cli.output import counted, styled
from a2a_ledger.cli.table import fitting
from tests.cli.test_errors import COMMAND, one_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    Run = Callable[..., Result]


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Type a line in a shell; `A` stands for the command."""
    command = f"""A() {{ "{COMMAND[0]}" -c "{COMMAND[2]}" "$@"; }}; {line}"""
    return subprocess.run(["/bin/sh", "-c", command], check=False, capture_output=True, env=os.environ | environment)


def test_arguments_that_are_no_text(run: Run, ledger: Path) -> None:
    for words in (["--ledger", ledger, "show", "\udcff"], ["--ledger", "\udcff", "tasks"], ["card", "show", "\udcff"]):
        result = run(*words)
        assert (result.exit_code, one_line(result)) == (2, "Error: expected arguments in UTF-8, found '\\udcff'")


def test_a_place_that_is_no_text(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A2A_LEDGER", "a\udcff")
    result = run("tasks")
    assert (result.exit_code, "directory in UTF-8, found 'a\\udcff'" in one_line(result)) == (2, True)


@pytest.mark.parametrize("url", ["http://[", "http://", "https://x:99999/", "HTTP://["])
def test_a_url_that_is_none(run: Run, url: str) -> None:
    result = run("card", "show", url)
    assert (result.exit_code, one_line(result).startswith(f"Error: {url}: expected an http(s) URL")) == (2, True)


def test_a_scheme_in_capitals_is_a_url(run: Run) -> None:
    result = run("card", "show", "HTTP://127.0.0.1:1")
    assert (result.exit_code, "cannot be fetched" in one_line(result)) == (2, True)


def test_a_peer_is_found_by_its_host_in_any_spelling(run: Run, ledger: Path) -> None:
    for name in ("vendor.example", "VENDOR.example", "https://vendor.example", "HTTPS://Vendor.Example/"):
        result = run("--ledger", ledger, "--format", "json", "tasks", "--peer", name)
        assert (result.exit_code, len(result.stdout.splitlines())) == (0, 3), name


def test_inputs_that_say_a_thing_twice(run: Run, home: Path) -> None:
    (home / "twice.json").write_text('{"now": "2026-09-14T09:00:00Z", "limits": {"flap": 1, "flap": 2}}')
    result = run("decide", "--inputs", "twice.json")
    assert (result.exit_code, "the member 'flap' twice in one object" in one_line(result)) == (2, True)
    assert run("decide", "--inputs", home).exit_code == 2


def test_a_signed_note_is_utf_8_whatever_the_terminal_speaks(ledger: Path) -> None:
    plain = shell(f"A --ledger {ledger} checkpoint export", PYTHONIOENCODING="utf-8")
    assert "\n— acme/audit" in plain.stdout.decode()
    for encoding in ("latin-1", "ascii"):
        assert shell(f"A --ledger {ledger} checkpoint export", PYTHONIOENCODING=encoding).stdout == plain.stdout
    told = shell(f"A --ledger {ledger} show é", PYTHONIOENCODING="ascii")
    assert (told.returncode, told.stderr.startswith(b"Error: no task is known by")) == (2, True)


def test_output_that_reaches_nobody(ledger: Path) -> None:
    for line, problem in (
        ("tasks >&-", b"Error: standard output is closed"),
        ("tasks >/dev/full", b"Error: standard output cannot be written: No space left on device"),
    ):
        done = shell(f"A --ledger {ledger} {line}")
        *notes, last = done.stderr.splitlines()
        assert (done.returncode, last.startswith(problem)) == (2, True), done.stderr
        assert all(b" not checked for changes from outside" in line for line in notes)
    assert shell(f"A --ledger {ledger} show nobody 2>&-").returncode == 2
    closed = shell("A card show - <&-")
    assert (closed.returncode, b"on standard input, found it closed" in closed.stderr) == (2, True)


def screen(words: list[str], columns: int, **environment: str) -> str:
    """Return what a terminal of that width gets to show."""
    terminal, shown = os.openpty()
    fcntl.ioctl(shown, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    clean = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES", "NO_COLOR"}}
    done = subprocess.run(
        [*COMMAND, *words],
        check=False,
        stdout=shown,
        stderr=subprocess.PIPE,
        env=clean | {"TERM": "xterm"} | environment,
    )
    os.close(shown)
    text = b""
    try:
        while part := os.read(terminal, 65_536):
            text += part
    except OSError:
        pass  # the other end is closed: that is all
    os.close(terminal)
    return text.decode() + done.stderr.decode()


def test_a_narrow_terminal_loses_columns_and_never_a_part_of_an_id(run: Run, ledger: Path) -> None:
    listed = run("--ledger", ledger, "--format", "json", "tasks").stdout.splitlines()
    ids = [json.loads(line)["task"][:8] for line in listed]
    wide = screen(["--ledger", str(ledger), "tasks"], 120)
    narrow = screen(["--ledger", str(ledger), "tasks"], 36)
    for shown in (wide, narrow):
        assert all(name in shown for name in ids)
    assert "CONTRACT" in wide
    assert "No room for" not in wide
    assert "No room for PEER, CONTRACT, SENT (UTC), FINDINGS: widen the terminal" in narrow
    table = re.sub(r"\x1b\[[0-9;]*m", "", narrow.split("Read models")[0])  # the table, and no note
    assert max(len(line.rstrip()) for line in table.splitlines()) <= 36


def test_colour_is_for_terminals_that_want_it(ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["--ledger", str(ledger), "show", "T1"]
    assert "\x1b[31m" in screen(words, 100)
    assert "\x1b[" not in screen(words, 100, NO_COLOR="1")
    tasks = screen(["--ledger", str(ledger), "tasks"], 120, NO_COLOR="1")
    assert not any(f"\x1b[{colour}m" in tasks for colour in (31, 32, 33, 36))
    monkeypatch.setenv("NO_COLOR", "1")
    assert styled("x", fg="red") == "x"
    monkeypatch.setenv("NO_COLOR", "")  # no-color.org: only a value that is not empty counts
    assert styled("x", fg="red") == "\x1b[31mx\x1b[0m"


def test_which_columns_fit() -> None:
    widths = {"LOCAL": 8, "PEER": 14, "STATE": 10, "WHAT": 90}
    assert fitting(widths, 200, ["PEER"], []) == ["LOCAL", "PEER", "STATE", "WHAT"]
    assert fitting(widths, 126, ["PEER", "STATE"], []) == ["LOCAL", "STATE", "WHAT"]  # 8 + 14 + 10 + 90 + 3 * 2 = 128
    assert fitting(widths, 50, ["PEER", "STATE"], ["WHAT"]) == ["LOCAL", "PEER", "STATE", "WHAT"]
    assert fitting(widths, 5, ["PEER", "STATE"], []) == ["LOCAL", "WHAT"]


def test_one_is_no_plural() -> None:
    assert (counted(0, "event"), counted(1, "event"), counted(2, "event")) == ("0 events", "1 event", "2 events")
