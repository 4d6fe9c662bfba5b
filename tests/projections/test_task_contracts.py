"""One row a task: where it stands, and what it is bound to."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from a2a_ledger.events import MessageRecorded
from a2a_ledger_projections import task_contracts
from a2a_ledger_projections.base import reading

from .logbook import FORM, OAUTH, PEER, PEER_URL

if TYPE_CHECKING:
    from a2a_ledger_projections.task_contracts import TaskRow

    from .logbook import Logbook


def row_of(log: Logbook, task: str) -> TaskRow:
    with reading(log.store, task_contracts.VIEW) as now:
        found = now.rows.get(task)
    assert found is not None
    return cast("TaskRow", found)


def test_a_task_that_runs_to_its_end(log: Logbook) -> None:
    task, _, request = log.sent()
    answered = log.answer(task, "working", answers=request)
    log.bind(task, request)
    done = log.answer(task, "completed", answers=request, leg="stream-event")
    row = row_of(log, task)
    assert {name: row[name] for name in ("task", "peer", "peer_url", "peer_task", "context", "state")} == {
        "task": task,
        "peer": PEER,
        "peer_url": PEER_URL,
        "peer_task": "T1",
        "context": "C1",
        "state": "completed",
    }
    assert (row["contract"], row["form"], row["open"], row["findings"]) == (OAUTH, FORM, False, 0)
    assert row["sent_at"] == "2026-09-14T09:00:03.000000Z"  # the fourth event, one second apart
    assert (row["since_position"], row["last_position"]) == (done.n, done.n)
    assert answered.n < done.n


def test_a_task_before_its_send_is_intended_and_one_that_was_stopped_is_aborted(log: Logbook) -> None:
    waiting, stopped = log.task(), log.task()
    log.decide(waiting)
    log.decide(stopped)
    log.abort(stopped)
    assert (row_of(log, waiting)["state"], row_of(log, waiting)["open"]) == ("intended", False)
    assert (row_of(log, stopped)["state"], row_of(log, stopped)["open"]) == ("aborted", False)


def test_a_send_without_an_answer_stays_sent_and_open(log: Logbook) -> None:
    task, _, request = log.sent()
    log.answer(task, None, answers=request, leg="error", task_id=None, status=None, error_kind="timeout")
    assert (row_of(log, task)["state"], row_of(log, task)["open"]) == ("sent", True)


def test_a_refused_send_stays_sent_and_there_is_nothing_in_flight(log: Logbook) -> None:
    task, _, request = log.sent()
    log.answer(task, None, answers=request, task_id=None, status=200, error_code=-32602)
    assert (row_of(log, task)["state"], row_of(log, task)["open"]) == ("sent", False)


def test_a_plain_message_answers_a_task(log: Logbook) -> None:
    task, _, request = log.sent()
    log.answer(task, None, answers=request, task_id=None)
    assert (row_of(log, task)["state"], row_of(log, task)["open"]) == ("answered", False)


@pytest.mark.parametrize(
    ("status", "message_id"),
    [(200, None), (202, None), (204, None), (307, None), (308, None), (303, "r1"), (304, None)],
    ids=["no Message", "taken", "nothing", "led elsewhere", "for ever", "a Message on the way", "as before"],
)
def test_what_is_no_message_of_a_success_answers_nothing(log: Logbook, status: int, message_id: str | None) -> None:
    task, _, request = log.sent()
    log.answer(task, None, answers=request, task_id=None, status=status, message_id=message_id)
    assert (row_of(log, task)["state"], row_of(log, task)["open"]) == ("sent", True)
    log.answer(task, "working", answers=log.request(task))
    assert (row_of(log, task)["state"], row_of(log, task)["open"]) == ("working", True)


def test_a_message_of_a_stream_answers_a_task(log: Logbook) -> None:
    task, _, request = log.sent()
    log.answer(
        task, None, answers=request, task_id=None, leg="stream-event", method="SendStreamingMessage", status=None
    )
    assert (row_of(log, task)["state"], row_of(log, task)["open"]) == ("answered", False)


def test_a_state_that_is_stated_after_a_message_stands(log: Logbook) -> None:
    task, _, request = log.sent()
    log.answer(task, None, answers=request, task_id=None)
    log.answer(task, "working", answers=request, leg="push", method="GetTask")
    assert (row_of(log, task)["state"], row_of(log, task)["open"]) == ("working", True)
    log.answer(task, "completed", answers=request, leg="push", method="GetTask")
    assert (row_of(log, task)["state"], row_of(log, task)["open"]) == ("completed", False)


def test_a_send_that_is_repeated_after_a_refusal_is_in_flight_again(log: Logbook) -> None:
    task, _, request = log.sent()
    log.answer(task, None, answers=request, task_id=None, status=401, message_id=None)
    again = log.request(task)
    assert (row_of(log, task)["state"], row_of(log, task)["open"]) == ("sent", True)
    log.answer(task, None, answers=again, leg="error", task_id=None, status=None, error_kind="timeout")
    assert (row_of(log, task)["state"], row_of(log, task)["open"]) == ("sent", True)


def test_the_first_terminal_state_stands(log: Logbook) -> None:
    task, _, request = log.sent()
    log.answer(task, "completed", answers=request)
    log.answer(task, "working", answers=request, leg="push", method="GetTask")
    assert row_of(log, task)["state"] == "completed"


def test_an_adopted_task_shows_the_peers_state_once_it_says_one(log: Logbook) -> None:
    task = log.task()
    log.adopt(task)
    assert (row_of(log, task)["state"], row_of(log, task)["adopted"]) == ("adopted", True)
    request = log.request(task, "GetTask")
    log.answer(task, "working", answers=request, method="GetTask", task_id="T9")
    row = row_of(log, task)
    assert (row["state"], row["adopted"], row["peer_task"], row["open"]) == ("working", True, "T9", True)


def test_a_state_that_a2a_does_not_know_is_shown_as_it_was_spelled(log: Logbook) -> None:
    task, _, request = log.sent()
    event = log.answer(task, None, answers=request)
    assert row_of(log, task)["state"] == "sent"  # a Task without any state says nothing
    log.answer(task, "paused", answers=request)
    assert (row_of(log, task)["state"], row_of(log, task)["since_position"]) == ("paused", event.n + 1)


def test_findings_are_counted_also_those_that_name_several_tasks(log: Logbook) -> None:
    one, fetch, request = log.sent()
    other, _, _ = log.sent()
    log.finding("auth-demand", request, task=one)
    log.finding("weaker-authorization", fetch, tasks=[one, other], rule_class="authorization")
    log.finding("validator-lied", fetch, rule_class="card", about="peer")
    assert (row_of(log, one)["findings"], row_of(log, other)["findings"]) == (2, 1)


FILE, OTHER = "a" * 64, "b" * 64


@pytest.mark.parametrize(
    ("before", "told", "after"),
    [
        ([], "submitted", "submitted"),  # the peer has said nothing yet
        ([("working", "")], "submitted", "working"),
        ([("input-required", "")], "working", "input-required"),
        ([("working", "")], "completed", "completed"),  # an end is an end, whenever it was
        ([("completed", "")], "failed", "completed"),
        ([("submitted", FILE)], "working", "working"),  # in the file's own order
        ([("submitted", OTHER), ("working", OTHER)], "submitted", "working"),
        ([("working", FILE), ("input-required", "")], "working", "input-required"),
    ],
)
def test_an_import_never_takes_a_task_back(log: Logbook, before: list[tuple[str, str]], told: str, after: str) -> None:
    task, _, request = log.sent()
    for state, file in [*before, (told, FILE)]:
        said = MessageRecorded(
            peer=PEER, direction="in", leg="response", binding="JSONRPC", url=PEER_URL, method="GetTask",
            task_id="T1", state=state, state_read=state, answers=request.ref, source_file=file or None,
        )  # fmt: skip
        log.add(said, f"task:{task}", how="import" if file else "live")
    assert row_of(log, task)["state"] == after


def test_the_second_import_of_a_file_does_not_begin_a_task_again(log: Logbook) -> None:
    task, _, request = log.sent()
    for run, state in ((None, "submitted"), (None, "working"), (2, "submitted"), (None, "input-required")):
        said = MessageRecorded(
            peer=PEER, direction="in", leg="response", binding="JSONRPC", url=PEER_URL, method="GetTask",
            task_id="T1", state=state, state_read=state, answers=request.ref, source_file=FILE, run=run,
        )  # fmt: skip
        log.add(said, f"task:{task}", how="import")
    assert row_of(log, task)["state"] == "input-required"


def test_what_is_seen_live_is_later_than_what_was_imported_before(log: Logbook) -> None:
    task, _, request = log.sent()
    said = MessageRecorded(
        peer=PEER, direction="in", leg="response", binding="JSONRPC", url=PEER_URL, method="GetTask",
        task_id="T1", state="input-required", state_read="input-required", answers=request.ref, source_file=FILE,
    )  # fmt: skip
    log.add(said, f"task:{task}", how="import")
    log.answer(task, "working", answers=request)
    assert row_of(log, task)["state"] == "working"
