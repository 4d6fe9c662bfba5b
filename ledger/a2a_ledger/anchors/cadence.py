"""Anchoring by itself: after so many events, or so much time with new ones, in a thread that nothing waits for.

One process a ledger does it, under `anchor.lock`.
"""

from __future__ import annotations

import fcntl
import logging
import threading
import time
from typing import TYPE_CHECKING, Final

from a2a_ledger.anchors.heads import head_to_anchor
from a2a_ledger.anchors.held import anchored_size, is_settled
from a2a_ledger.anchors.kept import keep_in_file
from a2a_ledger.anchors.last_round import tell
from a2a_ledger.anchors.stamping import NAME, Stamping
from a2a_ledger.anchors.witnesses import anchor_by_witnesses
from a2a_ledger.checkpoint import checkpoint_of
from a2a_ledger.errors import LedgerError

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.ledger import ContractLedger

_log = logging.getLogger(__name__)

LOCK: Final = "anchor.lock"
_STEP = 1.0  # seconds between two looks at the log's size


class Cadence:
    """Anchors one ledger as its settings say; `start` and `stop` run it in a thread."""

    def __init__(self, ledger: ContractLedger, root: Path) -> None:
        self._ledger = ledger
        self._root = root
        self._chosen = ledger.settings.anchor
        self._given = anchored_size(ledger.store)  # size of the last head that all have got who were to get it
        self._tried: tuple[float, int] | None = None  # when, and at which size
        self._owed: str | None = None  # the head of a round in which not all got it
        self._said: dict[str, str] = {}
        self._closing = threading.Event()
        self._stamping = Stamping(ledger, root, self._closing) if self._chosen.stamps else None
        self._thread = threading.Thread(target=self._run, name="a2a-ledger-anchors", daemon=True)

    def start(self) -> None:
        """Begin; the first round comes at once if something is not anchored."""
        self._thread.start()

    def stop(self) -> None:
        """End without a last round: closing a ledger waits for nobody's answer, and the next start makes up for it."""
        self._closing.set()
        self._thread.join()

    def turn(self, now: float) -> bool:
        """Anchor if it is time to; return whether it was.

        Args:
            now: seconds of a clock that never goes back.
        """
        size = self._ledger.store.size()
        due = self._is_due(now, size)
        if due:
            self._tried = (now, size)
            self._round()
        return self._stamp(now) or due

    def _is_due(self, now: float, size: int) -> bool:
        if not (self._chosen.witnesses or self._chosen.files) or is_settled(self._ledger.store, self._given):
            return False
        if self._tried is None:
            return True
        when, at = self._tried
        return now - when >= self._chosen.seconds or size - at >= self._chosen.entries

    def _round(self) -> None:
        """Give the head to everybody; whoever fails is tried again when the next round is due.

        With the same head as long as only anchors came since: a head over the anchors of those who have it already
        would be asked for again, and be one anchor more each time.
        """
        note = self._owed
        if note is None or not is_settled(self._ledger.store, checkpoint_of(note).size):
            note = head_to_anchor(self._ledger)
        failures: dict[str, str] = {}
        enough = True
        for name in self._chosen.files:
            try:
                keep_in_file(self._ledger, self._root / name)
            except LedgerError as problem:
                failures[name], enough = str(problem), False
        try:
            policy = self._ledger.settings.witness_policy(self._root)
            if policy is not None:
                done = anchor_by_witnesses(
                    self._ledger, policy, timeout=self._chosen.timeout, note=note, hurry=self._closing
                )
                failures |= {name: str(problem) for name, problem in done.failures.items()}
                enough = enough and not done.missing
        except LedgerError as problem:
            failures["witnesses"], enough = str(problem), False
        size = checkpoint_of(note).size
        if enough:
            self._given = size
        self._owed = None if enough else note
        self._tell(size, failures)

    def _stamp(self, now: float) -> bool:
        """Have the head stamped, if an authority is named and it is time to."""
        if self._stamping is None or not self._stamping.turn(now):
            return False
        if self._stamping.problem:
            self._say(NAME, self._stamping.problem)
        else:
            self._said.pop(NAME, None)
        return True

    def _tell(self, size: int, failures: dict[str, str]) -> None:
        for name in [*self._said]:
            if name not in {*failures, NAME}:
                del self._said[name]
        for name, problem in failures.items():
            self._say(name, problem)
        tell(self._root, self._ledger.clock(), size, failures)

    def _say(self, name: str, problem: str) -> None:
        """Log why somebody did not get the head, the same thing once."""
        if self._said.get(name) != problem:
            _log.error("a head was not given to %s: %s", name, problem)
        self._said[name] = problem

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                self._take_turns()
            except Exception as problem:  # noqa: BLE001 - nothing ends this thread but its owner
                self._say("this ledger", f"{type(problem).__name__}: {problem}")
            self._closing.wait(_STEP)

    def _take_turns(self) -> None:
        with (self._root / LOCK).open("ab") as lock:
            while not self._closing.is_set():
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:  # another process anchors this ledger; it may end
                    self._closing.wait(_STEP)
                    continue
                self._turn_safely()
                self._closing.wait(_STEP)

    def _turn_safely(self) -> None:
        try:
            self.turn(time.monotonic())
        except Exception as problem:  # noqa: BLE001 - whatever stops one round, the next is tried, and capture goes on
            self._tell(self._given, {"this ledger": f"{type(problem).__name__}: {problem}"})
