"""Pushes: what a stock SDK posts is no skew, and an id of somebody else's is seen there as in an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.divergence.stated import as_recorded
from tests.divergence.story import PEER, Story, card, task, update

if TYPE_CHECKING:
    from a2a_ledger.events import JsonObject


def of_0_3() -> Story:
    """Tell of a task over an interface of 0.3."""
    story = Story()
    served = card()
    served["supportedInterfaces"] = [{"url": "https://vendor.example/a2a", "protocolVersion": "0.3"}]
    story.capture(story.fetch(served), version="0.3")
    answered: JsonObject = {"kind": "task", "id": "T1", "contextId": "C1", "status": {"state": "working"}}
    story.bind(story.answer(story.ask("message/send", version="0.3"), answered, wrapped=False))
    return story


def test_the_envelope_of_a_push_is_no_finding() -> None:
    story = of_0_3()
    for state in ("working", "input-required", "completed"):
        story.push(update(state))
    assert story.findings() == []


def test_rule_set_1_found_it_certain_and_each_time() -> None:
    story = of_0_3()
    story.push(update("working"))
    story.push(update("completed"))
    assert [(one.rule, one.certainty) for one in story.findings(rule_set="1")] == [("version-skew", "certain")] * 2


def test_the_envelope_of_an_answer_is_certain() -> None:
    story = of_0_3()
    story.answer(story.ask("message/send", version="0.3", message_id="m2"), {"task": task("working")}, wrapped=False)
    (found,) = story.findings()
    assert (found.rule, found.about, found.certainty, found.subject) == (
        "version-skew",
        "peer",
        "certain",
        "envelope:1.0",
    )
    assert f"contradicted:{PEER}" in as_recorded(found).tags


@pytest.mark.parametrize(
    ("payload", "subject"),
    [
        (update("working", context="C2"), "context:C2"),
        ({"task": task("completed", context="C2")}, "context:C2"),
        ({"task": task("working", task_id="T2")}, "task:T2"),
    ],
)
def test_a_push_with_an_id_of_somebody_else(payload: JsonObject, subject: str) -> None:
    story = Story()
    story.working()
    pushed = story.push(payload)
    (found,) = story.findings()
    assert (found.rule, found.certainty, found.about, found.subject) == ("identity-swap", "certain", "peer", subject)
    assert found.trigger.n == pushed.n
    assert story.findings(rule_set="1") == []


def test_pushes_of_each_task_that_a_resend_opened() -> None:
    story = Story()
    story.working()
    story.answer(story.ask(), task("working", task_id="T2", context="C2"))
    for task_id, context in (("T1", "C1"), ("T2", "C2")):
        story.push(update("completed", task_id=task_id, context=context))
    assert story.findings() == []
    story.push(update("completed", task_id="T2", context="C1"))
    assert [one.subject for one in story.findings()] == ["context:C1"]


def test_a_push_before_anything_was_answered_names_the_task() -> None:
    story = Story()
    story.begun()
    story.push(update("working", task_id="T7"))
    assert story.findings() == []


def test_a_task_that_was_bound_without_a_context() -> None:
    story = Story()
    story.bind(story.answer(story.begun(), task("working", context=None)))
    story.push(update("working"))
    story.push(update("completed"))
    assert story.findings() == []


# ---- requests within one major version


@pytest.mark.parametrize(("frozen", "spoken"), [("1.1", "1.0"), ("1.0", "1.1"), ("1", "1.0")])
def test_one_major_version_is_one_version(frozen: str, spoken: str) -> None:
    story = Story()
    served = card()
    served["supportedInterfaces"] = [
        {"url": "https://vendor.example/a2a", "protocolBinding": "JSONRPC", "protocolVersion": frozen}
    ]
    story.capture(story.fetch(served), version=frozen)
    story.answer(story.ask(version=spoken), task("working"))
    assert story.findings() == []
    assert [(one.rule, one.certainty) for one in story.findings(rule_set="1")] == [("version-skew", "certain")]


def test_another_major_version_is_skew() -> None:
    story = Story()
    story.capture(story.fetch(card()))
    story.ask(version="2.0")
    assert story.rules() == [("version-skew", "certain", "client")]
