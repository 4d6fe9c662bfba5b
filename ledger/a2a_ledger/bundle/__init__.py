"""The evidence bundle: one zip that somebody who trusts neither side can check with tools of their own.

A bundle is a BagIt bag (RFC 8493) in the zip form of `archive`: docs/format.md section 11 has the table of files.
This module knows names and forms only: `export` chooses what goes in, `verify` judges.
"""

from __future__ import annotations

import hashlib
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.archive import read_archive, write_archive
from a2a_ledger.archive.form import MAX_TOTAL
from a2a_ledger.archive.packs import PACKS, PackedFiles
from a2a_ledger.bundle.kinds import (
    BAG_INFO,
    BAGIT,
    BLOBS,
    CHECKPOINT,
    CLAIMS,
    CONSISTENCY,
    CUSTODY,
    ENGINE,
    EXPECTED,
    EXPORT_STATEMENT,
    INDEX,
    KEYS,
    KINDS,
    LARGER,
    LEAVES,
    MANIFEST,
    NEEDED,
    ONLY_PACKED,
    PACKED_PROFILE,
    POLICY_EXAMPLE,
    PROFILE,
    PROOFS,
    README,
    RECORDS,
    REPLAY_PROFILE,
    SIGNATURE,
    STATEMENTS,
    STREAMS,
    TAG_MANIFEST,
    TIMES,
    WITHHELD,
    consistency_file,
    foreign_files,
    oversize_files,
    proof_file,
    record_file,
    salt_file,
    statement_file,
    stream_key_file,
    time_files,
)
from a2a_ledger.codec import MAX_SAFE, Hole, Kept, parse_canonical
from a2a_ledger.errors import BundleError, FormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from a2a_ledger.codec import Part
    from a2a_ledger.events import Json

__all__ = [
    "BAGIT",
    "BAGIT_TEXT",
    "BAG_INFO",
    "BLOBS",
    "CHECKPOINT",
    "CLAIMS",
    "CONSISTENCY",
    "CUSTODY",
    "ENGINE",
    "EXPECTED",
    "EXPORT_STATEMENT",
    "INDEX",
    "INDEX_HEAD",
    "KEYS",
    "KINDS",
    "LARGER",
    "LEAVES",
    "MANIFEST",
    "NEEDED",
    "ONLY_PACKED",
    "PACKED_PROFILE",
    "POLICY_EXAMPLE",
    "PROFILE",
    "PROOFS",
    "README",
    "RECORDS",
    "REPLAY_PROFILE",
    "SIGNATURE",
    "STATEMENTS",
    "STREAMS",
    "TAG_MANIFEST",
    "TIMES",
    "WITHHELD",
    "Bundle",
    "IndexRow",
    "blob_files",
    "consistency_file",
    "foreign_files",
    "index_line",
    "index_text",
    "manifest_of",
    "manifest_text",
    "oversize_files",
    "proof_file",
    "read_bundle",
    "record_file",
    "salt_file",
    "statement_file",
    "stream_key_file",
    "time_files",
    "write_bundle",
]

BAGIT_TEXT = b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"
_INDEX_COLUMNS = "line\tindex\tstream\tver\trecord\tbody"
INDEX_HEAD = f"{_INDEX_COLUMNS}\n".encode()
_SECRET_SIZE = 32
_HOLE = re.compile(rb'\[(0|[1-9][0-9]{0,15}),"([0-9a-f]{64})"\]')
_COUNT = re.compile(r"0|[1-9][0-9]{0,15}")


class IndexRow(NamedTuple):
    """One line of `data/log/index.tsv`: where the parts of one event stand."""

    line: int  # of events.jsonl, from 1
    n: int  # index of the leaf in the log
    stream: str
    ver: int
    record: str  # file
    body: str  # folder of the body's parts, or "-"


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle's files, and what reading them as a zip already showed to be changed.

    Attributes:
        files: by name; those of packs in the place of the packs.
        damaged: files of the zip that do not fit their checksum there.
        packed: the files of the zip itself, where some of them are packs.
    """

    files: Mapping[str, bytes]
    damaged: tuple[str, ...]
    packed: Mapping[str, bytes] | None = None

    @property
    def zipped(self) -> Mapping[str, bytes]:
        """Return the files of the zip itself, which are those that the manifests list."""
        return self.files if self.packed is None else self.packed

    def sizes(self) -> Iterator[tuple[str, int]]:
        """Yield name and octets of every file; of those in packs, of each that may be too large."""
        yield from ((name, len(content)) for name, content in self.zipped.items())
        if isinstance(self.files, PackedFiles):
            yield from self.files.large

    @property
    def profile(self) -> str:
        """Return the form that the bundle has by its files."""
        return PROFILE if self.packed is None else PACKED_PROFILE

    def text(self, name: str) -> str:
        """Return a file as ASCII or UTF-8 text.

        Raises:
            BundleError: The file is missing or is not text.
        """
        try:
            return self.read(name).decode("utf-8")
        except UnicodeDecodeError as problem:
            raise BundleError(f"{name}: expected UTF-8 text, byte {problem.start} is none") from problem

    def json(self, name: str) -> Json:
        """Return the value in a file of canonical JSON.

        Raises:
            BundleError: The file is missing, or its bytes are not the one spelling of a value.
        """
        raw = self.read(name)
        try:
            return parse_canonical(raw)
        except FormatError as problem:
            raise BundleError(f"{name}: {problem}") from problem

    def read(self, name: str) -> bytes:
        """Return a file's bytes.

        Raises:
            BundleError: The file is missing.
        """
        try:
            return self.files[name]
        except KeyError:
            raise BundleError(f"{name} is missing from the bundle") from None

    def under(self, folder: str) -> list[str]:
        """Return the names of the files in `folder` (which ends in a slash), sorted."""
        return sorted(name for name in self.files if name.startswith(folder))

    def leaves(self) -> Iterator[bytes]:
        """Yield the leaves that the bundle shows, exact bytes without line feed.

        Raises:
            BundleError: Missing, or the last line does not end.
        """
        content = self.read(LEAVES)
        if not content.endswith(b"\n"):
            raise BundleError(f"{LEAVES}: the last line does not end in a line feed")
        return (line[:-1] for line in io.BytesIO(content))

    def index(self) -> Iterator[IndexRow]:
        """Yield the rows of `data/log/index.tsv`.

        Raises:
            BundleError: Not the columns that docs/format.md section 11 gives, or not one row for each leaf.
        """
        content = self.read(INDEX)
        rows_there, leaves = content.count(b"\n") - 1, self.read(LEAVES).count(b"\n")
        if rows_there != leaves:
            raise BundleError(f"{INDEX}: lists {rows_there} events, {LEAVES} has {leaves}")
        if not content.startswith(INDEX_HEAD) or not content.endswith(b"\n"):
            raise BundleError(f"{INDEX}: expected the columns {_INDEX_COLUMNS!r} and a line feed at the end")
        self.text(INDEX)
        lines = io.BytesIO(content)
        next(lines)
        return (_index_row(number, line.decode()) for number, line in enumerate(lines, start=1))

    def stream_key(self, stream: str) -> bytes | None:
        """Return the disclosed key of a stream, None if it is not disclosed.

        Raises:
            BundleError: It is not 32 bytes.
        """
        name = stream_key_file(stream)
        if name not in self.files:
            return None
        return _secret(name, self.files[name])

    def salt(self, index: int) -> bytes:
        """Return the salt of the record at `index`.

        Raises:
            BundleError: Missing, or not 32 bytes.
        """
        name = salt_file(index)
        return _secret(name, self.read(name))

    def blob_parts(self, blob: str) -> list[Part]:
        """Return a blob's parts in order; none if the bundle has no such blob.

        Raises:
            BundleError: A part is there twice or by half, a salt is not 32 bytes, a hole is not `[length, hash]`.
        """
        parts: list[Part] = []
        while True:
            part = f"{BLOBS}{blob}/{len(parts)}"
            there = [name in self.files for name in (part, f"{part}.salt", f"{part}.hole")]
            if there == [True, True, False]:
                parts.append(Kept(_secret(f"{part}.salt", self.files[f"{part}.salt"]), self.files[part]))
            elif there == [False, False, True]:
                parts.append(_hole(f"{part}.hole", self.files[f"{part}.hole"]))
            elif any(there):
                raise BundleError(f"{part}: expected this file and its .salt, or one .hole in their place")
            else:
                return parts


def _index_row(number: int, line: str) -> IndexRow:
    cells = line.removesuffix("\n").split("\t")
    if len(cells) != len(IndexRow._fields) or not all(_COUNT.fullmatch(cells[i]) for i in (0, 1, 3)):
        raise BundleError(f"{INDEX}: line {number + 1} is not {_INDEX_COLUMNS!r}")
    return IndexRow(int(cells[0]), int(cells[1]), cells[2], int(cells[3]), cells[4], cells[5])


def _load(path: Path) -> bytes:
    """Return the bytes of a bundle's file, refusing one that is too large to be a bundle before it is read."""
    try:
        size = path.stat().st_size
        if size > MAX_TOTAL:
            raise BundleError(f"{path}: {size} bytes; a bundle may have {MAX_TOTAL}")
        with path.open("rb") as file:
            return file.read(size)  # no more than was looked at, even if the file grows
    except OSError as problem:
        raise BundleError(f"{path}: cannot be read: {problem.strerror}") from problem


def _secret(name: str, content: bytes) -> bytes:
    """Return `content` if it has the one length that salts and stream keys have."""
    if len(content) != _SECRET_SIZE:
        raise BundleError(f"{name}: expected {_SECRET_SIZE} bytes, found {len(content)}")
    return content


def _hole(name: str, content: bytes) -> Hole:
    """Read a `.hole` file."""
    match = _HOLE.fullmatch(content)
    if match is None or int(match[1]) > MAX_SAFE:
        raise BundleError(f'{name}: expected [length,"<64 hex digits>"], found {content[:90]!r}')
    return Hole(int(match[1]), bytes.fromhex(match[2].decode()))


def blob_files(blob: str, parts: Iterable[Part]) -> dict[str, bytes]:
    """Return the files of one blob."""
    files: dict[str, bytes] = {}
    for number, part in enumerate(parts):
        name = f"{BLOBS}{blob}/{number}"
        if isinstance(part, Hole):
            files[f"{name}.hole"] = f'[{part.length},"{part.part.hex()}"]'.encode()
        else:
            files[name] = part.content
            files[f"{name}.salt"] = part.salt
    return files


def index_text(rows: Iterable[IndexRow]) -> bytes:
    """Return the bytes of `data/log/index.tsv`."""
    return INDEX_HEAD + b"".join(map(index_line, rows))


def index_line(row: IndexRow) -> bytes:
    """Return one line of it, with its line feed."""
    return ("\t".join(map(str, row)) + "\n").encode()


def write_bundle(
    payload: Mapping[str, bytes],
    *,
    readme: str,
    info: Mapping[str, str],
    sign: Callable[[bytes], bytes] | None,
) -> bytes:
    """Return the bundle of these files: same input, same bytes.

    `payload` maps names under `data/` to contents, `info` is what `bag-info.txt` says besides the
    sums, `sign` makes the exporter's raw Ed25519 signature over `tagmanifest-sha256.txt`; without
    it the bundle has no such signature.

    Raises:
        BundleError: More, larger or other names than a bundle may have.
    """
    for name in payload:
        if not name.startswith("data/"):
            raise BundleError(f"{name}: a bag's payload lies under data/")
    labels = {
        "BagIt-Profile-Identifier": PROFILE,
        **info,
        "Payload-Oxum": f"{sum(map(len, payload.values()))}.{len(payload)}",
    }
    tags = {
        BAGIT: BAGIT_TEXT,
        BAG_INFO: "".join(f"{label}: {value}\n" for label, value in labels.items()).encode(),
        README: readme.encode(),
        MANIFEST: manifest_text(payload),
    }
    tags[TAG_MANIFEST] = manifest_text(tags)
    if sign is not None:
        tags[SIGNATURE] = sign(tags[TAG_MANIFEST])
    files = {**payload, **tags}
    sizes = ((name, len(content)) for name, content in files.items())
    for fault in (*foreign_files(files), *oversize_files(sizes)):
        raise BundleError(f"the bundle would be refused by its reader: {fault}")
    return write_archive(files)


def read_bundle(source: bytes | Path) -> Bundle:
    """Return the bundle in a zip file or in its bytes, in memory; packs as the zip has them.

    Only the zip and the presence of a bag are judged here; whether files are intact is `verify`.

    Raises:
        BundleError: The zip is one of those that two readers could read differently, or is no bag.
    """
    archive = read_archive(_load(source) if isinstance(source, Path) else source)
    for name in (BAGIT, MANIFEST, TAG_MANIFEST):
        if name not in archive.files:
            raise BundleError(f"this zip is no evidence bundle: {name} is missing")
    if not any(name.startswith(PACKS) for name in archive.files):
        return Bundle(archive.files, archive.damaged)
    return Bundle(PackedFiles(archive.files), archive.damaged, archive.files)


def manifest_text(files: Mapping[str, bytes]) -> bytes:
    """Return a BagIt manifest, which is what `sha256sum -c` reads."""
    return manifest_of({name: hashlib.sha256(content).hexdigest() for name, content in files.items()})


def manifest_of(digests: Mapping[str, str]) -> bytes:
    """Return the BagIt manifest of files whose SHA-256 are known, in hex."""
    return "".join(f"{digests[name]}  {name}\n" for name in sorted(digests)).encode()
