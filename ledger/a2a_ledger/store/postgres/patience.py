"""How long a caller waits for a server, and how long between two attempts.

A commit may hang for as long as no standby confirms it, and the server's own time-outs do not end that wait; nor do
they help against a machine that is gone. So the deadline is the client's: it stops waiting and closes the connection.
It never sends a cancel, which the server answers with success though no standby may have the commit.
"""

from __future__ import annotations

import math
import random
import time
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg

if TYPE_CHECKING:
    from collections.abc import Callable

    from psycopg.abc import PQGen

T = TypeVar("T")

_FIRST, _LONGEST = 0.05, 1.0  # seconds


class PatientConnection(psycopg.Connection[Any]):
    """A connection that gives up a wait: where the server is silent for too long, or at a moment that was set."""

    patience: float = math.inf
    """Seconds without a sign from the server."""

    until: float = math.inf
    """The moment (`time.monotonic`) after which it waits no more."""

    def wait(self, gen: PQGen[T], *args: Any, **kwargs: Any) -> T:  # noqa: ANN401 - the driver's own, which differ by release
        """Do what the driver does, within the limits.

        Raises:
            psycopg.OperationalError: A limit was met; what was sent may have been done or not.
        """
        return super().wait(self._bounded(gen), *args, **kwargs)

    def _bounded(self, steps: PQGen[T]) -> PQGen[T]:
        begun = heard = time.monotonic()
        try:
            wanted = next(steps)
            while True:
                ready = yield wanted
                now = time.monotonic()
                if ready:
                    heard = now
                elif now > min(heard + self.patience, self.until):
                    raise psycopg.OperationalError(f"the server did not answer for {now - begun:.1f} s")
                wanted = steps.send(ready)
        except StopIteration as end:
            result: T = end.value
            return result


class Pauses:
    """Pauses between attempts, longer each time, of random length so that many callers do not come at once.

    Args:
        naps: Gives a fraction between 0 and 1.
    """

    def __init__(self, naps: Callable[[], float] = random.random) -> None:
        self._naps = naps
        self._next = _FIRST

    def pause(self) -> None:
        """Make the next pause."""
        time.sleep(self._next * self._naps())
        self._next = min(2 * self._next, _LONGEST)
