"""Reading the inputs of a decision: what is unknown, missing or of the wrong kind is said, never guessed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from a2a_ledger.errors import UsageError
from a2a_ledger.freshness import decide, inputs_from_json

if TYPE_CHECKING:
    from a2a_ledger.events import Json, JsonObject

NOW = "2026-08-18T12:00:00Z"
CARD: JsonObject = {"fetched_at": "2026-08-18T11:59:50Z", "etag": '"a"', "version": "1.0"}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "freshness inputs: expected an object, found list []"),
        ({"now": NOW, "nwo": 1}, "freshness inputs: unknown member nwo; docs/format.md lists the members"),
        ({"now": NOW, "card": {**CARD, "etga": 1}}, "freshness inputs: unknown member card.etga"),
        ({"now": NOW, "limits": {"contracts": 5}}, "freshness inputs: unknown member limits.contracts"),
        ({"card": CARD}, "freshness inputs: now is missing and cannot be assumed; state it"),
        ({"now": NOW, "card": {}}, "freshness inputs: card.fetched_at is missing and cannot be assumed"),
        ({"now": "noon"}, "freshness inputs: now: expected an RFC 3339 time with its zone"),
        ({"now": "2026-02-30T12:00:00Z"}, "freshness inputs: now: expected an RFC 3339 time"),
        ({"now": "2026-08-18T12:00:00"}, "found str '2026-08-18T12:00:00'"),
        (
            {"now": NOW, "card": {**CARD, "max_age": -1}},
            "card.max_age: expected whole seconds, 0 or more, found int -1",
        ),
        (
            {"now": NOW, "card": {**CARD, "max_age": True}},
            "card.max_age: expected whole seconds, 0 or more, found bool",
        ),
        ({"now": NOW, "card": {**CARD, "no_cache": 1}}, "card.no_cache: expected true or false, found int 1"),
        ({"now": NOW, "card": "x"}, "freshness inputs: card: expected an object, found str 'x'"),
        ({"now": NOW, "validator": None}, "freshness inputs: validator: expected an object, found null"),
        ({"now": NOW, "transport": "carrier"}, "transport: expected one of network, in-process, found str 'carrier'"),
        ({"now": NOW, "siblings": {}}, "siblings: expected a list, found dict {}"),
        ({"now": NOW, "siblings": [{"state": "sent"}]}, "siblings[0].sent_at is missing and cannot be assumed"),
        ({"now": NOW, "client_versions": [1.0]}, "client_versions[0]: expected a text, found float 1.0"),
        ({"now": NOW, "refetch": {"outcome": "changed"}}, "refetch.outcome: expected one of 304, same, capability"),
        ({"now": NOW, "task": {"state": None}}, "task.state: expected a text, found null"),
    ],
)
def test_bad_inputs_are_refused_by_name(value: Json, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        inputs_from_json(value)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("spelled", "utc"),
    [
        ("2026-08-18T12:00:00Z", datetime(2026, 8, 18, 12, tzinfo=UTC)),
        ("2026-08-18T20:00:00+08:00", datetime(2026, 8, 18, 12, tzinfo=UTC)),
        ("2026-08-18t12:00:00.5z", datetime(2026, 8, 18, 12, 0, 0, 500_000, tzinfo=UTC)),
        ("2026-08-18T12:00:00.123456789Z", datetime(2026, 8, 18, 12, 0, 0, 123_456, tzinfo=UTC)),
    ],
)
def test_times_are_read_in_every_spelling_of_rfc_3339(spelled: str, utc: datetime) -> None:
    assert inputs_from_json({"now": spelled})[0].now == utc


def test_a_missing_now_may_come_from_the_callers_clock_and_is_then_assumed() -> None:
    now = datetime(2026, 8, 18, 12, tzinfo=UTC)
    inputs, assumed = inputs_from_json({}, now=now)
    assert inputs.now == now
    assert "now" in assumed


def test_validator_is_assumed_from_the_cards_own_tag() -> None:
    tagged, _ = inputs_from_json({"now": NOW, "card": CARD})
    untagged, _ = inputs_from_json({"now": NOW, "card": {**CARD, "etag": None}})
    assert (tagged.validator.present, untagged.validator.present) == (True, False)
    assert decide(untagged).reason == "no-validator"
