"""A client that lives for long: its card was answered for many times, and each decision shows the answer it used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from a2a_ledger import selection
from a2a_ledger.export import export_peer, export_task
from a2a_ledger.verify import verify
from tests.divergence.story import PEER, card, task
from tests.evidence.forging import statuses
from tests.evidence.recorded import LedgerStory, opened
from tests.reconcile.sides import OPTIONAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from a2a_ledger.codec import Record
    from a2a_ledger.ledger import ContractLedger

MANY = 40


@pytest.fixture(autouse=True)
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "_MOST_FETCHES", 5)
    monkeypatch.setattr(selection, "_FIRST_PAGE", 1)
    monkeypatch.setattr(selection, "_PAGE", 4)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[ContractLedger]:
    with opened(tmp_path) as made:
        yield made


def told(ledger: ContractLedger, behind: Callable[[LedgerStory, Record], object]) -> tuple[LedgerStory, Record, Record]:
    """Tell of a client that was built once and asked many times; `behind` comes between its last answer and a send."""
    story = LedgerStory(ledger)
    built = story.fetch(card(), etag='"a"')
    stands = [story.not_modified(built) for _ in range(MANY)][-1]
    behind(story, built)
    decision = story.decide(built, at=stands.at)
    story.capture(built)
    story.bind(story.answer(story.ask(), task("completed")))
    for _ in range(MANY):
        story.not_modified(built)
    ledger.catch_up()
    return story, stands, decision


def shown(ledger: ContractLedger, task: str) -> set[int]:
    return {record.n for record in selection.story_of(ledger.store, task).fetches}


def nothing(story: LedgerStory, built: Record) -> None:
    del story, built


def other_callers(story: LedgerStory, built: Record) -> None:
    """Others of this process look at other cards of the peer, and one of their looks fails."""
    del built
    for number in range(MANY):
        story.fetch({**OPTIONAL, "description": f"{number}"}, etag=f'"{number}"')
    story.fetch_failed()


@pytest.mark.parametrize("behind", [nothing, other_callers])
def test_the_answer_that_a_decision_used_is_shown(
    ledger: ContractLedger, behind: Callable[[LedgerStory, Record], object]
) -> None:
    story, stands, decision = told(ledger, behind)
    name = story.tasks["t1"]
    assert decision.n - stands.n == (1 if behind is nothing else MANY + 2)
    assert stands.n in shown(ledger, name)
    for made in (export_task(ledger, name), export_peer(ledger, PEER)):
        found = verify(made.data, trust=[ledger.signers["log"].vkey])
        assert (found.verdict, statuses(found)["R"]) == ("verified", "VALID")


def test_a_decision_about_a_time_of_no_answer_is_found_as_before(ledger: ContractLedger) -> None:
    story = LedgerStory(ledger)
    story.fetch(card(), etag='"old"')
    built = story.fetch(card(), etag='"a"')
    at = "2026-09-13T09:00:00.000000Z"
    decision = story.decide(built, at=at)
    story.capture(built)
    story.bind(story.answer(story.ask(), task("completed")))
    ledger.catch_up()
    found = verify(export_task(ledger, story.tasks["t1"]).data, trust=[ledger.signers["log"].vkey])
    assert statuses(found)["R"] == "NOT PROVEN"
    assert f"records/{decision.n}.json: was decided about a fetch at {at}" in next(
        claim.detail for claim in found.claims if claim.claim == "R"
    )
    assert shown(ledger, story.tasks["t1"]) == {built.n}
