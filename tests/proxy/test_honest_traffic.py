"""Honest SDK traffic through the proxy: the client sees what it sees without it, and the rules find nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from a2a_ledger_projections.verifier import follower
from tests.proxy.conftest import only
from tests.proxy.traffic import honest, speak_only

if TYPE_CHECKING:
    from tests.capture.agent import Agent
    from tests.proxy.conftest import OpenLedger, StartProxy


@pytest.mark.parametrize("mode", ["enforce", "observe"])
@pytest.mark.parametrize("bindings", [["JSONRPC"], ["HTTP+JSON"]])
@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("version", ["1.0", "0.3"])
async def test_nothing_is_found_and_nothing_is_other(
    agent: Agent,
    open_ledger: OpenLedger,
    start_proxy: StartProxy,
    mode: str,
    bindings: list[str],
    streaming: bool,
    version: str,
) -> None:
    speak_only(agent, version)
    ledger = open_ledger(mode=mode)
    proxy = start_proxy(ledger, agent.url, rewrite_card=True)

    directly = await honest(agent.url, bindings=bindings, streaming=streaming, version=version)
    calls = agent.posts
    through = await honest(proxy.url, bindings=bindings, streaming=streaming, version=version)

    assert through == directly
    assert agent.posts == 2 * calls
    assert len(only(ledger, "contract.captured")) == 6
    verifier = follower(ledger)
    verifier.catch_up()
    assert verifier.could_not_verify == 0
    assert [(r.data["rule"], r.data["observed"]) for r in only(ledger, "violation.detected")] == []
    assert {str(r.data.get("side")) for r in only(ledger, "message.recorded")} == {"None"}
