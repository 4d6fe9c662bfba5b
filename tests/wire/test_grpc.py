"""gRPC as the ProtoJSON of its messages: every method of both protos, every answer, every error.

What is read comes from the SDK's own protos, its ProtoJSON and its table of errors, not from ours.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from a2a.compat.v0_3 import a2a_v0_3_pb2 as old
from a2a.compat.v0_3 import a2a_v0_3_pb2_grpc as old_grpc
from a2a.server.request_handlers import grpc_handler
from a2a.types import a2a_pb2 as new
from a2a.types import a2a_pb2_grpc as new_grpc
from a2a.utils.errors import A2A_ERROR_REASONS, JSON_RPC_ERROR_CODE_MAP, A2AError
from google.protobuf.json_format import MessageToJson

from a2a_ledger.wire import GRPC_STATUSES, Leg, parse_grpc_request, parse_response, parse_stream_event

if TYPE_CHECKING:
    from google.protobuf.message import Message

TARGET = "agent.example:443"
NEW, OLD = "/lf.a2a.v1.A2AService/", "/a2a.v1.A2AService/"


class Paths:
    """Takes the place of a channel: a stub asks it for every method that it has."""

    def __init__(self) -> None:
        self.seen: dict[str, bool] = {}

    def unary_unary(self, path: str, **_: object) -> None:
        self.seen[path] = False

    def unary_stream(self, path: str, **_: object) -> None:
        self.seen[path] = True


def paths_of(stub: Any) -> dict[str, bool]:  # noqa: ANN401 - a generated class
    channel = Paths()
    stub(channel)
    return channel.seen


def asked(path: str, message: Message, *metadata: tuple[str, str]) -> Leg:
    return parse_grpc_request(path, TARGET, list(metadata), MessageToJson(message).encode())


def answered(path: str, message: Message) -> Leg:
    return parse_response(parse_grpc_request(path, TARGET, [], b"{}"), 200, [], MessageToJson(message).encode())


def test_every_method_of_the_1_0_stub_has_its_own_name() -> None:
    paths = paths_of(new_grpc.A2AServiceStub)
    assert len(paths) == 11
    for path in paths:
        leg = parse_grpc_request(path, TARGET, [], b"{}")
        assert (leg.binding, leg.url, leg.version, leg.method) == ("GRPC", TARGET, "1.0", path.rsplit("/", 1)[1])
        assert leg.method_spelled == path


RENAMED = {
    "TaskSubscription": "SubscribeToTask",
    "ListTaskPushNotificationConfig": "ListTaskPushNotificationConfigs",
    "GetAgentCard": "GetExtendedAgentCard",
}


def test_every_method_of_the_0_3_stub_has_its_1_0_name() -> None:
    paths = paths_of(old_grpc.A2AServiceStub)
    assert len(paths) == 10
    for path in paths:
        leg = parse_grpc_request(path, TARGET, [], b"{}")
        spelled = path.rsplit("/", 1)[1]
        assert (leg.version, leg.method) == ("0.3", RENAMED.get(spelled, spelled))


@pytest.mark.parametrize(
    "path", ["/grpc.health.v1.Health/Check", NEW + "Explode", NEW + "message/send", OLD + "ListTasks2", "", "/"]
)
def test_other_methods_are_none_of_a2a(path: str) -> None:
    leg = parse_grpc_request(path, TARGET, [], b"{}")
    assert (leg.binding, leg.method, leg.version) == ("GRPC", None, None)


def test_version_is_by_metadata_else_by_the_package() -> None:
    stated = asked(NEW + "GetTask", new.GetTaskRequest(id="T1"), ("a2a-version", "1.1"))
    assert (stated.version, stated.version_stated, stated.task_id) == ("1.1", "1.1", "T1")


MESSAGE_1_0 = new.Message(message_id="m", task_id="T1", context_id="C1")
MESSAGE_0_3 = old.Message(message_id="m", task_id="T1", context_id="C1")
CONFIG = "tasks/T1/pushNotificationConfigs/c"


@pytest.mark.parametrize(
    ("path", "message", "task", "tenant"),
    [
        (NEW + "SendMessage", new.SendMessageRequest(message=MESSAGE_1_0, tenant="t"), "T1", "t"),
        (NEW + "SendStreamingMessage", new.SendMessageRequest(message=MESSAGE_1_0), "T1", None),
        (NEW + "GetTask", new.GetTaskRequest(id="T1", tenant="t"), "T1", "t"),
        (NEW + "ListTasks", new.ListTasksRequest(), None, None),
        (NEW + "CancelTask", new.CancelTaskRequest(id="T1"), "T1", None),
        (NEW + "SubscribeToTask", new.SubscribeToTaskRequest(id="T1"), "T1", None),
        (NEW + "CreateTaskPushNotificationConfig", new.TaskPushNotificationConfig(id="c", task_id="T1"), "T1", None),
        (
            NEW + "GetTaskPushNotificationConfig",
            new.GetTaskPushNotificationConfigRequest(id="c", task_id="T1"),
            "T1",
            None,
        ),
        (
            NEW + "ListTaskPushNotificationConfigs",
            new.ListTaskPushNotificationConfigsRequest(task_id="T1"),
            "T1",
            None,
        ),
        (
            NEW + "DeleteTaskPushNotificationConfig",
            new.DeleteTaskPushNotificationConfigRequest(id="c", task_id="T1"),
            "T1",
            None,
        ),
        (NEW + "GetExtendedAgentCard", new.GetExtendedAgentCardRequest(tenant="t"), None, "t"),
        (OLD + "SendMessage", old.SendMessageRequest(request=MESSAGE_0_3), "T1", None),
        (OLD + "SendStreamingMessage", old.SendMessageRequest(request=MESSAGE_0_3), "T1", None),
        (OLD + "GetTask", old.GetTaskRequest(name="tasks/T1"), "T1", None),
        (OLD + "CancelTask", old.CancelTaskRequest(name="tasks/T1"), "T1", None),
        (OLD + "TaskSubscription", old.TaskSubscriptionRequest(name="tasks/T1"), "T1", None),
        (
            OLD + "CreateTaskPushNotificationConfig",
            old.CreateTaskPushNotificationConfigRequest(parent="tasks/T1", config_id="c"),
            "T1",
            None,
        ),
        (
            OLD + "GetTaskPushNotificationConfig",
            old.GetTaskPushNotificationConfigRequest(name=CONFIG),
            "T1",
            None,
        ),
        (
            OLD + "ListTaskPushNotificationConfig",
            old.ListTaskPushNotificationConfigRequest(parent="tasks/T1"),
            "T1",
            None,
        ),
        (
            OLD + "DeleteTaskPushNotificationConfig",
            old.DeleteTaskPushNotificationConfigRequest(name=CONFIG),
            "T1",
            None,
        ),
        (OLD + "GetAgentCard", old.GetAgentCardRequest(), None, None),
    ],
)
def test_every_request_names_its_task(path: str, message: Message, task: str | None, tenant: str | None) -> None:
    leg = asked(path, message)
    assert (leg.task_id, leg.tenant) == (task, tenant)
    if "Send" in path:
        assert (leg.message_id, leg.context_id) == ("m", "C1")


def test_history_length_is_read_from_both_protos() -> None:
    assert asked(NEW + "GetTask", new.GetTaskRequest(id="T1", history_length=2)).history_length == 2
    assert asked(OLD + "GetTask", old.GetTaskRequest(name="tasks/T1", history_length=2)).history_length == 2
    assert asked(NEW + "GetTask", new.GetTaskRequest(id="T1")).history_length is None


TASK_1_0 = new.Task(id="T1", context_id="C1", status=new.TaskStatus(state="TASK_STATE_CANCELED"))
TASK_0_3 = old.Task(id="T1", context_id="C1", status=old.TaskStatus(state="TASK_STATE_CANCELLED"))
UPDATE_1_0 = new.TaskStatusUpdateEvent(task_id="T1", context_id="C1", status=TASK_1_0.status)
UPDATE_0_3 = old.TaskStatusUpdateEvent(task_id="T1", context_id="C1", status=TASK_0_3.status, final=True)
CHUNK_1_0 = new.TaskArtifactUpdateEvent(task_id="T1", context_id="C1", artifact=new.Artifact(artifact_id="a"))
CHUNK_0_3 = old.TaskArtifactUpdateEvent(task_id="T1", context_id="C1", artifact=old.Artifact(artifact_id="a"))
SAID_1_0 = new.Message(message_id="r", context_id="C1", task_id="T1")
SAID_0_3 = old.Message(message_id="r", context_id="C1", task_id="T1")


@pytest.mark.parametrize(
    ("path", "message", "kind", "envelope", "state"),
    [
        (NEW + "SendMessage", new.SendMessageResponse(task=TASK_1_0), "task", "1.0", "canceled"),
        (NEW + "SendMessage", new.SendMessageResponse(message=SAID_1_0), "message", "1.0", None),
        (NEW + "SendStreamingMessage", new.StreamResponse(task=TASK_1_0), "task", "1.0", "canceled"),
        (NEW + "SendStreamingMessage", new.StreamResponse(message=SAID_1_0), "message", "1.0", None),
        (NEW + "SubscribeToTask", new.StreamResponse(status_update=UPDATE_1_0), "status-update", "1.0", "canceled"),
        (NEW + "SubscribeToTask", new.StreamResponse(artifact_update=CHUNK_1_0), "artifact-update", "1.0", None),
        (NEW + "GetTask", TASK_1_0, "task", None, "canceled"),
        (NEW + "CancelTask", TASK_1_0, "task", None, "canceled"),
        (OLD + "SendMessage", old.SendMessageResponse(task=TASK_0_3), "task", None, "canceled"),
        (OLD + "SendMessage", old.SendMessageResponse(msg=SAID_0_3), "message", None, None),
        (OLD + "SendStreamingMessage", old.StreamResponse(task=TASK_0_3), "task", None, "canceled"),
        (OLD + "SendStreamingMessage", old.StreamResponse(msg=SAID_0_3), "message", None, None),
        (OLD + "TaskSubscription", old.StreamResponse(status_update=UPDATE_0_3), "status-update", None, "canceled"),
        (OLD + "TaskSubscription", old.StreamResponse(artifact_update=CHUNK_0_3), "artifact-update", None, None),
        (OLD + "GetTask", TASK_0_3, "task", None, "canceled"),
        (OLD + "CancelTask", TASK_0_3, "task", None, "canceled"),
    ],
)
def test_every_answer_has_its_kind_ids_and_state(
    path: str, message: Message, kind: str, envelope: str | None, state: str | None
) -> None:
    """The 0.3 proto wraps an answer as 1.0 does, so that its envelope tells no version."""
    leg = answered(path, message)
    assert (leg.kind, leg.envelope, leg.state_read, leg.task_id, leg.context_id) == (kind, envelope, state, "T1", "C1")
    event = parse_stream_event(parse_grpc_request(path, TARGET, [], b"{}"), MessageToJson(message).encode())
    assert (event.leg, event.kind, event.state_read, event.task_id) == ("stream-event", kind, state, "T1")


def test_a_list_of_tasks_is_a_list() -> None:
    assert answered(NEW + "ListTasks", new.ListTasksResponse(tasks=[TASK_1_0])).kind == "list"


STATUS_OF = grpc_handler._ERROR_CODE_MAP  # pyright: ignore[reportPrivateUsage] - the SDK's own table
A2A_ERRORS = [kind for kind, code in JSON_RPC_ERROR_CODE_MAP.items() if -32100 < code <= -32001]


def error_in(path: str, kind: type[A2AError], status: dict[str, Any]) -> tuple[str | None, int | None, str | None]:
    code = STATUS_OF[kind]
    body = json.dumps({"code": code.value[0], **status}).encode()
    leg = parse_response(parse_grpc_request(path, TARGET, [], b"{}"), GRPC_STATUSES[code.name], [], body)
    return (leg.kind, leg.error.code, leg.error.reason) if leg.error else (leg.kind, None, None)


@pytest.mark.parametrize("kind", A2A_ERRORS)
def test_every_error_has_the_number_that_it_has_in_json_rpc(kind: type[A2AError]) -> None:
    """`google.rpc.Status` of 1.0 has an ErrorInfo; an agent of 0.3 puts the error's name into the message."""
    expected = ("error", JSON_RPC_ERROR_CODE_MAP[kind], A2A_ERROR_REASONS[kind])
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": A2A_ERROR_REASONS[kind]}
    assert error_in(NEW + "GetTask", kind, {"message": "no", "details": [info]}) == expected
    assert error_in(OLD + "GetTask", kind, {"message": f"{kind.__name__}: no"}) == expected


def test_0_3_has_a_name_of_its_own_for_a_missing_extended_card() -> None:
    named = {"code": 9, "message": "AuthenticatedExtendedCardNotConfiguredError: none"}
    leg = parse_response(
        parse_grpc_request(OLD + "GetAgentCard", TARGET, [], b"{}"), 400, [], json.dumps(named).encode()
    )
    assert leg.error is not None
    assert (leg.error.code, leg.error.reason) == (-32007, "EXTENDED_AGENT_CARD_NOT_CONFIGURED")


A2A_COLUMN = {"NOT_FOUND": 404, "FAILED_PRECONDITION": 400, "INVALID_ARGUMENT": 400, "INTERNAL": 500}
"""The HTTP column of A2A 1.0 section 5.4."""


def test_every_grpc_status_has_an_http_column() -> None:
    assert GRPC_STATUSES.keys() == {code.name for code in grpc.StatusCode}
    assert {name: GRPC_STATUSES[name] for name in A2A_COLUMN} == A2A_COLUMN
    # google/rpc/code.proto says "HTTP Mapping: 499 Client Closed Request" and so on in its comments
    assert (GRPC_STATUSES["UNAUTHENTICATED"], GRPC_STATUSES["PERMISSION_DENIED"], GRPC_STATUSES["UNAVAILABLE"]) == (
        401,
        403,
        503,
    )


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff"])
def test_what_cannot_be_read_does_no_harm(body: bytes) -> None:
    request = parse_grpc_request(NEW + "SendMessage", TARGET, [], body)
    assert request.method == "SendMessage"
    assert parse_response(request, 404, [], body).kind == "error"
    assert re.fullmatch("not-json|", ",".join(request.flags))
