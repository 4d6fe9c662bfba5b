"""Real recorded A2A traffic of 0.1 to 1.0 says what its index says."""

from __future__ import annotations

import json
import re
from pathlib import Path  # noqa: TC003 - pytest reads the annotation

import pytest

from a2a_ledger.wire import Leg, parse_push, parse_request, parse_response, parse_stream_event, split_stream

POST = "https://agent.example.com/rpc"


@pytest.fixture
def traffic(corpus: Path) -> Path:
    return corpus / "corpus" / "traffic"


def exchange(traffic: Path, asked: str, answered: str) -> tuple[Leg, Leg]:
    request = parse_request("POST", POST, [], (traffic / asked).read_bytes())
    return request, parse_response(request, 200, [], (traffic / answered).read_bytes())


@pytest.mark.parametrize(
    ("asked", "answered", "spelled", "task", "context", "state"),
    [
        ("T01_1.json", "T01_2.json", "tasks/send", "task-abc-123", "session-xyz-789", "completed"),
        ("T11_1.json", "T11_2.json", "message/send", "363422be-b0f9-4692-a24d-278670e7c7f1", None, "completed"),
        ("T14_1.json", "T14_2.json", "message/send", None, None, "input-required"),
    ],
)
def test_request_and_answer(
    traffic: Path, asked: str, answered: str, spelled: str, task: str | None, context: str | None, state: str
) -> None:
    request, answer = exchange(traffic, asked, answered)
    assert (request.method_spelled, request.method) == (spelled, "SendMessage")
    assert (answer.kind, answer.is_task, answer.state_read) == ("task", True, state)
    if task is not None:
        assert answer.task_id == task
    if context is not None:
        assert answer.context_id == context


def test_an_answer_may_be_a_bare_message(traffic: Path) -> None:
    _, answer = exchange(traffic, "T12_1.json", "T12_2.json")
    assert (answer.kind, answer.is_task, answer.state, answer.envelope) == ("message", False, None, "0.3")
    assert answer.message_id == "363422be-b0f9-4692-a24d-278670e7c7f1"


def test_stream_of_0_1(traffic: Path) -> None:
    request = parse_request("POST", POST, [], (traffic / "T08_1.json").read_bytes())
    legs = [parse_stream_event(request, event.data) for event in split_stream((traffic / "T08_2.sse").read_bytes())]
    assert [(leg.kind, leg.task_id, leg.state, leg.final) for leg in legs] == [
        ("status-update", "131", "working", False),
        ("status-update", "131", "working", False),
        ("artifact-update", "131", None, False),
        ("status-update", "131", "completed", True),
    ]


def test_stream_of_0_3(traffic: Path) -> None:
    request = parse_request("POST", POST, [], (traffic / "T13_1.json").read_bytes())
    raw = (traffic / "T13_2.sse").read_bytes()
    # The specification prints its JSON over several lines; a server has to prefix each with `data:`.
    framed = re.sub(rb"\n(?!\n|data:)(?=.)", b"\ndata: ", raw)
    legs = [parse_stream_event(request, event.data) for event in split_stream(framed) if event.has_data]
    broken = legs.pop(2)  # the specification's own sample has a comma too many there
    assert (broken.kind, broken.flags) == (None, ("not-json",))
    assert [leg.kind for leg in legs] == ["task", "artifact-update", "artifact-update", "status-update"]
    assert {leg.task_id for leg in legs} == {"225d6247-06ba-4cda-a08b-33ae35c8dcfa"}
    assert (legs[0].state, legs[-1].state, legs[-1].final) == ("submitted", "completed", True)


def test_crlf_stream_as_a_server_sent_it_and_cut_after_the_last_data_line(traffic: Path) -> None:
    request = parse_request("POST", POST, [], b'{"jsonrpc":"2.0","id":1,"method":"message/stream","params":{}}')
    raw = (traffic / "T55.sse").read_bytes()
    assert b"\r\n\r\n" in raw
    whole = [parse_stream_event(request, event.data) for event in split_stream(raw) if event.has_data]
    events = [event for event in split_stream(raw.rstrip(b"\r\n")) if event.has_data]
    cut = [parse_stream_event(request, event.data) for event in events]
    assert cut == whole
    assert [event.complete for event in events] == [True] * (len(events) - 1) + [False]
    assert whole[-1].state_read == "completed"


@pytest.mark.parametrize(
    ("file", "code", "reason"),
    [
        ("T23_2.json", -32001, "TASK_NOT_FOUND"),
        ("T23_3.http", -32001, "TASK_NOT_FOUND"),
        ("T19_2.http", -32009, "VERSION_NOT_SUPPORTED"),
    ],
)
def test_the_same_fault_reads_the_same_in_both_bindings(traffic: Path, file: str, code: int, reason: str) -> None:
    text = (traffic / file).read_text()
    head, _, body = text.partition("\n\n") if file.endswith(".http") else ("HTTP/1.1 200 OK", "", text)
    request = (
        parse_request("GET", "https://agent.example.com/tasks/T1", [], b"")
        if file.endswith(".http")
        else parse_request("POST", POST, [], (traffic / "T23_1.json").read_bytes())
    )
    leg = parse_response(request, int(head.split()[1]), [], body.encode())
    assert leg.error is not None
    assert (leg.error.code, leg.error.reason) == (code, reason)


def test_push_of_1_0(traffic: Path) -> None:
    body = (traffic / "T21_3.http").read_text().partition("\n\n")[2]
    leg = parse_push([], body.encode())
    assert (leg.kind, leg.task_id, leg.state_read) == (
        "status-update",
        "43667960-d455-4453-b0cf-1bae4955270d",
        "completed",
    )


def test_list_answer_of_1_0_names_no_single_task(traffic: Path) -> None:
    head, _, body = (traffic / "T20_4.http").read_text().partition("\n\n")
    request = parse_request("GET", "https://agent.example.com/tasks?pageSize=20", [], b"")
    leg = parse_response(request, int(head.split()[1]), [], body.encode())
    assert (request.method, leg.kind, leg.task_id, leg.state) == ("ListTasks", "list", None, None)


def test_fixture_that_calls_itself_1_0_is_0_3_by_its_method(traffic: Path) -> None:
    leg = parse_request("POST", POST, [], (traffic / "T33.json").read_bytes())
    assert (leg.method, leg.version, leg.version_stated) == ("SendStreamingMessage", "0.3", None)
    assert (leg.message_id, leg.context_id) == ("msg-a2a-1-0-stream", "ctx-a2a-1-0-stream")


def test_batches_are_flagged(traffic: Path) -> None:
    cases = json.loads((traffic / "T34.json").read_text())
    leg = parse_request("POST", POST, [], json.dumps(cases[0]["request"]).encode())
    assert (leg.flags, leg.binding, leg.method) == (("batch",), "JSONRPC", None)


def test_every_file_is_read_as_every_leg_without_raising(traffic: Path) -> None:
    files = [path for path in sorted(traffic.iterdir()) if path.suffix in {".json", ".sse", ".http", ".yaml"}]
    assert len(files) > 100
    for path in files:
        body = path.read_bytes()
        request = parse_request("POST", POST, [], body)
        legs = [parse_response(request, 200, [], body), parse_push([], body), parse_stream_event(request, body)]
        assert {leg.leg for leg in legs} == {"response", "push", "stream-event"}
