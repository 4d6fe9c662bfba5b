"""Keys and card signatures made by a2a-sdk and PyJWT: not by the implementation that judges them."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from a2a.utils.signing import ProtectedHeader, create_agent_card_signer
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from google.protobuf.json_format import MessageToJson
from jwt.algorithms import ECAlgorithm

from a2a_ledger.address import peer_id

if TYPE_CHECKING:
    from a2a_ledger.events import JsonObject

VENDOR = "https://vendor.example/.well-known/agent-card.json"
OTHER = "https://other.example/.well-known/agent-card.json"
PEER = peer_id(VENDOR)
JKU = "https://vendor.example/keys.jwks"
"""Where the signatures say that the key lies: nobody may look there."""

RSA_KEY: JsonObject = {
    "kty": "RSA",
    "n": (
        "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3"
        "oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdA"
        "ZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-"
        "kEgU8awapJzKnqDKgw"
    ),
    "e": "AQAB",
    "alg": "RS256",
    "kid": "2011-04-29",
}
"""RFC 7638 section 3.1."""
RSA_THUMBPRINT = "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"

ED25519_KEY: JsonObject = {"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}
"""RFC 8037 appendix A.2."""
ED25519_THUMBPRINT = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
ED25519_SECRET = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"
"""RFC 8037 appendix A.1: the private half, which everybody knows."""


class CardSigner:
    """A vendor's ES256 key, and the a2a-sdk signing with it."""

    def __init__(self, kid: str) -> None:
        self.kid = kid
        self._key = ec.generate_private_key(ec.SECP256R1())

    @property
    def jwk(self) -> dict[str, Any]:
        """Return the public half, RFC 7517, as PyJWT writes it."""
        return {**ECAlgorithm.to_jwk(self._key.public_key(), as_dict=True), "kid": self.kid, "alg": "ES256"}

    @property
    def private_jwk(self) -> dict[str, Any]:
        """Return both halves."""
        return {**ECAlgorithm.to_jwk(self._key, as_dict=True), "kid": self.kid}

    @property
    def data(self) -> bytes:
        """Return the public half as the bytes of a file."""
        return json.dumps(self.jwk).encode()

    def sign(self, card: AgentCard) -> None:
        """Put this key's signature, and no other, on a card."""
        del card.signatures[:]
        pem = self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        header: ProtectedHeader = {"kid": self.kid, "alg": "ES256", "jku": JKU, "typ": "JOSE"}
        create_agent_card_signer(pem, header)(card)

    def signed(self, **changes: str) -> bytes:
        """Return the bytes of a small signed card."""
        card = small_card(**changes)
        self.sign(card)
        return served(card)


def small_card(*, description: str = "Says it back", url: str = "https://vendor.example/a2a") -> AgentCard:
    """Return a card of A2A 1.0."""
    return AgentCard(
        name="Echo",
        description=description,
        version="1.0.0",
        supported_interfaces=[AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="1.0")],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="echo", name="echo", description="echo", tags=["echo"])],
    )


def served(card: AgentCard) -> bytes:
    """Return a card's bytes."""
    return MessageToJson(card).encode()


def policy_line(url: str, jwk: JsonObject) -> str:
    """Write a line of a policy file, RFC 4648 section 5 without padding."""
    text = base64.urlsafe_b64encode(json.dumps(jwk).encode()).decode().rstrip("=")
    return f"# a2a-ledger: card {url} {text}\n"
