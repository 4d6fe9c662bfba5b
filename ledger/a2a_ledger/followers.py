"""The thread that keeps the read models and the verifier up with the log.

Followers are found by the entry point group `a2a_ledger.followers`, so that this package never
imports a projection. One process at a time runs them, inside the log's fence (`store/fence.py`);
another one takes over within seconds when it is gone. A follower that fails is said in the log
and tried again, and the same failure is said once; one whose position or rows were changed from outside cannot go
on, and rests until the ledger is opened again. It never stops the others, and never the capture.
"""

from __future__ import annotations

import logging
import threading
import time
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Protocol, cast

from a2a_ledger.errors import StoreError, UnreachableError, is_damage
from a2a_ledger.store.fence import FileFence

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.store.fence import Fence

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

RETRY = 1.0
"""Seconds between two attempts to get inside the fence, where another process is, or where no server answers."""


class Follower(Protocol):
    """One projection: reads on from its own position and commits view and position together."""

    name: str

    def catch_up(self, limit: int = PAGE) -> int:
        """Process at most `limit` events and return how many there were."""
        ...

    def position(self) -> int:
        """Return how far it has come: log index + 1 of the last event that it has processed, 0 at the start."""
        ...

    def start_over(self) -> None:
        """Go back to the first event, whatever the stored position says."""
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


def fence_of(ledger: ContractLedger) -> Fence:
    """Return the fence around the followers of a ledger's log: the server's own, or a lock of its directory."""
    return ledger.store.recorder.fence or FileFence(ledger.home.follower_lock if ledger.home else None)


def catch_up_all(followers: list[Follower], page: int = PAGE, fence: Fence | None = None) -> int:
    """Bring every follower up to the head once; return how many events were processed in all.

    A follower that emits events makes the others find more, so this goes round until nobody does.

    Raises:
        StoreError: a follower cannot go on; the others have caught up by then.
        UnreachableError: this process is no longer inside the fence that is given.
    """
    total = 0
    going = list(followers)
    failed: StoreError | None = None
    while True:
        done = 0
        for follower in list(going):
            if fence is not None and not fence.holds():
                raise UnreachableError("expected to hold the lock of the followers, found it lost with its connection")
            try:
                done += follower.catch_up(page)
            except StoreError as error:
                going.remove(follower)
                failed = failed or error
        total += done
        if done <= 0:
            break
    if failed is not None:
        raise failed
    return total


class FollowerThread:
    """Runs the followers in one thread while this process is inside the fence."""

    def __init__(self, ledger: ContractLedger, fence: Fence) -> None:
        self._ledger = ledger
        self._fence = fence
        self._wake = threading.Event()
        self._closing = False
        self._makers: list[FollowerMaker] = []
        self._said: dict[str, str] = {}  # by follower, "" for the fence: its last failure
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
        try:
            while True:
                last = self._closing
                done = self._attempt()
                if done or last:
                    return
                if not self._closing:
                    self._wake.wait(RETRY)
                    self._wake.clear()
        finally:
            self._fence.let_go()

    def _attempt(self) -> bool:
        """Follow where this process gets inside the fence; whatever prevents it is said once, and it is tried again."""
        try:
            if self._fence.take():
                return self._follow()
            self._said.pop("", None)
        except Exception as error:  # noqa: BLE001 - nothing ends this thread but its owner
            if self._said.get("") != repr(error):
                defect = None if isinstance(error, (OSError, StoreError)) else error
                _log.error("nothing is followed, it is tried again: %s", error, exc_info=defect)
            self._said[""] = repr(error)
        return False

    def _follow(self) -> bool:
        """Follow while this process is inside the fence; return whether it was until the end."""
        followers = [make(self._ledger) for make in self._makers]
        try:
            while True:
                last = self._closing
                if not self._round(followers):
                    _log.warning("the lock of the followers is lost; another process may have it now")
                    return False
                self._said.pop("", None)
                if last:
                    return True
                if self._wake.wait(INTERVAL) and not self._closing:
                    time.sleep(SETTLE)
                self._wake.clear()
        finally:
            for follower in followers:
                follower.close()

    def _round(self, followers: list[Follower]) -> bool:
        """Bring every follower up to the head; return whether this process was inside the fence all the time."""
        busy = True
        while busy:
            busy = False
            for follower in list(followers):
                if not self._fence.holds():
                    return False
                try:
                    busy = follower.catch_up(PAGE) > 0 or busy
                    self._said.pop(follower.name, None)
                except Exception as error:  # noqa: BLE001 - one follower never stops the others, and never the capture
                    if is_damage(error):
                        followers.remove(follower)
                        follower.close()
                        _log.error("follower %s cannot go on and rests: %s; %s", follower.name, error, error.hint)
                    elif self._said.get(follower.name) != repr(error):
                        _log.exception("follower %s failed; it is tried again", follower.name)
                    self._said[follower.name] = repr(error)
        return self._fence.holds()
