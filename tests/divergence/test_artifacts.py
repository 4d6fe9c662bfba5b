"""`artifact-rewritten` and `late-after-final`: what a task made, and when it was finished."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.divergence.story import URL, Story, artifact, card, made, said, task, update
from tests.divergence.test_rules import only, shown_by

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_ledger.codec import Record
    from a2a_ledger.events import Json, JsonObject


def streamed(story: Story, *events: JsonObject) -> Record:
    """Send over a stream that begins with a snapshot, and give these events; return the request."""
    story.capture(story.fetch(card()))
    request = story.ask("SendStreamingMessage")
    story.bind(story.stream_event(request, {"task": task("working")}, 0))
    go_on(story, request, *events)
    return request


def go_on(story: Story, request: Record, *events: JsonObject) -> None:
    """Give more events of a stream."""
    for sequence, event in enumerate(events, start=1):
        story.stream_event(request, event, sequence)


WHOLE = (artifact("one, "), artifact("two, ", append=True), artifact("three", append=True, last=True))
"""An artifact in three chunks."""


# ---- artifact-rewritten


def test_a_chunk_behind_the_last_one() -> None:
    story = Story()
    streamed(story, *WHOLE, artifact("four", append=True))
    finding = only(story)
    assert (finding.rule, finding.about, finding.certainty, finding.subject) == (
        "artifact-rewritten",
        "peer",
        "certain",
        "artifact:A1",
    )
    assert finding.observed == {"artifact": "A1", "kind": "appended", "complete_by": "last-chunk"}
    assert len(shown_by(finding)) == 3  # capture, last chunk, the one behind it


def test_the_whole_anew_behind_the_last_chunk() -> None:
    story = Story()
    streamed(story, *WHOLE, artifact("one, two, 3", last=True))
    assert only(story).observed["kind"] == "replaced"


def test_a_later_snapshot_has_another_content() -> None:
    story = Story()
    streamed(story, *WHOLE, update("completed"))
    answer = story.polled("completed", artifacts=made("one, two"))
    finding = only(story)
    assert (finding.rule, finding.observed["kind"]) == ("artifact-rewritten", "replaced")
    assert finding.trigger.n == answer.n


@pytest.mark.parametrize("state", ["completed", "failed", "canceled", "rejected"])
def test_a_terminal_state_completes_what_has_no_last_chunk(state: str) -> None:
    story = Story()
    streamed(story, artifact("one"), update(state))
    story.polled(state, artifacts=made("two"))
    assert only(story).observed == {"artifact": "A1", "kind": "replaced", "complete_by": state}


def test_two_snapshots_of_a_finished_task_differ() -> None:
    story = Story()
    story.working()
    story.polled("completed", artifacts=made("one"))
    story.polled("completed", artifacts=made("two"))
    story.polled("completed", artifacts=made("two"))  # once an artifact
    assert only(story).rule == "artifact-rewritten"


def test_a_push_of_a_whole_finished_task_counts() -> None:
    story = Story()
    story.working()
    story.polled("completed", artifacts=made("one"))
    story.push({"task": task("completed", artifacts=made("two"))})
    assert only(story).rule == "artifact-rewritten"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"data": {"sum": 10}}, {"data": {"sum": 100}}),
        ({"raw": "AAAA"}, {"raw": "AAAB"}),
        ({"url": "https://x/1"}, {"url": "https://x/2"}),
        ({"text": "x"}, {"data": "x"}),
        ({"text": "x", "url": "https://x/1"}, {"text": "x", "url": "https://x/2"}),
        ({"file": {"bytes": "AAAA", "uri": "https://x/1"}}, {"file": {"bytes": "AAAA", "uri": "https://x/2"}}),
    ],
)
def test_every_kind_of_part_counts(before: JsonObject, after: JsonObject) -> None:
    story = Story()
    story.working()
    for part in (before, after):
        listed: list[Json] = [{"artifactId": "A1", "parts": [part]}]
        story.polled("completed", artifacts=listed)
    assert only(story).rule == "artifact-rewritten"


BOTH: JsonObject = {"file": {"bytes": "AA==", "uri": "https://x/1"}}


@pytest.mark.parametrize("kept", [{"raw": "AA"}, {"raw": "AA==\n"}, {"url": "https://x/1"}, BOTH])
def test_a_copy_with_one_of_two_contents_of_a_part_is_no_other_artifact(kept: JsonObject) -> None:
    story = Story()
    chunk: JsonObject = {"taskId": "T1", "contextId": "C1", "artifact": {"artifactId": "A1", "parts": [BOTH]}}
    streamed(story, {"artifactUpdate": {**chunk, "lastChunk": True}}, update("completed"))
    listed: list[Json] = [{"artifactId": "A1", "parts": [kept]}]
    story.polled("completed", artifacts=listed)
    assert story.findings() == []
    other: list[Json] = [{"artifactId": "A1", "parts": [{"raw": "AAAB"}]}]
    story.polled("completed", artifacts=other)
    assert only(story).rule == "artifact-rewritten"


# ---- late-after-final


def test_an_artifact_behind_the_terminal_state_on_the_same_stream() -> None:
    story = Story()
    streamed(story, update("completed"), artifact("late"))
    finding = only(story)
    assert (finding.rule, finding.about, finding.subject) == ("late-after-final", "peer", "artifact-update")
    assert (finding.observed["state"], finding.observed["then"]) == ("completed", "artifact-update")


def test_a_message_behind_the_terminal_state_on_the_same_stream() -> None:
    story = Story()
    streamed(story, update("completed"), {"message": said("p1", "by the way", taskId="T1")})
    assert only(story).subject == "message"


def old_stream(story: Story, *events: JsonObject) -> None:
    """Send over a stream of A2A 0.3."""
    old: JsonObject = {"name": "old", "description": "", "version": "1", "protocolVersion": "0.3.0", "url": URL}
    old |= {"capabilities": {}, "defaultInputModes": ["text"], "defaultOutputModes": ["text"], "skills": []}
    story.capture(story.fetch(old), version="0.3", credential=())
    request = story.ask("message/stream", version=None, credential=())
    go_on(story, request, *events)


def old_update(state: str, *, final: bool) -> JsonObject:
    """Return a status update of A2A 0.3."""
    return {
        "kind": "status-update",
        "taskId": "T1",
        "contextId": "C1",
        "status": {"state": state},
        "final": final,
    }


OLD_CHUNK: JsonObject = {
    "kind": "artifact-update",
    "taskId": "T1",
    "contextId": "C1",
    "artifact": {"artifactId": "A1", "parts": [{"kind": "text", "text": "x"}]},
}


def test_more_behind_the_final_update_of_0_3() -> None:
    story = Story()
    old_stream(story, old_update("input-required", final=True), old_update("working", final=False))
    finding = only(story)
    assert (finding.rule, finding.subject) == ("late-after-final", "status-update")


def test_a_chunk_behind_both_the_last_chunk_and_the_end() -> None:
    story = Story()
    streamed(story, *WHOLE, update("completed"), artifact("four", append=True))
    assert [rule for rule, _, _ in story.rules()] == ["artifact-rewritten", "late-after-final"]


# ---- honest

HONEST: list[Callable[[Story], None]] = []


def honest(tell: Callable[[Story], None]) -> Callable[[Story], None]:
    """Add a story to the table."""
    HONEST.append(tell)
    return tell


@honest
def chunks_then_the_whole_in_one_part_or_in_three(story: Story) -> None:
    streamed(story, *WHOLE, update("completed"))
    story.polled("completed", artifacts=made("one, two, three"))
    story.polled("completed", artifacts=made("one, ", "two, ", "three"))


@honest
def chunks_cut_otherwise_in_a_second_stream(story: Story) -> None:
    request = streamed(story, WHOLE[0])
    second = story.ask("SubscribeToTask", task_id="T1")
    story.stream_event(second, {"task": task("working", artifacts=made("one, "))}, 0)
    for event in WHOLE[1:]:
        story.stream_event(request, event)
        story.stream_event(second, event)
    for stream in (request, second):
        story.stream_event(stream, update("completed"))
    story.polled("completed", artifacts=made("one, two, three"))


@honest
def two_streams_from_the_start(story: Story) -> None:
    request = streamed(story)
    second = story.ask("SubscribeToTask", task_id="T1")
    story.stream_event(second, {"task": task("working")}, 0)
    for event in (*WHOLE, update("completed")):
        story.stream_event(request, event)
        story.stream_event(second, event)


@honest
def reconnected_behind_the_first_chunks(story: Story) -> None:
    streamed(story, WHOLE[0])
    second = story.ask("SubscribeToTask", task_id="T1")
    go_on(story, second, *WHOLE[1:], update("completed"))  # no snapshot: where it stands is not known
    story.polled("completed", artifacts=made("one, two, three"))


@honest
def chunks_told_again_on_a_later_stream(story: Story) -> None:
    streamed(story, *WHOLE)
    second = story.ask("SubscribeToTask", task_id="T1")
    go_on(story, second, *WHOLE, update("completed"))


@honest
def replaced_while_it_was_made(story: Story) -> None:
    streamed(story, artifact("draft"), artifact("better"), artifact("best", last=True), update("completed"))
    story.polled("completed", artifacts=made("best"))


@honest
def growing_in_polls(story: Story) -> None:
    story.working()
    for text in ("o", "on", "one"):
        story.polled(artifacts=made(text))
    story.polled("completed", artifacts=made("one!"))
    story.polled("completed", artifacts=made("one!"))


@honest
def store_that_lags_behind_the_stream(story: Story) -> None:
    streamed(story, *WHOLE)
    story.polled("working", artifacts=made("one, "))
    story.polled("working", artifacts=made("one, two, "))
    story.polled("completed", artifacts=made("one, two, three"))


@honest
def poll_that_was_overtaken(story: Story) -> None:
    request = streamed(story, WHOLE[0])
    slow = story.ask("GetTask", task_id="T1")
    go_on(story, request, artifact("all new", last=True), update("completed"))
    story.answer(slow, task("working", artifacts=made("something else")))


@honest
def stream_that_a_poll_overtook(story: Story) -> None:
    request = streamed(story, WHOLE[0])
    story.polled("completed", artifacts=made("one, two, three"))
    go_on(story, request, *WHOLE[1:], update("completed"))


@honest
def pushes_behind_the_stream(story: Story) -> None:
    streamed(story, *WHOLE, update("completed"))
    for event in (*WHOLE, update("completed"), *WHOLE):
        story.push(event)
    story.push({"task": task("working", artifacts=made("one, "))})


@honest
def not_mentioned(story: Story) -> None:
    streamed(story, *WHOLE, update("completed"))
    story.polled("completed")
    story.polled("completed", artifacts=[])
    story.polled("completed", artifacts=made("another one", name="A2"))


@honest
def other_names_and_spellings(story: Story) -> None:
    story.working()
    parts = (
        '{"data": {"n": 3, "list": [1, 2.5, -0]}, "mediaType": "application/json"}',
        '{"kind": "data", "data": {"list": [1.0, 2.50, 0.0], "n": 3e0}}',
        '{"data": {"data": {"n": 3, "list": [1, 2.5, 0]}}}',
    )
    for index, part in enumerate(parts):
        made_so = f'{{"artifactId": "A1", "name": "v{index}", "metadata": {{"x": {index}}}, "parts": [{part}]}}'
        whole = f'{{"id": "T1", "status": {{"state": "TASK_STATE_COMPLETED"}}, "artifacts": [{made_so}]}}'
        body = f'{{"jsonrpc": "2.0", "id": 1, "result": {whole}}}'
        story.answer(story.ask("GetTask", task_id="T1"), body=body.encode())


@honest
def files_in_every_spelling(story: Story) -> None:
    story.working()
    parts: list[JsonObject] = [
        {"raw": "-_8=", "filename": "a"},
        {"kind": "file", "file": {"bytes": "+/8"}},
        {"file": {"fileWithBytes": "+/8=", "mimeType": "x/y"}},
    ]
    for part in parts:
        listed: list[Json] = [{"artifactId": "A1", "parts": [part]}]
        story.polled("completed", artifacts=listed)


@honest
def parts_of_a_kind_that_nobody_knows(story: Story) -> None:
    story.working()
    for part in ({"hologram": 1}, {"hologram": 2}, {}):
        listed: list[Json] = [{"artifactId": "A1", "parts": [dict(part)]}]
        story.polled("completed", artifacts=listed)


@honest
def the_end_said_again(story: Story) -> None:
    request = streamed(story, *WHOLE, update("completed"))
    go_on(story, request, update("completed"), {"task": task("completed", artifacts=made("one, two, three"))})
    go_on(story, request, WHOLE[2])


@honest
def another_stream_behind_the_end_of_one(story: Story) -> None:
    streamed(story, update("input-required"))
    again = story.ask("SendStreamingMessage", task_id="T1", message_id="m2")
    go_on(story, again, update("working"), *WHOLE, update("completed"))


@honest
def an_interrupted_state_is_no_end_from_1_0_on(story: Story) -> None:
    streamed(story, update("input-required"), update("working"), *WHOLE, update("completed"))


@honest
def a_terminal_state_that_is_not_final_yet_in_0_3(story: Story) -> None:
    old_stream(story, old_update("completed", final=False), OLD_CHUNK, old_update("completed", final=True))


def test_a_stream_is_judged_by_the_version_that_it_was_asked_for_in() -> None:
    story = Story()
    story.capture(story.fetch(card()))
    request = story.ask("message/stream", version=None)
    go_on(story, request, old_update("completed", final=False), OLD_CHUNK, old_update("completed", final=True))
    assert story.rules() == [("version-skew", "certain", "client")]


@honest
def numbered_artifacts_of_0_1(story: Story) -> None:
    story.working()
    for text in ("x", "y"):
        listed: list[Json] = [{"index": 0, "parts": [{"type": "text", "text": text}]}]
        story.polled("completed", artifacts=listed)


@honest
def stalled_behind_its_last_artifact(story: Story) -> None:
    """The client closed the stream, and the server never stored the end: it says "working" for ever."""
    streamed(story, update("working"), artifact("all of it", last=True))
    for _ in range(20):
        story.polled("working", artifacts=made("all of it"))


@honest
def cancel_that_is_acknowledged_and_never_done(story: Story) -> None:
    story.bind(story.answer(story.begun(), task("input-required")))
    for state in ("input-required", "working", "working"):
        story.answer(story.ask("CancelTask", task_id="T1"), task(state))
        story.polled(state)


@pytest.mark.parametrize("tell", HONEST, ids=lambda tell: tell.__name__)
def test_honest_work_gives_no_finding(tell: Callable[[Story], None]) -> None:
    story = Story()
    tell(story)
    assert story.rules() == []
