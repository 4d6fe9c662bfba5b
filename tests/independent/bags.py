"""Bundles of the conformance corpus, unpacked as a reader would who has other tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.conformance.cases import all_rows
from tests.conformance.material import log
from tests.evidence.forging import files_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.evidence.forging import Files

ROWS = {row.name: row for row in all_rows()}

LEAVES = (
    *("proof_hash_changed_fail", "proof_of_another_leaf_fail", "proof_too_long_fail", "proof_too_short_fail"),
    *("proof_under_older_head_fail", "missing_proof_fail"),
)
"""Cases whose leaves are not under the checkpoint, or are not shown to be."""

HEADS = ("head_by_stranger_fail", "head_signature_wrong_fail")
"""Cases whose checkpoint the log's key did not sign."""

FILES = ("changed_README.txt_fail", "changed_bagit_fail", "changed_profile_fail", "changed_manifest-sha256.txt_fail")
"""Cases with a file that is not what the manifests say."""


def unpacked(folder: Path, files: Files) -> Path:
    """Write the files of a bundle into a folder, and return it."""
    for name, octets in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(octets)
    return folder


def good(tmp_path: Path) -> Path:
    """Return the good bundle of the corpus, unpacked: 17 leaves under a head of 31."""
    return unpacked(tmp_path / "bag", log().files)


def case(name: str, tmp_path: Path) -> Path:
    """Return a bundle of the corpus that has one thing wrong, unpacked."""
    return unpacked(tmp_path / "bag", files_of(ROWS[name].made().bundle))


def earlier(tmp_path: Path) -> Path:
    """Return the file of the log's earlier head, as somebody kept it."""
    place = tmp_path / "earlier.note"
    place.write_bytes(log().earlier)
    return place


def vkey(role: str) -> str:
    """Return a public key of the corpus's log, as its owner would give it to a reader."""
    return log().signers[role].vkey
