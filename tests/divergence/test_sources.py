"""One honest task, recorded by several: live, and in files that are imported whenever somebody has them.

Within one source the order of the log is that of events; between two nothing says what was first. So no order of
recording makes a contradiction of honest exchanges, and what one source contradicts in itself is found all the same.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_ledger.divergence.told import SOURCES
from a2a_ledger.wire import EXTENSION
from tests.divergence.story import Story, artifact, card, made, ours, said, task, update

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from a2a_ledger.events import JsonObject

    Told: TypeAlias = Callable[[JsonObject], JsonObject]

LIVE, A, B = "", "a" * 64, "b" * 64
STATES = ("submitted", "working", "working", "working", "completed", "completed")
TEXTS = ("", "one, ", "one, two, ", "one, two, ", "one, two, three", "one, two, three")
WORD = said("s2", "two thirds are done")


class Exchange(NamedTuple):
    """Something that a client did, and the moment of the task's life from which it was answered."""

    what: str
    moment: int


def at(moment: int, pin: JsonObject) -> JsonObject:
    """Return the honest agent's Task at a moment: it grows, has its pin from moment 2 on, and ends at moment 4."""
    told = task(STATES[moment], history=[ours("m1"), *([WORD, ours("m2", "and faster")] if moment > 2 else [])])
    if TEXTS[moment]:
        told["artifacts"] = made(TEXTS[moment])
    if moment >= 2:
        told["metadata"] = {EXTENSION: pin}
    if moment == 2:
        told["status"] = {"state": "TASK_STATE_WORKING", "message": WORD}
    return told


def begun(*, reconstructed: bool = False) -> tuple[Story, JsonObject]:
    """Freeze a contract; return the log, and the pin that the agent will echo."""
    story = Story()
    story.source = A if reconstructed else LIVE
    capture = story.capture(story.fetch(card()), reconstructed=reconstructed)
    return story, {"contractHash": capture.data["contract_hash"], "form": "a2a-contract/1"}


def record(story: Story, source: str, exchange: Exchange, pin: JsonObject) -> None:
    """Record an exchange as a source has it."""
    story.source = source
    what, moment = exchange
    if what == "push":
        story.push({"task": at(moment, pin)})
    elif what == "stream":
        stream = story.ask("SubscribeToTask", task_id="T1")
        story.stream_event(stream, {"task": at(moment, pin)})
        for text in ("one, ", "two, ", "three")[moment:] if moment < 3 else ():
            story.stream_event(stream, artifact(text, append=text != "one, ", last=text == "three"))
        story.stream_event(stream, update("completed"))
    elif what == "send":
        story.answer(story.ask(), at(moment, pin))
    elif what == "more":
        again = story.ask(task_id="T1", context="C1", message_id="m2", text="and faster")
        story.answer(again, at(moment, pin))
    else:
        poll(story, at(moment, pin))


HONEST = (
    Exchange("send", 0),
    *(Exchange("poll", moment) for moment in range(6)),
    Exchange("more", 3),
    *(Exchange("push", moment) for moment in (1, 4)),
    *(Exchange("stream", moment) for moment in (0, 2, 4)),
)
"""Each may be recorded by nobody, by one, by several."""


@st.composite
def recorded(draw: st.DrawFn) -> tuple[bool, list[tuple[str, Exchange]]]:
    """Give the exchanges to sources, and lay the sources together in any order that keeps each one's own."""
    own: dict[str, list[Exchange]] = {}
    for source in (LIVE, A, B):
        chosen = draw(st.lists(st.sampled_from(HONEST), max_size=5))
        own[source] = sorted(chosen, key=lambda one: 4 if one.what == "stream" else one.moment)  # by its end
    turns = draw(st.permutations([source for source, held in own.items() for _ in held]))
    return draw(st.booleans()), [(source, own[source].pop(0)) for source in turns]


@settings(max_examples=100, deadline=None)
@given(recorded())
def test_no_order_of_honest_recordings_is_a_certain_contradiction(
    told: tuple[bool, list[tuple[str, Exchange]]],
) -> None:
    reconstructed, turns = told
    story, pin = begun(reconstructed=reconstructed)
    for source, exchange in turns:
        record(story, source, exchange, pin)
    assert story.findings() == []


def poll(story: Story, told: JsonObject) -> None:
    story.answer(story.ask("GetTask", task_id="T1"), told)


def failed(pin: JsonObject) -> JsonObject:
    return {**at(5, pin), "status": {"state": "TASK_STATE_FAILED"}}


def working(pin: JsonObject) -> JsonObject:
    return {**at(5, pin), "status": {"state": "TASK_STATE_WORKING"}}


def with_another_artifact(pin: JsonObject) -> JsonObject:
    return {**at(5, pin), "artifacts": made("another thing")}


def without_pin(pin: JsonObject) -> JsonObject:
    return {name: value for name, value in at(5, pin).items() if name != "metadata"}


def without_a_message(pin: JsonObject) -> JsonObject:
    return {**at(5, pin), "history": [ours("m1"), ours("m2", "and faster"), said("s3", "so"), said("s4", "be it")]}


def with_a_changed_message(pin: JsonObject) -> JsonObject:
    return {**at(5, pin), "history": [ours("m1", "stop"), WORD, ours("m2", "and faster")]}


def in_another_order(pin: JsonObject) -> JsonObject:
    return {**at(5, pin), "history": [WORD, ours("m1"), ours("m2", "and faster")]}


DIVERGENT: dict[str, tuple[Told, Told, str, str | None]] = {
    "ended, then working": (partial(at, 5), working, "illegal-transition", None),
    "ended, then failed": (partial(at, 5), failed, "illegal-transition", "suspected"),
    "ended, then another artifact": (partial(at, 5), with_another_artifact, "artifact-rewritten", "suspected"),
    "acknowledged, then without pin": (partial(at, 3), without_pin, "pin-dropped", None),
    "shown, then gone": (partial(at, 3), without_a_message, "history-divergence", None),
    "shown, then changed": (partial(at, 3), with_a_changed_message, "history-divergence", "suspected"),
    "shown, then in another order": (partial(at, 3), in_another_order, "history-divergence", "suspected"),
}
"""What an agent says first and then, the rule that finds it in one source, and how certain it is between two."""


def rules(story: Story, certainty: str) -> list[str]:
    return [item.rule for item in story.findings() if item.certainty == certainty]


@pytest.mark.parametrize("name", DIVERGENT)
@settings(max_examples=12, deadline=None)
@given(source=st.sampled_from((LIVE, A)), beside=recorded())
def test_what_one_source_contradicts_in_itself_is_found_beside_all_others(
    name: str, source: str, beside: tuple[bool, list[tuple[str, Exchange]]]
) -> None:
    first, then, rule, _ = DIVERGENT[name]
    story, pin = begun()
    others = [turn for turn in beside[1] if turn[0] != source]
    record(story, source, Exchange("send", 0), pin)
    for said_now in (first, then):
        for _ in range(min(3, len(others))):
            record(story, *others.pop(0), pin)
        story.source = source
        poll(story, said_now(pin))
    for turn in others:
        record(story, *turn, pin)
    found = {(item.rule, item.basis) for item in story.findings() if item.certainty == "certain"}
    assert found == {(rule, "import" if source else "live")}


@pytest.mark.parametrize("source", [LIVE, A])
def test_what_comes_behind_the_end_of_a_stream_is_found_in_every_source(source: str) -> None:
    story, pin = begun()
    record(story, B, Exchange("poll", 5), pin)
    story.source = source
    stream = story.ask("SubscribeToTask", task_id="T1")
    story.stream_event(stream, {"task": at(3, pin)})
    for payload in (update("completed"), artifact("more", name="A2")):
        story.stream_event(stream, payload)
    assert rules(story, "certain") == ["late-after-final"]


@pytest.mark.parametrize("sources", [(LIVE, A), (A, LIVE), (A, B)])
@pytest.mark.parametrize("name", DIVERGENT)
def test_two_sources_contradict_each_other_where_no_order_explains_it_and_then_suspected(
    name: str, sources: tuple[str, str]
) -> None:
    first, then, rule, between = DIVERGENT[name]
    for said_now in ((first, then), (then, first)):
        story, pin = begun()
        record(story, LIVE, Exchange("send", 0), pin)
        for source, tell in zip(sources, said_now, strict=True):
            story.source = source
            poll(story, tell(pin))
        found = {item.certainty for item in story.findings() if item.rule == rule}
        if then is with_a_changed_message and LIVE in sources and sources[said_now.index(then)] == LIVE:
            assert found == {"certain"}  # it contradicts what we sent live
        else:
            assert found == (set() if between is None else {between})


def test_the_second_import_of_a_file_is_a_source_of_its_own() -> None:
    story, pin = begun()
    for run in (None, 2):
        story.run = run
        for moment in (0, 3, 5):
            record(story, A, Exchange("poll", moment), pin)
    assert story.findings() == []


def test_rule_set_1_takes_the_order_of_the_log_for_that_of_events() -> None:
    story, pin = begun()
    record(story, LIVE, Exchange("poll", 5), pin)
    record(story, A, Exchange("poll", 1), pin)
    assert [item.rule for item in story.findings(rule_set="1")] == ["illegal-transition", "pin-dropped"]
    assert story.findings() == []


def test_a_probe_is_before_a_rejection_only_where_the_order_is_known() -> None:
    """The file's fetch and `rejected` have an order, and the live send has none with them."""
    story, _ = begun()
    story.answer(story.ask(), task("working"))
    story.source = A
    story.fetch(card(), purpose="application")
    poll(story, task("rejected"))
    assert story.findings() == []
    story.source = B
    story.answer(story.ask(), task("working"))
    story.fetch(card(), purpose="application")
    poll(story, task("rejected"))
    assert rules(story, "certain") == ["rejected-after-probe"]


def test_an_import_between_does_not_hide_what_the_client_did() -> None:
    story, pin = begun()
    story.answer(story.ask(), at(1, pin))
    story.fetch(card(), purpose="application")
    story.source = A
    story.capture(story.fetch(card()), task="t2", reconstructed=True)
    record(story, A, Exchange("poll", 1), pin)
    story.source = LIVE
    story.ask("CancelTask", task_id="T1")
    assert rules(story, "certain") == ["refetch-as-input"]


def test_the_copy_of_a_first_send_drops_no_extension_that_a_later_one_asked_for() -> None:
    story, _ = begun()
    story.answer(story.ask(), task("working"))
    story.answer(story.ask(task_id="T1", message_id="m2", extensions=["urn:billing"]), task("working"))
    story.source = A
    story.answer(story.ask(), task("working"))
    assert story.findings() == []
    story.answer(story.ask(task_id="T1", message_id="m3", extensions=["urn:billing"]), task("working"))
    story.answer(story.ask(task_id="T1", message_id="m4"), task("working"))
    assert rules(story, "certain") == ["extension-dropped"]


def test_many_files_beside_live_recording_leave_what_was_seen_live() -> None:
    story, pin = begun()
    record(story, LIVE, Exchange("poll", 5), pin)
    for number in range(SOURCES + 2):
        record(story, f"{number:064x}", Exchange("poll", 1), pin)
    story.source = LIVE
    poll(story, working(pin))
    assert rules(story, "certain") == ["illegal-transition"]


def rotated(story: Story) -> None:
    """Import a file in which the card asks for a credential, then for none any more; each task is sent as it asks."""
    story.source = A
    for number, required in enumerate([({"oauth": ()},), ()]):
        name, credential = f"{story.run or 1}-{number}", tuple(required[0]) if required else ()
        fetch = story.fetch(card(required=required), etag=f'"{number}"')
        story.capture(fetch, task=name, credential=credential, reconstructed=True)
        story.answer(story.ask(task=name, credential=credential), task("completed", task_id=name))


def test_the_cards_of_one_import_are_no_window_for_those_of_the_next() -> None:
    """The file's first card, imported again behind its last one, is no rotation back."""
    story = Story()
    for run in (None, 2, 3):
        story.run = run
        rotated(story)
    assert story.findings() == []
    assert {one.rule for one in story.findings(rule_set="1")} == {"weaker-authorization"}  # as it was released


def test_a_rotation_within_the_second_import_is_found() -> None:
    story = Story()
    rotated(story)
    story.run = 2
    rotated(story)
    story.fetch(card(), etag='"2"')
    (found,) = story.findings()
    assert (found.rule, found.tasks) == ("weaker-authorization", ("2-1",))
