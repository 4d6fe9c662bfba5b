"""Keys that cards are signed with: read, checked, named. Known answers from RFC 7638, RFC 8037 and SEC 1."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from a2a_ledger.card import peer_id
from a2a_ledger.errors import FormatError
from a2a_ledger.signature import CardKey, keys_for, read_card_keys, thumbprint
from tests.signature.signing import b64, ed, p256, rsa2048

if TYPE_CHECKING:
    from a2a_ledger.events import JsonObject

# RFC 7638 section 3.1.
RFC_7638_KEY: JsonObject = {
    "kty": "RSA",
    "n": (
        "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3o"
        "knjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZH"
        "zu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEg"
        "U8awapJzKnqDKgw"
    ),
    "e": "AQAB",
    "alg": "RS256",
    "kid": "2011-04-29",
}
# RFC 8037 appendix A.2 and A.3.
RFC_8037_KEY: JsonObject = {"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}


def read(*entries: JsonObject, peer: str | None = None) -> tuple[CardKey, ...]:
    return read_card_keys(json.dumps({"keys": list(entries)}).encode(), source="policy", peer=peer)


def test_thumbprints_are_those_of_the_standards() -> None:
    assert thumbprint(RFC_7638_KEY) == "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"
    assert thumbprint(RFC_8037_KEY) == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"


@pytest.mark.parametrize("jwk", [{}, {"kty": "RSA", "n": "AA"}, {"kty": 1}, {"kty": "oct", "k": "AA"}])
def test_a_thumbprint_needs_its_members(jwk: JsonObject) -> None:
    with pytest.raises(FormatError, match="thumbprint"):
        thumbprint(jwk)


def test_a_single_key_and_a_set_read_alike() -> None:
    alone = read_card_keys(json.dumps(RFC_7638_KEY).encode(), source="ledger", peer="p")
    assert alone == (CardKey("2011-04-29", RFC_7638_KEY, "ledger", "p"),)
    assert read_card_keys(json.dumps({"keys": [RFC_7638_KEY]}).encode(), source="ledger", peer="p") == alone


def test_a_key_without_an_id_is_named_by_its_thumbprint() -> None:
    assert read(RFC_8037_KEY)[0].kid == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"


def test_only_what_a_verifier_needs_is_kept() -> None:
    stated: JsonObject = {
        **RFC_8037_KEY,
        "use": "sig",
        "key_ops": ["verify"],
        "x5c": ["MII…"],
        "note": "ours",
        "kid": "a",
    }
    assert read(stated)[0].jwk == {**RFC_8037_KEY, "kid": "a"}


def test_order_is_kept_and_exact_repeats_are_dropped() -> None:
    first, second = ({**signer.public(), "kid": signer.kid} for signer in (p256(), ed()))
    assert [key.kid for key in read(first, second, first)] == ["ec-1", "ed-1"]


def test_a_key_may_name_its_peer() -> None:
    url = "https://agent.example/.well-known/agent-card.json"
    (own,) = read({**RFC_8037_KEY, "peer": url})
    assert own.peer == peer_id(url)
    (given,) = read(RFC_8037_KEY, peer="0" * 32)
    assert given.peer == "0" * 32
    (anybody,) = read(RFC_8037_KEY)
    assert keys_for((own, given, anybody), peer_id(url)) == (own, anybody)
    assert keys_for((own, given, anybody), None) == (anybody,)


SMALL_ORDER = b64(b"\x01" + bytes(31))  # y = 1, the neutral point, RFC 8032 section 5.1
NOT_REDUCED = b64(b"\xff" * 31 + b"\x7f")
# x and y of the base point of P-256 (SEC 2 section 2.4.2), y changed by one.
BASE_X = int("6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296", 16)
BASE_Y = int("4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5", 16)


def point(x: int, y: int) -> JsonObject:
    return {"kty": "EC", "crv": "P-256", "x": b64(x.to_bytes(32, "big")), "y": b64(y.to_bytes(32, "big"))}


def modulus(bits: int) -> str:
    return b64(((1 << bits) - 1).to_bytes(bits // 8, "big"))


def test_the_base_point_of_p_256_is_on_the_curve() -> None:
    assert read(point(BASE_X, BASE_Y))[0].jwk["crv"] == "P-256"


REFUSED: dict[str, tuple[JsonObject, str]] = {
    "private Ed25519": ({**RFC_8037_KEY, "d": "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"}, "secret key"),
    "private RSA": ({**RFC_7638_KEY, "p": "AQ"}, "secret key"),
    "symmetric": ({"kty": "oct", "k": "c2VjcmV0"}, "secret key"),
    "symmetric without its bytes": ({"kty": "oct"}, "secret key"),
    "for encryption": ({**RFC_8037_KEY, "use": "enc"}, "not for signatures"),
    "not for verifying": ({**RFC_8037_KEY, "key_ops": ["sign"]}, "not for verifying"),
    "no type": ({"x": "AA"}, "found none with crv none"),
    "P-384": ({"kty": "EC", "crv": "P-384", "x": "AA", "y": "AA"}, "found 'EC' with crv 'P-384'"),
    "secp256k1": ({"kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA"}, "'secp256k1'"),
    "Ed448": ({"kty": "OKP", "crv": "Ed448", "x": "AA"}, "'Ed448'"),
    "X25519": ({"kty": "OKP", "crv": "X25519", "x": "AA"}, "'X25519'"),
    "off the curve": (point(BASE_X, BASE_Y + 1), "not on the curve P-256"),
    "the origin": (point(0, 0), "not on the curve P-256"),
    "a coordinate beyond the field": (point(2**256 - 1, BASE_Y), "not on the curve P-256"),
    "a short coordinate": ({**point(BASE_X, BASE_Y), "y": "AQ"}, "32 bytes, found 32 and 1"),
    "small order": ({**RFC_8037_KEY, "x": SMALL_ORDER}, "small order"),
    "not canonical": ({**RFC_8037_KEY, "x": NOT_REDUCED}, "not canonical"),
    "33 bytes": ({**RFC_8037_KEY, "x": b64(bytes(33))}, "32 bytes, found 33"),
    "RSA of 1024 bits": ({"kty": "RSA", "n": modulus(1024), "e": "AQAB"}, "2048 to 8192 bits, found 1024"),
    "RSA of 16384 bits": ({"kty": "RSA", "n": modulus(16384), "e": "AQAB"}, "found 16384"),
    "exponent one": ({"kty": "RSA", "n": modulus(2048), "e": "AQ"}, "above 2"),
    "even exponent": ({"kty": "RSA", "n": modulus(2048), "e": "BA"}, "odd"),
    "a huge exponent": ({"kty": "RSA", "n": modulus(2048), "e": b64(b"\x01" * 256)}, "below 2"),
    "leading zero": ({"kty": "RSA", "n": b64(bytes(1) + b"\xff" * 256), "e": "AQAB"}, "zero byte"),
    "padding": ({**RFC_8037_KEY, "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo="}, "base64url"),
    "stray bits": ({**RFC_8037_KEY, "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURp"}, "base64url"),
    "a number for text": ({**RFC_8037_KEY, "x": 5}, "another type"),
    "missing part": ({"kty": "OKP", "crv": "Ed25519"}, "found nothing"),
    "another key's algorithm": ({**RFC_8037_KEY, "alg": "ES256"}, "one of EdDSA, Ed25519"),
    "HMAC": ({**RFC_7638_KEY, "alg": "HS256"}, "one of PS256, RS256"),
    "an empty id": ({**RFC_8037_KEY, "kid": ""}, "`kid` is a text"),
    "a number as id": ({**RFC_8037_KEY, "kid": 7}, "`kid` is a text"),
    "a peer that is no url": ({**RFC_8037_KEY, "peer": "agent.example"}, "url of the public card"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_key_under_which_a_signature_proves_nothing_is_refused(name: str) -> None:
    entry, sentence = REFUSED[name]
    with pytest.raises(FormatError, match="key 2 of 2") as caught:
        read(RFC_8037_KEY, entry)
    assert sentence in str(caught.value)


def test_a_key_for_another_peer_than_the_one_it_is_given_for_is_refused() -> None:
    with pytest.raises(FormatError, match="another peer"):
        read({**RFC_8037_KEY, "peer": "https://agent.example/"}, peer="0" * 32)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "found"),
        (b"[]", "JSON that is no object"),
        (b'{"keys": []}', "found none"),
        (b'{"keys": {}}', "found none"),
        (b'{"keys": [1]}', "key 1 of 1: a JWK is a JSON object"),
        (b'{"kty": "OKP", "kty": "RSA"}', "twice"),
        (b"\xff", "UTF-8"),
        (b" " * (1024 * 1024 + 1), "at most"),
    ],
)
def test_a_file_that_is_no_set_of_keys_says_so(data: bytes, sentence: str) -> None:
    with pytest.raises(FormatError, match=sentence):
        read_card_keys(data, source="policy", peer=None)


def test_real_keys_of_every_kind_are_taken() -> None:
    for signer in (ed(), p256(), rsa2048()):
        assert read(signer.public())[0].jwk == signer.public()
    other = ec.generate_private_key(ec.SECP256R1()).public_key().public_numbers()
    assert read(point(other.x, other.y))[0].source == "policy"
    three = rsa.generate_private_key(3, 2048).public_key().public_numbers()
    assert read({"kty": "RSA", "n": b64(three.n.to_bytes(256, "big")), "e": "Aw"})
