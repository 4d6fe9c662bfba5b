"""Tables for people: coloured and fitted to a terminal, plain and whole when piped."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_GAP = 2  # blanks between two columns
_LEAST = 12  # characters that a folded column keeps


def print_table(  # noqa: PLR0913 - each is named at the call, and most have a default
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    styles: Mapping[str, str] | None = None,
    drop: Sequence[str] = (),
    fold: Sequence[str] = (),
    head: bool = True,
    columns_in: Mapping[str, str] | None = None,
) -> None:
    """Print rows under a head.

    Args:
        columns: their names.
        rows: one cell a column.
        styles: colours by the first word of a cell; for a terminal only.
        drop: columns that a narrow terminal does without, the first one first. An id is none of them.
        fold: columns of prose, which may take several lines; any other one is never folded, since a
            part of an id is of no use.
        head: print the names too.
        columns_in: colours of whole columns, for a terminal.
    """
    if sys.stdout.isatty():
        _rich_table(columns, rows, styles or {}, drop, fold, head=head, columns_in=columns_in or {})
        return
    widths = [max(len(name), *(len(row[i]) for row in rows)) if rows else len(name) for i, name in enumerate(columns)]
    for row in (columns, *rows) if head else rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def fitting(widths: Mapping[str, int], room: int, drop: Sequence[str], fold: Sequence[str]) -> list[str]:
    """Return the columns that fit into that many characters, after those of `drop` went one by one."""
    shown = list(widths)

    def needed() -> int:
        least = (min(widths[name], _LEAST) if name in fold else widths[name] for name in shown)
        return sum(least) + _GAP * (len(shown) - 1)

    for name in drop:
        if needed() <= room:
            break
        if name in shown:
            shown.remove(name)
    return shown


def _rich_table(  # noqa: PLR0913 - the parts of print_table
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    styles: Mapping[str, str],
    drop: Sequence[str],
    fold: Sequence[str],
    *,
    head: bool,
    columns_in: Mapping[str, str],
) -> None:
    from rich.cells import cell_len  # noqa: PLC0415 - only a terminal pays for it
    from rich.console import Console  # noqa: PLC0415 - same
    from rich.table import Table  # noqa: PLC0415 - same
    from rich.text import Text  # noqa: PLC0415 - same

    console = Console()
    widths = {name: max(cell_len(text) for text in (name, *(row[i] for row in rows))) for i, name in enumerate(columns)}
    shown = fitting(widths, console.width, drop, fold)
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold", show_header=head)
    for name in shown:
        folds = name in fold
        table.add_column(
            name,
            overflow="fold",
            no_wrap=not folds,
            min_width=None if folds else widths[name],
            style=columns_in.get(name, ""),
        )
    for row in rows:
        cells = dict(zip(columns, row, strict=True))
        table.add_row(*(Text(cells[name], style=styles.get(cells[name].split(" ")[0], "")) for name in shown))
    whole = sum(min(widths[name], _LEAST) if name in fold else widths[name] for name in shown) + _GAP * len(shown)
    console.width = max(console.width, whole)  # what does not fit is left to the terminal: nothing is cut off
    console.print(table)
    if len(shown) < len(columns):
        left_out = ", ".join(name for name in columns if name not in shown)
        click.echo(f"No room for {left_out}: widen the terminal, or pipe the output.", err=True)
