"""Puts a file in its place: as a whole, or not at all."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from a2a_ledger.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path


@contextmanager
def placed(out: Path, what: str) -> Generator[IO[bytes]]:
    """Give a file to write; it stands at `out` when the block ends, and nowhere if the block raises.

    Args:
        out: the file; it is replaced.
        what: what it is, for an error.

    Raises:
        StoreError: it cannot be written.
    """
    temporary = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w+b") as file:
            yield file
        temporary.replace(out)
    except OSError as problem:
        raise StoreError(f"{out}: {what} cannot be written ({problem.strerror})") from problem
    finally:
        temporary.unlink(missing_ok=True)


def put_in_place(out: Path, data: bytes, what: str) -> None:
    """Write a file as a whole or not at all.

    Args:
        out: the file; it is replaced.
        data: its octets.
        what: what it is, for an error.

    Raises:
        StoreError: it cannot be written.
    """
    with placed(out, what) as file:
        file.write(data)
