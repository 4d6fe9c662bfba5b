"""Canonical forms: which bytes of a card a signer may have signed. Pure; docs/format.md section 7.6.

A signature is detached, so its payload has to be made again from the card. A2A 1.0 section 8.4.1 asks for
RFC 8785 over presence rules that its own section 8.4.2 contradicts, and signers differ. Every form that is
known is tried, and the one that fits is named.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from a2a_ledger.contract.card_json import UnrepresentableError, canonical

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_ledger.contract.card_json import CardObject


@dataclass(frozen=True, slots=True)
class CanonicalForm:
    """One way to turn a card into the bytes that are signed.

    Attributes:
        name: Its public name, kept for ever.
        bytes_of: The card as parsed from its JSON -> the payload; None where this form has none for it.
    """

    name: str
    bytes_of: Callable[[CardObject], bytes | None]


def _unsigned(document: CardObject) -> CardObject:
    return {name: value for name, value in document.items() if name != "signatures"}


def _jcs(document: CardObject) -> bytes | None:
    try:
        return canonical(_unsigned(document))
    except UnrepresentableError:
        return None


FORMS: tuple[CanonicalForm, ...] = (CanonicalForm("jcs", _jcs),)
