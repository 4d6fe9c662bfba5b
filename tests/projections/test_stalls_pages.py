"""The same events give the same waits and the same list, however the log is cut into pages."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_ledger.store import open_store
from a2a_ledger_projections.base import catch_up
from a2a_ledger_projections.stalls import Limits, stalled
from a2a_ledger_projections.waits import VIEW

from .logbook import Logbook, entropy

if TYPE_CHECKING:
    from a2a_ledger.store import Appended, Store

STATES = st.sampled_from(["submitted", "working", "input-required", "completed", "paused"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("poll"), st.integers(0, 2), STATES),
        st.tuples(st.just("push"), st.integers(0, 2), STATES),
        st.tuples(st.just("cancel"), st.integers(0, 2), STATES),
        st.tuples(st.just("send"), st.integers(0, 2), STATES),
        st.tuples(st.just("wait"), st.integers(0, 4000), STATES),
    ),
    max_size=25,
)


def _tell(log: Logbook, steps: list[tuple[str, int, str]]) -> None:
    begun: list[tuple[str, Appended]] = []
    for _ in range(3):
        task, _, request = log.sent()
        begun.append((task, request))
    for kind, number, state in steps:
        if kind == "wait":
            log.now += timedelta(seconds=number)
            continue
        task, request = begun[number]
        if kind == "push":
            log.answer(task, state, answers=request, leg="push", method="GetTask")
        else:
            method = {"poll": "GetTask", "cancel": "CancelTask", "send": "SendMessage"}[kind]
            log.answer(task, state, answers=log.request(task, method), method=method)


def _rows(store: Store) -> list[tuple[str, int, str]]:
    with store.views() as db:
        return db.execute(f"SELECT key, first, row FROM {VIEW.table} ORDER BY key").fetchall()  # noqa: S608 - our own table


@settings(max_examples=40, deadline=None)
@given(STEPS, st.integers(1, 9), st.integers(0, 20_000))
def test_pages_of_any_length_give_the_same_view_and_the_same_list(
    steps: list[tuple[str, int, str]], page: int, later: int
) -> None:
    stores = [open_store(None, origin="test/log/0badcafe", create=True, entropy=entropy()) for _ in range(2)]
    try:
        logs = [Logbook(store=store) for store in stores]
        for log in logs:
            _tell(log, steps)
        now = logs[0].now + timedelta(seconds=later)
        unstored = stalled(stores[0], now, Limits(limit=1000))
        catch_up(stores[0], VIEW)
        while catch_up(stores[1], VIEW, limit=page):
            pass
        assert _rows(stores[0]) == _rows(stores[1])
        assert stalled(stores[0], now, Limits(limit=1000)) == stalled(stores[1], now, Limits(limit=1000)) == unstored
        assert all(stall.row["open"] for stall in unstored)
        assert all(reason.seconds > reason.limit for stall in unstored for reason in stall.reasons)
    finally:
        for store in stores:
            store.close()
