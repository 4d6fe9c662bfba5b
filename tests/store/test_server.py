"""What a server adds: outcomes that nobody knows, rights, and wire values that its cells and indexes cannot hold."""

# pyright: reportPrivateUsage=false
# Faults are put in behind the public face on purpose.

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import psycopg
import pytest
from eventsourcing.persistence import Tracking

from a2a_ledger.codec import draft
from a2a_ledger.errors import (
    BusyError,
    ConflictError,
    MissingKeysError,
    ReadOnlyError,
    RollbackError,
    StoreError,
    UnreachableError,
    UsageError,
)
from a2a_ledger.events import MessageRecorded
from a2a_ledger.store import Server, open_store
from a2a_ledger.store.postgres.form import VIEW_COLUMNS
from a2a_ledger.store.postgres.grants import grants
from a2a_ledger.store.postgres.schema import migrate
from a2a_ledger.store.postgres.sessions import Sessions
from a2a_ledger.store.postgres.tags import tag_cell
from tests.store.checks import check_log
from tests.store.conftest import on
from tests.store.facts import AT, ORIGIN, PEER, Where, event, keep, message, new_stream

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from a2a_ledger.codec import Draft
    from a2a_ledger.store import Store
    from a2a_ledger.store.database import Session
    from a2a_ledger.store.placing import Appended, StreamKeys
    from a2a_ledger.store.postgres.recorder import LedgerRecorder
    from a2a_ledger.store.postgres.sessions import Line
    from tests.postgres_server import PostgresServer


@pytest.fixture
def store(served: Where) -> Iterator[Store]:
    made = served.make()
    yield made
    made.close()


@contextmanager
def owner_of(where: Where) -> Generator[psycopg.Connection[Any]]:
    """Come in as the superuser, with the ledger's tables in sight."""
    assert where.server is not None
    with psycopg.connect(
        where.server.url, options=f"-c search_path={where.server.schema}", autocommit=True
    ) as connection:
        yield connection


@contextmanager
def calls(store: Store, *faults: Callable[[Line, Callable[[], int]], int]) -> Generator[list[int]]:
    """Have each of the first calls of the function go wrong in a way of its own; give how many there were."""
    writer = cast("LedgerRecorder", store.recorder)._writer
    real = cast("Callable[..., int]", writer._call)
    seen: list[int] = []

    def faulty(line: Line, *rest: object) -> int:
        seen.append(len(seen))
        if len(seen) > len(faults):
            return real(line, *rest)
        return faults[len(seen) - 1](line, lambda: real(line, *rest))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "_call", faulty)
        yield seen


def lost_after(line: Line, real: Callable[[], int]) -> int:
    real()
    line.connection.close()
    raise psycopg.OperationalError("server closed the connection unexpectedly")


def lost_before(line: Line, _: Callable[[], int]) -> int:
    line.connection.close()
    raise psycopg.OperationalError("server closed the connection unexpectedly")


def warned(line: Line, real: Callable[[], int]) -> int:
    start = real()
    line.connection.execute("DO $$ BEGIN RAISE WARNING 'cut short' USING ERRCODE = '01000'; END $$")
    return start


@pytest.mark.parametrize("fault", [lost_after, lost_before, warned])
def test_an_outcome_that_nobody_knows_is_asked_for_again(
    store: Store, served: Where, fault: Callable[[Line, Callable[[], int]], int]
) -> None:
    stream = new_stream(store)
    store.append([message(stream)])
    with calls(store, fault) as seen:
        placed = store.append([message(stream), message(stream)])
    assert [(at.n, at.ver) for at in placed] == [(1, 1), (2, 2)]
    assert len(seen) == 2
    assert store.append([message(stream)])[0].ver == 3
    assert [at.c for at in placed] == check_log(served)[1:3]


def test_an_attempt_that_is_committed_while_it_is_asked_for_again_is_there_once(
    store: Store, served: Where, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its client is gone, and the server still works on it: it ends after the look for it, before the next attempt."""
    stream = new_stream(store)
    placer = cast("LedgerRecorder", store.recorder)._writer._placer
    looked, late = placer._committed, list[Callable[[], int]]()

    def cut_off(_: Line, real: Callable[[], int]) -> int:
        late.append(real)
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    def looks(session: Session, draft: Draft, keys: StreamKeys) -> Appended | None:
        found = looked(session, draft, keys)
        while late:
            late.pop()()
        return found

    monkeypatch.setattr(placer, "_committed", looks)
    with calls(store, cut_off) as seen:
        placed = store.append([message(stream), message(stream)])
    assert [(at.n, at.ver) for at in placed] == [(0, 0), (1, 1)]
    assert len(seen) == 3
    assert len(check_log(served)) == 2


def test_a_server_that_stays_away_is_one_clear_error(served: Where) -> None:
    store = served.make()
    cast("Sessions", store._database).timeout = 0.3
    stream = new_stream(store)
    with pytest.raises(UnreachableError, match="may have been written or not"), calls(store, *[lost_before] * 50):
        store.append([message(stream)])
    assert store.append([message(stream)])[0].n == 0
    store.close()
    with pytest.raises(UnreachableError, match="found none"):
        open_store(served.directory, server=Server("postgresql://nobody@127.0.0.1:1/none"))


def test_a_wait_for_a_standby_that_is_cut_short_is_no_success(store: Store, served: Where) -> None:
    """The server answers a cancelled wait with success and a warning; asked again, it has to wait again."""
    stream = new_stream(store)
    placed: list[int] = []
    writer = threading.Thread(target=lambda: placed.append(store.append([message(stream)])[0].n))
    waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND pid <> pg_backend_pid()"
    with owner_of(served) as owner:
        owner.execute("SET synchronous_commit = local")
        owner.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        owner.execute("SELECT pg_reload_conf()")
        try:
            while owner.execute("SHOW synchronous_standby_names").fetchone() != ("nobody",):
                time.sleep(0.01)
            writer.start()
            for _ in range(3):
                pid = until(lambda: owner.execute(waiting).fetchone())
                assert placed == []
                owner.execute("SELECT pg_cancel_backend(%s)", pid)
            until(lambda: owner.execute(waiting).fetchone())
        finally:
            owner.execute("ALTER SYSTEM RESET synchronous_standby_names")
            owner.execute("SELECT pg_reload_conf()")
            writer.join(timeout=30)
    assert (placed, store.size()) == ([0], 1)


def until(look: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever is looked for
    deadline = time.monotonic() + 30
    while (found := look()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return found


def test_a_writer_who_loses_race_after_race_is_served(store: Store, served: Where) -> None:
    """Another process appends to the same stream each time between the placing and the call."""
    other, stream = served.make(), new_stream(store)

    def outrun(_: Line, real: Callable[[], int]) -> int:
        other.append([message(stream)])
        return real()

    with calls(store, outrun, outrun) as seen:
        placed = store.append([message(stream)])
    assert [(at.n, at.ver) for at in placed] == [(2, 2)]
    assert len(seen) == 3
    assert len(check_log(served)) == 3
    other.close()


def test_a_lost_race_fails_no_neighbour_and_a_position_only_its_own_call(store: Store) -> None:
    stream = new_stream(store)
    store.append([message(stream)], Tracking("verifier", 1))
    with pytest.raises(ConflictError, match="position of verifier"):
        store.append([message(stream)], Tracking("verifier", 1))
    assert store.append([message(stream)], Tracking("verifier", 2))[0].n == 1


def test_wire_values_that_no_cell_holds_are_recorded_and_found(store: Store) -> None:
    stream = new_stream(store)
    ids = ["a\0b", "\0", "x" * 5000, "x" * 4999 + "y", "\U0001f600" * 400, "plain"]
    for name in ids:
        fact = MessageRecorded(
            peer=PEER, direction="in", leg="response", binding="JSONRPC", url="https://p.example/", context_id=name
        )
        store.append([draft(fact, stream=stream, at=AT, entropy=os.urandom)])
    tags = [f"context:{PEER}:{name}" for name in ids]
    assert [[record.n for record in store.tagged(tag)] for tag in tags] == [[n] for n in range(len(ids))]
    assert [store.tagged_places(tag) for tag in tags] == [[(n, stream)] for n in range(len(ids))]
    found = store.tags_under(f"context:{PEER}:", 100)
    assert sorted(n for tag in found for n, _ in store.tagged_places(tag)) == list(range(len(ids)))
    with store.raw() as raw:
        assert all(raw.has_tag(tag, n) for n, tag in enumerate(tags))


def test_a_tag_that_fits_stands_as_it_is() -> None:
    assert tag_cell("x" * 1000) == "x" * 1000
    # printf 'a\0b' | sha256sum
    assert tag_cell("a\0b") == "a\x0159b271ae1bbcb1d31d41929817f4b16fb439eb4f31520b5ad1d5ce98920a7138"
    assert tag_cell(tag_cell("x" * 1001)) == tag_cell("x" * 1001)
    assert len(tag_cell("x" * 1001)) == 265


def test_rows_of_events_are_never_changed_or_removed(store: Store, served: Where) -> None:
    store.append([message(new_stream(store), blobs={"body": bytes(70000)})])
    with owner_of(served) as owner:
        for statement in (
            "UPDATE ledger_events SET topic = 'x'",
            "DELETE FROM ledger_events",
            "TRUNCATE ledger_events",
            "DELETE FROM ledger_tags",
            "UPDATE ledger_blobs SET parts = ''",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="never changed or removed"):
                owner.execute(statement.encode())
    assert store.size() == 1


def test_a_writer_appends_and_can_do_no_more(postgres: PostgresServer, tmp_path: Path) -> None:
    where = on(postgres, tmp_path)
    assert where.server is not None
    schema = where.server.schema
    where.make().close()
    with owner_of(where) as owner:
        owner.execute(f"CREATE ROLE w_{schema} LOGIN; CREATE ROLE r_{schema} LOGIN".encode())
        owner.execute(grants(schema, writers=(f"w_{schema}",), readers=(f"r_{schema}",), views=()).encode())
    writing, looking = (Server(postgres.url_of(f"{role}_{schema}"), schema) for role in "wr")
    store = open_store(tmp_path, server=writing)
    stream = new_stream(store)
    store.append([message(stream) for _ in range(300)], Tracking("verifier", 5))
    keep(store, 300, "note\n")
    assert store.root(300)
    for statement in (
        "INSERT INTO ledger_events VALUES (301, 'x', 0, 'x', '', '', '')",
        "UPDATE ledger_events SET topic = 'x'",
        "DELETE FROM ledger_events",
        "DELETE FROM ledger_tiles",
        "INSERT INTO ledger_tags VALUES ('x', 1)",
        "DELETE FROM ledger_checkpoints",
        "CREATE TABLE more (x integer)",
        "SELECT ledger_fill_tile('x', 7)",
    ):
        with pytest.raises(ReadOnlyError, match="not"), store.transaction() as session:
            session.execute(statement)
    store.close()
    reader = open_store(tmp_path, server=looking, read_only=True)
    assert [record.n for record in reader.read(298, 10)] == [298, 299]
    reader.close()
    writer = open_store(tmp_path, server=looking)
    with pytest.raises(ReadOnlyError, match="role is not"):
        writer.append([message(stream)])
    writer.close()


def test_what_was_put_into_the_schema_is_named(store: Store, served: Where) -> None:
    def strangers() -> list[str]:
        with store.raw() as raw:
            return raw.strangers(lambda name: name == "ledger_view_tasks_1")

    with owner_of(served) as owner:
        owner.execute(f"CREATE TABLE ledger_view_tasks_1 {VIEW_COLUMNS}".encode())
        assert strangers() == []
        owner.execute("ALTER TABLE ledger_events DISABLE TRIGGER ledger_stays")
        owner.execute("CREATE TABLE more (x integer)")
        owner.execute("CREATE FUNCTION more() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'")
        owner.execute("CREATE TRIGGER more BEFORE INSERT ON ledger_tags FOR EACH ROW EXECUTE FUNCTION more()")
        owner.execute("CREATE OR REPLACE FUNCTION ledger_root(hashes bytea) RETURNS bytea LANGUAGE sql AS 'SELECT $1'")
        owner.execute("DROP TABLE ledger_checkpoints")
        assert strangers() == [
            "'more' was put there from outside: it may change what is written or read",
            "table ledger_checkpoints is missing",
            "trigger ledger_stays on ledger_events was changed from outside, or does not fire",
            "trigger 'more on ledger_tags' was put there from outside: it may change what is written",
            "function ledger_root was changed from outside",
            "function 'more' was put there from outside: it may change what is written or read",
        ]


def test_an_older_database_in_its_place_is_not_written_to(store: Store, served: Where) -> None:
    stream = new_stream(store)
    store.append([message(stream), message(stream)])
    with owner_of(served) as owner:
        owner.execute("SET session_replication_role = replica; DELETE FROM ledger_events WHERE rowid = 2")
    with pytest.raises(RollbackError, match="found 1"):
        store.append([message(stream)])


def test_a_primary_that_lost_its_place_and_does_not_know_it_yet_is_passed_by(served: Where) -> None:
    """Of several hosts, one answers with fewer events than this process was told of; then the right one answers."""
    server = cast("Server", served.server)
    two = server._replace(url=server.url.replace("host=", "host=/nowhere,"), timeout=20.0)
    store = Where(served.directory, two).make()
    stream = new_stream(store)
    store.append([message(stream)])

    def older(line: Line, _: Callable[[], int]) -> int:
        line.connection.execute("DO $$ BEGIN RAISE '0' USING ERRCODE = 'A2L02'; END $$")
        raise AssertionError

    with calls(store, older, older) as seen:
        assert store.append([message(stream)])[0].n == 1
    assert len(seen) == 3
    cast("Sessions", store._database).timeout = 0.5
    with pytest.raises(RollbackError), calls(store, *[older] * 100):
        store.append([message(stream)])
    store.close()


def test_one_schema_holds_one_ledger(served: Where, tmp_path: Path) -> None:
    served.make().close()
    store = served.make()
    store.append([message("ledger")])
    store.close()
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(MissingKeysError, match="those of another log"):
        open_store(other, origin=ORIGIN, create=True, server=served.server)
    with pytest.raises(StoreError, match="expected the log elsewhere/12345678"):
        open_store(other, origin="elsewhere/12345678", create=True, server=served.server)


def test_a_held_lock_is_said_after_the_time_out(served: Where) -> None:
    served.make().close()
    store = open_store(served.directory, server=cast("Server", served.server)._replace(timeout=1.0))
    with owner_of(served) as owner, owner.transaction():
        owner.execute("SELECT pg_advisory_xact_lock(1093815367, 'ledger_events'::regclass::oid::integer)")
        with pytest.raises(BusyError, match="locked by another connection"):
            store.append([message("ledger")])
    assert store.append([message("ledger")])[0].n == 0
    store.close()


def test_a_schema_without_tables_says_what_to_run(postgres: PostgresServer, tmp_path: Path) -> None:
    where = on(postgres, tmp_path)
    with pytest.raises(MissingKeysError):
        open_store(tmp_path, server=where.server)
    sessions = Sessions(cast("Server", where.server))
    assert [migrate(sessions), migrate(sessions)] == [True, False]
    sessions.close()
    store = where.make()
    store.append([draft(event(), stream="ledger", at=AT, entropy=os.urandom)])
    store.close()


@pytest.mark.parametrize(
    ("server", "said"),
    [
        (Server("postgresql://me:secret@h/db"), "without a password"),
        (Server("host=h password=secret"), "without a password"),
        (Server("postgresql://h/db?nonsense=1"), "of the form postgresql://HOST/DATABASE"),
        (Server("postgresql://h/db", 'x"; DROP'), "a schema of small letters"),
    ],
)
def test_a_url_that_cannot_be_used_is_refused_and_not_repeated(server: Server, said: str) -> None:
    with pytest.raises(UsageError, match=said) as refused:
        Sessions(server)
    assert "secret" not in str(refused.value)
