"""Rows of a read model that somebody changed into other JSON: said to be changed, never half read, and made again."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, cast

import pytest

from a2a_ledger.errors import StoreError
from a2a_ledger.ledger import ContractLedger
from a2a_ledger_projections import peers, task_contracts, waits
from a2a_ledger_projections.base import compare, reading
from tests.cli.conftest import opened

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from a2a_ledger.events import JsonObject
    from a2a_ledger_projections.view import View

VIEWS = (task_contracts.VIEW, peers.VIEW, waits.VIEW)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with opened(tmp_path / "audit") as (ledger, log):
        log.stuck()
        ledger.catch_up()
    return tmp_path / "audit"


def odd_rows(row: JsonObject) -> Iterator[tuple[str, object]]:
    """Yield the row without each of its members, with each of another type, with one more; and what is no row."""
    for name, value in row.items():
        yield f"without {name}", {key: other for key, other in row.items() if key != name}
        yield f"odd {name}", {**row, name: [value]}
        if isinstance(value, (bool, int)):
            yield f"text {name}", {**row, name: str(value)}
    yield "more", {**row, "more": 1}
    yield "list", [row]
    yield "empty", {}


def rows_of(place: Path, view: View) -> dict[str, str]:
    with closing(sqlite3.connect(place / "ledger.db")) as connection:
        return dict(connection.execute(f"SELECT key, row FROM {view.table}").fetchall())  # noqa: S608 - our own table


def set_row(place: Path, view: View, key: str, row: str) -> None:
    with closing(sqlite3.connect(place / "ledger.db")) as connection:
        connection.execute(f"UPDATE {view.table} SET row = ? WHERE key = ?", (row, key))  # noqa: S608 - our own table
        connection.commit()


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_no_changed_row_is_read(place: Path, view: View) -> None:
    for key, text in rows_of(place, view).items():
        row = cast("JsonObject", json.loads(text))
        for what, odd in odd_rows(row):
            set_row(place, view, key, json.dumps(odd))
            with ContractLedger.open(place, read_only=True) as ledger, reading(ledger.store, view) as now:
                for read in (
                    lambda rows=now.rows, key=key: rows.get(key),
                    lambda rows=now.rows: list(rows.prefixed("")),
                ):
                    with pytest.raises(StoreError, match="was changed from outside") as refused:
                        read()
                    assert "--from-start" in refused.value.hint, what
        set_row(place, view, key, text)


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_reading_from_the_start_makes_a_changed_view_again(place: Path, view: View) -> None:
    before = rows_of(place, view)
    for key in before:
        set_row(place, view, key, "{}")
    with ContractLedger.open(place, follow=False) as ledger:
        assert compare(ledger.store, view)
        ledger.catch_up(from_start=True)
        assert compare(ledger.store, view) == []
    assert rows_of(place, view) == before
