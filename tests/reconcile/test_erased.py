"""One side has erased what it held: that is no contradiction, and of every leg it is said that nobody can tell."""

from __future__ import annotations

import pytest

from a2a_ledger.erasing import erase_content
from a2a_ledger.reconcile import reconcile
from tests.reconcile.sides import Dispute, side


@pytest.mark.parametrize("who", ["client", "agent", "both"])
def test_erased_content_contradicts_nobody(two: Dispute, who: str) -> None:
    two.answered(two.begun(), "working")
    two.polled()
    two.polled("completed")
    for name, story in (("client", two.client), ("agent", two.agent)):
        if who in {name, "both"}:
            erase_content(story.ledger, story.tasks["t1"], reason="request 17", requested_by="Jo Doe")
    records = [story.ledger.store.read(0, 1000) for story in (two.client, two.agent)]
    report = reconcile(side(two.client, records=records[0]), side(two.agent, records=records[1])).tasks[0]
    assert {difference.weight for difference in report.differences} == {"explained"}
    assert (report.contracts, report.legs.differ, report.legs.cannot_tell) == ("same", 0, 6)
    assert (report.legs.unseen, report.verdict) == (6, "incomplete")  # nothing was compared, so nothing is consistent


def test_what_is_shown_of_one_leg_is_compared(two: Dispute) -> None:
    two.answered(two.begun(), "working")
    erase_content(two.client.ledger, two.client.tasks["t1"], reason="request 17", requested_by="Jo Doe")
    two.polled("completed")
    records = [story.ledger.store.read(0, 1000) for story in (two.client, two.agent)]
    report = reconcile(side(two.client, records=records[0]), side(two.agent, records=records[1])).tasks[0]
    assert (report.legs.both, report.legs.unseen, report.verdict) == (4, 2, "consistent")
