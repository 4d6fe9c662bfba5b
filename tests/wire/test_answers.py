"""What an answer says: envelopes, kinds, states, the pin, errors, redirects, in every dialect."""

from __future__ import annotations

import json
from typing import Any

import pytest

from a2a_ledger.wire import EXTENSION, STATES, Leg, parse_push, parse_request, parse_response, parse_stream_event

URL = "https://vendor.example/a2a"
PIN = {"form": "a2a-contract/1", "contractHash": "sha256:" + "ab" * 32}


def asked(method: str = "SendMessage") -> Leg:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}})
    return parse_request("POST", URL, [], body.encode())


def result(value: Any, method: str = "SendMessage") -> Leg:  # noqa: ANN401 - any JSON
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": value})
    return parse_response(asked(method), 200, [("content-type", "application/json")], body.encode())


TASK = {"id": "T1", "contextId": "C1", "status": {"state": "TASK_STATE_WORKING"}}


@pytest.mark.parametrize(
    ("value", "kind", "envelope"),
    [
        ({"task": TASK}, "task", "1.0"),
        ({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": []}}, "message", "1.0"),
        ({"statusUpdate": {"taskId": "T1", "status": {"state": "TASK_STATE_WORKING"}}}, "status-update", "1.0"),
        ({"status_update": {"task_id": "T1", "status": {"state": 2}}}, "status-update", "1.0"),
        ({"artifactUpdate": {"taskId": "T1", "artifact": {}}}, "artifact-update", "1.0"),
        ({**TASK, "kind": "task"}, "task", "0.3"),
        ({"kind": "message", "messageId": "m"}, "message", "0.3"),
        ({"kind": "status-update", "taskId": "T1", "status": {}, "final": True}, "status-update", "0.3"),
        ({"kind": "artifact-update", "taskId": "T1", "artifact": {}}, "artifact-update", "0.3"),
        (TASK, "task", None),
        ({"id": "T1", "status": {"state": "working"}, "final": False}, "status-update", None),
        ({"id": "T1", "artifact": {"parts": []}}, "artifact-update", None),
        ({"tasks": [TASK]}, "list", None),
        ({"id": "c", "url": "https://client.example/hook"}, None, None),
        ([], None, None),
        (None, None, None),
    ],
)
def test_every_shape_of_a_result_is_known(value: Any, kind: str | None, envelope: str | None) -> None:  # noqa: ANN401 - passed on as it is
    leg = result(value)
    assert (leg.kind, leg.envelope) == (kind, envelope)
    assert leg.is_task == (kind == "task")


def test_envelope_tells_nothing_where_the_versions_do_not_differ() -> None:
    assert result({**TASK, "kind": "task"}, "GetTask").envelope is None


@pytest.mark.parametrize(("path", "envelope"), [("/message:send", "1.0"), ("/v1/message:send", None)])
def test_a_wrapped_answer_over_http_tells_nothing_where_0_3_wraps_too(path: str, envelope: str | None) -> None:
    """SendMessageResponse of the 0.3 proto, which the 0.3 HTTP+JSON binding speaks, has `task` and `msg` as well."""
    request = parse_request("POST", URL + path, [], b"{}")
    answer = parse_response(request, 200, [("content-type", "application/json")], json.dumps({"task": TASK}).encode())
    assert (answer.kind, answer.envelope, answer.version) == ("task", envelope, envelope)


@pytest.mark.parametrize(
    ("spelled", "read"),
    [
        ("submitted", "submitted"),
        ("TASK_STATE_SUBMITTED", "submitted"),
        ("working", "working"),
        ("TASK_STATE_WORKING", "working"),
        ("completed", "completed"),
        ("canceled", "canceled"),
        ("cancelled", "canceled"),
        ("TASK_STATE_CANCELED", "canceled"),
        ("TASK_STATE_CANCELLED", "canceled"),
        ("input-required", "input-required"),
        ("TASK_STATE_INPUT_REQUIRED", "input-required"),
        ("auth-required", "auth-required"),
        ("TASK_STATE_AUTH_REQUIRED", "auth-required"),
        ("rejected", "rejected"),
        ("unknown", None),
        ("TASK_STATE_UNSPECIFIED", None),
        ("TASK_STATE_RUNNING", None),
        ("WORKING", None),
    ],
)
def test_state_is_kept_as_spelled_and_read_only_if_known(spelled: str, read: str | None) -> None:
    leg = result({"task": {"id": "T1", "status": {"state": spelled}}})
    assert (leg.state, leg.state_read) == (spelled, read)


def test_enum_numbers_read_as_the_sdks_own_enum_says() -> None:
    from a2a.types import TaskState  # noqa: PLC0415 - the independent source of this one test

    for name, number in TaskState.items():
        assert STATES.get(str(number)) == STATES.get(name)
    assert result({"task": {"id": "T1", "status": {"state": 6}}}).state_read == "input-required"


def test_pin_counts_only_in_the_tasks_own_metadata() -> None:
    copy = {"messageId": "m", "metadata": {EXTENSION: PIN}}
    in_history = result({"task": {**TASK, "history": [copy]}})
    own = result({"task": {**TASK, "history": [copy], "metadata": {EXTENSION: PIN}}})
    assert (in_history.is_task, in_history.pin) == (True, None)
    assert own.pin == PIN


@pytest.mark.parametrize("value", [None, "x", [], 5, {"contractHash": 5}, {"contractHash": ["x"]}])
def test_a_pin_of_anything_but_texts_is_there_and_says_nothing(value: object) -> None:
    assert result({"task": {**TASK, "metadata": {EXTENSION: value}}}).pin == {}


def test_an_update_carries_no_pin() -> None:
    update = {"taskId": "T1", "status": {"state": "TASK_STATE_WORKING"}, "metadata": {EXTENSION: PIN}}
    leg = result({"statusUpdate": update})
    assert (leg.is_task, leg.pin) == (False, None)


def test_status_message_gives_free_text_and_data_parts() -> None:
    parts = [
        {"text": "wait"},
        {"kind": "text", "text": "here"},
        {"kind": "data", "data": {"a": 1}},
        {"data": {"data": {"b": 2}}},
    ]
    leg = result({"task": {"id": "T1", "status": {"state": "TASK_STATE_WORKING", "message": {"parts": parts}}}})
    assert (leg.text, leg.data_parts) == ("wait\nhere", ({"a": 1}, {"b": 2}))


def test_parts_of_the_0_3_proto_are_called_content() -> None:
    message = {"role": "ROLE_AGENT", "messageId": "m", "content": [{"text": "hello"}]}
    assert result({"message": message}).text == "hello"


def test_ids_of_a_message_answer() -> None:
    leg = result({"message": {"messageId": "m", "contextId": "C1", "parts": [{"text": "hello"}]}})
    assert (leg.message_id, leg.context_id, leg.task_id, leg.state, leg.text) == ("m", "C1", None, None, "hello")


def test_history_or_artifacts_of_a_message_never_move_the_ids() -> None:
    leg = result({"task": {**TASK, "history": [{"messageId": "m", "taskId": "T9", "contextId": "C9"}]}})
    assert (leg.task_id, leg.context_id, leg.message_id) == ("T1", "C1", None)


INFO = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "domain": "a2a-protocol.org"}


@pytest.mark.parametrize(
    ("status", "body", "code", "reason", "message"),
    [
        (
            200,
            {"jsonrpc": "2.0", "id": 1, "error": {"code": -32001, "message": "gone"}},
            -32001,
            "TASK_NOT_FOUND",
            "gone",
        ),
        (
            200,
            {
                "jsonrpc": "2.0",
                "id": 1,
                "error": {"code": -32008, "message": "x", "data": [{**INFO, "reason": "EXTENSION_SUPPORT_REQUIRED"}]},
            },
            -32008,
            "EXTENSION_SUPPORT_REQUIRED",
            "x",
        ),
        (200, {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no"}}, -32601, None, "no"),
        (
            404,
            {
                "error": {
                    "code": 404,
                    "status": "NOT_FOUND",
                    "message": "gone",
                    "details": [{**INFO, "reason": "TASK_NOT_FOUND"}],
                }
            },
            -32001,
            "TASK_NOT_FOUND",
            "gone",
        ),
        (
            400,
            {
                "type": "https://a2a-protocol.org/errors/version-not-supported",
                "title": "Version",
                "status": 400,
                "detail": "no 2.0",
            },
            -32009,
            "VERSION_NOT_SUPPORTED",
            "no 2.0",
        ),
        (400, {"code": -32002, "message": "too late"}, -32002, "TASK_NOT_CANCELABLE", "too late"),
        (503, {"error": "down"}, None, None, ""),
        (404, {"detail": "Not Found"}, None, None, "Not Found"),
    ],
)
def test_errors_of_both_bindings_have_one_numbering(
    status: int, body: object, code: int | None, reason: str | None, message: str
) -> None:
    request = asked() if "jsonrpc" in str(body) else parse_request("GET", f"{URL}/tasks/T1", [], b"")
    leg = parse_response(request, status, [], json.dumps(body).encode())
    assert leg.error is not None
    assert (leg.kind, leg.error.code, leg.error.reason, leg.error.message) == ("error", code, reason, message)


def test_an_error_page_is_an_error_without_words() -> None:
    leg = parse_response(asked(), 502, [("content-type", "text/html")], b"<html>Bad gateway</html>")
    assert (leg.kind, leg.error, leg.status, leg.flags) == ("error", None, 502, ("not-json",))


def test_redirect_is_made_absolute() -> None:
    leg = parse_response(asked(), 307, [("Location", "/elsewhere?x=1")], b"")
    assert leg.redirect == "https://vendor.example/elsewhere?x=1"
    assert parse_response(asked(), 200, [("Location", "/elsewhere")], b"").redirect is None


def test_json_rpc_answer_to_an_unreadable_request_is_still_read() -> None:
    leg = parse_response(
        parse_request("POST", URL, [], b"{"),
        200,
        [],
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse"}}',
    )
    assert leg.error is not None
    assert (leg.binding, leg.error.code, leg.rpc_id) == ("JSONRPC", -32700, None)


@pytest.mark.parametrize(
    ("spelled", "read"),
    [('"a"', "a"), ("7", "7"), ("1.50", "1.50"), ("12345678901234567890", "12345678901234567890"), ("true", None)],
)
def test_json_rpc_ids_keep_their_spelling(spelled: str, read: str | None) -> None:
    body = f'{{"jsonrpc":"2.0","id":{spelled},"result":{{}}}}'
    assert parse_response(asked(), 200, [], body.encode()).rpc_id == read


def test_version_of_an_answer_is_its_header_else_its_envelope() -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"task": TASK}}).encode()
    assert parse_response(asked(), 200, [("A2A-Version", "0.3")], body).version == "0.3"
    assert parse_response(asked(), 200, [], body).version == "1.0"


def test_duplicate_keys_are_flagged() -> None:
    body = b'{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"T1","id":"T2","status":{"state":"working"}}}}'
    assert parse_response(asked(), 200, [], body).flags == ("duplicate-keys",)


@pytest.mark.parametrize(
    "data",
    [
        b'{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"T1","status":{"state":"TASK_STATE_WORKING"}}}}',
        b'{"task":{"id":"T1","status":{"state":"TASK_STATE_WORKING"}}}',
        b'id: 1\r\ndata: {"task":{"id":"T1",\r\ndata: "status":{"state":"TASK_STATE_WORKING"}}}\r\n\r\n',
    ],
)
def test_stream_events_are_read_by_their_data_or_as_the_raw_block(data: bytes) -> None:
    leg = parse_stream_event(asked("SendStreamingMessage"), data)
    assert (leg.leg, leg.kind, leg.task_id, leg.state_read, leg.flags) == ("stream-event", "task", "T1", "working", ())


@pytest.mark.parametrize("block", [b": ping\n\n", b"event: ping\nid: 4\n\n", b"\n", b""])
def test_keep_alive_blocks_say_nothing_and_are_not_flagged(block: bytes) -> None:
    leg = parse_stream_event(asked("SendStreamingMessage"), block)
    assert (leg.kind, leg.flags) == (None, ())


@pytest.mark.parametrize(
    ("body", "kind", "is_task"),
    [
        ({"statusUpdate": {"taskId": "T1", "status": {"state": "TASK_STATE_COMPLETED"}}}, "status-update", False),
        ({"id": "T1", "kind": "task", "status": {"state": "completed"}}, "task", True),
        ({"id": "T1", "status": {"state": "completed"}}, "task", True),
        (
            {"jsonrpc": "2.0", "id": "x", "result": {"id": "T1", "kind": "task", "status": {"state": "completed"}}},
            "task",
            True,
        ),
    ],
)
def test_pushes_of_all_generations(body: object, kind: str, is_task: bool) -> None:
    leg = parse_push([("X-A2A-Notification-Token", "t")], json.dumps(body).encode())
    assert (leg.leg, leg.kind, leg.is_task, leg.task_id, leg.state_read) == ("push", kind, is_task, "T1", "completed")
