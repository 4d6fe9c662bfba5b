"""`a2a-ledger bench`: what this machine and this release do, each number beside its floor.

Ratios against a floor that is measured in the same run travel between machines; times do not. Every
row says what it is held to; docs/benchmarks.md says how it is measured and what came out.
"""

from __future__ import annotations

import logging
import tempfile
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from a2a_ledger.cli.output import note, print_json, progress
from a2a_ledger.cli.quiet import quiet
from a2a_ledger.cli.table import print_table
from a2a_ledger.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2a_ledger.cli.bench.place import Place
    from a2a_ledger.cli.bench.row import Row

_GROUPS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "append": ("writing", "append", ()),
    "group": ("writing", "group", ("threads", "asyncio", "threads-slow", "asyncio-slow")),
    "batch": ("writing", "batch", ()),
    "metrics": ("counting", "metrics", ()),
    "processes": ("processes", "processes", ("worst-append",)),
    "audit": ("reading", "audit", ()),
    "rebuild": ("reading", "projections", ("records", "verifier")),
    "evidence": ("proving", "evidence", ("proof", "bundle", "bundle-size", "verify", "export_100k")),
    "guard": ("guarding", "guarding", ("added", "share")),
    "proxy": ("proxying", "proxying", ()),
    "stream": ("streaming", "streaming", ("guard", "guard-memory", "proxy", "proxy-memory")),
    "card": ("cards", "cards", ()),
    "start": ("starting", "start", ("help", "import", "import-ledger")),
    "postgres": ("postgres", "postgres", ("append", "group", "processes", "processes-rate", "lag")),
}
"""What `--row` takes: a group, or one of its rows as `group.row`. With the module and function that measure it."""

_EXTRA = "the extras a2a and demo are not installed: pip install 'a2a-ledger[a2a,demo]'"
_DRIVER = "the extra postgres is not installed: pip install 'a2a-ledger[postgres]'"
_SERVER = "no PostgreSQL server is named: --store postgresql://HOST/DATABASE"


def run(rows: Sequence[str], *, quick: bool, as_json: bool, url: str | None = None) -> int:
    """Measure and print; return the exit code, which is 0 whatever the numbers are.

    Args:
        rows: names of groups or of single rows; none: all.
        quick: a look in a few seconds instead of a measurement.
        as_json: one JSON object instead of a table.
        url: a PostgreSQL server for the rows that need one, which are not measured without it.

    Raises:
        UsageError: there is no row of that name.
        LedgerError: what was measured did not do its work.
    """
    wanted = [_group_of(row) for row in rows] or list(_GROUPS)
    from a2a_ledger.cli.bench.row import machine  # noqa: PLC0415 - only when it runs

    on = machine()
    found: list[Row] = []
    for group in dict.fromkeys(wanted):
        found += _measure(group, quick=quick, url=url)
    if rows:
        found = [row for row in found if _is_wanted(row, rows)]
    if as_json:
        print_json({"machine": on, "rows": [row.to_json() for row in found]})
        return 0
    click.echo(", ".join(f"{name} {value}" for name, value in on.items()))
    _print(found)
    if quick:
        note("A quick look: the rounds are too small for the numbers to mean much.")
    return 0


def _group_of(row: str) -> str:
    group, dot, name = row.partition(".")
    if group not in _GROUPS or (dot and name not in _GROUPS[group][2]):
        known = [name for group, (_, _, parts) in _GROUPS.items() for name in (group, *(f"{group}.{p}" for p in parts))]
        raise UsageError(f"expected one of the rows {', '.join(known)}; found {row!r}")
    return group


def _is_wanted(row: Row, rows: Sequence[str]) -> bool:
    group, dot, _ = row.name.partition(".")
    return row.name in rows or group in rows or (row.value is None and not dot)  # that one stands for all of its group


def _measure(group: str, *, quick: bool, url: str | None) -> list[Row]:
    """Run one group in a scratch directory of its own."""
    from a2a_ledger.cli.bench.place import QUICK, Place, Scale  # noqa: PLC0415 - opens the store's imports

    if group == "postgres" and url is None:
        return [_not_measured(group, _SERVER)]
    module, name, _ = _GROUPS[group]
    try:
        work = cast("Callable[[Place], list[Row]]", getattr(import_module(f"{__name__}.{module}"), name))
    except ImportError as missing:
        if (missing.name or "").startswith("a2a_ledger."):
            raise  # a defect of ours, not an extra that is missing
        extra = _DRIVER if group == "postgres" else _EXTRA
        return [_not_measured(group, f"{missing.name} is missing; {extra}")]
    with (
        quiet(a2a_ledger=logging.ERROR),
        tempfile.TemporaryDirectory(prefix="a2a-ledger-bench-") as scratch,
        progress(group) as told,
    ):
        return work(Place(Path(scratch), QUICK if quick else Scale(), told, url))


def _not_measured(group: str, why: str) -> Row:
    from a2a_ledger.cli.bench.row import Row  # noqa: PLC0415 - only when it runs

    note(f"{group}: not measured, {why}")
    return Row(group, None, "ms", remark=f"not measured: {why}")


def _print(rows: Sequence[Row]) -> None:
    said = {True: "ok", False: "MISSED", None: "-"}
    print_table(
        ("ROW", "VALUE", "FLOOR", "RATIO", "TARGET", "", "REMARK"),
        [
            (
                row.name,
                "-" if row.value is None else f"{_number(row.value)} {row.unit}",
                "-" if row.floor is None else f"{_number(row.floor)} {row.unit}",
                "-" if row.ratio is None else f"{row.ratio:.2f}",
                "-" if row.target is None else str(row.target),
                said[row.ok],
                row.remark,
            )
            for row in rows
        ],
        styles={"ok": "green", "MISSED": "red"},
        drop=("FLOOR", "TARGET"),
        fold=("REMARK",),
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"  # noqa: PLR2004 - digits that are read
