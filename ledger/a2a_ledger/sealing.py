"""The boxes of container version 2: AES-256-GCM under the keys of one stream (docs/format.md section 13.1).

A box opens only in its place: what it was sealed for (log, stream, version, name) is its associated
data, so that a row that was changed, cut, or put in the place of another one does not open.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from a2a_ledger.errors import FormatError

if TYPE_CHECKING:
    from a2a_ledger.codec import Place

KEY_SIZE: Final = 32

_ID_DOMAIN = b"a2a-ledger/box-key/v1\x00"
_BOX_DOMAIN = b"a2a-ledger/box/v2\x00"
_ID_SIZE = 8


def box_key_id(record: bytes, blob: bytes) -> bytes:
    """Return the id of a pair of keys, 8 octets: what a container names them by."""
    return sha256(_ID_DOMAIN + record + blob).digest()[:_ID_SIZE]


class BoxKeys:
    """The record key and the blob key of one stream, independent of each other.

    A cipher is made from a key at each use: that takes 2 µs, where two ciphers held take 5 KB of memory for every
    stream whose keys are remembered.

    Args:
        record: 32 octets; opens the box `record`.
        blob: 32 octets; opens every other box.
    """

    __slots__ = ("_blob", "_record", "id")

    def __init__(self, record: bytes, blob: bytes) -> None:
        self.id = box_key_id(record, blob)
        self._record = record
        self._blob = blob

    def seal(self, name: bytes, place: Place, nonce: bytes, content: bytes) -> bytes:
        """Return the box of a content: ciphertext and tag. A nonce of 12 octets is used once."""
        return self._cipher(name).encrypt(nonce, content, _bound(name, place))

    def open(self, name: bytes, place: Place, nonce: bytes, box: bytes) -> bytes:
        """Return what a box holds.

        Raises:
            FormatError: It was changed, or was sealed for another place or under other keys.
        """
        try:
            return self._cipher(name).decrypt(nonce, box, _bound(name, place))
        except (InvalidTag, ValueError):
            called = name.partition(b"\x00")[0].decode()
            raise FormatError(
                f"the box {called!r} of {place.stream} version {place.ver} does not open: "
                "it was changed, or sealed for another place"
            ) from None

    def _cipher(self, name: bytes) -> AESGCM:
        return AESGCM(self._record if name == b"record" else self._blob)

    def __repr__(self) -> str:
        return f"BoxKeys({self.id.hex()})"


def _bound(name: bytes, place: Place) -> bytes:
    return b"%b%b\x00%b\x00%b%b" % (
        _BOX_DOMAIN,
        place.log.encode(),
        place.stream.encode(),
        place.ver.to_bytes(8, "big"),
        name,
    )
