"""A real a2a-sdk server and client over loopback, in all three dialects that the server speaks."""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Any

import pytest

from a2a_ledger.wire import EXTENSION, Leg, parse_request, parse_response, parse_stream_event, split_stream
from tests.capture.agent import Agent
from tests.importer.conversation import converse

if TYPE_CHECKING:
    from collections.abc import Sequence


def read(line: dict[str, Any]) -> tuple[Leg, list[Leg]]:
    asked, answered = line["request"], line["response"]
    request = parse_request(asked["method"], asked["url"], pairs(asked), base64.b64decode(asked["body_b64"]))
    body = base64.b64decode(answered["body_b64"])
    if any("event-stream" in value for name, value in pairs(answered) if name.lower() == "content-type"):
        return request, [parse_stream_event(request, event.data) for event in split_stream(body)]
    return request, [parse_response(request, answered["status"], pairs(answered), body)]


def pairs(part: dict[str, Any]) -> Sequence[tuple[str, str]]:
    return [(name, value) for name, value in part["headers"]]


@pytest.fixture(scope="module")
def exchanges() -> list[tuple[Leg, list[Leg]]]:
    with Agent() as agent:
        tap = asyncio.run(converse(agent.url))
    return [read(line) for line in tap.exchanges()][1:]  # the first is the card fetch


def test_every_call_is_recognised_with_its_version(exchanges: list[tuple[Leg, list[Leg]]]) -> None:
    seen = {(request.binding, request.version, request.method) for request, _ in exchanges}
    methods = {"SendMessage", "SendStreamingMessage", "GetTask", "CancelTask"}
    dialects = {("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("JSONRPC", "0.3")}
    assert seen == {(binding, version, method) for binding, version in dialects for method in methods}
    assert all(request.version_stated == request.version for request, _ in exchanges)


def test_every_answer_is_of_its_requests_version_by_envelope(exchanges: list[tuple[Leg, list[Leg]]]) -> None:
    for request, answers in exchanges:
        expected = {request.version} if "Send" in str(request.method) else {None}
        assert {answer.envelope for answer in answers} == expected


def test_every_task_brings_the_pin_back_in_all_dialects(exchanges: list[tuple[Leg, list[Leg]]]) -> None:
    tasks = [(request, leg) for request, answers in exchanges for leg in answers if leg.is_task]
    assert {(request.binding, request.version) for request, _ in tasks} == {
        ("JSONRPC", "1.0"),
        ("HTTP+JSON", "1.0"),
        ("JSONRPC", "0.3"),
    }
    sent = {request.pin["contractHash"] for request, _ in tasks if request.pin}
    assert len(sent) == 1
    assert {leg.pin["contractHash"] if leg.pin else None for _, leg in tasks} == sent


def test_requests_carry_the_pin_and_ask_for_the_extension(exchanges: list[tuple[Leg, list[Leg]]]) -> None:
    sends = [request for request, _ in exchanges if "Send" in str(request.method)]
    assert {tuple(send.pin or ()) for send in sends} == {("form", "contractHash")}
    assert all(send.extensions == (EXTENSION,) and send.message_id for send in sends)


def test_states_of_a_conversation(exchanges: list[tuple[Leg, list[Leg]]]) -> None:
    for at in range(0, len(exchanges), 8):  # one client of one dialect after the other, eight calls each
        ends = [answers[-1].state_read for _, answers in exchanges[at : at + 8]]
        assert ends == [
            "completed",
            "input-required",
            "input-required",
            "completed",
            "input-required",
            "canceled",
            "canceled",
            "failed",
        ]


def test_nothing_of_it_is_odd(exchanges: list[tuple[Leg, list[Leg]]]) -> None:
    assert {leg.flags for request, answers in exchanges for leg in (request, *answers)} == {()}
    assert {leg.challenge for _, answers in exchanges for leg in answers} == {()}
    assert {leg.error for _, answers in exchanges for leg in answers} == {None}
