"""Card signatures: JWS over canonical forms of a card, judged apart from its contract. Pure.

docs/format.md section 7.6. `judge` says of a card whether its signatures hold, under whose key, over which
canonical form, and whether they cover the contract; `read_card_keys` reads the keys that a reader trusts.
"""

from __future__ import annotations

from a2a_ledger.signature.card_keys import CardKey, KeySource, keys_for, read_card_keys, thumbprint
from a2a_ledger.signature.forms import FORMS, CanonicalForm
from a2a_ledger.signature.judgement import Judgement
from a2a_ledger.signature.judging import judge

__all__ = [
    "FORMS",
    "CanonicalForm",
    "CardKey",
    "Judgement",
    "KeySource",
    "judge",
    "keys_for",
    "read_card_keys",
    "thumbprint",
]
