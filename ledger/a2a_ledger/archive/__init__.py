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

import io
import struct
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

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
    check_names,
)
from a2a_ledger.archive.writer import ArchiveWriter
from a2a_ledger.errors import BundleError

_HELD = 1 << 20
"""Octets of a file up to which it is held once it was unpacked."""

_AT_HAND = 3
"""Larger files that are held, those that were asked for last."""

_FILE_TYPE, _REGULAR_FILE = 0o170000, 0o100000
_UTF8_NAME = 0x800


class Archive(NamedTuple):
    """What an archive holds, and the names whose bytes are not those that its checksums were made over."""

    files: Mapping[str, bytes]
    damaged: tuple[str, ...]


class _Files(Mapping[str, bytes]):
    """The files of an archive, each of which unpacks: a large one is unpacked again when it is asked for."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._held: dict[str, bytes] = {}
        self._large: dict[str, tuple[_Entry, int]] = {}
        self._at_hand: OrderedDict[str, bytes] = OrderedDict()

    def take(self, entry: _Entry, start: int) -> bytes:
        """Take in the file of an entry whose octets begin at `start`; return it unpacked."""
        content = _unpack(self._data[start : start + entry.compressed], entry)
        if len(content) <= _HELD:
            self._held[entry.name] = content
        else:
            self._large[entry.name] = (entry, start)
        return content

    def __getitem__(self, name: str) -> bytes:
        if name not in self._large:
            return self._held[name]
        content = self._at_hand.pop(name, None)
        if content is None:
            entry, start = self._large[name]
            content = _unpack(self._data[start : start + entry.compressed], entry)
        self._at_hand[name] = content
        if len(self._at_hand) > _AT_HAND:
            self._at_hand.popitem(last=False)
        return content

    def __contains__(self, name: object) -> bool:
        return name in self._held or name in self._large

    def __iter__(self) -> Iterator[str]:
        yield from self._held
        yield from self._large

    def __len__(self) -> int:
        return len(self._held) + len(self._large)


def write_archive(files: Mapping[str, bytes]) -> bytes:
    """Return a zip of `files`: same files and same zlib, same bytes, whatever the clock and the time zone.

    Entries are sorted by name, dated 1980-01-01 00:00:00, mode 0644; deflated from 1 KiB on where that makes them
    smaller, else stored.

    Raises:
        BundleError: A name or a size that `read_archive` would refuse.
    """
    check_names(list(files))
    made = io.BytesIO()
    writer = ArchiveWriter(made)
    for name in sorted(files):
        writer.add(name, files[name])
    writer.close()
    return made.getvalue()


def read_archive(data: bytes) -> Archive:
    """Return every file of the zip in `data`, in memory: large ones as they are packed.

    A file whose bytes do not fit its checksum is returned as it is and named in `damaged`, so that
    a verifier can say which file was changed; everything else that is odd is refused.

    Raises:
        BundleError: Not one plain zip archive; the message names the place.
    """
    entries = _read_directory(data)
    check_names([entry.name for entry in entries])
    files = _Files(data)
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
        if zlib.crc32(files.take(entry, start)) != entry.crc:
            damaged.append(entry.name)
    directory_at = len(data) - END.size - sum(entry.listed for entry in entries)
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
    if len(data) < END.size:
        raise BundleError(f"not a bundle: {len(data)} bytes are too few for a zip file")
    magic, disk, first_disk, here, count, length, offset, comment = END.unpack_from(data, len(data) - END.size)
    if magic != END_MAGIC:
        raise BundleError(
            "not a whole zip file: no end record in the last 22 bytes (cut short, or followed by a comment)"
        )
    if disk or first_disk or here != count or comment:
        raise BundleError("the zip's end record speaks of several disks or of a comment; a bundle has neither")
    if count > MAX_FILES:
        raise BundleError(f"{count} files; a bundle may have {MAX_FILES}")
    if offset + length != len(data) - END.size:
        raise BundleError(
            f"the zip's directory is said to end at byte {offset + length}, expected {len(data) - END.size}: "
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
    if at + CENTRAL.size > stop:
        raise BundleError(f"the zip's directory breaks off at byte {at}")
    fields = CENTRAL.unpack_from(data, at)
    magic, _made_by, needed, flags, method, time, date, crc, compressed, size, name_length, extra, comment = fields[:13]
    disk, _internal, external, offset = fields[13:]
    where = f"the zip's directory entry at byte {at}"
    if magic != CENTRAL_MAGIC:
        raise BundleError(f"{where} does not begin as one")
    raw = data[at + CENTRAL.size : at + CENTRAL.size + name_length]
    if at + CENTRAL.size + name_length > stop:
        raise BundleError(f"{where} breaks off in its name")
    try:
        name = raw.decode("ascii")
    except UnicodeDecodeError:
        raise BundleError(f"{where} has a name outside of ASCII: {raw[:64]!r}") from None
    if flags & ~_UTF8_NAME:
        raise BundleError(f"{name!r} has flags {flags:#06x}: encrypted or streamed entries are refused")
    if method not in {STORED, DEFLATED}:
        raise BundleError(f"{name!r} is packed by method {method}; only stored and deflated are read")
    if extra or comment or disk:
        raise BundleError(f"{name!r} carries extra fields or a comment; a bundle's entries have none")
    if (external >> 16) & _FILE_TYPE not in {0, _REGULAR_FILE}:
        raise BundleError(f"{name!r} is a link, a device or a folder, not a file")
    if size > MAX_FILE or (method == STORED and size != compressed) or size > MAX_RATIO * compressed:
        raise BundleError(
            f"{name!r} says {compressed} bytes unpack to {size}; limits are {MAX_FILE} and {MAX_RATIO} to 1"
        )
    header = (needed, flags, method, time, date, crc, compressed, size, name_length, 0)
    return _Entry(name, header, method, crc, compressed, size, offset, CENTRAL.size + name_length)


def _check_local_header(data: bytes, entry: _Entry) -> int:
    """Return where the entry's content begins, after checking that both headers say the same."""
    try:
        magic, *header = LOCAL.unpack_from(data, entry.offset)
    except struct.error:
        raise BundleError(
            f"{entry.name!r} is said to begin at byte {entry.offset}, behind the end of the file"
        ) from None
    start = entry.offset + LOCAL.size
    name = data[start : start + len(entry.name)]
    if magic != LOCAL_MAGIC or tuple(header) != entry.header or name != entry.name.encode("ascii"):
        raise BundleError(f"{entry.name!r} has one header in the directory and another at byte {entry.offset}")
    return start + len(entry.name)


def _unpack(packed: bytes, entry: _Entry) -> bytes:
    """Return the content of one entry; never more bytes than the directory said."""
    if len(packed) != entry.compressed:
        raise BundleError(f"{entry.name!r} breaks off: {len(packed)} of {entry.compressed} bytes")
    if entry.method == STORED:
        return packed
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        content = unpacker.decompress(packed, entry.size + 1)
    except zlib.error as problem:
        raise BundleError(f"{entry.name!r} does not unpack: {problem}") from problem
    if len(content) != entry.size or not unpacker.eof or unpacker.unused_data:
        raise BundleError(f"{entry.name!r} does not unpack to the {entry.size} bytes that the directory says")
    return content
