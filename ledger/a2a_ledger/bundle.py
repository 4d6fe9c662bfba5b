"""The evidence bundle: one zip that somebody who trusts neither side can check with tools of their own.

A bundle is a BagIt bag (RFC 8493) in the zip form of `archive`: docs/format.md section 11 has the table of files.
This module knows names and forms only: `export` chooses what goes in, `verify` judges.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.archive import MAX_FILE, MAX_TOTAL, read_archive, write_archive
from a2a_ledger.codec import Hole, Kept, parse_canonical
from a2a_ledger.errors import BundleError, FormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from a2a_ledger.codec import Part
    from a2a_ledger.events import Json

PROFILE = "a2a-evidence/1"

BAGIT = "bagit.txt"
BAG_INFO = "bag-info.txt"
MANIFEST = "manifest-sha256.txt"
TAG_MANIFEST = "tagmanifest-sha256.txt"
SIGNATURE = "tagmanifest-sha256.txt.sig"
README = "README.txt"

CLAIMS = "data/claims.json"
EXPORT_STATEMENT = "data/export.dsse.json"
CHECKPOINT = "data/log/checkpoint"
LEAVES = "data/log/events.jsonl"
INDEX = "data/log/index.tsv"
PROOFS = "data/log/proofs/"
CONSISTENCY = "data/log/consistency/"
TIMES = "data/time/"
RECORDS = "data/records/"
BLOBS = "data/blobs/"
STREAMS = "data/streams/"
STATEMENTS = "data/statements/"
KEYS = "data/keys/untrusted/"
ENGINE = "data/replay/engine.json"
EXPECTED = "data/replay/expected.jsonl"
REPLAY_PROFILE = "data/replay/profile.toml"
CUSTODY = "data/custody.json"
POLICY_EXAMPLE = "data/policy.example.txt"

NEEDED = (
    BAG_INFO,
    README,
    CLAIMS,
    CHECKPOINT,
    LEAVES,
    INDEX,
    ENGINE,
    EXPECTED,
    REPLAY_PROFILE,
    CUSTODY,
    POLICY_EXAMPLE,
)
"""What every bundle has, beside the manifests, without which a zip is none, and what its events bring."""

BAGIT_TEXT = b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"
_INDEX_HEAD = "line\tindex\tstream\tver\trecord\tbody"
_SECRET_SIZE = 32
_HOLE = re.compile(rb'\[(0|[1-9][0-9]{0,15}),"([0-9a-f]{64})"\]')
_COUNT = re.compile(r"0|[1-9][0-9]{0,15}")

_KIB, _MIB = 1 << 10, 1 << 20
KINDS = tuple(
    (re.compile(name), most)
    for name, most in (
        (r"bagit\.txt|bag-info\.txt|data/log/checkpoint", 64 * _KIB),
        (r"README\.txt", _MIB),
        (r"(tag)?manifest-sha256\.txt", 8 * _MIB),
        (r"tagmanifest-sha256\.txt\.sig", 64),
        (r"data/claims\.json", _MIB),
        (r"data/export\.dsse\.json", 4 * _MIB),
        (r"data/log/(events\.jsonl|index\.tsv)", 8 * _MIB),
        (r"data/log/proofs/[0-9]+\.tlog-proof", 128 * _KIB),
        (r"data/log/consistency/[0-9]+-[0-9]+", 16 * _KIB),
        (r"data/time/[0-9]\.(checkpoint|tsr)", 64 * _KIB),
        (r"data/records/[0-9]+\.json", 64 * _KIB),
        (r"data/records/[0-9]+\.salt|data/streams/[^/]+\.key", _SECRET_SIZE),
        (r"report\.html|data/blobs/[^/]+/[0-9]+", MAX_FILE),
        (r"data/blobs/[^/]+/[0-9]+\.salt", _SECRET_SIZE),
        (r"data/blobs/[^/]+/[0-9]+\.hole", 128),
        (r"data/statements/[0-9]+\.dsse\.json", _MIB),
        (r"data/keys/untrusted/[^/]+\.vkey", _KIB),
        (r"data/replay/expected\.jsonl", 8 * _MIB),
        (r"data/(custody\.json|policy\.example\.txt|replay/(engine\.json|profile\.toml))", 64 * _KIB),
    )
)
"""Every name that a file of a bundle can have, and how large such a file may be."""


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
    """A bundle's files in memory, and what reading them as a zip already showed to be changed."""

    files: Mapping[str, bytes]
    damaged: tuple[str, ...]

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

    def leaves(self) -> list[bytes]:
        """Return the leaves that the bundle shows, exact bytes without line feed.

        Raises:
            BundleError: Missing, or the last line does not end.
        """
        content = self.read(LEAVES)
        if not content.endswith(b"\n"):
            raise BundleError(f"{LEAVES}: the last line does not end in a line feed")
        return content[:-1].split(b"\n")

    def index(self) -> list[IndexRow]:
        """Return the rows of `data/log/index.tsv`.

        Raises:
            BundleError: Not the columns that docs/format.md section 11 gives, or not one row for each leaf.
        """
        rows_there, leaves = self.read(INDEX).count(b"\n") - 1, self.read(LEAVES).count(b"\n")
        if rows_there != leaves:
            raise BundleError(f"{INDEX}: lists {rows_there} events, {LEAVES} has {leaves}")
        lines = self.text(INDEX).split("\n")
        if lines[0] != _INDEX_HEAD or lines[-1] != "":
            raise BundleError(f"{INDEX}: expected the columns {_INDEX_HEAD!r} and a line feed at the end")
        rows: list[IndexRow] = []
        for number, text in enumerate(lines[1:-1], start=1):
            cells = text.split("\t")
            if len(cells) != len(IndexRow._fields) or not all(_COUNT.fullmatch(cells[i]) for i in (0, 1, 3)):
                raise BundleError(f"{INDEX}: line {number + 1} is not {_INDEX_HEAD!r}")
            rows.append(IndexRow(int(cells[0]), int(cells[1]), cells[2], int(cells[3]), cells[4], cells[5]))
        return rows

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
    if match is None:
        raise BundleError(f'{name}: expected [length,"<64 hex digits>"], found {content[:90]!r}')
    return Hole(int(match[1]), bytes.fromhex(match[2].decode()))


def proof_file(index: int) -> str:
    """Return the name of the inclusion proof of the leaf at `index`."""
    return f"{PROOFS}{index}.tlog-proof"


def consistency_file(old: int, new: int) -> str:
    """Return the name of the proof that the log only grew from one size to another."""
    return f"{CONSISTENCY}{old}-{new}"


def time_files(number: int) -> tuple[str, str]:
    """Return the names of a stamped checkpoint and of the time token over it; `number` is 0 to 9."""
    return f"{TIMES}{number}.checkpoint", f"{TIMES}{number}.tsr"


def record_file(index: int) -> str:
    """Return the name of the record behind the leaf at `index`."""
    return f"{RECORDS}{index}.json"


def salt_file(index: int) -> str:
    """Return the name of that record's salt."""
    return f"{RECORDS}{index}.salt"


def statement_file(index: int) -> str:
    """Return the name of the signed statement of the finding at `index`."""
    return f"{STATEMENTS}{index}.dsse.json"


def stream_key_file(stream: str) -> str:
    """Return the name of a stream's key; the colon of a stream's name is no plain file name character."""
    return f"{STREAMS}{stream.replace(':', '.')}.key"


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
    return "".join(f"{line}\n" for line in (_INDEX_HEAD, *("\t".join(map(str, row)) for row in rows))).encode()


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
    for fault in (*foreign_files(files), *oversize_files(files)):
        raise BundleError(f"the bundle would be refused by its reader: {fault}")
    return write_archive(files)


def read_bundle(source: bytes | Path) -> Bundle:
    """Return the bundle in a zip file or in its bytes, all in memory.

    Only the zip and the presence of a bag are judged here; whether files are intact is `verify`.

    Raises:
        BundleError: The zip is one of those that two readers could read differently, or is no bag.
    """
    archive = read_archive(_load(source) if isinstance(source, Path) else source)
    for name in (BAGIT, MANIFEST, TAG_MANIFEST):
        if name not in archive.files:
            raise BundleError(f"this zip is no evidence bundle: {name} is missing")
    return Bundle(archive.files, archive.damaged)


def foreign_files(files: Mapping[str, bytes]) -> list[str]:
    """Return one sentence for each file that has no place in a bundle (docs/format.md section 11)."""
    return [f"{name}: a bundle has no such file" for name in sorted(files) if _most(name) is None]


def oversize_files(files: Mapping[str, bytes]) -> list[str]:
    """Return one sentence for each file that is larger than its kind may be: it is not worth reading."""
    return [
        f"{name}: {len(content)} bytes; such a file may have {most}"
        for name, content in sorted(files.items())
        if (most := _most(name)) is not None and len(content) > most
    ]


def _most(name: str) -> int | None:
    """Return how many bytes a file of this name may have; None: no file is named so."""
    return next((most for pattern, most in KINDS if pattern.fullmatch(name)), None)


def manifest_text(files: Mapping[str, bytes]) -> bytes:
    """Return a BagIt manifest, which is what `sha256sum -c` reads."""
    return "".join(f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files)).encode()
