"""Puts the report page into a bundle: a tag file that the manifest covers and nobody reads as evidence.

docs/format.md section 11.2.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final

from a2a_ledger.archive import read_archive
from a2a_ledger.archive.writer import ArchiveWriter
from a2a_ledger.bundle import SIGNATURE, TAG_MANIFEST, manifest_text

if TYPE_CHECKING:
    from collections.abc import Callable

REPORT: Final = "report.html"


def add_report(bundle: bytes, page: str, sign: Callable[[bytes], bytes] | None) -> bytes:
    """Return a bundle of ours with a page in it.

    Args:
        bundle: the bundle without the page.
        page: the page, filled with just these octets.
        sign: the exporter's raw signature over the tag manifest, made anew since the manifest names the page.

    Raises:
        BundleError: the page is larger than a file of a bundle may be.
    """
    files = read_archive(bundle).files
    made = {REPORT: page.encode()}
    made_of_tags = (TAG_MANIFEST, SIGNATURE)
    tags = {name: files[name] for name in files if not name.startswith("data/") and name not in made_of_tags}
    made[TAG_MANIFEST] = manifest_text({**tags, **made})
    if sign is not None:
        made[SIGNATURE] = sign(made[TAG_MANIFEST])
    target = io.BytesIO()
    writer = ArchiveWriter(target)
    for name in sorted({*files, *made}):  # one by one: what is packed in the bundle is held as it is packed
        writer.add(name, made[name] if name in made else files[name])
    writer.close()
    return target.getvalue()
