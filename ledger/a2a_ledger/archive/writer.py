"""Writes a bundle's zip, file by file, into a place that can be gone back in: nothing of it is held."""

from __future__ import annotations

import hashlib
import zlib
from typing import IO, TYPE_CHECKING, NamedTuple

from a2a_ledger.archive.form import (
    CENTRAL,
    CENTRAL_MAGIC,
    DEFLATED,
    END,
    END_MAGIC,
    LOCAL,
    LOCAL_MAGIC,
    MAX_FILE,
    MAX_FILES,
    MAX_RATIO,
    MAX_TOTAL,
    STORED,
)
from a2a_ledger.errors import BundleError

if TYPE_CHECKING:
    from collections.abc import Iterator

_WORTH_PACKING = 1024
_LEVEL = 6  # of zlib's default
_MADE_BY_UNIX = 3 << 8 | 20
_VERSION_NEEDED = 20
_DOS_DATE_1980_01_01 = 0x21
_REGULAR_0644 = 0o100644 << 16
_PIECE = 1 << 20


class Written(NamedTuple):
    """A file that was written: its octets, and their SHA-256 in hex."""

    size: int
    sha256: str


class ArchiveWriter:
    """Writes entries one behind the other; the caller sees to it that their names may meet.

    Attributes:
        files: what was written, by name, in that order.
    """

    def __init__(self, target: IO[bytes]) -> None:
        self.files: dict[str, Written] = {}
        self._target = target
        self._directory: list[bytes] = []
        self._total = 0

    def add(self, name: str, data: bytes) -> None:
        """Write one file.

        Raises:
            BundleError: It is larger than a file may be, or all of them are too many or too large.
        """
        method, packed = _pack(data)
        self._note(name, len(data), hashlib.sha256(data).hexdigest())
        self._target.write(self._header(name, method, zlib.crc32(data), len(packed), len(data)))
        self._target.write(packed)

    def add_from(self, name: str, source: IO[bytes]) -> None:
        """Write one file from its beginning, without holding it.

        Raises:
            BundleError: As for `add`.
        """
        crc, size, digest = 0, 0, hashlib.sha256()
        for piece in _pieces(source):
            crc, size = zlib.crc32(piece, crc), size + len(piece)
            digest.update(piece)
        self._note(name, size, digest.hexdigest())
        start = self._target.tell()
        header = self._header(name, DEFLATED, crc, 0, size)
        self._target.write(header)
        packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
        for piece in _pieces(source):
            self._target.write(packer.compress(piece))
        self._target.write(packer.flush())
        packed = self._target.tell() - start - len(header)
        helps = _helps(size, packed)
        self._target.seek(start)
        del self._directory[-1]
        self._target.write(self._header(name, DEFLATED if helps else STORED, crc, packed if helps else size, size))
        if helps:
            self._target.seek(packed, 1)
            return
        for piece in _pieces(source):
            self._target.write(piece)
        self._target.truncate()

    def close(self) -> None:
        """Write the directory; the file's end is the archive's."""
        listing, offset = b"".join(self._directory), self._target.tell()
        self._target.write(listing)
        count = len(self._directory)
        self._target.write(END.pack(END_MAGIC, 0, 0, count, count, len(listing), offset, 0))

    def _note(self, name: str, size: int, digest: str) -> None:
        """Count a file, before anything of it is written."""
        if size > MAX_FILE:
            raise BundleError(f"{name} has {size} bytes; a bundle's files may have {MAX_FILE}")
        self._total += size
        if self._total > MAX_TOTAL:
            raise BundleError(f"these files have {self._total} bytes together; a bundle may have {MAX_TOTAL}")
        if len(self.files) == MAX_FILES:
            raise BundleError(f"more than {MAX_FILES} files, which a bundle may have")
        self.files[name] = Written(size, digest)

    def _header(self, name: str, method: int, crc: int, packed: int, size: int) -> bytes:
        """Return what stands in front of a file's octets, and note its line of the directory."""
        raw = name.encode("ascii")
        shared = (0, method, 0, _DOS_DATE_1980_01_01, crc, packed, size, len(raw), 0)
        line = (*shared, 0, 0, 0, _REGULAR_0644, self._target.tell())
        self._directory.append(CENTRAL.pack(CENTRAL_MAGIC, _MADE_BY_UNIX, _VERSION_NEEDED, *line) + raw)
        return LOCAL.pack(LOCAL_MAGIC, _VERSION_NEEDED, *shared) + raw


def _pack(data: bytes) -> tuple[int, bytes]:
    """Return the method of an entry and its octets."""
    if len(data) < _WORTH_PACKING:
        return STORED, data
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = packer.compress(data) + packer.flush()
    return (DEFLATED, packed) if _helps(len(data), len(packed)) else (STORED, data)


def _helps(size: int, packed: int) -> bool:
    """Say whether packing makes a file smaller, and no tighter than a reader unpacks."""
    return size >= _WORTH_PACKING and packed < size <= MAX_RATIO * packed


def _pieces(source: IO[bytes]) -> Iterator[bytes]:
    source.seek(0)
    while piece := source.read(_PIECE):
        yield piece
