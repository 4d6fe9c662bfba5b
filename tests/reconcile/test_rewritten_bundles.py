"""Bundles of a proxy that rewrites cards: each shows what was served in the place of the card that a task froze."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from a2a_ledger.divergence.reading import members
from a2a_ledger.export import export_context, export_peer, export_task
from a2a_ledger.ledger import ContractLedger
from a2a_ledger.policy import parse_policy
from a2a_ledger.reconcile import bundle_side, reconcile
from a2a_ledger.report import filled_page
from a2a_ledger.verify import verify
from tests.divergence.story import PEER, task
from tests.evidence.recorded import LedgerStory, clock
from tests.reconcile.sides import OPTIONAL, REQUIRED, counter, kinds, side
from tests.reconcile.test_real_traffic import whole
from tests.reconcile.test_rewritten import ELSEWHERE, ProxyStory, moved
from tests.report.conftest import browser
from verifier import a2a_verify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from a2a_ledger.export import Exported
    from a2a_ledger.reconcile import BundleSide
    from tests.report.browser import Browser

__all__ = ["browser"]

OTHER_PEER = "ee" * 16


def kept(root: Path, name: str) -> ContractLedger:
    return ContractLedger.open(
        root / name,
        origin=name,
        follow=False,
        clock=clock(),
        entropy=counter(name.encode()),
        mark_dir=str(root / "marks"),
    )


def of_task(ledger: ContractLedger, task: str) -> Exported:
    return export_task(ledger, task)


def of_context(ledger: ContractLedger, task: str) -> Exported:
    del task
    return export_context(ledger, "C1")


def of_peer(ledger: ContractLedger, task: str) -> Exported:
    del task
    return export_peer(ledger, PEER)


EXPORTS = [of_task, of_context, of_peer]


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[ProxyStory]:
    """A proxy that fetched the card twice, served it once, and served others beside it."""
    story = ProxyStory(kept(tmp_path, "proxy"))
    story.fetched = story.fetch(OPTIONAL)
    story.serve(moved(OPTIONAL))
    story.fetched = story.fetch(REQUIRED, peer=OTHER_PEER)
    story.serve({**moved(REQUIRED), "name": "of another agent, in the same terms"}, url="http://127.0.0.1:9001/card")
    story.fetched = story.fetch(REQUIRED)
    story.serve(moved(REQUIRED))
    story.capture(story.fetch(REQUIRED), side="proxy")
    story.bind(story.answer(story.ask(), task("completed")))
    story.serve(moved(REQUIRED), version="1.0")
    story.ledger.catch_up()
    yield story
    story.ledger.close()


@pytest.fixture
def client(tmp_path: Path) -> Iterator[LedgerStory]:
    story = LedgerStory(kept(tmp_path, "client"))
    story.capture(story.fetch(moved(REQUIRED)), url=ELSEWHERE)
    story.bind(story.answer(story.ask(), task("completed")))
    story.ledger.catch_up()
    yield story
    story.ledger.close()


def served_in(bundle: BundleSide) -> list[int]:
    return [card.n for card in bundle.cards(PEER) if card.served]


@pytest.mark.parametrize("export", EXPORTS)
def test_the_two_bundles_are_one_contract_as_the_two_ledgers_are(
    proxy: ProxyStory, client: LedgerStory, export: Callable[[ContractLedger, str], Exported]
) -> None:
    theirs = export(proxy.ledger, proxy.tasks["t1"])
    ours = export(client.ledger, client.tasks["t1"])
    a, b = (
        bundle_side(made.data, trust=[story.ledger.signers["log"].vkey])
        for made, story in ((ours, client), (theirs, proxy))
    )
    found = reconcile(a, b)
    assert [made.report.verdict for made in (a, b)] == ["verified", "verified"]
    assert [kinds(report) for report in found.tasks] == [[("contract-rewritten", "explained")]]
    assert found.verdict == "consistent"
    assert found.verdict == reconcile(side(client), side(proxy)).verdict == reconcile(whole(client.ledger), b).verdict
    served = [record for record in proxy.records if record.type == "card.served.v1"]
    assert f"made from its own, at #{served[2].n}" in found.tasks[0].differences[0].detail


@pytest.mark.parametrize("export", EXPORTS)
def test_every_verifier_takes_it_as_any_other_record(
    proxy: ProxyStory,
    browser: Browser,
    tmp_path: Path,
    export: Callable[[ContractLedger, str], Exported],
) -> None:
    bundle = export(proxy.ledger, proxy.tasks["t1"]).data
    policy = f"log {proxy.ledger.signers['log'].vkey}\nquorum none\n"
    assert served_in(bundle_side(bundle)) != []
    claims = {claim.claim: claim.status for claim in verify(bundle, policy=parse_policy(policy)).claims}
    alone = a2a_verify.verify(bundle, a2a_verify.read_policy(policy.encode()), ())
    page = tmp_path / "page.html"
    page.write_text(filled_page(bundle, name="proxy.zip"), "utf-8")
    browser.open(page)
    judged = members(browser.judged(policy)["claims"])
    for letter in ("I", "L", "P", "C1", "C2"):
        assert (letter, claims[letter], alone.claims[letter].status, judged[letter]) == (letter, *["VALID"] * 3)
    assert claims["R"] == "VALID"
    assert claims["C3"] == alone.claims["C3"].status == judged["C3"] == "NOT PROVEN"


def test_no_card_goes_along_that_was_not_made_of_the_frozen_contract(proxy: ProxyStory) -> None:
    """Neither one of other terms, nor another agent's, nor one that was served when the task had begun."""
    shown = bundle_side(of_task(proxy.ledger, proxy.tasks["t1"]).data)
    before = [record for record in proxy.records if record.type == "card.served.v1"]
    assert served_in(shown) == [before[2].n]


def test_a_client_without_a_proxy_shows_nothing_that_was_served(client: LedgerStory) -> None:
    assert served_in(bundle_side(of_task(client.ledger, client.tasks["t1"]).data)) == []
