"""Containers: the bytes that a database row holds around a record. The only importer of msgpack.

Storage, not evidence (docs/format.md section 13.1): a row may be re-wrapped or emptied without
touching a leaf. Version 1 is clear, version 2 holds two boxes that open only in their place. What
seals and opens them is handed in, so that this module knows no ciphers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, cast

import msgpack

from a2a_ledger.codec.commitments import SECRET
from a2a_ledger.codec.record import StoredParts, read_parts
from a2a_ledger.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_ledger.codec.commitments import Part, SealedBlob

NONCES = 24
"""Octets of fresh randomness that one container takes: two nonces."""

SEALED_ROW = b"\x96\x02"
"""How every row of container version 2 begins: a list of six, the version."""

_NONCE = 12
_CLEAR = 1
_SEALED = 2
_CLEAR_FIELDS = 3  # behind the version
_SEALED_FIELDS = 5
_BLOB_FIELDS = 3
_RECORD = b"record"
_PARTS = b"parts"
_BLOB = b"blob\x00"
_SHAPE = (
    "expected a container [1, salt, R, {blob id: parts}] or [2, key id, nonce, box, nonce, box], found another shape"
)


class Place(NamedTuple):
    """Where a row stands: log, stream and version in it."""

    log: str
    stream: str
    ver: int


class Boxes(Protocol):
    """One stream's keys as a container uses them."""

    id: bytes

    def seal(self, name: bytes, place: Place, nonce: bytes, content: bytes) -> bytes:
        """Return the box of a content."""
        ...

    def open(self, name: bytes, place: Place, nonce: bytes, box: bytes) -> bytes:
        """Return what a box holds, or raise FormatError."""
        ...


FindBoxes: TypeAlias = Callable[[str, bytes], Boxes]
"""(stream, key id) to keys; raises a LedgerError where they are not at hand."""


class SealedParts(Mapping[bytes, "tuple[Part, ...]"]):
    """The parts in one sealed container by blob id: opened when the first of them is looked up, and not before."""

    __slots__ = ("_open", "_stored")

    def __init__(self, opener: Callable[[], bytes]) -> None:
        self._open = opener
        self._stored: StoredParts | None = None

    def check(self) -> StoredParts:
        """Open the box.

        Raises:
            FormatError: It does not open, or holds something else.
        """
        if self._stored is None:
            blobs = _unpack(self._open())
            if not isinstance(blobs, dict):
                raise FormatError("expected the parts by blob id in a box, found another shape")
            self._stored = StoredParts(cast("dict[object, object]", blobs))
        return self._stored

    def __getitem__(self, blob: bytes) -> tuple[Part, ...]:
        return self.check()[blob]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.check())

    def __len__(self) -> int:
        return len(self.check())


def pack_container(salt: bytes, raw: bytes, blobs: Iterable[SealedBlob]) -> bytes:
    """Return container version 1 of a record and those of its blobs that lie in its row."""
    return _pack((_CLEAR, salt, raw, {blob.id: blob.parts for blob in blobs}))


def pack_sealed(  # noqa: PLR0913, PLR0917 - keys, place and fresh randomness, and what version 1 takes
    boxes: Boxes, place: Place, nonces: bytes, salt: bytes, raw: bytes, blobs: Iterable[SealedBlob]
) -> bytes:
    """Return container version 2 of the same; `nonces` are 24 fresh random octets."""
    first, second = nonces[:_NONCE], nonces[_NONCE:]
    record = boxes.seal(_RECORD, place, first, salt + raw)
    parts = boxes.seal(_PARTS, place, second, _pack({blob.id: blob.parts for blob in blobs}))
    return _pack((_SEALED, boxes.id, first, record, second, parts))


def unpack_container(
    state: object, place: Place | None = None, find: FindBoxes | None = None
) -> tuple[bytes, bytes, StoredParts | SealedParts]:
    """Return salt, R and the stored parts by blob id of a container.

    The parts are opened and checked when they are looked up.

    Args:
        state: The cell.
        place: Where the row says that it stands; a box opens nowhere else.
        find: Gives the keys; without it only version 1 can be read.

    Raises:
        FormatError: These are not the octets of such a container, or its box does not open here.
        MissingKeysError: The keys that it names are not there (raised by `find`).
    """
    container = _unpack(state)
    if not isinstance(container, list) or not container:
        raise FormatError(_SHAPE)
    version, *fields = cast("list[object]", container)
    if version == _SEALED:
        return _unpack_sealed(fields, place, find)
    if version != _CLEAR:
        raise FormatError(f"expected container version 1 or 2, found {version!a}; did a newer release write it?")
    if len(fields) == _CLEAR_FIELDS:
        salt, raw, blobs = fields
        if isinstance(salt, bytes) and len(salt) == SECRET and isinstance(raw, bytes) and isinstance(blobs, dict):
            return salt, raw, StoredParts(cast("dict[object, object]", blobs))
    raise FormatError(_SHAPE)


def _unpack_sealed(
    fields: list[object], place: Place | None, find: FindBoxes | None
) -> tuple[bytes, bytes, SealedParts]:
    if len(fields) != _SEALED_FIELDS or not all(isinstance(field, bytes) for field in fields):
        raise FormatError(_SHAPE)
    if place is None or find is None:
        raise FormatError("expected a container that is not sealed, found version 2: open the ledger by its directory")
    key_id, first, record, second, parts = cast("list[bytes]", fields)
    boxes = find(place.stream, key_id)
    opened = boxes.open(_RECORD, place, first, record)
    return opened[:SECRET], opened[SECRET:], SealedParts(lambda: boxes.open(_PARTS, place, second, parts))


def sealed_by(state: object) -> bytes | None:
    """Return the id of the keys that a row or a large blob was sealed under; None: it lies in clear."""
    fields = _sealed_fields(_unpack(state))
    return fields[0] if fields and isinstance(fields[0], bytes) else None


def _sealed_fields(stored: object) -> list[object] | None:
    """Return what stands behind the version of a sealed row or blob; None: it is none."""
    if isinstance(stored, list) and stored[:1] == [_SEALED]:
        return cast("list[object]", stored)[1:]
    return None


def pack_parts(parts: Iterable[Part]) -> bytes:
    """Return the clear form of a large blob's parts: msgpack `[[salt, bytes] | [len, part], …]`."""
    return _pack(list(parts))


def pack_sealed_parts(boxes: Boxes, place: Place, nonce: bytes, blob: bytes, parts: Iterable[Part]) -> bytes:
    """Return the sealed form of a large blob's parts: msgpack `[2, key id, nonce, box(parts)]`."""
    return _pack((_SEALED, boxes.id, nonce, boxes.seal(_BLOB + blob, place, nonce, pack_parts(parts))))


def unpack_parts(
    stored: object, blob: bytes = b"", place: Place | None = None, find: FindBoxes | None = None
) -> tuple[Part, ...]:
    """Read the stored form of a large blob's parts, clear or sealed.

    Args:
        stored: The cell.
        blob: The blob's id, 32 octets.
        place: Of the record that the blob belongs to.
        find: Gives the keys.

    Raises:
        FormatError: These are not such octets, or the box does not open here.
        MissingKeysError: The keys that it names are not there (raised by `find`).
    """
    value = _unpack(stored)
    fields = _sealed_fields(value)
    if fields is not None:
        if len(fields) != _BLOB_FIELDS or not all(isinstance(field, bytes) for field in fields):
            raise FormatError("expected a sealed blob [2, key id, nonce, box], found another shape")
        if place is None or find is None:
            raise FormatError("expected parts that are not sealed, found a box: open the ledger by its directory")
        key_id, nonce, box = cast("list[bytes]", fields)
        return read_parts(_unpack(find(place.stream, key_id).open(_BLOB + blob, place, nonce, box)))
    return read_parts(value)


_pack = cast("Callable[[object], bytes]", msgpack.Packer(use_bin_type=True, autoreset=True).pack)


def _unpack(stored: object) -> object:
    if not isinstance(stored, bytes):
        raise FormatError(f"expected stored octets, found a cell of type {type(stored).__name__}")
    try:
        return cast("object", msgpack.unpackb(stored, raw=False, strict_map_key=False))
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise FormatError(f"expected msgpack, found something else: {error}") from None
