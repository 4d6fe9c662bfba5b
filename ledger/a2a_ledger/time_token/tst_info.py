"""What a time token states, RFC 3161 section 2.4.2: which digest, when, by which policy; and the request for it. Pure.

docs/format.md section 6.5.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Final

from a2a_ledger.errors import FormatError
from a2a_ledger.time_token import der
from a2a_ledger.time_token.der import Reader, encode, encode_integer, encode_oid

NONCE_SIZE: Final = 16
"""Octets of randomness in a nonce."""

SHA256: Final = "2.16.840.1.101.3.4.2.1"

_TIME = re.compile(rb"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(?:\.(\d{0,8}[1-9]))?Z")
_LAST_YEAR = 9000  # so that no sum of times leaves what a datetime can hold
_DAY = 86_400
_THOUSAND = 1000
_WHAT = "time token"


@dataclass(frozen=True, slots=True)
class Statement:
    """What an authority states in one token.

    Attributes:
        imprint: the SHA-256 that it was shown.
        time: when, by its clock, in UTC; a fraction finer than microseconds is rounded up.
        accuracy: how far its clock may be off, as it states.
        policy: object identifier of the policy that it works by.
        nonce: the nonce of the request, None if there is none.
    """

    imprint: bytes
    time: datetime
    accuracy: timedelta
    policy: str
    nonce: int | None

    @property
    def latest(self) -> datetime:
        """Return the time by which the digest had been shown, whichever way the clock was off."""
        return self.time + self.accuracy


def request(content: bytes, nonce: int, policy: str | None = None) -> bytes:
    """Return the request for a token over these octets, RFC 3161 section 2.4.1; it asks for the certificate.

    Args:
        content: what is to be stamped; its SHA-256 goes out, nothing else.
        nonce: a random number of `NONCE_SIZE` octets.
        policy: object identifier of the policy to ask for.

    Raises:
        FormatError: `policy` is none.
    """
    imprint = encode(
        der.SEQUENCE,
        encode(der.SEQUENCE, encode_oid(SHA256), encode(der.NULL)),
        encode(der.OCTETS, sha256(content).digest()),
    )
    asked = encode_oid(policy) if policy else b""
    certificate = encode(der.BOOLEAN, b"\xff")
    return encode(der.SEQUENCE, encode_integer(1), imprint, asked, encode_integer(nonce), certificate)


def read_statement(content: bytes) -> Statement:
    """Read TSTInfo, its members in their one order.

    Raises:
        FormatError: it is none in DER, or over another digest than SHA-256.
    """
    file = Reader(content, _WHAT)
    info = file.inside(der.SEQUENCE)
    file.end()
    if info.integer() != 1:
        raise FormatError(f"{_WHAT}: expected TSTInfo of version 1")
    policy = info.oid()
    shown = info.inside(der.SEQUENCE)
    algorithm = shown.inside(der.SEQUENCE).oid()
    imprint = shown.take(der.OCTETS).content
    shown.end()
    if algorithm != SHA256 or len(imprint) != sha256().digest_size:
        raise FormatError(f"{_WHAT}: expected it over a SHA-256, found one by algorithm {algorithm}")
    info.integer()  # serial number
    time = _time(info.take(der.TIME).content)
    accuracy = _accuracy(info.inside(der.SEQUENCE)) if info.tag == der.SEQUENCE else timedelta()
    info.flag()  # ordering, among tokens of one authority: nothing here rests on it
    nonce = info.integer() if info.tag == der.INTEGER else None
    info.take_if(der.context(0))  # its name; whose it is, its certificate says
    if info.tag == der.context(1):
        _check_extensions(info.inside(der.context(1)))
    info.end()
    return Statement(imprint, time, accuracy, policy, nonce)


def _time(content: bytes) -> datetime:
    odd = FormatError(f"{_WHAT}: expected a time as YYYYMMDDhhmmss[.f]Z, found {content[:40]!r}")
    match = _TIME.fullmatch(content)
    if match is None or int(match[1]) > _LAST_YEAR:
        raise odd
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    try:
        whole = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise odd from None
    fraction = (match[7] or b"0").decode()
    return whole + timedelta(microseconds=-(-int(fraction) * 10**6 // 10 ** len(fraction)))


def _accuracy(reader: Reader) -> timedelta:
    seconds = reader.integer() if reader.tag == der.INTEGER else 0
    parts = [reader.take_if(der.primitive(number)) for number in (0, 1)]
    millis, micros = (reader.number(part.content) if part else 0 for part in parts)
    reader.end()
    if not (0 <= seconds <= _DAY and 0 <= millis < _THOUSAND and 0 <= micros < _THOUSAND):
        raise FormatError(f"{_WHAT}: expected an accuracy of at most a day, found {seconds} s {millis} ms {micros} µs")
    return timedelta(seconds=seconds, milliseconds=millis, microseconds=micros)


def _check_extensions(reader: Reader) -> None:
    while reader.tag is not None:
        extension = reader.inside(der.SEQUENCE)
        kind = extension.oid()
        if extension.flag():
            raise FormatError(f"{_WHAT}: has the critical extension {kind}, which is not read")
