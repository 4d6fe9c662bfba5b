"""What an answer, a stream event or a push says: envelopes of 0.1 to 1.0, tasks, updates, errors, the pin."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from a2a_ledger.wire.demand import structured
from a2a_ledger.wire.jsontext import MAX_NAME, JsonText, Token, lift, member, objects
from a2a_ledger.wire.leg import Leg, WireError
from a2a_ledger.wire.spellings import (
    ERROR_CODES,
    ERROR_REASONS,
    EXTENSION,
    INTERRUPTED,
    PIN_MEMBERS,
    STATES,
    WRAPPED,
    speaks_0_3_proto,
)

if TYPE_CHECKING:
    from a2a_ledger.events import Json, JsonObject

_WRAPPERS = {
    "task": "task",
    "message": "message",
    "statusUpdate": "status-update",
    "artifactUpdate": "artifact-update",
    "status_update": "status-update",
    "artifact_update": "artifact-update",
}
_KINDS = frozenset({"task", "message", "status-update", "artifact-update"})
_HTTP_ERROR = 400
_ERROR_CLASS = re.compile(r"(?:Authenticated)?([A-Z][A-Za-z]{2,64})Error: ")
"""How gRPC agents of 0.3 name an error, in its message: by the SDK's name of it."""
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def read_answer(leg: Leg, read: JsonText) -> Leg:
    """Read an answer's body into `leg`; the binding of an unknown request shows in the body."""
    body = read.value
    if not isinstance(body, dict):
        return _http_error(leg, None, read.flags)
    if leg.binding not in {"HTTP+JSON", "GRPC"} and "jsonrpc" in body:
        leg = leg._replace(binding="JSONRPC", rpc_id=rpc_id(body.get("id"), read.flags))
        error = body.get("error")
        if error is not None:
            return _with_error(leg, error, member(error, "data"), read.flags)
        return _payload(leg, body.get("result"), read.flags)
    if "jsonrpc" in body and (
        "result" in body or "error" in body
    ):  # a JSON-RPC body pushed, or sent by a 0.3 HTTP agent
        return read_answer(leg._replace(binding="unknown"), read)
    if (leg.status or 0) >= _HTTP_ERROR or isinstance(body.get("error"), dict):
        return _http_error(leg, body, read.flags)
    return _payload(leg, body, read.flags)


def _http_error(leg: Leg, body: JsonObject | None, flags: set[str]) -> Leg:
    """Read an error of HTTP+JSON or gRPC.

    AIP-193 (1.0), problem+json, the bare JSON-RPC error object of 0.3 agents; of gRPC a `google.rpc.Status`.
    """
    if body is None:
        return leg._replace(kind="error") if (leg.status or 0) >= _HTTP_ERROR else leg
    error = body.get("error", body)
    details = member(error, "details")
    data = member(error, "data") if details is None else details
    return _with_error(leg, error, data, flags)


def _with_error(leg: Leg, error: Json, data: Json, flags: set[str]) -> Leg:
    code = member(error, "code")
    reason = next((text for item in objects(data) if (text := lift(item.get("reason"), flags))), None)
    if reason is None and isinstance(kind := member(error, "type"), str):  # problem+json: …/task-not-found
        reason = _known_reason(kind.rsplit("/", 1)[-1].removesuffix("-error").replace("-", "_"))
    text = _text(member(error, "message") or member(error, "detail") or member(error, "title"))
    if reason is None and leg.binding == "GRPC" and (named := _ERROR_CLASS.match(text)):
        reason = _known_reason(_CAPITAL.sub("_", named[1]))
    number = code if isinstance(code, int) and not isinstance(code, bool) and code < 0 else None
    if number is None and reason is not None:
        number = ERROR_CODES.get(reason)
    if reason is None and number is not None:
        reason = ERROR_REASONS.get(number)
    return leg._replace(
        kind="error",
        error=WireError(code=number, reason=reason, message=text, data=data),
        text=text,
        challenge=structured(data, "error-data"),
    )


def _known_reason(spelled: str) -> str | None:
    reason = spelled.upper()
    reason = "EXTENDED_AGENT_CARD_NOT_CONFIGURED" if reason == "EXTENDED_CARD_NOT_CONFIGURED" else reason  # as of 0.3
    return reason if reason in ERROR_CODES else None


def _payload(leg: Leg, value: Json, flags: set[str]) -> Leg:
    """Read a result: wrapped (1.0), with `kind` (0.2, 0.3), or known by its members (0.1)."""
    kind, inner, envelope = unwrap(value)
    if kind is None or not isinstance(inner, dict):
        return leg._replace(kind="list") if isinstance(member(value, "tasks"), list) else leg
    if (leg.method is None or leg.method in WRAPPED) and not (
        envelope == "1.0" and speaks_0_3_proto(leg.method_spelled)
    ):
        leg = leg._replace(envelope=envelope)
    context = lift(member(inner, "contextId", "sessionId"), flags)
    if kind == "message":
        text, data = _parts(inner)
        return leg._replace(
            kind=kind,
            message_id=lift(member(inner, "messageId"), flags),
            task_id=lift(member(inner, "taskId"), flags),
            context_id=context,
            text=text,
            data_parts=data,
        )
    task = member(inner, "id") if kind == "task" else member(inner, "taskId", "id")
    leg = leg._replace(kind=kind, task_id=lift(task, flags), context_id=context, final=inner.get("final") is True)
    leg = _status(leg, member(inner, "status"), flags)
    return leg._replace(is_task=True, pin=read_pin(inner, flags)) if kind == "task" else leg


def unwrap(value: Json) -> tuple[str | None, Json, str | None]:
    """Return the kind of a payload, the object itself and the envelope's version."""
    if not isinstance(value, dict):
        return None, None, None
    stated = value.get("kind")
    if isinstance(stated, str) and stated in _KINDS:
        return stated, value, "0.3"
    wrapped = [name for name in _WRAPPERS if isinstance(value.get(name), dict)]
    if len(wrapped) == 1 and "id" not in value and "status" not in value:
        return _WRAPPERS[wrapped[0]], value[wrapped[0]], "1.0"
    return _kind_by_members(value), value, None


def _kind_by_members(value: JsonObject) -> str | None:
    if isinstance(value.get("artifact"), dict):
        return "artifact-update"
    if isinstance(value.get("status"), dict):
        is_update = "final" in value or ("id" not in value and member(value, "taskId") is not None)
        return "status-update" if is_update else "task"
    is_message = member(value, "messageId") is not None or (
        "role" in value and ("parts" in value or "content" in value)
    )
    return "message" if is_message else None


def _status(leg: Leg, status: Json, flags: set[str]) -> Leg:
    spelled = member(status, "state")
    if isinstance(spelled, int) and not isinstance(spelled, bool):
        spelled = str(spelled)
    state = lift(spelled, flags, MAX_NAME)
    read = STATES.get(state) if state else None
    text, data = _parts(member(status, "message", "update"))
    asked = structured(list(data), "status-data") if read in INTERRUPTED else ()
    return leg._replace(state=state, state_read=read, text=text, data_parts=data, challenge=asked)


def _parts(message: Json) -> tuple[str, tuple[Json, ...]]:
    """Return the free text and the data of a message's parts (`content` in the 0.3 proto)."""
    texts: list[str] = []
    data: list[Json] = []
    for part in objects(member(message, "parts", "content")):
        if isinstance(part.get("text"), str):
            texts.append(_text(part["text"]))
        if "data" in part:
            inner = part["data"]
            only = isinstance(inner, dict) and set(inner) == {"data"}  # the 0.3 proto wraps it once more
            data.append(member(inner, "data") if only else inner)
    return "\n".join(texts), tuple(data)


def read_pin(value: Json, flags: set[str]) -> dict[str, str] | None:
    """Read the pin in an object's own metadata; copies of a message in a Task's `history` never count."""
    metadata = member(value, "metadata")
    if not isinstance(metadata, dict) or EXTENSION not in metadata:
        return None
    stated = metadata[EXTENSION]
    found = {name: lift(stated.get(name), flags, MAX_NAME) for name in PIN_MEMBERS} if isinstance(stated, dict) else {}
    return {name: text for name, text in found.items() if text is not None}


def rpc_id(value: Json, flags: set[str]) -> str | None:
    """Return a JSON-RPC id as text; a number keeps its spelling, null is no id."""
    if isinstance(value, bool):
        return None
    return lift(str(value) if isinstance(value, int | Token) else value, flags)


def _text(value: Json) -> str:
    """Return free text that can be printed anywhere: lone surrogates become U+FFFD (the bytes are in the blob)."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""
