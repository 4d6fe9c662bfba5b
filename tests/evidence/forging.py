"""Bundles changed on purpose: by a stranger, or by an exporter who holds the export key."""

from __future__ import annotations

import hashlib
import io
import zipfile
from contextlib import suppress
from typing import TYPE_CHECKING

from a2a_ledger.archive import write_archive
from a2a_ledger.archive.form import LOCAL
from a2a_ledger.bundle import (
    BAG_INFO,
    CLAIMS,
    EXPORT_STATEMENT,
    MANIFEST,
    README,
    SIGNATURE,
    TAG_MANIFEST,
    read_bundle,
)
from a2a_ledger.codec import canonical, parse_canonical
from a2a_ledger.errors import FormatError
from a2a_ledger.keys import Signer, load_pem
from a2a_ledger.verify import verify

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from a2a_ledger.verify.report import Report

Files = dict[str, bytes]


def files_of(bundle: bytes) -> Files:
    return dict(read_bundle(bundle).files)


def export_key(place: Path, origin: str) -> Signer:
    return load_pem(place / "keys" / "export.pem", origin)


def repacked(files: Files, signer: Signer | None = None) -> bytes:
    """Make all manifests fit again; without the export key, take the signatures off and say so in the claims."""
    made = dict(files)
    if signer is None:
        made.pop(SIGNATURE, None)
        made.pop(EXPORT_STATEMENT, None)
        with suppress(FormatError):  # claims that are no canonical JSON any more stay as they are
            claims = parse_canonical(made.get(CLAIMS, b""))
            if isinstance(claims, dict):
                made[CLAIMS] = canonical({**claims, "signed": False})
    payload = [content for name, content in made.items() if name.startswith("data/")]
    info = [line for line in made[BAG_INFO].splitlines() if not line.startswith(b"Payload-Oxum")]
    oxum = b"Payload-Oxum: %d.%d" % (sum(map(len, payload)), len(payload))
    made[BAG_INFO] = b"".join(line + b"\n" for line in (*info, oxum))
    made[MANIFEST] = _manifest(made, [name for name in made if name.startswith("data/")])
    made[TAG_MANIFEST] = _manifest(made, ["bagit.txt", BAG_INFO, MANIFEST, README])
    if signer is not None:
        made[SIGNATURE] = signer.sign(made[TAG_MANIFEST])
    return write_archive(made)


def forged(bundle: bytes, change: Callable[[Files], None], signer: Signer | None = None) -> bytes:
    """Change a bundle's files and make the manifests fit again."""
    files = files_of(bundle)
    change(files)
    return repacked(files, signer)


def statuses(report: Report) -> dict[str, str]:
    return {claim.claim: claim.status for claim in report.claims}


def judged(bundle: bytes, *trust: str) -> Report:
    return verify(bundle, trust=trust)


def flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def damaged(bundle: bytes) -> bytes:
    """Change one octet of a file that is stored, not deflated: an octet of the zip may be one that says nothing."""
    name = "data/log/checkpoint"
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        entry = archive.getinfo(name)
    assert entry.compress_type == zipfile.ZIP_STORED
    at = entry.header_offset + LOCAL.size + len(name)
    return bundle[:at] + flipped(bundle[at : at + entry.file_size]) + bundle[at + entry.file_size :]


def _manifest(files: Files, names: list[str]) -> bytes:
    return "".join(f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(names)).encode()
