"""The files of a bundle against its manifests (docs/format.md section 12, step 2)."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from a2a_ledger.bundle import BAGIT, BAGIT_TEXT, MANIFEST, NEEDED, SIGNATURE, TAG_MANIFEST
from a2a_ledger.errors import BundleError

if TYPE_CHECKING:
    from a2a_ledger.bundle import Bundle

_MANIFEST_LINE = re.compile(r"([0-9a-f]{64})  ([A-Za-z0-9._/-]+)")


def file_faults(bundle: Bundle) -> list[str]:
    """Return one sentence for each file that is not what the manifests say; none if all are intact."""
    faults = [f"{name} is missing from the bundle" for name in NEEDED if name not in bundle.files]
    if bundle.files[BAGIT] != BAGIT_TEXT:
        faults.append(f"{BAGIT}: not the two lines of BagIt 1.0 in UTF-8")
    payload = {name for name in bundle.zipped if name.startswith("data/")}
    tags = set(bundle.zipped) - payload - {TAG_MANIFEST, SIGNATURE}
    for manifest, expected in ((TAG_MANIFEST, tags), (MANIFEST, payload)):
        try:
            listed = _read_manifest(bundle, manifest)
        except BundleError as problem:
            faults.append(str(problem))
            continue
        faults += [
            f"{name}: listed in {manifest}, missing from the bundle" for name in sorted(listed.keys() - expected)
        ]
        faults += [f"{name}: in the bundle, not listed in {manifest}" for name in sorted(expected - listed.keys())]
        for name in sorted(listed.keys() & expected):
            found = hashlib.sha256(bundle.zipped[name]).hexdigest()
            if found != listed[name]:
                faults.append(f"{name}: manifest says {listed[name][:8]}…, file is {found[:8]}…")
    said = {fault.partition(":")[0] for fault in faults}
    faults += [f"{name}: does not fit its checksum in the zip" for name in bundle.damaged if name not in said]
    return faults


def _read_manifest(bundle: Bundle, manifest: str) -> dict[str, str]:
    """Return name -> digest of a manifest in the exact form that `manifest_text` writes."""
    lines = bundle.text(manifest).split("\n")
    if lines[-1] != "":
        raise BundleError(f"{manifest}: the last line does not end in a line feed")
    listed: dict[str, str] = {}
    for number, line in enumerate(lines[:-1], start=1):
        match = _MANIFEST_LINE.fullmatch(line)
        if match is None:
            raise BundleError(f"{manifest}: line {number} is not '<sha256>  <name>'")
        if match[2] in listed:
            raise BundleError(f"{manifest}: line {number} lists {match[2]} again")
        listed[match[2]] = match[1]
    if list(listed) != sorted(listed):
        raise BundleError(f"{manifest}: its lines are not sorted by name")
    return listed
