"""Calls that a redirect leads to another origin: one exchange goes on, of one peer, one task and one contract."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import httpx
import pytest
from a2a.client import ClientConfig
from a2a.helpers import new_text_message
from a2a.types import Role, SendMessageRequest

from a2a_ledger import guard
from a2a_ledger_projections.verifier import follower
from tests.capture.conftest import only
from tests.capture.stored import holding

if TYPE_CHECKING:
    from a2a_ledger import ContractLedger
    from a2a_ledger.codec import Record
    from a2a_ledger.events import MessageRecorded
    from tests.capture.conftest import OpenLedger

AGENT = "https://agent.example"
ELSEWHERE = "https://eu.other.example/rpc"
KEY = "key-that-is-secret"
EXTENSION = "https://w3id.org/a2a-ledger/ext/frozen-contract/v1"
CARD: dict[str, Any] = {
    "name": "A",
    "description": "d",
    "version": "1",
    "capabilities": {},
    "skills": [],
    "defaultInputModes": ["text"],
    "defaultOutputModes": ["text"],
    "supportedInterfaces": [{"url": f"{AGENT}/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
    "securitySchemes": {"k": {"apiKeySecurityScheme": {"location": "header", "name": "Vend-Ident"}}},
    "securityRequirements": [{"schemes": {"k": {"list": []}}}],
}


def call(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"json": {"jsonrpc": "2.0", "id": "1", "method": method, "params": params}}


SEND = call("SendMessage", {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}})
GET = call("GetTask", {"id": "T1"})


class Away:
    """An agent that sends every call to another origin, and what answers there."""

    def __init__(self) -> None:
        self.states = ["WORKING", "COMPLETED", "WORKING"]

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path.startswith("/.well-known"):
            return httpx.Response(200, json=CARD, headers={"etag": '"1"'})
        if request.url.host == "agent.example":
            return httpx.Response(307, headers={"location": f"{ELSEWHERE}1"})
        if request.url.path == "/rpc1":
            return httpx.Response(308, headers={"location": ELSEWHERE})
        status = {"state": f"TASK_STATE_{self.states.pop(0)}", "message": {"parts": [{"text": f"served for {KEY}"}]}}
        task: dict[str, Any] = {"id": "T1", "contextId": "C", "status": status}
        asked = json.loads(request.content)
        message = asked["params"].get("message", {})
        if EXTENSION in message.get("metadata", {}):
            task["metadata"] = {EXTENSION: {**message["metadata"][EXTENSION], "contractHash": "sha256:" + "0" * 64}}
        result = {"task": task} if asked["method"] == "SendMessage" else task
        return httpx.Response(200, json={"jsonrpc": "2.0", "id": asked["id"], "result": result})


def marks(record: Record) -> list[str]:
    return [mark["scheme"] for mark in cast("MessageRecorded", record.event()).credential or []]


def check(ledger: ContractLedger) -> None:
    captured = only(ledger, "contract.captured")
    assert len(captured) == 1
    assert only(ledger, "task.adopted") == []
    messages = only(ledger, "message.recorded")
    assert {record.stream for record in messages} == {captured[0].stream}
    assert {str(record.data["peer"]) for record in messages} == {str(captured[0].data["peer"])}
    requests = [record for record in messages if record.data["leg"] == "request"]
    assert [record.data["url"] for record in requests] == [f"{AGENT}/rpc", f"{ELSEWHERE}1", ELSEWHERE] * 3
    assert [marks(record) for record in requests] == [["k"]] * 9
    assert holding(ledger, KEY) == []
    verifier = follower(ledger)
    verifier.catch_up()
    found = {(str(record.data["rule"]), str(record.data["about"])) for record in only(ledger, "violation.detected")}
    assert found == {("interface-drift", "peer"), ("illegal-transition", "peer")}


HEADERS = {"A2A-Version": "1.0", "Vend-Ident": KEY}


async def test_a_redirect_to_another_origin_keeps_task_peer_and_secrets(open_ledger: OpenLedger) -> None:
    ledger = open_ledger(mode="observe")
    async with guard(ledger).httpx_client(transport=httpx.MockTransport(Away()), follow_redirects=True) as http:
        await http.get(f"{AGENT}/.well-known/agent-card.json")
        for asked in (SEND, GET, GET):
            assert (await http.post(f"{AGENT}/rpc", headers=HEADERS, **asked)).status_code == 200
    check(ledger)


def test_a_synchronous_client_keeps_them_too(open_ledger: OpenLedger) -> None:
    ledger = open_ledger(mode="observe")
    guarded = guard(ledger)
    with guarded.sync_httpx_client(transport=httpx.MockTransport(Away()), follow_redirects=True) as http:
        http.get(f"{AGENT}/.well-known/agent-card.json")
        for asked in (SEND, GET, GET):
            assert http.post(f"{AGENT}/rpc", headers=HEADERS, **asked).status_code == 200
    check(ledger)


async def test_what_is_said_there_is_held_against_the_frozen_contract(open_ledger: OpenLedger) -> None:
    ledger = open_ledger(mode="observe")
    guarded = guard(ledger)
    http = guarded.httpx_client(transport=httpx.MockTransport(Away()), follow_redirects=True)
    async with guarded, http:
        client = await guarded.create_client(AGENT, config=ClientConfig(httpx_client=http, streaming=False))
        request = SendMessageRequest(message=new_text_message("hello", role=Role.ROLE_USER))
        assert [answer.task.id async for answer in client.send_message(request)] == ["T1"]
    assert len(only(ledger, "contract.captured")) == 1
    verifier = follower(ledger)
    verifier.catch_up()
    assert "pin-mismatch" in {str(record.data["rule"]) for record in only(ledger, "violation.detected")}


@pytest.mark.parametrize("status", [302, 303])
async def test_a_redirect_that_makes_a_get_of_a_send_stays_in_its_task(open_ledger: OpenLedger, status: int) -> None:
    ledger = open_ledger(mode="observe")

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            return httpx.Response(status, headers={"location": ELSEWHERE})
        return httpx.Response(200, json=CARD if "agent-card" in request.url.path else {"text": f"for {KEY}"})

    async with guard(ledger).httpx_client(transport=httpx.MockTransport(answer), follow_redirects=True) as http:
        await http.get(f"{AGENT}/.well-known/agent-card.json")
        await http.post(f"{AGENT}/rpc", headers=HEADERS, **SEND)
        await http.get(ELSEWHERE)  # follows nothing
    streams = [record.stream[:5] for record in only(ledger, "message.recorded") if record.data["leg"] == "request"]
    assert streams == ["task:", "task:", "peer:"]
    assert holding(ledger, KEY) == []
