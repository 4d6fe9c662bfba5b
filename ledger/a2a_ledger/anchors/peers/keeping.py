"""What becomes of a peer's head, behind the call: held against the one before, cosigned; and of ours that it has.

docs/format.md section 6.4. Nothing that a peer sends stops a call: what contradicts is kept as a proof and said.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from a2a_ledger.anchors.contradiction import contradiction, fits
from a2a_ledger.anchors.peers.held_now import why_no_fork
from a2a_ledger.anchors.peers.judging import Outcome, judge_head
from a2a_ledger.anchors.peers.key import ROLE
from a2a_ledger.anchors.peers.recording import newest_recorded
from a2a_ledger.checkpoint import checkpoint_of, open_checkpoint
from a2a_ledger.errors import LedgerError
from a2a_ledger.note import Note, cosign, parse_note
from a2a_ledger.store.log_keys import open_own

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_ledger.anchors.fork import Fork
    from a2a_ledger.anchors.peers.memory import HeldHeads
    from a2a_ledger.anchors.peers.parameter import PeerHead
    from a2a_ledger.anchors.peers.recording import Recording
    from a2a_ledger.anchors.peers.trust import PeerTrust
    from a2a_ledger.keys import Verifier
    from a2a_ledger.ledger import ContractLedger

_log = logging.getLogger(__name__)

_REMEMBERED = 256


def signed_by(note: str, keys: Sequence[Verifier]) -> str:
    """Return a note with the signatures of these keys alone, each verified.

    Raises:
        FormatError: it is no signed checkpoint.
        SignatureError: none of the keys signed it, or a signature of one does not verify.
    """
    opened = open_checkpoint(note, keys).note
    names = {(key.name, key.key_id) for key in keys}
    return str(Note(opened.text, tuple(line for line in opened.signatures if (line.name, line.key_id) in names)))


class Keeping:
    """Takes in what peers send; for one thread at a time."""

    def __init__(self, ledger: ContractLedger, trust: PeerTrust, heads: HeldHeads, recording: Recording) -> None:
        self._ledger = ledger
        self._trust = trust
        self._heads = heads
        self._recording = recording
        self._said: set[tuple[str, str]] = set()
        self._contradicted: set[str] = set()

    def take(self, origin: str, claim: PeerHead) -> Outcome:
        """Take in what the owner of a log has sent; return what its head is beside the one that was held.

        Args:
            origin: of the log, one that the deployment names.
            claim: what was sent, as it was read.

        Raises:
            FormatError, SignatureError: no key of that log signed its head.
            StoreError: what is held cannot be read or written; nothing was cosigned.
        """
        claim = replace(claim, note=signed_by(claim.note, self._trust.logs[origin]))
        self._take_ours(origin, claim.held)
        return self._take_theirs(origin, claim)

    def _held(self, origin: str) -> str | None:
        """Return the head that is held of a log; where its file is gone, the newest that this log recorded."""
        held = self._heads.note(origin)
        if held is None and (recorded := newest_recorded(self._ledger.store, origin)) is not None:
            self._heads.keep(origin, recorded)
            return recorded
        return held

    def _take_theirs(self, origin: str, claim: PeerHead) -> Outcome:
        with self._heads.exclusive():
            held = self._held(origin)
            found = judge_head(held, claim, self._ledger.origin)
            if found.outcome.is_new:
                cosigned = self._cosigned(claim.note)
                self._heads.keep(origin, cosigned)
                self._recording.held(origin)
            elif found.fork is not None:
                self._keep_fork(origin, found.fork)
        if found.outcome is Outcome.UNPROVED:
            self._say(origin, found.outcome.value)
        return found.outcome

    def _keep_fork(self, origin: str, fork: Fork) -> None:
        """Keep a fork proof, one a log: who signs two histories can sign any number of them."""
        path = self._heads.fork_file(origin)
        if path.exists() and not why_no_fork(path, self._trust.logs[origin]):
            return
        self._heads.keep_fork(origin, fork.to_bytes())
        _log.error(
            "the log %s of a peer has forked: it signed a head of %d, and one of %d that excludes it; %s proves it. "
            "Nothing of the new history is cosigned. Keep the file, and ask its owner",
            origin,
            checkpoint_of(fork.ours).size,
            checkpoint_of(fork.theirs).size,
            path,
        )

    def _cosigned(self, note: str) -> str:
        """Add our cosignature to a head that is about to be held, where the key is here."""
        signer = self._ledger.signers.get(ROLE)
        if signer is None:
            return note
        line = cosign(parse_note(note).text, signer, int(self._ledger.clock().timestamp()))
        return f"{note}{line}"

    def _take_ours(self, origin: str, held: str) -> None:
        """Hold the head of ours that a peer has against this log; what it cosigned is an anchor."""
        if not held or held in self._contradicted or checkpoint_of(held).origin != self._ledger.origin:
            return
        try:
            seen = open_own(self._ledger.store, held, [witness.key for witness in self._trust.witnesses])
        except LedgerError as problem:  # nobody can be blamed by what no key signed that speaks for it
            self._say(origin, f"the head that it says it holds of this log does not verify: {problem}")
            return
        if fits(self._ledger, seen.checkpoint):
            self._recording.given(seen)
            return
        if len(self._contradicted) >= _REMEMBERED:  # all that one process says of it
            return
        self._contradicted.add(held)
        wrong = contradiction(self._ledger, origin, seen)
        if wrong is not None:
            _log.error("%s", wrong)

    def _say(self, origin: str, what: str) -> None:
        if (origin, what) not in self._said and len(self._said) < _REMEMBERED:
            self._said.add((origin, what))
            _log.warning("a head of %s was not taken on: %s", origin, what)
