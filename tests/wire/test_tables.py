"""Every cell of the protocol's tables: methods of each version and binding, states, errors of each binding.

The rows are those of the specifications: A2A 1.0 sections 5.3 to 5.5, A2A 0.3 section 3.5.6, and the 0.1 schema.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from a2a.utils.errors import A2A_ERROR_REASONS, JSON_RPC_ERROR_CODE_MAP

from a2a_ledger.wire import Leg, parse_push, parse_request, parse_response, parse_stream_event

URL = "https://vendor.example/a2a"
CONFIGS = "/tasks/T1/pushNotificationConfigs"

# operation by its 1.0 name: JSON-RPC of 0.1, JSON-RPC of 0.2 and 0.3, HTTP+JSON of 0.3 (below /v1) and of 1.0
METHODS: list[tuple[str, str | None, str | None, str | None, str | None]] = [
    ("SendMessage", "tasks/send", "message/send", "POST /message:send", "POST /message:send"),
    ("SendStreamingMessage", "tasks/sendSubscribe", "message/stream", "POST /message:stream", "POST /message:stream"),
    ("GetTask", "tasks/get", "tasks/get", "GET /tasks/T1", "GET /tasks/T1"),
    ("ListTasks", None, None, "GET /tasks", "GET /tasks"),
    ("CancelTask", "tasks/cancel", "tasks/cancel", "POST /tasks/T1:cancel", "POST /tasks/T1:cancel"),
    (
        "SubscribeToTask",
        "tasks/resubscribe",
        "tasks/resubscribe",
        "POST /tasks/T1:subscribe",
        "POST /tasks/T1:subscribe",
    ),
    ("SubscribeToTask", None, None, "GET /tasks/T1:subscribe", "GET /tasks/T1:subscribe"),
    (
        "CreateTaskPushNotificationConfig",
        "tasks/pushNotification/set",
        "tasks/pushNotificationConfig/set",
        f"POST {CONFIGS}",
        f"POST {CONFIGS}",
    ),
    (
        "GetTaskPushNotificationConfig",
        "tasks/pushNotification/get",
        "tasks/pushNotificationConfig/get",
        f"GET {CONFIGS}/c",
        f"GET {CONFIGS}/c",
    ),
    (
        "ListTaskPushNotificationConfigs",
        None,
        "tasks/pushNotificationConfig/list",
        f"GET {CONFIGS}",
        f"GET {CONFIGS}",
    ),
    (
        "DeleteTaskPushNotificationConfig",
        None,
        "tasks/pushNotificationConfig/delete",
        f"DELETE {CONFIGS}/c",
        f"DELETE {CONFIGS}/c",
    ),
    ("GetExtendedAgentCard", None, "agent/getAuthenticatedExtendedCard", "GET /card", "GET /extendedAgentCard"),
]
IN_0_1_ALONE = {
    "tasks/send",
    "tasks/sendSubscribe",
    "tasks/pushNotification/set",
    "tasks/pushNotification/get",
}
"""The rest of the 0.1 methods is spelled as in 0.3, so that a spelling cannot tell the two apart."""


def rpc(method: str, params: dict[str, Any] | None = None) -> Leg:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
    return parse_request("POST", URL, [], json.dumps(body).encode())


def rest(call: str, base: str = URL) -> Leg:
    verb, path = call.split(" ")
    return parse_request(verb, base + path, [], b"")


@pytest.mark.parametrize(("name", "oldest", "old", "old_rest", "new_rest"), METHODS)
def test_every_spelling_of_a_method(
    name: str, oldest: str | None, old: str | None, old_rest: str | None, new_rest: str | None
) -> None:
    read = [("1.0", rpc(name))]
    read += [("0.1" if oldest in IN_0_1_ALONE else "0.3", rpc(oldest))] if oldest else []
    read += [("0.3", rpc(old))] if old else []
    assert all((leg.binding, leg.method, leg.version) == ("JSONRPC", name, version) for version, leg in read)
    called = [("0.3", rest(old_rest, f"{URL}/v1"))] if old_rest else []
    called += [("1.0", rest(new_rest))] if new_rest else []
    assert all((leg.binding, leg.method, leg.version) == ("HTTP+JSON", name, version) for version, leg in called)
    assert all(leg.task_id == ("T1" if "T1" in (old_rest or "") else None) for _, leg in called)


# as understood: the JSON of 0.1 to 0.3, the 0.3 proto, 1.0; the last two rows say nothing
STATES = [
    ("submitted", "submitted", "TASK_STATE_SUBMITTED", "TASK_STATE_SUBMITTED"),
    ("working", "working", "TASK_STATE_WORKING", "TASK_STATE_WORKING"),
    ("completed", "completed", "TASK_STATE_COMPLETED", "TASK_STATE_COMPLETED"),
    ("failed", "failed", "TASK_STATE_FAILED", "TASK_STATE_FAILED"),
    ("canceled", "canceled", "TASK_STATE_CANCELLED", "TASK_STATE_CANCELED"),
    ("canceled", "cancelled", "TASK_STATE_CANCELLED", "TASK_STATE_CANCELED"),
    ("rejected", "rejected", "TASK_STATE_REJECTED", "TASK_STATE_REJECTED"),
    ("input-required", "input-required", "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_INPUT_REQUIRED"),
    ("auth-required", "auth-required", "TASK_STATE_AUTH_REQUIRED", "TASK_STATE_AUTH_REQUIRED"),
    (None, "unknown", "TASK_STATE_UNSPECIFIED", "TASK_STATE_UNSPECIFIED"),
    (None, "running", "TASK_STATE_RUNNING", "TASK_STATE_RUNNING"),
]


@pytest.mark.parametrize(("read", "plain", "proto", "new"), STATES)
def test_every_spelling_of_a_state_in_every_place(read: str | None, plain: str, proto: str, new: str) -> None:
    """In an answer, a stream event and a push, over JSON-RPC and HTTP+JSON, in the shapes of 0.3 and of 1.0."""
    for spelled in (plain, proto, new):
        task = {"id": "T1", "contextId": "C1", "status": {"state": spelled}}
        update = {"taskId": "T1", "contextId": "C1", "status": {"state": spelled}}
        shapes: list[dict[str, Any]] = [
            {**task, "kind": "task"},
            {**update, "kind": "status-update", "final": False},
            {"task": task},
            {"statusUpdate": update},
        ]
        for shape in shapes:
            bare = json.dumps(shape).encode()
            wrapped = json.dumps({"jsonrpc": "2.0", "id": 1, "result": shape}).encode()
            asked, called = rpc("SendStreamingMessage"), rest("POST /message:stream")
            legs = [
                parse_response(asked, 200, [], wrapped),
                parse_response(called, 200, [], bare),
                parse_stream_event(asked, b"data: " + wrapped + b"\n\n"),
                parse_stream_event(called, b"data: " + bare + b"\n\n"),
                parse_push([], bare),
            ]
            assert {(leg.state, leg.state_read, leg.task_id, leg.flags) for leg in legs} == {(spelled, read, "T1", ())}


KINDS = [kind for kind, code in JSON_RPC_ERROR_CODE_MAP.items() if -32100 < code <= -32001]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: A2A_ERROR_REASONS[kind])
def test_every_error_is_one_error_in_every_binding(kind: Any) -> None:  # noqa: ANN401 - a class of the SDK
    """By the JSON-RPC code alone, by ErrorInfo in both bindings, by problem+json, and as a bare error of 0.3 agents."""
    code, reason = JSON_RPC_ERROR_CODE_MAP[kind], A2A_ERROR_REASONS[kind]
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "a2a-protocol.org"}
    problem = {"type": f"https://a2a-protocol.org/errors/{reason.lower().replace('_', '-')}", "detail": "no"}
    asked, called = rpc("GetTask"), rest("GET /tasks/T1")
    answers: list[tuple[Leg, int, dict[str, Any]]] = [
        (asked, 200, {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "no"}}),
        (asked, 200, {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "no", "data": [info]}}),
        (called, 400, {"error": {"code": 400, "message": "no", "details": [info]}}),
        (called, 400, problem),
        (called, 400, {"code": code, "message": "no"}),
    ]
    for request, status, body in answers:
        leg = parse_response(request, status, [], json.dumps(body).encode())
        assert leg.error is not None
        assert (leg.kind, leg.error.code, leg.error.reason, leg.error.message) == ("error", code, reason, "no")


@pytest.mark.parametrize("code", [-32700, -32600, -32601, -32602, -32603])
def test_errors_of_json_rpc_itself_keep_their_code(code: int) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "no"}}).encode()
    leg = parse_response(rpc("GetTask"), 200, [], body)
    assert leg.error is not None
    assert (leg.error.code, leg.error.reason) == (code, None)
