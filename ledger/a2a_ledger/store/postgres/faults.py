"""PostgreSQL's errors as errors of this package: what is refused, what can be tried again, what nobody knows.

An answer of the server with an SQLSTATE that says "refused" means that nothing was written. A
connection that ends while the answer is awaited, or a server that shuts down, leaves the outcome
open: the transaction may have been committed. So does a success with warning 01000, which the server
gives when the wait for a synchronous standby was cut short.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg

from a2a_ledger.errors import (
    BusyError,
    ConflictError,
    DiskFullError,
    LedgerError,
    ReadOnlyError,
    RollbackError,
    StoreError,
    UnreachableError,
)

if TYPE_CHECKING:
    from collections.abc import Generator

ONLY_HERE = "01000"
"""SQLSTATE of the warning that a commit is on the primary and may be nowhere else."""

_REFUSED = (
    "0A",
    "21",
    "22",
    "23",
    "25",
    "26",
    "28",
    "2B",
    "3D",
    "3F",
    "40",
    "42",
    "53",
    "54",
    "55",
    "57014",
    "A2",
    "P0",
)
"""Beginnings of SQLSTATEs by which the server says that the statement did not take effect."""

_OPEN = (
    "expected an answer from {place}, found none: the connection ended, and what was under way may have been written "
    "or not ({error})"
)
_AGAIN = "see that the server runs and that this machine reaches it; then the same call can be made again"
_MIGRATE = "run `a2a-ledger db migrate` once, as the role that owns the schema; see docs/postgresql.md"

_MEANINGS: tuple[tuple[str, type[LedgerError], str, str], ...] = (
    (
        "A2L01",
        ConflictError,
        (
            "expected the position of {error} to be before the one given, found it there or beyond: another process "
            "follows under the same name"
        ),
        "",
    ),
    (
        "A2L02",
        RollbackError,
        (
            "expected at least the events that this process has seen in {place}, found {error}: the database was "
            "replaced by an older one"
        ),
        "stop every writer, keep the server's files, and run `a2a-ledger audit`",
    ),
    ("A2L03", StoreError, "a tile of the tree in {place} is damaged: {error}", "run `a2a-ledger audit`"),
    (
        "A2L04",
        StoreError,
        "expected the log of this directory's keys in {place}, found the log {error}",
        "one schema holds one ledger: name another schema, or the directory that this log was made with",
    ),
    (
        "55P03",
        BusyError,
        "expected {place} to be free within the time-out, found it locked by another connection",
        "see pg_stat_activity for what holds it, then try again: nothing was written",
    ),
    ("40", BusyError, "{place} could not do two things at once: {error}", "try again: nothing was written"),
    ("23", ConflictError, "somebody else recorded this first in {place}: {error}", ""),
    ("25006", UnreachableError, "expected a server in {place} that takes writes, found a standby", _AGAIN),
    ("28", StoreError, "{place} did not let this user in: {error}", "see pg_hba.conf, .pgpass and the role's password"),
    ("3D", StoreError, "there is no such database: {error}", "make it with createdb"),
    ("3F", StoreError, "{place} has no such schema: {error}", _MIGRATE),
    ("42P01", StoreError, "expected the tables of a ledger in {place}, found none: {error}", _MIGRATE),
    ("42883", StoreError, "expected the functions of a ledger in {place}, found none: {error}", _MIGRATE),
    (
        "42501",
        ReadOnlyError,
        "expected to be allowed to do this in {place}, found that this role is not: {error}",
        "see docs/postgresql.md for what a writer and a reader are granted",
    ),
    ("53100", DiskFullError, "expected room on the disk of {place}, found it full; nothing was written", ""),
    ("53", BusyError, "{place} has no room for this just now: {error}", "try again: nothing was written"),
    ("57014", BusyError, "{place} was told to stop doing this: {error}", "try again: nothing was written"),
)


def as_ledger_error(error: psycopg.Error, place: str) -> LedgerError:
    """Return the error of this package that says what the server, or the way to it, met."""
    state, text = error.sqlstate or "", _said(error)
    for beginning, kind, sentence, hint in _MEANINGS:
        if state.startswith(beginning):
            return kind(sentence.format(place=place, error=text), hint=hint)
    if state.startswith(_REFUSED) or not (state or isinstance(error, psycopg.OperationalError)):
        return StoreError(f"PostgreSQL could not do its work on {place}: {text}")
    return UnreachableError(_OPEN.format(place=place, error=text), hint=_AGAIN)


def not_replicated(place: str) -> UnreachableError:
    """Return the error for a commit of which the server warned that no standby may have it."""
    return UnreachableError(
        f"expected a standby of {place} to have what was committed, found that the wait for it was cut short: it may "
        "be lost with the primary",
        hint=_AGAIN,
    )


@contextmanager
def translated(place: str) -> Generator[None]:
    """Turn whatever the driver raises inside into an error of this package."""
    try:
        yield
    except psycopg.Error as error:
        raise as_ledger_error(error, place) from error


def _said(error: psycopg.Error) -> str:
    """Return what was said in one line; the driver adds where in a statement it was."""
    text = error.diag.message_primary or str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
