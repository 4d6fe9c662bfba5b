"""The files of a bundle: their names, and how large each may be (docs/format.md section 11)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from a2a_ledger.archive.form import MAX_FILE

if TYPE_CHECKING:
    from collections.abc import Iterable

PROFILE = "a2a-evidence/1"
PACKED_PROFILE = "a2a-evidence/2"
"""The forms: one task in plain files, and what takes packs (docs/format.md section 11.4)."""

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
WITHHELD = "data/withheld.jsonl"
"""What was left out, one part a line, where there are packs; without them `data/claims.json` lists it."""

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

_KIB, _MIB = 1 << 10, 1 << 20
_SECRET_SIZE = 32
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

LARGER = (LEAVES, INDEX, EXPECTED)
"""Of a bundle with packs these files may be as large as any."""

ONLY_PACKED = re.compile(r"data/packs/[0-9]+|data/withheld\.jsonl")
"""Files that only a bundle with packs has; they may be as large as any."""


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


def foreign_files(files: Iterable[str], *, packed: bool = False) -> list[str]:
    """Return one sentence for each file that has no place in a bundle (docs/format.md section 11)."""
    return [f"{name}: a bundle has no such file" for name in sorted(files) if _most(name, packed=packed) is None]


def oversize_files(sizes: Iterable[tuple[str, int]], *, packed: bool = False) -> list[str]:
    """Return one sentence for each file that is larger than its kind may be: it is not worth reading.

    `sizes`: name and octets of each file; `packed`: of a bundle that has packs.
    """
    larger = [
        (name, f"{name}: {size} bytes; such a file may have {most}")
        for name, size in sizes
        if (most := _most(name, packed=packed)) is not None and size > most
    ]
    return [sentence for _, sentence in sorted(larger)]


def _most(name: str, *, packed: bool = False) -> int | None:
    """Return how many bytes a file of this name may have; None: no file is named so."""
    if packed and (name in LARGER or ONLY_PACKED.fullmatch(name)):
        return MAX_FILE
    return next((most for pattern, most in KINDS if pattern.fullmatch(name)), None)
