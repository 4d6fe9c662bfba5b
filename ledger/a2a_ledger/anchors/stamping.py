"""Time tokens by themselves: each hour while the log grows, at once after a violation, and before an export.

docs/format.md section 6.4. What was stamped last stands in the log, so another process, or a new start, is no reason
to ask again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from a2a_ledger.anchors.held import is_settled, newest_stamp, time_roots
from a2a_ledger.anchors.last_round import no_time_since, tell
from a2a_ledger.anchors.timestamp import Authority, anchor_by_authority
from a2a_ledger.errors import LedgerError

if TYPE_CHECKING:
    import threading
    from datetime import datetime
    from pathlib import Path

    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.store import Store
    from a2a_ledger.time_token import Certificate

LEAST: Final = 60
"""Seconds between two questions to an authority, whatever happens."""

NAME: Final = "the timestamp authority"


class Stamping:
    """Has the head of one ledger stamped as its settings say; they name an authority and its roots."""

    def __init__(self, ledger: ContractLedger, root: Path, hurry: threading.Event) -> None:
        """Take a ledger.

        Args:
            ledger: open for writing, with its log key.
            root: its directory.
            hurry: once it is set, no answer is waited for any more.
        """
        self._ledger = ledger
        self._root = root
        self._hurry = hurry
        self._stamped = 0  # size of the last head with a token
        self._tried: float | None = None
        self._in_vain = 0  # so many times in a row
        self._looked = 0  # so many events were looked at for violations
        self._violation = -1  # log index of the newest one that was found
        self.problem = ""

    def turn(self, now: float) -> bool:
        """Ask the authority if it is time to; return whether it was.

        Args:
            now: seconds of a clock that never goes back.
        """
        if not self._is_due(now):
            return False
        self._take_up(now)  # another process may have asked
        if not self._is_due(now):
            return False
        self._tried = now
        self.problem = _ask(self._ledger, self._root, self._hurry)
        self._in_vain = self._in_vain + 1 if self.problem else 0
        self._take_up(now)
        return True

    def _is_due(self, now: float) -> bool:
        """Say whether there is something new, and enough time went by since the last question."""
        if is_settled(self._ledger.store, self._stamped):
            return False
        if self._tried is None:
            return True
        waited, regular = now - self._tried, self._ledger.settings.anchor.timestamp_seconds
        if self._in_vain:
            return waited >= min(LEAST << min(self._in_vain - 1, 10), regular)
        return waited >= regular or (waited >= LEAST and self._has_violation())

    def _has_violation(self) -> bool:
        """Say whether a violation was recorded since the last token; no event is looked at twice."""
        size = self._ledger.store.size()
        newest = _newest_violation(self._ledger.store, max(self._looked, self._stamped), size)
        self._looked = size
        if newest is not None:
            self._violation = newest
        return self._violation >= self._stamped

    def _take_up(self, now: float) -> None:
        """Take note of the newest token of the log, whoever had it made."""
        newest = newest_stamp(self._ledger.store, _roots(self._ledger))
        if newest is not None:
            self._stamped = newest.size
            when = now - _seconds_since(self._ledger, newest.at)
            self._tried = when if self._tried is None else max(self._tried, when)


def stamp_before_export(ledger: ContractLedger) -> str:
    """Have the head stamped before something is exported under it; wait for the answer, and record it.

    Does nothing where the settings name no authority with its roots, where no head can be signed, where nothing but
    anchors came since the last token, and where the authority was asked within `LEAST` seconds.

    Args:
        ledger: to be exported from.

    Returns:
        Why there is no token, "" otherwise.
    """
    if ledger.home is None or ledger.read_only or "log" not in ledger.signers or not ledger.settings.anchor.stamps:
        return ""
    root = ledger.home.root
    in_vain, newest = no_time_since(root), newest_stamp(ledger.store, _roots(ledger))
    tried = [when for when in (in_vain, newest.at if newest else None) if when is not None]
    if any(_seconds_since(ledger, when) < LEAST for when in tried):
        return ""
    return "" if newest is not None and is_settled(ledger.store, newest.size) else _ask(ledger, root)


def _ask(ledger: ContractLedger, root: Path, hurry: threading.Event | None = None) -> str:
    """Have the head stamped; return why that failed, "" otherwise."""
    chosen, size, problem = ledger.settings.anchor, ledger.store.size(), ""
    try:
        authority = Authority(str(chosen.timestamp), time_roots(ledger), chosen.timestamp_policy)
        size = anchor_by_authority(ledger, authority, timeout=chosen.timeout, hurry=hurry).head.size
    except LedgerError as failure:
        problem = str(failure)
    tell(root, ledger.clock(), size, {NAME: problem} if problem else {}, of_time=True)
    return problem


def _newest_violation(store: Store, start: int, stop: int) -> int | None:
    """Return the log index of the newest violation from `start` on, below `stop`; no record is read for it."""
    with store.views() as connection:
        newest: tuple[int | None] = connection.execute(
            "SELECT max(rowid) - 1 FROM ledger_events WHERE topic = ? AND rowid > ? AND rowid <= ?",
            ("violation.detected.v1", start, stop),
        ).fetchone()
    return newest[0]


def _roots(ledger: ContractLedger) -> tuple[Certificate, ...]:
    """Return whom the settings trust for a time; nobody where that cannot be read, which `_ask` says."""
    try:
        return time_roots(ledger)
    except LedgerError:
        return ()


def _seconds_since(ledger: ContractLedger, when: datetime) -> float:
    """Return how long ago something was, 0 for what lies ahead: the clock was set back."""
    return max(0.0, (ledger.clock() - when).total_seconds())
