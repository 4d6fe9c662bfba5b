"""How long appends took: a histogram that every open store keeps of its own process, for whoever measures it."""

from __future__ import annotations

import logging
import threading
from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger(__name__)

BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds in seconds: from a bare commit on a fast disk to a caller who has long given up."""


class Counted(NamedTuple):
    """The histogram at one moment.

    Attributes:
        below: how many appends took at most each of `BOUNDS`, and last how many there were.
        seconds: that all of them took together.
        failures: appends that were not recorded, which no bucket counts.
    """

    below: tuple[int, ...]
    seconds: float
    failures: int


class AppendTimes:
    """Counts appends by how long their callers waited, the queue for a transaction included."""

    def __init__(self) -> None:
        self._listeners: tuple[Callable[[float], None], ...] = ()
        self.forget()

    def forget(self) -> None:
        """Count from zero: a forked child counts its own, under a lock that no other thread of its parent holds."""
        self._lock = threading.Lock()
        self._counts = [0] * (len(BOUNDS) + 1)
        self._seconds = 0.0
        self._failures = 0

    def took(self, seconds: float) -> None:
        """Count an append that is durable."""
        with self._lock:
            self._counts[bisect_left(BOUNDS, seconds)] += 1
            self._seconds += seconds
        for listener in self._listeners:
            try:
                listener(seconds)
            except Exception:  # noqa: BLE001 - measuring stops no append
                _log.exception("an append was recorded, and whoever measures how long it took has failed")

    def failed(self) -> None:
        """Count an append that was not recorded."""
        with self._lock:
            self._failures += 1

    def listen(self, listener: Callable[[float], None]) -> None:
        """Have `listener` told from now on how many seconds each append took."""
        self._listeners = (*self._listeners, listener)

    def ignore(self, listener: Callable[[float], None]) -> None:
        """Tell `listener` no more."""
        self._listeners = tuple(one for one in self._listeners if one != listener)

    def counted(self) -> Counted:
        """Return what was counted so far."""
        with self._lock:
            return Counted(tuple(accumulate(self._counts)), self._seconds, self._failures)
