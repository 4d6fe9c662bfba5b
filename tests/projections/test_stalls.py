"""Which tasks have stalled: hand-made stories with times that were counted by hand."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from a2a_ledger_projections.base import catch_up, reading, rebuild
from a2a_ledger_projections.lookup import find_task
from a2a_ledger_projections.stalls import ENOUGH, Limits, Stall, stall_of, stalled, usual
from a2a_ledger_projections.timeline import tell
from a2a_ledger_projections.waits import PEER as PEER_ROWS
from a2a_ledger_projections.waits import VIEW, bucket_of, edge_of

from .logbook import PEER, START

if TYPE_CHECKING:
    from a2a_ledger.store import Appended

    from .logbook import Logbook


def after(**span: float) -> timedelta:
    return timedelta(**span)


def reasons(found: list[Stall]) -> list[tuple[str, str]]:
    return [(stall.row["task"], reason.reason) for stall in found for reason in stall.reasons]


def wait(log: Logbook, seconds: float) -> None:
    """Let time go by: the next event is recorded that many seconds after the last one."""
    log.now += timedelta(seconds=seconds - 1)


def chunk(log: Logbook, task: str, request: Appended, *, last: bool, artifact: str = "a1") -> Appended:
    update = {"taskId": "T1", "contextId": "C1", "artifact": {"artifactId": artifact, "parts": [{"text": "x"}]}}
    body = (
        b"data: "
        + json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"artifactUpdate": {**update, "lastChunk": last}}}).encode()
    )
    return log.answer(
        task, None, answers=request, leg="stream-event", method="SendStreamingMessage", body=body + b"\n\n"
    )


def stream_event(log: Logbook, task: str, request: Appended, state: str) -> Appended:
    return log.answer(task, state, answers=request, leg="stream-event", method="SendStreamingMessage")


def poll(log: Logbook, task: str, state: str) -> Appended:
    return log.answer(task, state, answers=log.request(task, "GetTask"), method="GetTask")


# ---- how long is usual


@pytest.mark.parametrize(
    ("seconds", "edge"),
    [(0, 0.125), (0.125, 0.125), (0.126, 0.25), (0.25, 0.25), (0.3, 0.5), (1, 1), (1.1, 2), (60, 64), (64.5, 128)],
)
def test_a_wait_is_counted_under_the_next_power_of_two(seconds: float, edge: float) -> None:
    assert edge_of(bucket_of(seconds)) == edge


def test_waits_longer_than_the_last_edge_share_its_bucket() -> None:
    assert bucket_of(10.0**9) == bucket_of(10.0**7) == 25
    assert edge_of(25) == 2**25 / 8  # 48 days and a half


def test_the_usual_is_twice_what_95_of_100_waits_lie_within() -> None:
    counts = [0] * 26
    counts[bucket_of(100)], counts[bucket_of(1000)] = 95, 5
    row = {"peer": PEER, "waits": {"working": counts}}
    assert usual(row, "working", Limits()) == (2 * 128, "usual", 100)  # type: ignore[arg-type]  # a row by hand
    counts[bucket_of(1000)] = 6
    assert usual(row, "working", Limits()) == (2 * 1024, "usual", 101)  # type: ignore[arg-type]  # same


def test_a_quick_peer_is_given_the_floor_and_an_unknown_one_the_limit() -> None:
    counts = [ENOUGH - 1] + [0] * 25
    row = {"peer": PEER, "waits": {"working": counts}}
    assert usual(row, "working", Limits(limit=900)) == (900, "limit", ENOUGH - 1)  # type: ignore[arg-type]  # a row by hand
    counts[0] += 1
    assert usual(row, "working", Limits(limit=900)) == (60, "floor", ENOUGH)  # type: ignore[arg-type]  # same
    assert usual(row, "submitted", Limits(limit=900)) == (900, "limit", 0)  # type: ignore[arg-type]  # same
    assert usual(None, "working", Limits(limit=900)) == (900, "limit", 0)


# ---- who is listed


def test_a_silent_task_is_listed_once_the_limit_is_over_and_not_a_second_before(log: Logbook) -> None:
    task, _, request = log.sent()
    told = log.answer(task, "working", answers=request)
    at = log.store.record(told.n).at
    begun = START + timedelta(seconds=told.n)
    assert at.startswith(begun.isoformat()[:19])
    assert stalled(log.store, begun + after(seconds=3600)) == []
    (stall,) = stalled(log.store, begun + after(seconds=3601))
    (reason,) = stall.reasons
    assert (reason.reason, reason.position, reason.seconds, reason.limit) == ("silent", told.n, 3601, 3600)
    assert (reason.by, reason.samples, reason.since) == ("limit", 0, at)
    assert reasons(stalled(log.store, begun + after(seconds=301), Limits(limit=300))) == [(task, "silent")]


def test_a_finished_a_refused_and_a_stopped_task_wait_for_nothing(log: Logbook) -> None:
    done, _, request = log.sent()
    log.answer(done, "completed", answers=request)
    refused, _, request = log.sent()
    log.answer(refused, None, answers=request, task_id=None, error_code=-32602)
    stopped = log.task()
    log.decide(stopped)
    log.abort(stopped)
    assert stalled(log.store, START + after(days=30)) == []


def test_a_redirect_is_no_news_and_a_task_behind_it_can_stall(log: Logbook) -> None:
    task, _, request = log.sent()
    log.answer(task, None, answers=request, task_id=None, status=307, message_id=None)
    again = log.request(task)
    silent = stalled(log.store, log.now + after(hours=2))
    assert [(stall.row["task"], stall.reasons[0].position) for stall in silent] == [(task, again.n)]
    working = log.answer(task, "working", answers=again)
    found = stalled(log.store, log.now + after(hours=2))
    assert [(stall.row["task"], stall.reasons[0].position) for stall in found] == [(task, working.n)]


def test_a_send_that_nobody_answered_is_silent(log: Logbook) -> None:
    task, _, request = log.sent()
    log.answer(task, None, answers=request, leg="error", task_id=None, status=None, error_kind="timeout")
    assert reasons(stalled(log.store, START + after(hours=2))) == [(task, "silent")]


def test_polls_that_tell_nothing_new_do_not_end_the_wait(log: Logbook) -> None:
    task, _, request = log.sent()
    told = log.answer(task, "working", answers=request)
    for _ in range(20):
        wait(log, 300)
        poll(log, task, "working")
    (stall,) = stalled(log.store, log.now)
    assert stall.reasons[0].position == told.n
    assert stall.reasons[0].detail.endswith("asked 20 times since, it told nothing new")


def test_a_status_update_with_the_same_state_is_news_and_a_resubscription_is_not(log: Logbook) -> None:
    task, _, request = log.sent()
    log.answer(task, "working", answers=request)
    wait(log, 7000)
    progress = log.answer(task, "working", answers=request, leg="push", method="GetTask")
    wait(log, 3000)
    again = log.request(task, "SubscribeToTask")
    log.answer(task, "working", answers=again, leg="stream-event", method="SubscribeToTask")
    (stall,) = stalled(log.store, log.now + after(seconds=1000))
    assert stall.reasons[0].position == progress.n


def test_the_peers_own_pace_decides_once_enough_waits_are_known(log: Logbook) -> None:
    for _ in range(ENOUGH):
        task, _, request = log.sent()
        log.answer(task, "working", answers=request)
        wait(log, 900)
        log.answer(task, "completed", answers=request, leg="push", method="GetTask")
    slow, _, request = log.sent()
    told = log.answer(slow, "working", answers=request)
    begun = START + (log.now - START) - timedelta(seconds=1)
    assert stalled(log.store, begun + after(seconds=2048)) == []
    (stall,) = stalled(log.store, begun + after(seconds=2049))
    (reason,) = stall.reasons
    assert (reason.reason, reason.by, reason.samples, reason.limit) == ("silent", "usual", ENOUGH, 2 * 1024)
    assert reason.position == told.n


def test_work_that_never_ends_after_its_last_chunk_is_stalled_and_not_completed(log: Logbook) -> None:
    """bugs.md 27: submitted, working, artifact(last), then cut; later polls say `working` twenty times."""
    task, _, request = log.sent()
    for state in ("submitted", "working"):
        stream_event(log, task, request, state)
    complete = chunk(log, task, request, last=True)
    for _ in range(20):
        poll(log, task, "working")
    (stall,) = stalled(log.store, log.now + after(hours=1))
    (reason,) = stall.reasons
    assert reason.reason == "artifact-complete"
    assert reason.detail == (
        f"stalled in working, artifact says complete: its last chunk came with #{complete.n}; asked 20 times since, "
        "it told nothing new"
    )
    assert find_task(log.store, task)["state"] == "working"
    assert "artifact says complete" in tell(log.store, find_task(log.store, task), log.now + after(hours=1)).now


def test_an_artifact_that_is_still_open_says_nothing_of_being_complete(log: Logbook) -> None:
    task, _, request = log.sent()
    stream_event(log, task, request, "working")
    chunk(log, task, request, last=True, artifact="a1")
    chunk(log, task, request, last=False, artifact="a2")
    assert reasons(stalled(log.store, log.now + after(hours=2))) == [(task, "silent")]


@pytest.mark.parametrize("state", ["working", "input-required"])
def test_a_cancel_that_was_acknowledged_and_never_took_is_named(log: Logbook, state: str) -> None:
    """bugs.md 29: cancel answers with the state of before, and so does every poll behind it."""
    task, _, request = log.sent()
    log.answer(task, state, answers=request)
    acknowledged = log.answer(task, state, answers=log.request(task, "CancelTask"), method="CancelTask")
    poll(log, task, state)
    at = log.now - timedelta(seconds=3)
    assert stalled(log.store, at + after(seconds=60)) == []
    (stall,) = stalled(log.store, at + after(seconds=61))
    (reason,) = stall.reasons
    assert (reason.reason, reason.position) == ("cancel-not-terminal", acknowledged.n)
    assert reason.detail.endswith(f"and the task is still {state}")


def test_a_refused_cancel_and_one_that_took_are_not_named(log: Logbook) -> None:
    refused, _, request = log.sent()
    log.answer(refused, "working", answers=request)
    log.answer(
        refused, None, answers=log.request(refused, "CancelTask"), method="CancelTask", task_id=None, error_code=-32002
    )
    took, _, request = log.sent()
    log.answer(took, "working", answers=request)
    log.answer(took, "canceled", answers=log.request(took, "CancelTask"), method="CancelTask")
    assert stalled(log.store, log.now + after(minutes=30)) == []


def test_input_that_was_asked_for_and_not_given_is_ours(log: Logbook) -> None:
    task, _, request = log.sent()
    asked = log.answer(task, "input-required", answers=request)
    (stall,) = stalled(log.store, log.now + after(hours=2))
    assert [(reason.reason, reason.position) for reason in stall.reasons] == [("input-unanswered", asked.n)]
    sent = log.request(task, "SendMessage", message_id="m2")
    (stall,) = stalled(log.store, log.now + after(hours=2))
    assert [(reason.reason, reason.position) for reason in stall.reasons] == [("silent", sent.n)]


def test_one_task_may_have_two_reasons(log: Logbook) -> None:
    task, _, request = log.sent()
    log.answer(task, "input-required", answers=request)
    log.answer(task, "input-required", answers=log.request(task, "CancelTask"), method="CancelTask")
    found = stalled(log.store, log.now + after(hours=2))
    assert reasons(found) == [(task, "input-unanswered"), (task, "cancel-not-terminal")]
    alone = stall_of(log.store, task, log.now + after(hours=2))
    assert alone == found[0]


def test_imported_tasks_are_nobodys_wait(log: Logbook) -> None:
    task = log.task()
    log.adopt(task)
    assert reasons(stalled(log.store, START + after(hours=2))) == [(task, "silent")]
    record = log.store.record(0)
    event = record.event()
    assert event is not None
    log.add(event, f"task:{log.task()}", how="import")
    assert reasons(stalled(log.store, START + after(hours=2))) == [(task, "silent")]


def test_a_clock_that_went_back_gives_no_wait(log: Logbook) -> None:
    task, _, request = log.sent()
    log.answer(task, "working", answers=request)
    assert stalled(log.store, START - after(days=1)) == []
    log.now = START - timedelta(hours=1)
    log.answer(task, "completed", answers=request, leg="push", method="GetTask")
    with reading(log.store, VIEW) as now:
        row = now.rows.get(PEER_ROWS + PEER)
    assert row is not None
    waits = row["waits"]
    assert isinstance(waits, dict)
    assert sum(map(sum, waits.values())) == 2  # type: ignore[arg-type]  # lists of counts


def test_a_state_of_the_peers_own_invention_takes_no_row_of_its_own(log: Logbook) -> None:
    task, _, request = log.sent()
    for number in range(5):
        log.answer(task, f"paused-{number}", answers=request, leg="push", method="GetTask")
    with reading(log.store, VIEW) as now:
        row = now.rows.get(PEER_ROWS + PEER)
    assert row is not None
    waits = row["waits"]
    assert isinstance(waits, dict)
    assert sorted(waits) == ["other", "sent"]


def test_a_rebuilt_view_is_the_caught_up_one(log: Logbook) -> None:
    for state in ("working", "input-required", "completed"):
        task, _, request = log.sent()
        log.answer(task, state, answers=request)
        poll(log, task, state)
    catch_up(log.store, VIEW)
    with log.store.views() as db:
        before = db.execute(f"SELECT key, first, row FROM {VIEW.table} ORDER BY key").fetchall()  # noqa: S608 - our own table
    rebuild(log.store, VIEW)
    with log.store.views() as db:
        assert db.execute(f"SELECT key, first, row FROM {VIEW.table} ORDER BY key").fetchall() == before  # noqa: S608 - same
    assert len(before) == 4
