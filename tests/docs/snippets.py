"""Runs the snippets of a page as its reader would: in order, in one directory, against what really is installed.

A block of ```python or ```console that follows `<!-- not run: why -->` is left out; every other one runs.
All python blocks of a page share one name space and may `await`. In a console block a line that begins with
`$ ` is a command, together with the lines after it that begin with `> `; what follows is what it must print.
`…` in an expected line stands for anything, a line that is only `…` for any number of lines; a last line
`exit N` says that the command must end with N.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator

TIME_LIMIT = 120


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its text, the line it begins at, why it is not run."""

    language: str
    text: str
    line: int
    not_run: str


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page that are python or console."""
    text = page.read_text("utf-8")
    fence = r"^(?:<!-- not run: (?P<why>[^\n]*?) -->\n)?```(?P<language>python|console)\n(?P<body>.*?)^```$"
    for found in re.finditer(fence, text, re.MULTILINE | re.DOTALL):
        line = text.count("\n", 0, found.start("body")) + 1
        yield Block(found["language"], found["body"], line, found["why"] or "")


@dataclass(frozen=True)
class Command:
    """One command of a console block, and what it must print."""

    line: str
    output: list[str]
    status: int | None


def commands(text: str) -> list[Command]:
    """Split a console block into its commands."""
    found: list[Command] = []
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, *output = part.rstrip("\n").split("\n")
        while output and output[0].startswith("> "):
            line += "\n" + output.pop(0)[2:]
        status = None
        if output and (ended := re.fullmatch(r"exit (\d+)", output[-1])):
            status = int(ended[1])
            output.pop()
        found.append(Command(line, output, status))
    return found


def matches(expected: list[str], printed: list[str]) -> bool:
    """Say whether the printed lines are the expected ones, with `…` as the wild card."""
    parts: list[str] = []
    for line in expected:
        if line.strip() == "…":
            parts.append(r"(?:[^\n]*\n)*")
        else:
            parts.append(".*?".join(re.escape(piece.rstrip()) for piece in line.split("…")) + r"[ ]*\n")
    return re.fullmatch("".join(parts), "".join(f"{line.rstrip()}\n" for line in printed)) is not None


class Reader:
    """Somebody who works through a page in one directory."""

    def __init__(self, place: Path, replace: dict[str, str] | None = None) -> None:
        self.place = place
        self.replace = replace or {}
        self.names: dict[str, object] = {"__name__": "snippet"}
        self.environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
            "HOME": str(place / "home"),
            "XDG_STATE_HOME": str(place / "home" / "state"),
            "COLUMNS": "200",
        }
        (place / "home").mkdir(exist_ok=True)

    def _real(self, text: str) -> str:
        for written, real in self.replace.items():
            text = text.replace(written, real)
        return text

    async def python(self, block: Block, page: Path) -> None:
        """Run a python block in the page's name space."""
        padded = "\n" * (block.line - 1) + self._real(block.text)  # so that a traceback names the page's own line
        code = cast("CodeType", compile(padded, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT))
        result = FunctionType(code, self.names)()
        if inspect.isawaitable(result):
            await cast("Awaitable[object]", result)

    def console(self, block: Block) -> None:
        """Run a console block and compare what it prints."""
        for command in commands(block.text):
            done = subprocess.run(
                ["bash", "-c", self._real(command.line)],
                cwd=self.place,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=TIME_LIMIT,
                check=False,
            )
            assert done.returncode == (command.status or 0), f"$ {command.line}\n{done.stdout}"
            expected = [self._real(line) for line in command.output]
            assert matches(expected, done.stdout.splitlines()), (
                f"$ {command.line}\nexpected:\n" + "\n".join(expected) + f"\nprinted:\n{done.stdout}"
            )
