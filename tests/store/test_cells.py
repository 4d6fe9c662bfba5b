"""A commitment or tag cell of another type or length: whoever reads it says so, and nobody computes with it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.codec import SECRET
from a2a_ledger.errors import StoreError
from tests.store.facts import message, new_store, new_stream

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from a2a_ledger.store import Store

CELLS: tuple[object, ...] = ("x", "ab" * 32, b"", bytes(SECRET - 1), 7, 1.5)
CHANGED = [(column, cell) for column in ("c", "t") for cell in CELLS if (column, cell) != ("t", b"")]
"""An empty tag is that of a row by the library's own face; where it is none, the audit finds it."""

READERS: dict[str, Callable[[Store, str], object]] = {
    "record": lambda store, _: store.record(1),
    "read": lambda store, _: store.read(0, 3),
    "stream": lambda store, stream: store.read_stream(stream),
    "leaves": lambda store, _: list(store.leaves(0, 3)),
    "root": lambda store, _: store.root(),
    "inclusion": lambda store, _: store.inclusion(0, 3),
    "consistency": lambda store, _: store.consistency(2, 3),
    "append": lambda store, stream: store.append([message(stream)]),
}


@pytest.mark.parametrize(("column", "cell"), CHANGED)
def test_no_reader_takes_a_changed_cell(tmp_path: Path, column: str, cell: object) -> None:
    with closing(new_store(tmp_path)) as store:
        stream = new_stream(store)
        store.append([message(stream) for _ in range(3)])
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection:
        connection.execute(f"UPDATE ledger_events SET {column} = ? WHERE rowid = 2", (cell,))  # noqa: S608 - ours
        connection.commit()
    for name, read in READERS.items():
        with closing(new_store(tmp_path)) as store, pytest.raises(StoreError, match="changed from outside") as refused:
            read(store, stream)
        assert f"column {column} of event 1" in str(refused.value), name
