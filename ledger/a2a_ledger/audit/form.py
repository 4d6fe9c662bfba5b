"""The audit's look at the form of both databases: every table, index, view and trigger held against those we make.

A trigger can drop a row as it is written, an index can lie, a view can stand in a table's place. So
whatever this package does not make is a fault, and so is what it makes and cannot be found.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.audit.fault import Fault
from a2a_ledger.followers import FOLLOWERS
from a2a_ledger.store import keystore, schema
from a2a_ledger.store.raw import SQLiteTables

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_ledger.store import RawTables

_VIEW = re.compile(r"ledger_view_([a-z_]+)_[1-9][0-9]*")  # the table of a read model, of any edition


class Form(NamedTuple):
    """What one database has to look like."""

    kind: str  # of the faults
    file: str
    header: tuple[int, int]  # application_id and user_version
    statements: Iterable[str]
    with_views: bool


LEDGER = Form(
    "database", "ledger.db", (schema.APPLICATION_ID, schema.FORMAT_VERSION), schema.ALL_TABLES, with_views=True
)
KEYS = Form("key", "keys.db", (keystore.APPLICATION_ID, keystore.FORMAT_VERSION), keystore.TABLES, with_views=False)
OLD_KEYS = Form("key", "keys.db", (keystore.APPLICATION_ID, 0), keystore.OLD_TABLES, with_views=False)
"""Of a key store that no release with sealed rows has written to yet."""


def check_ledger(raw: RawTables) -> list[Fault]:
    """Return a fault for each thing among a ledger's tables that is missing, changed or not ours."""
    if isinstance(raw, SQLiteTables):
        return check_form(raw, LEDGER)
    return [Fault(LEDGER.kind, None, text) for text in raw.strangers(_is_of_view)]


def check_form(raw: SQLiteTables, form: Form) -> list[Fault]:
    """Return a fault for each thing in a database that is missing, changed or not ours."""
    faults: list[Fault] = []

    def fault(detail: str) -> None:
        faults.append(Fault(form.kind, None, f"{form.file}: {detail}"))

    if raw.header() != form.header:
        fault(f"application id and version in the file header are {raw.header()}, expected {form.header}")
    missing = _made(form.statements)
    for kind, name, sql in raw.objects():
        expected = missing.pop((kind, name), None) if isinstance(kind, str) and isinstance(name, str) else None
        if form.with_views and kind == "table" and isinstance(name, str) and _is_of_view(name):
            expected = f"CREATE TABLE {name} {schema.VIEW_COLUMNS}"
            if f'"{name}"' in str(sql):  # a table that was renamed into place
                expected = expected.replace(name, f'"{name}"')
        if expected is None:
            fault(f"{kind} {name!a} was put there from outside: it may change what is written or read")
        elif sql != expected:
            fault(f"{kind} {name} was changed from outside")
    for kind, name in missing:
        fault(f"{kind} {name} is missing")
    return faults


def _is_of_view(table: str) -> bool:
    """Say whether a table is named after a read model that is installed: its entry point has the view's name."""
    named = _VIEW.fullmatch(table)
    return named is not None and named[1] in {entry.name for entry in entry_points(group=FOLLOWERS)}


def _made(statements: Iterable[str]) -> dict[tuple[str, str], str]:
    """Return what SQLite notes of our own statements: (type, name) to text, "" where there is none."""
    with closing(sqlite3.connect(":memory:")) as fresh:
        for statement in statements:
            fresh.execute(statement)
        rows: list[tuple[str, str, str]] = fresh.execute(
            "SELECT type, name, coalesce(sql, '') FROM sqlite_master"
        ).fetchall()
    return {(kind, name): sql for kind, name, sql in rows}
