"""A guarded client behind a recording proxy: its pin is no word of the agent about the proxy's contract."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from a2a.client import ClientConfig

from a2a_ledger import guard
from a2a_ledger.export import export_task
from a2a_ledger.verify import verify
from tests.capture.conftest import send
from tests.proxy.conftest import only

if TYPE_CHECKING:
    from a2a_ledger import ContractLedger
    from tests.capture.agent import Agent
    from tests.proxy.conftest import OpenLedger, StartProxy


def claim_r(ledger: ContractLedger) -> str:
    """Export the one task of a ledger, and return what a reader who trusts its keys is told of replay."""
    (capture,) = only(ledger, "contract.captured")
    bundle = export_task(ledger, capture.stream.removeprefix("task:")).data
    report = verify(bundle, trust=[ledger.signers["log"].vkey])
    return next(claim.status for claim in report.claims if claim.claim == "R")


@pytest.mark.parametrize("mode", ["observe", "enforce"])
async def test_an_honest_agent_echoes_the_pin_of_a_client_that_froze_the_rewritten_card(
    agent: Agent, open_ledger: OpenLedger, start_proxy: StartProxy, mode: str
) -> None:
    ours, theirs = open_ledger("client", mode="enforce", follow=True), open_ledger("proxy", mode=mode, follow=True)
    proxy = start_proxy(theirs, agent.url, rewrite_card=True)
    guarded = guard(ours)
    client = await guarded.create_client(proxy.url, config=ClientConfig(streaming=False))
    try:
        answered = (await send(client, "hello"))[0].task
    finally:
        await guarded.aclose()
    assert answered.status.state == 3, "TASK_STATE_COMPLETED"
    (froze,), (proxy_froze,) = only(ours, "contract.captured"), only(theirs, "contract.captured")
    assert froze.data["contract_hash"] != proxy_froze.data["contract_hash"]
    (echo,) = [one.data["pin"] for one in only(theirs, "message.recorded") if one.data.get("pin")]
    assert echo == froze.data["pin"]
    assert proxy_froze.data.get("pin") is None
    for ledger in (ours, theirs):
        ledger.catch_up()
        assert only(ledger, "violation.detected") == []
        assert claim_r(ledger) == "VALID"
