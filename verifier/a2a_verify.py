#!/usr/bin/env python3
"""Verify an evidence bundle of a2a-ledger with this one file: Python 3.11 or later, and the library `cryptography`.

    python a2a_verify.py BUNDLE.zip [--policy FILE] [--trust VKEY]... [--earlier NOTE]...
                         [--format text|json] [--require LETTERS]

It is written from docs/format.md, numbered like its section 12, and shares no line with the program that wrote the
bundle. It reads its arguments and nothing else: no network, nothing written, nothing run or taken for a reason to
believe that a bundle holds.

Each claim is VALID, INVALID, or NOT PROVEN with what would settle it. Claim R is never VALID here: judging again needs
the whole book of rules. What this file does of it is said in its detail, and a contradiction that it meets makes R
INVALID. So `verified` needs `--require I,L,P,C2`, and says then nothing of R.

Exit 0: verified, 1: invalid, 2: the command or what the reader gave cannot be used, 3: not proven.
Limits: those of docs/format.md 11.1, and 20,000 signature checks and 20,000 holes a bundle.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import hashlib
import hmac
import json
import math
import os
import re
import string
import struct
import sys
import zlib
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, TypeVar, cast

try:
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.hashes import SHA256, SHA384, SHA512, HashAlgorithm
except ImportError:
    sys.stderr.write("a2a_verify: the Python library `cryptography` is missing: pip install cryptography\n")
    sys.exit(2)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | bool | None"
Object: TypeAlias = "dict[str, Json]"


class RefusedError(Exception):
    """What was read is not what docs/format.md says."""


class UnprovenError(Exception):
    """Nothing speaks against what was read, and nobody whom the reader trusts speaks for it."""


class UsageError(Exception):
    """What the reader gave cannot be used."""


def sha256(*pieces: bytes) -> bytes:
    """Return the SHA-256 of the pieces, one after the other."""
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.digest()


# ======== Canonical JSON (docs/format.md 3.2)

MAX_INTEGER: Final = 2**53 - 1
MAX_DEPTH: Final = 16


def read_json(data: bytes) -> Json:
    """Read octets that are the one spelling of a value; refuse all else."""
    try:
        value = cast(
            "Json",
            json.loads(data.decode(), parse_int=_integer, parse_float=_no_number, parse_constant=_no_number),
        )
        again = write_json(value)
    except (ValueError, RecursionError) as problem:
        raise RefusedError(f"is no canonical JSON: {problem!s:.120}") from None
    if again != data:
        raise RefusedError("is no canonical JSON: its own re-serialisation differs from it")
    return value


def write_json(value: Json) -> bytes:
    """Return the RFC 8785 octets of a value of the record profile."""
    _check_json(value, MAX_DEPTH)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()


def _integer(token: str) -> int:
    if len(token) > 17:  # noqa: PLR2004 - a sign and the sixteen digits of 2^53-1
        raise ValueError("a number out of range")
    return int(token)


def _no_number(token: str) -> Json:
    raise ValueError(f"{token:.20} is no integer")


def _check_json(value: object, depth: int) -> None:
    if isinstance(value, dict):
        members = cast("dict[object, object]", value)
        if depth == 0 or not all(isinstance(key, str) and key.isascii() for key in members):
            raise ValueError("nested too deep, or a key outside of ASCII")
        for member in members.values():
            _check_json(member, depth - 1)
    elif isinstance(value, list):
        if depth == 0:
            raise ValueError("nested too deep")
        for item in cast("list[object]", value):
            _check_json(item, depth - 1)
    elif isinstance(value, int) and not isinstance(value, bool) and abs(value) > MAX_INTEGER:
        raise ValueError("a number out of range")


def same(one: Json, other: Json) -> bool:
    """Say whether two values are one, octet for octet: 1 is not true."""
    return write_json(one) == write_json(other)


def as_object(value: Json) -> Object:
    """Return an object; of what is none, an empty one."""
    return value if isinstance(value, dict) else {}


def number(value: Json) -> int | None:
    """Return an integer; None for what is none, and true and false are none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


# ======== Keys and signatures (6.1)

_P: Final = 2**255 - 19  # RFC 8032, section 5.1
_D: Final = -121665 * pow(121666, -1, _P) % _P
NOTE_KEY: Final = 1
COSIGNER: Final = 4
ECDSA: Final = 2
TREE_HEAD: Final = 5
ML_DSA: Final = 6
ROLES: Final = ("log", "statement", "export", "witness", "peer")
MAX_CHECKS: Final = 20_000


class _Budget:
    """How many signatures may still be checked: a hostile bundle can ask for millions."""

    left = MAX_CHECKS


@lru_cache(maxsize=4096)
def key_problem(public: bytes) -> str:
    """Say why a public key is refused; "" if it is a canonical point of large order."""
    y = int.from_bytes(public, "little") & (2**255 - 1)
    if len(public) != 32 or y >= _P:  # noqa: PLR2004 - RFC 8032: 32 octets
        return "is not canonical"
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if x * x % _P != square:
        x = x * pow(2, (_P - 1) // 4, _P) % _P
    if x * x % _P != square:
        return "is no point of the curve"
    for _ in range(3):  # a point whose order divides 8 is the neutral one after three doublings
        product = _D * x * x % _P * y % _P * y % _P
        x, y = (
            2 * x * y * pow(1 + product, -1, _P) % _P,
            (y * y + x * x) * pow(1 - product, -1, _P) % _P,
        )
    return "has small order" if (x, y) == (0, 1) else ""


class Key(NamedTuple):
    """A C2SP verifier key; only types 01 and 04 can verify anything here."""

    name: str
    id: str
    kind: int
    public: bytes

    @property
    def vkey(self) -> str:
        """Return the key as text."""
        return f"{self.name}+{self.id}+{base64.b64encode(bytes([self.kind]) + self.public).decode()}"

    def verifies(self, signature: bytes, message: bytes) -> bool:
        """Say whether this key made an Ed25519 signature."""
        if self.kind not in {NOTE_KEY, COSIGNER} or len(signature) != 64:  # noqa: PLR2004 - RFC 8032
            return False
        _Budget.left -= 1
        if _Budget.left < 0:
            raise RefusedError(f"more than {MAX_CHECKS} signatures would have to be checked")
        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True


def read_base64(text: str) -> bytes:
    """Read standard base64 that has one spelling."""
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (ValueError, binascii.Error):
        raise RefusedError(f"{text[:40]!a} is no base64") from None
    if base64.b64encode(data).decode() != text:
        raise RefusedError(f"{text[:40]!a} is not the one spelling of its octets in base64")
    return data


def is_key_name(name: str) -> bool:
    """Say whether C2SP signed-note allows this name for a key."""
    utf8 = not any("\ud800" <= char <= "\udfff" for char in name)
    return utf8 and bool(name) and "+" not in name and not any(char.isspace() for char in name)


def _key_id(name: str, kind: int, public: bytes) -> str:
    if kind == ECDSA:
        return sha256(public)[:4].hex()
    octets = sha256(public) if kind == TREE_HEAD else public
    return sha256(name.encode(), b"\n", bytes([kind]), octets)[:4].hex()


def read_vkey(text: str) -> Key:
    """Read a vkey; its key id is checked, and a key under which a signature proves nothing is refused."""
    match text.split("+", 2):
        case [name, key_id, encoded] if is_key_name(name) and re.fullmatch("[0-9a-f]{8}", key_id):
            blob = read_base64(encoded)
        case _:
            raise RefusedError(f"{text[:80]!a} is not <name>+<8 hex digits>+<base64>")
    kind, public = (blob[0], blob[1:]) if blob else (0, b"")
    if kind in {NOTE_KEY, COSIGNER}:
        problem = key_problem(public)
    elif kind in {ECDSA, TREE_HEAD, ML_DSA}:  # types of signed-note that do not verify here
        problem = ""
    else:
        problem = "is of no known type"
    if not problem and _key_id(name, kind, public) != key_id:
        problem = "has another key id than it states"
    if problem:
        raise RefusedError(f"the key {text[:80]!a} {problem}")
    return Key(name, key_id, kind, public)


# ======== The tree (5)


def leaf_hash(leaf: bytes) -> bytes:
    """Return the hash of a leaf in the tree."""
    return sha256(b"\x00", leaf)


def root_by_inclusion(index: int, size: int, leaf: bytes, path: Sequence[bytes]) -> bytes | None:
    """Return the root that a path leads to, RFC 9162 section 2.1.3.2; None if the path has another length."""
    if not 0 <= index < size:
        return None
    at, last, found = index, size - 1, leaf
    for sibling in path:
        if last == 0:
            return None
        if at % 2 or at == last:
            found = sha256(b"\x01", sibling, found)
            while at and not at % 2:
                at, last = at >> 1, last >> 1
        else:
            found = sha256(b"\x01", found, sibling)
        at, last = at >> 1, last >> 1
    return found if last == 0 else None


def is_consistent(old: tuple[int, bytes], new: tuple[int, bytes], path: Sequence[bytes]) -> bool:
    """Say whether a path proves that the new head extends the old one, RFC 9162 section 2.1.4.2."""
    (old_size, old_root), (new_size, new_root) = old, new
    if old_size == new_size:
        return not path and old_root == new_root
    if not 0 < old_size < new_size:
        return False
    rest = list(path)
    if old_size & (old_size - 1) == 0:
        rest.insert(0, old_root)
    if not rest:
        return False
    at, last = old_size - 1, new_size - 1
    while at % 2:
        at, last = at >> 1, last >> 1
    made_old = made_new = rest[0]
    for sibling in rest[1:]:
        if last == 0:
            return False
        if at % 2 or at == last:
            made_old, made_new = sha256(b"\x01", sibling, made_old), sha256(b"\x01", sibling, made_new)
            while at and not at % 2:
                at, last = at >> 1, last >> 1
        else:
            made_new = sha256(b"\x01", made_new, sibling)
        at, last = at >> 1, last >> 1
    return last == 0 and made_old == old_root and made_new == new_root


# ======== Signed notes, checkpoints and proofs (6.1; C2SP signed-note, tlog-checkpoint, tlog-cosignature, tlog-proof)

MAX_NOTE: Final = 1_000_000
MAX_LINES: Final = 100
MAX_SIZE: Final = 2**63 - 1


class Line(NamedTuple):
    """One signature line of a note."""

    name: str
    key_id: str
    signature: bytes


class Head(NamedTuple):
    """A checkpoint as it was read, not yet verified."""

    origin: str
    size: int
    root: bytes
    text: str  # what is signed
    lines: tuple[Line, ...]


class Signed(NamedTuple):
    """A signature that verified; a cosignature states a time."""

    key: Key
    time: int | None


def read_text(data: bytes) -> str:
    """Read UTF-8 without control characters but line feeds."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise RefusedError("is no UTF-8 text") from None
    if len(data) > MAX_NOTE or any(char < " " and char != "\n" for char in text):
        raise RefusedError("is too large, or holds control characters")
    return text


def read_decimal(text: str) -> int:
    """Read a decimal number without leading zeros, below 2^63."""
    if not re.fullmatch("0|[1-9][0-9]{0,18}", text) or int(text) > MAX_SIZE:
        raise RefusedError(f"{text[:40]!a} is no decimal number below 2^63")
    return int(text)


def read_hash(text: str) -> bytes:
    """Read the base64 of 32 octets."""
    digest = read_base64(text)
    if len(digest) != 32:  # noqa: PLR2004 - SHA-256
        raise RefusedError(f"{text[:60]!a} is no hash of 32 octets")
    return digest


def read_head(note: bytes) -> Head:
    """Read a signed note that holds a checkpoint."""
    whole = read_text(note)
    text, middle, tail = whole.rpartition("\n\n")
    lines = tail.split("\n")
    if not middle or lines[-1] or not 2 <= len(lines) <= MAX_LINES + 1:  # noqa: PLR2004 - a line and its end
        raise RefusedError("is not a text, an empty line, and up to 100 signature lines")
    text += "\n"
    stated = text.split("\n")[:-1]
    if len(stated) < 3 or "" in stated:  # noqa: PLR2004 - origin, size, root
        raise RefusedError("is no checkpoint: expected lines for origin, size and root")
    read = tuple(_read_line(line) for line in lines[:-1])
    return Head(stated[0], read_decimal(stated[1]), read_hash(stated[2]), text, read)


def _read_line(line: str) -> Line:
    match line.split(" "):
        case ["—", name, encoded] if is_key_name(name):
            blob = read_base64(encoded)
        case _:
            raise RefusedError(f"{line[:60]!a} is no signature line")
    if len(blob) < 5:  # noqa: PLR2004 - a key id and at least one octet
        raise RefusedError(f"{line[:60]!a} holds no signature")
    return Line(name, blob[:4].hex(), blob[4:])


def open_head(head: Head, keys: Iterable[Key]) -> list[Signed]:
    """Verify a checkpoint by known keys; one named as its origin must have signed, and none of them wrongly."""
    known = {(key.name, key.id): key for key in keys if key.kind in {NOTE_KEY, COSIGNER}}
    found: list[Signed] = []
    for line in head.lines:
        key = known.get((line.name, line.key_id))
        if key is None:
            continue
        message, signature, time = head.text.encode(), line.signature, None
        if key.kind == COSIGNER:
            time, signature = int.from_bytes(signature[:8], "big"), signature[8:]
            message = b"cosignature/v1\ntime %d\n" % time + message
        if (time or 0) > MAX_SIZE or not key.verifies(signature, message):
            raise RefusedError(f"the signature of {key.name}+{key.id} does not verify")
        found.append(Signed(key, time))
    if not any(signed.key.kind == NOTE_KEY and signed.key.name == head.origin for signed in found):
        raise RefusedError(f"no known key of log {head.origin[:80]!a} signed it")
    return found


def read_proof(data: bytes, note: bytes) -> tuple[int, list[bytes]]:
    """Read a tlog-proof@v1 that leads to exactly this note, without an extra line: index and path."""
    top, _, rest = read_text(data).partition("\n\n")
    lines = top.split("\n")
    if rest.encode() != note:
        raise RefusedError("leads to another checkpoint than data/log/checkpoint")
    if lines[0] != "c2sp.org/tlog-proof@v1" or len(lines) < 2 or not lines[1].startswith("index "):  # noqa: PLR2004
        raise RefusedError("is no tlog-proof@v1 without an extra line")
    return read_decimal(lines[1].removeprefix("index ")), [read_hash(line) for line in lines[2:]]


# ======== Time tokens (6.5; RFC 3161, RFC 5652, RFC 5280)

MAX_TOKEN: Final = 64 << 10
MAX_ROOT: Final = 16 << 10
MAX_CHAIN: Final = 5
MAX_CERTIFICATES: Final = 10
_HASHES: Final[dict[str, tuple[str, HashAlgorithm]]] = {
    "608648016503040201": ("sha256", SHA256()),
    "608648016503040202": ("sha384", SHA384()),
    "608648016503040203": ("sha512", SHA512()),
}
_SIGNATURES: Final[dict[str, tuple[str, HashAlgorithm | None]]] = {
    "2a864886f70d010101": ("rsa", None),
    "2a864886f70d01010b": ("rsa", SHA256()),
    "2a864886f70d01010c": ("rsa", SHA384()),
    "2a864886f70d01010d": ("rsa", SHA512()),
    "2a8648ce3d040302": ("ec", SHA256()),
    "2a8648ce3d040303": ("ec", SHA384()),
    "2a8648ce3d040304": ("ec", SHA512()),
}
_SIGNED_DATA: Final = "2a864886f70d010702"
_TST_INFO: Final = "2a864886f70d0109100104"
_CONTENT_TYPE: Final = "2a864886f70d010903"
_MESSAGE_DIGEST: Final = "2a864886f70d010904"
_ESS_CERT: Final = "2a864886f70d010910020c"
_ESS_CERT_2: Final = "2a864886f70d010910022f"
_STAMPING: Final = "1.3.6.1.5.5.7.3.8"
_ANY_USE: Final = "2.5.29.37.0"
_GENERAL_TIME = re.compile(r"([0-8]\d{3}|9000)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\.\d{0,8}[1-9])?Z", re.ASCII)
_LOOKED_AT = (
    x509.BasicConstraints,
    x509.KeyUsage,
    x509.ExtendedKeyUsage,
    x509.SubjectAlternativeName,
    x509.CertificatePolicies,
)


class Der:
    """A cursor over values in DER; object identifiers are compared by their octets in hex."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def next_tag(self) -> int:
        """Return the tag of the next value, -1 at the end."""
        return self.data[0] if self.data else -1

    def pop(self, tag: int) -> tuple[bytes, bytes]:
        """Remove the next value, which has this tag; return its content, and all of it."""
        data = self.data
        if len(data) < 2 or data[0] != tag or tag & 31 == 31:  # noqa: PLR2004 - a tag and a length; long tags
            raise RefusedError(f"is not in DER as it should be: no value of tag {tag:02x} where one belongs")
        size, start = data[1], 2
        if size > 127:  # noqa: PLR2004 - X.690, 8.1.3.5: the long form
            count = size - 128
            start += count
            size = int.from_bytes(data[2:start], "big")
            if not 0 < count < 5 or len(data) < start or size < 128 or size >> 8 * (count - 1) == 0:  # noqa: PLR2004
                raise RefusedError("is not in DER: a length is spelled in another way than its one")
        if len(data) < start + size:
            raise RefusedError("is not in DER: it breaks off")
        self.data = data[start + size :]
        return data[start : start + size], data[: start + size]

    def enter(self, tag: int) -> Der:
        """Remove the next value and return a cursor over its content."""
        return Der(self.pop(tag)[0])

    def skip(self, tag: int) -> None:
        """Remove the next value if it has this tag."""
        if self.next_tag() == tag:
            self.pop(tag)

    def oid(self) -> str:
        """Remove an object identifier."""
        content = self.pop(6)[0]
        ends = [octet < 128 for octet in content]  # noqa: PLR2004 - X.690, 8.19: bit 8 says that more follows
        begins = [True, *ends[:-1]]
        spare = any(begin and octet == 128 for begin, octet in zip(begins, content, strict=False))  # noqa: PLR2004
        if not content or not ends[-1] or spare:
            raise RefusedError("is not in DER: an object identifier is spelled in another way than its one")
        return content.hex()

    def integer(self, tag: int = 2) -> int:
        """Remove an integer."""
        content = self.pop(tag)[0]
        value = int.from_bytes(content, "big", signed=True)
        if not content or (len(content) > 1 and -128 <= int.from_bytes(content[:2], "big", signed=True) < 128):  # noqa: PLR2004
            raise RefusedError("is not in DER: a number is spelled in another way than its one")
        return value

    def truth(self) -> bool:
        """Remove a BOOLEAN with the default FALSE, if it is there."""
        if self.next_tag() != 1:
            return False
        if self.pop(1)[0] != b"\xff":
            raise RefusedError("is not in DER: a FALSE that is spelled out")
        return True

    def done(self) -> None:
        """Refuse what is left."""
        if self.data:
            raise RefusedError("holds something where nothing belongs")


class Token(NamedTuple):
    """A time token as it was read: what it states, and its one signature."""

    imprint: bytes
    time: datetime
    latest: int  # second; its accuracy added, rounded up
    content: bytes
    digest: str  # algorithm, an object identifier in hex
    stated_digest: bytes
    attributes: bytes  # what is signed
    algorithm: str  # of the signature, in hex
    signature: bytes
    signer: bytes  # certificate
    signer_hash: tuple[str, bytes]
    certificates: list[bytes]


def read_token(data: bytes) -> Token:
    """Read the answer of a timestamp authority."""
    if len(data) > MAX_TOKEN:
        raise RefusedError("is too large for a time token")
    whole = Der(data)
    response = whole.enter(0x30)
    whole.done()
    _check_status(response.enter(0x30))
    info = response.enter(0x30)
    response.done()
    if info.oid() != _SIGNED_DATA:
        raise RefusedError("holds no SignedData")
    explicit = info.enter(0xA0)
    info.done()
    signed = explicit.enter(0x30)
    explicit.done()
    if signed.integer() != 3:  # noqa: PLR2004 - RFC 5652, 5.1
        raise RefusedError("holds SignedData of another version")
    signed.pop(0x31)
    inner = signed.enter(0x30)
    if inner.oid() != _TST_INFO:
        raise RefusedError("states something else than a time")
    octets = inner.enter(0xA0)
    inner.done()
    content = octets.pop(4)[0]
    octets.done()
    certificates: list[bytes] = []
    if signed.next_tag() == 0xA0:  # noqa: PLR2004 - certificates
        embedded = signed.enter(0xA0)
        while embedded.data:
            certificates.append(embedded.pop(embedded.next_tag())[1])
    signed.skip(0xA1)
    signers = signed.enter(0x31)
    signed.done()
    if len(certificates) > MAX_CERTIFICATES:
        raise RefusedError("carries too many certificates")
    return _read_signer(signers, content, certificates)


def _check_status(status: Der) -> None:
    if status.integer() not in {0, 1}:
        raise RefusedError("is a refusal and no time token")
    if status.next_tag() == 0x30:  # noqa: PLR2004 - what it says in words
        words = status.enter(0x30)
        while words.data:
            words.pop(words.next_tag())
    status.skip(3)
    status.done()


def _read_signer(signers: Der, content: bytes, certificates: list[bytes]) -> Token:
    signer = signers.enter(0x30)
    signers.done()
    if signer.integer() != 1:
        raise RefusedError("does not name its signer by issuer and serial number")
    sid = signer.enter(0x30)
    name = (sid.pop(0x30)[1], sid.integer())
    sid.done()
    digest = signer.enter(0x30).oid()
    signed = signer.pop(0xA0)[1]
    algorithm = signer.enter(0x30).oid()
    signature = signer.pop(4)[0]
    signer.skip(0xA1)
    signer.done()
    attributes = _read_attributes(Der(signed).enter(0xA0))
    if attributes.get(_CONTENT_TYPE) != bytes.fromhex("060b" + _TST_INFO) or _MESSAGE_DIGEST not in attributes:
        raise RefusedError("signs another type, or no digest")
    own = [one for one in certificates if _issuer_and_serial(one) == name]
    if len(own) != 1:
        raise RefusedError(f"has the certificate of its signer {len(own)} times")
    imprint, time, latest = _read_statement(content)
    return Token(
        imprint=imprint,
        time=time,
        latest=latest,
        content=content,
        digest=digest,
        stated_digest=Der(attributes[_MESSAGE_DIGEST]).pop(4)[0],
        attributes=b"\x31" + signed[1:],  # RFC 5652, 5.4: as a SET, not under its tag of the context
        algorithm=algorithm,
        signature=signature,
        signer=own[0],
        signer_hash=_read_signer_hash(attributes),
        certificates=certificates,
    )


def _read_attributes(cursor: Der) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    while cursor.data:
        attribute = cursor.enter(0x30)
        kind = attribute.oid()
        values = attribute.enter(0x31)
        attribute.done()
        value = values.pop(values.next_tag())[1]
        values.done()
        if kind in found:
            raise RefusedError("has a signed attribute twice")
        found[kind] = value
    return found


def _read_signer_hash(attributes: Mapping[str, bytes]) -> tuple[str, bytes]:
    """Return how the attributes name the signer's certificate."""
    kind = _ESS_CERT_2 if _ESS_CERT_2 in attributes else _ESS_CERT
    if kind not in attributes:
        raise RefusedError("does not sign which certificate it is under")
    first = Der(attributes[kind]).enter(0x30).enter(0x30).enter(0x30)
    if kind == _ESS_CERT:
        return "sha1", first.pop(4)[0]
    algorithm = first.enter(0x30).oid() if first.next_tag() == 0x30 else "608648016503040201"  # noqa: PLR2004 - SEQUENCE
    if algorithm not in _HASHES:
        raise RefusedError("names its certificate by an unknown hash")
    return _HASHES[algorithm][0], first.pop(4)[0]


def _issuer_and_serial(certificate: bytes) -> tuple[bytes, int]:
    body = Der(certificate).enter(0x30).enter(0x30)
    body.skip(0xA0)
    serial = body.integer()
    body.pop(0x30)
    return body.pop(0x30)[1], serial


def _read_statement(content: bytes) -> tuple[bytes, datetime, int]:
    """Read a TSTInfo: imprint, time, and the second by which the imprint was there."""
    whole = Der(content)
    info = whole.enter(0x30)
    whole.done()
    if info.integer() != 1:
        raise RefusedError("states something of another version")
    info.oid()
    shown = info.enter(0x30)
    algorithm = shown.enter(0x30).oid()
    imprint = shown.pop(4)[0]
    shown.done()
    if algorithm != "608648016503040201" or len(imprint) != 32:  # noqa: PLR2004 - SHA-256
        raise RefusedError("is over another digest than SHA-256")
    info.integer()
    match = _GENERAL_TIME.fullmatch(info.pop(0x18)[0].decode("ascii", errors="replace"))
    if match is None:
        raise RefusedError("states no time")
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    try:
        time = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise RefusedError("states a time that never is") from None
    fraction = int((match[7] or ".0")[1:].ljust(9, "0"))  # billionths
    off = 0
    if info.next_tag() == 0x30:  # noqa: PLR2004 - accuracy, a SEQUENCE
        off = _read_accuracy(info.enter(0x30))
    info.truth()
    if info.next_tag() == 2:  # noqa: PLR2004 - nonce, an INTEGER
        info.integer()
    info.skip(0xA0)
    if info.next_tag() == 0xA1:  # noqa: PLR2004 - extensions
        extensions = info.enter(0xA1)
        while extensions.data:
            extension = extensions.enter(0x30)
            extension.oid()
            if extension.truth():
                raise RefusedError("has a critical extension")
    info.done()
    exact = time + timedelta(microseconds=-(-fraction // 1000))
    billionths = -(-fraction // 1000) * 1000 + off
    return imprint, exact, int(time.timestamp()) - (-billionths // 10**9)


def _read_accuracy(cursor: Der) -> int:
    """Return an accuracy in billionths of a second."""
    seconds = cursor.integer() if cursor.next_tag() == 2 else 0  # noqa: PLR2004 - an INTEGER
    millis = cursor.integer(0x80) if cursor.next_tag() == 0x80 else 0  # noqa: PLR2004 - its tag
    micros = cursor.integer(0x81) if cursor.next_tag() == 0x81 else 0  # noqa: PLR2004 - its tag
    cursor.done()
    if not (0 <= seconds <= 86_400 and 0 <= millis < 1000 and 0 <= micros < 1000):  # noqa: PLR2004 - RFC 3161, 2.4.2
        raise RefusedError("states an accuracy that is none")
    return (seconds * 10**6 + millis * 1000 + micros) * 1000


def read_certificate(data: bytes) -> x509.Certificate:
    """Read a certificate in DER."""
    try:
        certificate = x509.load_der_x509_certificate(data)
        tuple(certificate.extensions)
        certificate.subject.rfc4514_string()
    except Exception:  # noqa: BLE001 - the library raises many errors for what a stranger may have written
        raise RefusedError("holds a certificate that is none") from None
    return certificate


def _usable_key(certificate: x509.Certificate) -> rsa.RSAPublicKey | ec.EllipticCurvePublicKey | None:
    """Return the key of a certificate, None if signatures under it are not judged here."""
    try:
        key = certificate.public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None
    if isinstance(key, rsa.RSAPublicKey) and 2048 <= key.key_size <= 8192:  # noqa: PLR2004 - bits
        return key
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1 | ec.SECP384R1 | ec.SECP521R1):
        return key
    return None


def check_token(token: Token) -> x509.Certificate:
    """Check that a token holds by the certificate that came with it; return that."""
    certificate = read_certificate(token.signer)
    name, digest = token.signer_hash
    if hashlib.new(name, token.signer).digest() != digest:
        raise RefusedError("was signed under another certificate than the one that came with it")
    if token.digest not in _HASHES:
        raise UnprovenError("its digest algorithm is not judged here")
    by_digest = _HASHES[token.digest]
    if hashlib.new(by_digest[0], token.content).digest() != token.stated_digest:
        raise RefusedError("does not state what was signed")
    key, (kind, hashed) = _usable_key(certificate), _SIGNATURES.get(token.algorithm, ("", None))
    try:
        if isinstance(key, rsa.RSAPublicKey) and kind == "rsa":
            key.verify(token.signature, token.attributes, padding.PKCS1v15(), hashed or by_digest[1])
        elif isinstance(key, ec.EllipticCurvePublicKey) and kind == "ec" and hashed is not None:
            key.verify(token.signature, token.attributes, ec.ECDSA(hashed))
        else:
            raise UnprovenError("its key, or its algorithm of signing, is not judged here")
    except InvalidSignature:
        raise RefusedError("is not signed by the certificate that came with it") from None
    return certificate


def check_vouched(token: Token, signer: x509.Certificate, roots: Sequence[bytes]) -> None:
    """Check that a root of the reader's vouches for a signer, at the token's time, as a timestamp authority."""
    uses = [usage.dotted_string for usage in _extension(signer, x509.ExtendedKeyUsage) or ()]
    critical = any(one.critical for one in signer.extensions if isinstance(one.value, x509.ExtendedKeyUsage))
    if uses != [_STAMPING] or not critical:
        raise UnprovenError("its certificate is not for time stamping alone")
    usage = _extension(signer, x509.KeyUsage)
    if usage is not None and not usage.digital_signature and not usage.content_commitment:
        raise UnprovenError("its certificate is not for signing")
    if not _counts(signer, token.time):
        raise UnprovenError("its certificate was not valid at its time, or says what is not read here")
    if not _leads_to_root(signer, [read_certificate(root) for root in roots], _that_came(token), token.time):
        raise UnprovenError("none of the roots that you named vouches for its certificate")


def _that_came(token: Token) -> list[x509.Certificate]:
    """Return the certificates that came beside the signer's; what is none vouches for nobody."""
    came: list[x509.Certificate] = []
    for data in token.certificates:
        with suppress(RefusedError):
            came += [read_certificate(data)] if data != token.signer else []
    return came


def _leads_to_root(
    signer: x509.Certificate, trusted: list[x509.Certificate], came: list[x509.Certificate], at: datetime
) -> bool:
    """Say whether a chain leads from a trusted root to the signer: level by level, each certificate once."""
    below, frontier = [signer], [signer]
    for depth in range(MAX_CHAIN + 1):
        above: list[x509.Certificate] = []
        for issuer in [*trusted, *came]:
            if issuer in below or not any(_issued(issuer, one) for one in frontier):
                continue
            if not _may_issue(issuer, depth) or not _counts(issuer, at):
                continue
            if issuer in trusted:
                return True
            below.append(issuer)
            above.append(issuer)
        frontier = above
    return False


_V = TypeVar("_V", bound=x509.ExtensionType)


def _extension(certificate: x509.Certificate, kind: type[_V]) -> _V | None:
    return next((one.value for one in certificate.extensions if isinstance(one.value, kind)), None)


def _is_authority(certificate: x509.Certificate) -> bool:
    constraints = _extension(certificate, x509.BasicConstraints)
    return constraints is not None and constraints.ca


def _counts(certificate: x509.Certificate, at: datetime) -> bool:
    """Say whether a certificate was valid then, and has no critical extension that is not looked at."""
    read = all(isinstance(one.value, _LOOKED_AT) for one in certificate.extensions if one.critical)
    return read and certificate.not_valid_before_utc <= at <= certificate.not_valid_after_utc


def _may_issue(issuer: x509.Certificate, depth: int) -> bool:
    """Say whether a certificate may stand in a chain with so many authorities under it."""
    constraints, usage = _extension(issuer, x509.BasicConstraints), _extension(issuer, x509.KeyUsage)
    uses = {one.dotted_string for one in _extension(issuer, x509.ExtendedKeyUsage) or ()}
    return (
        constraints is not None
        and constraints.ca
        and depth <= (MAX_CHAIN if constraints.path_length is None else constraints.path_length)
        and (usage is None or usage.key_cert_sign)
        and (not uses or bool(uses & {_STAMPING, _ANY_USE}))
    )


def _issued(issuer: x509.Certificate, certificate: x509.Certificate) -> bool:
    if _usable_key(issuer) is None:
        return False
    try:
        hashed = certificate.signature_hash_algorithm
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return isinstance(hashed, SHA256 | SHA384 | SHA512)


# ======== What the reader trusts (6.1; C2SP tlog-policy)


@dataclass(slots=True)
class Policy:
    """The keys that the reader trusts, and the witnesses that he asks for."""

    logs: list[Key] = field(default_factory=list[Key])
    witnesses: dict[str, Key] = field(default_factory=dict[str, Key])  # by their name in the policy
    more_witnesses: list[Key] = field(default_factory=list[Key])
    groups: dict[str, tuple[int, list[str]]] = field(default_factory=dict[str, tuple[int, list[str]]])
    quorum: str = ""
    members: set[str] = field(default_factory=set[str])
    roots: list[bytes] = field(default_factory=list[bytes])  # of time authorities: certificates in DER
    seen: set[bytes] = field(default_factory=set[bytes])  # one key has one role, once
    card_keys: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])  # by peer and key id

    def add(self, role: str, vkey: str, name: str = "") -> None:
        """Trust a key for a role."""
        key = read_vkey(vkey)
        if key.kind in {NOTE_KEY, COSIGNER} and (key.kind == COSIGNER) != (role == "witness"):
            raise RefusedError(f"a key of type {key.kind:02x} cannot be a {role} key")
        if key.public in self.seen:
            raise RefusedError(f"the key {vkey[:80]!a} is given twice")
        self.seen.add(key.public)
        if role == "log":
            self.logs.append(key)
        elif role == "witness" and name:
            self.witnesses[name] = key
        elif role == "witness":
            self.more_witnesses.append(key)

    def is_met(self, name: str, cosigners: set[Key]) -> bool:
        """Say whether a witness, or enough of a group, has cosigned."""
        met = {witness for witness, key in self.witnesses.items() if key in cosigners}
        for group, (needed, members) in self.groups.items():  # the members of each are of lines above
            if sum(member in met for member in members) >= needed:
                met.add(group)
        return name in met


def read_policy(data: bytes) -> Policy:
    """Read a tlog-policy file with our comment lines."""
    policy = Policy()
    # To C2SP names are octets, which need not be UTF-8.
    for count, line in enumerate(data.decode(errors="surrogateescape").split("\n"), 1):
        try:
            _read_policy_line(policy, line)
        except RefusedError as problem:
            raise RefusedError(f"policy line {count}: {problem}") from None
    if not policy.quorum:
        raise RefusedError("the policy has no quorum line: write `quorum none` to ask for no witness")
    return policy


def _read_policy_line(policy: Policy, line: str) -> None:
    if any((char < " " and char != "\t") or char == "\x7f" for char in line):
        raise RefusedError("holds control characters")
    ours = re.fullmatch(r"[ \t]*#[ \t]*a2a-ledger:(.*)", line)
    fields = [field for field in re.split("[ \t]+", ours[1] if ours else line) if field]
    if ours:
        _read_our_line(policy, fields)
    elif fields and not fields[0].startswith("#"):
        _read_c2sp_line(policy, fields)


def _read_our_line(policy: Policy, fields: list[str]) -> None:
    match fields:
        case [role, vkey] if role in ROLES:
            policy.add(role, vkey)
        case ["card", url, encoded]:
            _check_card_line(policy, url, encoded)
        case ["tsa", encoded]:
            _add_root(policy, read_base64(encoded))
        case _:
            raise RefusedError(
                "expected `# a2a-ledger:` and `<role> <vkey>`, `card <url> <key>` or `tsa <certificate>`"
            )


def _add_root(policy: Policy, octets: bytes) -> None:
    if len(octets) > MAX_ROOT or octets in policy.roots:
        raise RefusedError("a root certificate is too large, or is given twice")
    if not _is_authority(read_certificate(octets)):
        raise RefusedError("a root certificate is one that may sign no other")
    policy.roots.append(octets)


def _read_c2sp_line(policy: Policy, fields: list[str]) -> None:
    match fields:
        case ["log", vkey] | ["log", vkey, _]:
            policy.add("log", vkey)
        case ["witness", name, vkey] | ["witness", name, vkey, _]:
            _define(policy, name)
            policy.add("witness", vkey, name)
        case ["group", name, threshold, *members] if members:
            _define(policy, name)
            _read_group(policy, name, threshold, members)
        case ["quorum", name] if not policy.quorum:
            if name not in {"none", *policy.witnesses, *policy.groups}:
                raise RefusedError(f"{name[:80]!a} is no witness or group of a line above")
            policy.quorum = name
        case _:
            raise RefusedError(f"is none of log, witness, group and one quorum: {fields[0][:80]!a}")


def _define(policy: Policy, name: str) -> None:
    if name in {"none", *policy.witnesses, *policy.groups}:
        raise RefusedError(f"the name {name[:80]!a} is taken")


def _read_group(policy: Policy, name: str, threshold: str, members: list[str]) -> None:
    for member in members:
        if member not in {*policy.witnesses, *policy.groups} or member in policy.members:
            raise RefusedError(f"{member[:80]!a} is not above, or is a member already")
        policy.members.add(member)
    needed = {"all": len(members), "any": 1}.get(threshold) or read_decimal(threshold)
    if not 1 <= needed <= len(members):
        raise RefusedError(f"{needed} of {len(members)} members can never be")
    policy.groups[name] = (needed, members)


# ---- Keys of cards (7.6): this file judges no card's signature, and says so under S; a line that nobody could use is
# refused all the same.

_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#\\]+)([^?#]*)(?:\?[^#]*)?(?:#.*)?", re.DOTALL)
_CARD_PATH: Final = "/.well-known/agent-card.json"
_MOST_JWKS: Final = 1 << 20  # octets
_MOST_DEPTH: Final = 64  # brackets that are open at once
_MOST_KID: Final = 512  # characters
_SECRET: Final = {"d", "p", "q", "dp", "dq", "qi", "oth", "k"}
_SIGNS: Final = {"EdDSA": "OKP", "Ed25519": "OKP", "ES256": "EC", "PS256": "RSA", "RS256": "RSA"}
_P256: Final = 2**256 - 2**224 + 2**192 + 2**96 - 1  # FIPS 186-4, D.1.2.3
_P256_B: Final = 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B


def _check_card_line(policy: Policy, url: str, encoded: str) -> None:
    peer = _public_card(url)
    if peer is None:
        raise RefusedError(f"expected the http(s) url of a public card, found {url[:80]!a}")
    here: dict[tuple[str, str], Object] = {}
    for entry in _read_jwks(_base64url(encoded)):
        jwk = _public_key(entry)
        stated = entry.get("peer")
        if stated is not None and (not isinstance(stated, str) or _public_card(stated) != peer):
            raise RefusedError("the member `peer` of a key names another peer than its line")
        kid = jwk.get("kid", _thumbprint(jwk))
        if here.setdefault((peer, str(kid)), jwk) != jwk:  # an exact repeat in one file is one key
            raise RefusedError(f"key id {kid!a} stands for two keys of one peer")
    if here.keys() & policy.card_keys:
        raise RefusedError("a key id for cards of one peer is given twice")
    policy.card_keys |= here.keys()


def _public_card(text: str) -> str | None:
    """Return the url of the public card that is meant by a card's url or an origin; None: it is no http(s) url."""
    split = _split_url(text.strip())
    if split is None or not split[0].startswith(("http:", "https:")):
        return None
    origin, path = split
    whole = origin + (re.sub(r"/agent\.json\Z", "/agent-card.json", path) if path.strip("/") else _CARD_PATH)
    again = _split_url(whole)
    return None if again is None else "".join(again)


def _split_url(text: str) -> tuple[str, str] | None:
    """Return origin and path of a url, in one spelling of scheme, host and default port."""
    found = _URL.fullmatch(text)
    if found is None or not (host := found[2].rpartition("@")[2]):
        return None
    lower = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
    scheme = found[1].translate(lower)
    name, colon, port = host.rpartition(":")
    if colon and "]" not in port and port in {"", {"http": "80", "https": "443"}.get(scheme)}:
        host = name
    return f"{scheme}://{host.translate(lower)}", found[3] or "/"


def _base64url(text: Json) -> bytes:
    """Read base64url without padding that has one spelling."""
    data = None
    if isinstance(text, str) and text.isascii():
        with suppress(ValueError):
            data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    if data is None or base64.urlsafe_b64encode(data).decode().rstrip("=") != text:
        raise RefusedError("expected base64url without padding")  # not quoted: it may be a private key
    return data


def _read_jwks(data: bytes) -> list[Object]:
    """Read a JWK, or the keys of a JWKS (RFC 7517)."""
    try:
        if len(data) > _MOST_JWKS or _depth(text := data.decode("utf-8-sig")) > _MOST_DEPTH:
            raise RefusedError("a JWK is too large")
        value: Json = json.loads(text, object_pairs_hook=_once, parse_int=float, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise RefusedError("expected the JSON of a JWK or JWKS") from None
    listed = value.get("keys", [value]) if isinstance(value, dict) else None
    if not isinstance(listed, list) or not listed:
        raise RefusedError("expected a JWK or JWKS, found none")
    entries = [entry for entry in listed if isinstance(entry, dict)]
    if len(entries) != len(listed):
        raise RefusedError("a JWK is a JSON object")
    return entries


def _depth(text: str) -> int:
    brackets = re.sub(r'"(?:[^"\\]|\\.)*"?', "", text, flags=re.DOTALL)
    return max(accumulate((char in "[{") - (char in "]}") for char in brackets), default=0)


def _public_key(entry: Object) -> Object:
    """Return what is read of a public key; a key under which a signature proves nothing is refused."""
    if _SECRET & entry.keys() or entry.get("kty") == "oct":
        raise RefusedError("this is a secret key: give the public half only")
    operations = entry.get("key_ops", ["verify"])
    if entry.get("use", "sig") != "sig" or not isinstance(operations, list) or "verify" not in operations:
        raise RefusedError("this key is not for verifying signatures")
    kind, curve = entry.get("kty"), entry.get("crv")
    if kind == "OKP" and curve == "Ed25519":
        names: tuple[str, ...] = ("crv", "x")
    elif kind == "EC" and curve == "P-256":
        names = ("crv", "x", "y")
    elif kind == "RSA":
        names = ("n", "e")
    else:
        raise RefusedError("expected kty OKP with crv Ed25519, EC with crv P-256, or RSA")
    problem = _point_problem(str(kind), [_base64url(entry.get(name)) for name in names if name != "crv"])
    if problem:
        raise RefusedError(f"the key {problem}")
    found: Object = {"kty": kind, **{name: entry[name] for name in names}}
    alg, kid = entry.get("alg"), entry.get("kid")
    if alg is not None and (not isinstance(alg, str) or _SIGNS.get(alg) != kind):
        raise RefusedError("`alg` does not go with the key")
    if kid is not None:
        if not isinstance(kid, str) or not 0 < len(kid) <= _MOST_KID or any("\ud800" <= one <= "\udfff" for one in kid):
            raise RefusedError(f"`kid` is a text of 1 to {_MOST_KID} characters")
        found["kid"] = kid
    return found if alg is None else {**found, "alg": alg}


def _point_problem(kind: str, material: list[bytes]) -> str:
    """Say why key material is refused; "" if it is none of the bad ones."""
    numbers = [int.from_bytes(one) for one in material]
    if not all(material):
        return "has an empty member"
    if kind == "OKP":
        return key_problem(material[0])
    if kind == "EC":
        x, y = numbers
        sized = all(len(one) == 32 for one in material) and max(x, y) < _P256  # noqa: PLR2004 - 256 bits
        return "" if sized and (y * y - x**3 + 3 * x - _P256_B) % _P256 == 0 else "is no point of P-256"
    n, e = numbers
    if any(one[0] == 0 for one in material) or not 2048 <= n.bit_length() <= 8192:  # noqa: PLR2004 - section 7.6
        return "has no modulus of 2048 to 8192 bits"
    return "" if n % 2 and e % 2 and 2 < e < 2**32 else "has a modulus or exponent that signs nothing"  # noqa: PLR2004


def _thumbprint(jwk: Object) -> str:
    """Return the thumbprint of RFC 7638."""
    needed = {name: value for name, value in jwk.items() if name not in {"kid", "alg"}}
    digest = sha256(json.dumps(needed, sort_keys=True, separators=(",", ":")).encode())
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


# ======== Step 1: the zip (11.1)

MAX_FILES: Final = 10_000
MAX_FILE: Final = 64 << 20
MAX_ALL: Final = 1 << 30
MAX_RATIO: Final = 200
_END = struct.Struct("<4s4H2IH")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_LOCAL = struct.Struct("<4s5H3I2H")
_NAME = re.compile(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*")


class Entry(NamedTuple):
    """One line of the zip's directory."""

    name: str
    shared: tuple[int, ...]  # what the local header repeats: version to the length of the name, and no extra
    method: int
    crc: int
    packed: int
    size: int
    offset: int


def read_zip(data: bytes) -> tuple[dict[str, bytes], list[str]]:
    """Return the files of a zip that every reader reads alike, and which of them do not fit their checksum."""
    entries, directory = _read_directory(data)
    _check_names([entry.name for entry in entries])
    packed = any(entry.name.startswith("data/packs/") for entry in entries)
    for entry in entries:  # before a single octet is unpacked
        most = most_octets(entry.name, packed=packed)
        if most is not None and entry.size > most:
            raise RefusedError(f"{entry.name}: {entry.size} octets; such a file may have {most}")
    files: dict[str, bytes] = {}
    damaged: list[str] = []
    at = 0
    for entry in sorted(entries, key=lambda entry: entry.offset):
        start = at + _LOCAL.size + len(entry.name)
        stop = start + entry.packed
        if entry.offset != at or stop > directory:
            raise RefusedError(f"{entry.name}: begins elsewhere than behind the file before it")
        magic, *header = _LOCAL.unpack_from(data, at)
        named = data[at + _LOCAL.size : start]
        if magic != b"PK\x03\x04" or tuple(header) != entry.shared or named != entry.name.encode():
            raise RefusedError(f"{entry.name}: its own header is not what the directory says")
        files[entry.name] = _unpack(entry, data[start:stop])
        if zlib.crc32(files[entry.name]) != entry.crc:
            damaged.append(entry.name)
        at = stop
    if at != directory:
        raise RefusedError("octets between the last file and the directory belong to no file")
    return files, damaged


def read_bag(data: bytes) -> tuple[dict[str, bytes], list[str]]:
    """Return the files of a zip that is a BagIt bag, and which of them do not fit their checksum."""
    files, damaged = read_zip(data)
    if not {"bagit.txt", MANIFEST, TAGS} <= files.keys():
        raise RefusedError("is no bag: bagit.txt or a manifest is missing")
    return files, damaged


_PACK_LINE = re.compile(rb"(0|[1-9][0-9]{0,8}) ([A-Za-z0-9._/-]{1,255})\n")
_PACKED = re.compile(
    r"data/(records/[0-9]+\.(json|salt)|log/proofs/[0-9]+\.tlog-proof|statements/[0-9]+\.dsse\.json"
    r"|blobs/[0-9a-f]{64}/[0-9]+(\.salt|\.hole)?)"
)
MAX_PACKED: Final = 2_000_000


def unpack(zipped: Mapping[str, bytes]) -> dict[str, bytes]:
    """Put the files of packs in the place of the packs (11.4)."""
    files = {name: data for name, data in zipped.items() if not name.startswith("data/packs/")}
    packs = len(zipped) - len(files)
    if packs and any(_PACKED.fullmatch(name) for name in files):
        raise RefusedError("has a file beside its packs that should be in one")
    count = 0
    for number in range(packs):
        pack = zipped.get(f"data/packs/{number}")
        if pack is None:
            raise RefusedError(f"has no data/packs/{number}, and others")
        at = 0
        while at < len(pack):
            line = _PACK_LINE.match(pack, at)
            count += 1
            if line is None or count > MAX_PACKED:
                raise RefusedError(
                    f"data/packs/{number}: has no length and name at octet {at}, or holds too many files"
                )
            name, end = line[2].decode("ascii"), line.end() + int(line[1])
            most = most_octets(name) if _PACKED.fullmatch(name) else None
            if end > len(pack) or name in files or most is None or int(line[1]) > most:
                raise RefusedError(
                    f"data/packs/{number}: {name[:80]} is cut, too large, there twice, or no file of a pack"
                )
            files[name] = pack[line.end() : end]
            at = end
    return files


def _read_directory(data: bytes) -> tuple[list[Entry], int]:
    """Return the entries of the directory, and where it begins."""
    if len(data) < _END.size:
        raise RefusedError("is too short for a zip")
    end = len(data) - _END.size
    magic, disk, first_disk, here, count, length, start, comment = _END.unpack_from(data, end)
    if magic != b"PK\x05\x06" or disk or first_disk or comment or here != count:
        raise RefusedError("does not end in the end record of a plain zip")
    if count > MAX_FILES or start + length != end:
        raise RefusedError("has too many files, or octets beside its directory")
    entries: list[Entry] = []
    at = start
    for _ in range(count):
        if at + _CENTRAL.size > end:
            raise RefusedError("breaks off in its directory")
        fields = _CENTRAL.unpack_from(data, at)
        raw = data[at + _CENTRAL.size : min(end, at + _CENTRAL.size + fields[10])]
        entries.append(_read_entry(fields, raw))
        at += _CENTRAL.size + len(raw)
    if at != end:
        raise RefusedError("has octets in its directory that belong to no entry")
    if sum(entry.size for entry in entries) > MAX_ALL:
        raise RefusedError("has more than 1 GiB of files")
    return entries, start


def _read_entry(fields: tuple[bytes | int, ...], raw: bytes) -> Entry:
    numbers = cast("tuple[int, ...]", fields[1:])
    _made_by, version, flags, method, time, date, crc, packed, size, length, extra, comment, disk = numbers[:13]
    _internal, external, offset = numbers[13:]
    name = raw.decode("ascii", errors="replace")
    plain_file = (external >> 16) & 0o170000 in {0, 0o100000}
    if fields[0] != b"PK\x01\x02" or len(raw) != length or extra or comment or disk or not plain_file:
        raise RefusedError(f"{name[:80]!a}: is no plain file without extra fields")
    if flags & ~0x0800 or method not in {0, 8}:  # bit 11: the name is UTF-8
        raise RefusedError(f"{name[:80]!a}: is encrypted, streamed, or packed by another method than deflate")
    if size > MAX_FILE or (method == 0 and packed != size) or size > MAX_RATIO * packed:
        raise RefusedError(f"{name[:80]!a}: unpacks from {packed} to {size} octets")
    shared = (version, flags, method, time, date, crc, packed, size, length, 0)
    return Entry(name, shared, method, crc, packed, size, offset)


def _check_names(names: list[str]) -> None:
    folded: set[str] = set()
    for name in names:
        if not _NAME.fullmatch(name) or len(name) > 255 or {".", ".."} & set(name.split("/")):  # noqa: PLR2004 - 11.1
            raise RefusedError(f"{name[:80]!a}: is no plain relative name")
        if name.lower() in folded:
            raise RefusedError(f"{name}: is there twice, perhaps in other letter case")
        folded.add(name.lower())
    for name in folded:
        segments = name.split("/")
        if any("/".join(segments[:count]) in folded for count in range(1, len(segments))):
            raise RefusedError(f"{name}: lies in a folder that is a file")


def _unpack(entry: Entry, packed: bytes) -> bytes:
    if entry.method == 0:
        return packed
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        content = unpacker.decompress(packed, entry.size + 1)
    except zlib.error:
        raise RefusedError(f"{entry.name}: does not unpack") from None
    if len(content) != entry.size or not unpacker.eof or unpacker.unused_data:
        raise RefusedError(f"{entry.name}: unpacks to another size than the directory says")
    return content


# ======== Step 2: the files and their manifests (11.2)

CHECKPOINT: Final = "data/log/checkpoint"
EVENTS: Final = "data/log/events.jsonl"
INDEX: Final = "data/log/index.tsv"
CLAIMS: Final = "data/claims.json"
STATEMENT: Final = "data/export.dsse.json"
CUSTODY: Final = "data/custody.json"
EXPECTED: Final = "data/replay/expected.jsonl"
WITHHELD: Final = "data/withheld.jsonl"
MANIFEST: Final = "manifest-sha256.txt"
TAGS: Final = "tagmanifest-sha256.txt"
SIGNATURE: Final = "tagmanifest-sha256.txt.sig"
NEEDED: Final = (
    *("README.txt", "bag-info.txt", "data/policy.example.txt", "data/replay/engine.json"),
    *("data/replay/profile.toml", CHECKPOINT, CLAIMS, CUSTODY, EVENTS, EXPECTED, INDEX),
)
_KIB: Final = 1024
_KINDS: Final = tuple(
    (re.compile(pattern), most * _KIB if most > 0 else -most)  # a negative number counts octets, not KiB
    for pattern, most in (
        (r"(tag)?manifest-sha256\.txt", 8192),
        (r"tagmanifest-sha256\.txt\.sig", -64),
        (r"bagit\.txt|bag-info\.txt|data/log/checkpoint", 64),
        (r"README\.txt|data/claims\.json", 1024),
        (r"report\.html", 65536),
        (r"data/export\.dsse\.json", 4096),
        (r"data/log/events\.jsonl|data/log/index\.tsv|data/replay/expected\.jsonl", 8192),
        (r"data/log/proofs/[0-9]+\.tlog-proof", 128),
        (r"data/log/consistency/[0-9]+-[0-9]+", 16),
        (r"data/time/[0-9]\.(tsr|checkpoint)", 64),
        (r"data/records/[0-9]+\.json", 64),
        (r"data/records/[0-9]+\.salt|data/blobs/[^/]+/[0-9]+\.salt|data/streams/[^/]+\.key", -32),
        (r"data/blobs/[^/]+/[0-9]+\.hole", -128),
        (r"data/blobs/[^/]+/[0-9]+", 65536),
        (r"data/statements/[0-9]+\.dsse\.json", 1024),
        (r"data/replay/(engine\.json|profile\.toml)|data/custody\.json|data/policy\.example\.txt", 64),
        (r"data/keys/untrusted/[^/]+\.vkey", 1),
    )
)


def most_octets(name: str, *, packed: bool = False) -> int | None:
    """Return how large a file of this name may be, in a bundle with packs or without; None: it has no such file."""
    if packed and (name in {EVENTS, INDEX, EXPECTED, WITHHELD} or name.startswith("data/packs/")):
        return MAX_FILE
    return next((most for pattern, most in _KINDS if pattern.fullmatch(name)), None)


class Bundle:
    """The files of a bundle, and what was found of each claim: faults, or why it is open."""

    def __init__(self, zipped: Mapping[str, bytes]) -> None:
        self.zipped = zipped
        self.files = files = unpack(zipped)
        self.packed = any(name.startswith("data/packs/") for name in zipped)
        self.faults: dict[str, list[str]] = defaultdict(list)
        self.folders: dict[str, list[str]] = defaultdict(list)
        for name in sorted(files):
            self.folders[name.rpartition("/")[0]].append(name)

    def read(self, name: str) -> bytes:
        """Return a file that has to be there."""
        if name not in self.files:
            raise RefusedError(f"{name} is missing")
        return self.files[name]

    def json(self, name: str) -> Json:
        """Return the value of a file of canonical JSON."""
        try:
            return read_json(self.read(name))
        except RefusedError as problem:
            raise RefusedError(_named(name, problem)) from None

    def fault(self, claim: str, problem: object) -> None:
        """Note what makes a claim INVALID."""
        self.faults[claim].append(str(problem))


def _named(name: str, problem: object) -> str:
    text = str(problem)
    return text if text.startswith(name) else f"{name}: {text}"


def check_files(bundle: Bundle, damaged: list[str]) -> None:
    """Hold every file against the manifests, both ways (I)."""
    for name in {**bundle.files, **bundle.zipped}:
        if most_octets(name, packed=bundle.packed) is None:
            bundle.fault("I", f"{name}: a bundle has no such file")
    for name in NEEDED:
        if name not in bundle.files:
            bundle.fault("I", f"{name} is missing")
    if bundle.files["bagit.txt"] != b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n":
        bundle.fault("I", "bagit.txt: not the two lines of BagIt 1.0")
    for name in damaged:
        bundle.fault("I", f"{name}: does not fit its checksum in the zip")
    payload = {name for name in bundle.zipped if name.startswith("data/")}
    _check_manifest(bundle, MANIFEST, payload)
    _check_manifest(bundle, TAGS, set(bundle.zipped) - payload - {TAGS, SIGNATURE})


def _check_manifest(bundle: Bundle, manifest: str, there: set[str]) -> None:
    try:
        listed = _read_manifest(bundle.files[manifest])
    except RefusedError as problem:
        bundle.fault("I", f"{manifest}: {problem}")
        return
    for name in sorted(listed.keys() ^ there):
        bundle.fault("I", f"{name}: in {manifest} or in the bundle, not in both")
    for name in sorted(listed.keys() & there):
        if sha256(bundle.zipped[name]).hex() != listed[name]:
            bundle.fault("I", f"{name}: changed, says {manifest}")


def _read_manifest(data: bytes) -> dict[str, str]:
    lines = data.decode("ascii", errors="replace").split("\n")
    if lines.pop() != "":
        raise RefusedError("does not end in a line feed")
    listed: dict[str, str] = {}
    for line in lines:
        match = re.fullmatch(r"([0-9a-f]{64})  ([A-Za-z0-9._/-]+)", line)
        if match is None or match[2] in listed:
            raise RefusedError(f"{line[:100]!a} is no line of it, or names a file again")
        listed[match[2]] = match[1]
    if list(listed) != sorted(listed):
        raise RefusedError("is not sorted by name")
    return listed


# ======== Step 3: the leaves (5, 11.2)

_COUNT = re.compile("0|[1-9][0-9]{0,15}")


class Leaf(NamedTuple):
    """One shown leaf, with its row of the index."""

    n: int
    c: str
    t: str
    raw: bytes
    row: tuple[str, int, str, str]  # stream, version, file of the record, folder of the body


def read_leaves(bundle: Bundle, origin: str) -> dict[int, Leaf]:
    """Return the shown leaves by log index; what is wrong with them is said under P."""
    leaves: dict[int, Leaf] = {}
    try:
        lines = _read_lines(bundle.read(EVENTS))
        rows = _read_rows(bundle.read(INDEX))
    except RefusedError as problem:
        bundle.fault("P", problem)
        return leaves
    if len(lines) != len(rows):
        bundle.fault("P", f"{EVENTS}: not one line for each row of {INDEX}")
        return leaves
    before = -1
    for count, (raw, (line, index, *row)) in enumerate(zip(lines, rows, strict=True), 1):
        try:
            n, c, t = _read_leaf(raw, origin)
        except RefusedError as problem:
            bundle.fault("P", f"{EVENTS}: line {count}: {problem}")
            continue
        if line != count or index != n or n <= before:
            bundle.fault("P", f"{EVENTS}: line {count} is leaf {n}: {INDEX} lists another, or it is out of order")
            continue
        before = n
        leaves[n] = Leaf(n, c, t, raw, cast("tuple[str, int, str, str]", tuple(row)))
    return leaves


def _read_leaf(raw: bytes, origin: str) -> tuple[int, str, str]:
    leaf = as_object(read_json(raw))
    n, c, t = number(leaf.get("n")), leaf.get("c"), leaf.get("t")
    if n is None or n < 0 or not same(leaf, {"c": c, "log": origin, "n": n, "t": t, "v": 1}):
        raise RefusedError(f"is no leaf of {origin}")
    if not (isinstance(c, str) and isinstance(t, str) and _DIGEST.fullmatch(c) and _DIGEST.fullmatch(t)):
        raise RefusedError("holds no hashes")
    return n, c, t


def _read_lines(data: bytes) -> list[bytes]:
    *lines, end = data.split(b"\n")
    if end:
        raise RefusedError(f"{EVENTS}: the last line does not end in a line feed")
    return lines


def _read_rows(data: bytes) -> list[tuple[int, int, str, int, str, str]]:
    try:
        head, *lines = data.decode().split("\n")
    except UnicodeDecodeError:
        raise RefusedError(f"{INDEX}: is no UTF-8 text") from None
    if head != "line\tindex\tstream\tver\trecord\tbody" or not lines or lines.pop() != "":
        raise RefusedError(f"{INDEX}: has another head line, or no line feed at its end")
    rows: list[tuple[int, int, str, int, str, str]] = []
    for line in lines:
        match line.split("\t"):
            case [count, n, stream, ver, record, body] if all(map(_COUNT.fullmatch, (count, n, ver))):
                rows.append((int(count), int(n), stream, int(ver), record, body))
            case _:
                raise RefusedError(f"{INDEX}: {line[:80]!a} is no row of it")
    return rows


# ======== Step 4: records and blobs (2, 3)

EVERY_FIELD: Final = "stream_commitment?:t holes?:o claimed_at?:t source_file?:t line?:i run?:i entry?:t"
_CAPTURED: Final = """peer:t peer_url:t fetch?:r raw_hash?:t document_hash?:t contract_hash?:t form:t seed0?:t
    terms_hash?:t terms_form:t profile_hash:t interface:f extensions:T credential:T credential_visible:b pin?:o
    caller:t skill?:t card_ids?:T side?:t"""
_FETCH: Final = """asked_etag?:t asked_modified_since?:t task?:t credential?:C variant?:t asked_version?:t within?:r"""
# The tables of docs/format.md section 2: field, `?` if it may be left out, and its type: t text, i integer, b boolean,
# o object, r ref, f interface; T, I, R, F and C are lists of text, integer, ref, interface and credential.
EVENTS_TABLE: Final[dict[str, str]] = {
    "ledger.opened.v1": "origin:t nonce:t software:t keys:T predecessor?:o",
    "key.added.v1": "key_id:t public_key:t role:t vkey:t old?:t signature_new?:t signature_old?:t",
    "key.retired.v1": "key_id:t role:t vkey:t",
    "key.revoked.v1": "key_id:t role:t vkey:t size:i",
    "card.fetched.v1": f"""peer:t peer_url:t url:t answered_url:t source:t purpose:t caller:t status:i flags:T form:t
        raw_hash?:t document_hash?:t contract_hash?:t seed0?:t dialect?:t interfaces?:F api_keys?:T signature?:o
        not_modified?:r etag?:t last_modified?:t max_age?:i age?:i no_cache?:b date?:t reader?:t connection?:t
        {_FETCH}""",
    "card.fetch_failed.v1": f"""peer:t peer_url:t url:t answered_url:t source:t purpose:t caller:t outcome:t status?:i
        tls_alert?:t {_FETCH}""",
    "card.manifest.v1": """peer:t peer_url:t raw_hash:t contract_hash:t form:t floor_until:t status:t issued_at?:t
        key_id?:t who?:t""",
    "card_key.added.v1": "peer:t peer_url:t kid:t thumbprint:t jwk:o who:t",
    "card_key.retired.v1": "peer:t peer_url:t kid:t thumbprint:t who:t reason:t",
    "contract.accepted.v1": """peer:t old_hash:t new_hash:t form:t authorization:t pointers:T acceptance:t who:t
        fetch:r card_ids?:T profile_hash?:t old_terms?:t new_terms?:t""",
    "card.served.v1": """url:t raw_hash:t document_hash?:t contract_hash?:t form:t status:i variant?:t caller?:t
        asked_version?:t fetch?:r""",
    "freshness.decided.v1": """peer:t decision:t reason:t at_stake:t inputs:o rules:t retry_after?:i old_tag?:t
        new_tag?:t answer_age_us?:i card?:r refetch?:r change?:t manifest?:r""",
    "contract.captured.v1": _CAPTURED,
    "contract.reconstructed.v1": _CAPTURED,
    "send.aborted.v1": """peer:t reason:t card_gets:i requests:i old_hash?:t new_hash?:t form?:t authorization?:t
        pointers?:T""",
    "message.recorded.v1": """peer:t direction:t leg:t binding:t url:t method?:t method_spelled?:t wire_version?:t
        http_method?:t status?:i message_id?:t task_id?:t context_id?:t state?:t state_read?:t pin?:o pin_seen?:b
        answers?:r credential?:C extensions?:T sequence?:i error_code?:i error_kind?:t tls_alert?:t trace?:t flags?:T
        tenant?:t side?:t""",
    "task.bound.v1": "peer:t task_id:t answers:r context_id?:t",
    "task.adopted.v1": "peer:t peer_url:t task_id:t context_id?:t",
    "task.snapshot.v1": "peer:t task_id:t context_id?:t state?:t state_read?:t flags?:T",
    "violation.detected.v1": """rule:t rule_class:t about:t certainty:t basis:t rule_set:t profile_hash:t peer:t
        subject:t trigger:r trigger_index:i evidence:R evidence_index:I observed:o not_established:T statement_sha256:t
        frozen_hash?:t frozen_form?:t task?:t tasks?:T""",
    "finding.acknowledged.v1": "violation:r who:t why:t",
    "checkpoint.anchored.v1": "origin:t size:i root:t holder:t kind:t",
    "content.erased.v1": "scope:t records:R requested_by:t reason:t out_of_reach?:t",
}
_TASK: Final = "task:[0-9a-f]{40}"
_PEER: Final = "peer:[0-9a-f]{32}"
_FINDINGS: Final = "findings:([0-9a-f]{40}|peer:[0-9a-f]{32})"
# The other table of section 2: streams, by what stands before the dot of an event's name, or by the whole name.
STREAMS_TABLE: Final[dict[str, str]] = {
    **dict.fromkeys(("ledger", "key"), "ledger"),
    "checkpoint": "anchors",
    **dict.fromkeys(("card", "card_key", "contract.accepted.v1"), _PEER),
    "card.served.v1": "peer:self",
    **dict.fromkeys(("contract", "send", "task", "content"), _TASK),
    **dict.fromkeys(("freshness", "message", "task.snapshot.v1"), f"{_TASK}|{_PEER}"),
    **dict.fromkeys(("violation", "finding"), _FINDINGS),
}
_STREAM = re.compile(f"ledger|anchors|peer:self|{_TASK}|{_PEER}|{_FINDINGS}")
_DIGEST = re.compile("[0-9a-f]{64}")
_AT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)
_ORIGIN = re.compile("[a-z0-9][a-z0-9._/-]{0,127}")
_HOLE = re.compile(rb'\[(0|[1-9][0-9]{0,15}),"([0-9a-f]{64})"\]')
_MEMBERS: Final = {"at", "blobs", "data", "how", "log", "prev", "stream", "type", "v", "ver"}
MAX_HOLES: Final = 20_000  # more than `withheld` of a claims.json of 1 MiB can list


class Part(NamedTuple):
    """One part of a blob; `content` is None where it was left out."""

    length: int
    digest: bytes
    content: bytes | None


class Record(NamedTuple):
    """A record that its leaf commits to, with the parts of its blobs."""

    n: int
    c: str
    t: str
    type: str
    stream: str
    ver: int
    at: str
    log: str
    prev: Json
    data: Object
    blobs: dict[str, tuple[Part, ...]]
    whole: dict[str, bytes]  # the blobs of which no octet was left out

    @property
    def file(self) -> str:
        """Return the record's file."""
        return f"data/records/{self.n}.json"

    def text(self, name: str) -> str | None:
        """Return a field that is a text."""
        value = self.data.get(name)
        return value if isinstance(value, str) else None


def fits(kind: str, value: Json) -> bool:
    """Say whether a value is of a type of the tables of section 2."""
    if kind in "TIRFC":
        inner = {"T": "t", "I": "i", "R": "r", "F": "f", "C": "c"}[kind]
        return isinstance(value, list) and all(fits(inner, item) for item in value)
    if kind in "rfc":
        members = {"r": "c:t stream:t ver:i", "f": "binding:t tenant:t url:t version:n", "c": "k:t mac:t scheme:t"}[
            kind
        ]
        named = dict(member.split(":") for member in members.split())
        return isinstance(value, dict) and all(
            name in value and fits(inner, value[name]) for name, inner in named.items()
        )
    if kind == "i":
        return number(value) is not None
    return (value is None and kind == "n") or isinstance(value, {"b": bool, "o": dict}.get(kind, str))


def check_data(event: str, data: Object) -> None:
    """Hold the data of a known event against its table."""
    for entry in f"{EVENTS_TABLE[event]} {EVERY_FIELD}".split() if event in EVENTS_TABLE else ():
        name, kind = entry.split(":")
        needed, name = not name.endswith("?"), name.rstrip("?")
        if (name in data or needed) and not (name in data and fits(kind, data[name])):
            raise RefusedError(f"field {name} of {event} is missing, or of another type")


class Shown:
    """The records that are what their leaves commit to. Each that is not is a fault, and counts as not shown."""

    def __init__(self, bundle: Bundle, leaves: Mapping[int, Leaf], origin: str) -> None:
        self.bundle = bundle
        self.origin = origin
        self.leaves = leaves
        self.records: dict[int, Record] = {}
        self.streams: dict[str, list[Record]] = defaultdict(list)
        self.places: dict[tuple[str, int], Record] = {}
        self.keyed: set[str] = set()  # streams whose key is disclosed, and theirs
        self.holes: list[Json] = []
        self.open: list[str] = []  # what is shown and cannot be judged, for want of something (R)
        self.used: set[str] = set()
        self._parts: dict[str, tuple[Part, ...]] = {}
        for leaf in leaves.values():
            self.used |= {f"data/records/{leaf.n}.json", f"data/records/{leaf.n}.salt"}
            try:
                record = self._read(leaf)
            except RefusedError as problem:
                bundle.fault("C1", _named("data/", problem) if str(problem).startswith("data/") else problem)
                continue
            self.records[leaf.n] = record
            self.streams[record.stream].append(record)
        for records in self.streams.values():
            records.sort(key=lambda record: (record.ver, record.n))
            for record in records:
                self.places[record.stream, record.ver] = record

    def end(self, stream: str) -> int:
        """Return the last shown version of a stream, -1 if there is none."""
        return self.streams[stream][-1].ver if self.streams.get(stream) else -1

    def named(self, record: Record, name: str) -> Record | None:
        """Return the shown event that a field refers to."""
        ref = as_object(record.data.get(name))
        stream, ver = ref.get("stream"), number(ref.get("ver"))
        return self.places.get((stream, ver)) if isinstance(stream, str) and ver is not None else None

    def _read(self, leaf: Leaf) -> Record:
        name = f"data/records/{leaf.n}.json"
        raw, salt = self.bundle.read(name), self.bundle.read(f"data/records/{leaf.n}.salt")
        if len(salt) != 32 or sha256(b"a2a-ledger/record/v1\x00", salt, raw).hex() != leaf.c:  # noqa: PLR2004
            raise RefusedError(f"{name}: is not the record that leaf {leaf.n} commits to")
        try:
            members = as_object(read_json(raw))
            check_record(members)
        except RefusedError as problem:
            raise RefusedError(f"{name}: {problem}") from None
        if members["log"] != self.origin:
            raise RefusedError(f"{name}: belongs to another log")
        refs = cast("dict[str, Object]", members["blobs"])
        body = f"data/blobs/{refs['body']['id']}" if "body" in refs else "-"
        stream, ver = cast("str", members["stream"]), cast("int", members["ver"])
        if leaf.row != (stream, ver, name, body):
            raise RefusedError(f"{name}: {INDEX} lists another event there")
        blobs = {role: self._blob(name, role, ref) for role, ref in refs.items()}
        for role, parts in blobs.items():
            for count, part in enumerate(parts):
                if part.content is None and (self.bundle.packed or len(self.holes) <= MAX_HOLES):
                    self.holes.append(
                        {"blob": refs[role]["id"], "index": leaf.n, "part": count, "role": role, "size": part.length}
                    )
        whole = {
            role: b"".join(part.content or b"" for part in parts)
            for role, parts in blobs.items()
            if refs[role]["kept"] == "all" and all(part.content is not None for part in parts)
        }
        texts = cast("dict[str, str]", members)
        return Record(
            *(leaf.n, leaf.c, leaf.t, texts["type"], stream, ver, texts["at"], texts["log"]),
            *(members["prev"], as_object(members["data"]), blobs, whole),
        )

    def _blob(self, name: str, role: str, ref: Object) -> tuple[Part, ...]:
        blob = cast("str", ref["id"])
        if blob not in self._parts:
            self._parts[blob] = self.read_parts(blob)
        parts = self._parts[blob]
        if sum(part.length for part in parts) != ref["size"]:
            raise RefusedError(f"{name}: blob {role} has another size than it says")
        return parts

    def read_parts(self, blob: str) -> tuple[Part, ...]:
        """Return the parts of a blob, which have to make its id."""
        parts: list[Part] = []
        files = self.bundle.files
        while True:
            name = f"data/blobs/{blob}/{len(parts)}"
            match (name in files, f"{name}.salt" in files, f"{name}.hole" in files):
                case (True, True, False):
                    salt, content = files[f"{name}.salt"], files[name]
                    if len(salt) != 32:  # noqa: PLR2004 - 3.3
                        raise RefusedError(f"{name}.salt: is not 32 octets")
                    parts.append(Part(len(content), sha256(b"a2a-ledger/part/v1\x00", salt, content), content))
                    self.used |= {name, f"{name}.salt"}
                case (False, False, True):
                    hole = _HOLE.fullmatch(files[f"{name}.hole"])
                    if hole is None or int(hole[1]) > MAX_INTEGER:
                        raise RefusedError(f'{name}.hole: is not [length,"hash"]')
                    parts.append(Part(int(hole[1]), bytes.fromhex(hole[2].decode()), None))
                    self.used.add(f"{name}.hole")
                case (False, False, False):
                    break
                case _:
                    raise RefusedError(f"{name}: is there by half, or twice")
        made = [struct.pack(">Q", part.length) + part.digest for part in parts]
        if sha256(b"a2a-ledger/blob/v1\x00", struct.pack(">I", len(parts)), *made).hex() != blob:
            raise RefusedError(f"data/blobs/{blob}: its parts make another blob")
        return tuple(parts)


def check_record(record: Object) -> None:
    """Hold a record against the ten members of 3.1, and its data against the table of its event."""
    if record.keys() != _MEMBERS:
        raise RefusedError(f"has other members than {sorted(_MEMBERS)}")
    ver, prev, blobs = number(record["ver"]), record["prev"], record["blobs"]
    texts = {name: value for name, value in record.items() if isinstance(value, str)}
    good = (
        _AT.fullmatch(texts.get("at", "")),
        texts.get("how") in {"live", "import", "derived"},
        _ORIGIN.fullmatch(texts.get("log", "")),
        (prev is None and ver == 0) or (_DIGEST.fullmatch(texts.get("prev", "")) and ver != 0),
        texts.get("stream") and texts.get("type"),
        number(record["v"]) == 1,
        ver is not None and ver >= 0,
        isinstance(record["data"], dict),
        isinstance(blobs, dict) and all(_is_blob(ref) for ref in blobs.values()),
    )
    if not all(good):
        raise RefusedError("has a member of another kind than a record has")
    check_data(texts["type"], as_object(record["data"]))


def _is_blob(ref: Json) -> bool:
    match ref:
        case {"id": str(blob), "kept": "all" | "head" | "none", "size": size, **others}:
            size = number(size)
            return not others and size is not None and size >= 0 and _DIGEST.fullmatch(blob) is not None
        case _:
            return False


def check_references(shown: Shown) -> None:
    """Hold every reference to a shown event against it, and find files that nothing refers to (C1, C2)."""
    for record in shown.records.values():
        for name, value in record.data.items():
            for stream, ver, c in _references(value):
                _check_reference(shown, record, name, (stream, ver, c))
    for name in shown.bundle.files:
        if name.startswith(("data/records/", "data/blobs/", "data/streams/")) and name not in shown.used:
            shown.bundle.fault("C1", f"{name}: no event of the bundle refers to it")


def _check_reference(shown: Shown, record: Record, name: str, ref: tuple[str, int, str]) -> None:
    stream, ver, c = ref
    there, named = shown.places.get((stream, ver)), f"{stream[:80]} version {ver}"
    if there is not None and there.c != c:
        shown.bundle.fault("C1", f"{record.file}: refers to another {named} than is shown")
    if there is not None or (name == "within" and stream.startswith("task:")):
        return  # a card came within a message of another task: its octets stand in the fetch
    if stream in shown.keyed:
        shown.bundle.fault("C2", f"{record.file}: refers to {named}, which is not shown")
    else:
        shown.open.append(f"{record.file}: rests on {named}, which is not shown")


def _references(value: Json) -> Iterator[tuple[str, int, str]]:
    match value:
        case {"c": str(c), "stream": str(stream), "ver": int(ver)} if type(ver) is int:  # and whatever comes later
            yield stream, ver, c
        case _:
            pass
    match value:
        case dict():
            for member in value.values():
                yield from _references(member)
        case list():
            for item in value:
                yield from _references(item)
        case _:
            pass


# ======== Step 5: streams (4)


def check_streams(shown: Shown) -> None:
    """Hold each stream against its versions, its key and its tags (C2)."""
    bundle = shown.bundle
    tags: dict[str, list[int]] = defaultdict(list)
    for leaf in shown.leaves.values():
        tags[leaf.t].append(leaf.n)
    for twins in tags.values():
        if len(twins) > 1:
            bundle.fault("C2", f"leaves {twins[:5]} carry one tag: two stories for one place")
    for stream, records in list(shown.streams.items()):
        for before, record in pairwise(records):
            follows = record.ver == before.ver + 1
            if record.ver == before.ver or (follows and (record.prev != before.c or record.n < before.n)):
                bundle.fault("C2", f"{record.file}: does not follow the version before it in {stream[:80]}")
        try:
            _check_key(shown, stream, records, tags)
        except RefusedError as problem:
            bundle.fault("C2", problem)


def _stream_key(shown: Shown, stream: str) -> bytes | None:
    name = f"data/streams/{stream.replace(':', '.')}.key"
    if name not in shown.bundle.files:
        return None
    if len(shown.bundle.files[name]) != 32:  # noqa: PLR2004 - 4
        raise RefusedError(f"{name}: is not 32 octets")
    return shown.bundle.files[name]


def _check_key(shown: Shown, stream: str, records: list[Record], tags: Mapping[str, list[int]]) -> None:
    kind, _, task = stream.partition(":")
    key = _stream_key(shown, stream)
    owner = task if task.startswith("peer:") else f"task:{task}"
    task_key = _stream_key(shown, owner) if kind == "findings" else None
    if key is None:
        if task_key is not None:
            raise RefusedError(f"the key of {stream[:80]} follows from the task's, and is missing")
        return
    shown.used.add(f"data/streams/{stream.replace(':', '.')}.key")
    commitment = sha256(b"a2a-ledger/stream-key/v1\x00", key).hex()
    stated = commitment[:40] == task if kind == "task" else records[0].data.get("stream_commitment") == commitment
    if (kind != "task" and records[0].ver != 0) or not stated or (task_key and _findings_key(task_key) != key):
        raise RefusedError(f"data/streams: not the key that {stream[:80]} commits to")
    shown.keyed.add(stream)
    last = records[-1].ver
    if {record.ver for record in records} != set(range(min(last, len(records)) + 1)):
        shown.bundle.fault("C2", f"{stream[:80]}: {len(records)} of {last + 1} versions are shown")
    for record in records:
        if record.t != _tag(key, record.ver):
            shown.bundle.fault("C2", f"{record.file}: its leaf does not carry the tag of {stream[:80]}")
    later = tags.get(_tag(key, last + 1), [])
    if kind in {"task", "peer"} and f"findings:{stream.removeprefix('task:')}" not in shown.streams:
        later = [*later, *tags.get(_tag(_findings_key(key), 0), [])]
    for n in later:
        shown.bundle.fault("C2", f"leaf {n} is the next version of {stream[:80]} or its findings, and is not shown")


def _tag(key: bytes, ver: int) -> str:
    return hmac.new(key, b"a2a-ledger/stream/v1\x00" + struct.pack(">Q", ver), "sha256").hexdigest()


def _findings_key(key: bytes) -> bytes:
    return hmac.digest(key, b"a2a-ledger/findings-key/v1\x00", "sha256")


# ======== Step 6: the log's own keys (6.3)


@dataclass(slots=True)
class Term:
    """How long a key speaks for its role, in sizes of the tree."""

    role: str
    key: Key
    added: int
    retired: int = MAX_SIZE
    revoked: int = MAX_SIZE
    revoked_by: int = -1  # log index of the first revocation

    def covers(self, size: int) -> bool:
        """Say whether the key speaks for a head of this size."""
        return self.added < size <= min(self.retired, self.revoked)

    def lapsed(self, n: int) -> bool:
        """Say whether it spoke for an event at this index, and no more since a revocation that was logged later."""
        return self.added < n <= self.retired and self.revoked < n < self.revoked_by


class Keys:
    """What the shown events say of the log's keys; for trust only under a checkpoint that the reader trusts."""

    def __init__(self, shown: Shown) -> None:
        self.terms: dict[Key, Term] = {}
        self.follows: dict[Key, Key] = {}  # a key, and the one that handed over to it
        self._public: set[bytes] = set()
        for record in sorted(shown.streams.get("ledger", []), key=lambda record: record.n):
            try:
                if record.type == "key.added.v1":
                    self._add(record)
                elif record.type in {"key.retired.v1", "key.revoked.v1"}:
                    self._end(record)
            except RefusedError as problem:
                shown.bundle.fault("I", f"{record.file}: {problem}")

    def speaking(self, role: str, size: int) -> list[Key]:
        """Return the keys that speak for a role at a size."""
        return [term.key for term in self.terms.values() if term.role == role and term.covers(size)]

    def spoke(self, role: str, n: int) -> list[Key]:
        """Return the keys that spoke for a role at an index, those too that were revoked there later."""
        terms = [term for term in self.terms.values() if term.role == role]
        return [term.key for term in terms if term.covers(n) or term.lapsed(n)]

    def _add(self, record: Record) -> None:
        data = cast("dict[str, str]", record.data)
        key, role = read_vkey(data["vkey"]), data["role"]
        if role not in ROLES or key.public in self._public:
            raise RefusedError("a key of no role, or one that is there already")
        if (data["public_key"], data["key_id"]) != (key.public.hex(), key.id):
            raise RefusedError("public key, key id and vkey do not belong together")
        if role in {"log", "statement", "export"} and key.name != record.log:
            raise RefusedError(f"a {role} key under another name than the log's")
        old = _handed_over(record.log, role, key, data) if "old" in data else None
        self._public.add(key.public)
        self.terms[key] = Term(role, key, record.n)
        if old is not None:
            self.follows[key] = old

    def _end(self, record: Record) -> None:
        data = cast("dict[str, str]", record.data)
        key = read_vkey(data["vkey"])
        term = self.terms.get(key)
        if term is None:
            raise RefusedError("ends a key that was not added")
        size = number(record.data.get("size"))
        fault = (data["role"], data["key_id"]) != (term.role, key.id)
        if record.type == "key.retired.v1":
            fault = fault or term.retired != MAX_SIZE
            term.retired = min(term.retired, record.n)
        elif size is None or size < 0:
            fault = True
        else:
            fault = fault or size >= term.revoked
            term.revoked = min(term.revoked, size)
            term.revoked_by = record.n if term.revoked_by < 0 else term.revoked_by
        if fault:  # what is usable of it counts all the same: no key speaks for longer by a fault
            raise RefusedError("ends a key that was added otherwise, or that has ended already")


def _handed_over(origin: str, role: str, key: Key, data: Mapping[str, str]) -> Key:
    old = read_vkey(data["old"])
    message = b"a2a-ledger/key/v1\x00" + write_json({"log": origin, "new": key.vkey, "old": old.vkey, "role": role})
    for signer, name in ((old, "signature_old"), (key, "signature_new")):
        signature = data.get(name, "")
        if not re.fullmatch("[0-9a-f]{128}", signature) or not signer.verifies(bytes.fromhex(signature), message):
            raise RefusedError(f"{name} of the hand-over does not verify")
    return old


# ======== Steps 7, 8 and 10: what the checkpoint proves


class Answer(NamedTuple):
    """A status of a claim that is not made of faults alone."""

    status: str
    detail: str
    settle: str = ""


class Trust(NamedTuple):
    """Who signed the checkpoint: the answer to L, the log keys that the reader trusts, and who verified."""

    answer: Answer
    logs: list[Key]
    signed: list[Signed]

    @property
    def trusted(self) -> bool:
        """Say whether a key that the reader trusts signed, and speaks for this size."""
        return self.answer.status == "VALID"


def judge_signer(bundle: Bundle, head: Head, policy: Policy | None, keys: Keys) -> Trust:
    """Say who signed the checkpoint (L)."""
    what = f"checkpoint {head.size} of {head.origin[:80]}"
    logs = [key for key in policy.logs if key.name == head.origin] if policy else []
    logs += [term.key for term in keys.terms.values() if term.role == "log" and _leads_back(term.key, keys, logs)]
    if policy is None or not logs:
        return Trust(_by_its_own_keys(bundle, head, keys, what, trusting=policy is not None), [], [])
    try:
        signed = open_head(head, [*logs, *policy.witnesses.values(), *policy.more_witnesses])
    except RefusedError as problem:
        return Trust(Answer("INVALID", f"{what}: {problem}"), logs, [])
    by = [one.key for one in signed if one.key in logs]
    for key in by:
        term = keys.terms.get(key)
        if term is None or (term.role == "log" and term.covers(head.size)):
            return Trust(Answer("VALID", f"{what} is signed by {key.name}+{key.id}"), logs, signed)
    names = ", ".join(f"{key.name}+{key.id}" for key in by)
    return Trust(
        Answer("INVALID", f"{what} is signed by {names}, which by the log does not speak for it"), logs, signed
    )


def _leads_back(key: Key, keys: Keys, trusted: Sequence[Key]) -> bool:
    seen: set[Key] = set()
    while key in keys.follows and key not in seen:
        seen.add(key)
        old, at = keys.terms.get(keys.follows[key]), keys.terms[key].added + 1
        if old is not None and not old.covers(at):  # it had ended before, or is not to be trusted at that size
            return False
        key = keys.follows[key]
        if key in trusted:
            return True
    return False


def _by_its_own_keys(bundle: Bundle, head: Head, keys: Keys, what: str, *, trusting: bool) -> Answer:
    """Try the keys from inside: they can show a contradiction, and never give trust."""
    claimed = keys.speaking("log", MAX_SIZE) or [key for key, term in keys.terms.items() if term.role == "log"]
    try:
        for name in bundle.folders["data/keys/untrusted"]:
            if name.startswith("data/keys/untrusted/log-"):
                claimed.append(read_vkey(bundle.files[name].decode("ascii", errors="replace").rstrip("\n")))
        signer = open_head(head, claimed)[0].key
    except RefusedError as problem:
        return Answer("INVALID", f"{what}, by the keys that come with it: {problem}")
    why = "your policy names no key of this log" if trusting else "no key that you trust was given"
    settle = f"compare {signer.vkey} with its owner by another way, then give it as --trust"
    return Answer("NOT PROVEN", f"{what}: {why}", settle)


def check_inclusion(bundle: Bundle, leaves: Mapping[int, Leaf], head: Head) -> None:
    """Verify the proof of every leaf (P)."""
    note = bundle.files[CHECKPOINT]
    for leaf in leaves.values():
        name = f"data/log/proofs/{leaf.n}.tlog-proof"
        try:
            index, path = read_proof(bundle.read(name), note)
        except RefusedError as problem:
            bundle.fault("P", _named(name, problem))
            continue
        if index != leaf.n or root_by_inclusion(index, head.size, leaf_hash(leaf.raw), path) != head.root:
            bundle.fault("P", f"{name}: does not prove its leaf")
    for name in bundle.folders["data/log/proofs"]:
        count = name.removeprefix("data/log/proofs/").removesuffix(".tlog-proof")
        if not _COUNT.fullmatch(count) or int(count) not in leaves:
            bundle.fault("P", f"{name}: proves a leaf that is not shown")
    if not leaves:
        bundle.fault("P", f"{EVENTS}: shows no event")


def judge_witnesses(trust: Trust, policy: Policy | None) -> Answer:
    """Answer W by the cosignatures of the reader's witnesses."""
    cosigners = {one.key for one in trust.signed if one.time is not None}
    if policy is None or not cosigners:
        why = "no witness that you trust has cosigned the checkpoint"
        return Answer("NOT PROVEN", why, "a cosignature of a witness that your policy names")
    if policy.quorum in {"", "none"}:
        return Answer("NOT PROVEN", "your policy asks for no witness", "a quorum line in your policy")
    if not policy.is_met(policy.quorum, cosigners):
        why = f"{len(cosigners)} witnesses cosigned, which is not your quorum {policy.quorum[:80]!a}"
        return Answer("NOT PROVEN", why, "the cosignatures that are missing")
    return Answer("VALID", "cosigned by " + ", ".join(sorted(key.name for key in cosigners)))


def _quorum_time(trust: Trust, policy: Policy | None) -> int | None:
    """Return the second at which the quorum had cosigned; None if it did not, or if none is asked for."""
    if policy is None or policy.quorum in {"", "none"}:
        return None
    times = sorted({one.time for one in trust.signed if one.time is not None})
    for time in times:
        by_then = {one.key for one in trust.signed if one.time is not None and one.time <= time}
        if policy.is_met(policy.quorum, by_then):
            return time
    return None


class Bound(NamedTuple):
    """So many first events of the log existed by a second, by somebody's clock."""

    size: int
    second: int
    whose: str

    def __str__(self) -> str:
        """Say it in a sentence."""
        return f"the first {self.size} events of the log existed not later than {_time(self.second)}, by {self.whose}"


def read_bounds(bundle: Bundle, head: Head, trust: Trust, policy: Policy | None, left: list[str]) -> list[Bound]:
    """Return the times that are proven to this reader; add to `left` the tokens that prove nothing to him."""
    bounds: list[Bound] = []
    met = _quorum_time(trust, policy)
    if met is not None:
        bounds.append(Bound(head.size, met, "the clocks of the witnesses of your quorum"))
    for name in (f"data/time/{count}" for count in range(10)):
        if f"{name}.checkpoint" not in bundle.files and f"{name}.tsr" not in bundle.files:
            continue
        try:
            bounds.append(_read_bound(bundle, head, policy, name))
        except RefusedError as problem:
            bundle.fault("T", _named(f"{name}.tsr", problem))
        except UnprovenError as problem:
            left.append(f"{name}.tsr: {problem}")
    return sorted(bounds, key=lambda bound: bound.second)


def judge_time(bounds: Sequence[Bound], left: Sequence[str], needed: int) -> Answer:
    """Answer T: by when the first `needed` events of the log existed; `bounds` with the earliest first."""
    enough = [bound for bound in bounds if bound.size >= needed]
    if enough:
        return Answer("VALID", f"{enough[0]}; no earliest time is shown")
    short = [f"{bound}, and what is shown goes up to event {needed - 1}" for bound in bounds]
    why = "; ".join([*short, *left]) or "no witnesses of a quorum and no time authority that you trust state a time"
    settle = "a `tsa` line of your policy with the root of that time authority" if left else "a time token or a quorum"
    return Answer("NOT PROVEN", why, settle)


def _read_bound(bundle: Bundle, head: Head, policy: Policy | None, name: str) -> Bound:
    """Return what one time token proves; RefusedError: it is broken, UnprovenError: nothing, to this reader."""
    note = bundle.read(f"{name}.checkpoint")
    old = read_head(note)
    if old.origin != head.origin or not 0 < old.size <= head.size:
        raise RefusedError("is over a head that is none of this log up to the bundle's own")
    grown = _leads_on(bundle, head, old)
    token = read_token(bundle.read(f"{name}.tsr"))
    if token.imprint != sha256(note):
        raise RefusedError(f"is not over {name}.checkpoint")
    signer = check_token(token)
    bound = Bound(old.size, token.latest, f"the time authority {signer.subject.rfc4514_string()[:80]!a}")
    if not grown:
        raise UnprovenError(f"{bound}; the bundle does not lead from that head to {head.size}")
    if policy is None or not policy.roots:
        raise UnprovenError(f"{bound}; you named no root of a time authority")
    try:
        check_vouched(token, signer, policy.roots)
    except UnprovenError as problem:
        raise UnprovenError(f"{bound}; {problem}") from None
    return bound


def _time(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return f"second {seconds}"


def judge_growth(bundle: Bundle, head: Head, trust: Trust, earlier: Sequence[bytes]) -> Answer:
    """Answer A: the log only grew since the checkpoints that the reader holds."""
    if not earlier:
        return Answer(
            "NOT PROVEN", "you gave no earlier checkpoint", f"one of {head.origin[:80]} held by somebody else"
        )
    answers = [_judge_one(bundle, head, old) for old in [_open_earlier(note, head, trust) for note in earlier]]
    order = ("INVALID", "NOT PROVEN", "VALID")
    return min(answers, key=lambda answer: order.index(answer.status))


def _judge_one(bundle: Bundle, head: Head, old: Head) -> Answer:
    if old.origin != head.origin or not 0 < old.size <= head.size:
        why = f"checkpoint {old.size} of {old.origin[:80]} is no earlier one of {head.origin[:80]}, size {head.size}"
        return Answer("NOT PROVEN", why, "a bundle under a newer checkpoint")
    try:
        if not _leads_on(bundle, head, old):
            name = f"data/log/consistency/{old.size}-{head.size}"
            return Answer("NOT PROVEN", f"the bundle does not lead from {old.size} to {head.size}", f"the file {name}")
    except RefusedError as problem:
        return Answer("INVALID", str(problem))
    return Answer("VALID", f"the log only grew from {old.size} to {head.size}")


def _leads_on(bundle: Bundle, head: Head, old: Head) -> bool:
    """Say whether the bundle proves that the log only grew since a head; RefusedError: it proves that it did not."""
    name = f"data/log/consistency/{old.size}-{head.size}"
    path: list[bytes] = []
    if old.size != head.size:
        if name not in bundle.files:
            return False
        try:
            path = _read_path(bundle.files[name])
        except RefusedError as problem:
            raise RefusedError(_named(name, problem)) from None
    if not is_consistent((old.size, old.root), (head.size, head.root), path):
        raise RefusedError(f"{name}: the log was rewritten between {old.size} and {head.size}")
    return True


def _read_path(data: bytes) -> list[bytes]:
    *lines, end = read_text(data).split("\n")
    if end:
        raise RefusedError("does not end in a line feed")
    return [read_hash(line) for line in lines]


def _open_earlier(note: bytes, head: Head, trust: Trust) -> Head:
    try:
        old = read_head(note)
        if trust.logs and old.origin == head.origin:
            open_head(old, trust.logs)
    except RefusedError as problem:
        raise UsageError(f"the earlier checkpoint that you gave cannot be used: it {problem}") from None
    return old


# ======== Step 9: what the exporter signed and repeated (10.2, 11.2)

LETTERS: Final = ("I", "L", "P", "A", "W", "T", "S", "C1", "C2", "C3", "R", "X")
NOT_CLAIMED: Final[tuple[str, ...]] = (
    "that the peer sent these messages: the peer signed none of them",
    "that anything was recorded at the time that `at` states: it is the recorder's own clock",
    "that nothing happened which the recorder did not see",
    "that the log has no later events of this task than the bundle shows",
    "that a change of the peer's card breaks A2A: a finding says that the peer left the frozen contract",
)
_TYPE: Final = "application/vnd.in-toto+json"
_STATEMENT: Final = "https://in-toto.io/Statement/v1"
_EXPORT: Final = "https://w3id.org/a2a-ledger/export/v1"
_VIOLATION: Final = "https://w3id.org/a2a-ledger/violation/v1"
NOT_ALL: Final = "that these are all tasks of the context or the peer: the log does not prove which tasks it has"


class Scope(NamedTuple):
    """What a bundle is about (11.2, 11.4): which streams are shown whole, and which members say so."""

    packed: bool
    kind: str  # task, context or peer
    value: str
    tasks: tuple[str, ...]

    @property
    def shared(self) -> set[str]:
        """Return the members that the statement and the claims have in common."""
        own = {"peers", "selection", "tasks"} if self.packed else {"peer", "task"}
        return {"checkpoint", "ends", "later_events", "withheld", *own}

    @property
    def streams(self) -> list[str]:
        """Return the streams whose ends an export states."""
        owners = [*self.tasks, *([f"peer:{self.value}"] if self.kind == "peer" else [])]
        whole = [owner if owner.startswith("peer:") else f"task:{owner}" for owner in owners]
        return sorted(["ledger", *whole, *(f"findings:{owner}" for owner in owners)])

    @property
    def identifier(self) -> str:
        """Return what stands behind the origin in `bag-info.txt`."""
        return sha256(write_json({self.kind: self.value})).hex()[:40] if self.packed else f"task:{self.value}"


def read_scope(claims: Object, *, packed: bool) -> Scope | None:
    """Return what the claims say that the bundle is about; None: they do not say it."""
    task, tasks, selection = claims.get("task"), claims.get("tasks"), claims.get("selection")
    if not packed:
        good = isinstance(task, str) and re.fullmatch("[0-9a-f]{40}", task)
        return Scope(packed, "task", task, (task,)) if isinstance(task, str) and good else None
    named = tuple(one for one in tasks if isinstance(one, str)) if isinstance(tasks, list) else ()
    sane = isinstance(tasks, list) and len(named) == len(tasks) and list(named) == sorted(set(named))
    if not sane or not all(re.fullmatch("[0-9a-f]{40}", one) for one in named):
        return None
    if not isinstance(selection, dict) or len(selection) != 1:
        return None
    ((kind, value),) = selection.items()
    fits = {"task": named == (value,), "context": bool(named), "peer": bool(re.fullmatch("[0-9a-f]{32}", str(value)))}
    return Scope(packed, kind, value, named) if isinstance(value, str) and fits.get(kind, False) else None


def peer_of(shown: Shown, task: str) -> str:
    """Return the peer that a task's events name first."""
    return next((str(one.data["peer"]) for one in shown.streams.get(f"task:{task}", []) if "peer" in one.data), "")


class Statement(NamedTuple):
    """A signed statement: who signed, what about, what kind, what it says."""

    signers: list[str]
    subjects: list[tuple[str, str]]
    kind: str
    says: Object


def open_statement(raw: bytes, keys: Sequence[Key]) -> tuple[Statement, bytes]:
    """Open a DSSE envelope by known keys; return the statement in it, and the payload's octets."""
    match read_json(raw):
        case {"payload": str(encoded), "payloadType": "application/vnd.in-toto+json", "signatures": [*signatures]} if (
            len(signatures) <= MAX_LINES
        ):
            payload = _either_base64(encoded)
        case _:
            raise RefusedError("is no DSSE envelope of an in-toto statement")
    message = b"DSSEv1 %d %s %d %s" % (len(_TYPE), _TYPE.encode(), len(payload), payload)
    made: list[tuple[str, bytes]] = []
    for one in signatures:
        match one:
            case {"sig": str(signature), **others}:
                made.append((str(others.get("keyid")), _either_base64(signature)))
            case _:
                raise RefusedError("holds a signature that is none")
    signers: list[str] = []
    for key in keys:
        hinted = [signature for named, signature in made if named == key.id]  # the key id is a hint, no more
        rest = [signature for named, signature in made if named != key.id]
        if any(key.verifies(signature, message) for signature in (*hinted, *rest)):
            signers.append(key.vkey)
    if not signers:
        raise RefusedError("is signed by no key that speaks for it")
    match read_json(payload):
        case {"_type": str(kind), "predicate": dict(says), "predicateType": str(about), "subject": list(named), **more}:
            subjects = [_subject(one) for one in named]
        case _:
            raise RefusedError("holds no in-toto statement")
    if kind != _STATEMENT or more or not subjects:
        raise RefusedError("holds no in-toto statement of version 1")
    return Statement(signers, subjects, about, says), payload


def _either_base64(text: str) -> bytes:
    return read_base64(text if {"+", "/"} & set(text) else text.replace("-", "+").replace("_", "/"))


def _subject(value: Json) -> tuple[str, str]:
    match value:
        case {"name": str(name), "digest": {"sha256": str(digest)}}:
            return name, digest
        case _:
            raise RefusedError("has a subject without name and sha256")


def check_export(  # noqa: PLR0913, PLR0917 - what is signed, and all that it is held against
    bundle: Bundle, shown: Shown, keys: Keys, head: Head, claims: Object, scope: Scope
) -> tuple[dict[str, int], str]:
    """Check both signatures of the exporter (I); return the signed ends of the streams, and the time of the export."""
    signed = claims.get("signed") is True
    exporters = keys.speaking("export", head.size)
    for name in (SIGNATURE, STATEMENT):
        if (name in bundle.files) != signed:
            bundle.fault("I", f"{name}: is there, or missing, other than {CLAIMS} says")
    try:
        if SIGNATURE in bundle.files and not any(
            key.verifies(bundle.files[SIGNATURE], bundle.files[TAGS]) for key in exporters
        ):
            bundle.fault("I", f"{SIGNATURE}: no export key of the log made it")
        if STATEMENT not in bundle.files:
            return {}, ""
        statement, _ = open_statement(bundle.files[STATEMENT], exporters)
        return _read_export(statement, shown, claims, scope)
    except RefusedError as problem:
        bundle.fault("I", _named(STATEMENT, problem))
        return {}, ""


def _read_export(statement: Statement, shown: Shown, claims: Object, scope: Scope) -> tuple[dict[str, int], str]:
    says = statement.says
    lines = b"".join(leaf.raw + b"\n" for leaf in shown.leaves.values())
    if statement.kind != _EXPORT or statement.subjects != [(EVENTS, sha256(lines).hex())]:
        raise RefusedError("is about something else than the shown leaves")
    if says.keys() != {*scope.shared, "at", "exporter", "tool"}:
        raise RefusedError("has other members than it should have")
    for name in sorted(scope.shared):
        if name not in claims or not same(says[name], claims[name]):
            raise RefusedError(f"says another {name} than {CLAIMS}")
    at = says["at"]
    if not isinstance(at, str) or not isinstance(says["tool"], str) or says["exporter"] not in statement.signers:
        raise RefusedError("names another exporter than its signer, or has no time or tool")
    ends: dict[str, int] = {}
    for end in says["ends"] if isinstance(says["ends"], list) else []:
        match end:
            case {"stream": str(stream), "ver": int(ver), **others} if (
                not others and type(ver) is int and ver >= -1 and stream not in ends
            ):
                ends[stream] = ver
            case _:
                raise RefusedError("has ends of another shape")
    if list(ends) != scope.streams:
        raise RefusedError("has ends of other streams than it should have")
    return ends, at


def check_claims(bundle: Bundle, shown: Shown, head: Head, claims: Object, scope: Scope) -> None:
    """Hold `claims.json` against what is shown (I)."""
    later, signed = number(claims.get("later_events")), claims.get("signed")
    if later is None or later < 0 or not isinstance(signed, bool):
        bundle.fault("I", f"{CLAIMS}: later_events or signed is of another kind")
        return
    peers = [peer_of(shown, task) for task in scope.tasks]
    about: Object = {"peer": next(iter(peers), ""), "task": scope.value}
    if scope.packed:
        about = {
            "peers": list[Json](sorted(set(peers))),
            "selection": {scope.kind: scope.value},
            "tasks": list[Json](scope.tasks),
        }
    expected: Object = {
        "checkpoint": {"root": head.root.hex(), "size": head.size},
        "claims": list[Json](LETTERS),
        "ends": [{"stream": stream, "ver": shown.end(stream)} for stream in scope.streams],
        "events": len(shown.records),
        "form": f"a2a-evidence/{2 if scope.packed else 1}",
        "later_events": later,
        "log": head.origin,
        "not_claimed": list[Json]([*NOT_CLAIMED, *([] if scope.kind == "task" else [NOT_ALL])]),
        "signed": signed,
        **about,
    }
    if claims.keys() != {*expected, "withheld"}:
        bundle.fault("I", f"{CLAIMS}: has other members than it should have")
    for name, value in expected.items():
        if name in claims and not same(claims[name], value):
            bundle.fault("I", f"{CLAIMS}: its {name} is not what is shown")
    for stream in shown.streams:
        if shown.streams[stream] and stream not in scope.streams and not stream.startswith(("peer:", "findings:peer:")):
            bundle.fault("I", f"{stream[:80]} is shown, which is neither of the task nor of a peer")
    for task, peer in zip(scope.tasks, peers, strict=True) if scope.packed else ():
        events = shown.streams.get(f"task:{task}", [])
        named = scope.kind != "context" or any(one.data.get("context_id") == scope.value for one in events)
        if not events or not named or (scope.kind == "peer" and peer != scope.value):
            bundle.fault("I", f"{CLAIMS}: task {task} is not shown, or not one of the {scope.kind} that is named")


def check_repeated(bundle: Bundle, shown: Shown, head: Head, scope: Scope, at: str) -> None:
    """Hold the files that repeat facts against what is shown (I)."""
    payload = [content for name, content in bundle.zipped.items() if name.startswith("data/")]
    info = (
        f"BagIt-Profile-Identifier: a2a-evidence/{2 if scope.packed else 1}",
        "Bagging-Date: [0-9]{4}-[0-9]{2}-[0-9]{2}",
        f"External-Identifier: {re.escape(head.origin)}#{re.escape(scope.identifier)}",
        f"Log-Size: {head.size}",
        rf"Payload-Oxum: {sum(map(len, payload))}\.{len(payload)}",
    )
    *lines, end = bundle.files.get("bag-info.txt", b"").decode("utf-8", errors="replace").split("\n")
    if end or len(lines) != len(info) or not all(map(re.fullmatch, info, sorted(lines))):
        bundle.fault("I", "bag-info.txt: has other lines than it should have")
    outcome: list[bytes] = []
    for record in shown.records.values():
        if record.type in {"freshness.decided.v1", "violation.detected.v1"}:
            named = ("decision", "reason", "rule", "about", "certainty")
            told = {name: record.data[name] for name in named if name in record.data}
            outcome.append(write_json({"index": record.n, "type": record.type, **told}) + b"\n")
    if bundle.files.get(EXPECTED) != b"".join(outcome):
        bundle.fault("I", f"{EXPECTED}: is not the outcome of what is shown")
    keys: dict[str, bytes] = {}
    for record in shown.streams.get("ledger", []):
        if record.type == "key.added.v1":
            vkey = cast("str", record.data["vkey"])
            key_id = vkey.split("+")[1] if vkey.count("+") > 1 else ""
            keys[f"data/keys/untrusted/{record.data['role']}-{key_id}.vkey"] = f"{vkey}\n".encode()
    if keys != {name: bundle.files[name] for name in bundle.folders["data/keys/untrusted"]}:
        bundle.fault("I", "data/keys/untrusted: not the keys that the log's events name")
    try:
        _check_custody(bundle.json(CUSTODY), head.origin, at)
    except RefusedError as problem:
        bundle.fault("I", _named(CUSTODY, problem))


def _check_custody(custody: Json, origin: str, at: str) -> None:
    match custody:
        case {
            "acquired_by": str(),
            "clock": str(),
            "custodian": str(custodian),
            "exported_at": str(exported),
            "hand_overs": [],
            **others,
        } if not others and _AT.fullmatch(exported):
            if custodian != origin or (at and exported != at):
                raise RefusedError("names another custodian or time than the bundle")
        case _:
            raise RefusedError("has other members than it should have")


# ======== Step 11: findings and content (7, 9, 10)


def check_findings(bundle: Bundle, shown: Shown, keys: Keys) -> None:
    """Check place, statement, subjects and trigger of each finding (R); the finding itself stands as recorded."""
    expected: set[str] = set()
    for record in shown.records.values():
        if record.type != "violation.detected.v1":
            continue
        name = f"data/statements/{record.n}.dsse.json"
        expected.add(name)
        if any(part.content is None for part in record.blobs.get("statement", ())):
            continue  # left out: nothing can be said of it
        try:
            _check_finding(bundle, name, record, shown, keys)
        except RefusedError as problem:
            bundle.fault("R", _named(name, problem))
    for name in bundle.folders["data/statements"]:
        if name not in expected:
            bundle.fault("R", f"{name}: no finding of the bundle has it")


def _open_finding(raw: bytes, name: str, record: Record, shown: Shown, keys: Keys) -> Statement:
    statement, payload = open_statement(raw, keys.spoke("statement", record.n))
    if not {key.vkey for key in keys.speaking("statement", record.n)}.intersection(statement.signers):
        shown.open.append(f"{name}: its signer was revoked later, for a size before it: others could sign it too")
    if record.whole.get("statement") != raw or sha256(payload).hex() != record.data["statement_sha256"]:
        raise RefusedError(f"is not the statement that {record.file} holds")
    return statement


def _check_finding(bundle: Bundle, name: str, record: Record, shown: Shown, keys: Keys) -> None:
    data = record.data
    of_peer = data["rule_class"] == "card" or data["rule"] == "weaker-authorization"
    place = f"findings:peer:{data['peer']}" if of_peer else f"findings:{data.get('task')}"
    if record.stream != place or (of_peer and "task" in data):
        raise RefusedError(f"is recorded in {record.stream[:80]}, expected {place[:80]}")
    statement = _open_finding(bundle.read(name), name, record, shown, keys)
    _check_predicate(statement, record, shown)
    indexes, refs = cast("list[int]", data["evidence_index"]), cast("list[Json]", data["evidence"])
    if not len(indexes) == len(refs) == len(statement.subjects) or indexes != sorted(set(indexes)):
        raise RefusedError("has other subjects than its record has evidence, or these are out of order")
    if data["trigger_index"] not in indexes:
        raise RefusedError("does not have its trigger among its evidence")
    for n, ref, (about, digest) in zip(indexes, refs, statement.subjects, strict=True):
        leaf, there = shown.leaves.get(n), shown.records.get(n)
        if leaf is None:  # of a finding about a peer, events of other tasks are not shown
            if not record.stream.startswith("findings:peer:") or about != f"{record.log}#{n}" or n >= record.n:
                raise RefusedError(f"speaks about leaf {n}, which is not shown")
        elif (about, digest) != (f"{record.log}#{n}", sha256(leaf.raw).hex()):
            raise RefusedError(f"speaks about another leaf {n} than is shown")
        elif there is not None and not same(ref, _ref(there)):
            raise RefusedError(f"refers to another event {n} than is shown")


def _peers_of_findings_elsewhere(shown: Shown) -> list[str]:
    """Return the peers, a finding about whom rests on events of other tasks, which are not shown."""
    return sorted(
        {
            str(record.data["peer"])
            for record in shown.records.values()
            if record.type == "violation.detected.v1" and record.stream.startswith("findings:peer:")
            if any(n not in shown.leaves for n in cast("list[int]", record.data["evidence_index"]))
        }
    )


def _ref(record: Record) -> Object:
    return {"c": record.c, "stream": record.stream, "ver": record.ver}


def _check_predicate(statement: Statement, record: Record, shown: Shown) -> None:
    data = record.data
    at = cast("int", data["trigger_index"])
    trigger = shown.records.get(at)
    if trigger is None or at >= record.n or not same(data["trigger"], _ref(trigger)):
        raise RefusedError(f"has a trigger, event {at}, that is not shown before it")
    if ("frozen_hash" in data) != ("frozen_form" in data):
        raise RefusedError("has a hash without its form")
    repeated = ("about", "basis", "certainty", "not_established", "observed", "profile_hash", "rule", "rule_set")
    expected: Object = {name: data[name] for name in (*repeated, "subject")}
    expected["trigger"] = trigger.c
    expected["as_of"] = at + 1
    framed = "frozen_hash" in data
    expected["frozen"] = {"form": data["frozen_form"], "hash": data["frozen_hash"]} if framed else None
    if statement.kind != _VIOLATION or not same(statement.says, expected):
        raise RefusedError(f"says something else than {record.file}")


def check_engine(bundle: Bundle, head: Head) -> None:
    """Hold `engine.json` and the profile that it names against each other (R)."""
    try:
        match bundle.json("data/replay/engine.json"):
            case {
                "freshness": str(),
                "profile": str(profile),
                "rule_set": str(),
                "software": str(),
                "verified_to": int(to),
                **others,
            } if not others and not isinstance(to, bool) and 0 <= to <= head.size:
                if profile != _digest(bundle.read("data/replay/profile.toml")):
                    bundle.fault("R", "data/replay/profile.toml: is not the profile that engine.json names")
            case _:
                bundle.fault("R", "data/replay/engine.json: has other members than it should have")
    except RefusedError as problem:
        bundle.fault("R", problem)


_LEGS: Final = frozenset({"request", "response", "stream-event", "stream-end", "push", "error"})


def check_places(bundle: Bundle, shown: Shown) -> None:
    """Hold each event against the streams of section 2, and against those that it stands beside (R)."""
    beside = Beside(shown)
    for record in shown.records.values():
        found = [*_check_place(record), *_check_peer(record, beside)]
        for problem in (*found, *_check_of_task(record, beside), *_check_of_others(record, shown)):
            bundle.fault("R", f"{record.file}: {problem}")


def _check_place(record: Record) -> Iterator[str]:
    ours = record.stream.split(":")[0] in {"ledger", "anchors", "peer", "task", "findings"}
    if ours and not _STREAM.fullmatch(record.stream):
        yield f"stands in {record.stream[:80]!a}, which is no name of a stream"
    elif record.type in EVENTS_TABLE:
        places = STREAMS_TABLE.get(record.type) or STREAMS_TABLE[record.type.split(".")[0]]
        if not re.fullmatch(places, record.stream):
            yield f"a {record.type} does not belong into {record.stream[:80]!a}"


class Beside:
    """The shown events in log order, by what they have in common with others."""

    def __init__(self, shown: Shown) -> None:
        self.shown = shown
        self.peers: dict[str, str] = {}  # of each stream the peer that it names first
        self.urls: dict[str, str] = {}  # of each peer the url
        self.ids: dict[tuple[Json, ...], int] = {}  # where a message, or one that answers it, first gave these ids
        self.frozen: dict[str, Record] = {}  # of each stream its first capture
        self.asked: dict[str, int] = {}  # of each stream the first request that went out
        self.following: dict[int, Record] = {}  # of each event the first message behind it in its stream
        waiting: dict[str, list[int]] = defaultdict(list)
        for record in sorted(shown.records.values(), key=lambda record: record.n):
            peer, url = record.text("peer"), record.text("peer_url")
            if peer is not None:
                self.peers.setdefault(record.stream, peer)
                if url:
                    self.urls.setdefault(peer, url)
            if record.type == "contract.captured.v1":
                self.frozen.setdefault(record.stream, record)
            if record.type == "message.recorded.v1":
                if (record.data["leg"], record.data["direction"]) == ("request", "out"):
                    self.asked.setdefault(record.stream, record.n)
                self.following |= dict.fromkeys(waiting.pop(record.stream, []), record)
                asked = shown.named(record, "answers")
                for message in (record, *([asked] if asked is not None else [])):
                    self.ids.setdefault((message.n, *_ids(record)), record.n)
            waiting[record.stream].append(record.n)


def _ids(record: Record) -> tuple[Json, Json]:
    return record.data.get("task_id"), record.data.get("context_id")


def _check_peer(record: Record, beside: Beside) -> Iterator[str]:
    peer, url = record.text("peer"), record.text("peer_url")
    kind, _, owner = record.stream.partition(":")
    if peer is None:
        return
    if (kind == "peer" and peer != owner) or (kind == "task" and peer != beside.peers[record.stream]):
        yield "has another peer than its stream"
    if url and url[:1024] != beside.urls[peer][:1024]:
        yield "gives its peer another url than an event before it"


def _check_of_task(record: Record, beside: Beside) -> Iterator[str]:  # noqa: C901, PLR0912 - a case a type of event
    named = beside.shown.named
    match record.type:
        case "message.recorded.v1":
            yield from _check_answer(record, named(record, "answers"))
        case "task.bound.v1":
            asked = named(record, "answers")
            if asked is not None:
                given = beside.ids.get((asked.n, *_ids(record)), record.n) < record.n
                if not given or (asked.type, asked.stream) != ("message.recorded.v1", record.stream):
                    yield f"binds other ids than what answered event {asked.n} gave"
        case "task.adopted.v1":
            said = beside.following.get(record.n)
            if said is None or _ids(said) != _ids(record):
                yield "adopts other ids than the message behind it names"
        case "contract.captured.v1" | "contract.reconstructed.v1":
            yield from _check_pin(record)
            yield from _check_frozen(record, beside)
            fetch = named(record, "fetch")
            if fetch is not None:
                names = ("form", "seed0") if fetch.type == "card.fetched.v1" else ("form",)
                yield from _check_named_card(record, fetch, names)
        case "freshness.decided.v1":
            yield from _check_refetch(record, named(record, "card"), named(record, "refetch"))
        case "send.aborted.v1":
            yield from _check_abort(record, beside.shown)
        case "content.erased.v1":
            refs = [as_object(ref) for ref in cast("list[Json]", record.data["records"])]
            if any(ref["stream"] != record.stream or (number(ref["ver"]) or 0) >= record.ver for ref in refs):
                yield "lists events that are not before it in its stream"
        case _:
            pass


def _check_frozen(record: Record, beside: Beside) -> Iterator[str]:
    """See that a task has one contract, which a client froze before the first request."""
    if record.type != "contract.captured.v1":
        return
    first, data = beside.frozen[record.stream], record.data
    if data.get("contract_hash") != first.data.get("contract_hash"):
        yield f"freezes another contract than event {first.n}"
    asked = beside.asked.get(record.stream, record.n)
    if record.n == first.n and data.get("side") != "server" and asked < record.n:
        yield f"comes after the first request of its task, event {asked}"


def _check_of_others(record: Record, shown: Shown) -> Iterator[str]:  # noqa: C901, PLR0912 - a case a type of event
    data = record.data
    status = number(data.get("status"))
    succeeded = status is not None and 200 <= status < 300  # noqa: PLR2004 - HTTP
    match record.type:
        case "contract.accepted.v1":
            fetch = shown.named(record, "fetch")
            if fetch is not None:
                yield from _check_named_card(record, fetch, ("form",))
                if fetch.type != "card.fetched.v1" or data["new_hash"] != fetch.data.get("contract_hash"):
                    yield f"takes on another contract than event {fetch.n} brought"
        case "card.fetched.v1":
            stands = shown.named(record, "not_modified")
            if not (status == 304 if "not_modified" in data else succeeded):  # noqa: PLR2004 - HTTP
                yield f"its status {status} does not go with what it brought"
            if stands is not None:
                repeated = [name for name in ("form", "seed0", "interfaces") if name in data]
                yield from _check_named_card(record, stands, repeated)
        case "card.fetch_failed.v1":
            if data["outcome"] == "status" and (status is None or succeeded):
                yield "failed by a status that is no failure"
        case "finding.acknowledged.v1":
            finding = shown.named(record, "violation")
            if finding is not None and (finding.type, finding.stream) != ("violation.detected.v1", record.stream):
                yield f"acknowledges event {finding.n}, which is no finding of its stream"
        case "ledger.opened.v1":
            if data["origin"] != record.log or record.ver != 0:
                yield "does not open the log that it stands in"
            keys = cast("list[str]", data["keys"])
            added = [shown.places.get((record.stream, record.ver + count)) for count in range(1, len(keys) + 1)]
            told = [str(one.data["vkey"]) if one is not None and one.type == "key.added.v1" else "" for one in added]
            if sorted(keys) != sorted(told):
                what = "its keys are not those that the events behind it add"
                if None in added:
                    shown.open.append(f"{record.file}: {what}, which are not all shown")
                else:
                    yield what
        case _:
            pass


def _check_answer(record: Record, asked: Record | None) -> Iterator[str]:
    data = record.data
    leg, side = data["leg"], data.get("side")
    goes_out = (leg == "request") != (side == "server")
    if leg in _LEGS and data["direction"] in {"in", "out"} and data["direction"] != ("out" if goes_out else "in"):
        yield "has a direction that its leg cannot have on its side"
    if asked is None:
        return
    if asked.type != "message.recorded.v1" or asked.data["leg"] not in {"request", "push"}:
        yield f"answers event {asked.n}, which is no request"
        return
    if asked.stream != record.stream or asked.n > record.n:
        yield f"answers event {asked.n}, which is not before it in its stream"
        return
    for name in ("url", "binding", "side", "method", "method_spelled"):
        repeats = name not in {"method", "method_spelled"} or name in data or leg not in {"error", "stream-end"}
        if repeats and not _alike(data.get(name), asked.data.get(name)):
            yield f"its {name} is not that of the request at {asked.n}"


def _alike(one: Json, other: Json) -> bool:
    """Compare two fields, where either may have `*` for octets of a secret."""
    if isinstance(one, str) and isinstance(other, str):
        return len(one) == len(other) and all(a == b or "*" in {a, b} for a, b in zip(one, other, strict=True))
    return same(one, other)


def _check_pin(record: Record) -> Iterator[str]:
    data = record.data
    if record.type != "contract.captured.v1" or data.get("side") == "server":
        return  # then it is what the client attached
    frozen = {"contractHash": data.get("contract_hash"), "form": data["form"], "origin": record.log}
    frozen["task"] = record.stream.removeprefix("task:")
    for name, value in as_object(data.get("pin")).items():
        if name in frozen and value != frozen[name]:
            yield f"its pin has another {name} than is frozen"


def _check_named_card(record: Record, fetch: Record, names: Iterable[str]) -> Iterator[str]:
    if fetch.data.get("peer", record.data["peer"]) != record.data["peer"] or fetch.n > record.n:
        yield f"names event {fetch.n}, which is of another peer, or later"
    for name in names:
        if not same(record.data.get(name), fetch.data.get(name)):
            yield f"its {name} is not that of the fetch at {fetch.n}"


def _check_refetch(record: Record, card: Record | None, again: Record | None) -> Iterator[str]:
    for fetch in (card, again):
        if fetch is not None:
            yield from _check_named_card(record, fetch, ())
    outcome = as_object(as_object(record.data["inputs"]).get("refetch")).get("outcome")
    if outcome is None or again is None:
        return
    flags, found = again.data.get("flags"), again.data.get("contract_hash")
    failed = again.type != "card.fetched.v1" or (isinstance(flags, list) and "not-a-card" in flags)
    before = card.data.get("contract_hash") if card is not None else None
    fits = failed == (outcome == "failed") and (outcome != "304" or again.data.get("status") == 304)  # noqa: PLR2004
    if not failed and found is None:
        fits = fits and outcome == "undecidable"
    elif not failed and before is not None:
        fits = fits and (outcome == "contract" if found != before else outcome != "undecidable")
    if not fits:
        yield f"was decided on another outcome than the fetch at {again.n} had"


def _check_abort(record: Record, shown: Shown) -> Iterator[str]:
    data, decision = record.data, shown.places.get((record.stream, record.ver - 1))
    if data["requests"] != 0:
        yield "says that nothing left, and that requests did"
    if decision is None or decision.type != "freshness.decided.v1" or decision.data["decision"] != "abort-before-send":
        yield "has no decision to abort before it"
        return
    if data["reason"] != decision.data["reason"]:
        yield "has another reason than the decision before it"
    for name, where in (("old_hash", "card"), ("new_hash", "refetch")):
        fetch = shown.named(decision, where)
        if fetch is not None and data.get(name) != fetch.data.get("contract_hash"):
            yield f"its {name} is not that of the fetch at {fetch.n}"


def check_content(bundle: Bundle, shown: Shown) -> None:
    """Hold what records say of their own octets, and of each other, against them (R)."""
    checks: dict[str, Callable[[Record, Shown], Iterable[str]]] = {
        "card.fetched.v1": _check_fetch,
        "card.served.v1": _check_card,
        "contract.captured.v1": _check_capture,
        "contract.reconstructed.v1": _check_capture,
        "card_key.added.v1": _check_card_key,
        "freshness.decided.v1": _check_decision,
    }
    for record in shown.records.values():
        if record.type in checks:
            for problem in checks[record.type](record, shown):
                bundle.fault("R", f"{record.file}: {problem}")
        if record.type == "message.recorded.v1":
            known = record.data["leg"] in _LEGS and record.data["direction"] in {"in", "out"}
        else:
            known = record.type in EVENTS_TABLE or record.stream == "ledger"
        if not known:
            shown.open.append(f"{record.file}: an event, or a message, of a kind that is unknown here")


def _check_fetch(record: Record, shown: Shown) -> Iterator[str]:
    if "not_modified" not in record.data:
        yield from _check_card(record, shown)
        return
    stands = shown.named(record, "not_modified")
    if stands is not None:
        yield from _as_fetched(record, stands)


def _as_fetched(record: Record, fetch: Record) -> Iterator[str]:
    for name in ("raw_hash", "document_hash", "contract_hash"):
        if name in record.data and record.data[name] != fetch.data.get(name):
            yield f"{name} is not that of the fetch at {fetch.n}, which it names"


def _check_card(record: Record, _: Shown) -> Iterator[str]:
    body = record.whole.get("body")
    if body is None:
        return
    if record.data.get("raw_hash") != _digest(body):
        yield "raw_hash is not that of the card"
    document = plain_document(body)
    if document is not None and record.data.get("document_hash", _digest(document)) != _digest(document):
        yield "document_hash is not that of the card"


def _digest(data: bytes) -> str:
    return f"sha256:{sha256(data).hex()}"


def plain_document(body: bytes) -> bytes | None:
    """Return the RFC 8785 octets of a plain JSON object; None where 7.1 has rules that this file does not know."""
    try:
        value = json.loads(
            body.decode(), parse_int=_integer, parse_float=_no_number, parse_constant=_no_number,
            object_pairs_hook=_once,
        )  # fmt: skip
        document = write_json(cast("Json", value))
        return document if isinstance(value, dict) and "supportedInterfaces" in value else None
    except (ValueError, RecursionError):
        return None


def _once(pairs: list[tuple[str, Json]]) -> Object:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _check_capture(record: Record, shown: Shown) -> Iterator[str]:
    for role in ("contract", "terms"):
        octets = record.whole.get(role)
        if octets is not None and record.data.get(f"{role}_hash") != _digest(octets):
            yield f"{role}_hash is not that of its blob {role}"
    fetch = shown.named(record, "fetch")
    if fetch is not None:
        if fetch.type not in {"card.fetched.v1", "card.served.v1"}:
            yield f"fetch names event {fetch.n}, which is none"
        yield from _as_fetched(record, fetch)


def _check_card_key(record: Record, _: Shown) -> Iterator[str]:
    jwk = as_object(record.data["jwk"])
    members = {"OKP": ("crv", "kty", "x"), "EC": ("crv", "kty", "x", "y"), "RSA": ("e", "kty", "n")}
    needed = members.get(str(jwk.get("kty")))
    if needed is not None and all(isinstance(jwk.get(name), str) for name in needed):  # RFC 7638
        digest = sha256(write_json({name: jwk[name] for name in needed}))
        if record.data["thumbprint"] != base64.urlsafe_b64encode(digest).decode().rstrip("="):
            yield "thumbprint is not that of its jwk"
    if "kid" in jwk and jwk["kid"] != record.data["kid"]:
        yield "kid is not that of its jwk"


def _check_decision(record: Record, shown: Shown) -> Iterator[str]:
    card = as_object(as_object(record.data["inputs"]).get("card"))
    fetch = shown.named(record, "card")
    if card and fetch is not None and card.get("contract") != fetch.data.get("contract_hash"):
        yield f"was decided about another contract than the fetch at {fetch.n} brought"
    manifest = as_object(as_object(record.data["inputs"]).get("manifest"))
    named = shown.named(record, "manifest")
    if manifest and named is not None:
        if named.type != "card.manifest.v1" or named.n >= record.n:
            yield f"names event {named.n}, which is no manifest before it"
        elif manifest.get("floor_until") != named.data["floor_until"]:
            yield "was decided with another floor than its manifest has"
        elif manifest.get("valid") is True:
            of_card = fetch is None or all(
                fetch.data.get(name) == named.data[name] for name in ("raw_hash", "contract_hash", "form")
            )
            if named.data["status"] != "valid" or named.data["peer"] != record.data["peer"] or not of_card:
                yield "counts a manifest as valid that is not, or that is for something else"
    if record.data["rules"] == "freshness/1":
        yield from _decide_again(record)


def _decide_again(record: Record) -> Iterator[str]:
    try:
        made = decide(record.data["inputs"])
    except RefusedError as problem:
        yield f"its inputs cannot be decided on: {problem}"
        return
    told = [record.data.get(name) for name in ("decision", "reason", "at_stake", "retry_after")]
    if not same(list(made), told):
        yield f"was decided {told[0]!s:.40} {told[1]!s:.40}, and its inputs make that {made[0]} {made[1]}"


# ---- The freshness table, version freshness/1 (9)

_KNOWN_STATES: Final = (
    *("submitted", "working", "completed", "failed", "canceled", "input-required", "rejected", "auth-required"),
)
_STATES: Final = {
    **{name: name for name in _KNOWN_STATES},
    **{"TASK_STATE_" + name.replace("-", "_").upper(): name for name in _KNOWN_STATES},
    **{str(count): name for count, name in enumerate(_KNOWN_STATES, 1)},
    "cancelled": "canceled",
    "TASK_STATE_CANCELLED": "canceled",
}
_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_SECONDS: Final = 10**10
# Member, and its kind: a choice in |, or time, text, bool, seconds; `?` may be null, `=` gives the default.
_SHAPES: Final[dict[str, dict[str, str]]] = {
    "manifest": {"valid": "bool", "floor_until": "time"},
    "card": {
        "fetched_at": "time",
        "kind": "text=public",
        "caller": "text=anonymous",
        "age_header": "seconds?",
        "max_age": "seconds?",
        "no_cache": "bool=",
        "etag": "text?",
        "last_modified": "text?",
        "version": "text?",
        "contract": "text?",
    },
    "validator": {"present": "bool=", "last": "304|other-tag|same-tag|never=never", "lied": "bool="},
    "task": {"state": "text=intended"},
    "siblings": {"state": "text", "sent_at": "time"},
    "hints": {"kind": "text", "at": "time"},
    "contracts_seen": {"at": "time", "contract": "text"},
    "limits": {
        "contract": "seconds=60",
        "capability": "seconds=300",
        "cache": "seconds=86400",
        "sibling": "seconds=30",
        "flap": "seconds=600",
    },
    "profile": {
        "sibling": "proceed|wait|abort=proceed",
        "skew": "proceed|abort=proceed",
        "failed": "proceed|abort=proceed",
    },
    "refetch": {"outcome": "304|same|capability|unclassified|contract|undecidable|failed", "etag": "text?"},
}


def _value(kind: str, value: Json) -> Json | datetime:
    kind, _, default = kind.partition("=")
    nullable, kind = kind.endswith("?"), kind.rstrip("?")
    if value is None and nullable:
        return None
    if kind == "time" and isinstance(value, str):
        return read_time(value)
    if kind == "seconds":
        seconds = number(value)
        if seconds is not None and 0 <= seconds <= _SECONDS:
            return seconds
    elif (
        (kind == "bool" and isinstance(value, bool))
        or (kind == "text" and isinstance(value, str))
        or ("|" in kind and isinstance(value, str) and value in kind.split("|"))
    ):
        return value
    raise RefusedError(f"{value!s:.40} is no {kind or default}")


def read_time(text: str) -> datetime:
    """Read an RFC 3339 time; digits behind the microsecond are cut."""
    found = _RFC3339.fullmatch(text)
    if found is None:
        raise RefusedError(f"{text[:40]!a} is no time")
    day, clock, digits, zone = found.groups()
    try:
        read = datetime.fromisoformat(f"{day}T{clock}.{(digits or '0'):0<6.6}{zone.upper().replace('Z', '+00:00')}")
        return read.astimezone(UTC)  # a time that UTC has no year for is none
    except (ValueError, OverflowError):
        raise RefusedError(f"{text[:40]!a} is no time") from None


def _members(name: str, value: Json) -> dict[str, Json | datetime]:
    shape = _SHAPES[name]
    if not isinstance(value, dict) or not value.keys() <= shape.keys():
        raise RefusedError(f"{name} is no object, or has a member that is not known")
    read: dict[str, Json | datetime] = {}
    for member, kind in shape.items():
        default: Json = kind.partition("=")[2] or None
        if member in value:
            read[member] = _value(kind, value[member])
        elif "=" not in kind and not kind.endswith("?"):
            raise RefusedError(f"{name} lacks {member}")
        elif kind.startswith("bool"):
            read[member] = False
        else:
            read[member] = int(str(default)) if kind.startswith("seconds=") else default
    return read


class Inputs:
    """The inputs of a decision, typed; a missing member reads as 9.1 says."""

    def __init__(self, value: Json) -> None:
        known = {"now", "transport", "client_versions", *_SHAPES}
        if not isinstance(value, dict) or not value.keys() <= known:
            raise RefusedError("no object, or a member that is not known")
        self.now = cast("datetime", _value("time", value.get("now")))
        self.in_process = _value("network|in-process", value.get("transport", "network")) == "in-process"
        given = {name: value[name] for name in ("manifest", "card", "refetch") if value.get(name) is not None}
        one = {name: _members(name, member) for name, member in given.items()}
        self.manifest, self.card, self.refetch = one.get("manifest"), one.get("card"), one.get("refetch")
        self.task = _members("task", value.get("task", {}))
        self.limits = cast("dict[str, int]", _members("limits", value.get("limits", {})))
        self.profile = _members("profile", value.get("profile", {}))
        self.tagged = self.card is not None and (self.card["etag"], self.card["last_modified"]) != (None, None)
        stated = value.get("validator", {})
        if isinstance(stated, dict) and "present" not in stated:
            stated = {**stated, "present": self.tagged}
        self.validator = _members("validator", stated)
        many: dict[str, list[dict[str, Json | datetime]]] = {}
        for name in ("siblings", "hints", "contracts_seen"):
            items = value.get(name, [])
            if not isinstance(items, list):
                raise RefusedError(f"{name} is no list")
            many[name] = [_members(name, item) for item in items]
        self.siblings, self.seen = many["siblings"], many["contracts_seen"]
        versions = value.get("client_versions", [self.card["version"]] if self.card and self.card["version"] else [])
        if not isinstance(versions, list) or not all(isinstance(version, str) for version in versions):
            raise RefusedError("client_versions is no list of texts")
        self.versions = [_version(str(version)) for version in versions]
        fetched = self.card["fetched_at"] if self.card else None
        self.hints = [
            str(hint["kind"])
            for hint in many["hints"]
            if isinstance(fetched, datetime) and cast("datetime", hint["at"]) >= fetched
        ]

    def distance(self, then: Json | datetime) -> float:
        """Return the seconds between now and then, whichever is later."""
        return abs((self.now - cast("datetime", then)).total_seconds())

    def age(self) -> float:
        """Return the age of the card."""
        card = self.card or {}
        return self.distance(card["fetched_at"]) + cast("int", card["age_header"] or 0) if card else 0.0


def _version(text: str) -> str:
    found = re.fullmatch(r"\s*(\d{1,6})\.(\d{1,6})(\.\d{1,6})?\s*", text, re.ASCII)
    return f"{int(found[1])}.{int(found[2])}" if found else text


def decide(value: Json) -> tuple[str, str, str, int | None]:
    """Answer the question of section 9: decision, reason, stake, seconds to wait."""
    inputs = Inputs(value)
    floor = inputs.manifest["floor_until"] if inputs.manifest and inputs.manifest["valid"] is True else None
    if inputs.in_process:
        return "proceed", "out-of-scope", "none", None
    if floor is not None and inputs.now < cast("datetime", floor):
        return "proceed", "manifest", "none", None
    if inputs.task["state"] != "intended":
        return "never-refetch", "frozen", "none", None
    decision, reason, *wait = _second(inputs) if inputs.refetch else _first(inputs)
    stake = "routing" if reason == "capability-stale" else "authorization"
    return str(decision), str(reason), stake, cast("int | None", wait[0]) if wait else None


def _second(inputs: Inputs) -> tuple[str | int | None, ...]:
    outcome = str((inputs.refetch or {})["outcome"])
    aborting = "abort-before-send" if inputs.profile["failed"] == "abort" else "proceed"
    return {
        "304": ("proceed", "not-modified"),
        "contract": ("abort-before-send", "contract-changed"),
        "undecidable": ("abort-before-send", "undecidable"),
        "failed": (aborting, "refetch-failed"),
    }.get(outcome, ("proceed", "contract-equal"))


def _first(inputs: Inputs) -> tuple[str | int | None, ...]:  # noqa: C901, PLR0911 - the rows of one table
    card, limits = inputs.card, inputs.limits
    if card is None:  # row 3
        return "discover", "no-card"
    close = [
        limits["sibling"] - inputs.distance(sibling["sent_at"])
        for sibling in inputs.siblings
        if str(sibling["state"]) not in {"adopted", "intended"}
        and _STATES.get(str(sibling["state"]), "submitted") == "submitted"
    ]
    close = [seconds for seconds in close if seconds > 0]
    if close:  # row 4
        if inputs.profile["sibling"] == "proceed":
            return "proceed", "sibling-submitted"
        wait = math.ceil(max(close)) if inputs.profile["sibling"] == "wait" else None
        return "abort-before-send", "sibling-submitted", wait
    if inputs.age() >= limits["cache"]:  # row 5
        return "discover", "expired"
    if "contract-finding" in inputs.hints:
        return "discover", "contradicted"
    if card["version"] is None or _version(str(card["version"])) not in inputs.versions:  # row 6
        reason = "version-not-stated" if card["version"] is None else "version-skew"
        return "abort-before-send" if inputs.profile["skew"] == "abort" else "never-refetch", reason
    honoured = inputs.validator["last"] != "same-tag" and inputs.validator["lied"] is False
    if not (inputs.validator["present"] is True and inputs.tagged and honoured):  # row 7
        return "never-refetch", "no-validator"
    left = _flapping(inputs)
    if left:  # row 8
        return "abort-before-send", "flapping", math.ceil(max(left))
    max_age = 0 if card["no_cache"] is True else cast("int | None", card["max_age"])
    if inputs.age() >= (limits["contract"] if max_age is None else min(max_age, limits["contract"])):  # row 9
        return "refetch-once", "contract-limit"
    if inputs.hints:
        return "refetch-once", "hint"
    if inputs.age() >= (limits["capability"] if max_age is None else max_age):  # row 10
        return "proceed", "capability-stale"
    return "proceed", "fresh"  # row 11


def _flapping(inputs: Inputs) -> list[float]:
    """Return how long each contract that came back after another one stays inside the window."""
    seen = [one for one in inputs.seen if inputs.distance(one["at"]) < inputs.limits["flap"]]
    last: dict[str, int] = {str(one["contract"]): place for place, one in enumerate(seen)}
    change = len(seen)  # where the contracts behind a place first differ from the one at it
    left: list[float] = []
    for place in range(len(seen) - 1, -1, -1):
        contract = str(seen[place]["contract"])
        if place + 1 < len(seen) and str(seen[place + 1]["contract"]) != contract:
            change = place + 1
        if change < last[contract]:
            at = cast("datetime", seen[place]["at"])
            left.append(inputs.limits["flap"] + (at - inputs.now).total_seconds())
    return left


# ======== Steps 12 and 13: the verdict


class Report(NamedTuple):
    """The answer: one verdict, and each claim with its status and detail.

    Attributes:
        verdict: over all claims.
        claims: by their letters.
        size: of the checkpoint; None: it cannot be read.
        anchored: so many first events of the log have signatures of those whom the reader trusts, by W and T.
    """

    verdict: str
    claims: dict[str, Answer]
    size: int | None
    anchored: int

    @property
    def reach(self) -> str:
        """Say up to where the log is signed, and up to where somebody else vouches for it."""
        if self.size is None:
            return "No checkpoint can be read"
        by = f"up to {self.anchored} by whom you trust" if self.anchored else "by nobody whom you trust"
        return f"Checkpoint {self.size}, anchored {by}"

    def to_json(self) -> Object:
        """Return the shape that `a2a-ledger verify --format json` prints."""
        claims: list[Json] = [
            {
                "claim": letter,
                "status": answer.status,
                "detail": f"{answer.detail}; settle: {answer.settle}" if answer.settle else answer.detail,
            }
            for letter, answer in self.claims.items()
        ]
        return {
            "verdict": self.verdict,
            "sides": "unilateral",
            "size": self.size,
            "anchored_size": self.anchored,
            "claims": claims,
        }


def verify(
    data: bytes, policy: Policy | None = None, earlier: Sequence[bytes] = (), required: Sequence[str] = ()
) -> Report:
    """Judge a bundle; whatever its octets are, this ends in a report.

    Raises:
        UsageError: one of `earlier` is no checkpoint, or no key that the reader trusts for it signed it.
    """
    _Budget.left = MAX_CHECKS
    answers: dict[str, Answer] = {}
    bounds: list[Bound] = []
    size: int | None = None
    try:
        files, damaged = read_bag(data)
        bundle = Bundle(files)
        check_files(bundle, damaged)
        try:
            head, claims = _read_beginning(bundle)
            size = head.size
            answers = _judge(bundle, head, claims, policy, earlier, bounds)
        except RefusedError as problem:
            bundle.fault("I", problem)
        for letter, faults in bundle.faults.items():
            if faults:
                more = f"; and {len(faults) - 3} more" if len(faults) > 3 else ""  # noqa: PLR2004 - enough to begin with
                answers[letter] = Answer("INVALID", "; ".join(faults[:3]) + more)
        answers.setdefault("I", Answer("VALID", f"{len(files)} files are what the manifests say"))
    except RefusedError as problem:
        answers = {"I": Answer("INVALID", str(problem))}
    except MemoryError:
        answers = {"I": Answer("INVALID", "reading it takes more memory than there is")}
    nothing = Answer("NOT PROVEN", "it cannot be read", "an intact bundle")
    every = {letter: answers.get(letter, nothing) for letter in LETTERS}
    needed = {*(required or ("I", "L", "P", "C2", "R")), *(["A"] if earlier else [])}
    anchored = max((bound.size for bound in bounds), default=0)
    return Report(_verdict(every, needed, trusting=policy is not None), every, size, anchored)


def _verdict(claims: Mapping[str, Answer], needed: set[str], *, trusting: bool) -> str:
    if any(answer.status == "INVALID" for answer in claims.values()):
        return "invalid"
    if not trusting:
        return "self-consistent only"
    return "verified" if all(claims[letter].status == "VALID" for letter in needed) else "not proven"


def _read_beginning(bundle: Bundle) -> tuple[Head, Object]:
    """Read checkpoint and claims; a RefusedError: one of them cannot be read, so nothing else can be said."""
    try:
        head = read_head(bundle.read(CHECKPOINT))
    except RefusedError as problem:
        raise RefusedError(_named(CHECKPOINT, problem)) from None
    claims = bundle.json(CLAIMS)
    if not isinstance(claims, dict):
        raise RefusedError(f"{CLAIMS}: is no object")
    return head, claims


def _judge(  # noqa: PLR0913, PLR0917 - what there is to judge, what the reader gave, and what he gets beside the claims
    bundle: Bundle,
    head: Head,
    claims: Object,
    policy: Policy | None,
    earlier: Sequence[bytes],
    bounds: list[Bound],
) -> dict[str, Answer]:
    """Do steps 3 to 12; add to `bounds` what is anchored."""
    leaves = read_leaves(bundle, head.origin)  # step 3
    shown = Shown(bundle, leaves, head.origin)  # step 4
    check_streams(shown)  # step 5
    check_references(shown)
    keys = Keys(shown)  # step 6
    trust = judge_signer(bundle, head, policy, keys)  # step 7
    check_inclusion(bundle, leaves, head)  # step 8
    scope = read_scope(claims, packed=bundle.packed)
    if scope is None:
        bundle.fault("I", f"{CLAIMS}: does not say what the bundle is about")
        scope = Scope(bundle.packed, "task", str(claims.get("task")), ())
    ends, at = check_export(bundle, shown, keys, head, claims, scope)  # step 9
    check_claims(bundle, shown, head, claims, scope)
    check_repeated(bundle, shown, head, scope, at)
    answers = {
        "L": trust.answer,
        "P": Answer("VALID", f"{len(leaves)} events are under checkpoint {head.size}"),
        "C1": Answer("VALID", f"{len(shown.records)} records and their blobs are what their leaves commit to"),
    }
    answers["W"] = judge_witnesses(trust, policy)  # step 10
    own = {record.n for record in shown.streams.get("ledger", [])}
    needed = max((n + 1 for n in leaves if n not in own), default=0)
    bounds += read_bounds(bundle, head, trust, policy, left := list[str]())
    answers["T"] = judge_time(bounds, left, needed)
    answers["A"] = judge_growth(bundle, head, trust, earlier)
    whole = len(leaves) == head.size and not bundle.faults["P"] and not bundle.faults["C2"]
    counted = f"{len(leaves)} of the log's {head.size} leaves are shown"
    answers["C3"] = Answer("VALID" if whole else "NOT PROVEN", counted, "" if whole else "all leaves of the log")
    answers["C2"] = _judge_streams(shown, ends, scope, whole=whole, trusted=trust.trusted)
    answers["X"] = _judge_holes(bundle, shown, claims)
    check_findings(bundle, shown, keys)  # step 11
    check_engine(bundle, head)
    check_places(bundle, shown)
    check_content(bundle, shown)
    held = "statements, hashes of cards and contracts, and freshness decisions hold"
    if shown.open:
        more = f"; and {len(shown.open) - 3} more" if len(shown.open) > 3 else ""  # noqa: PLR2004 - enough to begin with
        held = f"{'; '.join(shown.open[:3])}{more}; beside that, {held}"
    settle = "a2a-ledger verify"
    if peers := _peers_of_findings_elsewhere(shown):
        commands = " and ".join(f"`a2a-ledger export --peer {peer}`" for peer in peers)
        settle += f", of a bundle with these events: those of other tasks by {commands}"
    answers["R"] = Answer("NOT PROVEN", f"{held}; this verifier does not judge again", settle)
    got = sum(
        record.type == "message.recorded.v1" and record.data["direction"] == "in" for record in shown.records.values()
    )
    answers["S"] = Answer(  # step 12
        "NOT PROVEN",
        f"{got} messages are shown as received; the peer signed none of them; signatures of cards were not judged",
        "the peer's own ledger",
    )
    return answers


def _judge_streams(shown: Shown, ends: Mapping[str, int], scope: Scope, *, whole: bool, trusted: bool) -> Answer:
    """Answer C2, as far as it is not INVALID already."""
    for stream, ver in ends.items():
        if shown.end(stream) != ver:
            shown.bundle.fault(
                "C2", f"{stream}: the exporter signed that it ends at {ver}, and {shown.end(stream)} is shown"
            )
    needed = {stream for stream in scope.streams if not stream.startswith("findings:")}
    if not needed <= shown.keyed or needed == {"ledger"}:
        return Answer("NOT PROVEN", "the key of the task's stream, or of the log's own, is not disclosed", "that key")
    if not whole and not ends:
        return Answer("NOT PROVEN", "no exporter signed where the streams end", "a bundle signed by the export key")
    if not whole and not trusted:
        return Answer("NOT PROVEN", "the exporter is not known to belong to a log that you trust", "the log's key")
    named = ", ".join(f"{stream} to {shown.end(stream)}" for stream in sorted(needed)[:9])
    return Answer("VALID", f"whole from version 0 on: {named}")


def _judge_holes(bundle: Bundle, shown: Shown, claims: Object) -> Answer:
    """Answer X: what was left out is listed."""
    if bundle.faults["C1"]:
        return Answer("NOT PROVEN", "not all records could be read", "an intact bundle")
    listed: Json = shown.holes
    if bundle.packed:
        lines = b"".join(write_json(hole) + b"\n" for hole in shown.holes)
        listed = {"parts": len(shown.holes), "sha256": sha256(lines).hex()}
        if bundle.files.get(WITHHELD) != lines:
            return Answer("INVALID", f"{WITHHELD}: is not the list of what is left out")
    elif len(shown.holes) > MAX_HOLES:
        return Answer("INVALID", f"{CLAIMS}: more is left out than it can list")
    if not same(claims.get("withheld"), listed):
        return Answer("INVALID", f"{CLAIMS}: its list of what was left out is not what is left out")
    return Answer("VALID", "; ".join([f"{len(shown.holes)} parts are left out, and listed", *_erasures(shown)]))


def _erasures(shown: Shown) -> Iterator[str]:
    """Say what events tell of erased content, and whether it is gone (3.3)."""
    for record in shown.records.values():
        if record.type != "content.erased.v1":
            continue
        refs = [as_object(ref) for ref in cast("list[Json]", record.data["records"])]
        named = [shown.places.get((record.stream, number(ref.get("ver")) or 0)) for ref in refs]
        listed = [there for there in named if there is not None and there.ver < record.ver]
        gone = sum(map(_lost_parts, listed))
        told = f"erased at {record.at}, asked for by {record.data['requested_by']}: {record.data['reason']}"
        if gone:
            yield f"content of {_events(gone)} was {told}"
        if still := len(listed) - gone:
            yield f"event {record.n} says that content of {_events(still)} was {told}, and it is still there"


def _events(count: int) -> str:
    return "1 event" if count == 1 else f"{count} events"


def _lost_parts(record: Record) -> bool:
    """Say whether an event has more holes than it was recorded with."""
    then = sum(number(count) or 0 for count in as_object(record.data.get("holes")).values())
    return sum(part.content is None for parts in record.blobs.values() for part in parts) > then


# ======== The command

TITLES: Final = {
    "I": "files intact",
    "L": "checkpoint by a key that you trust",
    "P": "events included under the checkpoint",
    "A": "nothing rewritten before the checkpoint",
    "W": "seen by witnesses",
    "T": "existed by a date",
    "S": "the peer sent these messages",
    "C1": "events shown as they were recorded",
    "C2": "all of the task, none missing",
    "C3": "no other event of the task in the log",
    "R": "replay gives the same verdict",
    "X": "what was left out is listed",
}


def read_file(name: str, most: int) -> bytes:
    """Read a file of the reader's, at most so many octets."""
    data = bytearray()
    try:
        with Path(name).open("rb") as file:
            while len(data) <= most and (piece := file.read(1 << 20)):
                data += piece
    except OSError as problem:
        raise UsageError(f"{name}: {problem.strerror}") from None
    if len(data) > most:
        raise UsageError(f"{name}: more than {most} octets")
    return bytes(data)


def read_trust(policy_file: str | None, vkeys: Sequence[str]) -> Policy | None:
    """Return what the reader trusts, None if he gave nothing."""
    if policy_file is None and not vkeys:
        return None
    try:
        policy = read_policy(read_file(policy_file, 1 << 20)) if policy_file is not None else Policy()
        for vkey in vkeys:
            key = read_vkey(vkey)
            policy.seen.discard(key.public)  # what the policy names may be given again
            policy.add("witness" if key.kind == COSIGNER else "log", vkey)
    except RefusedError as problem:
        raise UsageError(str(problem)) from None
    return policy


def printable(text: str) -> str:
    """Return a text without what could steer a terminal."""
    return "".join(char if char.isprintable() else "?" for char in text)


_PIPE_CLOSED: Final = 141  # as after SIGPIPE


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code, which says nothing of the bundle where the answer reached nobody."""
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] - None where it was closed, as Python documents
        sys.stderr.write("a2a_verify: standard output is closed\n")
        return 2
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except OSError as problem:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is flushed at exit
        if isinstance(problem, BrokenPipeError):
            return _PIPE_CLOSED
        sys.stderr.write(f"a2a_verify: standard output cannot be written: {problem.strerror}\n")
        return 2
    return code


def _run(arguments: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(prog="a2a_verify.py", description="Verify an evidence bundle of a2a-ledger.")
    parser.add_argument("bundle", help="the bundle, a zip")
    parser.add_argument("--policy", help="what you trust: a C2SP tlog-policy file")
    parser.add_argument("--trust", action="append", default=[], metavar="VKEY", help="a key that you trust")
    parser.add_argument("--earlier", action="append", default=[], metavar="NOTE", help="a checkpoint that you hold")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--require", default="", metavar="LETTERS", help="claims that `verified` needs: I,L,P,C2")
    given = parser.parse_args(arguments)
    required = [letter for letter in given.require.upper().split(",") if letter]
    if not set(required) <= set(LETTERS):
        parser.error(f"--require: expected letters of {','.join(LETTERS)}, with commas between them")
    try:
        policy = read_trust(given.policy, given.trust)
        earlier = [read_file(name, MAX_NOTE) for name in given.earlier]
        report = verify(read_file(given.bundle, MAX_ALL), policy, earlier, required)
    except UsageError as problem:
        sys.stderr.write(f"a2a_verify: {printable(str(problem))}\n")
        return 2
    _print(report, given.format)
    return {"verified": 0, "invalid": 1}.get(report.verdict, 3)


def _print(report: Report, form: str) -> None:
    if form == "json":
        sys.stdout.write(json.dumps(report.to_json()) + "\n")
    else:
        sys.stdout.write(f"{report.verdict}. {report.reach}.\n")
        for letter, answer in report.claims.items():
            settle = f"  settle: {answer.settle}" if answer.settle else ""
            line = f"{letter:<3}{TITLES[letter]:<41}{answer.status:<12}{answer.detail}{settle}"
            sys.stdout.write(printable(line) + "\n")


if __name__ == "__main__":
    sys.exit(main())
