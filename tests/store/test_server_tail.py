"""Reading on while many processes write: every event once, in order, whatever happens to what brings the news."""

# pyright: reportPrivateUsage=false
# Faults are put in behind the public face on purpose.

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, cast

import psycopg
import pytest

from a2a_ledger.store.postgres.subscription import LOOK, ListeningSubscription
from tests.store.checks import check_log
from tests.store.facts import Where, message, new_stream
from tests.store.server_child import at_once

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.store import Store
    from a2a_ledger.store.postgres.recorder import LedgerRecorder


@pytest.fixture
def store(served: Where) -> Iterator[Store]:
    made = served.make()
    yield made
    made.close()


def subscription_of(store: Store) -> ListeningSubscription:
    return cast("ListeningSubscription", cast("LedgerRecorder", store.recorder).subscribe())


@pytest.mark.parametrize(
    ("processes", "appends"), [(4, 40), pytest.param(8, 2000, marks=[pytest.mark.slow, pytest.mark.timeout(900)])]
)
def test_a_tailing_reader_sees_every_event_once_and_in_order(
    store: Store, served: Where, processes: int, appends: int
) -> None:
    wanted = processes * appends
    seen: list[int] = []

    def tail() -> None:
        with subscription_of(store) as news:
            for notification in news:
                seen.append(notification.id)
                if len(seen) == wanted:
                    return

    reader = threading.Thread(target=tail)
    reader.start()
    codes = at_once(served, processes, appends)
    reader.join(timeout=30)
    assert codes == [0] * processes
    assert seen == list(range(1, wanted + 1))
    assert len(check_log(served)) == wanted


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_sixty_processes_that_start_at_once_all_record(store: Store, served: Where) -> None:
    assert at_once(served, 60, 2) == [0] * 60
    assert store.size() == 120
    assert len(check_log(served)) == 120


def test_a_killed_connection_and_a_lost_notification_end_no_subscription(store: Store, served: Where) -> None:
    assert served.server is not None
    stream = new_stream(store)

    def append_soon() -> None:
        threading.Timer(LOOK / 5, lambda: store.append([message(stream)])).start()

    with subscription_of(store) as news:
        store.append([message(stream)])
        assert next(news).id == 1
        killed = news._connection
        assert killed is not None
        with psycopg.connect(served.server.url, autocommit=True) as owner:
            owner.execute("SELECT pg_terminate_backend(%s)", (killed.info.backend_pid,))
        append_soon()  # by then it waits, and has met the end of its connection
        assert next(news).id == 2
        listening = news._connection
        assert listening not in {None, killed}
        cast("psycopg.Connection[object]", listening).execute("UNLISTEN *")  # as if each notification were lost
        append_soon()
        assert next(news).id == 3


def test_a_subscription_that_waits_is_told_to_stop(store: Store) -> None:
    news = subscription_of(store)
    ended: list[int] = []

    def tail() -> None:
        ended.extend(notification.id for notification in news)
        ended.append(0)

    reader = threading.Thread(target=tail)
    reader.start()
    news.stop()
    reader.join(timeout=10)
    assert ended == [0]
    assert news._connection is None
