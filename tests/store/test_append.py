"""Appending: dense indices and versions, retries, tracking, what other writers wrote, and what reads give back."""

# pyright: reportPrivateUsage=false
# Faults are put in behind the public face on purpose.

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, cast

import pytest
from eventsourcing.persistence import Tracking

from a2a_ledger.codec import Content, Withheld, draft, leaf, stream_tag, tags_of
from a2a_ledger.errors import ConflictError, MissingKeysError, RollbackError, StoreError, UsageError
from tests.store.facts import AT, BODY, ORIGIN, PEER, event, keep, message, new_store, new_stream

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.store import Appended, Store
    from a2a_ledger.store.connections import Connections
    from tests.store.facts import Where


def test_gives_indices_versions_and_predecessors(store: Store) -> None:
    one, two = new_stream(store), new_stream(store)
    placed = store.append([message(one), message(two), message(one)]) + store.append([message(one)])
    assert [(at.n, at.stream, at.ver) for at in placed] == [(0, one, 0), (1, two, 0), (2, one, 1), (3, one, 2)]
    records = store.read(0, 10)
    assert [record.prev for record in records] == [None, None, placed[0].c, placed[2].c]
    assert [record.ref for record in records] == [at.ref for at in placed]
    assert [record.log for record in records] == [ORIGIN] * 4
    assert [record.t for record in records] == [
        stream_tag(store.keys.stream_key(at.stream), at.ver).hex() for at in placed
    ]
    assert list(store.leaves(0, 4)) == [
        leaf(ORIGIN, at.n, bytes.fromhex(at.c), bytes.fromhex(record.t))
        for at, record in zip(placed, records, strict=True)
    ]


def test_every_stream_but_a_task_states_its_commitment(store: Store) -> None:
    task = new_stream(store)
    names = ["ledger", f"peer:{PEER}", f"findings:{task.removeprefix('task:')}", f"findings:peer:{PEER}"]
    store.append([message(name) for name in [task, *names, *names]])
    assert "stream_commitment" not in store.record(0).data
    for n, name in enumerate(names, 1):
        commitment = store.record(n).data["stream_commitment"]
        assert isinstance(commitment, str)
        assert len(commitment) == 64
        assert commitment == store.keys.commitment(name)
        assert "stream_commitment" not in store.record(n + len(names)).data


def test_the_same_draft_again_is_a_retry(store: Store) -> None:
    stream = new_stream(store)
    fact = message(stream)
    first = store.append([fact])
    store.append([message(stream), message(stream)])
    assert store.append([fact]) == first
    assert store.append([message(stream), fact])[1] == first[0]
    assert store.size() == 4


def test_another_fact_with_the_same_salt_is_no_retry(store: Store) -> None:
    stream = new_stream(store)
    one, other = (
        draft(event(name), stream=stream, at=AT, entropy=bytes) for name in ("m-1", "m-2")
    )  # a broken source of randomness loses no fact
    assert [at.n for at in store.append([one])] == [0]
    assert [at.n for at in store.append([other])] == [1]
    assert [record.data["message_id"] for record in store.read(0, 9)] == ["m-1", "m-2"]


def test_a_retry_after_an_unknown_outcome_finds_what_was_committed(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    stream = new_stream(store)
    fact, other = message(stream), message(stream)
    store.append([message(stream)])
    with pytest.raises(StoreError), _FailingCommit(store, after=True):
        store.append([fact])
    with pytest.raises(StoreError), _FailingCommit(store, after=False):
        store.append([other])
    assert store.size() == 2
    assert store.append([fact])[0].n == 1
    assert store.append([other])[0].n == 2
    assert [record.ver for record in store.read_stream(stream)] == [0, 1, 2]
    store.close()


class _FailingCommit:
    """Makes the writing connection report a disk error at COMMIT, before or after it happened."""

    def __init__(self, store: Store, *, after: bool) -> None:
        self._connections = cast("Connections", store._database)
        self._after = after

    def __enter__(self) -> None:
        self._real = self._connections._writer
        assert self._real is not None
        self._connections._writer = cast("sqlite3.Connection", _Faulty(self._real, after=self._after))

    def __exit__(self, *_: object) -> None:
        self._connections._writer = self._real


class _Faulty:
    def __init__(self, real: sqlite3.Connection, *, after: bool) -> None:
        self._real = real
        self._after = after

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)

    def execute(self, statement: str, values: tuple[int | str, ...] = ()) -> object:
        if statement == "COMMIT":
            if self._after:
                self._real.execute("COMMIT")
            raise sqlite3.OperationalError("disk I/O error")
        return self._real.execute(statement, values)


def test_two_writers_see_what_the_other_wrote(where: Where) -> None:
    one, two = where.make(), where.make()
    stream = new_stream(one)
    placed: list[Appended] = []
    for _ in range(3):
        placed += one.append([message(stream)])
        placed += two.append([message(stream), message("ledger")])
    placed += one.append([message("ledger") for _ in range(600)])
    placed += two.append([message(stream)])
    assert [at.n for at in placed] == list(range(610))
    assert [record.ver for record in one.read_stream(stream)] == list(range(7))
    assert [record.ver for record in two.read_stream("ledger")] == list(range(603))
    assert one.root() == two.root()
    one.close()
    two.close()


def test_a_tracking_position_moves_forward_only(store: Store) -> None:
    stream = new_stream(store)
    assert store.position("verifier") == 0
    store.append([message(stream) for _ in range(4)], Tracking("verifier", 3))
    for position in (3, 2):
        with pytest.raises(ConflictError, match="verifier"):
            store.append([message(stream)], Tracking("verifier", position))
    store.append([], Tracking("verifier", 4))
    assert (store.position("verifier"), store.position("other"), store.size()) == (4, 0, 4)


def test_views_and_position_share_a_transaction(store: Store) -> None:
    store.append([message("ledger")])

    def broken() -> None:
        with store.transaction() as connection:
            connection.execute("CREATE TABLE a_view (x INTEGER)")
            store.advance(connection, "view", 1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        broken()
    assert store.position("view") == 0
    with store.transaction() as connection:
        connection.execute("CREATE TABLE a_view (x INTEGER)")
        store.advance(connection, "view", 1)
    with store.views() as connection:
        assert connection.execute("SELECT count(*) FROM a_view").fetchone() == (0,)
    assert store.position("view") == 1


def test_appending_inside_of_a_view_transaction_is_refused(store: Store) -> None:
    stream = new_stream(store)
    with store.transaction(), pytest.raises(UsageError, match="write transaction"):
        store.append([message(stream)])
    assert store.append([message(stream)])[0].n == 0


def test_an_empty_append_is_nothing(store: Store) -> None:
    assert store.append([]) == []
    assert store.size() == 0


def test_a_task_without_a_key_is_refused(store: Store) -> None:
    with pytest.raises(MissingKeysError):
        store.append([message("task:" + "0" * 40)])
    assert store.size() == 0


def test_large_blobs_lie_apart_and_are_read_when_asked_for(store: Store) -> None:
    stream = new_stream(store)
    large = bytes(range(256)) * 300
    parts = Content((large, Withheld(b"secret"), large))
    store.append([message(stream, blobs={"body": large, "url": parts, "error": large[:65536]})])
    record = store.record(0)
    assert record.content("body") == large
    assert record.content("url") == large + b"******" + large
    assert record.content("error") == large[:65536]
    with store.raw() as raw:
        assert raw.count("ledger_blobs") == 2
    assert len(list(record.parts)) == 1


def test_reads_by_index_and_stream(store: Store) -> None:
    one, two = new_stream(store), new_stream(store)
    store.append([message(one if n % 2 else two, f"m-{n}") for n in range(10)])
    assert [record.n for record in store.read(3, 4)] == [3, 4, 5, 6]
    assert [record.n for record in store.read(3, 100, stop=5)] == [3, 4]
    assert [record.n for record in store.read(10, 5)] == []
    assert [record.ver for record in store.read_stream(one)] == [0, 1, 2, 3, 4]
    assert [record.ver for record in store.read_stream(one, gt=1, limit=2)] == [2, 3]
    assert [record.ver for record in store.read_stream(one, desc=True, limit=2)] == [4, 3]
    assert [record.ver for record in store.read_stream(one, gt=0, lt=3, desc=True)] == [2, 1]
    assert [store.version_before(one, n) for n in (0, 1, 2, 3, 4, 100)] == [-1, -1, 0, 0, 1, 4]
    assert store.version_before("task:" + "f" * 40, 100) == -1
    assert store.read_stream("task:" + "f" * 40) == []
    assert store.streams("task:") == sorted([one, two])
    assert store.streams("task:", after=min(one, two)) == [max(one, two)]
    assert store.record(9).content("body") == BODY
    with pytest.raises(StoreError, match=r"expected event 10, .*found none"):
        store.record(10)


def test_tags_find_records_in_log_order(store: Store) -> None:
    stream = new_stream(store)
    store.append([message(stream, f"m-{n}") for n in range(5)])
    tag = f"context:{PEER}:c-1"
    assert [record.n for record in store.tagged(tag)] == [0, 1, 2, 3, 4]
    assert [record.n for record in store.tagged(tag, desc=True, limit=2)] == [4, 3]
    assert store.tagged("context:nobody:c-1") == []
    assert store.tagged_prefix("context:", 2) == [(tag, 0), (tag, 1)]
    assert store.tagged_peers("context") == [tag.split(":")[1]]
    assert store.tagged_peers("contex") == store.tagged_peers("trace:") == []
    record = store.record(3)
    assert tags_of(record.stream, record.type, record.data) == (tag,)


def test_a_checkpoint_is_kept_by_its_size(store: Store) -> None:
    assert store.latest_checkpoint() is None
    keep(store, 5, "five\n")
    keep(store, 2, "two\n")
    keep(store, 5, "five, cosigned\n")
    assert store.checkpoints() == [(2, "two\n"), (5, "five, cosigned\n")]
    assert store.latest_checkpoint() == (5, "five, cosigned\n")


def test_an_older_database_in_its_place_is_not_written_to(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    stream = new_stream(store)
    store.append([message(stream), message(stream)])
    with store.transaction() as connection:  # what a restored backup looks like to a running process
        connection.execute("DELETE FROM ledger_events WHERE rowid = 2")
    with pytest.raises(RollbackError, match="found 1"):
        store.append([message(stream)])
    store.close()


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("topic", "task.bound.v1"),
        ("originator_version", 7),
        ("originator_id", "ledger"),
        ("c", b"\0" * 32),
        ("state", b"\x94"),
    ],
)
def test_a_changed_row_is_not_read_as_a_record(tmp_path: Path, column: str, value: object) -> None:
    store = new_store(tmp_path)
    store.append([message(new_stream(store))])
    with store.transaction() as connection:
        connection.execute(f"UPDATE ledger_events SET {column} = ?", (value,))  # noqa: S608 - one of the columns above
    with pytest.raises((StoreError, MissingKeysError), match="event 0"):
        store.record(0)
    store.close()
