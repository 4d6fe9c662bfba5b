"""The tree over real rows: roots and proofs at sizes around the borders of tiles, and at a million leaves."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from a2a_ledger import merkle
from a2a_ledger.errors import InclusionError, StoreError
from a2a_ledger.store.schema import create_tables
from a2a_ledger.store.tiles import TileReader, write_tiles
from tests.store.facts import ORIGIN, message, new_store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.store.facts import Where


def test_roots_and_proofs_agree_with_the_plain_tree(where: Where) -> None:
    store = where.make()
    for _ in range(7):
        store.append([message("ledger") for _ in range(110)])
    size = store.size()
    hashes = [merkle.leaf_hash(line) for line in store.leaves(0, size)]
    assert len(hashes) == size == 770
    borders = [1, 2, 3, 128, 255, 256, 257, 511, 512, 513, 769, 770]
    for held in borders:
        root = merkle.root_of(hashes[:held])
        assert store.root(held) == root
        for n in {0, held // 2, held - 1}:
            merkle.verify_inclusion(n, held, hashes[n], store.inclusion(n, held), root)
        for old in [before for before in borders if before <= held]:
            path = store.consistency(old, held)
            merkle.verify_consistency(old, held, merkle.root_of(hashes[:old]), root, path)
    assert store.root() == merkle.root_of(hashes)
    assert store.root(0) == merkle.empty_root()
    with pytest.raises(StoreError, match="tree size"):
        store.root(771)
    with pytest.raises(InclusionError):
        store.inclusion(5, 5)
    store.close()


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        create_tables(made)
        yield made


def test_tiles_grow_level_by_level(connection: sqlite3.Connection) -> None:
    leaf = b"\x11" * 32
    full = [leaf] * 256
    for tile in range(257):
        write_tiles(connection, tile * 256, full)
    found = connection.execute(
        "SELECT level, idx, length(hashes) FROM ledger_tiles WHERE level ORDER BY 1, 2"
    ).fetchall()
    assert found == [(1, 0, 8192), (1, 1, 32), (2, 0, 32)]
    node = merkle.root_of(full)
    reader = TileReader(connection, ORIGIN, 257 * 256)
    assert reader.node(8, 0) == reader.node(8, 256) == node
    assert reader.node(16, 0) == merkle.root_of([node] * 256)
    assert merkle.root_at(257 * 256, reader.node) == merkle.node_hash(merkle.root_of([node] * 256), node)
    connection.close()


def test_a_damaged_tile_is_said_not_proved_from(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    store.append([message("ledger") for _ in range(520)])
    with store.transaction() as connection:
        connection.execute("DELETE FROM ledger_tiles WHERE level = 1")
    with pytest.raises(StoreError, match="level 1"):
        store.root()
    with store.transaction() as connection:
        connection.execute("INSERT INTO ledger_tiles VALUES (1, 0, ?)", (b"\0" * 32,))
    with pytest.raises(StoreError, match="too short"):
        store.root()
    store.close()


def test_an_inclusion_proof_at_a_million_leaves_reads_few_rows(connection: sqlite3.Connection) -> None:
    """The tree of a million equal tiles is built from four distinct hashes: only the reading is measured."""
    size = 999_999
    full = [bytes([n]) * 32 for n in range(256)]
    node = merkle.root_of(full)
    upper = merkle.root_of([node] * 256)
    tiles = size // 256
    connection.execute("BEGIN")
    joined = b"".join(full)
    connection.executemany("INSERT INTO ledger_tiles VALUES (0, ?, ?)", ((index, joined) for index in range(tiles)))
    for index in range(0, tiles, 256):
        connection.execute("INSERT INTO ledger_tiles VALUES (1, ?, ?)", (index // 256, node * min(256, tiles - index)))
    connection.execute("INSERT INTO ledger_tiles VALUES (2, 0, ?)", (upper * (tiles // 256),))
    connection.executemany(
        "INSERT INTO ledger_events VALUES (?, 's', ?, 'x', ?, ?, x'')",
        ((n + 1, n, bytes(32), bytes(32)) for n in range(tiles * 256, size)),
    )
    connection.execute("COMMIT")
    read: list[str] = []
    root = merkle.root_at(size, TileReader(connection, ORIGIN, size).node)
    connection.set_trace_callback(read.append)
    took: list[float] = []
    for n in range(7, tiles * 256, 99_991):
        read.clear()
        start = time.perf_counter()
        path = merkle.inclusion_path(n, size, TileReader(connection, ORIGIN, size).node)
        took.append(time.perf_counter() - start)
        assert len(read) <= 12
        merkle.verify_inclusion(n, size, full[n % 256], path, root)
    assert sorted(took)[len(took) // 2] < 0.01  # the aim is 0.001 on an idle machine; `bench` measures it
    connection.close()
