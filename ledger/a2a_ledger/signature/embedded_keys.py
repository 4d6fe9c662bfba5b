"""Public keys that lie inside the card that they sign. Pure; docs/format.md section 7.6.

Whoever can change a card can change the key in it as well, so such a key shows that the card is whole,
never who signed it.
"""

from __future__ import annotations

import base64
import binascii
from itertools import islice
from typing import TYPE_CHECKING, Final, cast

from a2a_ledger.errors import FormatError
from a2a_ledger.signature.card_keys import CardKey, public_jwk, thumbprint
from a2a_ledger.signature.jws import jwk_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.contract.card_json import CardObject, CardValue
    from a2a_ledger.events import JsonObject

_IDS: Final = ("kid", "keyId", "key_id", "id")
_ENCODED: Final = (
    "public_key_der_base64",
    "publicKeyDerBase64",
    "public_key_pem",
    "publicKeyPem",
    "public_key",
    "publicKey",
    "pem",
    "spki",
)
_MAX_ENCODED: Final = 4096
_MOST_LOOKED_AT: Final = 64  # checking a key costs the reader time, and a card may hold thousands


def embedded_keys(document: CardObject, kid: str | None, *, most: int) -> list[CardKey]:
    """Return the keys inside a card that a signature may mean, at most so many, in the order of the card.

    Args:
        document: The card.
        kid: The key id that the signature names; None takes every key.
        most: How many keys are returned.
    """
    found: list[CardKey] = []
    for holder in islice(_holders(document), _MOST_LOOKED_AT):
        if len(found) == most:
            break
        key = _key(holder, kid)
        if key is not None and key not in found:
            found.append(key)
    return found


def _holders(document: CardObject) -> Iterator[CardObject]:
    """Walk the objects of a card that hold a key in any spelling met, in its order."""
    pending: list[CardValue] = [document]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            if any(name in value for name in ("kty", "publicKeyJwk", *_ENCODED)):
                yield value
            pending += reversed(value.values())
        elif isinstance(value, list):
            pending += reversed(value)


def _key(holder: CardObject, kid: str | None) -> CardKey | None:
    """Return the key that an object states, when it is the one named and may be used."""
    names = sorted({value for name in _IDS if isinstance(value := holder.get(name), str)})
    try:
        jwk = _jwk(holder, named=kid is None or kid in names)
        if jwk is None or (kid is not None and kid not in (*names, jwk.get("kid"), thumbprint(jwk))):
            return None
    except FormatError:
        return None
    return CardKey(kid or next(iter(names), thumbprint(jwk)), jwk, "card")


def _jwk(holder: CardObject, *, named: bool) -> JsonObject | None:
    if isinstance(holder.get("kty"), str):
        return public_jwk(holder)
    if not named:
        return None
    nested = holder.get("publicKeyJwk")
    return public_jwk(nested if isinstance(nested, dict) else _decoded(holder))


def _decoded(holder: CardObject) -> CardObject | None:
    for name in _ENCODED:
        text = holder.get(name)
        if isinstance(text, str) and len(text) <= _MAX_ENCODED:
            jwk = jwk_of(_bytes(text))
            if jwk is not None:
                return cast("CardObject", jwk)
    return None


def _bytes(text: str) -> bytes:
    if text.lstrip().startswith("-----BEGIN"):
        return text.encode("utf-8", "replace")
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        return b""
