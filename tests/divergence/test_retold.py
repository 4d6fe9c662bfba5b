"""What was said is said again: resends, streams taken up again, pushes twice over, polls between. On every wire.

Honest agents and clients do all of this, and nothing of it is a contradiction. Behind the honest stories stand those
in which the same motions hide one, and it is still found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.divergence.story import API_KEY, OAUTH, artifact, card, made, said, task, update
from tests.divergence.wires import WIRES, Wire

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_ledger.events import JsonObject

HONEST: list[Callable[[Wire], None]] = []
WHOLE = (artifact("one, "), artifact("two, ", append=True), artifact("three", append=True, last=True))
TEXT = "one, two, three"


def honest(tell: Callable[[Wire], None]) -> Callable[[Wire], None]:
    """Add a story to the table."""
    HONEST.append(tell)
    return tell


def progress(text: str, state: str = "working") -> JsonObject:
    """Return a status update with a word of its own, so that no two are equal."""
    told = update(state)
    status = told["statusUpdate"]
    assert isinstance(status, dict)
    status["status"] = {"state": f"TASK_STATE_{state.upper()}", "message": said(f"p-{text}", text)}
    return told


def pinned(wire: Wire) -> JsonObject:
    """Return the pin that an agent echoes."""
    frozen = next(record for record in wire.story.records if record.type == "contract.captured.v1")
    return {"contractHash": frozen.data["contract_hash"], "form": "a2a-contract/1"}


def streamed(wire: Wire, *payloads: JsonObject) -> None:
    """Begin, send over a stream, and give these events."""
    wire.begin()
    stream = wire.send(streaming=True)
    wire.tell(stream, {"task": task("submitted")}, *payloads)


def second(state: str = "working", **others: JsonObject) -> JsonObject:
    """Return the Task that a resend opened."""
    return {"task": task(state, task_id="T2", context="C-T2", **others)}


# ---- resends


@honest
def a_resend_opens_a_second_task_and_the_first_ends_before_it(wire: Wire) -> None:
    wire.begin()
    wire.answer(wire.send(), {"task": task("working")})
    wire.answer(wire.send(), second("submitted"))
    wire.poll("completed")
    wire.poll("working", task_id="T2")
    wire.poll("completed", task_id="T2")
    wire.poll("completed")


@honest
def a_resend_after_a_failure(wire: Wire) -> None:
    wire.begin()
    wire.answer(wire.send(), {"task": task("failed")})
    again = wire.send(streaming=True)
    wire.tell(again, second("submitted"), update("working", task_id="T2", context="C-T2"))
    wire.tell(again, update("completed", task_id="T2", context="C-T2"))


@honest
def the_second_task_was_never_acknowledged(wire: Wire) -> None:
    wire.begin()
    wire.answer(wire.send(), {"task": task("working", pin=pinned(wire))})
    wire.answer(wire.send(), second())
    wire.poll("completed", pin=pinned(wire))
    wire.poll("completed", task_id="T2")


@honest
def a_send_that_is_answered_as_it_was_answered_before(wire: Wire) -> None:
    """An agent that keeps answers by message id gives the first one, whatever has become of the task."""
    wire.begin()
    wire.answer(wire.send(), {"task": task("submitted")})
    wire.poll("completed")
    wire.answer(wire.send(), {"task": task("submitted")})


@honest
def a_stream_that_is_opened_by_the_same_message_once_more(wire: Wire) -> None:
    streamed(wire, progress("10 %"), WHOLE[0])
    again = wire.send(streaming=True)
    wire.tell(again, {"task": task("submitted")}, progress("10 %"), *WHOLE, progress("99 %"), update("completed"))
    wire.poll("completed", artifacts=made(TEXT))


@honest
def a_card_fetch_before_a_resend_whose_task_is_rejected(wire: Wire) -> None:
    wire.begin()
    wire.send()  # the connection broke
    wire.story.fetch(wire.served, purpose="pre-send")
    wire.answer(wire.send(), {"task": task("rejected")})


# ---- streams taken up again


@honest
def a_finished_task_is_told_from_its_start(wire: Wire) -> None:
    """The stream broke, a poll saw the end, and the client subscribes all the same: much of it is new to it."""
    streamed(wire, progress("10 %"))
    wire.poll("completed", artifacts=made(TEXT))
    again = wire.ask("SubscribeToTask")
    wire.tell(again, {"task": task("submitted")}, progress("10 %"), progress("50 %"), *WHOLE, update("completed"))


@honest
def a_finished_task_is_told_from_where_the_stream_broke(wire: Wire) -> None:
    streamed(wire, WHOLE[0])
    wire.poll("completed", artifacts=made(TEXT))
    again = wire.ask("SubscribeToTask")
    wire.tell(again, progress("50 %"), *WHOLE[1:], {"task": task("completed", artifacts=made(TEXT))})


@honest
def a_snapshot_has_the_chunk_that_comes_next(wire: Wire) -> None:
    streamed(wire, WHOLE[0])
    again = wire.ask("SubscribeToTask")
    wire.tell(again, {"task": task("working", artifacts=made("one, two, "))}, *WHOLE[1:], update("completed"))
    wire.poll("completed", artifacts=made(TEXT))


@honest
def a_snapshot_lacks_the_chunk_that_came_before(wire: Wire) -> None:
    """A store that lags behind its stream: the second chunk is in neither."""
    streamed(wire, *WHOLE[:2])
    again = wire.ask("SubscribeToTask")
    wire.tell(again, {"task": task("working", artifacts=made("one, "))}, WHOLE[2], update("completed"))
    wire.poll("completed", artifacts=made(TEXT))


@honest
def a_snapshot_of_a_time_that_was_never_seen(wire: Wire) -> None:
    streamed(wire, WHOLE[0])
    wire.poll("completed", artifacts=made(TEXT))
    again = wire.ask("SubscribeToTask")
    wire.tell(again, {"task": task("working", artifacts=made("one, two"))}, update("completed"))


@honest
def hundreds_of_words_and_chunks_told_again(wire: Wire) -> None:
    """More of each than is remembered."""
    words = [progress(f"{index} ‰") for index in range(300)]
    chunks = [artifact(f"{index}, ", append=index > 0, last=index == 299) for index in range(300)]
    streamed(wire, *words, *chunks, update("completed"))
    again = wire.ask("SubscribeToTask")
    wire.tell(again, {"task": task("submitted")}, *words, *chunks, update("completed"))
    wire.tell(wire.ask("SubscribeToTask"), *chunks[100:], update("completed"))
    wire.poll("completed", artifacts=made(*(f"{index}, " for index in range(300))))


@honest
def two_subscriptions_and_a_poll_at_once(wire: Wire) -> None:
    wire.begin()
    stream = wire.send(streaming=True)
    wire.tell(stream, {"task": task("submitted")}, WHOLE[0])
    other = wire.ask("SubscribeToTask")
    wire.tell(other, {"task": task("working", artifacts=made("one, "))})
    wire.tell(stream, WHOLE[1])
    wire.poll("working", artifacts=made("one, "))
    wire.tell(other, WHOLE[1])
    wire.poll("working", artifacts=made("one, two, "))
    wire.tell(stream, WHOLE[2], update("completed"))
    wire.poll("completed", artifacts=made(TEXT))
    wire.tell(other, WHOLE[2], update("completed"))


# ---- pushes


@honest
def every_push_comes_twice_and_late(wire: Wire) -> None:
    streamed(wire, progress("10 %"), *WHOLE, update("completed"))
    told: list[JsonObject] = [
        {"task": task("submitted")},
        progress("10 %"),
        progress("20 %"),
        *WHOLE,
        update("completed"),
    ]
    wire.push(*told, *told)
    wire.poll("completed", artifacts=made(TEXT))
    wire.push({"task": task("completed", artifacts=made(TEXT))}, {"task": task("working", artifacts=made("one, "))})


@honest
def a_push_from_before_the_acknowledgement(wire: Wire) -> None:
    wire.begin()
    wire.answer(wire.send(), {"task": task("working", pin=pinned(wire))})
    wire.push({"task": task("submitted")}, {"task": task("working")})
    wire.poll("completed", pin=pinned(wire))


@honest
def a_push_from_before_the_acknowledgement_of_a_finished_task(wire: Wire) -> None:
    wire.begin()
    wire.answer(wire.send(), {"task": task("completed", pin=pinned(wire))})
    wire.push({"task": task("submitted")}, {"task": task("completed")})


@honest
def a_cancelled_task_whose_work_comes_late(wire: Wire) -> None:
    wire.begin()
    stream = wire.send(streaming=True)
    wire.tell(stream, {"task": task("submitted")}, progress("10 %"))
    wire.answer(wire.ask("CancelTask"), {"task": task("canceled")})
    wire.tell(stream, progress("20 %"), update("canceled"))
    wire.push(progress("20 %"), progress("30 %"), artifact("one, "))
    wire.tell(wire.ask("SubscribeToTask"), {"task": task("submitted")}, progress("20 %"), update("canceled"))
    wire.answer(wire.ask("CancelTask"), {"task": task("canceled")})


# ---- what is asked for


@honest
def several_turns_with_a_login_between(wire: Wire) -> None:
    wire.begin()
    login: JsonObject = {"schemes": ["oauth"], "scopes": ["tasks:read"]}
    wire.answer(wire.send(), {"task": task("auth-required", data=login, text="Please sign in")})
    stream = wire.send("m2", "signed in", task_id="T1", streaming=True)
    wire.tell(stream, {"task": task("working")}, update("input-required"))
    wire.answer(wire.send("m3", "the second", task_id="T1"), {"task": task("working")})
    wire.tell(wire.ask("SubscribeToTask"), {"task": task("working")}, *WHOLE, update("completed"))
    wire.poll("completed", artifacts=made(TEXT))


@pytest.mark.parametrize("name", WIRES)
@pytest.mark.parametrize("tell", HONEST, ids=lambda tell: tell.__name__)
def test_honest_traffic_that_says_things_again_gives_no_finding(tell: Callable[[Wire], None], name: str) -> None:
    wire = Wire(name)
    tell(wire)
    assert wire.rules() == []


def test_every_wire_is_understood() -> None:
    for name in WIRES:
        wire = Wire(name)
        streamed(wire, update("working"))
        wire.answer(wire.send("m2", task_id="T1"), {"task": task("working")})
        wire.poll()
        wire.tell(wire.ask("SubscribeToTask"), update("completed"))
        wire.answer(wire.ask("CancelTask"), {"task": task("completed")})
        told = [record.data for record in wire.story.records if record.type == "message.recorded.v1"]
        asked = [data["method"] for data in told if data["direction"] == "out"]
        assert asked == ["SendStreamingMessage", "SendMessage", "GetTask", "SubscribeToTask", "CancelTask"]
        assert all(data["binding"] == ("JSONRPC" if name == "0.3" else name) for data in told)
        assert [(data["task_id"], data["state_read"]) for data in told if data["direction"] == "in"] == [
            *[("T1", state) for state in ("submitted", "working", "working", "working", "completed", "completed")]
        ]


# ---- what is still found

FOUND: list[tuple[Callable[[Wire], None], list[str]]] = []


def found(*rules: str) -> Callable[[Callable[[Wire], None]], Callable[[Wire], None]]:
    """Add a story to the table, with the rules that find something in it."""

    def add(tell: Callable[[Wire], None]) -> Callable[[Wire], None]:
        FOUND.append((tell, [*rules]))
        return tell

    return add


@found("illegal-transition")
def an_equal_answer_to_a_new_question(wire: Wire) -> None:
    """Who asks how it stands now is told that it works: no redelivery, though it was said so before."""
    wire.begin()
    wire.answer(wire.send(), {"task": task("working")})
    for state in ("working", "completed", "working"):
        wire.poll(state)


@found("illegal-transition")
def the_second_task_goes_on_behind_its_end(wire: Wire) -> None:
    wire.begin()
    wire.answer(wire.send(), {"task": task("working")})
    wire.answer(wire.send(), second("completed"))
    wire.poll("working")
    wire.poll("working", task_id="T2")


@found("illegal-transition")
def another_end_in_a_stream_taken_up_again(wire: Wire) -> None:
    streamed(wire, update("completed"))
    wire.tell(wire.ask("SubscribeToTask"), {"task": task("submitted")}, update("failed"))


@found("illegal-transition", "duplicate-id")
def another_message_of_one_id_is_no_resend(wire: Wire) -> None:
    wire.begin()
    wire.answer(wire.send(), {"task": task("submitted")})
    wire.poll("completed")
    wire.answer(wire.send(text="stop", task_id="T1"), {"task": task("submitted")})


@found("pin-dropped")
def the_second_task_drops_what_it_acknowledged(wire: Wire) -> None:
    wire.begin()
    wire.answer(wire.send(), {"task": task("working")})
    wire.answer(wire.send(), second(pin=pinned(wire)))
    wire.poll("completed", task_id="T2")


@found("pin-dropped")
def a_push_from_behind_the_acknowledgement(wire: Wire) -> None:
    wire.begin()
    wire.answer(wire.send(), {"task": task("working", pin=pinned(wire))})
    wire.push({"task": task("completed")})


@found("artifact-rewritten")
def another_stream_tells_the_whole_otherwise(wire: Wire) -> None:
    streamed(wire, *WHOLE, update("completed"))
    wire.tell(wire.ask("SubscribeToTask"), WHOLE[0], artifact("2", append=True, last=True), update("completed"))


@found("artifact-rewritten")
def a_finished_snapshot_in_a_stream_taken_up_again(wire: Wire) -> None:
    streamed(wire, *WHOLE, update("completed"))
    wire.tell(wire.ask("SubscribeToTask"), {"task": task("completed", artifacts=made("one, two"))})


@found("rejected-after-probe")
def a_card_fetch_behind_the_resend(wire: Wire) -> None:
    wire.begin()
    wire.send()
    again = wire.send()
    wire.story.fetch(wire.served, purpose="diagnostic")
    wire.answer(again, {"task": task("rejected")})


@pytest.mark.parametrize("name", WIRES)
@pytest.mark.parametrize(("tell", "rules"), FOUND, ids=lambda value: getattr(value, "__name__", ""))
def test_what_contradicts_is_found_on_every_wire(tell: Callable[[Wire], None], rules: list[str], name: str) -> None:
    wire = Wire(name)
    tell(wire)
    assert sorted(rule for rule, _, _ in wire.rules()) == sorted(rules)


# ---- demands

DEMANDS: list[tuple[JsonObject, str | None]] = [
    ({"scheme": "corp"}, "certain"),  # a name of the frozen card
    ({"schemes": ["corp", "other"]}, "certain"),
    ({"security": [{"corp": []}]}, "certain"),
    ({"scheme": "basic", "type": "http"}, "certain"),  # a scheme object, as a card of 0.3 has it
    ({"form": {"authentication": {"type": "http", "scheme": "basic"}}}, "certain"),
    ({"securitySchemes": {"other": {"type": "mutualTLS"}}}, "certain"),
    ({"need": {"mtlsSecurityScheme": {}}}, "certain"),  # and one of 1.0
    ({"auth": {"type": "apiKey", "in": "header", "name": "X-Key", "scheme": "keys"}}, "certain"),
    ({"type": "apiKey", "in_": "header", "name": "X-Key"}, "certain"),
    ({"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "https://x/t", "scopes": {}}}}, None),  # is offered
    ({"requiredScheme": "mtls"}, "suspected"),
    ({"authentication": {"schemes": ["apiKey"]}}, "suspected"),
    ({"securityRequirements": [{"schemes": {"mtls": {"list": []}}}]}, "suspected"),
    ({"type": "apiKey", "label": "How does your CRM log in?"}, "suspected"),
    ({"scheme": "mtls"}, "suspected"),
    ({"schemes": ["apiKey"]}, "suspected"),
    ({"scheme": "mtls", "nested": {"authScheme": "mtls"}}, "suspected"),
    ({"requiredScheme": "basic"}, None),
    ({"authSchemes": ["digest"]}, None),
    ({"form": {"authentication": {"schemes": ["basic", "digest"]}}}, None),
    ({"security": [{"basic": []}]}, None),
    ({"connector": {"type": "http", "authentication": "basic"}}, None),
    ({"scheme": "basic"}, None),
    ({"question": "Which plan?", "schemes": ["Basic", "Premium"]}, None),
    ({"question": "Which colours?", "supportedSchemes": ["basic", "digest"]}, None),
    ({"type": "object", "properties": {"scheme": {"type": "string", "enum": ["basic"]}}, "scopes": ["x"]}, None),
    ({"connectors": [{"type": "http", "url": "https://x.example"}], "schemes": {"mutual": {"fee": 3}}}, None),
    ({"schemes": ["mtls", "oauth"]}, None),  # one way of several is the frozen one
]


@pytest.mark.parametrize(("data", "certainty"), DEMANDS)
@pytest.mark.parametrize("name", WIRES)
def test_data_of_a_question_is_a_demand_where_it_can_be_nothing_else(
    data: JsonObject, certainty: str | None, name: str
) -> None:
    wire = Wire(name)
    wire.begin(card({"oauth": OAUTH, "corp": API_KEY}, [{"oauth": ()}]))
    wire.answer(wire.send(), {"task": task("input-required", data=data)})
    assert wire.rules() == ([] if certainty is None else [("auth-demand", certainty, "peer")])


@pytest.mark.parametrize("data", [{"scheme": "basic"}, {"schemes": ["Basic"]}])
@pytest.mark.parametrize("name", WIRES)
def test_where_authentication_is_due_any_scheme_is_a_demand(data: JsonObject, name: str) -> None:
    wire = Wire(name)
    wire.begin()
    wire.answer(wire.send(), {"task": task("auth-required", data=data)})
    assert wire.rules() == [("auth-demand", "certain", "peer")]
