"""Runs an agent or a forwarder of the benchmark in a process of its own, as long as it is measured."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.errors import LedgerError

if TYPE_CHECKING:
    from collections.abc import Generator


_RELAY = "a2a_ledger.cli.bench.relay"


class Started(NamedTuple):
    """A process that listens: what it said of where, and its id."""

    said: str
    pid: int


class Relayed(NamedTuple):
    """One of `relay`."""

    port: int
    pid: int


@contextmanager
def started(module: str, *words: str) -> Generator[Started]:
    """Run a module that prints where it listens.

    Args:
        module: dotted name.
        words: its command line.

    Raises:
        LedgerError: it did not start.
    """
    command = [sys.executable, "-m", module, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own module
        try:
            said = process.stdout.readline().strip() if process.stdout else ""
            if not said:
                raise LedgerError(f"the benchmark's {' '.join([module, *words[:1]])} did not start; see its own error")
            yield Started(said, process.pid)
        finally:
            process.kill()


@contextmanager
def relayed(*words: str) -> Generator[Relayed]:
    """Run one of `relay`, with words as on its command line."""
    with started(_RELAY, *words) as process:
        yield Relayed(int(process.said), process.pid)


def peak_memory(pid: int | str = "self") -> float | None:
    """Return the most MB that a process ever held; None where the system does not say."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), None)
