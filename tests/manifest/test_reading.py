"""A manifest as bytes: what is signed, who may have signed it, and what is none."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from a2a_ledger.errors import FormatError
from a2a_ledger.keys import COSIGNATURE, Verifier, generate
from a2a_ledger.manifest import MAX_MANIFEST, Manifest, make_manifest, read_manifest
from a2a_ledger.statement import sign_envelope

if TYPE_CHECKING:
    from collections.abc import Callable

URL = "https://vendor.example/.well-known/agent-card.json"
ISSUED = datetime(2026, 8, 18, 12, 0, tzinfo=UTC)
FLOOR = ISSUED + timedelta(hours=1)
ONE = generate("one", lambda size: b"1" * size)
TWO = generate("two", lambda size: b"2" * size)
HASH = {"card": "sha256:" + "a" * 64, "contract": "sha256:" + "b" * 64}
# By hand: printf 'https://vendor.example/.well-known/agent-card.json' | sha256sum | cut -c1-32
PEER = "2ef7a05e87d3bd85f9cf76af86ceb51d"


def manifest(**changes: Any) -> Manifest:  # noqa: ANN401 - any member of a manifest
    values: dict[str, Any] = {
        "peer": PEER,
        "peer_url": URL,
        "card_hash": HASH["card"],
        "contract_hash": HASH["contract"],
        "form": "a2a-contract/1",
        "issued_at": ISSUED,
        "floor_until": FLOOR,
        **changes,
    }
    return Manifest(**values)


MADE = make_manifest(manifest(), ONE)


def signed(change: Callable[[dict[str, Any]], None]) -> bytes:
    """Return a manifest by the trusted key whose statement was changed before it was signed."""
    statement = json.loads(base64.b64decode(json.loads(MADE)["payload"]))
    change(statement)
    return sign_envelope(json.dumps(statement, sort_keys=True, separators=(",", ":")).encode(), ONE)


def test_the_envelope_is_what_the_formats_of_dsse_and_in_toto_say() -> None:
    envelope = json.loads(MADE)
    payload = base64.b64decode(envelope["payload"])
    kind = "application/vnd.in-toto+json"
    assert envelope["payloadType"] == kind
    assert json.loads(payload) == {
        "_type": "https://in-toto.io/Statement/v1",
        "predicateType": "https://w3id.org/a2a-ledger/card-manifest/v1",
        "subject": [{"name": URL, "digest": {"sha256": "a" * 64}}],
        "predicate": {
            "peer": PEER,
            "card_hash": HASH["card"],
            "contract_hash": HASH["contract"],
            "form": "a2a-contract/1",
            "issued_at": "2026-08-18T12:00:00.000000Z",
            "floor_until": "2026-08-18T13:00:00.000000Z",
        },
    }
    [signature] = envelope["signatures"]
    assert signature["keyid"] == ONE.key_id
    signed_bytes = f"DSSEv1 {len(kind)} {kind} {len(payload)} ".encode() + payload
    public = Ed25519PublicKey.from_public_bytes(ONE.verifier.public_key)
    public.verify(base64.b64decode(signature["sig"]), signed_bytes)
    with pytest.raises(InvalidSignature):
        public.verify(base64.b64decode(signature["sig"]), signed_bytes + b" ")


@pytest.mark.parametrize(
    ("now", "status"),
    [
        (ISSUED, "valid"),
        (FLOOR - timedelta(microseconds=1), "valid"),
        (FLOOR, "expired"),
        (FLOOR + timedelta(days=400), "expired"),
    ],
)
def test_a_manifest_by_a_trusted_key_is_valid_until_its_floor(now: datetime, status: str) -> None:
    assert read_manifest(MADE, [ONE.verifier], now) == (manifest(), status, ONE.key_id)


def test_a_key_that_is_not_trusted_is_unknown_and_what_it_says_is_read_all_the_same() -> None:
    assert read_manifest(MADE, [TWO.verifier], ISSUED) == (manifest(), "unknown-key", None)
    assert read_manifest(MADE, [], ISSUED) == (manifest(), "unknown-key", None)


def test_a_key_of_the_same_id_that_did_not_sign_is_a_bad_signature() -> None:
    envelope = json.loads(make_manifest(manifest(), TWO))
    envelope["signatures"][0]["keyid"] = ONE.key_id
    assert read_manifest(json.dumps(envelope).encode(), [ONE.verifier], ISSUED).status == "bad-signature"


def test_a_cosigner_s_key_signs_checkpoints_and_no_manifests() -> None:
    cosigner = Verifier("one", ONE.verifier.public_key, COSIGNATURE)
    assert read_manifest(MADE, [cosigner], ISSUED).status == "unknown-key"


@pytest.mark.parametrize("trusted", [ONE, TWO])
def test_of_two_signatures_one_by_a_trusted_key_is_enough(trusted: Any) -> None:  # noqa: ANN401 - a Signer
    both = json.loads(MADE)
    both["signatures"] += json.loads(make_manifest(manifest(), TWO))["signatures"]
    read = read_manifest(json.dumps(both).encode(), [trusted.verifier], ISSUED)
    assert (read.status, read.key_id) == ("valid", trusted.key_id)


def test_a_broken_signature_beside_a_good_one_takes_nothing_away() -> None:
    both = json.loads(MADE)
    both["signatures"].insert(0, {"keyid": ONE.key_id, "sig": base64.b64encode(bytes(64)).decode()})
    assert read_manifest(json.dumps(both).encode(), [ONE.verifier], ISSUED).status == "valid"


def test_one_changed_byte_never_makes_another_manifest_good() -> None:
    statuses: set[str] = set()
    for place in range(len(MADE)):
        for flip in (0x01, 0x20):
            changed = bytearray(MADE)
            changed[place] ^= flip
            try:
                read = read_manifest(bytes(changed), [ONE.verifier], ISSUED)
            except FormatError:
                statuses.add("no manifest")
                continue
            statuses.add(read.status)
            assert read.status != "valid" or read.manifest == manifest()
    assert statuses == {"valid", "bad-signature", "no manifest"}  # valid: the key id is a hint that nobody signed


@pytest.mark.parametrize(
    ("text", "floor"),
    [
        ("2026-08-18T14:30:00+01:30", FLOOR),
        ("2026-08-18t13:00:00z", FLOOR),
        ("2026-08-18 13:00:00.0Z", FLOOR),
        ("2026-08-18T13:00:00.9999999Z", FLOOR.replace(microsecond=999_999)),
        ("2026-08-18T00:00:00-13:00", FLOOR),
    ],
)
def test_times_of_others_are_read_with_their_zone(text: str, floor: datetime) -> None:
    def change(statement: dict[str, Any]) -> None:
        statement["predicate"]["floor_until"] = text

    read = read_manifest(signed(change), [ONE.verifier], floor - timedelta(microseconds=1))
    assert (read.status, read.manifest.floor_until) == ("valid", floor)
    assert read_manifest(signed(change), [ONE.verifier], floor.astimezone(timezone(timedelta(hours=9)))).status == (
        "expired"
    )


@pytest.mark.parametrize(
    "text",
    ["2026-08-18T13:00:00", "2026-08-18", "1787058000", "tomorrow", "", "2026-08-18T25:00:00Z", "2026-02-30T00:00:00Z",
     "9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+12:00", "2026-08-18T13:00:00Z\n"],
)  # fmt: skip
def test_a_time_without_its_zone_or_that_is_none_is_no_manifest(text: str) -> None:
    def change(statement: dict[str, Any]) -> None:
        statement["predicate"]["floor_until"] = text

    with pytest.raises(FormatError, match="RFC 3339"):
        read_manifest(signed(change), [ONE.verifier], ISSUED)


def test_a_floor_reaches_a_leap_year_and_no_further() -> None:
    assert manifest(floor_until=ISSUED + timedelta(days=366)).floor_until.year == 2027
    with pytest.raises(FormatError, match="366 days"):
        manifest(floor_until=ISSUED + timedelta(days=366, microseconds=1))

    def change(statement: dict[str, Any]) -> None:
        statement["predicate"]["floor_until"] = "9999-12-31T23:59:59Z"

    with pytest.raises(FormatError, match="366 days"):
        read_manifest(signed(change), [ONE.verifier], ISSUED)


def _set(*path: str | int, to: object) -> Callable[[dict[str, Any]], None]:
    def change(statement: dict[str, Any]) -> None:
        there: Any = statement
        for step in path[:-1]:
            there = there[step]
        there[path[-1]] = to

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_set("predicateType", to="https://w3id.org/a2a-ledger/violation/v1"), "predicate type"),
        (_set("predicate", "peer", to="0" * 32), "peer id"),
        (_set("predicate", "card_hash", to="sha256:" + "c" * 64), "digest"),
        (_set("predicate", "card_hash", to="a" * 64), "digest"),
        (_set("predicate", "contract_hash", to="sha256:" + "B" * 64), "contract hash"),
        (_set("predicate", "form", to=""), "form"),
        (_set("predicate", "form", to="x" * 65), "form"),
        (_set("predicate", "more", to=1), "exactly"),
        (_set("predicate", to={}), "exactly"),
        (_set("predicate", "floor_until", to=1787058000), "exactly"),
        (_set("subject", 0, "name", to="https://other.example/.well-known/agent-card.json"), "peer id"),
        (_set("subject", 0, "name", to=URL + "?x=1"), "public card"),
        (_set("subject", 0, "name", to="https://vendor.example:443/.well-known/agent-card.json"), "public card"),
        (_set("subject", 0, "name", to="https://vendor.example/" + "a" * 2000), "public card"),
        (_set("subject", 0, "name", to="https://vendor.example/\u001b[2J"), "public card"),
        (_set("subject", 0, "name", to="vendor.example"), "public card"),
        (_set("subject", to=[]), "statement"),
        (_set("_type", to="https://in-toto.io/Statement/v0.1"), "statement"),
    ],
)
def test_what_a_trusted_key_signed_and_is_no_manifest_is_refused(
    change: Callable[[dict[str, Any]], None], says: str
) -> None:
    with pytest.raises(FormatError, match=says):
        read_manifest(signed(change), [ONE.verifier], ISSUED)


def test_two_subjects_are_no_manifest() -> None:
    def change(statement: dict[str, Any]) -> None:
        statement["subject"] *= 2

    with pytest.raises(FormatError, match="one subject"):
        read_manifest(signed(change), [ONE.verifier], ISSUED)


@pytest.mark.parametrize(
    "envelope",
    [b"", b"{}", b"[]", b"null", b"\xff", b"\xef\xbb\xbf" + MADE, MADE + MADE, MADE[:-1], b"[" * 60_000, b"1" * 60_000,
     MADE.replace(b'{"payload"', b'{"payload":"","payload"', 1), b" " * (MAX_MANIFEST + 1 - len(MADE)) + MADE],
)  # fmt: skip
def test_what_is_no_envelope_is_refused(envelope: bytes) -> None:
    with pytest.raises(FormatError):
        read_manifest(envelope, [ONE.verifier], ISSUED)


@pytest.mark.parametrize(("count", "good"), [(16, True), (17, False)])
def test_a_manifest_has_few_signatures(count: int, good: bool) -> None:
    many = json.loads(MADE)
    many["signatures"] = [{"sig": base64.b64encode(bytes(64)).decode()}] * (count - 1) + many["signatures"]
    envelope = json.dumps(many).encode()
    if good:
        assert read_manifest(envelope, [ONE.verifier], ISSUED).status == "valid"
    else:
        with pytest.raises(FormatError, match="16 signatures"):
            read_manifest(envelope, [ONE.verifier], ISSUED)


def test_the_greatest_manifest_that_is_read() -> None:
    padded = b" " * (MAX_MANIFEST - len(MADE)) + MADE
    assert read_manifest(padded, [ONE.verifier], ISSUED).status == "valid"


def test_a_manifest_is_made_for_a_time_with_a_zone() -> None:
    with pytest.raises(FormatError, match="zone"):
        manifest(issued_at=ISSUED.replace(tzinfo=None), floor_until=FLOOR.replace(tzinfo=None))


def test_a_floor_before_the_signing_is_a_withdrawal_and_may_be_made() -> None:
    withdrawn = replace(manifest(), floor_until=ISSUED - timedelta(days=9))
    assert read_manifest(make_manifest(withdrawn, ONE), [ONE.verifier], ISSUED).status == "expired"
