"""The answer of a time authority, RFC 3161 section 2.4.2, read into its parts. Pure; docs/format.md section 6.5.

An answer is a status and a token; a token is CMS SignedData (RFC 5652) around what is stated. Here its form is
read; `certificates` says whether the signature holds and who vouches for the signer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from a2a_ledger.errors import FormatError, VerificationError
from a2a_ledger.time_token import der
from a2a_ledger.time_token.der import Reader, Value, encode
from a2a_ledger.time_token.tst_info import SHA256, Statement, read_statement

MAX_RESPONSE: Final = 64 * 1024
"""Octets that an answer may have."""

MAX_CERTIFICATES: Final = 10
"""Certificates that may come with a token."""

DIGESTS: Final = {SHA256: "sha256", "2.16.840.1.101.3.4.2.2": "sha384", "2.16.840.1.101.3.4.2.3": "sha512"}
"""Digest algorithms of a token: object identifier, and name in `hashlib`."""

_SIGNED_DATA = "1.2.840.113549.1.7.2"
_TST_INFO = "1.2.840.113549.1.9.16.1.4"
_CONTENT_TYPE = "1.2.840.113549.1.9.3"
_MESSAGE_DIGEST = "1.2.840.113549.1.9.4"
_SIGNING_CERTIFICATE = "1.2.840.113549.1.9.16.2.12"  # RFC 2634: by SHA-1
_SIGNING_CERTIFICATE_V2 = "1.2.840.113549.1.9.16.2.47"  # RFC 5035: by SHA-256 where nothing else is said

_STATUS = ("granted", "granted with changes", "rejection", "waiting", "revocation warning", "revocation notification")
_FAILURES = {
    0: "unknown or unsupported algorithm",
    2: "bad request",
    5: "bad data format",
    14: "its time source is not available",
    15: "unaccepted policy",
    16: "unaccepted extension",
    17: "additional information is not available",
    25: "system failure",
}
_WHAT = "time token"


class CertificateHash(NamedTuple):
    """How the signed attributes name the signer's certificate: hash algorithm (`hashlib`) and hash."""

    algorithm: str
    digest: bytes


@dataclass(frozen=True, slots=True)
class Signature:
    """The one signature of a token, with what it is over.

    Attributes:
        attributes: the octets that are signed (RFC 5652 section 5.4).
        digest_algorithm: object identifier.
        content_digest: digest of the statement, as the attributes give it.
        algorithm: object identifier of the signature's algorithm.
        value: the signature.
        certificate: the signer's, DER.
        named: how the attributes name that certificate.
    """

    attributes: bytes
    digest_algorithm: str
    content_digest: bytes
    algorithm: str
    value: bytes
    certificate: bytes
    named: CertificateHash


class TimeToken(NamedTuple):
    """One token, read and not yet verified: what it states, its exact octets, who signed, which certificates came."""

    states: Statement
    content: bytes
    signature: Signature
    certificates: tuple[bytes, ...]


def read_response(raw: bytes) -> TimeToken:
    """Read the answer of an authority.

    Raises:
        FormatError: it is none in DER, or of another shape than docs/format.md section 6.5 gives it.
        VerificationError: the authority gave no token.
    """
    if len(raw) > MAX_RESPONSE:
        raise FormatError(f"{_WHAT}: {len(raw)} octets; an answer may have {MAX_RESPONSE}")
    file = Reader(raw, _WHAT)
    response = file.inside(der.SEQUENCE)
    file.end()
    _check_status(response.inside(der.SEQUENCE))
    token = response.inside(der.SEQUENCE)
    response.end()
    _expect(token.oid(), _SIGNED_DATA, "the type of the token")
    explicit = token.inside(der.context(0))
    token.end()
    signed = explicit.inside(der.SEQUENCE)
    explicit.end()
    return _read_signed(signed)


def _check_status(info: Reader) -> None:
    status = info.integer()
    texts = [_text(value) for value in info.inside(der.SEQUENCE).all()] if info.tag == der.SEQUENCE else []
    bits = info.take_if(der.BIT_STRING)
    info.end()
    if status in {0, 1}:
        return
    why = "; ".join([*texts, *(_failures(bits.content) if bits else [])]) or "no reason given"
    named = _STATUS[status] if 0 <= status < len(_STATUS) else "unknown"
    raise VerificationError(f"the time authority gave no token, status {status}, {named}: {why}")


def _text(value: Value) -> str:
    return repr(value.content.decode("utf-8", errors="replace")[:200])


def _failures(content: bytes) -> list[str]:
    there = [at for at in range(8 * (len(content) - 1)) if content[1 + at // 8] & (0x80 >> at % 8)]
    return [_FAILURES.get(bit, f"failure {bit}") for bit in there]


def _read_signed(signed: Reader) -> TimeToken:
    if signed.integer() != 3:  # noqa: PLR2004 - RFC 5652, 5.1: what is signed is no plain data
        raise FormatError(f"{_WHAT}: expected SignedData of version 3")
    signed.take(der.SET)  # digest algorithms: a hint for those who read in one pass
    encapsulated = signed.inside(der.SEQUENCE)
    _expect(encapsulated.oid(), _TST_INFO, "what is signed")
    explicit = encapsulated.inside(der.context(0))
    encapsulated.end()
    content = explicit.take(der.OCTETS).content
    explicit.end()
    embedded = signed.take_if(der.context(0))
    certificates = tuple(value.raw for value in Reader(embedded.content, _WHAT).all()) if embedded else ()
    if len(certificates) > MAX_CERTIFICATES:
        raise FormatError(f"{_WHAT}: {len(certificates)} certificates; it may carry {MAX_CERTIFICATES}")
    signed.take_if(der.context(1))  # revocation lists: nothing here judges by them
    signers = signed.inside(der.SET)
    signed.end()
    signer = signers.inside(der.SEQUENCE)
    signers.end()  # RFC 3161, 2.4.2: no signature but the authority's
    return TimeToken(read_statement(content), content, _read_signature(signer, certificates), certificates)


def _read_signature(signer: Reader, certificates: tuple[bytes, ...]) -> Signature:
    if signer.integer() != 1:
        raise FormatError(f"{_WHAT}: expected a signer that is named by issuer and serial number")
    named = signer.inside(der.SEQUENCE)
    issuer, serial = named.take(der.SEQUENCE).raw, named.integer()
    named.end()
    digest_algorithm = _algorithm(signer)
    signed = signer.take(der.context(0)).content
    algorithm = _algorithm(signer)
    value = signer.take(der.OCTETS).content
    signer.take_if(der.context(1))  # attributes that nobody signed
    signer.end()
    attributes = _attributes(Reader(signed, _WHAT))
    own = [raw for raw in certificates if _names(raw) == (issuer, serial)]
    if len(own) != 1:
        raise FormatError(f"{_WHAT}: expected the certificate of its signer in it once, found it {len(own)} times")
    return Signature(
        attributes=encode(der.SET, signed),
        digest_algorithm=digest_algorithm,
        content_digest=_one(attributes, _MESSAGE_DIGEST).take(der.OCTETS).content,
        algorithm=algorithm,
        value=value,
        certificate=own[0],
        named=_certificate_hash(attributes),
    )


def _algorithm(reader: Reader) -> str:
    return reader.inside(der.SEQUENCE).oid()


def _names(certificate: bytes) -> tuple[bytes, int]:
    """Return issuer and serial number of a certificate (RFC 5280 section 4.1)."""
    body = Reader(certificate, f"a certificate in the {_WHAT}").inside(der.SEQUENCE).inside(der.SEQUENCE)
    body.take_if(der.context(0))  # version
    serial = body.integer()
    body.take(der.SEQUENCE)  # algorithm
    return body.take(der.SEQUENCE).raw, serial


def _attributes(reader: Reader) -> dict[str, bytes]:
    """Return the one value of each signed attribute."""
    found: dict[str, bytes] = {}
    while reader.tag is not None:
        attribute = reader.inside(der.SEQUENCE)
        kind = attribute.oid()
        values = attribute.inside(der.SET)
        attribute.end()
        value = values.take().raw
        values.end()
        if kind in found:
            raise FormatError(f"{_WHAT}: the signed attribute {kind} is there twice")
        found[kind] = value
    _expect(_one(found, _CONTENT_TYPE).oid(), _TST_INFO, "the signed type of the content")
    return found


def _one(attributes: dict[str, bytes], kind: str) -> Reader:
    if kind not in attributes:
        raise FormatError(f"{_WHAT}: the signed attribute {kind} is missing")
    return Reader(attributes[kind], _WHAT)


def _certificate_hash(attributes: dict[str, bytes]) -> CertificateHash:
    """Return how the attributes name the signer's certificate: else another one could be put in its place."""
    second = _SIGNING_CERTIFICATE_V2 in attributes
    kind = _SIGNING_CERTIFICATE_V2 if second else _SIGNING_CERTIFICATE
    first = _one(attributes, kind).inside(der.SEQUENCE).inside(der.SEQUENCE).inside(der.SEQUENCE)
    if not second:
        return CertificateHash("sha1", first.take(der.OCTETS).content)
    algorithm = _algorithm(first) if first.tag == der.SEQUENCE else SHA256
    if algorithm not in DIGESTS:
        raise FormatError(f"{_WHAT}: its certificate is named by hash algorithm {algorithm}, which is not read")
    return CertificateHash(DIGESTS[algorithm], first.take(der.OCTETS).content)


def _expect(found: str, expected: str, what: str) -> None:
    if found != expected:
        raise FormatError(f"{_WHAT}: expected {what} to be {expected}, found {found}")
