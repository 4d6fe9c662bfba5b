"""The JSON of `card show`. Pure; docs/format.md section 7."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.contract.card_json import CardObject, CardValue, plain
from a2a_ledger.contract.dialect import states
from a2a_ledger.contract.difference import hashes
from a2a_ledger.contract.normal_form import FORM

if TYPE_CHECKING:
    from a2a_ledger.card import Card


def summary(card: Card, signature: CardObject | None = None) -> CardObject:
    """Return what `card show --format json` prints; works for whatever bytes came.

    Args:
        card: the card.
        signature: what was judged of its signatures (section 7.6); None: nobody did.
    """
    contract = card.contract
    document = card.document
    interfaces = contract.interfaces if contract else []
    return {
        "is_card": card.is_card,
        "dialect": card.dialect,
        "hashes": dict[str, CardValue](hashes(card)),
        "form": FORM,
        "contract": plain(contract.value) if contract else None,
        "stated": {
            "protocolVersion": bool(interfaces) and all(one["version"] is not None for one in interfaces),
            "security": states(document, "security", "securityRequirements", "authentication"),
        },
        "flags": list[CardValue](card.flags),
        "signature": signature,
    }
