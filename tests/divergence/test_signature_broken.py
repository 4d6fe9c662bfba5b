"""`signature-broken`: what is recorded of a card's signature, by the keys that were trusted when it came."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.divergence.story import PEER, Story, card
from tests.divergence.test_rules import only, shown_by

if TYPE_CHECKING:
    from a2a_ledger.events import JsonObject


def judged(status: str, key: str | None, **others: str) -> JsonObject:
    """Return the member `signature` of a fetch."""
    judgement: JsonObject = {"status": status, "kid": "k1", "form": None, "covers_contract": None, "alg": "ES256"}
    judgement |= {"key": key, "proves": None, "reason": "a sentence", **others}
    return judgement


VALID = judged("valid", "ledger", proves="signer", form="jcs")
BROKEN = judged("invalid", "ledger")


def test_a_signature_that_was_valid_and_is_broken() -> None:
    story = Story()
    story.fetch(card(), signature=VALID)
    story.fetch(card(description="changed"), signature=BROKEN)
    finding = only(story)
    assert (finding.rule, finding.about, finding.certainty, finding.rejects) == (
        "signature-broken",
        "peer",
        "certain",
        False,
    )
    assert (finding.stream, finding.task) == (f"findings:peer:{PEER}", None)
    assert finding.subject == story.records[1].data["raw_hash"]
    assert (finding.observed["kid"], finding.observed["key"], finding.observed["valid_at"]) == ("k1", "ledger", 0)
    assert shown_by(finding) == [0, 1]


@pytest.mark.parametrize("key", ["policy", "ledger"])
def test_a_signature_that_was_broken_from_the_start(key: str) -> None:
    story = Story()
    story.fetch(card(), signature=judged("invalid", key))
    finding = only(story)
    assert "valid_at" not in finding.observed
    assert shown_by(finding) == [0]


def test_once_a_card_however_often_it_is_fetched() -> None:
    story = Story()
    for _ in range(3):
        story.fetch(card(), signature=BROKEN)
    story.fetch(card(description="another"), signature=BROKEN)
    assert [finding.trigger.n for finding in story.findings()] == [0, 3]


def test_a_valid_one_of_another_card_of_the_peer_is_no_earlier_one() -> None:
    story = Story()
    story.fetch(card(), signature=VALID, source="extended")
    story.fetch(card(description="changed"), signature=BROKEN)
    assert shown_by(only(story)) == [1]


@pytest.mark.parametrize(
    "signature",
    [
        None,
        VALID,
        judged("absent", None),
        judged("undecidable", None),
        judged("valid", "card", proves="integrity"),
        judged("invalid", "card"),
        judged("invalid", None),
        {"status": 5, "key": "ledger"},
    ],
)
def test_what_no_trusted_key_found_broken_is_no_finding(signature: JsonObject | None) -> None:
    story = Story()
    story.fetch(card(), signature=VALID)
    story.fetch(card(description="changed"), signature=signature)
    assert story.rules() == []
