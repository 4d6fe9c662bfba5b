"""A proxy that rewrites cards stands between: its clients freeze another hash, and nobody's record is false."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from a2a.client import ClientConfig

from a2a_ledger.capture.asgi import ContractLedgerMiddleware
from a2a_ledger.events import CardServed
from a2a_ledger.export import export_task
from a2a_ledger.reconcile import bundle_side, reconcile
from tests.capture.conftest import make_guard, send
from tests.divergence.story import task
from tests.evidence.recorded import LedgerStory
from tests.proxy.conftest import agent, open_ledger, start_proxy
from tests.reconcile.sides import OPTIONAL, REQUIRED, AgentStory, Dispute, kinds, made_ledger, side
from tests.reconcile.test_real_traffic import WELL_KNOWN, whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_ledger.codec import Content, Record
    from a2a_ledger.events import Event, Json, JsonObject
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.reconcile import TaskReport
    from tests.capture.agent import Agent
    from tests.capture.conftest import MakeGuard
    from tests.proxy.conftest import OpenLedger, StartProxy

__all__ = ["agent", "make_guard", "open_ledger", "start_proxy"]

ELSEWHERE = "http://127.0.0.1:9000/rpc"


def moved(served: JsonObject) -> JsonObject:
    """Return a card with another url, as a proxy writes it."""
    place: Json = [{"url": ELSEWHERE, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]
    return {**served, "supportedInterfaces": place}


def only_task(ledger: ContractLedger) -> str:
    (stream,) = ledger.store.streams("task:")
    return stream.removeprefix("task:")


class ProxyStory(AgentStory):
    """Tells a story as a proxy on the client's side records it: what it served names the fetch that it is made from."""

    fetched: Record | None = None

    def add(
        self, event: Event, stream: str, blobs: Mapping[str, Content | bytes] | None = None, how: str = "live"
    ) -> Record:
        if isinstance(event, CardServed) and self.fetched is not None:
            event = replace(event, fetch=self.fetched.ref)
        return LedgerStory.add(self, event, stream, blobs, how)


def through_proxy(two: Dispute, served: JsonObject, *, named: bool = True, late: bool = False) -> TaskReport:
    """Tell of a client that froze the card that a proxy served, and lay it beside the proxy."""
    proxy = ProxyStory(made_ledger(b"proxy"))
    fetch = proxy.fetch(REQUIRED)
    proxy.fetched = fetch if named else None
    if not late:
        proxy.serve(served)
    proxy.capture(fetch, side="proxy")
    two.client.capture(two.client.fetch(served), url=ELSEWHERE)
    for story in (two.client, proxy):
        story.answer(story.ask(), task("completed"))
    if late:
        proxy.serve(served)
    (found,) = reconcile(side(two.client), side(proxy)).tasks
    (turned,) = reconcile(side(proxy), side(two.client)).tasks
    assert (kinds(turned), turned.verdict) == (kinds(found), found.verdict)
    proxy.ledger.close()
    return found


async def test_honest_records_around_a_proxy_never_exclude_each_other(
    agent: Agent, open_ledger: OpenLedger, start_proxy: StartProxy, make_guard: MakeGuard
) -> None:
    ours, between, theirs = open_ledger("ours"), open_ledger("between"), open_ledger("theirs")
    agent.wire.app = ContractLedgerMiddleware(agent.wire.app, theirs, agent.url + WELL_KNOWN)
    proxy = start_proxy(between, agent.url, rewrite_card=True)
    client = await make_guard(ours).create_client(proxy.url, config=ClientConfig(streaming=False))
    await send(client, "hello")
    await client.close()

    (direct,) = reconcile(whole(ours), whole(theirs)).tasks
    assert (direct.verdict, kinds(direct)) == ("incomplete", [("contracts-differ", "open")])
    assert "a proxy that rewrites cards would explain it" in direct.differences[0].detail
    assert direct.differences[0].pointer == "/interfaces/0/url"
    (first,), (second,) = (reconcile(whole(a), whole(b)).tasks for a, b in ((ours, between), (between, theirs)))
    assert (first.verdict, kinds(first)) == ("consistent", [("contract-rewritten", "explained")])
    assert (second.verdict, second.contracts, second.differences) == ("consistent", "same", [])
    (shown,) = reconcile(*(bundle_side(export_task(one, only_task(one)).data) for one in (ours, between))).tasks
    assert (shown.verdict, kinds(shown)) == ("consistent", [("contract-rewritten", "explained")])


def test_the_proxys_own_record_makes_two_hashes_one_contract(two: Dispute) -> None:
    report = through_proxy(two, moved(REQUIRED))
    assert (report.contracts, report.verdict) == ("differ", "consistent")
    assert kinds(report) == [("contract-rewritten", "explained")]
    assert "B is a proxy, and served A's, made from its own, at #5" in report.differences[0].detail


def test_a_proxy_that_served_another_contract_explains_nothing(two: Dispute) -> None:
    """It promised less to its client than the agent had promised to it."""
    report = through_proxy(two, moved(OPTIONAL))
    assert (report.verdict, kinds(report)) == ("incomplete", [("contracts-differ", "open")])
    assert "cannot be told, or they do not" in report.differences[0].detail


@pytest.mark.parametrize(("named", "late"), [(False, False), (True, True)])
def test_a_card_that_names_no_fetch_or_came_later_explains_nothing(two: Dispute, *, named: bool, late: bool) -> None:
    report = through_proxy(two, moved(REQUIRED), named=named, late=late)
    assert (report.verdict, kinds(report)) == ("incomplete", [("contracts-differ", "open")])
    assert "or one of them through a proxy that rewrites cards" in report.differences[0].detail


@pytest.mark.parametrize("since", [None, OPTIONAL])
def test_a_client_elsewhere_is_not_contradicted_by_what_the_agent_served(
    two: Dispute, since: JsonObject | None
) -> None:
    """Neither where the agent's card changed after the proxy had it."""
    served = two.agent.serve(REQUIRED)
    two.client.capture(two.client.fetch(moved(REQUIRED)), url=ELSEWHERE)
    two.agent.capture(served if since is None else two.agent.serve(since))
    two.answered((two.client.ask(), two.agent.ask()))
    assert kinds(two.report()) == [("contracts-differ", "open")]


def test_a_client_elsewhere_with_terms_that_the_agent_never_served_is_contradicted(two: Dispute) -> None:
    served = two.agent.serve(REQUIRED)
    two.client.capture(two.client.fetch(moved(OPTIONAL)), url=ELSEWHERE)
    two.agent.capture(served)
    two.answered((two.client.ask(), two.agent.ask()))
    assert kinds(two.report()) == [("card-never-served", "contradiction")]
