"""Honest traffic gives no finding, however odd it looks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.divergence.story import API_KEY, MTLS, OAUTH, URL, Story, card, task, update

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_ledger.events import JsonObject


TOLD: list[Callable[[Story], None]] = []


def honest(tell: Callable[[Story], None]) -> Callable[[Story], None]:
    """Add a story to the table."""
    TOLD.append(tell)
    return tell


@honest
def multi_turn(story: Story) -> None:
    request = story.begun()
    story.bind(story.answer(request, task("input-required", text="Which quarter?")))
    again = story.ask(task_id="T1", context="C1", message_id="m2")
    story.answer(again, task("completed"))


@honest
def streaming(story: Story) -> None:
    story.capture(story.fetch(card()))
    request = story.ask("SendStreamingMessage")
    story.bind(story.stream_event(request, {"task": task("submitted")}, 0))
    story.stream_event(request, update("working"), 1)
    story.stream_event(request, update("completed"), 2)


@honest
def cancel(story: Story) -> None:
    story.working()
    story.answer(story.ask("CancelTask", task_id="T1"), task("canceled"))


@honest
def cancel_race(story: Story) -> None:
    story.working()
    cancel = story.ask("CancelTask", task_id="T1")
    story.answer(story.ask("GetTask", task_id="T1"), task("completed"))
    story.answer(cancel, task("canceled"))  # its request precedes the terminal record


@honest
def late_answer(story: Story) -> None:
    story.working()
    slow = story.ask("GetTask", task_id="T1")
    story.answer(story.ask("GetTask", task_id="T1"), task("completed"))
    story.answer(slow, task("working"))


@honest
def stream_outlived(story: Story) -> None:
    story.capture(story.fetch(card()))
    stream = story.ask("SendStreamingMessage")
    story.bind(story.stream_event(stream, {"task": task("submitted")}, 0))
    story.answer(story.ask("GetTask", task_id="T1"), task("completed"))
    story.stream_event(stream, update("working"), 1)
    story.stream_event(stream, update("completed"), 2)


@honest
def stream_with_hundreds_of_polls_between(story: Story) -> None:
    story.capture(story.fetch(card()))
    stream = story.ask("SendStreamingMessage")
    story.bind(story.stream_event(stream, {"task": task("submitted")}, 0))
    for _ in range(300):
        story.answer(story.ask("GetTask", task_id="T1"), task("working"))
    story.answer(story.ask("GetTask", task_id="T1"), task("completed"))
    story.stream_event(stream, update("working"), 1)


@honest
def redelivery(story: Story) -> None:
    story.working()
    story.push({"statusUpdate": update("working")["statusUpdate"]})
    story.push({"statusUpdate": update("completed")["statusUpdate"]})
    story.push({"statusUpdate": update("working")["statusUpdate"]})
    story.push({"statusUpdate": update("completed")["statusUpdate"]})


@honest
def resend_opens_a_second_task(story: Story) -> None:
    story.bind(story.answer(story.begun(), task("working")))
    story.answer(story.ask(), task("working", task_id="T2", context="C1"))


@honest
def message_answer(story: Story) -> None:
    request = story.begun()
    story.answer(request, {"message": {"messageId": "a1", "role": "ROLE_AGENT", "parts": [{"text": "hello"}]}})


@honest
def no_echo(story: Story) -> None:
    story.working()
    story.answer(story.ask("GetTask", task_id="T1"), task("completed"))


@honest
def echo(story: Story) -> None:
    request = story.begun()
    pin = _pin(story)
    story.bind(story.answer(request, task("working", pin=pin)))
    story.push({"statusUpdate": update("working")["statusUpdate"]})  # an update says nothing about the pin
    story.answer(story.ask("GetTask", task_id="T1"), task("completed", pin=pin))


def _pin(story: Story) -> JsonObject:
    frozen = next(record for record in story.records if record.type == "contract.captured.v1")
    return {"contractHash": frozen.data["contract_hash"], "form": "a2a-contract/1", "cardHash": "sha256:00"}


@honest
def echo_of_another_form(story: Story) -> None:
    request = story.begun()
    story.answer(request, task("working", pin={"contractHash": "sha256:00", "form": "a2a-contract/9"}))


@honest
def first_snapshot_without_pin(story: Story) -> None:
    story.capture(story.fetch(card()))
    request = story.ask("SendStreamingMessage")
    poll = story.ask("GetTask", task_id="T1")
    story.stream_event(request, {"task": task("working", pin=_pin(story))})
    story.answer(poll, task("working"))  # its request precedes the acknowledgement


@honest
def expired_token(story: Story) -> None:
    story.answer(story.begun(), status=401, headers=[("WWW-Authenticate", 'Bearer error="invalid_token"')], body=b"")


@honest
def scope_within(story: Story) -> None:
    challenge = 'Bearer error="insufficient_scope", scope="tasks:write"'
    story.answer(story.begun(), status=403, headers=[("WWW-Authenticate", challenge)], body=b"")


@honest
def one_way_of_several(story: Story) -> None:
    challenges = [("WWW-Authenticate", "Basic realm=x"), ("WWW-Authenticate", "Bearer")]
    story.answer(story.begun(), status=401, headers=challenges, body=b"")


@honest
def bare_401(story: Story) -> None:
    story.answer(story.begun(), status=401, body=b"denied")


@honest
def mtls_that_was_offered(story: Story) -> None:
    served = card({"oauth": OAUTH, "mtls": MTLS}, [{"oauth": ()}, {"mtls": ()}])
    request = story.begun(served)
    story.failure(request, tls_alert="certificate_required")


@honest
def unreadable_alert(story: Story) -> None:
    story.failure(story.begun(), kind="tls")


@honest
def auth_required_in_frozen_terms(story: Story) -> None:
    request = story.begun()
    data: JsonObject = {"schemes": {"oauth": {"list": ["tasks:read"]}}}
    story.answer(request, task("auth-required", data=data, text="Please authenticate with OAuth 2.0"))


@honest
def question_that_only_sounds_like_it(story: Story) -> None:
    request = story.begun()
    story.answer(request, task("input-required", text="Shall the report explain what an API key is? Please say yes."))


@honest
def data_with_an_ordinary_scheme(story: Story) -> None:
    request = story.begun()
    story.answer(request, task("input-required", data={"url": {"scheme": "https", "host": "x"}, "scope": "q3"}))


@honest
def case_and_port(story: Story) -> None:
    story.capture(story.fetch(card()), url="https://vendor.example/a2a")
    story.answer(story.ask(url="https://VENDOR.example:443/a2a"), task("completed"))


@honest
def rest_paths(story: Story) -> None:
    served = card()
    served["supportedInterfaces"] = [
        {"url": "https://vendor.example/v1", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}
    ]
    story.capture(story.fetch(served), url="https://vendor.example/v1", binding="HTTP+JSON")
    message: JsonObject = {"message": {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "go"}]}}
    sent = story.call("POST", "https://vendor.example/v1/message:send", body=message)
    story.answer(sent, body=b'{"task":{"id":"T1","contextId":"C1","status":{"state":"TASK_STATE_WORKING"}}}')
    polled = story.call("GET", "https://vendor.example/v1/tasks/T1")
    story.answer(polled, body=b'{"id":"T1","contextId":"C1","status":{"state":"TASK_STATE_COMPLETED"}}')


@honest
def old_version(story: Story) -> None:
    old: JsonObject = {
        "name": "old",
        "description": "",
        "version": "1",
        "protocolVersion": "0.2.6",
        "url": URL,
        "capabilities": {},
        "defaultInputModes": ["text"],
        "defaultOutputModes": ["text"],
        "skills": [],
    }
    story.capture(story.fetch(old), version="0.2", credential=())
    sent = story.ask("message/send", version=None, credential=())
    story.bind(story.answer(sent, {"kind": "task", "id": "T1", "contextId": "C1", "status": {"state": "working"}}))
    poll = story.ask("tasks/get", task_id="T1", version=None, credential=())
    story.answer(poll, {"kind": "task", "id": "T1", "contextId": "C1", "status": {"state": "cancelled"}})


@honest
def version_not_stated(story: Story) -> None:
    story.capture(story.fetch(card()), version=None)
    story.answer(story.ask(), task("working"))
    story.answer(story.ask("GetTask", task_id="T1"), task("completed"))


@honest
def unknown_is_a_word_of_a2a(story: Story) -> None:
    request = story.begun()
    story.answer(request, body=b'{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"T1","status":{"state":"unknown"}}}}')
    story.answer(request, task("TASK_STATE_UNSPECIFIED"))


@honest
def broken_bodies(story: Story) -> None:
    request = story.begun()
    for body in (
        b"",
        b"{",
        b"[1,2",
        b"null",
        b'{"result": 7}',
        b"\xff\xfe",
        b'{"jsonrpc":"2.0","error":{"code":-32603}}',
    ):
        story.answer(request, body=body, status=500)


@honest
def anonymous_alternative(story: Story) -> None:
    served = card({"oauth": OAUTH}, [{"oauth": ()}, {}])
    story.answer(story.begun(served, credential=()), task("completed"))


@honest
def nothing_required(story: Story) -> None:
    story.answer(story.begun(card(required=()), credential=()), task("completed"))


@honest
def credential_cannot_be_seen(story: Story) -> None:
    story.capture(story.fetch(card()), credential=(), visible=False)
    story.answer(story.ask(credential=()), task("completed"))


@honest
def mtls_is_never_seen(story: Story) -> None:
    story.capture(story.fetch(card({"mtls": MTLS}, [{"mtls": ()}])), credential=())
    story.answer(story.ask(credential=()), task("completed"))


@honest
def failed_for_its_own_reasons(story: Story) -> None:
    story.working()
    story.answer(story.ask("GetTask", task_id="T1"), task("failed", data={"code": 17, "why": "disk full"}))


@honest
def method_that_never_worked(story: Story) -> None:
    story.working()
    story.answer(story.ask("CancelTask", task_id="T1"), error={"code": -32601, "message": "no such method"})


@honest
def fetch_then_word_of_the_peer(story: Story) -> None:
    story.working()
    story.fetch(card(skills=[]), purpose="application")
    story.answer(story.ask("GetTask", task_id="T1"), task("input-required", text="which?"))
    story.ask("CancelTask", task_id="T1")


@honest
def fetch_for_a_new_task(story: Story) -> None:
    story.working()
    story.capture(story.fetch(card(), purpose="application"), task="t2")
    story.ask(task_id="T1", message_id="m2")


@pytest.mark.parametrize("purpose", ["discovery", "pre-send", "lazy", "diagnostic"])
def test_a_declared_fetch_is_no_input(purpose: str) -> None:
    story = Story()
    story.working()
    story.fetch(card(skills=[]), purpose=purpose)
    story.ask("CancelTask", task_id="T1")
    assert story.findings() == []


@honest
def fetch_before_the_first_answer(story: Story) -> None:
    story.begun()
    story.fetch(card(skills=[]), purpose="application")
    story.ask("CancelTask", task_id="T1")


@honest
def asking_is_no_act(story: Story) -> None:
    story.working()
    story.fetch(card(skills=[]), purpose="application")
    story.ask("GetTask", task_id="T1")


@honest
def rejected_without_a_probe(story: Story) -> None:
    story.answer(story.begun(), task("rejected"))


@honest
def adopted(story: Story) -> None:
    story.adopt()
    request = story.ask("GetTask", task_id="T1")
    story.answer(request, task("completed"))
    story.answer(story.ask("GetTask", task_id="T1"), task("working", task_id="T9"))


@honest
def prose_and_order(story: Story) -> None:
    story.capture(story.fetch(card(), etag='W/"1"'))
    story.ask(credential=("oauth",))
    story.fetch(card(description="writes better reports"), etag='W/"2"')


@honest
def signed_anew(story: Story) -> None:
    story.fetch(card(signatures=[{"protected": "YQ", "signature": "YQ"}]), etag='W/"1"')
    story.fetch(card(signatures=[{"protected": "YQ", "signature": "Yg"}]), etag='W/"1"')


@honest
def other_bytes_under_a_weak_tag(story: Story) -> None:
    story.fetch(card(), etag='W/"1"')
    story.fetch(b" " + json.dumps(card()).encode(), etag='W/"1"')


@honest
def tags_of_two_callers(story: Story) -> None:
    story.fetch(card(), etag='"1"')
    story.fetch(card({"key": API_KEY}, [{"key": ()}]), etag='"1"', caller="oauth")


@honest
def stricter_with_nothing_in_flight(story: Story) -> None:
    story.capture(story.fetch(card()))
    story.answer(story.ask(), task("completed"))
    story.fetch(card())  # closes the window
    story.fetch(card({"mtls": MTLS}, [{"mtls": ()}]))


@honest
def newer_requirement_is_met_all_the_same(story: Story) -> None:
    story.capture(story.fetch(card(required=())), credential=("oauth",))
    story.answer(story.ask(), task("completed"))
    story.fetch(card({"login": OAUTH}, [{"login": ()}]))  # another name, the same class


@honest
def weaker_card(story: Story) -> None:
    story.capture(story.fetch(card()))
    story.answer(story.ask(), task("completed"))
    story.fetch(card(required=()))


@honest
def two_files(story: Story) -> None:
    story.capture(story.fetch(card(required=()), how="import"), credential=(), reconstructed=True)
    story.fetch(card())  # seen live: says nothing about the time of the imported file


@pytest.mark.parametrize("tell", TOLD, ids=lambda tell: tell.__name__)
def test_honest_traffic_gives_no_finding(tell: Callable[[Story], None]) -> None:
    story = Story()
    tell(story)
    assert story.rules() == []


def test_the_table_is_not_empty() -> None:
    assert len({tell.__name__ for tell in TOLD}) == len(TOLD) > 45
