"""One byte flipped in every column of every table, in the first and in the last row: each is found."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.audit import audit_ledger
from a2a_ledger_projections import peers, task_contracts, waits
from a2a_ledger_projections.base import compare
from tests.evidence.conftest import reopened

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from a2a_ledger.ledger import ContractLedger
    from tests.evidence.conftest import Case

VIEWS = (task_contracts.VIEW, peers.VIEW, waits.VIEW)

# What a changed column has to be reported as. A change may show in further ways; this one is the cause.
KINDS = {
    ("ledger_events", "rowid"): {"index"},
    ("ledger_events", "originator_id"): {"envelope", "key"},  # another stream has other keys
    ("ledger_events", "originator_version"): {"envelope", "box"},
    ("ledger_events", "topic"): {"envelope"},
    ("ledger_events", "c"): {"record"},
    ("ledger_events", "t"): {"tag"},
    ("ledger_events", "state"): {"container", "record", "blob", "box"},
    ("ledger_tracking", None): {"tracking"},
    ("ledger_tiles", None): {"tile"},
    ("ledger_blobs", None): {"blob"},
    ("ledger_tags", None): {"lookup"},
    ("ledger_checkpoints", None): {"checkpoint", "truncated"},
    ("keys", None): {"key"},
    ("view", None): {"view"},
}


def kinds_of(database: str, table: str, column: str) -> set[str]:
    if database == "keys.db":
        return KINDS["keys", None]
    return KINDS.get((table, column)) or KINDS.get((table, None)) or KINDS["view", None]


def columns(place: Path) -> Iterator[tuple[str, str, str]]:
    """Yield every column of every table that has rows, as the database itself lists them."""
    for database in ("ledger.db", "keys.db"):
        with closing(sqlite3.connect(place / database)) as connection:
            for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"):
                for row in connection.execute(f"PRAGMA table_info({table})").fetchall():
                    yield database, table, row[1]


def flipped(value: object) -> object:
    """Return a value with one bit of one byte changed."""
    if isinstance(value, int):
        return value ^ 0x4000
    if isinstance(value, str):
        middle = len(value) // 2
        return value[:middle] + chr(ord(value[middle]) ^ 1) + value[middle + 1 :]
    assert isinstance(value, bytes)
    middle = len(value) // 2
    return value[:middle] + bytes([value[middle] ^ 1]) + value[middle + 1 :]


def flip(path: Path, table: str, column: str, which: str) -> None:
    """Change one column of the first or the last row, in the order of the primary key."""
    with closing(sqlite3.connect(path)) as connection:
        keys = [row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[5]]
        order = ", ".join(f"{key} {'ASC' if which == 'first' else 'DESC'}" for key in keys)
        select = f"SELECT {column}, {', '.join(keys)} FROM {table} ORDER BY {order} LIMIT 1"  # noqa: S608 - our own names
        value, *place = connection.execute(select).fetchone()
        where = " AND ".join(f"{key} = ?" for key in keys)
        changed = connection.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (flipped(value), *place))  # noqa: S608 - same
        assert changed.rowcount == 1
        connection.commit()


def found(ledger: ContractLedger, *, with_views: bool = True) -> list[tuple[str, str]]:
    checked = VIEWS if with_views else ()
    views = [lambda view=view: [fault.detail for fault in compare(ledger.store, view)] for view in checked]
    return [(fault.kind, fault.detail) for fault in audit_ledger(ledger, views=views).faults]


def test_the_untouched_ledger_is_clean(case: Case) -> None:
    with reopened(case.place) as ledger:
        assert found(ledger) == []


def test_every_table_has_rows_to_change(case: Case) -> None:
    for database in ("ledger.db", "keys.db"):
        with closing(sqlite3.connect(case.place / database)) as connection:
            for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                assert connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] > 0, table  # noqa: S608 - from the schema


@pytest.mark.parametrize("which", ["first", "last"])
def test_a_flipped_byte_in_any_column_is_found(case: Case, tmp_path: Path, which: str) -> None:
    missed: list[str] = []
    for database, table, column in columns(case.place):
        copy = tmp_path / f"{table}.{column}"
        shutil.copytree(case.place, copy)
        flip(copy / database, table, column, which)
        expected = kinds_of(database, table, column)
        with reopened(copy) as ledger:
            faults = found(ledger, with_views=expected == KINDS["view", None])
        if not expected & {kind for kind, _ in faults}:
            missed.append(f"{table}.{column}: {faults}")
        shutil.rmtree(copy)
    assert missed == []
