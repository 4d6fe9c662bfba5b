"""The JSON of `card show`. Pure; docs/format.md section 7."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, cast

from a2a_ledger.contract.card_json import CardObject, CardValue, plain
from a2a_ledger.contract.dialect import member, states
from a2a_ledger.contract.difference import hashes
from a2a_ledger.contract.normal_form import FORM

if TYPE_CHECKING:
    from a2a_ledger.card import Card


def summary(card: Card) -> CardObject:
    """Return what `card show --format json` prints; works for whatever bytes came."""
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
        "signature": signature_of(card),
    }


def signature_of(card: Card) -> CardObject:
    """Return what can be said of a card's signatures without a key: absent, or undecidable with the key ids."""
    listed = member(card.document, "signatures")
    if not listed:
        return {"status": "absent", "kid": None, "form": None, "covers_contract": None}
    kids = [_key_id(entry) for entry in listed] if isinstance(listed, list) else []
    named = ", ".join(kid for kid in kids if kid)
    return {"status": "undecidable", "kid": named or None, "form": None, "covers_contract": None}


def _key_id(entry: CardValue) -> str:
    """Return the key id that a signature names, in its protected header or beside it."""
    for header in (_protected(member(entry, "protected")), member(entry, "header"), entry):
        kid = member(header, "kid", "keyId")
        if isinstance(kid, str):
            return kid
    return ""


def _protected(text: CardValue) -> CardValue:
    """Return a JWS protected header (RFC 7515 section 4), or None when it is none."""
    if not isinstance(text, str):
        return None
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        return cast("CardValue", json.loads(data))
    except (ValueError, RecursionError):
        return None
