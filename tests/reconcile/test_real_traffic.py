"""A real SDK client under the guard, a real SDK agent behind the middleware: two ledgers of one wire."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
from a2a.types import CancelTaskRequest, GetTaskRequest

from a2a_ledger.capture.asgi import ContractLedgerMiddleware
from a2a_ledger.cli.reconcile import LedgerSide
from a2a_ledger.export import export_task
from a2a_ledger.reconcile import bundle_side, ledger_report, reconcile
from tests.capture.conftest import make_guard, send
from tests.capture.test_acceptance import require
from tests.proxy.conftest import agent, only, open_ledger

if TYPE_CHECKING:
    from a2a_ledger.ledger import ContractLedger
    from tests.capture.agent import Agent
    from tests.capture.conftest import MakeGuard
    from tests.proxy.conftest import OpenLedger

__all__ = ["agent", "make_guard", "open_ledger"]

WELL_KNOWN = "/.well-known/agent-card.json"


def whole(ledger: ContractLedger) -> LedgerSide:
    return LedgerSide(ledger, ledger_report(ledger.origin))


async def test_honest_traffic_of_both_sides_is_consistent_task_by_task(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    ours, theirs = open_ledger("ours"), open_ledger("theirs")
    agent.wire.app = ContractLedgerMiddleware(agent.wire.app, theirs, agent.url + WELL_KNOWN)
    client = await make_guard(ours).create_client(agent.url)
    await send(client, "chunks")
    asked = (await send(client, "ask me"))[0].task
    for _ in range(3):
        await client.get_task(GetTaskRequest(id=asked.id))
    await send(client, "this one", task_id=asked.id, context_id=asked.context_id)
    parked = (await send(client, "ask again"))[0].task
    await client.cancel_task(CancelTaskRequest(id=parked.id))
    await client.close()

    found = reconcile(whole(ours), whole(theirs))
    assert [report.verdict for report in found.tasks] == ["consistent"] * 3
    assert [report.differences for report in found.tasks] == [[], [], []]
    assert {report.contracts for report in found.tasks} == {"same"}
    assert {report.stances for report in found.tasks} == {("client", "agent")}
    assert {report.matched_by[0] for report in found.tasks} == {"pin"}
    assert found.unmatched == (0, 0)
    legs = [record for record in only(ours, "message.recorded") if record.data["leg"] not in {"stream-end", "error"}]
    assert sum(report.legs.both for report in found.tasks) == len([r for r in legs if r.stream.startswith("task:")])


async def test_a_card_that_changed_behind_the_clients_back_comes_out_by_name(
    agent: Agent, open_ledger: OpenLedger, make_guard: MakeGuard
) -> None:
    """The silent downgrade: somebody else is served the newer card, this client goes on with the older one."""
    ours, theirs = open_ledger("ours", mode="observe"), open_ledger("theirs")
    agent.wire.app = ContractLedgerMiddleware(agent.wire.app, theirs, agent.url + WELL_KNOWN)
    client = await make_guard(ours).create_client(agent.url)
    require(agent, "oauth")
    async with httpx.AsyncClient() as other:
        await other.get(agent.url + WELL_KNOWN)
    await send(client, "hello")
    await client.close()

    found = reconcile(whole(ours), whole(theirs))
    (report,) = found.tasks
    assert (report.contracts, report.verdict) == ("differ", "mutually-consistent-stale")
    assert [difference.kind for difference in report.differences] == ["card-changed-before", "contracts-differ"]

    for ledger in (ours, theirs):
        ledger.catch_up()
    bundles = [
        bundle_side(export_task(ledger, task).data, trust=[ledger.signers["log"].vkey])
        for ledger, task in ((ours, report.task_a), (theirs, report.task_b))
    ]
    again = reconcile(*bundles)
    assert [side.verdict for side in again.sides] == ["verified", "verified"]
    assert again.verdict == "mutually-consistent-stale"
