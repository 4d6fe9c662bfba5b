"""The audit's look at heads of other logs: each that was recorded, and those that are held now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.anchors.peers.held_now import alarms, held_now
from a2a_ledger.anchors.peers.recording import recorded_heads
from a2a_ledger.audit.fault import Fault, said
from a2a_ledger.checkpoint import checkpoint_of, open_checkpoint
from a2a_ledger.errors import LedgerError
from a2a_ledger.note import parse_note

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from a2a_ledger.anchors.peers.recording import PeerHeadEvent
    from a2a_ledger.keys import Verifier
    from a2a_ledger.ledger import ContractLedger


def check_peer_heads(ledger: ContractLedger) -> tuple[list[Fault], list[str]]:
    """Return what is wrong with heads of other logs in this ledger, and what is no fault of it and worth saying."""
    faults: list[Fault] = []
    notes: list[str] = []
    try:
        trust = None if ledger.home is None else ledger.settings.peer_trust(ledger.home.root)
        keys: Mapping[str, Sequence[Verifier]] = trust.logs if trust is not None else {}
        same: dict[tuple[str, int], PeerHeadEvent] = {}
        unchecked: set[str] = set()
        for found in recorded_heads(ledger.store):
            signers = _signers(found, keys.get(found.origin, ()))
            why = _why_wrong(found, signers, same.setdefault((found.origin, found.size), found))
            if why:
                what = f"the head of {found.size} of the peer's log {found.origin!a}, event {found.n}"
                faults.append(Fault("checkpoint", found.n, f"{what}: {why}"))
            elif not signers:
                unchecked.add(found.origin)
        notes += [
            f"heads of the peer's log {origin!a} were recorded, and no key of it that signed them is named (`peers` "
            "below [anchor] of config.toml; a key that it has replaced may stay there): these signatures were not "
            "checked"
            for origin in sorted(unchecked)
        ]
        notes += alarms(held_now(ledger))
    except Exception as problem:  # noqa: BLE001 - a damage that stops this step must not stop the others
        faults.append(Fault("database", None, f"heads of peers' logs cannot be looked at: {said(problem)}"))
    return faults, notes


def _signers(found: PeerHeadEvent, known: Sequence[Verifier]) -> list[Verifier]:
    """Return the known keys in whose name one that was recorded is signed; a note that cannot be read has none."""
    try:
        lines = {(line.name, line.key_id) for line in parse_note(found.note).signatures}
    except LedgerError:
        return []
    return [key for key in known if (key.name, key.key_id) in lines]


def _why_wrong(found: PeerHeadEvent, signers: Sequence[Verifier], other: PeerHeadEvent) -> str:
    """Return what is wrong with one that was recorded; "": nothing that can be seen.

    Several processes record: where it stands in the log says nothing of when it was held.
    """
    try:
        head = open_checkpoint(found.note, signers).checkpoint if signers else checkpoint_of(found.note)
    except LedgerError as problem:
        return str(problem)
    if (head.origin, head.size, head.root.hex()) != (found.origin, found.size, found.root):
        return f"its note is over a head of {head.size} of {head.origin!a}, root {head.root.hex()}"
    if other.root != found.root:
        return f"another head of {other.size} was held too (event {other.n}), which excludes it"
    return ""
