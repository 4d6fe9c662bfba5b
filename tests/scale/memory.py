"""Samples of a process's memory over time, and whether it is flat. Linux only: it reads /proc."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from pathlib import Path


def resident(pid: int) -> float:
    """Return the MB that a process holds in memory now."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


@dataclass(slots=True)
class Memory:
    """What was sampled of one process.

    Attributes:
        name: of the process, for people.
        samples: seconds since the beginning, and MB.
    """

    name: str
    samples: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])

    def after(self, warm: float) -> tuple[float, float]:
        """Return medians of the first and of the last quarter of what came after the warm-up, in MB.

        Args:
            warm: seconds that are left out.
        """
        rest = [held for at, held in self.samples if at >= warm] or [held for _, held in self.samples[-1:]]
        quarter = max(1, len(rest) // 4)
        return statistics.median(rest[:quarter]), statistics.median(rest[-quarter:])

    def is_flat(self, warm: float, most: float) -> bool:
        """Say whether the last quarter lies no more than `most` MB above the first."""
        first, last = self.after(warm)
        return last - first <= most

    def to_line(self, warm: float) -> str:
        """Return a row of a table for people."""
        first, last = self.after(warm)
        highest = max(held for _, held in self.samples)
        return f"| {self.name} | {self.samples[0][1]:.1f} | {first:.1f} | {last:.1f} | {highest:.1f} |"
