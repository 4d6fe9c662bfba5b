"""What a request says: operation, version, ids, extensions, in every dialect and both bindings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from a2a_ledger.wire import EXTENSION, Leg, parse_request

URL = "https://vendor.example/a2a"


def rpc(method: str, params: Any = None, headers: list[tuple[str, str]] | None = None, url: str = URL) -> Leg:  # noqa: ANN401 - any JSON
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return parse_request("POST", url, headers or [], json.dumps(body).encode())


@pytest.mark.parametrize(
    ("spelled", "name", "version"),
    [
        ("tasks/send", "SendMessage", "0.1"),
        ("tasks/sendSubscribe", "SendStreamingMessage", "0.1"),
        ("message/send", "SendMessage", "0.3"),
        ("message/stream", "SendStreamingMessage", "0.3"),
        ("tasks/get", "GetTask", "0.3"),
        ("tasks/cancel", "CancelTask", "0.3"),
        ("tasks/resubscribe", "SubscribeToTask", "0.3"),
        ("tasks/pushNotificationConfig/set", "CreateTaskPushNotificationConfig", "0.3"),
        ("agent/getAuthenticatedExtendedCard", "GetExtendedAgentCard", "0.3"),
        ("SendMessage", "SendMessage", "1.0"),
        ("SendStreamingMessage", "SendStreamingMessage", "1.0"),
        ("ListTasks", "ListTasks", "1.0"),
        ("SubscribeToTask", "SubscribeToTask", "1.0"),
        ("GetExtendedAgentCard", "GetExtendedAgentCard", "1.0"),
        ("tasks/explode", None, None),
    ],
)
def test_json_rpc_methods_have_one_name_and_a_version_by_spelling(
    spelled: str, name: str | None, version: str | None
) -> None:
    leg = rpc(spelled, {})
    assert (leg.binding, leg.method_spelled, leg.method, leg.version) == ("JSONRPC", spelled, name, version)


@pytest.mark.parametrize(
    ("verb", "path", "name", "version", "task"),
    [
        ("POST", "/message:send", "SendMessage", "1.0", None),
        ("POST", "/v1/message:stream", "SendStreamingMessage", "0.3", None),
        ("POST", "/tenant-7/message:send", "SendMessage", "1.0", None),
        ("GET", "/tasks/T1", "GetTask", "1.0", "T1"),
        ("GET", "/v1/tasks/T%2F1", "GetTask", "0.3", "T/1"),
        ("GET", "/tasks", "ListTasks", "1.0", None),
        ("GET", "/tasks/tasks", "GetTask", "1.0", "tasks"),
        ("POST", "/tasks/T1:cancel", "CancelTask", "1.0", "T1"),
        ("POST", "/tasks/T1:subscribe", "SubscribeToTask", "1.0", "T1"),
        ("GET", "/v1/tasks/T1:subscribe", "SubscribeToTask", "0.3", "T1"),
        ("POST", "/tasks/T1/pushNotificationConfigs", "CreateTaskPushNotificationConfig", "1.0", "T1"),
        ("GET", "/tasks/T1/pushNotificationConfigs", "ListTaskPushNotificationConfigs", "1.0", "T1"),
        ("DELETE", "/tasks/T1/pushNotificationConfigs/c", "DeleteTaskPushNotificationConfig", "1.0", "T1"),
        ("GET", "/extendedAgentCard", "GetExtendedAgentCard", "1.0", None),
        ("GET", "/v1/card", "GetExtendedAgentCard", "0.3", None),
    ],
)
def test_http_json_calls_are_known_by_their_path(
    verb: str, path: str, name: str, version: str, task: str | None
) -> None:
    leg = parse_request(verb, URL + path, [], b"")
    assert (leg.binding, leg.method, leg.version, leg.task_id) == ("HTTP+JSON", name, version, task)


@pytest.mark.parametrize(
    ("verb", "path"), [("GET", "/message:send"), ("DELETE", "/tasks/T1"), ("GET", "/"), ("POST", "/tasks/T1:explode")]
)
def test_other_paths_are_no_a2a_call(verb: str, path: str) -> None:
    assert parse_request(verb, URL + path, [], b"").binding == "unknown"


@pytest.mark.parametrize(
    ("headers", "url", "version", "stated"),
    [
        ([("A2A-Version", "1.0")], URL, "1.0", "1.0"),
        ([("a2a-version", "1.0.5")], URL, "1.0", "1.0"),
        ([("A2A-Version", "")], URL, "0.3", None),
        ([], f"{URL}?A2A-Version=1.0", "1.0", "1.0"),
        ([("A2A-Version", "next")], URL, "0.3", None),
        ([], URL, "0.3", None),
    ],
)
def test_version_is_by_header_then_query_then_method_spelling(
    headers: list[tuple[str, str]], url: str, version: str, stated: str | None
) -> None:
    leg = rpc("message/send", {}, headers, url)
    assert (leg.version, leg.version_stated) == (version, stated)


def test_ids_of_a_send() -> None:
    message = {"messageId": "m1", "taskId": "T1", "contextId": "C1"}
    leg = rpc("SendMessage", {"message": message, "tenant": "t-7", "configuration": {"historyLength": 0}})
    assert (leg.message_id, leg.task_id, leg.context_id) == ("m1", "T1", "C1")
    assert (leg.tenant, leg.history_length, leg.rpc_id) == ("t-7", 0, "1")


def test_a_send_over_http_json_of_0_3_has_its_message_under_the_name_of_the_proto_field() -> None:
    """What an SDK's 0.3 client really sends: proto field names, `request` for the message, `content` for its parts."""
    message = {"message_id": "m1", "context_id": "C1", "task_id": "T1", "metadata": {EXTENSION: {"task": "t"}}}
    body = json.dumps({"request": {**message, "role": "ROLE_USER", "content": [{"text": "hi"}]}}).encode()
    leg = parse_request("POST", f"{URL}/v1/message:send", [], body)
    assert (leg.method, leg.version, leg.binding) == ("SendMessage", "0.3", "HTTP+JSON")
    assert (leg.message_id, leg.context_id, leg.task_id, leg.pin) == ("m1", "C1", "T1", {"task": "t"})
    assert rpc("message/send", {"request": message}).message_id is None


def test_history_length_absent_is_not_zero() -> None:
    assert rpc("tasks/get", {"id": "T1"}).history_length is None
    assert rpc("tasks/get", {"id": "T1", "historyLength": 2}).history_length == 2
    assert parse_request("GET", f"{URL}/tasks/T1?historyLength=0", [], b"").history_length == 0


def test_a_client_of_0_1_chooses_task_and_session_itself() -> None:
    leg = rpc("tasks/send", {"id": "T1", "sessionId": "S1", "message": {"role": "user", "parts": []}})
    assert (leg.task_id, leg.context_id, leg.message_id) == ("T1", "S1", None)


def test_snake_case_members_are_read_too() -> None:
    leg = rpc("SendMessage", {"message": {"message_id": "m1", "task_id": "T1", "context_id": "C1"}})
    assert (leg.message_id, leg.task_id, leg.context_id) == ("m1", "T1", "C1")


@pytest.mark.parametrize(
    ("spelled", "params", "task"),
    [
        ("tasks/pushNotificationConfig/set", {"taskId": "T1", "pushNotificationConfig": {"id": "c"}}, "T1"),
        ("tasks/pushNotificationConfig/get", {"id": "T1"}, "T1"),
        ("CreateTaskPushNotificationConfig", {"taskId": "T1", "id": "c"}, "T1"),
        ("CreateTaskPushNotificationConfig", {"id": "c"}, None),
        ("GetTaskPushNotificationConfig", {"name": "tasks/T1/pushNotificationConfigs/c"}, "T1"),
    ],
)
def test_push_configurations_name_their_task(spelled: str, params: dict[str, Any], task: str | None) -> None:
    assert rpc(spelled, params).task_id == task


def test_path_says_which_task_also_if_the_body_says_otherwise() -> None:
    leg = parse_request("POST", f"{URL}/tasks/T1:cancel", [], b'{"id": "T2"}')
    assert leg.task_id == "T1"


def test_pin_of_a_request_is_what_its_message_carries() -> None:
    pin = {"contractHash": "sha256:aa", "form": "a2a-contract/1", "extra": "x", "cardHash": 5}
    leg = rpc("SendMessage", {"message": {"messageId": "m", "metadata": {EXTENSION: pin}}})
    assert leg.pin == {"contractHash": "sha256:aa", "form": "a2a-contract/1"}
    assert "odd-id" in leg.flags


def test_extension_headers_of_both_names_are_one_list() -> None:
    headers = [("A2A-Extensions", "urn:a, urn:b"), ("X-A2A-Extensions", "urn:b,urn:c"), ("x-other", "urn:d")]
    assert rpc("SendMessage", {}, headers).extensions == ("urn:a", "urn:b", "urn:c")


@pytest.mark.parametrize(
    ("member", "value", "flag"),
    [
        ("taskId", "x" * 1025, "oversize-id"),
        ("messageId", "a\ud800b", "unrepresentable"),
        ("contextId", 17, "odd-id"),
        ("contextId", 1.5, "odd-id"),
        ("contextId", ["C"], "odd-id"),
    ],
)
def test_ids_that_no_record_can_hold_are_not_lifted_and_flagged(member: str, value: object, flag: str) -> None:
    leg = rpc("SendMessage", {"message": {member: value}})
    assert (leg.message_id, leg.task_id, leg.context_id) == (None, None, None)
    assert leg.flags == (flag,)


def test_an_id_of_1024_characters_is_lifted() -> None:
    assert rpc("SendMessage", {"message": {"taskId": "x" * 1024}}).task_id == "x" * 1024


@pytest.mark.parametrize(
    ("body", "flags", "binding"),
    [
        (b"{", ("not-json",), "unknown"),
        (b'{"jsonrpc": "2.0", "method": NaN}', ("not-json",), "unknown"),
        (b"\xff\xfe", ("not-json",), "unknown"),
        (b"[" * 100_000, ("too-deep",), "unknown"),
        (b'{"jsonrpc":"2.0","method":"GetTask","method":"CancelTask"}', ("duplicate-keys",), "JSONRPC"),
        (b'[{"jsonrpc":"2.0","method":"GetTask"}]', ("batch",), "JSONRPC"),
        (b"", (), "unknown"),
    ],
)
def test_bodies_that_read_badly_are_flagged_and_do_no_harm(body: bytes, flags: tuple[str, ...], binding: str) -> None:
    leg = parse_request("POST", URL, [], body)
    assert (leg.flags, leg.binding) == (flags, binding)


@pytest.mark.parametrize(
    "url", ["http://[::1", "", "not a url", "https://h/?a=%ff%fe", "https://[fe80::1%25en0]:99999/"]
)
def test_odd_urls_do_no_harm(url: str) -> None:
    assert parse_request("POST", url, [], b"").url == url
