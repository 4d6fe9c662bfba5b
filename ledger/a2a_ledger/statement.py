"""Signed statements: DSSE envelopes around in-toto Statements v1.

docs/format.md section 10. DSSE v1 signs the type of a payload together with its bytes, so a
signature can be checked before anything is parsed; the in-toto Statement names, by digest, what
it speaks about. Ours speak about leaves of the log. What we write is RFC 8785 bytes, payload and
envelope; what we read may be any JSON envelope, and only the payload bytes that verified are
ever handed on.
"""

from __future__ import annotations

import base64
import json
from hashlib import sha256
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from a2a_ledger.codec.canonical import canonical, parse_canonical
from a2a_ledger.errors import FormatError, SignatureError, UsageError
from a2a_ledger.keys import Signer, Verifier, decode_base64

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from a2a_ledger.events import Json, JsonObject

BASE_URI: Final = "https://w3id.org/a2a-ledger/"
VIOLATION: Final = BASE_URI + "violation/v1"
STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"
MAX_ENVELOPE: Final = 16 * 1024 * 1024  # bytes
MAX_SIGNATURES: Final = 100

_URL_SAFE = str.maketrans("-_", "+/")


# ---- Envelopes


class Signature(NamedTuple):
    """One signature of an envelope and the key id that it names, if any: a hint that nobody signed."""

    key_id: str | None
    signature: bytes


class Envelope(NamedTuple):
    """An envelope as it is written, not yet verified: nothing says that anybody signed this payload."""

    payload: bytes
    signatures: tuple[Signature, ...]


class Opened(NamedTuple):
    """The payload bytes of an envelope and the known keys whose signatures over them verified."""

    payload: bytes
    signers: tuple[Verifier, ...]


def pae(payload_type: str, payload: bytes) -> bytes:
    """Return what a DSSE signature is made over: the pre-authentication encoding, lengths in bytes."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def sign_envelope(payload: bytes, *signers: Signer, payload_type: str = PAYLOAD_TYPE) -> bytes:
    """Sign a payload and return the envelope's RFC 8785 bytes; the keyid of a signature is our 8-digit key id.

    Raises:
        UsageError: without a signer.
    """
    if not signers:
        raise UsageError("an envelope is signed by at least one key, found none")
    message = pae(payload_type, payload)
    signatures: list[Json] = [
        {"keyid": signer.key_id, "sig": base64.b64encode(signer.sign(message)).decode()} for signer in signers
    ]
    return canonical(
        {"payload": base64.b64encode(payload).decode(), "payloadType": payload_type, "signatures": signatures}
    )


def open_envelope(raw: bytes, verifiers: Iterable[Verifier], *, payload_type: str = PAYLOAD_TYPE) -> Opened:
    """Verify an envelope and return its payload bytes; use these, never the envelope's again.

    Every known key is tried on every signature: a keyid is a hint that nobody signed. Signatures
    that no known key made are passed over, as DSSE asks; base64 may be standard or URL-safe.

    Raises:
        FormatError: if it is not a DSSE envelope of this payload type.
        SignatureError: if no known key's signature verifies.
    """
    payload, signatures = read_envelope(raw, payload_type=payload_type)
    message = pae(payload_type, payload)
    known = [verifier for verifier in verifiers if verifier.usable]
    signers = tuple(key for key in known if any(_verifies(key, one.signature, message) for one in signatures))
    if not signers:
        tried = ", ".join(f"{key.name}+{key.key_id}" for key in known) or "none was given"
        raise SignatureError(
            f"none of the {len(signatures)} signatures of this envelope is by a known key; tried: {tried}"
        )
    return Opened(payload, signers)


def _verifies(key: Verifier, signature: bytes, message: bytes) -> bool:
    try:
        key.verify(signature, message)
    except SignatureError:
        return False
    return True


def read_envelope(raw: bytes, *, payload_type: str = PAYLOAD_TYPE) -> Envelope:
    """Read an envelope as to its form alone; only what `open_envelope` returns was signed by somebody known.

    Raises:
        FormatError: if it is not a DSSE envelope of this payload type.
    """
    if len(raw) > MAX_ENVELOPE:
        raise FormatError(f"an envelope may have {MAX_ENVELOPE} bytes, found {len(raw)}")
    try:
        envelope = cast("Json", json.loads(raw.decode(), object_pairs_hook=_once))
    except RecursionError:
        raise FormatError("an envelope is flat JSON, found it nested beyond all reason") from None
    except ValueError as error:
        raise FormatError(f"an envelope is a JSON object in UTF-8, found something else: {error}") from None
    match envelope:
        case {"payload": str(payload), "payloadType": str(found), "signatures": [*entries]} if entries:
            pass
        case _:
            raise FormatError(
                "an envelope has payload and payloadType, texts, and signatures, a list that is not empty"
            )
    if found != payload_type:
        raise FormatError(f"expected an envelope of type {payload_type}, found {found[:80]!r}")
    if len(entries) > MAX_SIGNATURES:
        raise FormatError(f"an envelope may have {MAX_SIGNATURES} signatures, found {len(entries)}")
    return Envelope(_decode(payload, "payload"), tuple(map(_signature, entries)))


def _signature(entry: Json) -> Signature:
    match entry:
        case {"sig": str(signature), **others}:
            named = others.get("keyid")
            return Signature(named if isinstance(named, str) else None, _decode(signature, "signature"))
        case _:
            raise FormatError("each signature of an envelope is an object with the text `sig`")


def _decode(text: str, what: str) -> bytes:
    """Decode base64 of either alphabet, but of one only."""
    standard = text.translate(_URL_SAFE) if not {"+", "/"} & set(text) else text
    try:
        return decode_base64(standard)
    except ValueError:
        raise FormatError(
            f"the {what} of an envelope is padded base64, standard or URL-safe; this is neither"
        ) from None


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Build an object, refusing keys that stand twice: two readers would see two envelopes."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


# ---- Statements


class Subject(NamedTuple):
    """What a statement speaks about: a name for people, and the SHA-256 (hex) that decides."""

    name: str
    sha256: str


class Statement(NamedTuple):
    """A parsed in-toto Statement v1."""

    subjects: tuple[Subject, ...]
    predicate_type: str
    predicate: JsonObject


def leaf_subject(origin: str, index: int, leaf: bytes) -> Subject:
    """Name leaf `index` of a log; the digest is the plain SHA-256 of the leaf's bytes, not the tree's hash."""
    return Subject(f"{origin}#{index}", sha256(leaf).hexdigest())


def statement(subjects: Sequence[Subject], predicate_type: str, predicate: JsonObject) -> bytes:
    """Return the RFC 8785 bytes of an in-toto Statement v1.

    Raises:
        UsageError: without a subject.
        FormatError: if the predicate holds what the record profile has no room for.
    """
    if not subjects:
        raise UsageError("a statement has at least one subject, found none")
    return canonical(
        {
            "_type": STATEMENT_TYPE,
            "predicate": predicate,
            "predicateType": predicate_type,
            "subject": [{"digest": {"sha256": subject.sha256}, "name": subject.name} for subject in subjects],
        }
    )


def parse_statement(payload: bytes) -> Statement:
    """Read a statement of ours from payload bytes that verified.

    Raises:
        FormatError: if they are not the RFC 8785 bytes of an in-toto Statement v1 with SHA-256 subjects.
    """
    match parse_canonical(payload):
        case {
            "_type": "https://in-toto.io/Statement/v1",
            "predicate": dict() as predicate,
            "predicateType": str(predicate_type),
            "subject": [*subjects],
            **others,
        } if subjects and not others:
            return Statement(tuple(map(_subject, subjects)), predicate_type, predicate)
        case _:
            raise FormatError(f"a statement has _type {STATEMENT_TYPE}, subject, predicateType and predicate only")


def _subject(entry: Json) -> Subject:
    match entry:
        case {"name": str(name), "digest": {"sha256": str(digest)}}:
            return Subject(name, digest)
        case _:
            raise FormatError("each subject of a statement has a name and a digest with sha256")


def violation_predicate(  # noqa: PLR0913 - the members of the predicate, all named at the call
    *,
    rule: str,
    rule_set: str,
    profile_hash: str,
    subject: str,
    trigger: str,
    trigger_index: int,
    frozen_hash: str | None,
    frozen_form: str | None,
    about: str,
    certainty: str,
    observed: JsonObject,
    basis: str,
    not_established: Sequence[str],
) -> JsonObject:
    """Build the predicate of a violation, type `VIOLATION`.

    Args:
        rule: the rule that found it.
        rule_set: version of the rule set.
        profile_hash: `sha256:<hex>` of the profile in force.
        subject: what of the trigger it is about; with rule, rule set, profile and trigger it occurs once.
        trigger: the commitment `c` of the event that completed the finding, 64 hex digits.
        trigger_index: that event's index in the log; the finding holds *as of* the size that just covers it.
        frozen_hash: the frozen contract's hash, or None where no contract was frozen.
        frozen_form: the form of that hash: one never stands without the other.
        about: peer, client or either.
        certainty: certain, claimed or suspected.
        observed: what was seen, as digests and pointers rather than content.
        basis: live or import.
        not_established: what this finding does not show, in plain sentences.

    Raises:
        UsageError: if a hash stands without its form, or a form without its hash.
    """
    if (frozen_hash is None) != (frozen_form is None):
        raise UsageError(f"a contract hash stands with its form, found hash {frozen_hash} and form {frozen_form}")
    return {
        "about": about,
        "as_of": trigger_index + 1,
        "basis": basis,
        "certainty": certainty,
        "frozen": None if frozen_hash is None else {"form": frozen_form, "hash": frozen_hash},
        "not_established": list(not_established),
        "observed": observed,
        "profile_hash": profile_hash,
        "rule": rule,
        "rule_set": rule_set,
        "subject": subject,
        "trigger": trigger,
    }
