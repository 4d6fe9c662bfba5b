"""Who signs the tree head: one signer a log at a time, never behind the high-water mark.

docs/format.md section 6. The order is fixed: read the head, prove that it extends the mark, sign,
write the mark, and only then let the note out and into the database. A crash between any two of
these loses nothing (the signature is deterministic, so the next one makes the same bytes).
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from a2a_ledger.checkpoint import Checkpoint, open_checkpoint, sign_checkpoint
from a2a_ledger.errors import BusyError, ConflictError, LedgerError, PolicyError
from a2a_ledger.key_ring import log_keys_here
from a2a_ledger.merkle import verify_consistency
from a2a_ledger.passphrase import Passphrase
from a2a_ledger.store import head_verifiers
from a2a_ledger.store.kept_heads import swap_note
from a2a_ledger.store.log_keys import log_keys
from a2a_ledger.store.mark import LOCK_TIMEOUT, HighWaterMark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2a_ledger.home import LedgerHome
    from a2a_ledger.keys import Signer, Verifier
    from a2a_ledger.settings import Settings
    from a2a_ledger.store import Store

_log = logging.getLogger(__name__)

INTERVAL = 1.0
"""Seconds within which growth is signed when nothing asks for more haste."""

SETTLE = 0.02
"""Seconds that an urgent request waits, so that a burst of captures shares one signature."""

SPACING = 0.25
"""Seconds between two urgent signatures: each waits for the disk five times, which a steady flow of sends must not."""

_ATTEMPTS = 5  # to sign while others do


class HeadSigner:
    """Signs the head of one log; safe to run in several processes, of which one signs at a time."""

    def __init__(self, store: Store, signer: Callable[[], Signer], mark: HighWaterMark) -> None:
        self._store = store
        self._signer = signer
        self._mark = mark
        self._shared = store.recorder.fence is not None  # other machines may sign, and keep their heads there
        self._signed = 0
        self._checked = 0  # rows before this opened, or lie under an earlier head
        self._outrun = 0.0  # since when others have been in the way and signed nothing; 0: they are not
        self._seen = 0  # the largest head that another process was seen to sign
        self._wake = threading.Event()
        self._urgent = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self.failure: Exception | None = None

    def sign(self) -> str:
        """Sign the head as it is now and return the note.

        Raises:
            RollbackError: the database is behind the mark.
            ConsistencyError: the head does not extend the mark.
            StoreError: the mark or the database cannot be written, or a new row does not open.
            ConflictError: signers on other machines were faster again and again.
            UnreachableError: no server answers, or no standby has what is to be signed.
        """
        for _ in range(_ATTEMPTS - 1):
            with suppress(ConflictError):
                return self._sign()
        return self._sign()

    def _sign(self, patience: float | None = None) -> str:
        with self._mark.exclusive(patience=patience) as held:
            newest = self._store.latest_checkpoint()  # before the size: what is signed meanwhile may be larger than it
            before = newest[1] if newest else None
            size, root = self._store.settled_root()
            self._store.check_open(self._checked, size)
            head = Checkpoint(self._store.origin, size, root)
            note = sign_checkpoint(head, self._signer())  # no rotation comes in between: it holds the mark as well
            held.advance(note, head, lambda old: self._prove(old, head), before if self._shared else None)
            with self._store.transaction() as session:
                swap_note(session, before, size, note)
            self._signed = self._checked = size
        return note

    def _prove(self, old: Checkpoint, new: Checkpoint) -> None:
        if old.size:
            path = self._store.consistency(old.size, new.size)
            verify_consistency(old.size, new.size, old.root, new.root, path)

    # ---- in the background ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Sign what grows, within a second, until `stop`."""
        newest = self._store.latest_checkpoint()
        self._signed = newest[0] if newest is not None else 0
        mark = self._mark.read()
        if mark is not None and mark.head.size > self._signed:  # a crash came between the mark and the database
            with suppress(ConflictError), self._store.transaction() as session:
                swap_note(session, newest[1] if newest else None, mark.head.size, mark.note)
            self._signed = mark.head.size
        self._checked = self._signed
        self._thread = threading.Thread(target=self._run, name="a2a-ledger-heads", daemon=True)
        self._thread.start()

    def soon(self) -> None:
        """Ask for a signature at once: after a capture, a violation, a key event."""
        self._urgent.set()
        self._wake.set()

    def stop(self) -> None:
        """Sign what is left and end the thread, when a signer that it is asking has answered, or failed to in time."""
        self._closing.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        due = 0.0  # when the next urgent signature may be made
        while not self._closing.is_set():
            self._wake.wait(INTERVAL)
            self._wake.clear()
            if self._urgent.is_set():
                self._closing.wait(max(SETTLE, due - time.monotonic()))
                self._urgent.clear()
            if self._sign_growth(patience=0):
                due = time.monotonic() + SPACING
        self._sign_growth()

    def _sign_growth(self, patience: float | None = None) -> bool:
        """Sign if there is something new; return whether a head was signed.

        Where another process signs at this moment, that will do: many that record would only wait for one another.
        """
        try:
            if self._store.size() > self._signed:
                self._sign(patience)
                self.failure = None
                self._outrun = 0.0
                return True
        except (BusyError, ConflictError) as e:
            if patience is None or self._waits_for_nothing():
                self._say(e)
        except Exception as e:  # noqa: BLE001 - whatever stops one signature, the next is tried: the thread goes on
            self._say(e)
        return False

    def _waits_for_nothing(self) -> bool:
        """Say whether others have been in the way for long and no head came of it: then one of them hangs."""
        now = time.monotonic()
        try:
            newest = self._store.latest_checkpoint()
        except LedgerError:
            newest = None
        if newest is not None and newest[0] > self._seen:
            self._seen, self._outrun = newest[0], now
        self._outrun = self._outrun or now
        return now - self._outrun > LOCK_TIMEOUT

    def _say(self, failure: Exception) -> None:
        if repr(failure) != repr(self.failure):
            defect = None if isinstance(failure, LedgerError) else failure
            _log.error("no tree head was signed, it is tried again: %s", failure, exc_info=defect)
        self.failure = failure


def newest_head(store: Store) -> Checkpoint | None:
    """Return the newest kept head, None if no head was signed yet: what its row says by itself is not believed.

    Raises:
        PolicyError: it is not signed by a key that the log names, or not over these events.
    """
    newest = store.latest_checkpoint()
    if newest is None:
        return None
    size, note = newest
    hint = "run `a2a-ledger audit`"
    try:
        head = open_checkpoint(note, log_keys(store).speaking("log", size)).checkpoint
        root = store.root(head.size)
    except (LedgerError, TypeError, AttributeError) as problem:
        raise PolicyError(f"the head kept for size {size!a} proves nothing: {problem}", hint=hint) from problem
    if (head.origin, head.size, head.root) != (store.origin, size, root):
        raise PolicyError(f"the head kept for size {size} is over other events than these", hint=hint)
    return head


def mark_of(home: LedgerHome, store: Store, settings: Settings) -> HighWaterMark:
    """Return the high-water mark of a ledger directory."""

    def here() -> Iterator[tuple[Path, Verifier]]:
        return log_keys_here(home.keys, store.origin, Passphrase(settings.passphrase_file(home.root)))

    elsewhere = Path(settings.mark_dir) if settings.mark_dir else None
    return HighWaterMark(home.root, store.origin, keys=lambda: head_verifiers(store), here=here, elsewhere=elsewhere)


def check_mark(mark: HighWaterMark, store: Store, settings: Settings) -> None:
    """Refuse to write behind the mark; a reader is only told (`audit` says it too)."""
    newest = store.latest_checkpoint()
    note = newest[1] if newest else None
    shared = store.recorder.fence is not None
    for remark in mark.check(size=store.size, root=store.root, newest=note, strict=settings.strict_mark, shared=shared):
        _log.warning("%s", remark)
