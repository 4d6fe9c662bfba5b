"""How A2A 0.1 to 1.0 spell the same things: states, methods, paths and errors. Tables only.

States, methods and errors: A2A 1.0 sections 5.3 to 5.5 and the 0.1 to 0.3 schemas. A spelling that is
in no table stays as it was spelled and is understood as nothing.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

EXTENSION = "https://w3id.org/a2a-ledger/ext/frozen-contract/v1"
HEAD_PARAMETER = "A2A-Ledger-Head"
"""Service parameter of a ledger's signed head: an HTTP header; in lower case, a gRPC metadata key."""
"""URI of the frozen-contract extension: the metadata key of the pin."""
PIN_MEMBERS = ("form", "contractHash", "cardHash", "capturedAt", "origin", "task", "seed0")

_STATE_NAMES = (
    "submitted",
    "working",
    "completed",
    "failed",
    "canceled",
    "input-required",
    "rejected",
    "auth-required",
)
STATES: dict[str, str] = {
    **{name: name for name in _STATE_NAMES},
    **{f"TASK_STATE_{name.replace('-', '_').upper()}": name for name in _STATE_NAMES},
    **{str(number): name for number, name in enumerate(_STATE_NAMES, start=1)},  # ProtoJSON also accepts enum numbers
    "cancelled": "canceled",
    "TASK_STATE_CANCELLED": "canceled",  # the 0.3 proto's double L
}
"""A state as spelled -> as understood. `unknown` and `TASK_STATE_UNSPECIFIED` say nothing and are not in it."""
TERMINAL = frozenset({"completed", "failed", "canceled", "rejected"})
INTERRUPTED = frozenset({"input-required", "auth-required"})

SENDS = frozenset({"SendMessage", "SendStreamingMessage"})
"""Operations that hand work to a peer."""
WRAPPED = frozenset({*SENDS, "SubscribeToTask"})
"""Operations whose 1.0 answer is wrapped in `task`, `message`, `statusUpdate` or `artifactUpdate`."""


class Method(NamedTuple):
    """An operation by its 1.0 name, and the protocol version that this spelling belongs to."""

    name: str
    version: str


METHODS: dict[str, Method] = {
    "tasks/send": Method("SendMessage", "0.1"),
    "tasks/sendSubscribe": Method("SendStreamingMessage", "0.1"),
    "tasks/pushNotification/set": Method("CreateTaskPushNotificationConfig", "0.1"),
    "tasks/pushNotification/get": Method("GetTaskPushNotificationConfig", "0.1"),
    "message/send": Method("SendMessage", "0.3"),
    "message/stream": Method("SendStreamingMessage", "0.3"),
    "tasks/get": Method("GetTask", "0.3"),
    "tasks/list": Method("ListTasks", "0.3"),
    "tasks/cancel": Method("CancelTask", "0.3"),
    "tasks/resubscribe": Method("SubscribeToTask", "0.3"),
    "tasks/pushNotificationConfig/set": Method("CreateTaskPushNotificationConfig", "0.3"),
    "tasks/pushNotificationConfig/get": Method("GetTaskPushNotificationConfig", "0.3"),
    "tasks/pushNotificationConfig/list": Method("ListTaskPushNotificationConfigs", "0.3"),
    "tasks/pushNotificationConfig/delete": Method("DeleteTaskPushNotificationConfig", "0.3"),
    "agent/getAuthenticatedExtendedCard": Method("GetExtendedAgentCard", "0.3"),
    **{
        name: Method(name, "1.0")
        for name in (
            "SendMessage",
            "SendStreamingMessage",
            "GetTask",
            "ListTasks",
            "CancelTask",
            "SubscribeToTask",
            "CreateTaskPushNotificationConfig",
            "GetTaskPushNotificationConfig",
            "ListTaskPushNotificationConfigs",
            "DeleteTaskPushNotificationConfig",
            "GetExtendedAgentCard",
        )
    },
}
"""JSON-RPC method as spelled -> operation. `tasks/get` and its like are the same in 0.1, 0.2 and 0.3."""

_GRPC_SERVICES = {"lf.a2a.v1.A2AService": "1.0", "a2a.v1.A2AService": "0.3"}
"""gRPC service by its full name -> the protocol version that it belongs to."""
_GRPC_0_3 = {
    "TaskSubscription": "SubscribeToTask",
    "ListTaskPushNotificationConfig": "ListTaskPushNotificationConfigs",
    "GetAgentCard": "GetExtendedAgentCard",
}
"""Operations that the 0.3 proto names otherwise than 1.0 does."""


def grpc_method(path: str) -> Method | None:
    """Return the operation of a gRPC path, `/package.Service/Method`; None: it is none of A2A."""
    service, _, spelled = path.removeprefix("/").partition("/")
    version = _GRPC_SERVICES.get(service)
    name = _GRPC_0_3.get(spelled, spelled) if version == "0.3" else spelled
    known = METHODS.get(name)
    return Method(name, version) if version is not None and known is not None and known.name == name else None


def speaks_0_3_proto(method_spelled: str | None) -> bool:
    """Say whether a call speaks the JSON of the 0.3 proto: HTTP+JSON of 0.3, under `/v1`, and gRPC of 0.3."""
    return method_spelled is not None and ("/v1/" in method_spelled or method_spelled.startswith("/a2a.v1."))


ERROR_CODES: dict[str, int] = {
    "TASK_NOT_FOUND": -32001,
    "TASK_NOT_CANCELABLE": -32002,
    "PUSH_NOTIFICATION_NOT_SUPPORTED": -32003,
    "UNSUPPORTED_OPERATION": -32004,
    "CONTENT_TYPE_NOT_SUPPORTED": -32005,
    "INVALID_AGENT_RESPONSE": -32006,
    "EXTENDED_AGENT_CARD_NOT_CONFIGURED": -32007,
    "EXTENSION_SUPPORT_REQUIRED": -32008,
    "VERSION_NOT_SUPPORTED": -32009,
}
"""`ErrorInfo.reason` -> the JSON-RPC code of the same error (A2A 1.0 section 5.4)."""
ERROR_REASONS: dict[int, str] = {code: reason for reason, code in ERROR_CODES.items()}

GRPC_STATUSES: dict[str, int] = {
    "OK": 200,
    "CANCELLED": 499,
    "UNKNOWN": 500,
    "INVALID_ARGUMENT": 400,
    "DEADLINE_EXCEEDED": 504,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
    "PERMISSION_DENIED": 403,
    "RESOURCE_EXHAUSTED": 429,
    "FAILED_PRECONDITION": 400,
    "ABORTED": 409,
    "OUT_OF_RANGE": 400,
    "UNIMPLEMENTED": 501,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DATA_LOSS": 500,
    "UNAUTHENTICATED": 401,
}
"""gRPC status -> HTTP status, by `google/rpc/code.proto`; where A2A 1.0 section 5.4 names both they are the same."""

_REST = re.compile(
    r"(?P<v1>/v1)?"
    r"(?:/message:(?P<send>send|stream)"
    r"|/tasks/(?P<configured>[^/]+)/pushNotificationConfigs(?:/(?P<config>[^/]+))?"
    r"|/tasks/(?P<task>[^/]+?)(?::(?P<verb>cancel|subscribe))?"
    r"|(?P<list>/tasks)"
    r"|(?P<extended>/extendedAgentCard))/?$"
)
_REST_V1_CARD = re.compile(r"/v1/card/?$")
_SHAPES = {
    "SendMessage": "/message:send",
    "SendStreamingMessage": "/message:stream",
    "GetTask": "/tasks/{id}",
    "ListTasks": "/tasks",
    "CancelTask": "/tasks/{id}:cancel",
    "SubscribeToTask": "/tasks/{id}:subscribe",
    "CreateTaskPushNotificationConfig": "/tasks/{id}/pushNotificationConfigs",
    "GetTaskPushNotificationConfig": "/tasks/{id}/pushNotificationConfigs/{config}",
    "ListTaskPushNotificationConfigs": "/tasks/{id}/pushNotificationConfigs",
    "DeleteTaskPushNotificationConfig": "/tasks/{id}/pushNotificationConfigs/{config}",
    "GetExtendedAgentCard": "/extendedAgentCard",
}
_VERBS = {"cancel": "CancelTask", "subscribe": "SubscribeToTask", None: "GetTask"}
_SEND = {"send": "SendMessage", "stream": "SendStreamingMessage"}


class RestCall(NamedTuple):
    """An HTTP+JSON call: the operation, the version its path belongs to, and the task id in the path."""

    method: Method
    spelled: str
    task_id: str | None


def rest_call(http_method: str, url: str) -> RestCall | None:
    """Recognise an HTTP+JSON call by its path (A2A 1.0 section 11, A2A 0.3 section 3.5.6), else None."""
    try:
        path = urlsplit(url).path
    except ValueError:
        return None
    verb = http_method.upper()
    if _REST_V1_CARD.search(path) and verb == "GET":
        return RestCall(Method("GetExtendedAgentCard", "0.3"), "GET /v1/card", None)
    found = _REST.search(path)
    if found is None:
        return None
    name = _rest_name(verb, found)
    if name is None:
        return None
    task = found["task"] or found["configured"]
    version = "0.3" if found["v1"] else "1.0"
    spelled = f"{verb} {found['v1'] or ''}{_SHAPES[name]}"
    return RestCall(Method(name, version), spelled, unquote(task) if task else None)


def rest_bases(url: str) -> list[str]:
    """Return the interface urls that an HTTP+JSON request may have been built from, the likeliest first.

    The path of the call is cut off, with and without a `/v1` before it and a tenant before that. A url
    that is no such call, as of JSON-RPC, is its own and only base.
    """
    found = _REST.search(url) or _REST_V1_CARD.search(url)
    if found is None:
        return [url]
    base = url[: found.start()]
    bases = [f"{base}/v1", base] if found[0].startswith("/v1") else [base]
    return [*bases, base.rsplit("/", 1)[0]]


def _rest_name(verb: str, found: re.Match[str]) -> str | None:
    if found["send"]:
        return _SEND[found["send"]] if verb == "POST" else None
    if found["configured"]:
        if found["config"]:
            return {"GET": "GetTaskPushNotificationConfig", "DELETE": "DeleteTaskPushNotificationConfig"}.get(verb)
        return {"GET": "ListTaskPushNotificationConfigs", "POST": "CreateTaskPushNotificationConfig"}.get(verb)
    if found["task"]:
        wanted = {"cancel": ("POST",), "subscribe": ("POST", "GET"), None: ("GET",)}[found["verb"]]
        return _VERBS[found["verb"]] if verb in wanted else None
    if verb != "GET":
        return None
    return "ListTasks" if found["list"] else "GetExtendedAgentCard"
