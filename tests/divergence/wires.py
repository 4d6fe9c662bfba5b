"""One conversation on every wire: the same words over JSON-RPC, HTTP+JSON and gRPC of A2A 1.0, and JSON-RPC of 0.3.

Payloads are given as A2A 1.0 has them; each JSON-RPC request has an id of its own, as real clients number them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from tests.divergence.story import URL, Story, card, task

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_ledger.codec import Record
    from a2a_ledger.events import Json, JsonObject

WIRES = ("JSONRPC", "HTTP+JSON", "GRPC", "0.3")
_OLD_METHODS = {
    "SendMessage": "message/send",
    "SendStreamingMessage": "message/stream",
    "GetTask": "tasks/get",
    "CancelTask": "tasks/cancel",
    "SubscribeToTask": "tasks/resubscribe",
}
_PATHS = {
    "SendMessage": ("POST", "/message:send"),
    "SendStreamingMessage": ("POST", "/message:stream"),
    "GetTask": ("GET", "/tasks/{}"),
    "CancelTask": ("POST", "/tasks/{}:cancel"),
    "SubscribeToTask": ("GET", "/tasks/{}:subscribe"),
}
_KINDS = {"task": "task", "message": "message", "statusUpdate": "status-update", "artifactUpdate": "artifact-update"}
_TERMINAL = {"completed", "failed", "canceled", "rejected"}


@dataclass
class Wire:
    """A story that is told over one wire."""

    name: str
    story: Story = field(default_factory=Story)
    served: JsonObject = field(default_factory=dict[str, "Json"])
    """What is served, with this wire as its one interface."""
    _ids: dict[str, int] = field(default_factory=dict[str, int])

    def begin(self, served: JsonObject | None = None) -> None:
        """Fetch a card with this one interface, and freeze it."""
        version, binding = ("0.3", "JSONRPC") if self.name == "0.3" else ("1.0", self.name)
        self.served = card() if served is None else served
        self.served["supportedInterfaces"] = [{"url": URL, "protocolBinding": binding, "protocolVersion": version}]
        self.story.capture(self.story.fetch(self.served), binding=binding, version=version)

    def send(
        self,
        message_id: str = "m1",
        text: str = "go",
        *,
        task_id: str | None = None,
        streaming: bool = False,
    ) -> Record:
        """Send a message."""
        message: JsonObject = {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": text}]}
        message |= {"taskId": task_id, "contextId": "C1"} if task_id else {}
        return self._ask("SendStreamingMessage" if streaming else "SendMessage", {"message": message}, None)

    def ask(self, method: str, task_id: str = "T1") -> Record:
        """Ask about a task, cancel it, or subscribe to it."""
        return self._ask(method, {"id": task_id}, task_id)

    def _ask(self, method: str, params: JsonObject, task_id: str | None) -> Record:
        if self.name == "GRPC":
            return self.story.grpc(f"/lf.a2a.v1.A2AService/{method}", params)
        if self.name == "HTTP+JSON":
            verb, path = _PATHS[method]
            return self.story.call(verb, URL + path.format(task_id), body=params if verb == "POST" else None)
        old = self.name == "0.3"
        spelled = _OLD_METHODS[method] if old else method
        number = len(self._ids) + 1
        sent = cast("JsonObject", _old(params) if old else params)
        body = {"jsonrpc": "2.0", "id": number, "method": spelled, "params": sent}
        record = self.story.ask_bytes(json.dumps(body).encode(), version=None if old else "1.0")
        self._ids[record.c] = number
        return record

    def answer(self, request: Record, payload: JsonObject) -> Record:
        """Answer a request: a send with a wrapped payload, all others with a Task."""
        named = payload if request.data["method"] == "SendMessage" else payload["task"]
        said = _said(payload) if self.name == "0.3" else cast("JsonObject", named)
        return self.story.answer(request, body=self._body(request, said))

    def poll(self, state: str = "working", *, task_id: str = "T1", **others: Json) -> Record:
        """Ask for the task and be told of it; return the answer."""
        context = "C1" if task_id == "T1" else f"C-{task_id}"
        told = task(state, task_id=task_id, context=context, **others)
        return self.answer(self.ask("GetTask", task_id), {"task": told})

    def tell(self, request: Record, *payloads: JsonObject) -> None:
        """Give events of a stream."""
        for payload in payloads:
            body = self._body(request, _said(payload) if self.name == "0.3" else payload)
            self.story.stream_bytes(request, body if self.name == "GRPC" else b"data: " + body + b"\n\n")

    def push(self, *payloads: JsonObject) -> None:
        """Push; every wire does it over HTTP, 0.3 a whole Task."""
        for payload in payloads:
            self.story.push(_said(payload) if self.name == "0.3" else payload)

    def _body(self, request: Record, payload: JsonObject) -> bytes:
        if self.name in {"HTTP+JSON", "GRPC"}:
            return json.dumps(payload).encode()
        return json.dumps({"jsonrpc": "2.0", "id": self._ids[request.c], "result": payload}).encode()

    def rules(self) -> list[tuple[str, str, str]]:
        """Return what is found in the whole story."""
        return self.story.rules()


def _said(payload: JsonObject) -> JsonObject:
    """Return a payload of 1.0 as 0.3 has it: flat, with its kind, and with the event by which a stream ends."""
    (name,) = payload
    inner = cast("JsonObject", _old(payload[name]))
    if name == "statusUpdate":
        inner["final"] = cast("Mapping[str, Json]", inner["status"])["state"] in _TERMINAL
    return {"kind": _KINDS[name], **inner}


def _old(value: Json) -> Json:
    """Return a value of 1.0 in the spelling of 0.3: states, roles and parts."""
    if isinstance(value, list):
        return [_old(item) for item in value]
    if isinstance(value, dict):
        made: JsonObject = {name: _old(inner) for name, inner in value.items()}
        return {"kind": "text", **made} if "text" in made else {"kind": "message", **made} if "role" in made else made
    if isinstance(value, str) and value.startswith(("TASK_STATE_", "ROLE_")):
        return value.removeprefix("TASK_STATE_").removeprefix("ROLE_").lower().replace("_", "-")
    return value
