"""Honest SDK traffic at an agent that keeps a ledger of its own: all of it is recorded, and none of it judged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import httpx
import pytest

from a2a_ledger.address import peer_id
from a2a_ledger.capture.asgi import ContractLedgerMiddleware
from a2a_ledger_projections.verifier import follower
from tests.proxy.conftest import only
from tests.proxy.traffic import honest, speak_only

if TYPE_CHECKING:
    from tests.capture.agent import Agent
    from tests.proxy.conftest import OpenLedger

WELL_KNOWN = "/.well-known/agent-card.json"


@pytest.mark.parametrize("bindings", [["JSONRPC"], ["HTTP+JSON"]])
@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("version", ["1.0", "0.3"])
async def test_nothing_is_other_and_everything_is_recorded(
    agent: Agent, open_ledger: OpenLedger, bindings: list[str], streaming: bool, version: str
) -> None:
    speak_only(agent, version)
    directly = await honest(agent.url, bindings=bindings, streaming=streaming, version=version)
    before = len(agent.wire.seen)
    ledger = open_ledger(mode="enforce")
    agent.wire.app = ContractLedgerMiddleware(agent.wire.app, ledger, agent.url + WELL_KNOWN)
    recorded = await honest(agent.url, bindings=bindings, streaming=streaming, version=version)

    assert recorded == directly
    messages = only(ledger, "message.recorded")
    requests = [r for r in messages if r.data["leg"] == "request"]
    assert len(requests) == len(agent.wire.seen) - before
    assert {str(r.data["side"]) for r in messages} == {"server"}
    assert {(str(r.data["leg"]), str(r.data["direction"])) for r in messages} <= {
        ("request", "in"),
        ("response", "out"),
        ("stream-event", "out"),
        ("stream-end", "out"),
    }
    assert {str(r.data["peer"]) for r in messages} == {peer_id(agent.url + WELL_KNOWN)}
    captures = only(ledger, "contract.captured")
    assert len(captures) == 6
    assert {str(r.data["side"]) for r in captures} == {"server"}
    served = only(ledger, "card.served")
    async with httpx.AsyncClient() as http:
        card = (await http.get(agent.url + WELL_KNOWN)).content
    assert served[0].content("body") == card
    assert [r.stream for r in served] == ["peer:self"] * len(served)
    assert {json.dumps(r.data["fetch"]) for r in captures} == {json.dumps(served[0].ref)}
    assert {str(r.data["contract_hash"]) for r in captures} == {str(served[0].data["contract_hash"])}
    used = agent.url + ("/rpc" if bindings == ["JSONRPC"] else "/rest")
    assert [one["url"] for r in captures if isinstance(one := r.data["interface"], dict)] == [used] * 6
    verifier = follower(ledger)
    verifier.catch_up()
    assert verifier.could_not_verify == 0
    assert only(ledger, "violation.detected") == []
    assert only(ledger, "task.adopted") == []
