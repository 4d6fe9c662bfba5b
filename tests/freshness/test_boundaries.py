"""Clocks, limits and windows: what happens exactly at a limit, and when a clock was set back."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from a2a_ledger.freshness import CardEntry, Decision, Inputs, Limits, Sibling, Sighting, Validator, decide

NOW = datetime(2026, 8, 18, 12, tzinfo=UTC)


def inputs(age: float = 0, **card: object) -> Inputs:
    entry = CardEntry(fetched_at=NOW - timedelta(seconds=age), etag='"a"', version="1.0", contract="sha256:aa")
    return Inputs(
        now=NOW,
        card=replace(entry, **card),  # type: ignore[arg-type]  # each test names a field of the entry
        validator=Validator(present=True),
        client_versions=("1.0",),
    )


@pytest.mark.parametrize(
    ("age", "reason"), [(59.999999, "fresh"), (60, "contract-limit"), (60.000001, "contract-limit")]
)
def test_contract_limit_has_passed_exactly_at_the_limit(age: float, reason: str) -> None:
    assert decide(inputs(age)).reason == reason


@pytest.mark.parametrize(("age", "reason"), [(86_399.5, "contract-limit"), (86_400, "expired")])
def test_cache_entry_ends_exactly_at_the_limit(age: float, reason: str) -> None:
    assert decide(inputs(age)).reason == reason


@pytest.mark.parametrize(("header", "reason"), [(49, "fresh"), (50, "contract-limit"), (86_390, "expired")])
def test_age_header_counts_as_age(header: int, reason: str) -> None:
    assert decide(inputs(10, age_header=header)).reason == reason


def test_a_days_max_age_does_not_stretch_the_contract_limit() -> None:
    assert decide(inputs(61, max_age=86_400)) == Decision("refetch-once", "contract-limit")


def test_max_age_shorter_than_the_contract_limit_governs() -> None:
    assert decide(inputs(5, max_age=5)).reason == "contract-limit"
    assert decide(inputs(4, max_age=5)).reason == "fresh"


def test_capability_limit_alone_is_reached_only_under_a_longer_contract_limit() -> None:
    long = replace(inputs(300), limits=Limits(contract=900))
    assert decide(long) == Decision("proceed", "capability-stale", "routing")
    assert decide(replace(inputs(299), limits=Limits(contract=900))).reason == "fresh"


@pytest.mark.parametrize(
    ("ahead", "reason"), [(0.005, "fresh"), (59, "fresh"), (60, "contract-limit"), (90_000, "expired")]
)
def test_clock_set_back_never_lengthens_trust_beyond_the_limits(ahead: float, reason: str) -> None:
    assert decide(inputs(-ahead)).reason == reason


def test_a_sibling_in_the_future_is_not_waited_for_longer_than_the_limit() -> None:
    soon = Sibling(state="sent", sent_at=NOW + timedelta(seconds=29))
    late = Sibling(state="sent", sent_at=NOW + timedelta(days=1))
    assert decide(replace(inputs(120), siblings=(soon,))).reason == "sibling-submitted"
    assert decide(replace(inputs(120), siblings=(late,))).reason == "contract-limit"


def seen(*ages_and_contracts: tuple[float, str]) -> tuple[Sighting, ...]:
    return tuple(Sighting(at=NOW - timedelta(seconds=age), contract=name) for age, name in ages_and_contracts)


@pytest.mark.parametrize(
    ("contracts", "retry_after"),
    [
        (seen((599.5, "a"), (300, "b"), (1, "a")), 1),
        (seen((540, "a"), (500, "b"), (400, "a"), (300, "b")), 100),  # a-b-a ends at 60 s, b-a-b at 100 s
        (seen((500, "a"), (450, "a"), (300, "b"), (1, "a")), 150),
        (seen((300, "a"), (200, "b"), (150, "c"), (100, "a")), 300),
    ],
)
def test_flapping_says_when_it_will_be_over(contracts: tuple[Sighting, ...], retry_after: int) -> None:
    flapping = replace(inputs(10), contracts_seen=contracts)
    assert decide(flapping) == Decision("abort-before-send", "flapping", retry_after=retry_after)
    later = replace(flapping, now=NOW + timedelta(seconds=retry_after))
    assert decide(later).reason != "flapping"
    just_before = replace(flapping, now=NOW + timedelta(seconds=retry_after - 1))
    assert decide(just_before).reason == "flapping"


@pytest.mark.parametrize(
    "contracts",
    [seen((500, "a"), (300, "b")), seen((500, "a"), (300, "b"), (100, "c")), seen((600, "a"), (9, "b"), (1, "a"))],
)
def test_a_contract_that_does_not_come_back_inside_the_window_is_no_flapping(contracts: tuple[Sighting, ...]) -> None:
    assert decide(replace(inputs(10), contracts_seen=contracts)).reason == "fresh"
