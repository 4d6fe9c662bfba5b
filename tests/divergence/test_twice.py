"""`duplicate-id` and `duplicate-keys`: what stands twice, and says two things."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.divergence.story import Story, made, ours, said, task, update
from tests.divergence.test_rules import only, shown_by

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_ledger.events import Json, JsonObject


def doubled() -> bytes:
    """Return a JSON-RPC answer whose status holds its state twice."""
    whole = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"task": task("working")}})
    return whole.replace('"state": ', '"state": "TASK_STATE_COMPLETED", "state": ').encode()


# ---- duplicate-id


def test_one_message_id_of_ours_for_two_contents_is_about_the_client() -> None:
    story = Story()
    story.working()
    story.ask(task_id="T1", message_id="m1", text="stop")
    finding = only(story)
    assert (finding.rule, finding.about, finding.certainty) == ("duplicate-id", "client", "certain")
    assert finding.observed == {"id": "message", "value": "m1", "pointer": "/message"}
    assert shown_by(finding) == [1, 2, 5]


def test_one_message_id_of_ours_on_two_tasks_of_the_peer_may_be_of_two_clients() -> None:
    """Both said "go" as message 1, which reads as a resend; as message 2 each goes on with its own task."""
    story = Story()
    story.working()
    story.answer(story.ask(message_id="m1"), {"task": task("working", task_id="T2")})
    story.ask(task_id="T1", message_id="m2", text="yes")
    story.ask(task_id="T2", message_id="m2", text="no")
    finding = only(story)
    assert (finding.rule, finding.about, finding.certainty) == ("duplicate-id", "client", "suspected")


def test_one_message_id_of_the_peer_for_two_contents() -> None:
    story = Story()
    story.working()
    story.polled("input-required", text="which quarter?")
    story.polled("input-required", text="which year?")
    finding = only(story)
    assert (finding.about, finding.observed["pointer"]) == ("peer", "/status/message")


def test_a_message_of_the_peer_under_an_id_of_ours() -> None:
    story = Story()
    request = story.begun()
    story.answer(request, {"message": said("m1", "hello")})
    assert only(story).about == "peer"


def test_two_messages_of_one_id_in_one_history() -> None:
    story = Story()
    story.working()
    story.polled(history=[said("p1", "one"), said("p1", "two")])
    assert only(story).observed == {"id": "message", "value": "p1", "pointer": "/history"}


BESIDE = [
    [ours("m1"), said("m1", "answer")],
    [said("m1", "answer"), ours("m1")],
    [ours("m1"), said("p1", "wait"), said("m1", "answer"), said("m1", "answer")],
    [ours("m1"), ours("m1", "pay 100")],
]
"""Histories that hold our message m1 as it was sent, and another one under its id."""


@pytest.mark.parametrize("history", BESIDE)
def test_a_message_of_the_peer_under_an_id_of_ours_in_a_history_that_holds_both(history: list[JsonObject]) -> None:
    story = Story()
    story.working()
    for _ in range(3):
        story.polled("completed", history=list(history))
    finding = only(story)
    assert (finding.rule, finding.about, finding.certainty) == ("duplicate-id", "peer", "certain")
    assert finding.observed == {"id": "message", "value": "m1", "pointer": "/history"}
    assert finding.evidence[1].n == 2  # our message


@pytest.mark.parametrize("history", BESIDE[:3])
def test_it_is_found_once_when_the_answer_was_seen_before_or_stands_in_the_status_too(
    history: list[JsonObject],
) -> None:
    earlier, beside = Story(), Story()
    made = task("completed")
    made["status"] = {"state": "TASK_STATE_COMPLETED", "message": said("m1", "answer")}
    earlier.bind(earlier.answer(earlier.begun(), made))
    earlier.polled("completed", history=list(history))
    beside.working()
    beside.answer(beside.ask("GetTask", task_id="T1"), {**made, "history": list(history)})
    for story in (earlier, beside):
        finding = only(story)
        assert (finding.rule, finding.subject) == ("duplicate-id", "message:m1")


def test_two_messages_of_an_id_of_the_peer_one_of_them_as_it_was_recorded() -> None:
    story = Story()
    story.working()
    story.polled(text="which quarter?")  # its id is s1
    story.polled(history=[ours("m1"), said("s1", "which quarter?"), said("s1", "which year?")])
    assert [(one.rule, one.subject) for one in story.findings()] == [("duplicate-id", "message:s1")]


def test_two_messages_of_one_id_neither_of_which_was_recorded_are_the_history_s_divergence() -> None:
    story = Story()
    story.working()
    story.polled(history=[ours("m1", "stop"), said("m1", "answer")])
    assert [(one.rule, one.subject) for one in story.findings()] == [("history-divergence", "content:m1")]


def test_two_artifacts_of_one_id_in_one_task() -> None:
    story = Story()
    story.working()
    story.polled(artifacts=[*made("one"), *made("two")])
    assert only(story).observed == {"id": "artifact", "value": "A1", "pointer": "/artifacts"}


def test_a_status_message_that_changes_with_every_update_is_found_once() -> None:
    story = Story()
    story.working()
    for n in range(20):
        story.polled(text=f"{n} %")
    assert [finding.subject for finding in story.findings()] == ["message:s1"]


# ---- duplicate-keys


def test_an_answer_that_reads_two_ways() -> None:
    story = Story()
    story.answer(story.begun(), body=doubled())
    finding = only(story)
    assert (finding.rule, finding.about, finding.certainty) == ("duplicate-keys", "peer", "certain")
    assert (finding.subject, finding.observed) == ("in:state", {"members": ["state"], "count": 1})


def test_a_stream_event_that_reads_two_ways() -> None:
    story = Story()
    request = story.begun()
    story.stream_bytes(request, b"id: 7\ndata: " + doubled() + b"\n\n")
    assert only(story).rule == "duplicate-keys"


def test_a_request_of_ours_that_reads_two_ways() -> None:
    story = Story()
    story.working()
    body = b'{"jsonrpc":"2.0","id":9,"method":"GetTask","params":{"id":"T2","id":"T1"}}'
    story.ask_bytes(body)
    finding = only(story)
    assert (finding.about, finding.subject) == ("client", "out:id")


def test_a_member_name_of_any_kind_can_be_shown() -> None:
    story = Story()
    odd = b'{"jsonrpc":"2.0","id":1,"result":{"\\ud800' + b"x" * 300 + b'":1,"\\ud800' + b"x" * 300 + b'":2}}'
    story.answer(story.begun(), body=odd)
    finding = only(story)
    assert finding.subject.startswith("in:\ufffdxxx")
    assert len(finding.subject) == len("in:") + 128 + len("~") + 32


# ---- honest

HONEST: list[Callable[[Story], None]] = []


def honest(tell: Callable[[Story], None]) -> Callable[[Story], None]:
    """Add a story to the table."""
    HONEST.append(tell)
    return tell


@honest
def retry_with_the_same_content(story: Story) -> None:
    story.begun()
    story.bind(story.answer(story.ask(), task("working")))
    story.ask(task_id="T1", context="C1", message_id="m1")  # as the SDK fills its ids in


@honest
def two_sends_to_two_tasks_of_one_submission(story: Story) -> None:
    """The client crashed before it stored the server's task id; its retry makes a second task."""
    story.begun()
    story.bind(story.answer(story.ask(), task("working", task_id="T2")))
    story.answer(story.ask("GetTask", task_id="T2"), task("completed", task_id="T2"))


@honest
def one_message_in_status_and_history(story: Story) -> None:
    story.working()
    story.polled("input-required", text="which?", history=[ours("m1"), said("s1", "which?")])


@honest
def the_same_push_again_and_long_after_the_end(story: Story) -> None:
    story.working()
    first = {"task": task("input-required", text="which?")}
    last = {"statusUpdate": update("completed")["statusUpdate"]}
    for payload in (first, first, last, last, first, last):
        story.push({**payload})


@honest
def two_artifacts_of_one_id_and_content(story: Story) -> None:
    story.working()
    story.polled(artifacts=[*made("one"), *made("one")])


@honest
def messages_without_an_id(story: Story) -> None:
    story.working()
    for text in ("one", "two"):
        message: dict[str, Json] = {"role": "agent", "parts": [{"type": "text", "text": text}]}
        story.answer(
            story.ask("GetTask", task_id="T1"), {"id": "T1", "status": {"state": "working", "message": message}}
        )


@honest
def a_member_twice_with_the_same_value(story: Story) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"id":1,"result":{"task":{"id":"T1","status":{"state":"TASK_STATE_WORKING"}}}}'
    story.answer(story.begun(), body=body)
    story.answer(story.ask("GetTask", task_id="T1"), body=body.replace(b'"id":1,"id":1', b'"id":1,"id":1.0'))


@honest
def one_name_in_two_objects(story: Story) -> None:
    story.working()
    story.polled(history=[ours("m1")], metadata={"id": "x", "state": {"id": "y"}})


@pytest.mark.parametrize("tell", HONEST, ids=lambda tell: tell.__name__)
def test_honest_repetition_gives_no_finding(tell: Callable[[Story], None]) -> None:
    story = Story()
    tell(story)
    assert story.rules() == []
