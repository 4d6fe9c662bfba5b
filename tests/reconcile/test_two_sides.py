"""A client's record and the agent's record of the same exchanges."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.events import ContractCaptured, MessageRecorded
from a2a_ledger.reconcile import reconcile
from tests.divergence.story import card, task, update
from tests.reconcile.sides import REQUIRED, Dispute, kinds, side

if TYPE_CHECKING:
    from a2a_ledger.events import JsonObject


def test_two_honest_records_of_one_task_are_consistent(two: Dispute) -> None:
    two.answered(two.begun(), "working")
    two.polled()
    two.polled("completed")
    found = two.reconciled()
    report = found.tasks[0]
    assert found.verdict == "consistent"
    assert report.contracts == "same"
    assert report.stances == ("client", "agent")
    assert report.peer_task == "T1"
    assert report.matched_by[0] == "peer-task"
    assert report.legs.to_json() == {"both": 6, "only_a": 0, "only_b": 0, "differ": 0, "cannot_tell": 0, "unseen": 0}
    assert report.differences == []
    assert found.unmatched == (0, 0)


def test_which_side_is_given_first_makes_no_difference(two: Dispute) -> None:
    client_request, agent_request = two.begun()
    two.client.answer(client_request, task("completed", text="yes"))
    two.agent.answer(agent_request, task("completed", text="no"))
    forth = reconcile(side(two.client), side(two.agent)).tasks[0]
    back = reconcile(side(two.agent), side(two.client)).tasks[0]
    assert forth.verdict == back.verdict == "contradiction"
    assert back.stances == ("agent", "client")
    assert [(d.kind, d.a, d.b) for d in forth.differences] == [(d.kind, d.b, d.a) for d in back.differences]


def test_another_answer_on_the_agents_side_is_a_contradiction_with_its_place(two: Dispute) -> None:
    client_request, agent_request = two.begun()
    told = two.client.answer(client_request, task("completed", text="paid 10"))
    recorded = two.agent.answer(agent_request, task("completed", text="paid 100"))
    report = two.report()
    assert report.verdict == "contradiction"
    (difference,) = report.differences
    assert (difference.kind, difference.a, difference.b) == ("answer-differs", told.n, recorded.n)
    assert difference.pointer == "/result/task/status/message/parts/0/text"
    assert (report.legs.both, report.legs.differ) == (1, 1)


def test_json_that_a_proxy_spelled_anew_is_the_same_leg(two: Dispute) -> None:
    client_request, agent_request = two.begun()
    said = {"jsonrpc": "2.0", "id": 1, "result": {"task": task("completed", text="grüße", data={"n": 1})}}
    two.client.answer(client_request, body=json.dumps(said, indent=2, ensure_ascii=False).encode())
    respelled = json.dumps(said, sort_keys=True).replace('"n": 1', '"n": 1.0e0')
    assert "1.0e0" in respelled
    two.agent.answer(agent_request, body=respelled.encode())
    assert two.report().verdict == "consistent"


def test_true_and_one_are_not_the_same_json(two: Dispute) -> None:
    client_request, agent_request = two.begun()
    two.client.answer(client_request, task("completed", data={"paid": True}))
    two.agent.answer(agent_request, task("completed", data={"paid": 1}))
    assert kinds(two.report()) == [("answer-differs", "contradiction")]


def test_a_body_with_two_meanings_is_compared_by_octets_alone(two: Dispute) -> None:
    client_request, agent_request = two.begun()
    twice = b'{"jsonrpc":"2.0","id":1,"result":{"id":"T1","status":{"state":"TASK_STATE_WORKING"},"n":1,"n":2}}'
    two.client.answer(client_request, body=twice)
    two.agent.answer(agent_request, body=twice.replace(b'"n":1,', b'"n":3,'))
    assert kinds(two.report()) == [("answer-differs", "contradiction")]


def test_another_status_of_the_same_answer_is_a_contradiction(two: Dispute) -> None:
    client_request, agent_request = two.begun()
    two.client.answer(client_request, task("completed"), status=200)
    two.agent.answer(agent_request, task("completed"), status=202)
    assert kinds(two.report()) == [("status-differs", "contradiction")]


def test_a_request_of_another_content_under_one_message_id_is_a_contradiction(two: Dispute) -> None:
    two.agent.capture(two.agent.serve(REQUIRED))
    two.client.capture(two.client.fetch(REQUIRED))
    two.client.ask(context="C1")
    two.agent.ask(context="C2")
    report = two.report()
    assert report.verdict == "contradiction"
    (difference,) = report.differences
    assert (difference.kind, difference.pointer) == ("request-differs", "/params/message/contextId")


def test_an_unanswered_request_that_the_agent_never_saw_may_have_been_lost(two: Dispute) -> None:
    two.answered(two.begun(), "working")
    two.client.failure(two.client.ask("CancelTask", task_id="T1"), kind="timeout")
    report = two.report()
    assert kinds(report) == [("request-only-client", "explained")]
    assert report.verdict == "consistent"
    assert report.legs.only_a == 1


def test_an_answered_request_that_the_agent_never_saw_cannot_be_decided(two: Dispute) -> None:
    two.answered(two.begun(), "working")
    two.client.answer(two.client.ask("CancelTask", task_id="T1"), task("canceled"))
    report = two.report()
    assert kinds(report) == [("exchange-only-client", "open")]
    assert report.verdict == "incomplete"


def test_an_answer_that_did_not_arrive_explains_itself(two: Dispute) -> None:
    client_request, agent_request = two.begun()
    two.client.failure(client_request, kind="closed")
    two.agent.answer(agent_request, task("completed"))
    report = two.report()
    assert kinds(report) == [("answer-only-agent", "explained")]
    assert report.verdict == "consistent"


def test_another_callers_request_at_the_agent_leaves_the_case_open(two: Dispute) -> None:
    two.answered(two.begun(), "working")
    two.agent.answer(two.agent.ask("GetTask", task_id="T1"), task("working"))
    report = two.report()
    assert kinds(report) == [("request-only-agent", "open")]
    assert (report.verdict, report.legs.only_b) == ("incomplete", 2)


def test_equal_polls_find_each_other_by_what_was_answered(two: Dispute) -> None:
    """The client's second poll was lost on the way: the third must not be taken for it."""
    url = "https://vendor.example/a2a/v1/tasks/T1"
    two.answered(two.begun(), "working")
    for state in ("working", None, "completed"):
        request = two.client.call("GET", url)
        if state is None:
            two.client.failure(request, kind="timeout")
            continue
        two.client.answer(request, body=json.dumps(task(state)).encode())
        two.agent.answer(two.agent.call("GET", url), body=json.dumps(task(state)).encode())
    report = two.report()
    assert kinds(report) == [("request-only-client", "explained")]
    assert (report.legs.both, report.legs.differ) == (6, 0)


def test_a_stream_that_was_cut_on_the_clients_side_is_a_part_of_the_agents(two: Dispute) -> None:
    client_request, agent_request = two.begun()
    for sequence, state in enumerate(("submitted", "working", "completed")):
        if sequence < 2:
            two.client.stream_event(client_request, update(state), sequence)
        two.agent.stream_event(agent_request, update(state), sequence)
    report = two.report()
    assert kinds(report) == [("answer-only-agent", "explained")]
    assert (report.verdict, report.legs.both, report.legs.only_b) == ("consistent", 3, 1)


def test_an_event_missing_in_the_middle_of_the_clients_stream_excludes_the_agents_record(two: Dispute) -> None:
    client_request, agent_request = two.begun()
    sent = [
        two.agent.stream_event(agent_request, update(state), sequence)
        for sequence, state in enumerate(("submitted", "working", "completed"))
    ]
    two.client.stream_event(client_request, update("submitted"), 0)
    two.client.stream_event(client_request, update("completed"), 1)
    report = two.report()
    (difference,) = report.differences
    assert (difference.kind, difference.weight, difference.b) == ("answer-only-agent", "contradiction", sent[1].n)


def test_each_event_that_the_client_lacks_is_named_and_no_other(two: Dispute) -> None:
    client_request, agent_request = two.begun()
    told: list[JsonObject] = [
        {"artifactUpdate": {"taskId": "T1", "artifact": {"artifactId": f"a{number}"}}} for number in range(5)
    ]
    sent = [two.agent.stream_event(agent_request, one, n) for n, one in enumerate(told)]
    for number, kept in enumerate((0, 2, 4)):
        two.client.stream_event(client_request, told[kept], number)
    report = two.report()
    assert [(d.kind, d.b) for d in report.differences] == [
        ("answer-only-agent", sent[1].n),
        ("answer-only-agent", sent[3].n),
    ]
    assert (report.legs.both, report.legs.only_b, report.legs.differ) == (4, 2, 0)


def test_an_event_more_than_the_agent_sent_before_it_was_done_is_a_contradiction(two: Dispute) -> None:
    client_request, agent_request = two.begun()
    two.client.stream_event(client_request, update("working"), 0)
    two.client.stream_event(client_request, update("completed"), 1)
    two.agent.stream_event(agent_request, update("working"), 0)
    assert kinds(two.report()) == [("answer-only-client", "open")]
    two.agent.add(_end(two, agent_request.ref), agent_request.stream)
    assert kinds(two.report()) == [("answer-only-client", "contradiction")]


def _end(two: Dispute, answers: object) -> MessageRecorded:
    request = two.agent.records[-1]
    assert request.data["leg"] == "stream-event"
    return MessageRecorded(
        peer=str(request.data["peer"]),
        direction="in",
        leg="stream-end",
        binding="JSONRPC",
        url=str(request.data["url"]),
        answers=answers,  # type: ignore[arg-type]  # the reference of a record
    )


def test_pushes_find_each_other_by_content(two: Dispute) -> None:
    two.answered(two.begun(), "working")
    two.client.push(update("completed"))
    two.agent.push(update("completed"))
    two.client.push(update("failed"))
    report = two.report()
    assert kinds(report) == [("push-only-client", "open")]
    assert report.legs.both == 3


# ---- the contract


def test_both_under_one_contract_that_had_changed_is_named(two: Dispute) -> None:
    """The silent downgrade: authorization was optional, then required; both went on as before, and it completed."""
    optional, required = card(required=[{"oauth": ()}, {}]), card(required=[{"oauth": ()}])
    served = two.agent.serve(optional)
    two.client.capture(two.client.fetch(optional))
    changed = two.agent.serve(required)
    two.agent.capture(served)  # from its own stale copy
    two.answered((two.client.ask(), two.agent.ask()))
    found = two.reconciled()
    report = found.tasks[0]
    assert found.verdict == report.verdict == "mutually-consistent-stale"
    assert report.contracts == "same"
    (difference,) = report.differences
    assert (difference.kind, difference.a, difference.b) == ("card-changed-before", None, changed.n)


def test_an_agent_that_froze_the_newer_card_and_worked_on_is_stale_too(two: Dispute) -> None:
    two.answered(two.begun(card(required=[{"oauth": ()}, {}]), frozen_by_agent=REQUIRED))
    report = two.report()
    assert report.contracts == "differ"
    assert report.verdict == "mutually-consistent-stale"
    assert kinds(report) == [("card-changed-before", "stale"), ("contracts-differ", "explained")]
    assert report.differences[1].pointer == "/security/1"


def test_a_client_that_knew_of_the_newer_card_is_stale_by_its_own_record(two: Dispute) -> None:
    two.agent.capture(two.agent.serve(REQUIRED))
    old = two.client.fetch(REQUIRED)
    newer = two.client.fetch(card(schemes={}, required=[]), purpose="diagnostic")
    two.client.capture(old)
    two.answered((two.client.ask(), two.agent.ask()))
    report = two.report()
    assert report.verdict == "mutually-consistent-stale"
    assert [(d.kind, d.a, d.b) for d in report.differences] == [("card-changed-before", newer.n, None)]


def test_a_card_that_changed_after_the_task_began_says_nothing(two: Dispute) -> None:
    two.answered(two.begun())
    two.agent.serve(card(schemes={}, required=[]))
    two.client.fetch(card(schemes={}, required=[]), purpose="diagnostic")
    assert two.report().verdict == "consistent"


def test_a_card_that_changed_in_its_prose_had_not_changed(two: Dispute) -> None:
    served = two.agent.serve(REQUIRED)
    two.client.capture(two.client.fetch(REQUIRED))
    two.agent.serve({**REQUIRED, "description": "writes better reports"})
    two.agent.capture(served)
    two.answered((two.client.ask(), two.agent.ask()))
    assert two.report().verdict == "consistent"


def test_a_change_that_was_taken_back_is_said_and_proves_nothing(two: Dispute) -> None:
    served = two.agent.serve(REQUIRED)
    two.client.capture(two.client.fetch(REQUIRED))
    two.agent.serve(card(schemes={}, required=[]))
    two.agent.serve(REQUIRED)
    two.agent.capture(served)
    two.answered((two.client.ask(), two.agent.ask()))
    report = two.report()
    assert kinds(report) == [("card-changed-and-back", "explained")]
    assert report.verdict == "consistent"


def test_another_card_of_the_agent_is_no_newer_one(two: Dispute) -> None:
    """Two paths of one host may serve two cards (bugs.md 5)."""
    served = two.agent.serve(REQUIRED)
    two.client.capture(two.client.fetch(REQUIRED))
    two.agent.serve(card(schemes={}, required=[]), url="https://vendor.example/.well-known/agent.json")
    two.agent.capture(served)
    two.answered((two.client.ask(), two.agent.ask()))
    assert two.report().verdict == "consistent"


@pytest.mark.parametrize(
    ("asked", "by_another", "verdict"),
    [
        ({"version": "1.0"}, {"version": "0.3"}, "consistent"),
        ({}, {"caller": "bearer"}, "consistent"),
        ({"version": "1.0"}, {"version": "1.0"}, "mutually-consistent-stale"),
        ({"version": "1.0"}, {}, "mutually-consistent-stale"),  # who states no version asked for no other card
    ],
)
def test_a_card_that_is_made_for_another_asker_is_no_newer_one(
    two: Dispute, asked: dict[str, str], by_another: dict[str, str], verdict: str
) -> None:
    served = two.agent.serve(REQUIRED, **asked)
    two.client.capture(two.client.fetch(REQUIRED))
    two.agent.serve(card(schemes={}, required=[]), **by_another)
    two.agent.capture(served)
    two.answered((two.client.ask(), two.agent.ask()))
    assert two.report().verdict == verdict


def test_a_card_that_the_agent_says_it_never_served_excludes_the_clients_record(two: Dispute) -> None:
    two.agent.capture(two.agent.serve(REQUIRED))
    two.client.capture(two.client.fetch(card(schemes={}, required=[])))
    two.answered((two.client.ask(), two.agent.ask()))
    assert kinds(two.report()) == [("card-never-served", "contradiction")]
    in_part = reconcile(side(two.client), side(two.agent, whole=False)).tasks[0]
    assert kinds(in_part) == [("contracts-differ", "open")]
    assert in_part.verdict == "incomplete"


def test_hashes_of_two_forms_are_not_compared(two: Dispute) -> None:
    request = two.begun()
    two.answered(request)
    other = side(two.agent)
    other.records = [
        record._replace(data={**record.data, "form": "a2a-contract/2"})
        if record.type == ContractCaptured.TYPE
        else record
        for record in other.records
    ]
    report = reconcile(side(two.client), other).tasks[0]
    assert (report.contracts, report.verdict) == ("incomparable", "incomplete")


def test_a_pin_that_names_another_contract_excludes_the_clients_record(two: Dispute) -> None:
    client_request, _ = two.begun()
    frozen = next(record for record in two.client.records if record.type == ContractCaptured.TYPE)
    pin = {
        "form": str(frozen.data["form"]),
        "contractHash": "sha256:" + "ab" * 32,
        "origin": two.client.ledger.origin,
        "task": client_request.stream.removeprefix("task:"),
    }
    held = two.agent.add(
        MessageRecorded(
            peer=str(frozen.data["peer"]),
            direction="out",
            leg="request",
            binding="JSONRPC",
            url="https://vendor.example/a2a",
            method="GetTask",
            task_id="T1",
            pin={**pin},
        ),
        "task:t1",
    )
    report = two.report()
    assert report.matched_by[0] == "pin"
    assert ("pin-says-otherwise", frozen.n, held.n) in [(d.kind, d.a, d.b) for d in report.differences]
    assert report.verdict == "contradiction"


def test_tasks_that_have_nothing_in_common_are_counted_and_decide_nothing(two: Dispute) -> None:
    two.client.capture(two.client.fetch(REQUIRED))
    two.client.answer(two.client.ask(message_id="m1"), task("working", task_id="T1"))
    two.agent.capture(two.agent.serve(REQUIRED))
    two.agent.answer(two.agent.ask(message_id="m2"), task("working", task_id="T2"))
    found = two.reconciled()
    assert (found.tasks, found.unmatched, found.verdict) == ([], (1, 1), "incomplete")
