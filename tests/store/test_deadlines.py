"""No caller waits for a server longer than was configured, whatever hangs; what was asked for again is there once."""

# pyright: reportPrivateUsage=false
# Connections are looked at behind the public face, and the time-out is shortened there.

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import pytest

from a2a_ledger.errors import BusyError, UnreachableError
from tests.store.checks import check_log
from tests.store.facts import Where, message, new_stream
from tests.store.test_server import owner_of, until

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from a2a_ledger.codec import Draft
    from a2a_ledger.store import Server, Store
    from a2a_ledger.store.postgres.sessions import Line, Sessions

SLACK = 15.0  # seconds: a machine that is busy; all that hangs here would hang for ever


@pytest.fixture
def store(served: Where) -> Iterator[Store]:
    made = served.make()
    yield made
    made.close()


def sessions_of(store: Store) -> Sessions:
    return cast("Sessions", store._database)


@contextmanager
def no_standby(where: Where) -> Generator[None]:
    """Have every commit wait for a standby that is not there."""
    with owner_of(where) as owner:
        owner.execute("SET synchronous_commit = local")

        def chosen(names: str, statement: bytes) -> None:
            owner.execute(statement)
            owner.execute("SELECT pg_reload_conf()")
            until(lambda: True if owner.execute("SHOW synchronous_standby_names").fetchone() == (names,) else None)

        chosen("nobody", b"ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        try:
            yield
        finally:
            chosen("", b"ALTER SYSTEM RESET synchronous_standby_names")


def test_a_commit_that_no_standby_confirms_ends_in_time_and_is_recorded_once(store: Store, served: Where) -> None:
    stream = new_stream(store)
    store.append([message(stream)])
    sessions_of(store).timeout = 1.0
    drafts = [message(stream), message(stream)]
    begun = time.monotonic()
    with no_standby(served):
        with pytest.raises(UnreachableError, match="may have been written or not"):
            store.append(drafts)
        took = time.monotonic() - begun
        assert store.size() == 1  # nobody sees what waits
        with pytest.raises(UnreachableError):  # asked again, it waits again: a repeat acknowledges nothing
            store.append(drafts)
    assert 1.0 <= took < 1.0 + SLACK
    sessions_of(store).timeout = 30.0
    assert [(at.n, at.ver) for at in store.append(drafts)] == [(1, 1), (2, 2)]
    assert len(check_log(served)) == 3


def test_who_waits_behind_others_is_answered_in_time_too(store: Store, served: Where) -> None:
    sessions_of(store).timeout = 1.0
    streams = [new_stream(store) for _ in range(6)]
    took: list[float] = []
    drafts: list[Draft] = []

    def write(stream: str) -> None:
        draft = message(stream)
        drafts.append(draft)
        begun = time.monotonic()
        with pytest.raises((UnreachableError, BusyError)):  # busy: the lock is held by who came first
            store.append([draft])
        took.append(time.monotonic() - begun)

    with no_standby(served):
        writers = [threading.Thread(target=write, args=(stream,)) for stream in streams]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join(timeout=60)
    assert len(took) == 6
    assert max(took) < 2.0 + SLACK
    sessions_of(store).timeout = 30.0
    for draft in drafts:
        store.append([draft])
    assert len(check_log(served)) == 6


def test_a_repeat_whose_first_attempt_still_has_the_lock_does_not_say_that_nothing_was_written(
    store: Store, served: Where
) -> None:
    """The first attempt hangs behind its commit, cut off from its client; the second waits for the lock that it has."""
    stream = new_stream(store)
    sessions_of(store).timeout = 1.0
    draft = message(stream)
    with no_standby(served), owner_of(served) as owner:
        with pytest.raises(UnreachableError):
            store.append([draft])
        holds = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        until(lambda: owner.execute(holds).fetchone())
        with pytest.raises(UnreachableError):
            store.append([draft])
    sessions_of(store).timeout = 30.0
    assert store.append([draft])[0].n == 0
    assert store.size() == 1


def test_a_server_that_is_silent_ends_a_read_in_time(store: Store) -> None:
    with sessions_of(store).lent() as line:
        backend = line.connection.info.backend_pid
    sessions_of(store).timeout = 0.5
    os.kill(backend, signal.SIGSTOP)
    try:
        begun = time.monotonic()
        with pytest.raises(UnreachableError, match="did not answer"):
            store.size()
        assert time.monotonic() - begun < 0.5 + SLACK
    finally:
        os.kill(backend, signal.SIGCONT)
    assert store.size() == 0


def test_a_read_that_meets_the_end_of_its_connection_is_asked_again(store: Store, served: Where) -> None:
    store.append([message(new_stream(store))])
    real, killed = sessions_of(store).take_out, list[int]()

    def doomed(moment: float | None = None) -> Line:
        line = real(moment)
        if not killed:
            killed.append(line.connection.info.backend_pid)
            with owner_of(served) as owner:
                owner.execute("SELECT pg_terminate_backend(%s)", (killed[0],))
                gone = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s"
                until(lambda: True if owner.execute(gone, (killed[0],)).fetchone() == (0,) else None)
        return line

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sessions_of(store), "take_out", doomed)
        assert [record.n for record in store.read(0, 10)] == [0]
    assert killed


def test_the_first_of_several_hosts_may_be_dead(served: Where) -> None:
    served.make().close()
    server = cast("Server", served.server)
    folder = server.url.partition("host=")[2]
    several = server._replace(
        url=f"postgresql:///postgres?user=postgres&host=/nowhere,127.0.0.1,{folder}&port=1,1,5432"
    )
    store = Where(served.directory, several).make()
    assert store.append([message("ledger")])[0].n == 0
    store.close()


def test_a_head_is_signed_over_nothing_that_one_machine_alone_has(store: Store, served: Where) -> None:
    """A wait that was cancelled leaves an event on the primary alone; a reader sees it, and no head may cover it."""
    stream = new_stream(store)
    sessions_of(store).timeout = 1.0
    with no_standby(served), owner_of(served) as owner:
        with pytest.raises(UnreachableError):
            store.append([message(stream)])
        waiting = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        until(lambda: True if owner.execute(waiting).fetchall() and store.size() == 1 else None)
        with pytest.raises(UnreachableError):
            store.settled_root()
    sessions_of(store).timeout = 30.0
    assert store.settled_root()[0] == 1


def test_a_head_that_waits_is_no_head_where_its_wait_was_cancelled(store: Store, served: Where) -> None:
    store.append([message(new_stream(store))])
    found: list[Exception] = []

    def settle() -> None:
        try:
            store.settled_root()
        except UnreachableError as error:
            found.append(error)

    asking = threading.Thread(target=settle)
    with no_standby(served), owner_of(served) as owner:
        asking.start()
        waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        owner.execute("SELECT pg_cancel_backend(%s)", until(lambda: owner.execute(waiting).fetchone()))
        asking.join(timeout=30)
    assert "the wait for it was cut short" in str(found[0])
