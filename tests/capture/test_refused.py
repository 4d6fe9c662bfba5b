"""What mode `enforce` refuses, and what the verifier says that it would have refused, are the same messages."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING

import httpx

from a2a_ledger import Guard
from a2a_ledger.errors import ContractDivergenceError
from a2a_ledger_projections.verifier import follower
from a2a_ledger_projections.violations import violations, would_reject
from tests.capture.peer import CARD_URL, URL, Peer, card, message

if TYPE_CHECKING:
    from tests.capture.conftest import OpenLedger

BILLING = "urn:billing"


def answer(request: httpx.Request) -> httpx.Response:
    """Answer with a task, to a poll with a demand that the card does not make, and refuse a version that is not 1.0."""
    asked = json.loads(request.content)
    if asked["method"] == "GetTask" and request.headers["a2a-version"] == "1.0":
        return httpx.Response(401, headers={"WWW-Authenticate": "Negotiate"})
    task = {"id": "T1", "contextId": "C1", "status": {"state": "TASK_STATE_INPUT_REQUIRED"}}
    said: dict[str, object] = {"jsonrpc": "2.0", "id": asked["id"]}
    if request.headers["a2a-version"] != "1.0":
        said["error"] = {"code": -32009, "message": "this version is not spoken here"}
    else:
        said["result"] = {"task": task}
    return httpx.Response(200, json=said)


def test_enforce_refuses_exactly_what_would_reject_lists(open_ledger: OpenLedger) -> None:
    served = card(
        capabilities={"extensions": [{"uri": BILLING, "required": True}]},
        supportedInterfaces=[
            {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"} for url in (URL, f"{URL}2")
        ],
    )
    ledger = open_ledger(mode="enforce")
    refused: list[str] = []
    with closing(Guard(ledger)) as guard, guard.sync_httpx_client(Peer(served, answer)) as client:
        client.get(CARD_URL)

        def call(name: str, asked: dict[str, object], *, url: str = URL, billing: bool = True, to: str = "1.0") -> None:
            headers = {"A2A-Version": to} | ({"A2A-Extensions": BILLING} if billing else {})
            try:
                client.post(url, json=asked, headers=headers)
            except ContractDivergenceError:
                refused.append(name)

        def more(message_id: str) -> dict[str, object]:
            sent = message(message_id)
            sent["params"]["message"] |= {"taskId": "T1", "contextId": "C1"}
            return sent

        poll: dict[str, object] = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "T1"}}
        call("first", message("m1"))
        call("without the extension", more("m2"), billing=False)
        call("elsewhere", more("m3"), url=f"{URL}2")
        call("another demand", poll)
        call("a version of our choice", poll, to="0.9")
    follower(ledger).catch_up()
    found = list(violations(ledger.store))
    shown = [(one.data["rule"], one.data["about"], would_reject(ledger.store, one)) for one in found]
    assert sorted(set(shown), key=str) == [
        ("auth-demand", "peer", True),
        ("extension-dropped", "client", False),
        ("interface-drift", "client", False),
        ("version-skew", "client", False),
    ]
    assert refused == ["another demand"]
