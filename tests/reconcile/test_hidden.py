"""What one side or both do not show of a request: it may be the other's, and proves nothing against it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from a2a_ledger.codec import Content, Withheld
from a2a_ledger.events import MessageRecorded
from tests.divergence.story import URL, task
from tests.reconcile.sides import REQUIRED, Dispute, kinds


def _with_token(two: Dispute, *, hidden: bytes, other: bytes, tail: bytes = b'"}}') -> list[tuple[str, str]]:
    """Record a request whose token the client hides and the agent shows."""
    two.agent.capture(two.agent.serve(REQUIRED))
    two.client.capture(two.client.fetch(REQUIRED))
    head = b'{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":{"message":{"messageId":"m7"},"token":"'
    sent = MessageRecorded(
        peer=str(two.client.records[-1].data["peer"]),
        direction="out",
        leg="request",
        binding="JSONRPC",
        url="https://vendor.example/a2a",
        method="SendMessage",
        message_id="m7",
    )
    two.client.add(sent, "task:t1", {"body": Content((head, Withheld(hidden), tail))})
    two.agent.add(replace(sent), "task:t1", {"body": head + other + b'"}}'})
    report = two.report()
    assert (report.legs.both, report.legs.cannot_tell) in {(1, 1), (0, 0)}
    return kinds(report)


def test_a_hole_of_the_same_length_and_place_cannot_be_told(two: Dispute) -> None:
    assert _with_token(two, hidden=b"secret", other=b"SECRET") == [("request-hidden", "explained")]


def test_a_hole_of_another_length_is_not_called_different(two: Dispute) -> None:
    assert _with_token(two, hidden=b"secret", other=b"a longer secret") == [("request-hidden", "explained")]


def test_what_is_shown_beside_a_hole_is_compared_all_the_same(two: Dispute) -> None:
    found = _with_token(two, hidden=b"secret", other=b"SECRET", tail=b'","to":"me"}}')
    assert found == [("request-differs", "contradiction")]


def polled_unseen(two: Dispute, state: str) -> None:
    """Poll, on the client's side alone, in a request of which no octet is shown."""
    peer = str(two.client.records[-1].data["peer"])
    poll = MessageRecorded(
        peer=peer,
        direction="out",
        leg="request",
        binding="JSONRPC",
        url=URL,
        method="GetTask",
        method_spelled="GetTask",
        task_id="T1",
    )
    asked = two.client.add(poll, "task:t1", {"body": Content((Withheld(b"what the agent was asked"),))})
    said = json.dumps({"jsonrpc": "2.0", "id": 9, "result": task(state)}).encode()
    told = replace(poll, direction="in", leg="response", status=200, answers=asked.ref)
    two.client.add(told, "task:t1", {"body": said})


@pytest.mark.parametrize("others", ["working", "completed"])
def test_a_hidden_request_is_none_that_was_answered_otherwise(two: Dispute, others: str) -> None:
    two.answered(two.begun(), "working")
    two.agent.answer(two.agent.ask("GetTask", task_id="T1"), task(others, text="to another caller"))
    assert two.report().legs.only_b == 2
    polled_unseen(two, "working")
    report = two.report()
    assert (report.verdict, kinds(report)) == (
        "incomplete",
        [("exchange-only-client", "open"), ("request-only-agent", "open")],
    )
    body = json.dumps({"jsonrpc": "2.0", "id": 9, "result": task("working")}).encode()
    two.agent.answer(two.agent.ask("GetTask", task_id="T1"), body=body)
    report = two.report()
    assert sorted(kinds(report)) == [("request-hidden", "explained"), ("request-only-agent", "open")]
    assert (report.legs.both, report.legs.only_b) == (4, 2)
