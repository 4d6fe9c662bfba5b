"""Heads that go to and fro with calls: what a call is given, and what is done behind it with what it brought.

docs/format.md section 6.4. On the path of a call nothing is written and nobody is waited for: a value is read or made
from the newest signed head, with one signature to check at most. All else is done in a thread, which begins with the
first head that comes. Whatever goes wrong here is logged, and the call knows nothing of it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.anchors.peers.keeping import Keeping, signed_by
from a2a_ledger.anchors.peers.memory import HeldHeads
from a2a_ledger.anchors.peers.parameter import PeerHead, read_peer_head
from a2a_ledger.anchors.peers.recording import Recording
from a2a_ledger.checkpoint import checkpoint_of
from a2a_ledger.errors import FormatError, LedgerError, SignatureError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from a2a_ledger.anchors.peers.trust import PeerTrust
    from a2a_ledger.ledger import ContractLedger

_log = logging.getLogger(__name__)

_WAITING = 64
"""Heads that wait to be taken in; more are dropped, for each call brings another one."""

_MADE = 64
_STEP = 1.0


class Came(NamedTuple):
    """A head that came with a call, and the log that it is of."""

    origin: str
    claim: PeerHead


class Answer(NamedTuple):
    """What an answer to a request is given, and what is to be taken in once that has left."""

    value: str
    came: Came


class _Made(NamedTuple):
    """A value, and from and to which size its proof leads."""

    value: str
    old: int
    size: int


class Peers:
    """The exchange of heads of one open ledger; for any thread."""

    def __init__(self, ledger: ContractLedger, root: Path, trust: PeerTrust) -> None:
        """Begin; nothing runs yet.

        Raises:
            UsageError: the deployment names this log as its own peer.
        """
        if ledger.origin in trust.logs:
            raise UsageError(f"the file of peers names {ledger.origin}, which is this log itself")
        self.trust = trust
        self._ledger = ledger
        self._heads = HeldHeads(root)
        self._recording = Recording(ledger, self._heads, trust.witnesses, ledger.settings.anchor.seconds)
        self._keeping = Keeping(ledger, trust, self._heads, self._recording)
        self._theirs: dict[str, int] = {}  # by log: size of ours that its owner probably holds by now
        self._sent: dict[str, tuple[int, int]] = {}  # by log: from and to which size a request's proof led last
        self._taken: dict[str, PeerHead] = {}  # by log: what was taken in last
        self._verified: dict[str, str] = {}  # by log: the note that was verified last
        self._made: OrderedDict[tuple[str, int, int, str], _Made | None] = OrderedDict()
        self._queue: deque[Came] = deque()
        self._work = threading.Lock()
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    # ---- on the path of a call -----------------------------------------------------------------------------------

    def for_request(self, peer: str) -> str | None:
        """Return what a request to a peer is given; None: nothing."""
        origin = self.trust.places.get(peer)
        if origin is None:
            return None
        try:
            made = self._make(origin, self._theirs.get(origin, 0))
        except Exception as problem:  # noqa: BLE001 - no call fails because of this
            _log.warning("no head goes to %s: %s", origin, problem)
            return None
        if made is None:
            return None
        self._sent[origin] = made.old, made.size
        return made.value

    def for_answer(self, values: Sequence[str]) -> Answer | None:
        """Read what came with a request, and return what its answer is given; None: nothing, as for a stranger.

        Args:
            values: of the parameter in the request; two of them say nothing.
        """
        try:
            if len(values) != 1:
                return None
            claim = read_peer_head(values[0])
            origin = checkpoint_of(claim.note).origin
            if origin not in self.trust.logs or claim.to != self._ledger.origin:
                _log.debug("a head of %s, for %s, is not for us", origin, claim.to)
                return None
            if self._verified.get(origin) != claim.note:
                signed_by(claim.note, self.trust.logs[origin])
                self._verified[origin] = claim.note
            held = checkpoint_of(claim.held) if claim.held else None
            old = held.size if held is not None and held.origin == self._ledger.origin else 0
            made = self._make(origin, old)
            return None if made is None else Answer(made.value, Came(origin, claim))
        except (FormatError, SignatureError) as problem:
            _log.debug("a head that came with a request says nothing: %s", problem)
        except Exception as problem:  # noqa: BLE001 - no call fails because of this
            _log.warning("a head that came with a request was not read: %s", problem)
        return None

    def answered(self, peer: str, values: Sequence[str]) -> None:
        """Take in, behind the call, what came with a peer's answer."""
        origin = self.trust.places.get(peer)
        if origin is None or len(values) != 1:
            return
        try:
            claim = read_peer_head(values[0])
            if checkpoint_of(claim.note).origin == origin and claim.to == self._ledger.origin:
                self._theirs[origin] = self._now_held(origin, claim)
                self.take(Came(origin, claim))
        except (FormatError, SignatureError) as problem:
            _log.debug("a head that came with an answer says nothing: %s", problem)
        except Exception as problem:  # noqa: BLE001 - no call fails because of this
            _log.warning("a head that came with an answer was not read: %s", problem)

    def take(self, came: Came) -> None:
        """Take in a head behind the call; between two heads most calls bring the same."""
        if len(self._queue) >= _WAITING or self._closing.is_set() or self._taken.get(came.origin) == came.claim:
            return
        self._queue.append(came)
        self._wake.set()
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="a2a-ledger-peers", daemon=True)
                self._thread.start()

    def _now_held(self, origin: str, claim: PeerHead) -> int:
        """Return what a peer that answered probably holds of ours: what was sent is taken in behind its answer."""
        held = checkpoint_of(claim.held) if claim.held else None
        said = held.size if held is not None and held.origin == self._ledger.origin else 0
        old, new = self._sent.get(origin, (-1, 0))
        return new if said == old else said

    def _make(self, origin: str, old: int) -> _Made | None:
        """Return the value for the owner of a log, with a proof from the size that they hold; None: there is no head.

        Raises:
            StoreError: the log, or what is held, cannot be read.
        """
        newest = self._ledger.store.latest_checkpoint()
        if newest is None:
            return None
        size, note = newest
        old = old if 0 < old <= size else 0
        held = self._heads.note(origin) or ""
        key = (origin, size, old, held)
        if key not in self._made:
            store = self._ledger.store
            root, path = (store.root(old), store.consistency(old, size)) if old else (b"", [])
            value = PeerHead(origin, note, old, root, tuple(path), held).encode()
            self._made[key] = None if value is None else _Made(value, old, size)
            while len(self._made) > _MADE:
                self._made.popitem(last=False)
        return self._made.get(key)

    # ---- behind it -----------------------------------------------------------------------------------------------

    def settle(self, *, at_last: bool = False) -> None:
        """Take in what waits, and record what is due, in this thread.

        Args:
            at_last: record all that was not recorded yet.
        """
        with self._work:
            while self._queue:
                self._take(*self._queue.popleft())
            self._recording.write(time.monotonic(), at_last=at_last)

    def stop(self) -> None:
        """End; what came is taken in and recorded."""
        self._closing.set()
        self._wake.set()
        with self._starting:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()
        self.settle(at_last=True)

    def _take(self, origin: str, claim: PeerHead) -> None:
        try:
            outcome = self._keeping.take(origin, claim)
            self._taken[origin] = claim
            _log.debug("head of %s: %s", origin, outcome.value)
        except LedgerError as problem:
            _log.warning("a head of %s was not taken on: %s", origin, problem)
        except Exception:  # noqa: BLE001 - a defect of ours must not end the thread
            _log.exception("a head of %s was not taken on", origin)

    def _run(self) -> None:
        while not self._closing.is_set():
            self._wake.wait(_STEP if self._recording.waiting else None)
            self._wake.clear()
            self.settle()
