"""Keys that a file or a policy gives to peers: each speaks for one, none is private, none is ambiguous."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.address import peer_id, typed_card_url
from a2a_ledger.errors import FormatError
from a2a_ledger.policy import parse_policy
from a2a_ledger.signature import thumbprint
from a2a_ledger.signature.peer_keys import read_peer_keys
from tests.signature_keys.signing import (
    ED25519_KEY,
    ED25519_SECRET,
    ED25519_THUMBPRINT,
    OTHER,
    RSA_KEY,
    RSA_THUMBPRINT,
    VENDOR,
    CardSigner,
    policy_line,
)

if TYPE_CHECKING:
    from a2a_ledger.events import JsonObject

NOTHING_ELSE = "quorum none\n"


def key_set(*keys: JsonObject) -> bytes:
    return json.dumps({"keys": list(keys)}).encode()


@pytest.mark.parametrize(
    ("typed", "url"),
    [
        ("https://Vendor.Example", VENDOR),
        ("https://vendor.example/", VENDOR),
        ("https://vendor.example:443/.well-known/agent-card.json", VENDOR),
        ("https://vendor.example/.well-known/agent.json", VENDOR),
        ("https://user:secret@vendor.example/?x=1#y", VENDOR),
        ("http://127.0.0.1:9/agents/7/agent-card.json", "http://127.0.0.1:9/agents/7/agent-card.json"),
        ("https://vendor.example/Agents/", "https://vendor.example/Agents/"),
        ("vendor.example", None),
        ("ftp://vendor.example/card", None),
        ("https://", None),
        ("", None),
    ],
)
def test_what_a_person_types_for_a_peer(typed: str, url: str | None) -> None:
    assert typed_card_url(typed) == url


def test_keys_of_a_file_speak_for_the_peer_that_each_names() -> None:
    rsa, ed = read_peer_keys(key_set({**RSA_KEY, "peer": VENDOR}, {**ED25519_KEY, "peer": "https://other.example"}))
    assert (rsa.peer, rsa.kid, thumbprint(rsa.jwk)) == (peer_id(VENDOR), "2011-04-29", RSA_THUMBPRINT)
    assert (ed.peer, ed.kid, thumbprint(ed.jwk)) == (peer_id(OTHER), ED25519_THUMBPRINT, ED25519_THUMBPRINT)
    assert {rsa.source, ed.source} == {"policy"}


def test_one_key_id_may_stand_for_keys_of_two_peers() -> None:
    one, other = CardSigner("k1"), CardSigner("k1")
    keys = read_peer_keys(key_set({**one.jwk, "peer": VENDOR}, {**other.jwk, "peer": OTHER}))
    assert [key.peer for key in keys] == [peer_id(VENDOR), peer_id(OTHER)]


def test_one_key_id_for_two_keys_of_a_peer_is_refused_with_both_thumbprints() -> None:
    one, other = CardSigner("k1"), CardSigner("k1")
    with pytest.raises(FormatError) as refused:
        read_peer_keys(key_set({**one.jwk, "peer": VENDOR}, {**other.jwk, "peer": VENDOR}))
    assert thumbprint(one.jwk) in str(refused.value)
    assert thumbprint(other.jwk) in str(refused.value)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"{", "expected a JWK or JWKS"),
        (b'{"keys": []}', "expected a list of keys"),
        (key_set(RSA_KEY), "key 1 of 1: expected the member `peer`"),
        (key_set({**RSA_KEY, "peer": VENDOR}, ED25519_KEY), "key 2 of 2: expected the member `peer`"),
        (key_set({**RSA_KEY, "peer": "vendor.example"}), "`peer` is the http"),
        (key_set({**RSA_KEY, "peer": 7}), "`peer` is the http"),
        (key_set({**ED25519_KEY, "peer": VENDOR, "d": ED25519_SECRET}), "secret key"),
        (key_set({"kty": "oct", "k": ED25519_SECRET, "peer": VENDOR}), "secret key"),
    ],
)
def test_what_is_no_file_of_keys(data: bytes, reason: str) -> None:
    with pytest.raises(FormatError, match=reason) as refused:
        read_peer_keys(data)
    assert ED25519_SECRET not in str(refused.value)


def test_a_policy_names_keys_of_peers() -> None:
    policy = parse_policy(NOTHING_ELSE + policy_line("https://vendor.example", RSA_KEY) + policy_line(OTHER, RSA_KEY))
    assert [(card.url, card.key.peer, thumbprint(card.key.jwk)) for card in policy.cards] == [
        (VENDOR, peer_id(VENDOR), RSA_THUMBPRINT),
        (OTHER, peer_id(OTHER), RSA_THUMBPRINT),
    ]
    assert policy.trusted == {}
    assert parse_policy(str(policy)) == policy


def test_a_policy_without_such_lines_trusts_no_key_for_any_card() -> None:
    assert parse_policy(NOTHING_ELSE).cards == ()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (f"# a2a-ledger: card {VENDOR}\n", "base64url of a JWK"),
        (policy_line("vendor.example", RSA_KEY), "expected the http"),
        (f"# a2a-ledger: card {VENDOR} e30=\n", "without padding"),
        (f"# a2a-ledger: card {VENDOR} e30\n", "found none with crv none"),
        (policy_line(VENDOR, {**RSA_KEY, "peer": OTHER}), "another peer than the one it is given for"),
        (policy_line(VENDOR, RSA_KEY) * 2, "is given twice"),
        (policy_line(VENDOR, RSA_KEY) + policy_line(VENDOR, {**ED25519_KEY, "kid": "2011-04-29"}), RSA_THUMBPRINT),
        (policy_line(VENDOR, {**ED25519_KEY, "d": ED25519_SECRET}), "secret key"),
    ],
)
def test_what_is_no_line_about_a_card_key(line: str, reason: str) -> None:
    with pytest.raises(FormatError, match=rf"policy line [23]: .*{reason}") as refused:
        parse_policy(NOTHING_ELSE + line)
    assert ED25519_SECRET not in str(refused.value)


def test_a_private_key_in_a_policy_is_not_repeated_in_the_error() -> None:
    line = policy_line(VENDOR, {**ED25519_KEY, "d": ED25519_SECRET})
    encoded = line.split()[-1]
    for broken in (line, line.replace(encoded, encoded + "="), line.replace(encoded, encoded + " more")):
        with pytest.raises(FormatError) as refused:
            parse_policy(NOTHING_ELSE + broken)
        assert encoded[:20] not in str(refused.value)
        assert ED25519_SECRET[:20] not in str(refused.value)
