"""What was recorded of a card's signatures, in one word. Pure; docs/format.md section 7.6."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from a2a_ledger_projections.view import text

if TYPE_CHECKING:
    from a2a_ledger.events import JsonObject


def signature_word(fetched: JsonObject) -> str | None:
    """Return `absent`, `valid`, `integrity`, `invalid` or `undecidable`; None where nothing was judged.

    Args:
        fetched: data of a `card.fetched.v1`. What is valid by a key inside the card says `integrity`: it shows that
            the card is whole, and never who signed it.
    """
    told = fetched.get("signature")
    if not isinstance(told, dict):
        return None
    status = text(told, "status")
    return "integrity" if status == "valid" and text(told, "proves") != "signer" else status


def signature_words(fetched: JsonObject) -> str:
    """Return the same for a line about one fetch, with the key's id; "" where there is nothing to say."""
    word = signature_word(fetched)
    if word in {None, "absent"}:
        return ""
    kid = text(cast("JsonObject", fetched["signature"]), "kid")
    shown = "integrity only, by a key inside the card" if word == "integrity" else word
    return f"signature {shown}" + (f" (key {kid!r})" if kid else "")
