"""SQLite's errors as errors of this package: one sentence each, with what to do."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING

from a2a_ledger.errors import BusyError, ConflictError, DiskFullError, LedgerError, ReadOnlyError, StoreError

if TYPE_CHECKING:
    from collections.abc import Generator

_PRIMARY = 0xFF  # the low octet of an extended result code


_BUSY = (
    BusyError,
    "expected {place} to be free within the time-out, found it locked by another connection",
    "see which process holds it (fuser, lsof), then try again: nothing was written",
)
_DENIED = (ReadOnlyError, "expected to be allowed to write to {place}, found it read-only: {error}", "")
_DAMAGED = (
    StoreError,
    "expected an SQLite database in {place}, found damage or another kind of file: {error}",
    "keep the file as it is; restore a backup beside it and run `a2a-ledger audit`",
)
_MEANINGS: dict[int, tuple[type[LedgerError], str, str]] = {
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
    sqlite3.SQLITE_READONLY: _DENIED,
    sqlite3.SQLITE_PERM: _DENIED,
    sqlite3.SQLITE_CANTOPEN: (StoreError, "expected to be able to open {place}, found that it cannot be opened", ""),
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_CONSTRAINT: (ConflictError, "somebody else recorded this first in {place}: {error}", ""),
    sqlite3.SQLITE_FULL: (
        DiskFullError,
        "expected room on the disk for {place}, found it full; nothing was written",
        "",
    ),
}


def is_busy(error: sqlite3.Error) -> bool:
    """Tell whether another connection holds the lock, so that the same call may succeed later."""
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def as_ledger_error(error: sqlite3.Error, place: str) -> LedgerError:
    """Return the error of this package that says what SQLite met at `place`."""
    kind, text, hint = _MEANINGS.get(_code(error), (StoreError, "SQLite could not do its work on {place}: {error}", ""))
    return kind(text.format(place=place, error=error), hint=hint)


@contextmanager
def translated(place: str) -> Generator[None]:
    """Turn whatever SQLite raises inside into an error of this package."""
    try:
        yield
    except sqlite3.Error as error:
        raise as_ledger_error(error, place) from error


def _code(error: sqlite3.Error) -> int:
    """Return the primary result code; errors of the Python module itself have none."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return -1 if code is None else code & _PRIMARY
