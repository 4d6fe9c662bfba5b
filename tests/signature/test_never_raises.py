"""Whatever stands in a card or in a key set: judging gives a judgement, and its JSON fits into a record."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_ledger.card import read_card
from a2a_ledger.codec import canonical
from a2a_ledger.errors import FormatError
from a2a_ledger.signature import CardKey, judge, read_card_keys
from tests.signature.signing import CARD, b64, ed, entry, jcs, p256, signed

if TYPE_CHECKING:
    from a2a_ledger.events import Json, JsonObject

TEXTS = st.text(max_size=8) | st.text(st.characters(categories=["Cs", "Lu"]), max_size=3)
ANY_NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)


def json_values(numbers: st.SearchStrategy[float]) -> st.SearchStrategy[object]:
    return st.recursive(
        st.none() | st.booleans() | numbers | TEXTS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
        max_leaves=8,
    )


VALUES = json_values(ANY_NUMBERS)
# Whole numbers from 2^53 on are read as what a double may not hold, also where it does.
SAFE_VALUES = json_values(st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(-1e15, 1e15))
# Members that some part of the code asks for, so that generated objects get past its first look.
KEYS = st.sampled_from(["kty", "crv", "x", "y", "n", "e", "kid", "alg", "use", "key_ops", "jwk", "publicKeyJwk", "id"])
PARTS = st.sampled_from(["OKP", "EC", "RSA", "Ed25519", "P-256", "AQAB", b64(bytes(32)), b64(b"\xff" * 256), "ec-1"])
OBJECTS = st.dictionaries(KEYS, PARTS | VALUES, max_size=6)
HEADERS = st.dictionaries(
    st.sampled_from(["alg", "kid", "crit", "b64", "jwk", "jku", "typ", "x5c"]),
    st.sampled_from(["ES256", "EdDSA", "none", "ec-1", False, True, ["b64"], ["exp"]]) | OBJECTS | VALUES,
    max_size=5,
)
ENCODED = HEADERS.map(lambda header: b64(json.dumps(header).encode())) | TEXTS
ENTRIES = st.fixed_dictionaries(
    {"protected": ENCODED, "signature": TEXTS | st.binary(max_size=70).map(b64)}, optional={"header": HEADERS | VALUES}
)
CARD_KEYS = st.builds(
    CardKey, TEXTS | st.just("ec-1"), OBJECTS, st.sampled_from(["policy", "ledger", "card"]), st.none()
)
STATUSES = {"absent", "valid", "invalid", "undecidable"}


def check(raw: bytes, keys: list[CardKey]) -> None:
    told = judge(read_card(raw), keys)
    assert told.status in STATUSES
    assert (told.proves is None) == (told.status != "valid")
    assert (told.form is None) == (told.status != "valid")
    assert told.covers_contract is None or told.status == "valid"
    canonical(cast("Json", told.to_json()))


@settings(max_examples=60)
@given(st.lists(ENTRIES | VALUES, max_size=3) | VALUES, st.lists(CARD_KEYS, max_size=3))
def test_any_signatures_and_any_keys(signatures: object, keys: list[CardKey]) -> None:
    check(json.dumps({**CARD, "signatures": signatures}).encode(), [*keys, p256().card_key()])


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from(sorted(CARD)) | TEXTS, VALUES | OBJECTS, max_size=5), ENTRIES)
def test_any_card_under_any_form(members: dict[str, Json], one: JsonObject) -> None:
    raw = json.dumps({**CARD, **members, "signatures": [one, entry(p256(), b"{}")]}).encode()
    check(raw, [p256().card_key(), ed().card_key()])


@settings(max_examples=60)
@given(VALUES)
def test_any_json_at_all(value: object) -> None:
    check(json.dumps(value).encode(), [p256().card_key()])


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from(sorted(CARD)) | st.text(max_size=5), SAFE_VALUES, max_size=4))
def test_whatever_is_signed_as_it_stands_verifies(members: dict[str, Json]) -> None:
    document: JsonObject = {**CARD, **members}
    try:
        payload = jcs(document)
    except ValueError:  # a number or a text that RFC 8785 cannot express
        return
    told = judge(signed(document, entry(p256(), payload)), [p256().card_key()])
    assert (told.status, told.form) == ("valid", "jcs")
    assert told.covers_contract is not False


@settings(max_examples=60)
@given(
    st.binary(max_size=200)
    | (OBJECTS | st.fixed_dictionaries({"keys": st.lists(OBJECTS)})).map(lambda o: json.dumps(o).encode())
)
def test_any_key_file_is_read_or_refused(data: bytes) -> None:
    try:
        keys = read_card_keys(data, source="policy", peer=None)
    except FormatError as error:
        assert str(error)  # noqa: PT017 - that it is a FormatError and nothing else is the point
    else:
        assert keys
        check(json.dumps({**CARD, "signatures": [entry(p256(), b"{}")]}).encode(), list(keys))


@pytest.mark.parametrize("depth", [10, 60, 64, 65, 5000])
def test_deep_cards(depth: int) -> None:
    deep = "[" * depth + "]" * depth
    raw = (
        f'{{"name": "n", "url": "https://a.example", "x": {deep}, "signatures": [{json.dumps(entry(p256(), b"{}"))}]}}'
    )
    check(raw.encode(), [p256().card_key()])
