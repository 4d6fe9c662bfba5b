"""Cards that are served after a task, or beside it, take nothing from what its bundle shows of those before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from a2a_ledger import selection
from a2a_ledger.reconcile import bundle_side, reconcile
from tests.divergence.story import task
from tests.evidence.recorded import LedgerStory
from tests.reconcile.sides import OPTIONAL, REQUIRED, AgentStory, kinds, side
from tests.reconcile.test_rewritten import ELSEWHERE, ProxyStory, moved
from tests.reconcile.test_rewritten_bundles import EXPORTS, kept, of_task, served_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from a2a_ledger.codec import Record
    from a2a_ledger.events import JsonObject
    from a2a_ledger.export import Exported
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.reconcile import BundleSide

    Export = Callable[[ContractLedger, str], Exported]

MANY = 30


@pytest.fixture(autouse=True)
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "_MOST_FETCHES", 6)
    monkeypatch.setattr(selection, "_MOST_SERVED", 6)
    monkeypatch.setattr(selection, "_FIRST_PAGE", 1)
    monkeypatch.setattr(selection, "_PAGE", 4)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[LedgerStory]:
    story = LedgerStory(kept(tmp_path, "client"))
    yield story
    story.ledger.close()


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[AgentStory]:
    story = AgentStory(kept(tmp_path, "agent"))
    yield story
    story.ledger.close()


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[ProxyStory]:
    story = ProxyStory(kept(tmp_path, "proxy"))
    yield story
    story.ledger.close()


def many(story: AgentStory, served: JsonObject) -> None:
    """Serve this contract in ever new octets, as whoever asks in ever new ways can make us do."""
    for number in range(MANY):
        story.serve({**served, "description": f"in words {number}"}, version="1.0")


def bundled(story: LedgerStory, export: Export) -> BundleSide:
    story.ledger.catch_up()
    made = export(story.ledger, story.tasks["t1"])
    return bundle_side(made.data, trust=[story.ledger.signers["log"].vkey])


def served_of_task(story: LedgerStory) -> list[int]:
    return served_in(bundled(story, of_task))


def sent(*stories: LedgerStory) -> None:
    for story in stories:
        story.bind(story.answer(story.ask(), task("completed")))


@pytest.mark.parametrize("export", EXPORTS)
@pytest.mark.parametrize(
    ("frozen", "verdict", "weights"),
    [
        (1, "mutually-consistent-stale", [("card-changed-before", "stale"), ("contracts-differ", "explained")]),
        (0, "mutually-consistent-stale", [("card-changed-before", "stale")]),
    ],
)
def test_of_an_agent(
    client: LedgerStory, agent: AgentStory, export: Export, frozen: int, verdict: str, weights: list[tuple[str, str]]
) -> None:
    served = [agent.serve(REQUIRED), agent.serve(OPTIONAL)]
    client.capture(client.fetch(REQUIRED))
    agent.capture(served[frozen])
    sent(client, agent)
    many(agent, OPTIONAL)
    theirs = bundled(agent, export)
    found = reconcile(bundled(client, export), theirs)
    assert served_in(theirs) == [record.n for record in served]
    assert found.verdict == reconcile(side(client), side(agent)).verdict == verdict
    assert [kinds(report) for report in found.tasks] == [weights]


@pytest.mark.parametrize("export", EXPORTS)
def test_of_a_proxy(client: LedgerStory, proxy: ProxyStory, export: Export) -> None:
    proxy.fetched = proxy.fetch(REQUIRED)
    served = proxy.serve(moved(REQUIRED))
    client.capture(client.fetch(moved(REQUIRED)), url=ELSEWHERE)
    proxy.capture(proxy.fetched, side="proxy")
    sent(client, proxy)
    many(proxy, moved(REQUIRED))
    theirs = bundled(proxy, export)
    found = reconcile(bundled(client, export), theirs)
    assert served_in(theirs) == [served.n]
    assert found.verdict == reconcile(side(client), side(proxy)).verdict == "consistent"
    assert [kinds(report) for report in found.tasks] == [[("contract-rewritten", "explained")]]


def during(agent: AgentStory) -> list[Record]:
    """Serve three cards in the time of a task."""
    agent.capture(agent.serve(REQUIRED))
    request = agent.ask()
    served = [agent.serve({**REQUIRED, "description": words}) for words in ("one", "two", "three")]
    agent.bind(agent.answer(request, task("completed")))
    return served


def test_what_is_looked_through_counts_from_the_task(agent: AgentStory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what was served before a task as many events as 11.3 says, and in its time the first ones."""
    before = [agent.serve(OPTIONAL), *(agent.serve({**REQUIRED, "description": f"{number}"}) for number in range(4))]
    beside = during(agent)
    many(agent, REQUIRED)
    given = [record for record in agent.records if record.type == "card.served.v1" and record.n < beside[0].n][-1]
    assert served_of_task(agent) == [before[0].n, given.n, *(record.n for record in beside)]
    monkeypatch.setattr(selection, "_MOST_SERVED", 5)
    assert served_of_task(agent) == [given.n, *(record.n for record in beside)]
    monkeypatch.setattr(selection, "_MOST_DURING", 2)
    assert served_of_task(agent) == [given.n, *(record.n for record in beside[:2])]
