"""Cards that SDKs have signed: those kept in `data` (see its README), and one signed here by the installed SDK."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.types import AgentCard
from a2a.utils.signing import ProtectedHeader, create_agent_card_signer
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from google.protobuf.json_format import ParseDict

from a2a_ledger.card import read_card
from a2a_ledger.signature import judge, read_card_keys
from tests.signature.signing import CARD, p256

if TYPE_CHECKING:
    from a2a_ledger.card import Card
    from a2a_ledger.events import JsonObject

DATA = Path(__file__).parent / "data"

# The form that the SDK of each card signs by its own source. None of these payloads says all that the card says of its
# security schemes, so none covers the contract.
KEPT = {
    "a2a-python-0.3.26": "a2a-python-0.3",
    "a2a-python-1.0.3": "a2a-python-1.0",
    "a2a-js-1.0.0-beta.0-object": "a2a-js-1.0.0",
    "a2a-js-1.0.0-beta.0-json": "jcs-without-empty",
    "a2a-js-1.3.0-object": "a2a-js-1.0.1",
    "a2a-js-1.3.0-json": "a2a-python-1.1.4",
}


@pytest.mark.parametrize("name", KEPT)
def test_a_card_signed_by_an_sdk_verifies_under_the_form_of_that_sdk(name: str) -> None:
    keys = read_card_keys((DATA / "key.jwk.json").read_bytes(), source="policy", peer=None)
    raw = (DATA / f"{name}.json").read_bytes()
    told = judge(read_card(raw), keys)
    assert (told.status, told.form, told.proves, told.key) == ("valid", KEPT[name], "signer", "policy")
    assert (told.alg, told.kid, told.covers_contract) == ("ES256", "sdk-test-key", False)
    changed = raw.replace(b"https://agent.example/a2a", b"https://agent.example/a2b")
    assert judge(read_card(changed), keys).status == "invalid"
    assert judge(read_card(raw)).status == "undecidable"


def by_the_sdk(card: JsonObject) -> Card:
    """Return a card as the installed SDK signs and serves it."""
    pem = p256().key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    header: ProtectedHeader = {"alg": "ES256", "kid": "ec-1", "typ": "JOSE", "jku": "https://agent.example/jwks.json"}
    signer = create_agent_card_signer(pem, header)
    made = signer(ParseDict(cast("dict[str, object]", json.loads(json.dumps(card))), AgentCard()))
    return read_card(json.dumps(agent_card_to_dict(made), ensure_ascii=False).encode())


def test_a_card_of_the_installed_sdk_verifies_and_covers_its_contract() -> None:
    card = by_the_sdk({**CARD, "name": "Ünïcode 😀"})
    told = judge(card, [p256().card_key()])
    # Nothing of this card is empty, so what the SDK signs is the card itself.
    assert (told.status, told.form, told.covers_contract) == ("valid", "jcs", True)


def test_the_same_card_with_something_empty_is_signed_in_the_form_of_the_sdk() -> None:
    told = judge(by_the_sdk({**CARD, "documentationUrl": ""}), [p256().card_key()])
    assert (told.status, told.form, told.covers_contract) == ("valid", "a2a-python-1.1.4", True)


def test_a_hybrid_that_the_sdk_serves_verifies_from_its_1_0_half() -> None:
    interfaces: JsonObject = {
        "supportedInterfaces": [
            {"url": "https://agent.example/a2a", "protocolBinding": "JSONRPC", "protocolVersion": version}
            for version in ("1.0", "0.3")
        ]
    }
    card = by_the_sdk({**CARD, **interfaces})
    assert card.dialect == "hybrid"
    told = judge(card, [p256().card_key()])
    # The members of 0.3 were added after signing; they say the same, so the contract is the one that was signed.
    assert (told.status, told.form, told.covers_contract) == ("valid", "a2a-1.0", True)
