"""Builds records for rules to judge: what happened, event by event, without a database.

Events are made the way capture makes them: bodies are parsed by `wire`, cards by `card`, and every
record is drafted and sealed by the codec, so a rule sees exactly what it sees in a log.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

from a2a_ledger.capture.redact import withhold
from a2a_ledger.card import read_card
from a2a_ledger.codec import Content, draft, read_record, seal, stream_tag
from a2a_ledger.contract import TERMS_FORM, contract_of, default_profile
from a2a_ledger.divergence import RULE_SET, Cases, RecordLog
from a2a_ledger.events import (
    CardFetched,
    CardFetchFailed,
    ContractCaptured,
    ContractReconstructed,
    Event,
    MessageRecorded,
    TaskAdopted,
    TaskBound,
)
from a2a_ledger.wire import (
    EXTENSION,
    Leg,
    parse_grpc_request,
    parse_push,
    parse_request,
    parse_response,
    parse_stream_event,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from a2a_ledger.codec import Draft, Record, Withheld
    from a2a_ledger.contract import Profile
    from a2a_ledger.divergence import Finding
    from a2a_ledger.events import Credential, Interface, Json, JsonObject, Ref

LOG = "acme/audit/1b9e04c7"
PEER = "00112233445566778899aabbccddeeff"
CARD_URL = "https://vendor.example/.well-known/agent-card.json"
URL = "https://vendor.example/a2a"
START = datetime(2026, 9, 14, 9, 0, tzinfo=UTC)

OAUTH: JsonObject = {
    "oauth2SecurityScheme": {
        "flows": {
            "clientCredentials": {
                "tokenUrl": "https://vendor.example/token",
                "scopes": {"tasks:read": "read", "tasks:write": "write"},
            }
        }
    }
}
MTLS: JsonObject = {"mtlsSecurityScheme": {}}
API_KEY: JsonObject = {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}}


def card(
    schemes: Mapping[str, Json] | None = None,
    required: Sequence[Mapping[str, Sequence[str]]] = ({"oauth": ()},),
    **others: Json,
) -> JsonObject:
    """Return an Agent Card of A2A 1.0 that offers OAuth 2.0, unless something else is said."""
    requirements: list[Json] = [
        {"schemes": {name: {"list": list(scopes)} for name, scopes in one.items()}} for one in required
    ]
    return {
        "name": "reports",
        "description": "writes reports",
        "version": "1",
        "supportedInterfaces": [{"url": URL, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": True},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "report", "name": "report", "description": "", "tags": ["r"]}],
        "securitySchemes": dict({"oauth": OAUTH} if schemes is None else schemes),
        "securityRequirements": requirements,
        **others,
    }


def task(state: str, *, task_id: str = "T1", context: str | None = "C1", **others: Json) -> JsonObject:
    """Return a Task of A2A 1.0; `text` and `data` make a status message, `pin` goes into its metadata."""
    status: JsonObject = {"state": f"TASK_STATE_{state.replace('-', '_').upper()}" if state.islower() else state}
    parts: list[Json] = []
    if "text" in others:
        parts.append({"text": others.pop("text")})
    if "data" in others:
        parts.append({"data": others.pop("data")})
    if parts:
        status["message"] = {"messageId": "s1", "role": "ROLE_AGENT", "parts": parts}
    made: JsonObject = {"id": task_id, "status": status}
    if context is not None:
        made["contextId"] = context
    if "pin" in others:
        made["metadata"] = {EXTENSION: others.pop("pin")}
    return {**made, **others}


def update(state: str, *, task_id: str = "T1", context: str = "C1") -> JsonObject:
    """Return a status update of A2A 1.0."""
    return {
        "statusUpdate": {
            "taskId": task_id,
            "contextId": context,
            "status": {"state": f"TASK_STATE_{state.replace('-', '_').upper()}"},
        }
    }


def said(message_id: str, text: str, role: str = "ROLE_AGENT", **others: Json) -> JsonObject:
    """Return a message of A2A 1.0 with one text."""
    return {"messageId": message_id, "role": role, "parts": [{"text": text}], **others}


def ours(message_id: str, text: str = "go", **others: Json) -> JsonObject:
    """Return a message of ours as a server keeps it: with its task's ids."""
    return said(message_id, text, "ROLE_USER", taskId="T1", contextId="C1", **others)


def artifact(text: str, *, name: str = "A1", append: bool = False, last: bool = False) -> JsonObject:
    """Return an artifact update of A2A 1.0: one chunk with one text."""
    update: JsonObject = {
        "taskId": "T1",
        "contextId": "C1",
        "artifact": {"artifactId": name, "parts": [{"text": text}]},
    }
    update |= {"append": True} if append else {}
    update |= {"lastChunk": True} if last else {}
    return {"artifactUpdate": update}


def made(*texts: str, name: str = "A1") -> list[Json]:
    """Return the artifacts of a Task: one, with a part a text."""
    return [{"artifactId": name, "parts": [{"text": text} for text in texts]}]


def starred(body: bytes, *cut: str) -> Content:
    """Return a body with these texts withheld."""
    parts: list[bytes | Withheld] = []
    for text in cut:
        before, found, body = body.partition(text.encode())
        assert found, f"expected {text} in what is left of the body"
        parts += [before, *withhold(text.encode())]
    return Content((*parts, body))


@dataclass
class Story:
    """A log in the making."""

    records: list[Record] = field(default_factory=list["Record"])
    source: str = ""
    """The file that what follows is imported from; empty: it is live."""
    run: int | None = None
    """Which import of that file, from 2 on."""
    drafts: list[Draft] = field(default_factory=list["Draft"])
    _heads: dict[str, Record] = field(default_factory=dict[str, "Record"])
    _legs: dict[str, Leg] = field(default_factory=dict[str, Leg])
    _asked: int = 0

    # ---- events

    def add(
        self, event: Event, stream: str, blobs: Mapping[str, Content | bytes] | None = None, how: str = "live"
    ) -> Record:
        """Draft, seal and keep one event."""
        n = len(self.records)
        if self.source:
            event, how = replace(event, source_file=self.source, line=n + 1, run=self.run), "import"
        at = START + timedelta(seconds=n)
        made = draft(event, stream=stream, at=at, entropy=_Entropy(n), blobs=blobs, how=how)
        head = self._heads.get(stream)
        ver, prev = (0, None) if head is None else (head.ver + 1, head.c)
        raw, _ = seal(made, log=LOG, ver=ver, prev=prev)
        key = hashlib.sha256(stream.encode()).digest()
        parts = {blob.id.hex(): blob.parts for blob in made.blobs.values()}
        record = read_record(made.salt, raw, n=n, t=stream_tag(key, ver).hex(), parts=parts)
        self._heads[stream] = record
        self.records.append(record)
        self.drafts.append(made)
        return record

    # ---- cards

    def fetch(
        self,
        served: JsonObject | bytes,
        *,
        purpose: str = "discovery",
        etag: str | None = None,
        last_modified: str | None = None,
        caller: str = "anonymous",
        source: str = "well-known",
        how: str = "live",
        peer: str = PEER,
        signature: JsonObject | None = None,
    ) -> Record:
        """Record a card fetch that brought a body."""
        body = served if isinstance(served, bytes) else json.dumps(served).encode()
        read = read_card(body)
        contract = contract_of(read)
        event = CardFetched(
            peer=peer,
            peer_url=CARD_URL,
            url=CARD_URL,
            answered_url=CARD_URL,
            source=source,
            purpose=purpose,
            caller=caller,
            status=200,
            flags=list(read.flags),
            form="a2a-contract/1",
            raw_hash=read.raw_hash,
            document_hash=read.document_hash,
            contract_hash=None if contract is None else contract.hash,
            etag=etag,
            last_modified=last_modified,
            signature=signature,
        )
        return self.add(event, f"peer:{peer}", {"body": body}, how)

    def not_modified(self, fetch: Record, *, purpose: str = "pre-send") -> Record:
        """Record a 304 that points to an earlier fetch."""
        event = CardFetched(
            peer=PEER,
            peer_url=CARD_URL,
            url=CARD_URL,
            answered_url=CARD_URL,
            source="well-known",
            purpose=purpose,
            caller="anonymous",
            status=304,
            flags=[],
            form="a2a-contract/1",
            not_modified=fetch.ref,
            raw_hash=cast("str", fetch.data["raw_hash"]),
            contract_hash=cast("str", fetch.data["contract_hash"]),
        )
        return self.add(event, f"peer:{PEER}")

    def fetch_failed(self, *, purpose: str = "application") -> Record:
        """Record a card fetch that brought nothing."""
        event = CardFetchFailed(
            peer=PEER,
            peer_url=CARD_URL,
            url=CARD_URL,
            answered_url=CARD_URL,
            source="well-known",
            purpose=purpose,
            caller="anonymous",
            outcome="timeout",
        )
        return self.add(event, f"peer:{PEER}")

    # ---- a task

    def capture(
        self,
        fetch: Record,
        *,
        task: str = "t1",
        url: str = URL,
        version: str | None = "1.0",
        binding: str = "JSONRPC",
        tenant: str = "",
        credential: Sequence[str] = ("oauth",),
        visible: bool = True,
        skill: str | None = None,
        reconstructed: bool = False,
        peer: str = PEER,
        extensions: Sequence[str] = (),
        side: str | None = None,
        pin: JsonObject | None = None,
    ) -> Record:
        """Freeze the contract of a fetched card for a task; `pin` None: its hash and form, and by a proxy none."""
        contract = contract_of(read_card(fetch.content("body") or b""))
        used: Interface = {"binding": binding, "tenant": tenant, "url": url, "version": version}
        kind = ContractReconstructed if reconstructed else ContractCaptured
        if pin is None and contract is not None and side is None:
            pin = {"contractHash": contract.hash, "form": "a2a-contract/1"}
        event = kind(
            peer=peer,
            peer_url=CARD_URL,
            fetch=fetch.ref,
            raw_hash=cast("str", fetch.data["raw_hash"]),
            document_hash=cast("str | None", fetch.data.get("document_hash")),
            contract_hash=None if contract is None else contract.hash,
            form="a2a-contract/1",
            seed0=None,
            terms_hash=None,
            terms_form=TERMS_FORM,
            profile_hash=default_profile().hash,
            interface=used,
            extensions=list(extensions),
            credential=list(credential),
            credential_visible=visible,
            pin=pin,
            caller="anonymous",
            skill=skill,
            side=side,
        )
        blobs = {} if contract is None else {"contract": contract.canonical}
        return self.add(event, f"task:{task}", blobs, "import" if reconstructed else "live")

    def bind(self, answer: Record, *, task: str = "t1", task_id: str = "T1", context: str | None = "C1") -> Record:
        """Record that the peer gave the task its ids."""
        event = TaskBound(peer=PEER, task_id=task_id, context_id=context, answers=answer.ref)
        return self.add(event, f"task:{task}")

    def adopt(self, *, task: str = "t1", task_id: str = "T1") -> Record:
        """Record a task that was first seen past `submitted`."""
        return self.add(TaskAdopted(peer=PEER, peer_url=CARD_URL, task_id=task_id), f"task:{task}")

    # ---- messages

    def ask(
        self,
        method: str = "SendMessage",
        *,
        task: str = "t1",
        task_id: str | None = None,
        context: str | None = None,
        message_id: str = "m1",
        url: str = URL,
        credential: Sequence[str] = ("oauth",),
        version: str | None = "1.0",
        tenant: str | None = None,
        how: str = "live",
        peer: str = PEER,
        text: str = "go",
        history_length: int | None = None,
        extensions: Sequence[str] = (),
    ) -> Record:
        """Record a JSON-RPC request of ours; `extensions` are asked for by header."""
        self._asked += 1
        params: JsonObject = {}
        if method in {"SendMessage", "SendStreamingMessage", "message/send", "message/stream", "tasks/send"}:
            message: JsonObject = {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": text}]}
            message |= {name: value for name, value in (("taskId", task_id), ("contextId", context)) if value}
            params["message"] = message
            if history_length is not None:
                params["configuration"] = {"historyLength": history_length}
        elif task_id is not None:
            params["id"] = task_id
            if history_length is not None:
                params["historyLength"] = history_length
        if tenant is not None:
            params["tenant"] = tenant
        body = json.dumps({"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params}).encode()
        headers = [] if version is None else [("A2A-Version", version)]
        headers += [("A2A-Extensions", ", ".join(extensions))] if extensions else []
        leg = parse_request("POST", url, headers, body)
        marks: list[Credential] = [{"k": "k1", "mac": "00" * 32, "scheme": name} for name in credential]
        event = _message(leg, "out", peer=peer, url=url, http_method="POST", credential=marks or None)
        record = self.add(event, f"task:{task}", {"body": body}, how)
        self._legs[record.c] = leg
        return record

    def call(self, http_method: str, url: str, *, task: str = "t1", body: JsonObject | None = None) -> Record:
        """Record an HTTP+JSON request of ours."""
        content = b"" if body is None else json.dumps(body).encode()
        leg = parse_request(http_method, url, [("A2A-Version", "1.0")], content)
        marks: list[Credential] = [{"k": "k1", "mac": "00" * 32, "scheme": "oauth"}]
        event = _message(leg, "out", url=url, http_method=http_method, credential=marks)
        record = self.add(event, f"task:{task}", {"body": content})
        self._legs[record.c] = leg
        return record

    def grpc(self, path: str, body: JsonObject, *, task: str = "t1") -> Record:
        """Record a gRPC request of ours."""
        content = json.dumps(body).encode()
        leg = parse_grpc_request(path, URL, [("a2a-version", "1.0")], content)
        marks: list[Credential] = [{"k": "k1", "mac": "00" * 32, "scheme": "oauth"}]
        record = self.add(_message(leg, "out", url=URL, credential=marks), f"task:{task}", {"body": content})
        self._legs[record.c] = leg
        return record

    def answer(
        self,
        request: Record,
        result: JsonObject | None = None,
        *,
        error: JsonObject | None = None,
        status: int = 200,
        headers: Sequence[tuple[str, str]] = (),
        wrapped: bool = True,
        body: bytes | None = None,
        how: str = "live",
        cut: Sequence[str] = (),
    ) -> Record:
        """Record an answer: a result as the request's method has it, an error, or a body as it stands.

        `cut`: texts that are withheld out of the body, in their order in it.
        """
        leg = self._legs[request.c]
        if body is None and error is not None:
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "error": error}).encode()
        if body is None:
            sent = leg.method_spelled in {"SendMessage", "SendStreamingMessage"}
            is_plain = sent and wrapped and result is not None and "id" in result
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"task": result} if is_plain else result}).encode()
        stored, shown = starred(body, *cut), body
        for one in cut:
            shown = shown.replace(one.encode(), b"*" * len(one.encode()), 1)
        read = parse_response(leg, status, headers, shown)
        if cut and read.flags:  # the body as it came has no flag, and its ids are lifted from it
            read = parse_response(leg, status, headers, body)
        kept: dict[str, Content | bytes] = {
            f"header.{index:02}": json.dumps([name.lower(), value], separators=(",", ":")).encode()
            for index, (name, value) in enumerate(headers)
        }
        event = _message(read, "in", url=leg.url, answers=request.ref, peer=cast("str", request.data["peer"]))
        return self.add(event, request.stream, {"body": stored, **kept}, how)

    def stream_event(self, request: Record, payload: JsonObject, sequence: int = 0) -> Record:
        """Record one server-sent event, as it came: with its framing."""
        body = b"data: " + json.dumps({"jsonrpc": "2.0", "id": 1, "result": payload}).encode() + b"\n\n"
        leg = self._legs[request.c]
        event = _message(parse_stream_event(leg, body), "in", url=leg.url, answers=request.ref, sequence=sequence)
        return self.add(event, request.stream, {"body": body})

    def stream_bytes(self, request: Record, body: bytes) -> Record:
        """Record one server-sent event of any octets."""
        leg = self._legs[request.c]
        event = _message(parse_stream_event(leg, body), "in", url=leg.url, answers=request.ref, sequence=0)
        return self.add(event, request.stream, {"body": body})

    def ask_bytes(self, body: bytes, *, task: str = "t1", version: str | None = "1.0") -> Record:
        """Record a request of ours of any octets."""
        leg = parse_request("POST", URL, [] if version is None else [("A2A-Version", version)], body)
        marks: list[Credential] = [{"k": "k1", "mac": "00" * 32, "scheme": "oauth"}]
        record = self.add(_message(leg, "out", url=URL, credential=marks), f"task:{task}", {"body": body})
        self._legs[record.c] = leg
        return record

    def push(self, payload: JsonObject, *, task: str = "t1") -> Record:
        """Record a push that we received."""
        body = json.dumps(payload).encode()
        event = _message(parse_push([], body), "in", url="https://us.example/push")
        return self.add(event, f"task:{task}", {"body": body})

    def failure(self, request: Record, *, kind: str = "tls", tls_alert: str | None = None) -> Record:
        """Record that a request was not answered."""
        event = MessageRecorded(
            peer=PEER,
            direction="in",
            leg="error",
            binding="JSONRPC",
            url=URL,
            answers=request.ref,
            error_kind=kind,
            tls_alert=tls_alert,
        )
        return self.add(event, request.stream)

    # ---- what most stories begin with

    def begun(self, served: JsonObject | None = None, *, credential: Sequence[str] = ("oauth",)) -> Record:
        """Fetch, freeze and send; return the request."""
        fetch = self.fetch(card() if served is None else served)
        self.capture(fetch, credential=credential)
        return self.ask(credential=credential)

    def polled(self, state: str = "working", *, history_length: int | None = None, **others: Json) -> Record:
        """Ask for the task and be told of it; return the answer."""
        poll = self.ask("GetTask", task_id="T1", history_length=history_length)
        return self.answer(poll, task(state, task_id="T1", context="C1", **others))

    def working(self, served: JsonObject | None = None) -> Record:
        """Begin, and have the peer at work; return the request."""
        request = self.begun(served)
        self.bind(self.answer(request, task("working")))
        return request

    # ---- judging

    def findings(self, profile: Profile | None = None, rule_set: str = RULE_SET) -> list[Finding]:
        """Judge everything, in order."""
        cases = Cases(RecordLog(self.records), profile or default_profile(), on_failure=_fail, rule_set=rule_set)
        return [finding for record in self.records for finding in cases.judge(record)]

    def rules(self, profile: Profile | None = None) -> list[tuple[str, str, str]]:
        """Return (rule, certainty, about) of everything found, in order."""
        return [(item.rule, item.certainty, item.about) for item in self.findings(profile)]


def _fail(record: Record, error: Exception) -> None:
    raise AssertionError(f"a rule failed on event {record.n}") from error


class _Entropy:
    """Different octets for every record, the same in every run."""

    def __init__(self, n: int) -> None:
        self._n = n

    def __call__(self, size: int) -> bytes:
        return hashlib.shake_256(self._n.to_bytes(8, "big")).digest(size)


def _message(
    leg: Leg,
    direction: str,
    *,
    url: str,
    peer: str = PEER,
    http_method: str | None = None,
    answers: Ref | None = None,
    credential: list[Credential] | None = None,
    sequence: int | None = None,
) -> MessageRecorded:
    pin: JsonObject | None = None if leg.pin is None else {**leg.pin}
    return MessageRecorded(
        peer=peer,
        direction=direction,
        leg=leg.leg,
        binding=leg.binding,
        url=url,
        method=leg.method,
        method_spelled=leg.method_spelled,
        wire_version=leg.version,
        http_method=http_method,
        status=leg.status,
        message_id=leg.message_id,
        task_id=leg.task_id,
        context_id=leg.context_id,
        state=leg.state,
        state_read=leg.state_read,
        pin=pin,
        pin_seen=leg.is_task or None,
        answers=answers,
        credential=credential,
        sequence=sequence,
        error_code=None if leg.error is None else leg.error.code,
        flags=list(leg.flags) or None,
        tenant=leg.tenant,
        extensions=list(leg.extensions) or None,
    )
