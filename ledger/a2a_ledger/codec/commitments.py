"""Commitments: the hashes that bind records, blobs, streams and leaves (docs/format.md sections 3 to 5).

- c = SHA-256("a2a-ledger/record/v1" 00 salt[32] R)
- part = SHA-256("a2a-ledger/part/v1" 00 salt[32] bytes)
- blob id = SHA-256("a2a-ledger/blob/v1" 00 u32be(count) (u64be(len) part)*)
- task id = first 40 hex digits of SHA-256("a2a-ledger/stream-key/v1" 00 key[32])
- t = HMAC-SHA-256(key[32], "a2a-ledger/stream/v1" 00 u64be(ver))
- leaf = {"c":hex,"log":origin,"n":index,"t":hex,"v":1}
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

SECRET = 32
"""Octets of every salt and every stream key."""

_RECORD = b"a2a-ledger/record/v1\0"
_PART = b"a2a-ledger/part/v1\0"
_BLOB = b"a2a-ledger/blob/v1\0"
_STREAM = b"a2a-ledger/stream/v1\0"
_STREAM_KEY = b"a2a-ledger/stream-key/v1\0"
_FINDINGS_KEY = b"a2a-ledger/findings-key/v1\0"


class Kept(NamedTuple):
    """A part as stored: its salt and its octets."""

    salt: bytes
    content: bytes


class Hole(NamedTuple):
    """A part that was left out: its length in octets and its hash."""

    length: int
    part: bytes


Part: TypeAlias = Kept | Hole


class SealedBlob(NamedTuple):
    """One blob with its salts: id (32 octets), what was kept, size in octets, stored parts."""

    id: bytes
    kept: str
    size: int
    parts: tuple[Part, ...]


def commitment(salt: bytes, raw: bytes) -> bytes:
    """Return c, the salted commitment to one record R, 32 octets."""
    return hashlib.sha256(_RECORD + salt + raw).digest()


def part_hash(salt: bytes, content: bytes) -> bytes:
    """Return the salted hash of one part of a blob, 32 octets."""
    return hashlib.sha256(_PART + salt + content).digest()


class Rest:
    """The rest of a content that is not held: counted and hashed as it passes, so that a record can commit to it."""

    def __init__(self, salt: bytes) -> None:
        """Begin, with the salt of the part."""
        self._hasher = hashlib.sha256(_PART + salt)
        self._length = 0

    def add(self, octets: bytes) -> None:
        """Take the next octets."""
        self._hasher.update(octets)
        self._length += len(octets)

    @property
    def hole(self) -> Hole:
        """Return what a record says of all that came."""
        return Hole(self._length, self._hasher.digest())


def blob_id(parts: Iterable[Part]) -> bytes:
    """Return the id of a blob from its parts, kept or left out, 32 octets."""
    found = [
        part.length.to_bytes(8, "big") + part.part
        if isinstance(part, Hole)
        else len(part.content).to_bytes(8, "big") + part_hash(part.salt, part.content)
        for part in parts
    ]
    return hashlib.sha256(_BLOB + len(found).to_bytes(4, "big") + b"".join(found)).digest()


def leaf(log: str, n: int, c: bytes, t: bytes) -> bytes:
    """Return the octets of leaf `n`, the line that the Merkle tree commits to, without a line feed."""
    return b'{"c":"%s","log":"%s","n":%d,"t":"%s","v":1}' % (c.hex().encode(), log.encode(), n, t.hex().encode())


def stream_tag(key: bytes, ver: int) -> bytes:
    """Return t, by which the holder of a stream's key recognises its leaves, 32 octets."""
    return hmac.digest(key, _STREAM + ver.to_bytes(8, "big"), "sha256")


def stream_commitment(key: bytes) -> str:
    """Return the commitment to a stream key, 64 hex digits."""
    return hashlib.sha256(_STREAM_KEY + key).hexdigest()


def task_id(key: bytes) -> str:
    """Return the task id of a stream key: the first 40 hex digits of its commitment."""
    return stream_commitment(key)[:40]


def findings_key(key: bytes) -> bytes:
    """Return the key of the findings stream that belongs to the stream of this key."""
    return hmac.digest(key, _FINDINGS_KEY, "sha256")
