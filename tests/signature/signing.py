"""Signs cards for the tests with `cryptography` alone: no line of it is shared with what is tested."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import rfc8785
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from a2a_ledger.card import Card, read_card
from a2a_ledger.signature import CardKey

if TYPE_CHECKING:
    from a2a_ledger.events import Json, JsonObject
    from a2a_ledger.signature import KeySource

PrivateKey = ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey

CARD: JsonObject = {
    "name": "Translator",
    "description": "Translates",
    "version": "1.0.0",
    "supportedInterfaces": [
        {"url": "https://agent.example/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    ],
    "capabilities": {"streaming": True},
    "securitySchemes": {
        "oauth": {
            "oauth2SecurityScheme": {
                "flows": {"clientCredentials": {"tokenUrl": "https://agent.example/token", "scopes": {"read": "Read"}}}
            }
        }
    },
    "securityRequirements": [{"schemes": {"oauth": {"list": ["read"]}}}],
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
    "skills": [{"id": "translate", "name": "Translate", "description": "Translates", "tags": ["language"]}],
}
"""A small honest card of A2A 1.0."""


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@dataclass(frozen=True)
class Signer:
    """A private key with its algorithm and key id."""

    key: PrivateKey
    alg: str
    kid: str

    def public(self) -> JsonObject:
        """Return the public JWK."""
        if isinstance(self.key, ed25519.Ed25519PrivateKey):
            return {"kty": "OKP", "crv": "Ed25519", "x": b64(self.key.public_key().public_bytes_raw())}
        if isinstance(self.key, ec.EllipticCurvePrivateKey):
            point = self.key.public_key().public_numbers()
            x, y = (b64(number.to_bytes(32, "big")) for number in (point.x, point.y))
            return {"kty": "EC", "crv": "P-256", "x": x, "y": y}
        numbers = self.key.public_key().public_numbers()
        modulus = numbers.n.to_bytes((numbers.n.bit_length() + 7) // 8, "big")
        return {"kty": "RSA", "n": b64(modulus), "e": b64(numbers.e.to_bytes(3, "big"))}

    def card_key(self, source: KeySource = "policy", kid: str | None = None) -> CardKey:
        """Return the public key as one that a reader holds."""
        return CardKey(kid or self.kid, self.public(), source, None)

    def raw(self, data: bytes, alg: object) -> bytes:
        """Return the JWS signature over a signing input."""
        if isinstance(self.key, ed25519.Ed25519PrivateKey):
            return self.key.sign(data)
        if isinstance(self.key, ec.EllipticCurvePrivateKey):
            r, s = decode_dss_signature(self.key.sign(data, ec.ECDSA(hashes.SHA256())))
            return r.to_bytes(32, "big") + s.to_bytes(32, "big")
        if alg == "PS256":
            return self.key.sign(data, padding.PSS(padding.MGF1(hashes.SHA256()), 32), hashes.SHA256())
        return self.key.sign(data, padding.PKCS1v15(), hashes.SHA256())


@cache
def ed() -> Signer:
    return Signer(ed25519.Ed25519PrivateKey.from_private_bytes(bytes(range(32))), "EdDSA", "ed-1")


@cache
def p256() -> Signer:
    return Signer(ec.derive_private_key(0x1234567890ABCDEF, ec.SECP256R1()), "ES256", "ec-1")


@cache
def rsa2048() -> Signer:
    return Signer(rsa.generate_private_key(65537, 2048), "RS256", "rsa-1")


def entry(
    signer: Signer,
    payload: bytes,
    *,
    header: JsonObject | None = None,
    protected: str | None = None,
    unencoded: bool = False,
) -> JsonObject:
    """Return `{"protected", "signature"}` over a payload; `header` adds to or replaces members of the protected one."""
    stated = {"alg": signer.alg, "kid": signer.kid, "typ": "JOSE", **(header or {})}
    encoded = protected if protected is not None else b64(json.dumps(stated).encode())
    body = payload if unencoded else b64(payload).encode()
    return {"protected": encoded, "signature": b64(signer.raw(encoded.encode() + b"." + body, stated["alg"]))}


def signed(document: JsonObject, *entries: Json) -> Card:
    """Return a card as it is served with these signatures."""
    return read_card(json.dumps({**document, "signatures": list(entries)}, ensure_ascii=False).encode())


def jcs(document: JsonObject) -> bytes:
    """Return the RFC 8785 bytes of a document, by the reference library."""
    return rfc8785.dumps(document)
