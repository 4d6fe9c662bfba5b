"""`history-divergence`: what the peer's history says against what was recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.divergence.story import Story, ours, said, task, update
from tests.divergence.test_rules import only, shown_by

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_ledger.divergence import Finding
    from a2a_ledger.events import Json, JsonObject


def diverges(story: Story) -> Finding:
    """Return the one finding of a story, which is about the history."""
    finding = only(story)
    assert (finding.rule, finding.about, finding.rejects) == ("history-divergence", "peer", False)
    return finding


def two_turns(story: Story) -> None:
    """Send, be asked, answer: u1 and u2 of ours, a1 of the peer between them."""
    story.bind(story.answer(story.begun(), task("input-required", history=[ours("m1")])))
    story.answer(story.ask(task_id="T1", context="C1", message_id="m2", text="the second"), task("working"))


# ---- content


def test_the_history_says_that_we_sent_something_else() -> None:
    story = Story()
    story.working()
    story.polled(history=[ours("m1", "go, and pay 100")])
    finding = diverges(story)
    assert (finding.certainty, finding.subject) == ("certain", "content:m1")
    assert finding.observed == {"kind": "content", "message": "m1", "said_by": "client", "pointer": "/history"}
    assert shown_by(finding) == [1, 2, 6]  # the capture, our message, the history


def test_the_history_says_that_the_peer_itself_said_something_else() -> None:
    story = Story()
    story.working()
    story.polled("input-required", text="which quarter?")  # its id is s1
    story.polled(history=[ours("m1"), said("s1", "which year?")])
    finding = diverges(story)
    assert finding.observed["said_by"] == "peer"
    assert shown_by(finding) == [1, 6, 8]


def test_a_message_of_ours_that_stands_under_the_role_of_the_agent_is_another() -> None:
    story = Story()
    story.working()
    story.polled(history=[said("m1", "go")])
    assert diverges(story).observed["kind"] == "content"


def test_it_is_found_once_however_often_it_is_shown_and_again_when_it_changes_again() -> None:
    story = Story()
    story.working()
    for text in ("x", "x", "go", "x"):
        story.polled(history=[ours("m1", text)])
    assert len(story.findings()) == 1


def test_a_history_that_is_all_invented_gives_a_bounded_number_of_findings() -> None:
    story = Story()
    story.working()
    story.polled(history=[said(f"p{n}", "one") for n in range(40)])
    for text in ("two", "three", "four", "five", "six"):
        story.polled(history=[said(f"p{n}", text) for n in range(40)])
    assert len(story.findings()) <= 40


# ---- order


def test_two_messages_of_ours_stand_in_another_order_than_we_sent_them() -> None:
    story = Story()
    two_turns(story)
    story.polled(history=[ours("m2", "the second"), ours("m1")])
    finding = diverges(story)
    assert (finding.subject, finding.certainty) == ("order", "certain")
    assert (finding.observed["earlier"], finding.observed["later"]) == ("m1", "m2")


def test_the_history_is_in_another_order_than_it_was() -> None:
    story = Story()
    story.working()
    first = story.polled(history=[ours("m1"), said("p1", "one"), said("p2", "two")])
    second = story.polled(history=[ours("m1"), said("p2", "two"), said("p1", "one")])
    finding = diverges(story)
    assert finding.subject == "order"
    assert shown_by(finding) == [1, first.n, second.n]


# ---- gone


def test_a_message_is_gone_out_of_the_middle_of_a_longer_history() -> None:
    story = Story()
    story.working()
    story.polled(history=[ours("m1"), said("p1", "one"), said("p2", "two")])
    story.polled(history=[ours("m1"), said("p2", "two"), said("p3", "three"), said("p4", "four")])
    finding = diverges(story)
    assert (finding.subject, finding.certainty) == ("gone", "certain")
    assert finding.observed == {
        "kind": "gone",
        "message": "p1",
        "shown": 3,
        "now": 4,
        "missing": 1,
        "pointer": "/history",
    }


def test_a_history_that_holds_the_current_turn_alone_shrank() -> None:
    """As an SDK for JavaScript did: poll 1 has [u1, a1], poll 2 has [u2, a2]."""
    story = Story()
    two_turns(story)
    story.polled(history=[ours("m1"), said("a1", "done")])
    story.polled(history=[ours("m2", "the second"), said("a2", "done too")])
    finding = diverges(story)
    assert (finding.subject, finding.certainty) == ("shrunk", "suspected")
    assert finding.observed["message"] == "m1"


# ---- honest

HONEST: list[Callable[[Story], None]] = []


def honest(tell: Callable[[Story], None]) -> Callable[[Story], None]:
    """Add a story to the table."""
    HONEST.append(tell)
    return tell


@honest
def ids_are_filled_in(story: Story) -> None:
    story.working()
    story.polled(history=[ours("m1")])


@honest
def the_newest_message_stands_in_the_status_until_the_next_one_comes(story: Story) -> None:
    """As a2a-sdk does it, and as the cassette T26 shows it."""
    story.working()
    story.polled("input-required", text="which quarter?", history=[ours("m1")])
    story.polled("working", history=[ours("m1"), said("s1", "which quarter?")])
    story.polled("completed", text="which quarter?", history=[ours("m1"), said("s1", "which quarter?")])


@honest
def back_from_the_history_into_the_status(story: Story) -> None:
    story.working()
    story.polled(history=[ours("m1"), said("s1", "so far")])
    story.polled(text="so far", history=[ours("m1"), said("p2", "two"), said("p3", "three")])


@honest
def trimmed_as_it_was_asked_for(story: Story) -> None:
    story.working()
    whole: list[Json] = [ours("m1"), *(said(f"p{n}", "x") for n in range(6))]
    for length in (2, 0, None, 4, 100, 1):
        story.polled(history=whole[-length:] if length else [] if length == 0 else whole, history_length=length)


@honest
def longer_than_before_and_trimmed_as_it_was_asked_for(story: Story) -> None:
    story.working()
    story.polled(history=[ours("m1"), said("p1", "x")])
    story.polled(history=[said("p3", "x3"), said("p4", "x4"), said("p5", "x5")], history_length=3)


@honest
def no_history_at_all(story: Story) -> None:
    story.working()
    story.polled(history=[ours("m1"), said("p1", "x")])
    story.polled()
    story.polled(history=[])
    story.polled(history=None)


@honest
def answers_that_overtook_each_other(story: Story) -> None:
    story.working()
    slow = story.ask("GetTask", task_id="T1")
    story.polled(history=[ours("m1"), said("p1", "x"), said("p2", "y")])
    story.answer(slow, task("working", history=[ours("m1"), said("p1", "x")]))
    story.polled(history=[ours("m1"), said("p1", "x"), said("p2", "y")])


@honest
def shorter_answers_of_another_method(story: Story) -> None:
    story.working()
    story.polled(history=[ours("m1"), said("p1", "x"), said("p2", "y")])
    story.answer(story.ask("CancelTask", task_id="T1"), task("canceled", history=[said("p2", "y")]))


@honest
def no_ids_at_all(story: Story) -> None:
    story.working()
    anonymous: list[Json] = [{"role": "agent", "parts": [{"type": "text", "text": str(n)}]} for n in range(3)]
    story.polled(history=anonymous)
    story.polled(history=[*anonymous, {"role": "agent", "parts": [{"type": "text", "text": "new"}]}])


@honest
def new_ids_on_every_answer(story: Story) -> None:
    story.working()
    for turn in range(3):
        story.polled(history=[said(f"r{turn}-{n}", str(n)) for n in range(3 + turn)])


@honest
def one_message_twice_and_its_first_copy_trimmed(story: Story) -> None:
    story.working()
    twice = said("s1", "so far")
    story.polled(history=[ours("m1"), twice, said("p1", "x"), twice])
    story.polled(history=[said("p1", "x"), twice], history_length=2)


@honest
def two_sends_at_once_in_either_order(story: Story) -> None:
    story.bind(story.answer(story.begun(), task("input-required")))
    second = story.ask(task_id="T1", message_id="m2")
    third = story.ask(task_id="T1", message_id="m3")
    story.answer(third, task("working"))
    story.answer(second, task("working"))
    story.polled(history=[ours("m1"), ours("m3"), ours("m2")])


@honest
def a_push_that_was_long_under_way(story: Story) -> None:
    story.working()
    old = task("working", history=[ours("m1"), said("p1", "x")])
    story.polled(history=[ours("m1"), said("p1", "x"), said("p2", "y")])
    story.push({"task": old})
    story.polled(history=[ours("m1"), said("p1", "x"), said("p2", "y")])


@honest
def two_tasks_of_one_resend(story: Story) -> None:
    story.bind(story.answer(story.begun(), task("working", history=[ours("m1"), said("p1", "x")])))
    copy: JsonObject = {**ours("m1"), "taskId": "T2"}
    story.answer(story.ask(), task("working", task_id="T2", history=[copy, said("q1", "y")]))
    story.answer(story.ask("GetTask", task_id="T2"), task("working", task_id="T2", history=[copy, said("q1", "y")]))


@honest
def a_stream_that_ignores_the_history_length(story: Story) -> None:
    """HistoryLength is ignored on streams by some, and 0 means all to others."""
    story.bind(story.answer(story.begun(), task("input-required", history=[ours("m1"), said("p1", "x")])))
    stream = story.ask("SendStreamingMessage", task_id="T1", message_id="m2", history_length=0)
    story.stream_event(stream, {"task": task("working", history=[ours("m1"), said("p1", "x"), ours("m2")])}, 0)
    story.stream_event(stream, update("completed"), 1)
    story.polled("completed", history=[ours("m2")], history_length=1)


@honest
def other_spellings_of_the_same(story: Story) -> None:
    story.working()
    story.polled(history=[{**ours("m1"), "role": "user", "parts": [{"kind": "text", "text": "go"}]}])
    story.polled(history=[{**ours("m1"), "parts": [{"text": "g"}, {"text": "o", "mediaType": "text/plain"}]}])
    story.polled(history=[{"messageId": "m1", "role": 1, "content": [{"text": "go"}]}])
    story.polled(history=[{**ours("m1"), "metadata": {"seen": True}, "extensions": ["urn:x"]}])


@pytest.mark.parametrize("tell", HONEST, ids=lambda tell: tell.__name__)
def test_an_honest_history_gives_no_finding(tell: Callable[[Story], None]) -> None:
    story = Story()
    tell(story)
    assert story.rules() == []


def test_a_long_history_is_compared_in_its_newest_part() -> None:
    story = Story()
    story.working()
    long: list[Json] = [said(f"p{n}", str(n)) for n in range(600)]
    story.polled(history=long)
    story.polled(history=[*long, said("p600", "600")])
    assert story.rules() == []
    story.polled(history=[*long[:-1], said("p599", "changed")])
    assert diverges(story).subject == "content:p599"
