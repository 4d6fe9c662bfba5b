"""Records of a bundle come from anybody: whatever stands in them, judging never raises."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_ledger.contract import default_profile
from a2a_ledger.divergence import Cases, RecordLog
from tests.divergence.stated import as_recorded
from tests.divergence.story import API_KEY, Story, artifact, card, made, ours, said, task, update

if TYPE_CHECKING:
    from a2a_ledger.codec import Record
    from a2a_ledger.events import Json, JsonObject

TEXTS = st.text(st.characters(codec=None), max_size=12)
"""Of any characters, lone surrogates among them: JSON can spell them, and a record cannot hold them."""
JSON: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
NAMES = [
    "schemes",
    "security",
    "requiredScheme",
    "scopes",
    "state",
    "status",
    "task",
    "id",
    "taskId",
    "contextId",
    "kind",
    "message",
    "parts",
    "data",
    "error",
    "code",
    "jsonrpc",
    "result",
    "history",
    "messageId",
    "role",
    "text",
    "artifacts",
    "artifact",
    "artifactId",
    "append",
    "lastChunk",
    "final",
    "file",
    "bytes",
    "extensions",
    "skillId",
    "\udfff",
]
BODIES: st.SearchStrategy[Json] = st.recursive(
    st.sampled_from(
        ["TASK_STATE_WORKING", "auth-required", "mutualTLS", "T1", "C1", "2.0", "\ud800", -32601, -32009, None, True]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=20,
)


def _told() -> Story:
    story = Story()
    request = story.working()
    story.fetch(card(skills=[]), purpose="application", etag='W/"1"')
    story.answer(request, status=401, headers=[("WWW-Authenticate", "Basic")], body=b"")
    story.answer(request, status=307, headers=[("Location", "https://elsewhere.example")], body=b"")
    story.answer(request, task("auth-required", data={"schemes": ["mtls"]}))
    story.answer(request, task("failed", data={"skill": "report"}))
    story.push(update("completed"))
    story.polled("completed", history=[ours("m1", "else"), said("p1", "x")], artifacts=made("one"))
    story.polled("completed", history=[said("p1", "y")], artifacts=made("two"))
    stream = story.ask("SendStreamingMessage", task_id="T1", message_id="m1", text="other")
    for event in (artifact("x", last=True), artifact("y", append=True), update("completed"), artifact("z", name="A2")):
        story.stream_event(stream, event)
    story.ask("CancelTask", task_id="T1")
    story.fetch(card({"key": API_KEY}, [{"key": ()}]), etag='W/"1"')
    return story


TOLD = _told().records


def _judged(records: list[Record]) -> int:
    failures: list[object] = []
    cases = Cases(
        RecordLog(records), default_profile(), on_failure=lambda record, error: failures.append((record.n, error))
    )
    found = [finding for record in records for finding in cases.judge(record)]
    assert failures == []
    for finding in found:
        as_recorded(finding)
    return len(found)


def test_the_story_has_something_to_say() -> None:
    assert _judged(TOLD) > 4


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_fields_of_any_kind(data: st.DataObject) -> None:
    records = list(TOLD)
    for _ in range(data.draw(st.integers(1, 4))):
        index = data.draw(st.integers(0, len(records) - 1))
        fields: JsonObject = {**records[index].data}
        name = data.draw(st.sampled_from(sorted(fields)))
        value = data.draw(JSON)
        if name != "method" or isinstance(value, str | int | None):
            fields[name] = value
        records[index] = records[index]._replace(data=fields)
    _judged(records)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_bodies_of_any_kind(data: st.DataObject) -> None:
    story = Story()
    request = story.working()
    for _ in range(3):
        payload = data.draw(BODIES)
        body = json.dumps(
            {"jsonrpc": "2.0", "id": 1, "result": payload} if data.draw(st.booleans()) else payload
        ).encode()
        how = data.draw(st.integers(0, 2))
        if how == 0:
            story.answer(request, body=body, status=data.draw(st.sampled_from([200, 302, 401, 403, 500])))
        elif how == 1:
            story.stream_event(request, cast("JsonObject", payload))
        else:
            story.push(cast("JsonObject", payload))
    _judged(story.records)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_contracts_of_any_kind(data: st.DataObject) -> None:
    story = Story()
    served = card()
    for name in data.draw(st.sets(st.sampled_from(sorted(served)), max_size=4)):
        served[name] = data.draw(JSON)
    fetch = story.fetch(served)
    story.capture(fetch)
    request = story.ask(credential=())
    story.answer(request, task("auth-required", data={"schemes": ["mtls"]}))
    story.answer(request, task("completed"))
    story.fetch(card())
    _judged(story.records)


@pytest.mark.parametrize(("rule_set", "times"), [("1", 2), ("2", 1)])
@pytest.mark.parametrize(
    "challenges",
    [
        [("WWW-Authenticate", 'Basic realm="users", Basic realm="admins"')],
        [("WWW-Authenticate", 'Basic realm="users"'), ("WWW-Authenticate", 'Basic realm="admins"')],
    ],
    ids=["one header", "two headers"],
)
def test_one_thing_said_twice_in_a_message_is_found_once(
    challenges: list[tuple[str, str]], rule_set: str, times: int
) -> None:
    """Rule set 1 was released finding it twice, and its logs are judged again as they were."""
    story = Story()
    served = card(required=({"oauth": ("tasks:read",)},))
    story.answer(story.begun(served), status=401, headers=challenges, body=b"")
    found = [one for one in story.findings(rule_set=rule_set) if one.rule == "auth-demand"]
    assert [one.observed["asked"] for one in found] == ["Basic"] * times
