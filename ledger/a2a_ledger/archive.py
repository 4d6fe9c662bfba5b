"""The one form of zip file that a bundle has: written to be reproducible, read with suspicion.

A zip says everything twice (local header and central directory) and readers differ in which copy
they believe. Python's `zipfile` takes the last of two entries of one name, ignores bytes in front
of an archive and "cleans" `../../evil.txt` into `evil.txt`; `unzip` makes the symbolic links it is
told to make. So an arbiter and we could read two different files out of one bundle. This reader
takes only archives for which every reader must see the same: one archive from the first byte to
the last, no entry hidden between others, both headers equal, plain file names. Nothing is ever
written to disk. docs/format.md section 11 lists the rules.
"""

from __future__ import annotations

import re
import struct
import zlib
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.errors import BundleError

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_FILES = 10_000
MAX_TOTAL = 1 << 30
MAX_FILE = 64 << 20
MAX_RATIO = 200
_WORTH_PACKING = 1024
_LEVEL = 6  # of zlib's default

_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_LOCAL_MAGIC, _CENTRAL_MAGIC, _END_MAGIC = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
_STORED, _DEFLATED = 0, 8
_MADE_BY_UNIX = 3 << 8 | 20
_VERSION_NEEDED = 20
_DOS_DATE_1980_01_01 = 0x21
_REGULAR_0644 = 0o100644 << 16
_FILE_TYPE, _REGULAR_FILE = 0o170000, 0o100000
_UTF8_NAME = 0x800
_NAME = re.compile(r"[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)*")
_MAX_NAME = 255


class Archive(NamedTuple):
    """What an archive holds, and the names whose bytes are not those that its checksums were made over."""

    files: dict[str, bytes]
    damaged: tuple[str, ...]


def write_archive(files: Mapping[str, bytes]) -> bytes:
    """Return a zip of `files`: same files and same zlib, same bytes, whatever the clock and the time zone.

    Entries are sorted by name, dated 1980-01-01 00:00:00, mode 0644; deflated from 1 KiB on where that makes them
    smaller, else stored.

    Raises:
        BundleError: A name or a size that `read_archive` would refuse.
    """
    _check_names(list(files))
    body: list[bytes] = []
    directory: list[bytes] = []
    offset = total = 0
    for name in sorted(files):
        data = files[name]
        if len(data) > MAX_FILE:
            raise BundleError(f"{name} has {len(data)} bytes; a bundle's files may have {MAX_FILE}")
        raw = name.encode("ascii")
        method, packed = _pack(data)
        shared = (0, method, 0, _DOS_DATE_1980_01_01, zlib.crc32(data), len(packed), len(data), len(raw), 0)
        header = _LOCAL.pack(_LOCAL_MAGIC, _VERSION_NEEDED, *shared) + raw
        directory.append(
            _CENTRAL.pack(_CENTRAL_MAGIC, _MADE_BY_UNIX, _VERSION_NEEDED, *shared, 0, 0, 0, _REGULAR_0644, offset) + raw
        )
        body += (header, packed)
        offset += len(header) + len(packed)
        total += len(data)
    if total > MAX_TOTAL:
        raise BundleError(f"these files have {total} bytes together; a bundle may have {MAX_TOTAL}")
    listing = b"".join(directory)
    end = _END.pack(_END_MAGIC, 0, 0, len(files), len(files), len(listing), offset, 0)
    return b"".join((*body, listing, end))


def _pack(data: bytes) -> tuple[int, bytes]:
    """Return the method of an entry and its octets; none is packed tighter than a reader unpacks."""
    if len(data) < _WORTH_PACKING:
        return _STORED, data
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = packer.compress(data) + packer.flush()
    return (_DEFLATED, packed) if len(packed) < len(data) <= MAX_RATIO * len(packed) else (_STORED, data)


def read_archive(data: bytes) -> Archive:
    """Return every file of the zip in `data`, in memory.

    A file whose bytes do not fit its checksum is returned as it is and named in `damaged`, so that
    a verifier can say which file was changed; everything else that is odd is refused.

    Raises:
        BundleError: Not one plain zip archive; the message names the place.
    """
    entries = _read_directory(data)
    _check_names([entry.name for entry in entries])
    files: dict[str, bytes] = {}
    damaged: list[str] = []
    expected = 0
    for entry in sorted(entries, key=lambda each: each.offset):
        if entry.offset != expected:
            raise BundleError(
                f"{entry.name!r} begins at byte {entry.offset}, expected {expected}: entries must follow one another "
                "without gap or overlap"
            )
        start = _check_local_header(data, entry)
        expected = start + entry.compressed
        content = _unpack(data[start:expected], entry)
        if zlib.crc32(content) != entry.crc:
            damaged.append(entry.name)
        files[entry.name] = content
    directory_at = len(data) - _END.size - sum(entry.listed for entry in entries)
    if expected != directory_at:
        raise BundleError(f"{directory_at - expected} bytes between the last file and the directory belong to no file")
    return Archive(files, tuple(sorted(damaged)))


class _Entry(NamedTuple):
    """One line of the central directory."""

    name: str
    header: tuple[int, ...]  # what the local header has to repeat: version to name length
    method: int
    crc: int
    compressed: int
    size: int
    offset: int
    listed: int  # bytes that the line itself takes


def _read_directory(data: bytes) -> list[_Entry]:
    """Return the central directory, which has to end exactly where the archive ends."""
    if len(data) < _END.size:
        raise BundleError(f"not a bundle: {len(data)} bytes are too few for a zip file")
    magic, disk, first_disk, here, count, length, offset, comment = _END.unpack_from(data, len(data) - _END.size)
    if magic != _END_MAGIC:
        raise BundleError(
            "not a whole zip file: no end record in the last 22 bytes (cut short, or followed by a comment)"
        )
    if disk or first_disk or here != count or comment:
        raise BundleError("the zip's end record speaks of several disks or of a comment; a bundle has neither")
    if count > MAX_FILES:
        raise BundleError(f"{count} files; a bundle may have {MAX_FILES}")
    if offset + length != len(data) - _END.size:
        raise BundleError(
            f"the zip's directory is said to end at byte {offset + length}, expected {len(data) - _END.size}: "
            "bytes in front of or inside of the archive"
        )
    entries: list[_Entry] = []
    at, total = offset, 0
    for _ in range(count):
        entry = _read_entry(data, at, offset + length)
        entries.append(entry)
        at += entry.listed
        total += entry.size
        if total > MAX_TOTAL:
            raise BundleError(f"the files would take more than {MAX_TOTAL} bytes unpacked")
    if at != offset + length:
        raise BundleError(f"{offset + length - at} bytes at the end of the zip's directory belong to no entry")
    return entries


def _read_entry(data: bytes, at: int, stop: int) -> _Entry:
    """Return the directory line at byte `at`, refusing whatever is not a plain file."""
    if at + _CENTRAL.size > stop:
        raise BundleError(f"the zip's directory breaks off at byte {at}")
    fields = _CENTRAL.unpack_from(data, at)
    magic, _made_by, needed, flags, method, time, date, crc, compressed, size, name_length, extra, comment = fields[:13]
    disk, _internal, external, offset = fields[13:]
    where = f"the zip's directory entry at byte {at}"
    if magic != _CENTRAL_MAGIC:
        raise BundleError(f"{where} does not begin as one")
    raw = data[at + _CENTRAL.size : at + _CENTRAL.size + name_length]
    if at + _CENTRAL.size + name_length > stop:
        raise BundleError(f"{where} breaks off in its name")
    try:
        name = raw.decode("ascii")
    except UnicodeDecodeError:
        raise BundleError(f"{where} has a name outside of ASCII: {raw[:64]!r}") from None
    if flags & ~_UTF8_NAME:
        raise BundleError(f"{name!r} has flags {flags:#06x}: encrypted or streamed entries are refused")
    if method not in {_STORED, _DEFLATED}:
        raise BundleError(f"{name!r} is packed by method {method}; only stored and deflated are read")
    if extra or comment or disk:
        raise BundleError(f"{name!r} carries extra fields or a comment; a bundle's entries have none")
    if (external >> 16) & _FILE_TYPE not in {0, _REGULAR_FILE}:
        raise BundleError(f"{name!r} is a link, a device or a folder, not a file")
    if size > MAX_FILE or (method == _STORED and size != compressed) or size > MAX_RATIO * compressed:
        raise BundleError(
            f"{name!r} says {compressed} bytes unpack to {size}; limits are {MAX_FILE} and {MAX_RATIO} to 1"
        )
    header = (needed, flags, method, time, date, crc, compressed, size, name_length, 0)
    return _Entry(name, header, method, crc, compressed, size, offset, _CENTRAL.size + name_length)


def _check_names(names: list[str]) -> None:
    """Refuse names that two systems would read as two places, or that meet another name."""
    seen: dict[str, str] = {}
    for name in names:
        segments = name.split("/")
        if not _NAME.fullmatch(name) or len(name) > _MAX_NAME or ".." in segments or "." in segments:
            raise BundleError(f"{name!r} is not a plain relative file name (letters, digits, . _ - and /)")
        folded = name.lower()
        if folded in seen:
            raise BundleError(f"{name!r} and {seen[folded]!r} are one name on some systems")
        seen[folded] = name
    for folded, name in seen.items():
        folder = folded
        while folder := folder.rpartition("/")[0]:
            if folder in seen:
                raise BundleError(f"{seen[folder]!r} is a file and the folder of {name!r} at once")


def _check_local_header(data: bytes, entry: _Entry) -> int:
    """Return where the entry's content begins, after checking that both headers say the same."""
    try:
        magic, *header = _LOCAL.unpack_from(data, entry.offset)
    except struct.error:
        raise BundleError(
            f"{entry.name!r} is said to begin at byte {entry.offset}, behind the end of the file"
        ) from None
    start = entry.offset + _LOCAL.size
    name = data[start : start + len(entry.name)]
    if magic != _LOCAL_MAGIC or tuple(header) != entry.header or name != entry.name.encode("ascii"):
        raise BundleError(f"{entry.name!r} has one header in the directory and another at byte {entry.offset}")
    return start + len(entry.name)


def _unpack(packed: bytes, entry: _Entry) -> bytes:
    """Return the content of one entry; never more bytes than the directory said."""
    if len(packed) != entry.compressed:
        raise BundleError(f"{entry.name!r} breaks off: {len(packed)} of {entry.compressed} bytes")
    if entry.method == _STORED:
        return packed
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        content = unpacker.decompress(packed, entry.size + 1)
    except zlib.error as problem:
        raise BundleError(f"{entry.name!r} does not unpack: {problem}") from problem
    if len(content) != entry.size or not unpacker.eof or unpacker.unused_data:
        raise BundleError(f"{entry.name!r} does not unpack to the {entry.size} bytes that the directory says")
    return content
