"""A verb with an example: every `--help` ends with lines that can be typed, and a test types them."""

from __future__ import annotations

from typing import Any

import click


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


def write_example(formatter: click.HelpFormatter, example: str) -> None:
    """Write the section that shows what to type."""
    with formatter.section("Example"):
        for line in example.splitlines():
            formatter.write(f"{'':>{formatter.current_indent}}{line}\n")
