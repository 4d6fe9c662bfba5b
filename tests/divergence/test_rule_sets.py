"""Two rule sets: what was found under the old one is found again under it, and under the new one once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from a2a_ledger.cli import unfinished
from a2a_ledger.contract import default_profile
from a2a_ledger.divergence import (
    RULE_SET,
    RULE_SETS,
    RULES,
    VERIFIER,
    payload_of,
    violation_of,
    violation_tag,
    violation_tags,
)
from a2a_ledger.errors import UsageError
from a2a_ledger.statement import parse_statement
from tests.divergence.story import LOG, Story, card, ours, task, update

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_ledger.events import JsonObject

PROFILE = default_profile()
FIRST = (
    *("pin-mismatch", "version-skew", "auth-demand", "interface-drift", "auth-not-exercised"),
    *("weaker-authorization", "illegal-transition", "unknown-state", "identity-swap", "pin-dropped"),
    *("validator-lied", "halves-disagree", "refetch-as-input", "self-inflicted-cancel", "rejected-after-probe"),
    "task-error-mismatch",
)
"""The rules of set 1 as they were released."""


def told() -> Story:
    """Tell of one finding that both sets have, and of one that only the second has."""
    story = Story()
    story.working()
    story.polled("TASK_STATE_RUNNING")
    story.polled(history=[ours("m1", "something else")])
    return story


def test_the_sets() -> None:
    assert (RULE_SET, RULE_SETS["1"], RULE_SETS["2"]) == ("2", frozenset(FIRST), frozenset(RULES))


def test_the_command_line_reads_the_position_of_this_set() -> None:
    assert unfinished.VERIFIER == VERIFIER == "verifier-2"


def test_each_set_finds_what_it_has() -> None:
    story = told()
    assert [item.rule for item in story.findings()] == ["unknown-state", "history-divergence"]
    assert [item.rule for item in story.findings(rule_set="1")] == ["unknown-state"]


def test_a_violation_names_its_set() -> None:
    (old,) = told().findings(rule_set="1")
    new = told().findings()[0]
    for finding, rule_set in ((old, "1"), (new, "2")):
        payload = payload_of(finding, LOG, PROFILE)
        assert violation_of(finding, payload, PROFILE).rule_set == rule_set
        assert parse_statement(payload).predicate["rule_set"] == rule_set


def test_the_tags_of_one_finding() -> None:
    (old,) = told().findings(rule_set="1")
    new, only_new = told().findings()
    assert violation_tags(new, PROFILE) == [violation_tag(old, PROFILE), violation_tag(new, PROFILE)]
    assert violation_tags(old, PROFILE) == violation_tags(new, PROFILE)
    assert violation_tags(only_new, PROFILE) == [violation_tag(only_new, PROFILE)]


def test_what_the_agent_s_side_recorded_is_not_judged() -> None:
    story = told()
    assert story.rules() != []
    story.records = [
        record._replace(data={**record.data, "side": "server"}) if record.type == "message.recorded.v1" else record
        for record in story.records
    ]
    assert story.rules() == []


def test_only_known_sets_are_judged_by() -> None:
    with pytest.raises(UsageError, match=r"rule set '0' is not known here: choose one of 1, 2"):
        told().findings(rule_set="0")


SPELLED = ("working", "TASK_STATE_WORKING", "TASK_STATE_RUNNING", "auth-required", "cancelled", "TASK_STATE_CANCELLED")


def test_states_of_every_spelling() -> None:
    """One task as no two texts of A2A spell it: what is known is understood, and all of it kept."""
    story = Story()
    story.working()
    for spelled in (*SPELLED, "TASK_STATE_CANCELED", "canceled"):
        body = f'{{"jsonrpc":"2.0","id":1,"result":{{"id":"T1","status":{{"state":"{spelled}"}}}}}}'
        story.answer(story.ask("GetTask", task_id="T1"), body=body.encode())
    assert [(item.rule, item.subject) for item in story.findings()] == [("unknown-state", "TASK_STATE_RUNNING")]
    answers = [record.data for record in story.records if record.data.get("direction") == "in"][1:]
    assert [data["state"] for data in answers] == [*SPELLED, "TASK_STATE_CANCELED", "canceled"]
    assert [data.get("state_read") for data in answers] == [
        *("working", "working", None, "auth-required"),
        *["canceled"] * 4,
    ]


# ---- set 1 reads as it was released


def pinned(story: Story) -> JsonObject:
    frozen = next(record for record in story.records if record.type == "contract.captured.v1")
    return {"contractHash": frozen.data["contract_hash"], "form": "a2a-contract/1"}


def a_second_task_behind_the_end_of_the_first(story: Story) -> None:
    story.answer(story.begun(), task("completed"))
    story.answer(story.ask(), task("working", task_id="T2", context="C2"))


def a_second_task_without_the_pin(story: Story) -> None:
    story.answer(story.begun(), task("working", pin=pinned(story)))
    story.answer(story.ask(), task("working", task_id="T2", context="C2"))


def a_late_push_without_the_pin(story: Story) -> None:
    story.answer(story.begun(), task("working", pin=pinned(story)))
    story.push({"task": task("submitted")})


def a_stream_that_tells_what_was(story: Story) -> None:
    story.answer(story.begun(), task("completed"))
    story.stream_event(story.ask("SubscribeToTask", task_id="T1"), update("working"))


def a_form_that_asks_for_a_scheme(story: Story) -> None:
    story.answer(story.begun(), task("input-required", data={"schemes": ["Basic", "Premium"]}))


def a_fetch_before_the_resend(story: Story) -> None:
    story.begun()
    story.fetch(card(), purpose="pre-send")
    story.answer(story.ask(), task("rejected"))


@pytest.mark.parametrize(
    ("tell", "rule"),
    [
        (a_second_task_behind_the_end_of_the_first, "illegal-transition"),
        (a_second_task_without_the_pin, "pin-dropped"),
        (a_late_push_without_the_pin, "pin-dropped"),
        (a_stream_that_tells_what_was, "illegal-transition"),
        (a_form_that_asks_for_a_scheme, "auth-demand"),
        (a_fetch_before_the_resend, "rejected-after-probe"),
    ],
)
def test_what_set_1_found_it_finds_for_ever_and_set_2_does_not(tell: Callable[[Story], None], rule: str) -> None:
    story = Story()
    tell(story)
    assert [one.rule for one in story.findings(rule_set="1")] == [rule]
    assert story.findings() == []


def test_equal_octets_are_a_redelivery_in_set_1_and_an_equal_answer_to_a_new_question_is_none_in_set_2() -> None:
    story = Story()
    story.working()
    for state in ("working", "completed", "working"):
        story.polled(state)  # every answer of this story has one JSON-RPC id
    assert story.findings(rule_set="1") == []
    assert [one.rule for one in story.findings()] == ["illegal-transition"]


@pytest.mark.parametrize(
    ("challenge", "first", "second"),
    [('realm="api"', ["realm", "api"], []), ('realm="api", Basic realm="x"', ["realm", "api", "Basic"], ["Basic"])],
)
def test_a_challenge_that_begins_with_a_parameter(challenge: str, first: list[str], second: list[str]) -> None:
    """A parameter belongs to the scheme before it (RFC 9110 section 11.6.1), and here is none."""
    story = Story()
    story.answer(story.begun(), status=401, headers=[("WWW-Authenticate", challenge)], body=b"")
    assert [one.observed["asked"] for one in story.findings(rule_set="1")] == first
    assert [one.observed["asked"] for one in story.findings()] == second
