"""SQLite's errors as errors of this package: one sentence each, with what to do."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING

from a2a_ledger.errors import BusyError, ConflictError, LedgerError, ReadOnlyError, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

_PRIMARY = 0xFF  # the low octet of an extended result code


def is_busy(error: sqlite3.Error) -> bool:
    """Tell whether another connection holds the lock, so that the same call may succeed later."""
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def as_ledger_error(error: sqlite3.Error, place: str) -> LedgerError:
    """Return the error of this package that says what SQLite met at `place`."""
    match _code(error):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return BusyError(
                f"expected {place} to be free within the time-out, found it locked by another connection",
                hint="see which process holds it (fuser, lsof), then try again: nothing was written",
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return ReadOnlyError(f"expected to be allowed to write to {place}, found it read-only: {error}")
        case sqlite3.SQLITE_CANTOPEN:
            return StoreError(f"expected to be able to open {place}, found that it cannot be opened: {error}")
        case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT:
            return StoreError(
                f"expected an SQLite database in {place}, found damage or another kind of file: {error}",
                hint="keep the file as it is; restore a backup beside it and run `a2a-ledger audit`",
            )
        case sqlite3.SQLITE_CONSTRAINT:
            return ConflictError(f"somebody else recorded this position or version first in {place}: {error}")
        case sqlite3.SQLITE_FULL:
            return StoreError(f"expected room on the disk for {place}, found it full; nothing was written")
        case _:
            return StoreError(f"SQLite could not do its work on {place}: {error}")


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Turn whatever SQLite raises inside into an error of this package."""
    try:
        yield
    except sqlite3.Error as error:
        raise as_ledger_error(error, place) from error


def _code(error: sqlite3.Error) -> int:
    """Return the primary result code; errors of the Python module itself have none."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return -1 if code is None else code & _PRIMARY
