"""Files and streams that a person names: read up to a limit, with an error that names them."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from a2a_ledger.errors import FormatError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

MAX_INPUT = 16 << 20
"""Octets of a file of JSON or text at most: what a body may have that a ledger keeps whole."""

MAX_HEAD = 1_000_000  # note.MAX_NOTE, without the import
"""Octets of a signed head."""

MAX_BUNDLE = 1 << 30  # archive.form.MAX_TOTAL, without the import
"""Octets of a bundle (docs/format.md section 11)."""

_CHUNK = 1 << 20
_T = TypeVar("_T")


def read_input(source: Path, expected: str, *, limit: int = MAX_INPUT) -> bytes:
    """Return the bytes of a file, or of standard input for `-`.

    Args:
        source: what the person named.
        expected: what should be there, for the error.
        limit: octets that it may have; one that has more is refused before it fills the memory.

    Raises:
        UsageError: it cannot be read, or is too large.
    """
    try:
        if str(source) != "-":
            with source.open("rb") as file:
                if source.stat().st_size > limit:
                    raise _too_large(source, expected, limit)
                return _read(source, file, expected, limit)
        if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] - None where it was closed, as Python documents
            raise UsageError(f"-: expected {expected} on standard input, found it closed")
        return _read(source, sys.stdin.buffer, expected, limit)
    except (OSError, ValueError) as e:
        raise UsageError(f"{source}: cannot be read ({getattr(e, 'strerror', None) or e}); expected {expected}") from e


def read_as(source: Path, expected: str, parse: Callable[[bytes], _T]) -> _T:
    """Return what the bytes of a file, or of standard input for `-`, say.

    Args:
        source: what the person named.
        expected: what should be there, for the error.
        parse: reads the bytes.

    Raises:
        UsageError: it cannot be read, or is too large; or `parse` raises it, then behind the file's name.
        FormatError: `parse` raises it, then behind the file's name.
    """
    octets = read_input(source, expected)
    with reading_of(source):
        return parse(octets)


@contextmanager
def reading_of(source: Path) -> Generator[None]:
    """Name the file in an error about what stands in it.

    Raises:
        UsageError: it was raised within; the file's name stands before it.
        FormatError: same.
    """
    try:
        yield
    except (UsageError, FormatError) as e:
        raise type(e)(f"{source}: {e}", hint=e.hint) from e


def _read(source: Path, file: BinaryIO, expected: str, limit: int) -> bytes:
    """Read in chunks: a stream does not say how long it is, and a file may say so falsely."""
    found = bytearray()
    while chunk := file.read(min(_CHUNK, limit + 1 - len(found))):
        found += chunk
        if len(found) > limit:
            raise _too_large(source, expected, limit)
    return bytes(found)


def _too_large(source: Path, expected: str, limit: int) -> UsageError:
    return UsageError(f"{source}: expected {expected} of at most {limit} bytes, found more")
