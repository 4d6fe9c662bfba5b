"""Who signed a time token: its signature, and the chain to an authority's root that somebody trusts.

docs/format.md section 6.5. Two questions are kept apart. Does the token hold by the certificate that came with it?
If not, it is broken, whoever is trusted. Does a trusted root vouch for that certificate, at the token's own time, as
one of a time authority? If not, nobody knows whose clock it was.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256, SHA384, SHA512, HashAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from a2a_ledger.errors import FormatError, PolicyError, SignatureError
from a2a_ledger.time_token.response import DIGESTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from a2a_ledger.time_token.response import TimeToken

MIN_RSA: Final = 2048
MAX_RSA: Final = 8192
MAX_DEPTH: Final = 5
"""Certificates of authorities between a signer and a trusted root, at most."""

MAX_ROOT: Final = 16 * 1024
"""Octets that the certificate of a root may have."""

_HASHES: dict[str, HashAlgorithm] = {"sha256": SHA256(), "sha384": SHA384(), "sha512": SHA512()}
_CURVES = (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)
_BY_RSA: dict[str, str | None] = {
    "1.2.840.113549.1.1.1": None,  # by the digest algorithm of the signer
    "1.2.840.113549.1.1.11": "sha256",
    "1.2.840.113549.1.1.12": "sha384",
    "1.2.840.113549.1.1.13": "sha512",
}
_BY_EC = {"1.2.840.10045.4.3.2": "sha256", "1.2.840.10045.4.3.3": "sha384", "1.2.840.10045.4.3.4": "sha512"}
_TIME_STAMPING = ExtendedKeyUsageOID.TIME_STAMPING
_READ = (
    x509.BasicConstraints,
    x509.KeyUsage,
    x509.ExtendedKeyUsage,
    x509.SubjectAlternativeName,
    x509.CertificatePolicies,
)  # a critical extension of another kind says something that nobody here reads

_Kind = TypeVar("_Kind", bound=x509.ExtensionType)


class Certificate(NamedTuple):
    """A certificate, read."""

    x509: x509.Certificate
    octets: bytes
    extensions: tuple[x509.Extension[x509.ExtensionType], ...]
    name: str  # of its subject, for people

    def extension(self, kind: type[_Kind]) -> tuple[_Kind | None, bool]:
        """Return an extension, None if it has none, and whether it is critical."""
        for extension in self.extensions:
            if isinstance(extension.value, kind):
                return extension.value, extension.critical
        return None, False

    def is_valid(self, at: datetime) -> bool:
        """Say whether `at` lies in the time for which it was issued."""
        return self.x509.not_valid_before_utc <= at <= self.x509.not_valid_after_utc


def read_certificate(octets: bytes) -> Certificate:
    """Read one certificate in DER.

    Raises:
        FormatError: it is none.
    """
    try:
        found = x509.load_der_x509_certificate(octets)
        return Certificate(found, octets, tuple(found.extensions), found.subject.rfc4514_string())
    except Exception as problem:  # noqa: BLE001 - the library has many errors for what a stranger may have written
        raise FormatError(f"expected a certificate in DER, found something else ({problem!s:.80})") from None


def read_roots(pem: bytes) -> tuple[Certificate, ...]:
    """Read the root certificates of time authorities from a PEM file.

    Raises:
        FormatError: it holds none, or one that cannot be a root.
    """
    try:
        found = x509.load_pem_x509_certificates(pem)
    except Exception as problem:  # noqa: BLE001 - as above
        raise FormatError(f"expected certificates in PEM, found none that can be read ({problem!s:.80})") from None
    return tuple(read_root(one.public_bytes(Encoding.DER)) for one in found)


def read_root(octets: bytes) -> Certificate:
    """Read the certificate of an authority that somebody trusts.

    Raises:
        FormatError: it is none, too large, or that of no authority.
    """
    root = read_certificate(octets)
    if len(octets) > MAX_ROOT:
        raise FormatError(f"a root certificate has at most {MAX_ROOT} octets, found {len(octets)}")
    constraints, _ = root.extension(x509.BasicConstraints)
    if constraints is None or not constraints.ca:
        raise FormatError(f"expected the certificate of a root, found one that may sign no other: {root.name[:80]!r}")
    return root


def check_signature(token: TimeToken) -> Certificate:
    """Check that a token holds by the certificate that came with it; return that certificate.

    Raises:
        SignatureError: it does not.
        PolicyError: it is signed in a way that is not judged here, so nothing can be said.
        FormatError: the certificate is none.
    """
    signed = token.signature
    signer = read_certificate(signed.certificate)
    if (
        hashlib.new(signed.named.algorithm, signer.octets).digest() != signed.named.digest
    ):  # sha1: RFC 2634 has no other
        raise SignatureError("time stamp: its signature is for another certificate than the one that came with it")
    digest = DIGESTS.get(signed.digest_algorithm)
    if digest is None:
        raise PolicyError(f"time stamp: digest algorithm {signed.digest_algorithm} is not judged here")
    if hashlib.new(digest, token.content).digest() != signed.content_digest:
        raise SignatureError("time stamp: what it states is not what its authority signed")
    key = _judged_key(signer)
    try:
        if isinstance(key, rsa.RSAPublicKey) and signed.algorithm in _BY_RSA:
            by = _BY_RSA[signed.algorithm] or digest
            key.verify(signed.value, signed.attributes, padding.PKCS1v15(), _HASHES[by])
        elif isinstance(key, ec.EllipticCurvePublicKey) and signed.algorithm in _BY_EC:
            key.verify(signed.value, signed.attributes, ec.ECDSA(_HASHES[_BY_EC[signed.algorithm]]))
        else:
            raise PolicyError(f"time stamp: a signature of algorithm {signed.algorithm} is not judged here")
    except InvalidSignature:
        raise SignatureError("time stamp: its signature does not verify by the certificate that came with it") from None
    return signer


def _judged_key(certificate: Certificate) -> rsa.RSAPublicKey | ec.EllipticCurvePublicKey:
    """Return the key of a certificate if signatures under it are judged here."""
    try:
        key = certificate.x509.public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if isinstance(key, rsa.RSAPublicKey) and MIN_RSA <= key.key_size <= MAX_RSA:
        return key
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, _CURVES):
        return key
    raise PolicyError(
        f"the key of {certificate.name[:80]!r} is not judged here: expected RSA of {MIN_RSA} to {MAX_RSA} bits, "
        "or ECDSA on P-256, P-384 or P-521"
    )


def check_chain(token: TimeToken, signer: Certificate, roots: Sequence[Certificate]) -> None:
    """Check that one of these roots vouches for the signer, at the token's time, as a time authority.

    Raises:
        PolicyError: none does.
    """
    at = token.states.time
    usage, critical = signer.extension(x509.ExtendedKeyUsage)
    if usage is None or not critical or list(usage) != [_TIME_STAMPING]:
        raise PolicyError(
            f"{signer.name[:80]!r} is no certificate for time stamping alone (extended key usage, critical)"
        )
    key_usage, _ = signer.extension(x509.KeyUsage)
    if key_usage is not None and not (key_usage.digital_signature or key_usage.content_commitment):
        raise PolicyError(f"{signer.name[:80]!r} is a certificate for other uses than signing")
    _check_own(signer, at)
    embedded = [certificate for raw in token.certificates if raw != signer.octets for certificate in _readable(raw)]
    whys: list[str] = []
    below = {signer.octets}
    reached = [(signer, 0)]
    for certificate, depth in reached:  # it grows: each certificate is reached once, by the shortest way
        for issuer in [*roots, *embedded]:
            if issuer.octets in below or not _has_issued(issuer, certificate):
                continue
            why = _why_not(issuer, depth, at)
            if why:
                whys.append(why)
            elif issuer in roots:
                return
            else:
                below.add(issuer.octets)
                reached.append((issuer, depth + 1))
    known = "; ".join(whys) or "its chain leads to none of the roots that are trusted"
    raise PolicyError(f"nobody who is trusted vouches for {signer.name[:80]!r}: {known}")


def _check_own(certificate: Certificate, at: datetime) -> None:
    """Check what holds for any certificate of a chain."""
    if not certificate.is_valid(at):
        raise PolicyError(f"the certificate of {certificate.name[:80]!r} was not valid at {at:%Y-%m-%dT%H:%M:%SZ}")
    unread = [
        one.oid.dotted_string for one in certificate.extensions if one.critical and not isinstance(one.value, _READ)
    ]
    if unread:
        raise PolicyError(f"the certificate of {certificate.name[:80]!r} has the critical extension {unread[0]}")


def _readable(raw: bytes) -> Iterable[Certificate]:
    try:
        return [read_certificate(raw)]
    except FormatError:
        return []  # it came along and is needed by nobody, or the chain breaks off here


def _has_issued(issuer: Certificate, certificate: Certificate) -> bool:
    try:
        _judged_key(issuer)
        by = certificate.x509.signature_hash_algorithm
        certificate.x509.verify_directly_issued_by(issuer.x509)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm, PolicyError):
        return False
    return by is not None and by.name in _HASHES


def _why_not(issuer: Certificate, depth: int, at: datetime) -> str:
    """Return why a certificate cannot vouch for one that has `depth` authorities under it, "" if it can."""
    constraints, _ = issuer.extension(x509.BasicConstraints)
    usage, _ = issuer.extension(x509.KeyUsage)
    extended, _ = issuer.extension(x509.ExtendedKeyUsage)
    if constraints is None or not constraints.ca or (usage is not None and not usage.key_cert_sign):
        return f"{issuer.name[:80]!r} is no authority for certificates"
    if depth > (MAX_DEPTH if constraints.path_length is None else min(constraints.path_length, MAX_DEPTH)):
        return f"more authorities stand under {issuer.name[:80]!r} than may"
    if extended is not None and not {_TIME_STAMPING, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE} & set(extended):
        return f"{issuer.name[:80]!r} is an authority for other uses"
    try:
        _check_own(issuer, at)
    except PolicyError as problem:
        return str(problem)
    return ""
