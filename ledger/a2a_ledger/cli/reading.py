"""Files and streams that a person names: read whole, with an error that names them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from a2a_ledger.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


def read_input(source: Path, expected: str) -> bytes:
    """Return the bytes of a file, or of standard input for `-`.

    Args:
        source: what the person named.
        expected: what should be there, for the error.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        if str(source) != "-":
            return source.read_bytes()
        if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] - None where it was closed, as Python documents
            raise UsageError(f"-: expected {expected} on standard input, found it closed")
        return sys.stdin.buffer.read()
    except (OSError, ValueError) as e:
        raise UsageError(f"{source}: cannot be read ({getattr(e, 'strerror', None) or e}); expected {expected}") from e
