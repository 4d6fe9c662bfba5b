"""What this ledger holds of its peers' logs, for people and for an audit; each head is verified again here."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.anchors.fork import check_fork, read_fork
from a2a_ledger.anchors.peers.key import ROLE
from a2a_ledger.anchors.peers.memory import HeldHeads
from a2a_ledger.checkpoint import open_checkpoint
from a2a_ledger.errors import LedgerError
from a2a_ledger.store.log_keys import log_keys

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from a2a_ledger.anchors.peers.trust import PeerTrust
    from a2a_ledger.keys import Verifier
    from a2a_ledger.ledger import ContractLedger


class HeldNow(NamedTuple):
    """What is held of one log.

    Attributes:
        origin: of the log.
        urls: where calls are given heads for it.
        size: of the head that is held; 0: none is.
        root: of that head, hex.
        at: POSIX seconds of our cosignature; None: it has none.
        note: the head as it is held; "": none is.
        why: what is wrong with it; "": nothing.
        fork: what proves that the log has forked, where it is kept.
        fork_why: why that proves nothing; "": it proves it.
    """

    origin: str
    urls: tuple[str, ...]
    size: int
    root: str
    at: int | None
    note: str
    why: str
    fork: Path | None
    fork_why: str


def held_now(ledger: ContractLedger) -> list[HeldNow]:
    """Return what is held of each log that the settings name, sorted by its origin; nothing where they name none.

    Raises:
        UsageError: the file of peers cannot be used.
    """
    trust = None if ledger.home is None else ledger.settings.peer_trust(ledger.home.root)
    if ledger.home is None or trust is None:
        return []
    heads = HeldHeads(ledger.home.root)
    ours = [term.key for term in log_keys(ledger.store).terms if term.role == ROLE]
    return [_of(heads, origin, trust, ours) for origin in sorted(trust.logs)]


def _of(heads: HeldHeads, origin: str, trust: PeerTrust, ours: Sequence[Verifier]) -> HeldNow:
    urls = tuple(trust.urls[peer] for peer, log in trust.places.items() if log == origin)
    fork = heads.fork_file(origin)
    found = HeldNow(origin, urls, 0, "", None, "", "", fork if fork.exists() else None, "")
    if found.fork is not None:
        found = found._replace(fork_why=why_no_fork(found.fork, trust.logs[origin]))
    try:
        note = heads.note(origin)
        if note is None:
            return found
        signed = open_checkpoint(note, [*trust.logs[origin], *ours])
    except LedgerError as problem:
        return found._replace(why=str(problem))
    head = signed.checkpoint
    at = next((entry.time for entry in signed.cosigners), None)
    return found._replace(size=head.size, root=head.root.hex(), at=at, note=note)


def why_no_fork(path: Path, keys: Sequence[Verifier]) -> str:
    """Return why a file does not prove that the log with these keys has forked; "": it proves it."""
    try:
        check_fork(read_fork(path.read_bytes()), keys)
    except (OSError, LedgerError) as problem:
        return str(problem)
    return ""


def alarms(held: Sequence[HeldNow]) -> list[str]:
    """Return a sentence for each log that has forked, and for each head that is not as it must be."""
    said: list[str] = []
    for one in held:
        if one.fork is not None:
            proves = f"does not prove it: {one.fork_why}" if one.fork_why else "proves it"
            said.append(f"the log {one.origin} of a peer has forked: {one.fork} {proves}")
        if one.why:
            said.append(f"the head that is held of {one.origin}: {one.why}")
    return said
