"""DSSE envelopes and in-toto statements."""

from __future__ import annotations

import base64
import json
from hashlib import sha256
from typing import TYPE_CHECKING, cast

import pytest
import rfc8785
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, EllipticCurvePublicNumbers
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from hypothesis import given
from hypothesis import strategies as st

from a2a_ledger.errors import FormatError, SignatureError, UsageError
from a2a_ledger.keys import generate
from a2a_ledger.statement import (
    BASE_URI,
    MAX_ENVELOPE,
    PAYLOAD_TYPE,
    VIOLATION,
    Subject,
    leaf_subject,
    open_envelope,
    pae,
    parse_statement,
    sign_envelope,
    statement,
    violation_predicate,
)
from tests.log.openssl import openssl_accepts

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.events import JsonObject

ORIGIN = "ledger.example/acme-0a1b2c3d"
ONE = generate(ORIGIN, lambda size: b"\x01" * size)
TWO = generate(ORIGIN, lambda size: b"\x02" * size)
LEAF = b'{"c":"00","log":"ledger.example/acme-0a1b2c3d","n":7,"t":"00","v":1}'
PAYLOAD = '{"name":"Caf\u00e9"}'.encode()


def envelope(**changed: object) -> bytes:
    """Return a good envelope with some members replaced; None removes one."""
    members = {**json.loads(sign_envelope(PAYLOAD, ONE)), **changed}
    return json.dumps({key: value for key, value in members.items() if value is not None}, indent=1).encode()


def signatures(raw: bytes) -> list[dict[str, str]]:
    return cast("list[dict[str, str]]", json.loads(raw)["signatures"])


# ---- Envelopes


def test_the_example_of_the_standard(corpus: Path) -> None:
    known = json.loads((corpus / "vectors" / "dsse" / "spec_example.json").read_text())
    message = pae(known["payloadType"], known["payload"].encode())
    assert message == known["pae"].encode()
    blob = base64.b64decode(known["envelope"]["signatures"][0]["sig"])
    signature = encode_dss_signature(int.from_bytes(blob[:32], "big"), int.from_bytes(blob[32:], "big"))
    key = EllipticCurvePublicNumbers(int(known["X"]), int(known["Y"]), SECP256R1()).public_key()
    key.verify(signature, message, ECDSA(SHA256()))  # raises if our encoding is not what was signed
    with pytest.raises(SignatureError, match=r"none of the 1 signatures .* tried: none was given"):
        open_envelope(json.dumps(known["envelope"]).encode(), [], payload_type=known["payloadType"])


def test_lengths_are_counted_in_bytes() -> None:
    assert pae("caf\u00e9", b"\x00\xff") == b"DSSEv1 5 caf\xc3\xa9 2 \x00\xff"
    assert pae("", b"") == b"DSSEv1 0  0 "


def test_an_envelope_is_canonical_and_opens() -> None:
    raw = sign_envelope(PAYLOAD, ONE, TWO)
    assert raw == rfc8785.dumps(json.loads(raw))
    assert json.loads(raw)["payloadType"] == PAYLOAD_TYPE == "application/vnd.in-toto+json"
    assert [entry["keyid"] for entry in signatures(raw)] == [ONE.key_id, TWO.key_id]
    assert open_envelope(raw, [ONE.verifier]) == (PAYLOAD, (ONE.verifier,))
    assert open_envelope(raw, [TWO.verifier, ONE.verifier]).signers == (TWO.verifier, ONE.verifier)
    assert raw == sign_envelope(PAYLOAD, ONE, TWO)
    with pytest.raises(UsageError, match="at least one key"):
        sign_envelope(PAYLOAD)


def test_openssl_verifies_a_statement(tmp_path: Path) -> None:
    raw = sign_envelope(PAYLOAD, ONE)
    signature = base64.b64decode(signatures(raw)[0]["sig"])
    kind = b"application/vnd.in-toto+json"
    message = b"DSSEv1 28 " + kind + b" 16 " + PAYLOAD  # by hand, not by our function
    assert openssl_accepts(tmp_path, ONE.verifier.pem(), message, signature)
    assert not openssl_accepts(tmp_path, ONE.verifier.pem(), message + b" ", signature)


def test_a_key_id_is_a_hint_and_decides_nothing() -> None:
    entries = signatures(sign_envelope(PAYLOAD, ONE))
    for keyid in ("", "unknown", TWO.key_id, 7, None):
        changed = [{**entry, "keyid": keyid} for entry in entries]
        assert open_envelope(envelope(signatures=changed), [TWO.verifier, ONE.verifier]).signers == (ONE.verifier,)
    assert open_envelope(envelope(signatures=[{"sig": entries[0]["sig"]}]), [ONE.verifier]).payload == PAYLOAD


def test_base64_of_either_alphabet_and_never_of_both() -> None:
    payload = b"\xfb\xff\xfe" * 2  # standard -//+ becomes +//+ or -__-
    raw = json.loads(sign_envelope(payload, ONE))
    assert raw["payload"] == "+//++//+"
    signature = signatures(sign_envelope(payload, ONE))[0]["sig"].translate(str.maketrans("+/", "-_"))
    urlsafe = raw | {"payload": "-__--__-", "signatures": [{"sig": signature}]}
    assert open_envelope(json.dumps(urlsafe).encode(), [ONE.verifier]).payload == payload
    with pytest.raises(FormatError, match="the payload of an envelope is padded base64"):
        open_envelope(json.dumps(raw | {"payload": "-//++//+"}).encode(), [ONE.verifier])


def test_signatures_by_nobody_known_are_passed_over() -> None:
    entries = [{"sig": base64.b64encode(bytes(64)).decode()}, {"sig": ""}, *signatures(sign_envelope(PAYLOAD, ONE))]
    assert open_envelope(envelope(signatures=entries), [ONE.verifier]).payload == PAYLOAD
    with pytest.raises(SignatureError, match=f"none of the 3 signatures .* tried: .*{TWO.key_id}"):
        open_envelope(envelope(signatures=entries), [TWO.verifier])


def test_a_changed_payload_does_not_open() -> None:
    with pytest.raises(SignatureError):
        open_envelope(envelope(payload=base64.b64encode(PAYLOAD + b" ").decode()), [ONE.verifier])


def test_the_type_is_signed_too() -> None:
    raw = sign_envelope(PAYLOAD, ONE, payload_type="text/plain")
    assert open_envelope(raw, [ONE.verifier], payload_type="text/plain").payload == PAYLOAD
    with pytest.raises(FormatError, match="expected an envelope of type application/vnd"):
        open_envelope(raw, [ONE.verifier])
    with pytest.raises(SignatureError):
        open_envelope(raw.replace(b"text/plain", PAYLOAD_TYPE.encode()), [ONE.verifier])


def test_members_that_are_not_ours_are_passed_over() -> None:
    assert open_envelope(envelope(more=1), [ONE.verifier]).payload == PAYLOAD


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff",
        b"\xef\xbb\xbf" + envelope(),
        b"[" * 100_000,
        envelope(payload=None),
        envelope(payload=7),
        envelope(payload="!"),
        envelope(payload="QQ"),
        envelope(payloadType=None),
        envelope(signatures=None),
        envelope(signatures=[]),
        envelope(signatures={}),
        envelope(signatures=["x"]),
        envelope(signatures=[{"keyid": ""}]),
        envelope(signatures=[{"sig": 7}]),
        envelope(signatures=[{"sig": "!"}]),
        envelope(signatures=[{"sig": "QQ=="}] * 101),
        envelope()[:-1],
        envelope().replace(b'"payloadType"', b'"payload"'),
        b'{"payload":"","payload":"QQ==","payloadType":"application/vnd.in-toto+json","signatures":[{"sig":""}]}',
        b" " * (MAX_ENVELOPE + 1),
    ],
)
def test_what_is_no_envelope(raw: bytes) -> None:
    with pytest.raises(FormatError):
        open_envelope(raw, [ONE.verifier])


@given(st.integers(0, len(envelope()) - 1), st.binary(max_size=3), st.integers(0, 3))
def test_a_changed_envelope_is_refused_or_says_the_same(place: int, insert: bytes, remove: int) -> None:
    raw = envelope()
    try:
        opened = open_envelope(raw[:place] + insert + raw[place + remove :], [ONE.verifier])
    except (FormatError, SignatureError):
        return
    assert opened == (PAYLOAD, (ONE.verifier,))


# ---- Statements


def test_a_leaf_is_named_by_its_place_and_the_digest_of_its_bytes() -> None:
    assert leaf_subject(ORIGIN, 7, LEAF) == Subject(f"{ORIGIN}#7", sha256(LEAF).hexdigest())


def violation(**changed: str | None) -> JsonObject:
    return violation_predicate(
        rule="auth-demand",
        rule_set="1",
        profile_hash="sha256:aa",
        subject="mtls",
        trigger="ab" * 32,
        trigger_index=41,
        frozen_hash=changed.get("frozen_hash", "sha256:bb"),
        frozen_form=changed.get("frozen_form", "a2a-contract/1"),
        about="peer",
        certainty="certain",
        observed={"pointer": "/status"},
        basis="live",
        not_established=("that the peer meant it",),
    )


def test_the_bytes_of_a_violation() -> None:
    """Written out by hand from the format: sorted members, no spaces, nothing else."""
    payload = statement([Subject("log#7", "cd" * 32)], VIOLATION, violation())
    assert payload.decode() == (
        '{"_type":"https://in-toto.io/Statement/v1",'
        '"predicate":{"about":"peer","as_of":42,"basis":"live","certainty":"certain",'
        '"frozen":{"form":"a2a-contract/1","hash":"sha256:bb"},'
        '"not_established":["that the peer meant it"],"observed":{"pointer":"/status"},'
        '"profile_hash":"sha256:aa","rule":"auth-demand","rule_set":"1","subject":"mtls",'
        f'"trigger":"{"ab" * 32}"}},'
        '"predicateType":"https://w3id.org/a2a-ledger/violation/v1",'
        f'"subject":[{{"digest":{{"sha256":"{"cd" * 32}"}},"name":"log#7"}}]}}'
    )
    assert BASE_URI == "https://w3id.org/a2a-ledger/"
    parsed = parse_statement(payload)
    assert parsed == ((Subject("log#7", "cd" * 32),), VIOLATION, violation())


def test_a_hash_and_its_form_stand_together() -> None:
    assert violation(frozen_hash=None, frozen_form=None)["frozen"] is None
    for changed in ({"frozen_hash": None}, {"frozen_form": None}):
        with pytest.raises(UsageError, match="a contract hash stands with its form"):
            violation(**changed)


def test_a_statement_about_nothing_or_with_what_has_no_canonical_form() -> None:
    with pytest.raises(UsageError, match="at least one subject"):
        statement([], VIOLATION, {})
    with pytest.raises(FormatError):
        statement([Subject("a", "00")], VIOLATION, {"n": 2**53})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Statement/v1", "Statement/v0.1"),
        ('"predicate":{', '"predicate":[{'),
        ('"subject":[', '"subject":[],"subjects":['),
        ('"subject":[{"digest"', '"subject":[{"digests"'),
        ('"sha256"', '"sha512"'),
        ('"_type"', '"_other":1,"_type"'),
        ('{"_type"', ' {"_type"'),
        (":42,", ":42.0,"),
        (VIOLATION, VIOLATION + '","predicateType":"'),
    ],
)
def test_what_is_no_statement(old: str, new: str) -> None:
    payload = statement([Subject("log#7", "cd" * 32)], VIOLATION, violation()).decode()
    assert old in payload
    with pytest.raises(FormatError):
        parse_statement(payload.replace(old, new, 1).encode())
