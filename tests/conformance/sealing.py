"""Puts changed files into a bag again: manifests, sums and the exporter's raw signature fit, whatever is there."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from a2a_ledger.archive import write_archive

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_ledger.keys import Signer
    from tests.evidence.forging import Files

BAG_INFO = "bag-info.txt"
MANIFEST = "manifest-sha256.txt"
TAGS = "tagmanifest-sha256.txt"
SIGNATURE = "tagmanifest-sha256.txt.sig"


def sealed(files: Files, signer: Signer | None, *, sums: bool = True) -> bytes:
    """Make manifests and signature again; without a signer what is there of a signature stays.

    Args:
        files: what is there; README, bag-info and others may be missing.
        signer: of the tag manifest.
        sums: make the sum of octets in `bag-info.txt` fit too.
    """
    made = dict(files)
    payload = [name for name in made if name.startswith("data/")]
    if sums and BAG_INFO in made:
        lines = made[BAG_INFO].split(b"\n")
        oxum = b"Payload-Oxum: %d.%d" % (sum(len(made[name]) for name in payload), len(payload))
        made[BAG_INFO] = b"\n".join(oxum if line.startswith(b"Payload-Oxum") else line for line in lines)
    made[MANIFEST] = manifest(made, payload)
    tags = [name for name in made if not name.startswith("data/") and name not in {TAGS, SIGNATURE}]
    return tagged({**made, TAGS: manifest(made, tags)}, signer)


def tagged(files: Files, signer: Signer | None) -> bytes:
    """Sign the tag manifest as it is, and pack."""
    made = dict(files)
    if signer is not None:
        made[SIGNATURE] = signer.sign(made[TAGS])
    return write_archive(made)


def manifest(files: Files, names: Iterable[str]) -> bytes:
    """Return the BagIt manifest of these files."""
    return b"".join(b"%b  %b\n" % (sha256(files[name]).hexdigest().encode(), name.encode()) for name in sorted(names))
