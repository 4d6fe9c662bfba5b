"""How a verb that runs until it is told to stop is told, and that it ends soon then, whatever it is waiting for."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from a2a_ledger.cli.errors import INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import FrameType

GRACE = 1.5
"""Seconds from the signal to the end of the process; what is not done by then is left as by a kill, and not lost."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopping:
    """Whether this process was told to stop."""

    def __init__(self) -> None:
        self._told = threading.Event()
        self.code = 0
        """What the process ends with: 130 after Ctrl-C, 0 after any other signal."""

    def __bool__(self) -> bool:
        """Return whether it was."""
        return self._told.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait, no longer than until it is told; return whether it was."""
        return self._told.wait(seconds)

    def tell(self, number: int, _frame: FrameType | None) -> None:
        """Take a signal: a server that does not answer, or a lock of somebody else, is not waited for."""
        if self:
            return
        self.code = INTERRUPTED if number == signal.SIGINT else 0
        last = threading.Timer(GRACE, os._exit, [self.code])
        last.daemon = True
        last.start()
        self._told.set()


@contextmanager
def stopped_by_signals() -> Generator[Stopping]:
    """Have SIGINT, SIGTERM and SIGHUP tell; a SIGHUP that was ignored before, as by `nohup`, stays ignored."""
    stopping = Stopping()
    before = {
        one: signal.getsignal(one)
        for one in _SIGNALS
        if one != signal.SIGHUP or signal.getsignal(one) != signal.SIG_IGN
    }
    for one in before:
        signal.signal(one, stopping.tell)
    try:
        yield stopping
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
