"""One JSON Web Signature (RFC 7515) under one key, by a list of algorithms. The only importer of joserfc."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_ledger.events import JsonObject

KEY_TYPES: Final = {"EdDSA": "OKP", "Ed25519": "OKP", "ES256": "EC", "PS256": "RSA", "RS256": "RSA"}
"""What a card may be signed with, and the `kty` that each needs; nothing else, `none` and HMAC least of all."""

_REGISTRY: Final = JWSRegistry(algorithms=["Ed25519", "ES256", "PS256", "RS256"])


def checker(alg: str, jwk: JsonObject) -> Callable[[bytes, bytes], bool]:
    """Return what tells whether a signature over a signing input verifies: `(signing input, signature) -> bool`.

    Args:
        alg: One of `KEY_TYPES`, fitting the key.
        jwk: A key that `card_keys.public_jwk` has let through.
    """
    # Every key here is on the curve Ed25519, where EdDSA (RFC 8037) and Ed25519 (RFC 9864) are the same.
    algorithm = _REGISTRY.get_alg("Ed25519" if alg == "EdDSA" else alg)
    kind = KEY_TYPES[alg]
    material = {name: jwk[name] for name in ("crv", "x", "y", "n", "e") if name in jwk}
    parameters = cast("dict[str, str | list[str]]", {"kty": kind, **material})
    key: OKPKey | ECKey | RSAKey
    if kind == "OKP":
        key = OKPKey.import_key(parameters)
    elif kind == "EC":
        key = ECKey.import_key(parameters)
    else:
        key = RSAKey.import_key(parameters)

    def verifies(signing_input: bytes, signature: bytes) -> bool:
        return algorithm.verify(signing_input, signature, key)

    return verifies
