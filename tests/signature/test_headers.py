"""Headers of signatures, honest and hostile: what each one leads to, with the reason that is given."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.signature import judge
from tests.signature.signing import CARD, b64, ed, entry, jcs, p256, rsa2048, signed

if TYPE_CHECKING:
    from a2a_ledger.events import Json, JsonObject
    from tests.signature.signing import Signer

PAYLOAD = jcs(CARD)


def status(one: JsonObject, signer: Signer) -> tuple[str, str]:
    told = judge(signed(CARD, one), [signer.card_key()])
    return told.status, told.reason or ""


@pytest.mark.parametrize("alg", ["EdDSA", "Ed25519", "ES256", "PS256", "RS256"])
def test_each_algorithm_of_the_list_is_taken(alg: str) -> None:
    signers = {"EdDSA": ed(), "Ed25519": ed(), "ES256": p256(), "PS256": rsa2048(), "RS256": rsa2048()}
    signer = signers[alg]
    told = judge(signed(CARD, entry(signer, PAYLOAD, header={"alg": alg})), [signer.card_key()])
    assert (told.status, told.alg, told.form, told.covers_contract) == ("valid", alg, "jcs", True)
    assert told.proves == "signer"


HONEST: dict[str, JsonObject] = {
    "nothing but what is needed": {"typ": None},
    "a type": {"typ": "JOSE"},
    "a place of the key that is not looked at": {
        "jku": "https://agent.example/jwks.json",
        "x5u": "https://a.example/c",
    },
    "members of the signer's own": {"iat": 1, "spiffe_id": "spiffe://agent.example/a"},
    "a certificate chain that is not looked at": {"x5c": ["MII" * 200]},
    "a payload that is said to be encoded": {"b64": True, "crit": ["b64"]},
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_headers_are_taken(name: str) -> None:
    assert status(entry(p256(), PAYLOAD, header=HONEST[name]), p256())[0] == "valid"


def test_an_unencoded_payload_is_understood() -> None:
    # RFC 7797: the payload stands in the signing input as it is.
    one = entry(ed(), PAYLOAD, header={"b64": False, "crit": ["b64"]}, unencoded=True)
    assert status(one, ed())[0] == "valid"
    encoded = entry(ed(), PAYLOAD, header={"b64": False, "crit": ["b64"]})
    assert status(encoded, ed())[0] == "invalid"


def test_an_unprotected_header_may_add_and_may_repeat_the_key_id() -> None:
    harmless: list[Json] = [{"note": "x"}, {"kid": "ec-1"}, {}, None]
    for beside in harmless:
        one: JsonObject = {**entry(p256(), PAYLOAD), "header": beside}
        assert status(one, p256())[0] == "valid"


def test_the_key_id_may_stand_beside_the_protected_header() -> None:
    bare = b64(json.dumps({"alg": "ES256"}).encode())
    one: JsonObject = {**entry(p256(), PAYLOAD, protected=bare), "header": {"kid": "ec-1"}}
    told = judge(signed(CARD, one), [p256().card_key()])
    assert (told.status, told.kid) == ("valid", "ec-1")


NAMED: dict[str, tuple[JsonObject, str]] = {
    "no algorithm at all": ({"alg": None}, "names no algorithm"),
    "a number": ({"alg": 5}, "names no algorithm"),
    "none": ({"alg": "none"}, "'none', which anybody can make"),
    "none in capitals": ({"alg": "NONE"}, "which anybody can make"),
    "HMAC": ({"alg": "HS256"}, "'HS256', which anybody can make"),
    "another key's algorithm": ({"alg": "RS256"}, "the key that it names is of type EC"),
    "critical without a list": ({"crit": "b64"}, "not a list of distinct names"),
    "critical and empty": ({"crit": []}, "not a list of distinct names"),
    "critical null": ({"crit": None}, "not a list of distinct names"),
    "critical twice": ({"crit": ["b64", "b64"], "b64": True}, "not a list of distinct names"),
    "critical with a number": ({"crit": [1]}, "not a list of distinct names"),
    "critical and not stated": ({"crit": ["exp"]}, "`crit` names 'exp'"),
    "critical and of the standard": ({"crit": ["alg"]}, "`crit` names 'alg'"),
    "b64 alone": ({"b64": False}, "stands in no `crit`"),
    "b64 as text": ({"b64": "false", "crit": ["b64"]}, "neither true nor false"),
}


@pytest.mark.parametrize("name", NAMED)
def test_a_header_that_every_reader_rejects_is_invalid_under_the_key_it_names(name: str) -> None:
    header, sentence = NAMED[name]
    found, reason = status(entry(p256(), PAYLOAD, header=header), p256())
    assert (found, sentence in reason) == ("invalid", True), reason


@pytest.mark.parametrize("name", NAMED)
def test_the_same_header_without_the_key_is_undecidable(name: str) -> None:
    assert status(entry(p256(), PAYLOAD, header=NAMED[name][0]), ed())[0] == "undecidable"


BEYOND: dict[str, tuple[JsonObject, str]] = {
    "ES384": ({"alg": "ES384"}, "understood are EdDSA, Ed25519, ES256, PS256, RS256"),
    "ES256K": ({"alg": "ES256K"}, "understood are"),
    "Ed448": ({"alg": "Ed448"}, "understood are"),
    "ML-DSA": ({"alg": "ML-DSA-44"}, "understood are"),
    "a foreign demand": ({"crit": ["exp"], "exp": 1}, "`crit` demands 'exp'"),
    "a foreign demand beside a known one": ({"crit": ["b64", "exp"], "exp": 1, "b64": True}, "demands 'exp'"),
}


@pytest.mark.parametrize("name", BEYOND)
def test_what_only_another_reader_can_judge_is_undecidable(name: str) -> None:
    header, sentence = BEYOND[name]
    found, reason = status(entry(p256(), PAYLOAD, header=header), p256())
    assert (found, sentence in reason) == ("undecidable", True), reason


UNREADABLE: dict[str, tuple[str, str]] = {
    "empty": ("", "not a JSON object"),
    "not base64url": ("{}", "not base64url"),
    "padded": (b64(b'{"alg":"ES256","kid":"ec-1"}') + "=", "not base64url"),
    "not JSON": (b64(b"alg"), "not a JSON object"),
    "a list": (b64(b"[]"), "not a JSON object"),
    "a byte order mark": (b64(b'\xef\xbb\xbf{"alg":"ES256","kid":"ec-1"}'), "not a JSON object"),
    "not UTF-8": (b64(b'{"alg":"\xff"}'), "not a JSON object"),
    "the algorithm twice": (b64(b'{"alg":"none","alg":"ES256","kid":"ec-1"}'), "twice"),
    "the key twice, once escaped": (b64(b'{"alg":"ES256","kid":"a","\\u006bid":"ec-1"}'), "twice"),
    "deep": (b64(b'{"alg":' + b"[" * 100 + b"]" * 100 + b"}"), "not a JSON object"),
    "huge": (b64(json.dumps({"alg": "ES256", "kid": "ec-1", "pad": "x" * 20000}).encode()), "more than"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_protected_header_that_cannot_be_read_names_no_key_and_is_undecidable(name: str) -> None:
    protected, sentence = UNREADABLE[name]
    found, reason = status(entry(p256(), PAYLOAD, protected=protected), p256())
    assert (found, sentence in reason) == ("undecidable", True), reason


BESIDE: dict[str, tuple[Json, str]] = {
    "another key": ({"kid": "other"}, "states 'kid' too"),
    "the algorithm again": ({"alg": "ES256"}, "states 'alg' too"),
    "the type again": ({"typ": "JOSE"}, "states 'typ' too"),
    "a demand": ({"crit": ["exp"], "exp": 1}, "which only a protected one may"),
    "an encoding": ({"b64": False}, "which only a protected one may"),
    "a key": ({"jwk": {"kty": "OKP"}}, "which only a protected one may"),
    "a list": ([], "not a JSON object"),
    "a text": ("kid", "not a JSON object"),
}


@pytest.mark.parametrize("name", BESIDE)
def test_the_unprotected_header_never_overrides_the_protected_one(name: str) -> None:
    beside, sentence = BESIDE[name]
    one: JsonObject = {**entry(p256(), PAYLOAD), "header": beside}
    found, reason = status(one, p256())
    assert (found, sentence in reason) == ("invalid", True), reason


SIGNATURES: dict[str, tuple[str, str]] = {
    "empty": ("", "not base64url"),
    "padded": ("AAAA=", "not base64url"),
    "of the other alphabet": ("+/+/", "not base64url"),
    "stray bits": ("AB", "not base64url"),
    "beyond ASCII": ("ÄÄÄÄ", "not base64url"),
    "huge": ("A" * 4000, "more than 2048"),
    "short": ("AAAA", "none of the"),
    "of zeros": (b64(bytes(64)), "none of the"),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_signature_that_is_none_is_invalid_under_the_key_it_names(name: str) -> None:
    text, sentence = SIGNATURES[name]
    found, reason = status({**entry(p256(), PAYLOAD), "signature": text}, p256())
    assert (found, sentence in reason) == ("invalid", True), reason


def test_another_key_id_than_that_of_the_key_at_hand_is_undecidable() -> None:
    told = judge(signed(CARD, entry(p256(), PAYLOAD)), [p256().card_key(kid="other")])
    assert told.status == "undecidable"
    assert told.reason == "it names key 'ec-1', none of the 1 given is that one, and the card holds none"


def test_a_key_may_be_named_by_its_thumbprint() -> None:
    # RFC 7638, computed here by hand.
    import hashlib  # noqa: PLC0415 - for this test alone

    public = p256().public()
    name = b64(hashlib.sha256(json.dumps(public, sort_keys=True, separators=(",", ":")).encode()).digest())
    told = judge(signed(CARD, entry(p256(), PAYLOAD, header={"kid": name})), [p256().card_key()])
    assert told.status == "valid"


def test_without_a_key_id_a_fitting_key_proves_and_another_one_disproves_nothing() -> None:
    one = entry(p256(), PAYLOAD, protected=b64(b'{"alg":"ES256"}'))
    assert status(one, p256())[0] == "valid"
    found, reason = status(one, ed())
    assert found == "undecidable"
    assert "names no key" in reason


def test_a_key_for_one_algorithm_is_not_used_for_another() -> None:
    signer = rsa2048()
    bound = signer.card_key()
    one = entry(signer, PAYLOAD, header={"alg": "RS256"})
    assert judge(signed(CARD, one), [bound]).status == "valid"
    bound.jwk["alg"] = "PS256"
    told = judge(signed(CARD, one), [bound])
    assert (told.status, told.reason) == ("invalid", "`alg` is 'RS256', and the key that it names is for PS256 only")
