"""A finding follows from the log up to its trigger: wherever a reader begins, and however little it keeps."""

from __future__ import annotations

import gc
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_ledger.codec import Record
from a2a_ledger.contract import default_profile
from a2a_ledger.divergence import RULE_SETS, Cases, RecordLog
from a2a_ledger.divergence.spoken import MESSAGES
from a2a_ledger.wire import Contents
from tests.divergence.story import Story, artifact, card, made, ours, said, task, update
from tests.divergence.test_signature_broken import BROKEN, VALID

if TYPE_CHECKING:
    from a2a_ledger.divergence import Finding

BILLING = "https://vendor.example/ext/billing/v1"


def long_story() -> Story:
    """Tell of three tasks at once, with a finding of every rule that set 2 added, and more turns than are kept."""
    story = Story()
    story.fetch(card(description="before"), signature=VALID)
    fetch = story.fetch(card(), signature=BROKEN)
    requests: dict[str, Record] = {}
    for name in ("t1", "t2", "t3"):
        story.capture(fetch, task=name, extensions=[BILLING])
        requests[name] = story.ask("SendStreamingMessage", task=name, message_id=f"{name}-m1", extensions=[BILLING])
        story.bind(story.stream_event(requests[name], {"task": task("working", task_id=name)}), task=name)
    for turn in range(12):
        for name in requests:
            poll = story.ask("GetTask", task=name, task_id=name)
            history = [ours(f"{name}-m1"), *(said(f"{name}-{n}", str(n)) for n in range(turn))]
            if turn == 9:
                history = [ours(f"{name}-m1", "changed"), *history[:0:-1]]
            story.answer(poll, task("working", task_id=name, history=[*history]))
    for name, request in requests.items():
        chunks = (artifact("one"), artifact("two", append=True, last=True), artifact("three", append=True))
        for event in (*chunks, update("completed"), artifact("late", name="A2")):
            for part in event.values():
                assert isinstance(part, dict)
                part["taskId"] = name
            story.stream_event(request, event)
        story.ask(task=name, task_id=name, message_id=f"{name}-m1", text="stop")
        poll = story.ask("GetTask", task=name, task_id=name)
        story.answer(poll, task("completed", task_id=name, artifacts=made("one")))
        body = b'{"jsonrpc":"2.0","id":1,"result":{"id":"%s","x":1,"x":2}}' % name.encode()
        story.answer(story.ask("GetTask", task=name, task_id=name), body=body)
    return story


STORY = long_story()
WHOLE = STORY.findings()


def test_the_story_has_a_finding_of_every_new_rule() -> None:
    assert {finding.rule for finding in WHOLE} == RULE_SETS["2"] - RULE_SETS["1"]
    assert {finding.subject for finding in WHOLE if finding.rule == "history-divergence"} >= {"order", "content:t1-m1"}


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_reader_who_begins_anywhere_and_keeps_little_finds_the_same(data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, len(STORY.records)))
    skipped = data.draw(st.sets(st.sampled_from(range(len(STORY.records)))))
    cases = Cases(RecordLog(STORY.records), default_profile(), tasks=data.draw(st.integers(1, 3)), peers=1)
    judged = [record for record in STORY.records[begin:] if record.n not in skipped]
    found = [finding for record in judged for finding in cases.judge(record)]
    wanted = {record.n for record in judged}
    assert found == [finding for finding in WHOLE if finding.trigger.n in wanted]


def test_a_reader_who_starts_anew_before_every_event_finds_the_same() -> None:
    log = RecordLog(STORY.records)
    found: list[Finding] = []
    for record in STORY.records:
        found += Cases(log, default_profile()).judge(record)
    assert found == WHOLE


@pytest.mark.parametrize("cut", [5, 40, 77])
def test_what_comes_later_changes_nothing(cut: int) -> None:
    cases = Cases(RecordLog(STORY.records[:cut]), default_profile())
    found = [finding for record in STORY.records[:cut] for finding in cases.judge(record)]
    assert found == [finding for finding in WHOLE if finding.trigger.n < cut]


def test_no_case_holds_on_to_a_record_or_to_what_stood_in_it() -> None:
    body = "a body that nobody needs any more " * 100
    story = Story()
    story.working()
    story.answer(story.ask(task_id="T1"), {"task": task("working", history=[said("p1", body)])})
    cases = Cases(RecordLog(story.records), default_profile())
    for record in story.records:
        cases.judge(record)
        for case in cases._tasks.values():  # pyright: ignore[reportPrivateUsage] - what they hold is what is tested
            held = _reached_from(case)
            assert not [one for one in held if isinstance(one, Record | Contents)]
            assert not [one for one in held if isinstance(one, str | bytes) and len(one) > len(body)]


def _reached_from(begin: object) -> list[object]:
    """Return all data that an object holds, directly or through others."""
    found: dict[int, object] = {}
    waiting = [begin]
    while waiting:
        one = waiting.pop()
        if id(one) not in found and not isinstance(one, type | ModuleType | FunctionType):
            found[id(one)] = one
            waiting += gc.get_referents(one)
    return list(found.values())


def test_what_is_kept_of_a_task_is_bounded() -> None:
    story = Story()
    story.working()
    cases = Cases(RecordLog(story.records), default_profile())
    for record in story.records:
        cases.judge(record)
    (case,) = cases._tasks.values()  # pyright: ignore[reportPrivateUsage] - its size is what is tested
    for turn in range(MESSAGES // 100 + 2):
        listed = [said(f"p{turn}-{n}", "x" * 50) for n in range(200)]
        answer = story.polled(history=[*listed], artifacts=[*made("x", name=f"A{turn}"), *made("y", name=f"B{turn}")])
        for record in story.records[answer.n - 1 : answer.n + 1]:
            cases.judge(record)
    assert len(case.told[""].spoken.messages) == MESSAGES
    assert len(case.told[""].spoken.histories) == 1
    assert len(case.told[""].spoken.artifacts) <= 64
