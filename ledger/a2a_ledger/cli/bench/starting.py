"""Rows about starting: the command line's help, and importing the package, each in a fresh process."""

from __future__ import annotations

import statistics
import subprocess
import sys
from typing import TYPE_CHECKING

from a2a_ledger.cli.bench.floor import alternate, seconds
from a2a_ledger.cli.bench.row import Row

if TYPE_CHECKING:
    from a2a_ledger.cli.bench.place import Place

_HELP = "from a2a_ledger.cli import main; main()"


def start(place: Place) -> list[Row]:
    """Start fresh processes, beside one of Python that does nothing."""
    starts = place.scale.starts
    shown = alternate(lambda: _run("-c", _HELP, "--help"), lambda: _run("-c", "pass"), starts)
    imported = alternate(lambda: _run("-c", "import a2a_ledger"), lambda: _run("-c", "pass"), starts)
    opened = statistics.median(_run("-c", "from a2a_ledger import ContractLedger") for _ in range(starts))
    remark = "floor: a Python that does nothing"
    return [
        Row("start.help", shown.value, "ms", shown.floor, shown.ratio, remark=f"a2a-ledger --help; {remark}"),
        Row(
            "start.import", imported.value, "ms", imported.floor, imported.ratio, remark=f"import a2a_ledger; {remark}"
        ),
        Row("start.import-ledger", opened, "ms", remark="from a2a_ledger import ContractLedger"),
    ]


def _run(*words: str) -> float:
    """Return how long one Python process took, in ms."""
    run = [sys.executable, *words]
    return seconds(lambda: subprocess.run(run, stdout=subprocess.DEVNULL, check=True)) * 1e3  # noqa: S603 - our own words
