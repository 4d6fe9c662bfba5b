"""JSON Web Signatures (RFC 7515) with a detached payload, by a list of algorithms. The only importer of joserfc."""

from __future__ import annotations

from joserfc.jws import JWSRegistry

ALGORITHMS = ("EdDSA", "Ed25519", "ES256", "PS256", "RS256")
"""What a card may be signed with; everything else, `none` and HMAC first of all, is refused."""

REGISTRY = JWSRegistry(algorithms=list(ALGORITHMS))
