"""Raw rows for an audit: any type in any cell, text that is no text, and damage below the level of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from a2a_ledger.errors import StoreError
from a2a_ledger.store import LEDGER_TABLES, Store, open_store, row_digest
from tests.store.facts import PEER, Where, keep, message, new_stream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def filled(where: Where) -> Store:
    made = where.make()
    stream = new_stream(made)
    made.append([message(stream, blobs={"body": bytes(70000)}) for _ in range(257)])
    keep(made, 256, "note\n")
    with made.transaction() as connection:
        made.advance(connection, "verifier", 3)
    return made


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = filled(Where(tmp_path))
    yield made
    made.close()


@pytest.fixture
def anywhere(where: Where) -> Iterator[Store]:
    made = filled(where)
    yield made
    made.close()


def test_every_table_comes_in_the_order_of_its_key(anywhere: Store) -> None:
    with anywhere.raw() as raw:
        found = {table: list(raw.rows(table)) for table in LEDGER_TABLES}
        assert {table: raw.count(table) for table in LEDGER_TABLES} == {t: len(rows) for t, rows in found.items()}
        assert raw.damage() == []
        (large, parts), *_ = found["ledger_blobs"]
        assert isinstance(large, bytes)
        assert raw.blob(large) == parts
        assert raw.blob(b"none") is None
        assert raw.has_tag(f"context:{PEER}:c-1", 5)
        assert not raw.has_tag(f"context:{PEER}:c-1", 500)
        assert raw.tile(0, 0) == found["ledger_tiles"][0][2]
        assert raw.tile(4, 0) is None
    assert [row[0] for row in found["ledger_events"]] == list(range(1, 258))
    assert [row[:2] for row in found["ledger_tiles"]] == [(0, 0), (1, 0)]
    assert found["ledger_tags"] == [(f"context:{PEER}:c-1", n) for n in range(257)]
    assert found["ledger_checkpoints"] == [(256, "note\n")]
    assert found["ledger_tracking"] == [("verifier", 3, row_digest("ledger_tracking", "verifier", 3))]


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("ledger_events", "topic", "CAST(x'ff41' AS TEXT)"),
        ("ledger_events", "originator_id", "7.5"),
        ("ledger_events", "originator_version", "'three'"),
        ("ledger_events", "c", "'text'"),
        ("ledger_events", "t", "0"),
        ("ledger_events", "state", "CAST(x'80' AS TEXT)"),
        ("ledger_tracking", "application_name", "CAST(x'fe' AS TEXT)"),
        ("ledger_tracking", "notification_id", "'x'"),
        ("ledger_tiles", "hashes", "1"),
        ("ledger_blobs", "parts", "'x'"),
        ("ledger_tags", "tag", "CAST(x'c0' AS TEXT)"),
        ("ledger_checkpoints", "note", "CAST(x'ff' AS TEXT)"),
    ],
)
def test_any_type_may_stand_in_any_cell(store: Store, table: str, column: str, value: str) -> None:
    with store.raw() as raw:
        before = list(raw.rows(table))
    key = LEDGER_TABLES[table].split(", ")[0]
    only = f"(SELECT {key} FROM {table} ORDER BY 1 LIMIT 1)"  # noqa: S608 - the names above
    limit = " AND n = 0" if table == "ledger_tags" else " AND idx = 0" if table == "ledger_tiles" else ""
    with store.transaction() as connection:
        connection.execute(f"UPDATE {table} SET {column} = {value} WHERE {key} = {only}{limit}")  # noqa: S608 - same
    with store.raw() as raw:
        after = list(raw.rows(table))
    assert len(after) == len(before)
    assert len(set(map(repr, before)) - set(map(repr, after))) == 1


def test_usual_reading_is_strict_again_afterwards(store: Store) -> None:
    with store.raw() as raw:
        next(iter(raw.rows("ledger_events")))
    assert store.record(0).n == 0


def test_rows_are_as_of_one_moment(anywhere: Store) -> None:
    with anywhere.raw() as raw:
        assert raw.count("ledger_events") == 257
        anywhere.append([message("ledger")])
        assert (raw.count("ledger_events"), len(list(raw.rows("ledger_tags")))) == (257, 257)
    with anywhere.raw() as raw:
        assert raw.count("ledger_events") == 258


def test_a_damaged_page_is_one_clear_error(store: Store, tmp_path: Path) -> None:
    store.close()
    content = bytearray((tmp_path / "ledger.db").read_bytes())
    for page in range(4, len(content) // 4096, 3):
        content[page * 4096 : page * 4096 + 8] = b"\xff" * 8
    (tmp_path / "ledger.db").write_bytes(content)
    with pytest.raises(StoreError, match="damage"):
        read_all(tmp_path)


def read_all(directory: Path) -> None:
    reopened = open_store(directory, read_only=True)
    try:
        with reopened.raw() as raw:
            assert raw.damage() != []
            for table in LEDGER_TABLES:
                list(raw.rows(table))
    finally:
        reopened.close()
