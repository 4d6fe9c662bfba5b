"""Key events of a stranger's bundle: whatever stands in them, reading them never raises and trusts nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from a2a_ledger.signature.peer_keys import key_of
from a2a_ledger.verify.card_signatures import key_contradiction
from tests.signature_keys.signing import (
    ED25519_KEY,
    ED25519_SECRET,
    ED25519_THUMBPRINT,
    PEER,
    RSA_KEY,
    RSA_THUMBPRINT,
)

if TYPE_CHECKING:
    from a2a_ledger.events import JsonObject

TEXTS = st.sampled_from(["", "kty", "OKP", "EC", "RSA", "Ed25519", "P-256", "x", "é", ED25519_THUMBPRINT, PEER])
NAMES = st.sampled_from(["kty", "crv", "x", "y", "n", "e", "d", "kid", "alg", "use", "key_ops", "keys", "peer"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=8,
)
DATA = st.fixed_dictionaries(
    {}, optional={"peer": VALUES, "kid": VALUES, "thumbprint": VALUES, "jwk": VALUES | st.just(dict(ED25519_KEY))}
)


@given(DATA)
def test_nothing_but_a_whole_key_under_its_own_name_is_one(data: JsonObject) -> None:
    key = key_of(data)
    assert isinstance(key_contradiction(data), str)
    if key is not None:
        assert (data["jwk"], data["thumbprint"], data["kid"]) == (ED25519_KEY, ED25519_THUMBPRINT, ED25519_THUMBPRINT)


def test_a_key_event_is_a_key_only_under_its_own_id_and_thumbprint_and_without_secrets() -> None:
    data: JsonObject = {"peer": PEER, "kid": "2011-04-29", "thumbprint": RSA_THUMBPRINT, "jwk": RSA_KEY}
    key = key_of(data)
    assert key is not None
    assert (key.kid, key.source, key.peer) == ("2011-04-29", "ledger", PEER)
    secret: JsonObject = {"peer": PEER, "kid": ED25519_THUMBPRINT, "thumbprint": ED25519_THUMBPRINT}
    wrongs: list[JsonObject] = [
        {**data, "kid": "2011"},
        {**data, "thumbprint": ED25519_THUMBPRINT},
        {**data, "jwk": {"keys": [RSA_KEY, ED25519_KEY]}},
        {**secret, "jwk": {**ED25519_KEY, "d": ED25519_SECRET}},
    ]
    for wrong in wrongs:
        assert key_of(wrong) is None
