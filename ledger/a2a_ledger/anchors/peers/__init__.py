"""Peers as witnesses: heads ride on calls, each ledger holds and cosigns the other's (docs/format.md section 6.4)."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from a2a_ledger.anchors.peers.exchange import Peers
from a2a_ledger.anchors.peers.key import make_peer_key
from a2a_ledger.anchors.witnesses import check_witness_keys
from a2a_ledger.errors import UsageError
from a2a_ledger.store.log_keys import log_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_ledger.anchors.witness import Witness
    from a2a_ledger.ledger import ContractLedger

_log = logging.getLogger(__name__)

__all__ = ["Peers", "meet_peers"]


def meet_peers(ledger: ContractLedger) -> Peers | None:
    """Return the exchange of heads that a ledger's settings ask for; None: none, or nothing can be signed here.

    Raises:
        UsageError: the file of peers cannot be used with this log.
        StoreError: the cosigning key cannot be made.
    """
    if ledger.home is None or ledger.mark is None or "log" not in ledger.signers:
        return None
    trust = ledger.settings.peer_trust(ledger.home.root)
    if trust is None:
        return None
    trust = replace(trust, witnesses=_usable(ledger, trust.witnesses))
    peers = Peers(ledger, ledger.home.root, trust)
    make_peer_key(ledger, ledger.mark)
    return peers


def _usable(ledger: ContractLedger, witnesses: Sequence[Witness]) -> list[Witness]:
    """Return those whose cosignatures can count in this log: a key that it has revoked stops nothing but itself."""
    keys = log_keys(ledger.store)
    usable: list[Witness] = []
    for witness in witnesses:
        try:
            check_witness_keys(keys, [witness])
            usable.append(witness)
        except UsageError as problem:
            _log.error("a key in the file of peers does not count here: %s", problem)
    return usable
