"""What says nothing any more was changed as much as what says something else; what cannot be compared was not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.divergence.story import Story, made, ours, task

if TYPE_CHECKING:
    from a2a_ledger.events import Json, JsonObject

EMPTY: list[JsonObject] = [{"parts": []}, {"parts": [{"text": ""}]}, {}]
NOT_COMPARABLE: list[JsonObject] = [{"parts": [{"text": ""}, {"kind": "hologram"}]}, {"parts": "x"}, {"parts": [5]}]


def completed_twice(then: JsonObject, state: str = "completed") -> Story:
    story = Story()
    story.working()
    story.polled("completed", artifacts=made("100"))
    story.polled(state, artifacts=[{"artifactId": "A1", **then}])
    return story


@pytest.mark.parametrize("then", EMPTY)
def test_a_complete_artifact_is_emptied(then: JsonObject) -> None:
    (found,) = completed_twice(then).findings()
    assert (found.rule, found.subject, found.observed["kind"]) == ("artifact-rewritten", "artifact:A1", "replaced")


@pytest.mark.parametrize("then", NOT_COMPARABLE)
def test_an_artifact_that_cannot_be_compared(then: JsonObject) -> None:
    assert completed_twice(then).findings() == []


def test_an_artifact_may_begin_empty() -> None:
    story = Story()
    story.working()
    story.polled("working", artifacts=[{"artifactId": "A1", "parts": []}])
    story.polled("completed", artifacts=made("100"))
    assert story.findings() == []


def history_with(then: JsonObject) -> Story:
    story = Story()
    story.working()
    shown = {name: value for name, value in ours("m1").items() if name != "parts"}
    story.polled(history=[{**shown, **then}])
    return story


@pytest.mark.parametrize("then", EMPTY)
def test_our_message_is_emptied_in_the_history(then: JsonObject) -> None:
    (found,) = history_with(then).findings()
    assert (found.rule, found.subject, found.certainty) == ("history-divergence", "content:m1", "certain")


@pytest.mark.parametrize("then", NOT_COMPARABLE)
def test_a_message_that_cannot_be_compared(then: JsonObject) -> None:
    assert history_with(then).findings() == []


def test_what_was_sent_empty_may_be_shown_so() -> None:
    story = Story()
    story.bind(story.answer(story.begun(), task("working")))
    story.answer(story.ask(message_id="m2", task_id="T1", text=""), task("working", history=[ours("m1")]))
    story.polled(history=[ours("m1"), {"messageId": "m2", "role": "ROLE_USER"}])
    assert story.findings() == []


@pytest.mark.parametrize(
    ("pin", "found"),
    [
        ("x", ["pin-dropped"]),
        ({}, ["pin-dropped"]),
        ({"contractHash": f"sha256:{'0' * 64}"}, ["pin-dropped"]),
        ({"form": "a2a-contract/1", "contractHash": 5}, ["pin-dropped"]),
        ({"form": "another/1", "contractHash": f"sha256:{'0' * 64}"}, []),  # of another form: not comparable
        ({"form": "a2a-contract/1", "contractHash": f"sha256:{'0' * 64}"}, ["pin-mismatch"]),
        ("frozen", []),
    ],
)
def test_what_stands_in_the_place_of_an_acknowledged_pin(pin: Json, found: list[str]) -> None:
    story = Story()
    request = story.begun()
    frozen = story.records[1].data["contract_hash"]
    story.bind(story.answer(request, task("working", pin={"form": "a2a-contract/1", "contractHash": frozen})))
    story.polled(pin={"contractHash": frozen} if pin == "frozen" else pin)
    assert [one.rule for one in story.findings()] == found
    assert [one.rule for one in story.findings(rule_set="1")] == [rule for rule in found if rule != "pin-dropped"]


@pytest.mark.parametrize(("place", "found"), [(0, 1), (64, 1), (255, 1), (256, 0)])
def test_the_first_256_artifacts_of_a_task_are_compared(place: int, found: int) -> None:
    story = Story()
    story.working()
    for text in ("1", "2"):
        listed: list[Json] = [{"artifactId": f"A{n}", "parts": [{"text": "x"}]} for n in range(300)]
        listed[place] = {"artifactId": "Z", "parts": [{"text": text}]}
        story.polled("completed", artifacts=listed)
    assert [one.subject for one in story.findings()] == ["artifact:Z"] * found


@pytest.mark.parametrize("inner", [{"rows": [1, 2]}, {"data": [1, 2]}, {"data": {"data": "x"}}])
def test_data_in_the_json_of_the_0_3_proto_and_in_that_of_0_3(inner: JsonObject) -> None:
    """The proto wraps a DataPart's Struct in `data` once more (a2a.proto of 0.3, message DataPart)."""
    story = Story()
    story.working()
    spelled: list[JsonObject] = [{"data": {"data": inner}}, {"kind": "data", "data": inner}]
    for part in spelled:
        story.polled("completed", artifacts=[{"artifactId": "A1", "parts": [part]}])
    assert story.findings() == []


def test_other_data_is_another_content() -> None:
    story = Story()
    story.working()
    said: list[JsonObject] = [{"data": [1, 2]}, {"data": [1, 3]}]
    for inner in said:
        story.polled("completed", artifacts=[{"artifactId": "A1", "parts": [{"data": inner}]}])
    assert [one.rule for one in story.findings()] == ["artifact-rewritten"]
