"""A verb with an example: every `--help` ends with lines that can be typed, and a test types them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Mapping


class Verb(click.Command):
    """A command whose help ends with an example."""

    def __init__(self, *args: Any, example: str = "", **extra: Any) -> None:  # noqa: ANN401 - click's own signature
        super().__init__(*args, **extra)
        self.example = example

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example as it is, one command a line."""
        super().format_epilog(ctx, formatter)
        write_example(formatter, self.example)


class VerbGroup(click.Group):
    """A family of verbs whose help ends with an example."""

    def __init__(self, *args: Any, example: str = "", **extra: Any) -> None:  # noqa: ANN401 - click's own signature
        super().__init__(*args, **extra)
        self.example = example

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example as it is, one command a line."""
        super().format_epilog(ctx, formatter)
        write_example(formatter, self.example)


class RootGroup(VerbGroup):
    """The group of all verbs, each of which is imported when somebody calls it.

    Args:
        lines: by verb the module of this folder that has it, and what it does in one line.
    """

    def __init__(self, *args: Any, lines: Mapping[str, tuple[str, str]], **extra: Any) -> None:  # noqa: ANN401 - as above
        super().__init__(*args, **extra)
        self.lines = lines

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all verbs."""
        return sorted({*self.lines, *super().list_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a verb, imported by now; None if there is none of this name."""
        if cmd_name in self.lines and cmd_name not in self.commands:
            for verb in import_module(f"a2a_ledger.cli.{self.lines[cmd_name][0]}").VERBS:
                self.add_command(verb)
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's own signature
        """Write the list of verbs without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in sorted(self.lines.items())])


def write_example(formatter: click.HelpFormatter, example: str) -> None:
    """Write the section that shows what to type."""
    with formatter.section("Example"):
        for line in example.splitlines():
            formatter.write(f"{'':>{formatter.current_indent}}{line}\n")
