"""The fence around followers: one inside at a time, and nothing is emitted by whoever has lost it."""

# pyright: reportPrivateUsage=false
# Connections are ended behind the public face on purpose.

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, cast

import pytest
from eventsourcing.persistence import Tracking

from a2a_ledger.errors import ConflictError, UnreachableError
from a2a_ledger.store.fence import FileFence
from a2a_ledger.store.postgres.fence import ServerFence
from tests.store.checks import check_log
from tests.store.facts import Where, message, new_stream
from tests.store.test_server import owner_of, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from a2a_ledger.store import Store
    from a2a_ledger.store.fence import Fence
    from a2a_ledger.store.postgres.recorder import LedgerRecorder
    from a2a_ledger.store.postgres.sessions import Sessions

LEDGER_LOCK = "SELECT pg_advisory_xact_lock(1093815367, 'ledger_events'::regclass::oid::integer)"


@pytest.fixture
def stores(served: Where) -> Iterator[tuple[Store, Store]]:
    """Return two processes' views of one ledger on a server."""
    both = served.make(), served.make()
    yield both
    for store in both:
        store.close()


def fence_of(store: Store) -> ServerFence:
    return cast("LedgerRecorder", store.recorder).fence


def backend(fence: ServerFence) -> int:
    assert fence._line is not None
    return fence._line.connection.info.backend_pid


@pytest.mark.parametrize("kind", ["file", "server"])
def test_one_is_inside_at_a_time(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    one: Fence
    other: Fence
    if kind == "file":
        one, other = FileFence(tmp_path / "lock"), FileFence(tmp_path / "lock")
    else:
        one, other = map(fence_of, request.getfixturevalue("stores"))
    assert [one.holds(), one.take(), one.take(), one.holds()] == [False, True, True, True]
    assert [other.take(), other.holds()] == [False, False]
    one.let_go()
    one.let_go()
    assert [one.holds(), other.take(), other.holds(), one.take()] == [False, True, True, False]
    other.let_go()


def test_a_log_in_memory_has_its_one_follower() -> None:
    fence = FileFence(None)
    assert [fence.take(), fence.holds()] == [True, True]


def test_who_lost_the_connection_emits_nothing_until_it_is_inside_again(
    stores: tuple[Store, Store], served: Where
) -> None:
    one, other = stores
    stream = new_stream(one)
    assert fence_of(one).take()
    one.append([message(stream)], Tracking("verifier", 1))
    with owner_of(served) as owner:
        owner.execute("SELECT pg_terminate_backend(%s)", (backend(fence_of(one)),))
    until(lambda: True if fence_of(other).take() else None)
    late = message(stream)
    for _ in range(2):  # the first meets the end of the connection, the second knows
        with pytest.raises(UnreachableError):
            one.append([late], Tracking("verifier", 2))
    assert not fence_of(one).holds()
    assert (one.size(), one.position("verifier")) == (1, 1)
    other.append([message(stream)], Tracking("verifier", 2))
    fence_of(other).let_go()
    until(lambda: True if fence_of(one).take() else None)
    with pytest.raises(ConflictError, match="position of verifier"):  # it reads on from the position that is stored
        one.append([late], Tracking("verifier", 2))
    assert [at.ver for at in one.append([late], Tracking("verifier", 3))] == [2]
    assert len(check_log(served)) == 3


def test_what_was_under_way_when_the_lock_was_lost_is_not_written(stores: tuple[Store, Store], served: Where) -> None:
    """The one inside waits for the log's lock with an emission; then the server ends its session."""
    one, other = stores
    stream = new_stream(one)
    assert fence_of(one).take()
    failed: list[Exception] = []

    def emit() -> None:
        try:
            one.append([message(stream)], Tracking("verifier", 1))
        except UnreachableError as error:
            failed.append(error)

    emitting = threading.Thread(target=emit)
    with owner_of(served) as owner, owner_of(served) as killer:
        with owner.transaction():
            owner.execute(LEDGER_LOCK)
            pid = backend(fence_of(one))
            emitting.start()
            waits = "SELECT true FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'"
            until(lambda: killer.execute(waits, (pid,)).fetchone())
            assert not fence_of(other).take()
            killer.execute("SELECT pg_terminate_backend(%s)", (pid,))
            emitting.join(timeout=30)
            assert len(failed) == 1
            until(lambda: True if fence_of(other).take() else None)
        other.append([message(stream)], Tracking("verifier", 1))
    assert len(check_log(served)) == 1


def test_who_says_nothing_for_the_lease_gives_way(stores: tuple[Store, Store]) -> None:
    one, other = stores
    paused = ServerFence(cast("Sessions", one._database), one.origin, one.keys, lease=0.2)
    assert paused.take()
    assert paused._line is not None
    if paused._line.connection.info.server_version < 140000:
        pytest.skip("PostgreSQL 13 has no time-out for a session that says nothing")
    with paused._lock:  # nobody in its process can say anything
        until(lambda: True if fence_of(other).take() else None)
    assert not paused.holds()
    with pytest.raises(UnreachableError, match="another process may follow now"):
        paused.append([message(new_stream(one))], Tracking("verifier", 1))
    assert not paused.take()


def test_who_lives_keeps_it_however_long_a_follower_works(stores: tuple[Store, Store]) -> None:
    one, other = stores
    fence = ServerFence(cast("Sessions", one._database), one.origin, one.keys, lease=4.0)
    assert fence.take()
    end = time.monotonic() + 6
    while time.monotonic() < end:
        assert not fence_of(other).take()
        time.sleep(0.1)
    assert fence.holds()
    fence.close()
