"""Judging whole cards: real ones, several signatures, keys inside the card, what a signature covers, and the bounds."""

from __future__ import annotations

import base64
import copy
import json
import time
from typing import TYPE_CHECKING, cast

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from a2a_ledger.card import read_card
from a2a_ledger.signature import FORMS, CardKey, Judgement, judge
from a2a_ledger.signature.judgement import of_other_octets
from tests.signature.signing import CARD, b64, ed, entry, jcs, p256, rsa2048, signed

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.contract.card_json import CardObject
    from a2a_ledger.events import Json, JsonObject

PAYLOAD = jcs(CARD)


def real(corpus: Path, name: str) -> bytes:
    return (corpus / "corpus" / "cards" / f"{name}.json").read_bytes()


def test_real_cards_signed_by_a_key_of_their_own_are_whole(corpus: Path) -> None:
    for name in ("055b", "056b"):
        assert judge(read_card(real(corpus, name))) == Judgement(
            "valid",
            kid="anchor-card-2026-01",
            form="jcs",
            covers_contract=True,
            alg="ES256",
            key="card",
            proves="integrity",
            reason="the key lies inside the card: this shows that the card is whole, not who signed it",
        )


def leaves(value: Json, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    if isinstance(value, dict):
        return [leaf for name, inner in value.items() for leaf in leaves(inner, (*path, name))] or [path]
    if isinstance(value, list):
        return [leaf for number, inner in enumerate(value) for leaf in leaves(inner, (*path, number))] or [path]
    return [path]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["055b", "056b"])
def test_one_change_anywhere_in_a_real_signed_card_fails(corpus: Path, name: str) -> None:
    document = cast("JsonObject", json.loads(real(corpus, name)))
    paths = leaves(document)
    assert len(paths) > 200
    for path in [*paths[::6], *paths[-8:]]:
        changed = copy.deepcopy(document)
        holder: Json = changed
        for step in path[:-1]:
            holder = cast("dict[str | int, Json]", holder)[step]
        place = cast("dict[str | int, Json]", holder)
        old = place[path[-1]]
        place[path[-1]] = old[:-1] + ("A" if old[-1:] != "A" else "B") if isinstance(old, str) else [old]
        assert judge(read_card(json.dumps(changed).encode())).status != "valid", path


def test_one_changed_byte_of_a_small_signed_card_is_invalid_or_no_card() -> None:
    raw = signed(CARD, entry(p256(), PAYLOAD)).raw
    keys = [p256().card_key()]
    for at in range(0, len(raw), 3):
        told = judge(read_card(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]), keys)
        assert told.status != "valid", raw[max(0, at - 20) : at + 20]


def test_a_real_card_whose_key_is_elsewhere_is_undecidable_and_never_tampered(corpus: Path) -> None:
    for name in ("003", "004", "161", "162"):
        told = judge(read_card(real(corpus, name)))
        assert (told.status, told.kid, told.alg, told.key) == ("undecidable", "key-1", "ES256", None)
        assert told.reason == (
            "it names key 'key-1', no key was given, and the card holds none; it points to "
            "'https://example.com/agent/jwks.json', which is never fetched"
        )


def test_real_cards_without_signatures_are_absent(corpus: Path) -> None:
    for name in ("002", "071a", "054a", "055a"):
        assert judge(read_card(real(corpus, name))) == Judgement("absent")


SHAPES: dict[str, tuple[JsonObject, str]] = {
    "compact with payload": ({"signatures": ["e30.e30.AAAA"]}, "shape: a text (a compact JWS with its payload)"),
    "compact detached": ({"signatures": ["e30..AAAA"]}, "shape: a text (a compact JWS with a detached payload)"),
    "one compact text": ({"signatures": "e30..AAAA"}, "shape: a text (a compact JWS with a detached payload)"),
    "a text": ({"signatures": ["signed by me"]}, "shape: a text that is no JWS"),
    "a number": ({"signatures": [1]}, "shape: a int where A2A has an object"),
    "wrapped": (
        {"signatures": [{"algorithm": "EdDSA", "keyId": "k", "jws": "e30..AAAA"}]},
        "shape: an object with a compact JWS with a detached payload in `jws`",
    ),
    "own payload": (
        {"signatures": [{"protected": "e30", "payload": "e30", "signature": "AAAA"}]},
        "shape: a JWS that brings a payload of its own",
    ),
    "value": (
        {"signatures": [{"alg": "ed25519", "value": "AAAA"}]},
        "shape: an object with alg, value, not `protected` and `signature`",
    ),
    "empty object": ({"signatures": [{}]}, "shape: an object with no members, not `protected` and `signature`"),
    "signature member": (
        {"signature": {"algorithm": "ed25519", "value": "AA=="}},
        "shape: a member `signature` of the card",
    ),
    "proof": ({"proof": {"type": "DataIntegrityProof"}}, "shape: a member `proof` of the card"),
    "in an extension": (
        {"capabilities": {"extensions": [{"uri": "u", "params": {"jws": {"protected": "e30", "signature": "AA"}}}]}},
        "shape: a JWS inside /capabilities/extensions/0/params/jws",
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_signature_in_another_shape_or_place_is_named_and_undecidable(name: str) -> None:
    extra, reason = SHAPES[name]
    told = judge(read_card(json.dumps({**CARD, **extra}).encode()), [p256().card_key()])
    assert told.status == "undecidable"
    assert told.reason == f"{reason}; what it covers is not known here"


def test_real_cards_with_other_shapes(corpus: Path) -> None:
    told = judge(read_card(real(corpus, "096")))
    assert (told.status, told.kid) == ("undecidable", "fixture-key-a2a-1-2")
    assert told.reason == (
        "shape: an object with a compact JWS with its payload in `jws`; what it covers is not known here"
    )
    told = judge(read_card(real(corpus, "009")))
    assert told.reason == (
        "shape: a JWS inside /capabilities/extensions/0/params/jws; what it covers is not known here"
    )


def test_one_signature_that_is_no_list_is_read_as_one() -> None:
    card = read_card(json.dumps({**CARD, "signatures": entry(p256(), PAYLOAD)}).encode())
    assert judge(card, [p256().card_key()]).status == "valid"


def test_what_is_no_card_has_no_signature() -> None:
    for raw in (b"", b"[]", b"<html>", b"{}", b'{"signatures": [{}]}'):
        assert judge(read_card(raw)) == Judgement("absent")


# Keys inside cards, in the spellings met: each is found, and proves integrity alone.
def spki(pem: bool) -> str:
    public = p256().key.public_key()
    if pem:
        return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    return base64.b64encode(public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).decode()


INSIDE: dict[str, JsonObject] = {
    "DER": {"keys": [{"key_id": "ec-1", "public_key_der_base64": spki(pem=False), "status": "active"}]},
    "PEM": {"verification": {"id": "ec-1", "publicKeyPem": spki(pem=True)}},
    "JWK": {"jwks": {"keys": [{"kid": "other", **ed().public()}, {"kid": "ec-1", **p256().public()}]}},
    "JWK of a DID document": {"verificationMethod": [{"id": "ec-1", "publicKeyJwk": p256().public()}]},
}


@pytest.mark.parametrize("name", INSIDE)
def test_a_key_inside_the_card_proves_integrity_only(name: str) -> None:
    document: JsonObject = {**CARD, "x-keys": INSIDE[name]}
    told = judge(signed(document, entry(p256(), jcs(document))))
    assert (told.status, told.key, told.proves, told.covers_contract) == ("valid", "card", "integrity", True)
    broken = judge(signed({**document, "name": "Other"}, entry(p256(), jcs(document))))
    assert (broken.status, broken.key, broken.proves) == ("invalid", "card", None)


def test_a_key_inside_the_header_proves_integrity_only() -> None:
    told = judge(signed(CARD, entry(p256(), PAYLOAD, header={"jwk": p256().public()})))
    assert (told.status, told.key, told.proves) == ("valid", "card", "integrity")


def test_a_given_key_is_asked_before_one_inside_the_card() -> None:
    document: JsonObject = {**CARD, "x-keys": {"kid": "ec-1", **p256().public()}}
    card = signed(document, entry(p256(), jcs(document)))
    assert judge(card, [p256().card_key("ledger")]).key == "ledger"
    # The card brings a key of its own under the id of a trusted one: the trusted one decides.
    impostor = CardKey("ec-1", rsa2048().public(), "policy", None)
    told = judge(card, [impostor])
    assert (told.status, told.key) == ("invalid", "policy")


@pytest.mark.parametrize(
    "key",
    [
        {"kty": "EC", "crv": "P-256", "x": b64(bytes(32)), "y": b64(bytes(32))},
        {"kty": "OKP", "crv": "Ed25519", "x": b64(b"\x01" + bytes(31))},
        {"kty": "oct", "k": "AAAA"},
        {},
    ],
)
def test_a_key_that_may_not_be_used_decides_nothing(key: JsonObject) -> None:
    card = signed(CARD, entry(p256(), PAYLOAD))
    told = judge(card, [CardKey("ec-1", key, "ledger", None)])
    assert told.status == "undecidable"
    assert (told.reason or "").startswith("the key that it names may not be used: ")
    document: JsonObject = {**CARD, "x-keys": {"kid": "ec-1", **key}}
    assert judge(signed(document, entry(p256(), jcs(document)))).status == "undecidable"


def test_a_small_order_key_cannot_vouch_for_any_card() -> None:
    # Under the neutral point the all-zero scalar with R = neutral point satisfies the plain equation for every text.
    forged = b64(b"\x01" + bytes(31) + bytes(32))
    one: JsonObject = {**entry(ed(), PAYLOAD), "signature": forged}
    key = CardKey("ed-1", {"kty": "OKP", "crv": "Ed25519", "x": b64(b"\x01" + bytes(31))}, "policy", None)
    told = judge(signed(CARD, one), [key])
    assert told.status == "undecidable"
    assert "small order" in (told.reason or "")


def nameless(document: JsonObject) -> JsonObject:
    """Return a signature over a document that names no key."""
    signer = p256()
    header = {"alg": signer.alg, "typ": "JOSE"}
    return entry(signer, jcs(document), protected=b64(json.dumps(header).encode()))


UNRELATED = [ed().card_key(), rsa2048().card_key("ledger")]


@pytest.mark.parametrize("unrelated", [[], UNRELATED[:1], UNRELATED])
def test_a_signature_that_names_no_key_is_as_strong_as_the_one_key_that_fits(unrelated: list[CardKey]) -> None:
    document: JsonObject = {**CARD, "x-keys": {"keys": [{"kid": "ec-1", **p256().public()}]}}
    card = signed(document, nameless(document))
    told = judge(card, unrelated)
    assert (told.status, told.key, told.proves) == ("valid", "card", "integrity")
    told = judge(card, [*unrelated, p256().card_key()])
    assert (told.status, told.key, told.proves) == ("valid", "policy", "signer")
    changed = judge(signed({**document, "name": "Other"}, nameless(document)), unrelated)
    assert (changed.status, changed.key) == ("undecidable", None)
    assert (changed.reason or "").startswith(f"it names no key; each of the {len(unrelated) + 1} tried: ")


# Several signatures. V and I: valid or invalid under a given key; v and i: under one inside the card; u: undecidable.
INSIDE_KEY: JsonObject = {"kid": "ec-1", **p256().public()}
DOCUMENT: JsonObject = {**CARD, "x-keys": INSIDE_KEY}


def one_of(kind: str) -> JsonObject:
    body = jcs(DOCUMENT)
    if kind in "VI":
        return entry(ed(), body if kind == "V" else b"{}")
    if kind in "vi":
        return entry(p256(), body if kind == "v" else b"{}")
    return entry(ed(), body, header={"kid": "unknown"})


@pytest.mark.parametrize(
    ("kinds", "status", "key"),
    [
        ("uivIV", "valid", "policy"),
        ("VI", "valid", "policy"),
        ("uivI", "invalid", "policy"),
        ("vI", "invalid", "policy"),
        ("uiv", "valid", "card"),
        ("vi", "valid", "card"),
        ("ui", "invalid", "card"),
        ("uu", "undecidable", None),
    ],
)
def test_the_strongest_of_several_signatures_stands_for_the_card(kinds: str, status: str, key: str | None) -> None:
    told = judge(signed(DOCUMENT, *(one_of(kind) for kind in kinds)), [ed().card_key()])
    assert (told.status, told.key) == (status, key)
    each = [one.status[0] for one in told.signatures]
    assert each == [kind.lower() for kind in kinds]
    listed = told.to_json()["signatures"]
    assert isinstance(listed, list)
    assert len(listed) == len(kinds)


def test_octets_that_were_not_served_break_no_signature_and_leave_the_others() -> None:
    told = judge(signed(DOCUMENT, one_of("v"), one_of("I")), [ed().card_key()])
    assert told.status == "invalid"
    left = of_other_octets(told, "a library wrote it")
    assert (left.status, left.key, [one.status for one in left.signatures]) == (
        "valid",
        "card",
        ["valid", "undecidable"],
    )
    assert left.signatures[1].reason == "a library wrote it"
    alone = of_other_octets(judge(signed(DOCUMENT, one_of("I")), [ed().card_key()]), "a library wrote it")
    assert alone == Judgement("undecidable", kid="ed-1", alg="EdDSA", reason="a library wrote it")


def test_the_json_of_a_judgement() -> None:
    told = judge(signed(CARD, entry(p256(), PAYLOAD)), [p256().card_key()]).to_json()
    assert told == {
        "status": "valid",
        "kid": "ec-1",
        "form": "jcs",
        "covers_contract": True,
        "alg": "ES256",
        "key": "policy",
        "proves": "signer",
        "reason": "a given key signed this card",
    }
    absent = judge(read_card(json.dumps(CARD).encode())).to_json()
    assert absent.pop("status") == "absent"
    assert set(absent.values()) == {None}


# What a valid signature covers is another question than whether it is valid. Each payload below was signed honestly;
# it covers the contract exactly when a reader of the payload alone would come to the same contract.
BEARER: JsonObject = {"bearer": {"httpAuthSecurityScheme": {"scheme": "bearer"}}}


COVERAGE: dict[str, tuple[JsonObject, str, bool]] = {
    # The whole card was signed, so the contract was.
    "all of it": ({}, "jcs", True),
    # An empty text is no term: the SDK leaves it out of what it signs, and the contract stays the same.
    "an empty text": ({"documentationUrl": ""}, "a2a-python-1.1.4", True),
    # A member that A2A does not know is no term either, and no reader of A2A 1.0 signs it.
    "a foreign member": ({"x-note": "hello"}, "a2a-1.0", True),
    # What is asked for without naming scopes is a term, and the SDK's payload says nothing of it.
    "a requirement": (
        {"securitySchemes": BEARER, "securityRequirements": [{"schemes": {"bearer": {"list": []}}}]},
        "a2a-python-1.1.4",
        False,
    ),
    # A scheme that has nothing to state but itself is a term, and is not in the SDK's payload.
    "a scheme": (
        {"securitySchemes": {"cert": {"mtlsSecurityScheme": {}}}, "securityRequirements": []},
        "a2a-python-1.1.4",
        False,
    ),
}


@pytest.mark.parametrize("name", COVERAGE)
def test_whether_a_signature_covers_the_contract(name: str) -> None:
    change, form, covers = COVERAGE[name]
    document: JsonObject = {**CARD, **change}
    bytes_of = next(one.bytes_of for one in FORMS if one.name == form)
    payload = bytes_of(cast("CardObject", document))
    assert payload is not None
    told = judge(signed(document, entry(p256(), payload)), [p256().card_key()])
    assert (told.status, told.form, told.covers_contract) == ("valid", form, covers)


def test_a_card_without_a_contract_has_none_that_could_be_covered() -> None:
    document: JsonObject = {**CARD, "x": "y"}
    raw = json.dumps({**document, "signatures": [entry(p256(), jcs(document))]})
    twice = raw.replace('"x": "y"', '"x": "y", "x": "y"')
    told = judge(read_card(twice.encode()), [p256().card_key()])
    assert (told.status, told.covers_contract) == ("undecidable", None)
    assert "twice" in (told.reason or "")


def test_a_number_that_only_some_readers_hold_is_named_by_the_form() -> None:
    document: JsonObject = {**CARD, "x": 2**60 + 1}
    rounded = jcs({**CARD, "x": 5}).replace(b'"x":5', b'"x":1152921504606847000')
    told = judge(signed(document, entry(p256(), rounded)), [p256().card_key()])
    assert (told.status, told.form) == ("valid", "jcs-rounded")


def test_only_so_many_signatures_are_looked_at_and_that_is_said() -> None:
    wrong, right = entry(p256(), b"{}"), entry(p256(), PAYLOAD)
    told = judge(signed(CARD, *[wrong] * 8, right), [p256().card_key()])
    assert told.status == "invalid"
    assert (told.reason or "").endswith("; only the first 8 of 9 signatures were looked at")
    assert len(told.signatures) == 8


def test_only_so_many_keys_are_tried_and_that_is_said() -> None:
    keys = [CardKey("ec-1", ed().public(), "policy", None)] * 4
    told = judge(signed(CARD, entry(p256(), PAYLOAD)), [*keys, p256().card_key()])
    assert told.status == "invalid"
    assert (told.reason or "").endswith("; only 4 of the 5 given keys that it may mean were tried")


def test_a_card_beyond_the_size_is_tried_under_one_form_and_that_is_said() -> None:
    document: JsonObject = {**CARD, "description": "x" * 70000}
    assert judge(signed(document, entry(p256(), jcs(document))), [p256().card_key()]).status == "valid"
    told = judge(signed(document, entry(p256(), b"{}")), [p256().card_key()])
    assert told.status == "undecidable"
    assert told.reason == "it does not verify under the form jcs, and a card over 65536 bytes is tried under no other"


@pytest.mark.slow
def test_the_worst_card_is_judged_in_bounded_time() -> None:
    keys = [{"kid": "ec-1", "pad": str(number), **p256().public()} for number in range(280)]
    document: JsonObject = {**CARD, "x-keys": cast("Json", keys), "signatures": []}
    card = signed(document, *[entry(p256(), b"{}") for _ in range(100)])
    assert 60000 < len(card.raw) < 65536
    started = time.process_time()
    told = judge(card, [p256().card_key()] * 100)
    assert told.status == "invalid"
    assert time.process_time() - started < 10
