"""The thread that keeps the read models and the verifier up with the log.

Followers are found by the entry point group `a2a_ledger.followers`, so that this package never
imports a projection. One process at a time runs them, under a lock of the ledger directory;
another one takes over within a second when it is gone. A follower that fails is said in the log
and tried again; it never stops the others, and never the capture.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
import time
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from a2a_ledger.ledger import ContractLedger

    FollowerMaker = Callable[[ContractLedger], "Follower"]

_log = logging.getLogger(__name__)

FOLLOWERS = "a2a_ledger.followers"
"""The entry point group; a read model's entry point has the name of its view."""

PAGE = 500
"""Events that a follower takes in one go before the next one has its turn."""

SETTLE = 0.05
"""Seconds that the thread lets a burst of appends go on before it reads: one commit instead of many."""

INTERVAL = 0.25
"""Seconds between two looks at the log when nobody in this process has appended."""


class Follower(Protocol):
    """One projection: reads on from its own position and commits view and position together."""

    name: str

    def catch_up(self, limit: int = PAGE) -> int:
        """Process at most `limit` events and return how many there were."""
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...


def follower_makers() -> list[FollowerMaker]:
    """Import the followers that are installed; return what makes each, sorted by name."""
    found = sorted(entry_points(group=FOLLOWERS), key=lambda entry: entry.name)
    return [cast("FollowerMaker", entry.load()) for entry in found]


def load_followers(ledger: ContractLedger) -> list[Follower]:
    """Return the followers that are installed, sorted by name."""
    return [make(ledger) for make in follower_makers()]


def catch_up_all(followers: list[Follower], page: int = PAGE) -> int:
    """Bring every follower up to the head once; return how many events were processed in all.

    A follower that emits events makes the others find more, so this goes round until nobody does.
    """
    total = 0
    while True:
        done = sum(follower.catch_up(page) for follower in followers)
        total += done
        if done == 0:
            return total


class FollowerThread:
    """Runs the followers in one thread while it holds the lock."""

    def __init__(self, ledger: ContractLedger, lock: Path | None) -> None:
        self._ledger = ledger
        self._lock = lock
        self._wake = threading.Event()
        self._closing = False
        self._makers: list[FollowerMaker] = []
        self._thread = threading.Thread(target=self._run, name="a2a-ledger-followers", daemon=True)

    def start(self) -> None:
        """Begin.

        The followers are imported here and not in the thread: a child that is forked while another
        thread holds an import lock could never import that module.
        """
        self._makers = follower_makers()
        self._thread.start()

    def wake(self) -> None:
        """Say that something was appended."""
        self._wake.set()

    def stop(self) -> None:
        """Catch up once more and end."""
        self._closing = True
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        held = None
        try:
            while held is None and not self._closing:
                held = self._try_lock()
                if held is None:
                    self._wake.wait(1.0)
                    self._wake.clear()
            if held is None:
                held = self._try_lock()
            if held is not None:
                self._follow()
        finally:
            if held is not None and held >= 0:
                os.close(held)

    def _follow(self) -> None:
        followers = [make(self._ledger) for make in self._makers]
        try:
            while True:
                last = self._closing
                self._round(followers)
                if last:
                    return
                if self._wake.wait(INTERVAL) and not self._closing:
                    time.sleep(SETTLE)
                self._wake.clear()
        finally:
            for follower in followers:
                follower.close()

    def _round(self, followers: list[Follower]) -> None:
        busy = True
        while busy:
            busy = False
            for follower in followers:
                try:
                    busy = follower.catch_up(PAGE) > 0 or busy
                except Exception:  # noqa: BLE001 - one follower never stops the others, and never the capture
                    _log.exception("follower %s failed; it is tried again", follower.name)

    def _try_lock(self) -> int | None:
        """Return the descriptor that holds the lock, -1 where there is nothing to lock, None when another has it."""
        if self._lock is None:
            return -1
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return None
        return descriptor
