"""What is measured: one row a number, with its floor, the ratio to it, and the target it is held to."""

from __future__ import annotations

import os
import platform
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from a2a_ledger.events import Json, JsonObject


@dataclass(frozen=True, slots=True)
class Target:
    """A limit for a row: on its value, or on its ratio to the floor."""

    limit: float
    of: str = "value"  # value ratio
    at_most: bool = True

    def met(self, value: float, ratio: float | None) -> bool:
        """Say whether a measurement keeps to the limit."""
        held = value if self.of == "value" else ratio
        if held is None:
            return False
        return held <= self.limit if self.at_most else held >= self.limit

    def __str__(self) -> str:
        """Spell it as `ratio <= 2` or `value >= 100000`."""
        return f"{self.of} {'<=' if self.at_most else '>='} {self.limit:g}"


@dataclass(frozen=True, slots=True)
class Row:
    """One number of the benchmark.

    Attributes:
        name: what `--row` selects by, or begins with that and a dot.
        value: None where it could not be measured; `remark` says why.
        unit: of value and floor.
        floor: the same work by bare SQLite, PostgreSQL or Python, in the same unit and run; None: there is none.
        ratio: median over the rounds of value divided by floor.
        target: None: the row is for information.
        remark: for people: what the floor was, what else came out.
    """

    name: str
    value: float | None
    unit: str
    floor: float | None = None
    ratio: float | None = None
    target: Target | None = None
    remark: str = ""

    @property
    def ok(self) -> bool | None:
        """Say whether the target is met; None where nothing was measured or there is no target."""
        if self.value is None or self.target is None:
            return None
        return self.target.met(self.value, self.ratio)

    def to_json(self) -> JsonObject:
        """Return the row as `bench --format json` prints it; floats are rounded to four significant digits."""
        # The record profile has no floats, but this is output and never hashed.
        numbers = {"value": self.value, "floor": self.floor, "ratio": self.ratio}
        rounded: JsonObject = {name: _rounded(number) for name, number in numbers.items()}
        return {
            "name": self.name,
            "value": rounded["value"],
            "unit": self.unit,
            "floor": rounded["floor"],
            "ratio": rounded["ratio"],
            "target": None if self.target is None else str(self.target),
            "ok": self.ok,
        }


def _rounded(number: float | None) -> Json:
    if number is None:
        return None
    short = float(f"{number:.4g}")
    return int(short) if short.is_integer() else short  # type: ignore[return-value]  # a float: see to_json


def machine() -> JsonObject:
    """Return what the numbers depend on: processor, cores, how busy they are, system, Python, SQLite."""
    busy = os.getloadavg()[0]
    return {
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "load": f"{busy:.2f}",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
