"""What went wrong in other event stores and audit logs, tried on this one.

Here: events of the same instant that come back in another order; two that read a stream's version and then both write
to it; fields that are joined without their lengths. The others:

- a reader passes a number whose transaction commits later: `tests/store/test_server_tail.py`;
- old events, or those of a later release, cannot be read: `tests/upgrade`;
- a hash is taken over nanoseconds and microseconds are kept: `tests/store/test_canonical.py`, `tests/upgrade`;
- a log whose end, or all of it, was cut off verifies: `tests/log/test_mark.py`, `tests/evidence/test_audit.py`;
- an export runs out of memory, or leaves half a file: `tests/evidence/test_long_task.py`;
- a peer's time of another zone or nine digits is written anew: `tests/importer/test_lines.py`.
"""

from __future__ import annotations

import hashlib
import os
import threading
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.codec import draft, seal
from a2a_ledger.events import TaskBound
from a2a_ledger.store import open_store
from a2a_ledger_projections.base import catch_up, rebuild
from a2a_ledger_projections.view import Rows, View
from tests.store.facts import AT, ORIGIN, PEER, message, new_store, new_stream

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.events import Ref
    from a2a_ledger.store import Store
    from a2a_ledger_projections.facts import Fact


def chain(fact: Fact, rows: Rows) -> None:
    """Hash each message id together with what came before: any other order gives another digest."""
    row = rows.get("all")
    name = str(fact.data["message_id"])
    if row is None:
        rows.add("all", {"digest": hashlib.sha256(name.encode()).hexdigest()})
    else:
        rows.put("all", {"digest": hashlib.sha256(f"{row['digest']}{name}".encode()).hexdigest()})


ANSWERS: Ref = {"c": "ab" * 32, "stream": "task:" + "0" * 40, "ver": 3}
CHAIN = View(name="chain", edition=1, types=frozenset({"message.recorded.v1"}), fold=chain)


def digest(store: Store) -> str:
    with store.views() as db:
        ((row,),) = db.execute(f"SELECT row FROM {CHAIN.table}").fetchall()  # noqa: S608 - our own table
    return str(row)


def test_a_thousand_events_of_one_instant_keep_their_order_through_ten_rebuilds(tmp_path: Path) -> None:
    store = new_store(tmp_path / "audit")
    streams = [new_stream(store) for _ in range(10)]
    names = [f"m-{number}" for number in range(1000)]
    for start in range(0, 1000, 100):
        store.append([message(streams[n % 10], names[n]) for n in range(start, start + 100)])
    assert {record.at for record in store.read(0, 1000)} == {"2026-08-18T12:00:00.000250Z"}
    expected = hashlib.sha256(names[0].encode()).hexdigest()
    for name in names[1:]:
        expected = hashlib.sha256(f"{expected}{name}".encode()).hexdigest()
    catch_up(store, CHAIN)
    found = [digest(store)]
    for _ in range(10):
        rebuild(store, CHAIN)
        found.append(digest(store))
    assert found == [f'{{"digest":"{expected}"}}'] * 11
    store.close()


def test_two_that_append_to_one_task_at_the_same_time_lose_nothing_and_refuse_nobody(tmp_path: Path) -> None:
    """Each has the database open for itself, as two processes have."""
    first = new_store(tmp_path / "audit")
    second = open_store(tmp_path / "audit")
    stream = new_stream(first)
    first.append([message(stream, "m-0")])
    together = threading.Barrier(2)

    def write(store: Store, name: str) -> None:
        together.wait()
        for number in range(100):
            store.append([message(stream, f"{name}-{number}")])

    writing = [threading.Thread(target=write, args=one) for one in ((first, "a"), (second, "b"))]
    for one in writing:
        one.start()
    for one in writing:
        one.join()
    records = list(first.read(0, 1000))
    assert [record.ver for record in records] == list(range(201))
    assert [record.prev for record in records[1:]] == [record.c for record in records[:-1]]
    for name in ("a", "b"):
        found = [record.data["message_id"] for record in records if str(record.data["message_id"]).startswith(name)]
        assert found == [f"{name}-{number}" for number in range(100)]
    first.close()
    second.close()


@pytest.mark.parametrize("other", [("x1", "2"), ("", "x12"), ("x12", ""), ('x","', "12")])
def test_a_character_that_moves_to_the_neighbouring_field_gives_another_commitment(other: tuple[str, str]) -> None:
    salts = os.urandom(32)
    found = {
        seal(
            draft(
                TaskBound(peer=PEER, task_id=task, context_id=context, answers=ANSWERS),
                stream="task:" + "0" * 40,
                at=AT,
                entropy=lambda count: (salts * count)[:count],
                blobs={},
            ),
            log=ORIGIN,
            ver=1,
            prev="cd" * 32,
        )[1]
        for task, context in (("x", "12"), other)
    }
    assert len(found) == 2
