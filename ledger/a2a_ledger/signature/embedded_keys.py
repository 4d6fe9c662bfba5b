"""Public keys that lie inside the card that they sign. Pure; docs/format.md section 7.6.

Whoever can change a card can change the key in it as well, so such a key shows that the card is whole,
never who signed it.
"""

from __future__ import annotations

import base64
import re
from itertools import islice
from typing import TYPE_CHECKING, Final

from a2a_ledger.errors import FormatError
from a2a_ledger.signature.base64url import encode
from a2a_ledger.signature.card_keys import CardKey, public_jwk, thumbprint

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
_MAX_ENCODED: Final = 1024
# A SubjectPublicKeyInfo has one spelling in DER, so what stands before the key itself is fixed.
_ED25519: Final = bytes.fromhex("302a300506032b6570032100")
_P256: Final = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d03010703420004")
_PEM: Final = re.compile(r"\s*-----BEGIN PUBLIC KEY-----([A-Za-z0-9+/=\s]*)-----END PUBLIC KEY-----\s*")
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
            jwk = _jwk_of(_bytes(text))
            if jwk is not None:
                return jwk
    return None


def _bytes(text: str) -> bytes:
    """Return the bytes of a key in PEM or base64; empty when it is neither."""
    found = _PEM.fullmatch(text)
    try:
        return base64.b64decode("".join((found[1] if found else text).split()), validate=True)
    except ValueError:
        return b""


def _jwk_of(encoded: bytes) -> CardObject | None:
    """Return the JWK of a SubjectPublicKeyInfo (RFC 5480, RFC 8410) of the two curves; None for anything else."""
    if encoded.startswith(_ED25519) and len(encoded) == len(_ED25519) + 32:
        return {"kty": "OKP", "crv": "Ed25519", "x": encode(encoded[-32:])}
    if encoded.startswith(_P256) and len(encoded) == len(_P256) + 64:
        return {"kty": "EC", "crv": "P-256", "x": encode(encoded[-64:-32]), "y": encode(encoded[-32:])}
    return None
