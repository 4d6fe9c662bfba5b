"""Anchoring by itself: after so many events, or so much time with new ones, in a thread that nothing waits for.

One process a ledger does it, under `anchor.lock`. What came of the last round stands in `anchoring.json` beside the
database: a note for whoever looks, no evidence, and no event, for a witness that is down would fill the log with it.
"""

from __future__ import annotations

import fcntl
import json
import logging
import threading
import time
from typing import TYPE_CHECKING, Final, cast

from a2a_ledger.anchors.heads import head_to_anchor
from a2a_ledger.anchors.held import anchored_size, is_settled
from a2a_ledger.anchors.kept import keep_in_file
from a2a_ledger.anchors.witnesses import anchor_by_witnesses
from a2a_ledger.checkpoint import checkpoint_of
from a2a_ledger.codec import timestamp
from a2a_ledger.errors import LedgerError

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.events import Json
    from a2a_ledger.ledger import ContractLedger

_log = logging.getLogger(__name__)

STATE: Final = "anchoring.json"
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
        self._said: dict[str, str] = {}
        self._closing = threading.Event()
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
        if is_settled(self._ledger.store, self._given) or not self._is_due(now, size):
            return False
        self._tried = (now, size)
        self._round()
        return True

    def _is_due(self, now: float, size: int) -> bool:
        if self._tried is None:
            return True
        when, at = self._tried
        return now - when >= self._chosen.seconds or size - at >= self._chosen.entries

    def _round(self) -> None:
        """Give the head to everybody; whoever fails is tried again when the next round is due."""
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
        self._tell(size, failures)

    def _tell(self, size: int, failures: dict[str, str]) -> None:
        for name, problem in failures.items():
            if self._said.get(name) != problem:
                _log.error("the head of %d was not given to %s: %s", size, name, problem)
        self._said = failures
        state: dict[str, Json] = {"at": timestamp(self._ledger.clock()), "failures": {**failures}, "size": size}
        temporary = self._root / f".{STATE}.tmp"
        try:
            temporary.write_text(json.dumps(state), encoding="utf-8")
            temporary.replace(self._root / STATE)
        except OSError as problem:
            _log.warning("%s cannot be written: %s", self._root / STATE, problem.strerror)

    def _run(self) -> None:
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


def complaints(root: Path) -> list[str]:
    """Return a sentence for each that the last round did not reach; none where no round was made or its note is odd.

    Args:
        root: the ledger's directory.
    """
    try:
        state = cast("dict[str, object]", json.loads((root / STATE).read_text(encoding="utf-8")))
        failures = cast("dict[str, object]", state["failures"])
        head = f"at {state['at']} the head of {state['size']}"
        return [f"{head} was not given to {name}: {problem}" for name, problem in failures.items()]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return []
