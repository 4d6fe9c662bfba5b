"""The audit's look at heads of other logs: each that was recorded, and those that are held now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.anchors.peers.held_now import alarms, held_now
from a2a_ledger.anchors.peers.recording import recorded_heads
from a2a_ledger.audit.fault import Fault, said
from a2a_ledger.checkpoint import checkpoint_of, open_checkpoint
from a2a_ledger.errors import LedgerError

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
        newer: dict[str, PeerHeadEvent] = {}
        unknown: set[str] = set()
        for found in recorded_heads(ledger.store):
            why = _why_wrong(found, keys, newer.get(found.origin))
            newer[found.origin] = found
            if why:
                what = f"the head of {found.size} of the peer's log {found.origin!a}, event {found.n}"
                faults.append(Fault("checkpoint", found.n, f"{what}: {why}"))
            if found.origin not in keys:
                unknown.add(found.origin)
        notes += [
            f"heads of the peer's log {origin!a} were recorded, and no key of it is named (`peers` below [anchor] of "
            "config.toml): their signatures were not checked"
            for origin in sorted(unknown)
        ]
        notes += alarms(held_now(ledger))
    except Exception as problem:  # noqa: BLE001 - a damage that stops this step must not stop the others
        faults.append(Fault("database", None, f"heads of peers' logs cannot be looked at: {said(problem)}"))
    return faults, notes


def _why_wrong(found: PeerHeadEvent, keys: Mapping[str, Sequence[Verifier]], newer: PeerHeadEvent | None) -> str:
    """Return what is wrong with one that was recorded; "": nothing that can be seen."""
    try:
        known = keys.get(found.origin)
        head = checkpoint_of(found.note) if known is None else open_checkpoint(found.note, known).checkpoint
    except LedgerError as problem:
        return str(problem)
    if (head.origin, head.size, head.root.hex()) != (found.origin, found.size, found.root):
        return f"its note is over a head of {head.size} of {head.origin!a}, root {head.root.hex()}"
    if newer is not None and (newer.size < found.size or (newer.size == found.size and newer.root != found.root)):
        return f"a head of {newer.size} was held after it (event {newer.n}), which does not extend it"
    return ""
