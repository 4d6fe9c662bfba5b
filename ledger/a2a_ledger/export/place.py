"""Puts a file in its place: as a whole, or not at all."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from a2a_ledger.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path


def put_in_place(out: Path, data: bytes, what: str) -> None:
    """Write a file as a whole or not at all.

    Args:
        out: the file; it is replaced.
        data: its octets.
        what: what it is, for an error.

    Raises:
        StoreError: it cannot be written.
    """
    temporary = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(data)
        temporary.replace(out)
    except OSError as problem:
        temporary.unlink(missing_ok=True)
        raise StoreError(f"{out}: {what} cannot be written ({problem.strerror})") from problem
