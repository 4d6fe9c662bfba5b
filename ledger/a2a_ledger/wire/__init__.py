"""Bytes and headers of an exchange -> one leg: what was called, for which task, and what was said.

JSON-RPC, HTTP+JSON, and gRPC as the ProtoJSON of its messages; A2A 0.1 to 1.0. Nothing here raises on
what comes from the wire: what cannot be read is absent and flagged, and the bytes are kept by whoever
calls. Nothing is normalised away either: `state` is as the peer spelled it, `state_read` as it is understood.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urljoin, urlsplit

from a2a_ledger.wire.answer import read_answer, read_pin, rpc_id
from a2a_ledger.wire.contents import (
    SILENCE,
    ArtifactContent,
    Contents,
    MessageContent,
    answer_contents,
    message_digest,
    payload_digest,
    repeated_members,
    request_contents,
)
from a2a_ledger.wire.demand import Demand, challenges
from a2a_ledger.wire.jsontext import MAX_NAME, MAX_TEXT, lift, member, objects, read_json
from a2a_ledger.wire.leg import Headers, Leg, WireError, header, version_of
from a2a_ledger.wire.pieces import Content, Running
from a2a_ledger.wire.spellings import (
    EXTENSION,
    GRPC_STATUSES,
    HEAD_PARAMETER,
    INTERRUPTED,
    METHODS,
    SENDS,
    STATES,
    TERMINAL,
    Method,
    grpc_method,
    rest_call,
)
from a2a_ledger.wire.sse import SseEvent, SseParser, data_of, split_stream

if TYPE_CHECKING:
    from a2a_ledger.events import Json, JsonObject

__all__ = [
    "EXTENSION",
    "GRPC_STATUSES",
    "HEAD_PARAMETER",
    "INTERRUPTED",
    "SENDS",
    "SILENCE",
    "STATES",
    "TERMINAL",
    "ArtifactContent",
    "Content",
    "Contents",
    "Demand",
    "Headers",
    "Leg",
    "MessageContent",
    "Running",
    "SseEvent",
    "SseParser",
    "WireError",
    "answer_contents",
    "header",
    "message_digest",
    "parse_grpc_request",
    "parse_push",
    "parse_request",
    "parse_response",
    "parse_stream_event",
    "payload_digest",
    "repeated_members",
    "request_contents",
    "split_stream",
    "version_of",
]

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MAX_LISTED = 64


def parse_request(method: str, url: str, headers: Headers, body: bytes) -> Leg:
    """Read a request that a client sends.

    Args:
        method: the HTTP method.
        url: as asked, with its query.
        headers: name and value pairs, names in any case.
        body: after content decoding; may be anything.
    """
    query = _query(url)
    stated = version_of(header(headers, "a2a-version")) or version_of(query.get("A2A-Version"))
    read = read_json(body)
    common = Leg(
        leg="request",
        binding="unknown",
        url=url,
        version=stated,
        version_stated=stated,
        extensions=_extensions(headers),
    )
    if isinstance(read.value, list) and any("jsonrpc" in item for item in objects(read.value)):
        read.flags.add("batch")
        leg = common._replace(binding="JSONRPC")
    elif isinstance(read.value, dict) and ("jsonrpc" in read.value or isinstance(read.value.get("method"), str)):
        leg = _rpc_request(common, read.value, read.flags)
    elif call := rest_call(method, url):
        leg = common._replace(binding="HTTP+JSON", method_spelled=call.spelled)
        leg = _operation(leg, call.method, read.value, query, read.flags)
        leg = leg._replace(task_id=lift(call.task_id, read.flags) or leg.task_id)
    else:
        leg = common
    return leg._replace(flags=tuple(sorted(read.flags)))


def parse_grpc_request(path: str, target: str, metadata: Headers, body: bytes) -> Leg:
    """Read a gRPC request that a client sends.

    Args:
        path: of the call, `/package.Service/Method`.
        target: what the channel was made for, as the card names it.
        metadata: name and value pairs.
        body: the message as ProtoJSON.
    """
    read, known = read_json(body), grpc_method(path)
    leg = Leg(
        leg="request",
        binding="GRPC",
        url=target,
        method_spelled=lift(path, read.flags, MAX_NAME),
        version_stated=version_of(header(metadata, "a2a-version")),
        extensions=_extensions(metadata),
    )
    return _operation(leg, known, read.value, {}, read.flags)._replace(flags=tuple(sorted(read.flags)))


def parse_response(request: Leg, status: int, headers: Headers, body: bytes) -> Leg:
    """Read an answer that is not a stream.

    Args:
        request: the leg that it answers.
        status: HTTP status.
        headers: of the answer.
        body: after content decoding.
    """
    read = read_json(body)
    stated = version_of(header(headers, "a2a-version"))
    leg = read_answer(_of_request(request, "response")._replace(status=status), read)
    location = header(headers, "location") if status in _REDIRECTS else None
    asked = challenges(value for key, value in headers if key.lower() == "www-authenticate")
    return leg._replace(
        version=stated or leg.envelope,
        version_stated=stated,
        challenge=asked + leg.challenge,
        redirect=_absolute(request.url, location, read.flags),
        extensions=_extensions(headers),
        flags=tuple(sorted(read.flags)),
    )


def parse_stream_event(request: Leg, data: bytes) -> Leg:
    """Read one server-sent event that answers `request`: a JSON-RPC response, or the bare object.

    Args:
        request: the leg that it answers.
        data: the event's data, or the whole block as it came (`SseEvent.raw`).
    """
    read = read_json(data_of(data))
    leg = read_answer(_of_request(request, "stream-event"), read)
    return leg._replace(version=leg.envelope, flags=tuple(sorted(read.flags)))


def parse_push(headers: Headers, body: bytes) -> Leg:
    """Read a push that a client received: one stream response (1.0) or a whole Task (0.3)."""
    read = read_json(body)
    stated = version_of(header(headers, "a2a-version"))
    leg = read_answer(Leg(leg="push", binding="HTTP+JSON", method="SubscribeToTask"), read)
    return leg._replace(
        method=None,
        version=stated or leg.envelope,
        version_stated=stated,
        extensions=_extensions(headers),
        flags=tuple(sorted(read.flags)),
    )


def _of_request(request: Leg, leg: str) -> Leg:
    return Leg(
        leg=leg,
        binding=request.binding,
        url=request.url,
        method=request.method,
        method_spelled=request.method_spelled,
    )


# ---- requests


def _rpc_request(common: Leg, body: JsonObject, flags: set[str]) -> Leg:
    spelled = lift(body.get("method"), flags, MAX_NAME)
    leg = common._replace(binding="JSONRPC", method_spelled=spelled, rpc_id=rpc_id(body.get("id"), flags))
    known = METHODS.get(spelled) if spelled else None
    return _operation(leg, known, body.get("params"), {}, flags)


def _operation(leg: Leg, method: Method | None, params: Json, query: dict[str, str], flags: set[str]) -> Leg:
    """Read the parameters of an operation; `params` is the JSON-RPC params or the HTTP+JSON body."""
    name = method.name if method else None
    message = member(params, "message")
    if message is None and leg.binding in {"HTTP+JSON", "GRPC"}:
        message = member(params, "request")  # the field's name in the 0.3 proto, as SDKs send it
    if name is None or name in SENDS:
        task = member(message, "taskId") or member(params, "taskId")
        if method and method.version == "0.1":
            task = task or member(params, "id")
    elif "PushNotificationConfig" in name:
        # `id` names the task in 0.2 and 0.3 JSON-RPC and the configuration in 1.0, which has `taskId`.
        task = member(params, "taskId") or _resource(params)
        if method and method.version != "1.0":
            task = task or member(params, "id")
    else:
        task = member(params, "id") or _resource(params)
    context = member(message, "contextId") or member(params, "contextId", "sessionId") or query.get("contextId")
    asked = member(member(params, "configuration"), "historyLength")
    asked = member(params, "historyLength") if asked is None else asked
    if asked is None and query.get("historyLength", "").isdecimal():
        asked = int(query["historyLength"][:9])
    return leg._replace(
        method=name,
        version=leg.version_stated or (method.version if method else None),
        message_id=lift(member(message, "messageId"), flags),
        task_id=lift(task, flags),
        context_id=lift(context, flags),
        tenant=lift(member(params, "tenant") or query.get("tenant"), flags, MAX_NAME),
        pin=read_pin(message, flags),
        history_length=asked if isinstance(asked, int) and not isinstance(asked, bool) else None,
    )


def _resource(params: Json) -> Json:
    """Read a task id out of a 0.3 resource name, `tasks/{id}/…`."""
    name = member(params, "name", "parent")
    if isinstance(name, str) and name.startswith("tasks/"):
        return name.split("/")[1]
    return None


def _query(url: str) -> dict[str, str]:
    try:
        return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
    except ValueError:
        return {}


# ---- small readings


def _extensions(headers: Headers) -> tuple[str, ...]:
    """Read `A2A-Extensions` and, of 0.2.4 to 0.3, `X-A2A-Extensions`; some clients send both."""
    lines = (value for key, value in headers if key.lower() in {"a2a-extensions", "x-a2a-extensions"})
    uris = (uri.strip() for line in lines for uri in line.split(","))
    kept = dict.fromkeys(uri for uri in uris if uri and len(uri) <= MAX_TEXT and uri.isascii() and uri.isprintable())
    return tuple(kept)[:_MAX_LISTED]


def _absolute(base: str, location: str | None, flags: set[str]) -> str | None:
    if location is None:
        return None
    try:
        return urljoin(base, location)
    except ValueError:
        flags.add("bad-redirect")
        return location
