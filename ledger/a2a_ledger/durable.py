"""Files that are there whole after any crash, and stay there (docs/format.md section 13.7).

A rename within a folder is atomic; the folder itself has to be synced before the rename is sure to outlive a cut of
the power. Every file beside the databases that is replaced (mark, notes, proofs, tiles) is written through here.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def replace_file(path: Path, data: bytes, *, by: str) -> None:
    """Put `data` in the place of a file: after a crash either its old or its new content is there, durable on return.

    Args:
        path: the file; it need not be there, its folder has to be.
        data: the whole new content.
        by: name in the same folder that it is written under first. Whoever has no lock takes one of its own
            (`of_this_process`), so that two who write at once do not write into one file.

    Raises:
        OSError: as the system says it; the old content is there, and nothing under the other name.
    """
    coming = path.with_name(by)
    try:
        with coming.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        coming.replace(path)
    except OSError:
        coming.unlink(missing_ok=True)
        raise
    sync(path.parent)


def of_this_process(path: Path) -> str:
    """Return a hidden name beside a file that no other process writes."""
    return f".{path.name}.{os.getpid()}.tmp"


def sync(place: Path) -> None:
    """Make a file's octets, or what was made and renamed in a folder, durable.

    Raises:
        OSError: as the system says it.
    """
    descriptor = os.open(place, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
