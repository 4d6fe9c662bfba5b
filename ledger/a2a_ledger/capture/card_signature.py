"""What is recorded of a card's signatures: the judgement by the keys in force, bounded, without secrets.

docs/format.md section 7.6. It stands beside the contract's hash and decides nothing by itself: a signature that does
not hold never stops a fetch from being recorded, and one that does never means that the contract is unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.capture.card_keys import keys_in_force
from a2a_ledger.capture.redact import starred
from a2a_ledger.codec import canonical
from a2a_ledger.signature import judge
from a2a_ledger.signature.entries import entries_of
from a2a_ledger.signature.judgement import of_other_octets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_ledger.card import Card
    from a2a_ledger.events import Json, JsonObject
    from a2a_ledger.ledger import ContractLedger

LOSSY = "these are not the octets that were served, and the signature does not hold for what a library made of them"
"""Why a card with the flag `lossy` has no signature that is invalid."""

_MOST = 16 * 1024
"""Octets of the signatures one by one that a record has room for; the strongest of them always stands."""


def judged_signature(
    card: Card, peer: str, at: ContractLedger, wanted: Sequence[bytes] = (), *, lossy: bool = False
) -> JsonObject:
    """Return the member `signature` of `card.fetched.v1`.

    Args:
        card: as it came.
        peer: whose card it was asked for as; only the keys of this peer may speak for it.
        at: the ledger that records it, with its keys and its time.
        wanted: octets of secrets, which a card may repeat in a key id.
        lossy: its octets are as a library wrote them, not as they were served, so that a signature that does not
            hold for them was not necessarily broken by anybody.
    """
    signed = card.document is not None and bool(entries_of(card.document))
    judged = judge(card, keys_in_force(at, peer) if signed else ())
    told = (of_other_octets(judged, LOSSY) if lossy else judged).to_json()
    if len(canonical(told)) > _MOST:
        told.pop("signatures", None)
    return {name: _without(value, wanted) for name, value in told.items()} if wanted else told


def _without(value: Json, wanted: Sequence[bytes]) -> Json:
    """Return a value with `*` for each octet of a secret in its texts."""
    if isinstance(value, str):
        return starred(value, wanted)
    if isinstance(value, list):
        return [_without(one, wanted) for one in value]
    if isinstance(value, dict):
        return {name: _without(one, wanted) for name, one in value.items()}
    return value
