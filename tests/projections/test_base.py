"""Views follow the log: exactly once, in one transaction, never by a reader."""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import closing, contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

from a2a_ledger.errors import ConflictError, ReadOnlyError, StoreError
from a2a_ledger.store import open_store
from a2a_ledger_projections import base, task_contracts
from a2a_ledger_projections.base import catch_up, compare, reading, rebuild
from a2a_ledger_projections.view import Rows, Table, View
from tests.projections.logbook import PEER

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Generator, Iterable, Iterator
    from pathlib import Path

    from a2a_ledger.store import Store
    from a2a_ledger.store.database import Result, Session, Values
    from a2a_ledger_projections.facts import Fact

    from .logbook import Logbook


def count_fold(fact: Fact, rows: Rows) -> None:
    """Count the events of each stream: an event folded twice, or not at all, shows."""
    row = rows.get(fact.stream)
    if row is None:
        rows.add(fact.stream, {"count": 1})
        return
    count = row["count"]
    assert isinstance(count, int)
    rows.put(fact.stream, {"count": count + 1})


TYPES = frozenset({"card.fetched.v1", "freshness.decided.v1", "contract.captured.v1", "message.recorded.v1"})
COUNTS = View(name="counts", edition=1, types=TYPES, fold=count_fold)


def stored(store: Store) -> dict[str, int]:
    with store.views() as db:
        return {key: int(row.removeprefix('{"count":').removesuffix("}")) for key, _, row in _rows(db)}


def _rows(db: Session) -> list[tuple[str, int, str]]:
    return db.execute(f"SELECT key, first, row FROM {COUNTS.table}").fetchall()  # noqa: S608 - our own table


def test_catching_up_passes_every_event_once_whatever_the_page(log: Logbook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "PAGE", 3)
    tasks = [log.sent()[0] for _ in range(5)]
    assert catch_up(log.store, COUNTS, limit=7) == 7
    assert log.store.position(COUNTS.follower) == 7
    assert catch_up(log.store, COUNTS) == 13
    assert catch_up(log.store, COUNTS) == 0
    assert {key: count for key, count in stored(log.store).items() if key.startswith("task:")} == {
        f"task:{task}": 3 for task in tasks
    }


def test_events_that_a_view_does_not_read_move_its_position_all_the_same(log: Logbook) -> None:
    task = log.task()
    for _ in range(3):
        log.adopt(task)
    assert catch_up(log.store, COUNTS) == 3
    assert log.store.position(COUNTS.follower) == 3
    assert stored(log.store) == {}


def test_a_fold_that_fails_leaves_rows_and_position_as_they_were(log: Logbook) -> None:
    log.sent()
    catch_up(log.store, COUNTS)
    before = stored(log.store)
    log.sent()

    def broken(fact: Fact, rows: Rows) -> None:
        count_fold(fact, rows)
        if fact.type == "message.recorded.v1":
            raise ValueError("poison")

    with pytest.raises(StoreError, match=r"from 7 on cannot be read.*poison"):
        catch_up(log.store, View(name="counts", edition=1, types=TYPES, fold=broken))
    assert (stored(log.store), log.store.position(COUNTS.follower)) == (before, 4)
    assert catch_up(log.store, COUNTS) == 4


def test_a_page_that_another_process_took_meanwhile_is_read_again(log: Logbook, tmp_path: Path) -> None:
    log.sent()
    with closing(open_store(tmp_path / "ledger")) as other:
        raced = False

        def racing(fact: Fact, rows: Rows) -> None:
            nonlocal raced
            if not raced:
                raced = True
                catch_up(other, COUNTS, limit=2)
            count_fold(fact, rows)

        assert catch_up(log.store, View(name="counts", edition=1, types=TYPES, fold=racing)) == 2
    assert sorted(stored(log.store).values()) == [1, 3]


def test_losing_the_race_for_ever_is_an_error_and_no_endless_loop(
    log: Logbook, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.sent()

    def conflict(*_: object) -> int:
        raise ConflictError("taken")

    monkeypatch.setattr(base, "_store_page", conflict)
    with pytest.raises(ConflictError, match="taken"):
        catch_up(log.store, COUNTS)


def test_two_threads_and_a_writer_count_nothing_twice(log: Logbook, tmp_path: Path) -> None:
    stop = threading.Event()

    def follow() -> None:
        with closing(open_store(tmp_path / "ledger")) as store:
            while not stop.is_set():
                catch_up(store, COUNTS, limit=2)

    threads = [threading.Thread(target=follow) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(25):
        log.sent()
    stop.set()
    for thread in threads:
        thread.join()
    catch_up(log.store, COUNTS)
    assert sum(stored(log.store).values()) == 100
    assert log.store.position(COUNTS.follower) == 100


KILLED = """
import os, sys
from a2a_ledger.store import open_store
from a2a_ledger_projections import base
from tests.projections.test_base import COUNTS
base.PAGE = 2
store = open_store(sys.argv[1])
for page in range(int(sys.argv[2])):
    base.catch_up(store, COUNTS, limit=2)
with store.transaction() as db:  # killed between the rows of a page and its position
    db.execute(f"UPDATE {COUNTS.table} SET row = '{{\\"count\\":99}}'")
    os.kill(os.getpid(), 9)
"""


def test_a_kill_in_mid_page_leaves_the_last_whole_page(log: Logbook, tmp_path: Path) -> None:
    for _ in range(3):
        log.sent()
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "ledger"), "3"], check=False, capture_output=True, text=True
    )
    assert done.returncode == -9, done.stderr
    assert log.store.position(COUNTS.follower) == 6
    assert sum(stored(log.store).values()) == 6
    assert catch_up(log.store, COUNTS) == 6
    assert sum(stored(log.store).values()) == 12


def test_a_rebuild_gives_the_same_bytes_and_repairs_a_changed_row(log: Logbook) -> None:
    for _ in range(4):
        log.sent()
    catch_up(log.store, COUNTS)
    with log.store.views() as db:
        before = _rows(db)
    with log.store.transaction() as db:
        db.execute(f"UPDATE {COUNTS.table} SET row = '{{\"count\":99}}' WHERE key LIKE 'task:%'")  # noqa: S608 - our own table
    faults = compare(log.store, COUNTS)
    assert len(faults) == 4
    assert all("count: stored 99, the log gives" in fault.detail for fault in faults)
    assert rebuild(log.store, COUNTS) == 16
    with log.store.views() as db:
        assert _rows(db) == before
    assert compare(log.store, COUNTS) == []
    log.sent()
    assert catch_up(log.store, COUNTS) == 4


def test_a_new_edition_starts_over_in_its_own_table(log: Logbook) -> None:
    log.sent()
    catch_up(log.store, COUNTS)
    newer = View(name="counts", edition=2, types=TYPES, fold=count_fold)
    assert catch_up(log.store, newer) == 4
    assert newer.table != COUNTS.table


def test_a_reader_sees_the_newest_without_writing_anything(log: Logbook, tmp_path: Path) -> None:
    log.sent()
    catch_up(log.store, COUNTS)
    task, _, _ = log.sent()
    with closing(open_store(tmp_path / "ledger", read_only=True)) as reader:
        with reading(reader, COUNTS) as now:
            assert (now.position, now.lag) == (8, 4)
            assert now.rows.get(f"task:{task}") == {"count": 3}
            assert now.rows.get("task:nobody") is None
        with pytest.raises(ReadOnlyError):
            catch_up(reader, COUNTS)
    assert log.store.position(COUNTS.follower) == 4
    catch_up(log.store, COUNTS)
    with reading(log.store, COUNTS) as now:
        assert (now.position, now.lag) == (8, 0)


def test_rows_come_in_the_order_in_which_they_began(log: Logbook) -> None:
    tasks = [log.sent()[0] for _ in range(3)]
    log.request(tasks[0])
    with reading(log.store, task_contracts.VIEW) as now:
        assert [row["task"] for row in task_contracts.tasks(now.rows)] == tasks
        assert [row["task"] for row in task_contracts.tasks(now.rows, newest_first=True)] == tasks[::-1]
        assert [row["task"] for row in now.rows.prefixed(tasks[1][:12])] == [tasks[1]]


def test_the_newest_tasks_cost_what_they_are(log: Logbook) -> None:
    begun = [log.sent()[0] for _ in range(120)]
    catch_up(log.store, task_contracts.VIEW)
    log.sent()
    catch_up(log.store, task_contracts.VIEW)
    with log.store.views() as db:
        counted = CountedRows(db)
        rows = Table(counted, task_contracts.VIEW)
        for peer in (None, PEER):
            counted.rows = 0
            newest = list(islice(task_contracts.tasks(rows, peer=peer, newest_first=True), 4))
            assert [row["task"] for row in newest[1:]] == begun[:-4:-1]
            assert counted.rows == 50 + 4  # a page of the list, and the rows that were taken
        assert len(list(task_contracts.tasks(rows, peer=PEER))) == 121
        assert list(task_contracts.tasks(rows, peer=PEER[:-1])) == []
        counted.rows = 0
        assert list(task_contracts.tasks(rows, findings=True)) == []
        assert counted.rows == 0


class CountedRows:
    """A session that counts the rows that it gave."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.rows = 0

    def execute(self, statement: str, values: Values = (), /) -> CountedResult:
        return CountedResult(self, self._session.execute(statement, values))

    def executemany(self, statement: str, rows: Iterable[Values], /) -> object:
        return self._session.executemany(statement, rows)


class CountedResult:
    def __init__(self, session: CountedRows, result: Result) -> None:
        self._session, self._result = session, result

    def fetchone(self) -> Any:  # noqa: ANN401 - cells have the types that the statement asks for
        row = self._result.fetchone()
        self._session.rows += row is not None
        return row

    def fetchall(self) -> list[Any]:
        rows = self._result.fetchall()
        self._session.rows += len(rows)
        return rows

    def close(self) -> None:
        self._result.close()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.fetchall())


def test_a_reader_behind_many_rows_holds_those_alone_that_changed_since(
    log: Logbook, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = [log.sent()[0] for _ in range(20)]
    catch_up(log.store, task_contracts.VIEW)
    log.request(tasks[3])
    tasks.append(log.sent()[0])
    log.request(tasks[7])
    held: list[sqlite3.Connection] = []
    plain = base._memory  # pyright: ignore[reportPrivateUsage]  # what one reader holds

    @contextmanager
    def noted(view: View) -> Generator[sqlite3.Connection]:
        with plain(view) as memory:
            held.append(memory)
            yield memory

    monkeypatch.setattr(base, "_memory", noted)
    with reading(log.store, task_contracts.VIEW) as now:
        told = [list(task_contracts.tasks(now.rows, newest_first=newest)) for newest in (False, True)]
        (above,) = held
        keys = {key for (key,) in above.execute(f"SELECT key FROM {task_contracts.VIEW.table}")}  # noqa: S608 - our own table
        assert keys == {
            tasks[3],
            tasks[7],
            tasks[20],
            *(key for key in keys if key.endswith(f"{told[0][20]['began']:016x}")),
        }
        assert len(keys) == 5  # of the lists, those of all tasks and of its peer have the new one
        one = now.rows.get(tasks[7])
        assert now.lag == 6
    assert [row["task"] for row in told[0]] == tasks
    assert told[1] == told[0][::-1]
    rebuild(log.store, task_contracts.VIEW)
    with reading(log.store, task_contracts.VIEW) as now:
        assert (now.lag, list(task_contracts.tasks(now.rows))) == (0, told[0])
        assert now.rows.get(tasks[7]) == one


def test_an_empty_log_has_an_empty_view(log: Logbook) -> None:
    with reading(log.store, COUNTS) as now:
        assert (list(now.rows.prefixed("")), now.position, now.lag) == ([], 0, 0)
    assert compare(log.store, COUNTS) == []


def test_a_position_changed_from_outside_is_not_believed(log: Logbook) -> None:
    log.sent()
    catch_up(log.store, COUNTS)
    with log.store.transaction() as db:
        db.execute("UPDATE ledger_tracking SET notification_id = 2")
    with pytest.raises(StoreError, match="position of counts/1 was changed from outside"):
        catch_up(log.store, COUNTS)


def test_a_view_in_memory_works_as_one_on_disk() -> None:
    from .logbook import Logbook as Book  # noqa: PLC0415 - only here is one needed that is no fixture

    book = Book(None)
    book.sent()
    assert catch_up(book.store, COUNTS) == 4
    task, _, _ = book.sent()
    with reading(book.store, COUNTS) as now:
        assert now.rows.get(f"task:{task}") == {"count": 3}
    assert compare(book.store, COUNTS) == []
    book.store.close()
