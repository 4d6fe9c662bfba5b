"""What holds for every input: there is an answer, rows win in order, a sent task is never probed, age only hurts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_ledger.freshness import (
    CardEntry,
    Choices,
    Hint,
    Inputs,
    Limits,
    Manifest,
    Refetch,
    Sibling,
    Sighting,
    TaskState,
    Validator,
    decide,
    inputs_from_json,
)

few = settings(max_examples=60, deadline=None)

EPOCH = datetime(2026, 8, 18, 12, tzinfo=UTC)
DECISIONS = {"proceed", "discover", "refetch-once", "abort-before-send", "never-refetch"}
WIRE_STATES = ["submitted", "working", "TASK_STATE_SUBMITTED", "auth-required", "canceled", "cancelled", "nonsense", ""]

times = st.integers(-200_000, 200_000).map(lambda seconds: EPOCH + timedelta(seconds=seconds))
seconds = st.integers(0, 100_000)
versions = st.sampled_from(["1.0", "0.3", "0.3.0", "2.0", "junk"])
contracts = st.sampled_from(["sha256:aa", "sha256:bb", "sha256:cc"])
cards = st.builds(
    CardEntry,
    fetched_at=times,
    age_header=st.none() | seconds,
    max_age=st.none() | seconds,
    no_cache=st.booleans(),
    etag=st.none() | st.just('"a"'),
    last_modified=st.none() | st.just("Tue, 18 Aug 2026 09:00:00 GMT"),
    version=st.none() | versions,
    contract=st.none() | contracts,
)
anything = st.builds(
    Inputs,
    now=times,
    transport=st.sampled_from(["network", "network", "in-process"]),
    manifest=st.none() | st.builds(Manifest, valid=st.booleans(), floor_until=times),
    card=st.none() | cards,
    validator=st.builds(
        Validator,
        present=st.booleans(),
        last=st.sampled_from(["304", "other-tag", "same-tag", "never"]),
        lied=st.booleans(),
    ),
    task=st.builds(TaskState, state=st.sampled_from(["intended", "intended", "sent", "adopted", *WIRE_STATES])),
    siblings=st.lists(st.builds(Sibling, state=st.sampled_from(["sent", *WIRE_STATES]), sent_at=times), max_size=3).map(
        tuple
    ),
    client_versions=st.lists(versions, max_size=2).map(tuple),
    hints=st.lists(st.builds(Hint, kind=st.sampled_from(["401", "contract-finding"]), at=times), max_size=2).map(tuple),
    contracts_seen=st.lists(st.builds(Sighting, at=times, contract=contracts), max_size=5).map(tuple),
    limits=st.builds(Limits, contract=seconds, capability=seconds, cache=seconds, sibling=seconds, flap=seconds),
    profile=st.builds(
        Choices,
        sibling=st.sampled_from(["proceed", "wait", "abort"]),
        skew=st.sampled_from(["proceed", "abort"]),
        failed=st.sampled_from(["proceed", "abort"]),
    ),
    refetch=st.none()
    | st.builds(
        Refetch,
        outcome=st.sampled_from(["304", "same", "capability", "unclassified", "contract", "undecidable", "failed"]),
    ),
)


@few
@given(anything)
def test_there_is_always_an_answer_and_it_can_be_recorded_and_made_again(inputs: Inputs) -> None:
    made = decide(inputs)
    assert made.decision in DECISIONS
    assert made.at_stake in {"none", "routing", "authorization"}
    assert made.retry_after is None or made.retry_after > 0
    assert decide(inputs_from_json(inputs.to_json())[0]) == made


@few
@given(anything, st.sampled_from(["sent", "adopted", *WIRE_STATES]))
def test_a_task_past_intended_is_never_probed_whatever_else_is_so(inputs: Inputs, state: str) -> None:
    past = replace(inputs, transport="network", manifest=None, task=TaskState(state=state))
    assert (decide(past).decision, decide(past).reason) == ("never-refetch", "frozen")


@few
@given(anything)
def test_nothing_is_fetched_twice_for_one_send(inputs: Inputs) -> None:
    if inputs.refetch is not None:
        assert decide(inputs).decision not in {"refetch-once", "discover"}


@few
@given(anything)
def test_at_stake_follows_from_the_row(inputs: Inputs) -> None:
    made = decide(inputs)
    expected = {"out-of-scope": "none", "manifest": "none", "frozen": "none", "capability-stale": "routing"}
    assert made.at_stake == expected.get(made.reason, "authorization")


@few
@given(anything)
def test_a_changed_contract_stops_every_send_that_asked(inputs: Inputs) -> None:
    changed = replace(inputs, transport="network", manifest=None, task=TaskState(), refetch=Refetch(outcome="contract"))
    assert (decide(changed).decision, decide(changed).reason) == ("abort-before-send", "contract-changed")


@few
@given(anything, cards)
def test_earlier_rows_win(inputs: Inputs, card: CardEntry) -> None:
    """Each step makes the conditions of one more row hold, from the last to the first, and that row then answers."""
    card = replace(card, fetched_at=EPOCH, age_header=None, no_cache=True, etag='"a"', version="1.0")
    base = Inputs(
        now=EPOCH,
        card=card,
        validator=Validator(present=True),
        client_versions=("1.0",),
        limits=Limits(),
        profile=inputs.profile,
    )
    flap = tuple(Sighting(at=EPOCH, contract=name) for name in "aba")
    steps: list[tuple[Inputs, str]] = [(base, "contract-limit")]
    steps.append((replace(base, contracts_seen=flap), "flapping"))
    steps.append((replace(steps[-1][0], validator=Validator(present=False)), "no-validator"))
    steps.append((replace(steps[-1][0], client_versions=("0.3",)), "version-skew"))
    steps.append((replace(steps[-1][0], hints=(Hint(kind="contract-finding", at=EPOCH),)), "contradicted"))
    steps.append((replace(steps[-1][0], siblings=(Sibling(state="sent", sent_at=EPOCH),)), "sibling-submitted"))
    steps.append((replace(steps[-1][0], card=None), "no-card"))
    steps.append((replace(steps[-1][0], task=TaskState(state="sent")), "frozen"))
    steps.append((replace(steps[-1][0], transport="in-process"), "out-of-scope"))
    if inputs.profile.sibling == "proceed":  # row 4 stands before rows 5 to 8 and after row 3
        assert decide(steps[5][0]).decision == "proceed"
    assert [decide(step).reason for step, _ in steps] == [reason for _, reason in steps]


@few
@given(cards, st.lists(st.integers(0, 200_000), min_size=2, max_size=6))
def test_growing_age_never_makes_a_decision_more_trusting(card: CardEntry, ages: list[int]) -> None:
    order = ["fresh", "capability-stale", "contract-limit", "expired"]
    card = replace(card, fetched_at=EPOCH, etag='"a"', version="1.0")
    base = Inputs(now=EPOCH, card=card, validator=Validator(present=True), client_versions=("1.0",))
    reasons = [decide(replace(base, now=EPOCH + timedelta(seconds=age))).reason for age in sorted(ages)]
    ranks = [order.index(reason) for reason in reasons]
    assert all(earlier <= later for earlier, later in pairwise(ranks))
