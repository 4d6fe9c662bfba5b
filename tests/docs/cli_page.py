"""Writes docs/cli.md from the help texts of the command line: `python -m tests.docs.cli_page` (make docs)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.testing import CliRunner

from a2a_ledger.cli import cli

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
HEAD = """# The command line

Made from `a2a-ledger … --help` by `make docs`; a test holds this page to it. Exit codes: 0 proved or done ·
1 disproved, or findings that nobody acknowledged · 2 usage · 3 cannot decide.
"""


def verbs(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of every command, a group before its members."""
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None, name
            yield from verbs(inner, (*path, name))


def page() -> str:
    """Return the page as it should be."""
    parts = [HEAD]
    for path in verbs(cli):
        name = " ".join(("a2a-ledger", *path))
        shown = CliRunner(env={"COLUMNS": "100"}).invoke(cli, [*path, "--help"], prog_name="a2a-ledger")
        text = "\n".join(line.rstrip() for line in shown.output.rstrip().splitlines())
        parts.append(f"## {name}\n\n```text\n{text}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
