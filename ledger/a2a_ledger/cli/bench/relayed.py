"""Runs one of `relay` in a process of its own, as long as it is measured."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.cli.bench import relay
from a2a_ledger.errors import LedgerError

if TYPE_CHECKING:
    from collections.abc import Generator


class Relayed(NamedTuple):
    """A process that listens."""

    port: int
    pid: int


@contextmanager
def relayed(*words: str) -> Generator[Relayed]:
    """Run it.

    Args:
        words: as on the command line of `relay`.

    Raises:
        LedgerError: it did not start.
    """
    command = [sys.executable, "-m", relay.__name__, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own module
        try:
            port = process.stdout.readline().strip() if process.stdout else ""
            if not port:
                raise LedgerError(f"the benchmark's {words[0]} did not start; its own error stands above")
            yield Relayed(int(port), process.pid)
        finally:
            process.kill()


def peak_memory(pid: int | str = "self") -> float | None:
    """Return the most MB that a process ever held; None where the system does not say."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), None)
