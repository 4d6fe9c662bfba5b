"""What is measured of a ledger: each number known by construction, the text read by Prometheus' own parser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

from a2a_ledger import ContractLedger
from a2a_ledger.anchors import witnesses
from a2a_ledger.anchors.witnesses import anchor_by_witnesses
from a2a_ledger.policy import parse_policy
from a2a_ledger_projections.exposition import exposition, prometheus_name
from a2a_ledger_projections.measures import Measure, Measures, Sample
from tests.anchors.pretend import Pretend
from tests.evidence.recorded import dispute
from tests.observing.conftest import Clock, adopt

if TYPE_CHECKING:
    from pathlib import Path

FOLLOWERS = ["peers", "task_contracts", "verifier-2", "waits"]


def values(text: str) -> dict[tuple[str, ...], float]:
    """Read a scrape as Prometheus does: (name of the sample, label value …) to number."""
    found: dict[tuple[str, ...], float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = (sample.name, *sample.labels.values())
            assert key not in found, key
            found[key] = sample.value
    return found


def scrape(ledger: ContractLedger) -> dict[tuple[str, ...], float]:
    group = ledger.store.recorder.group
    return values(exposition(Measures(ledger).all(), None if ledger.store.read_only else group.times.counted()))


def test_a_new_ledger(ledger: ContractLedger, clock: Clock) -> None:
    size = ledger.store.size()
    ledger.catch_up()
    clock.on(30)
    found = scrape(ledger)
    assert found["a2a_ledger_events_total",] == found["a2a_ledger_head_size",] == size
    assert found["a2a_ledger_unsigned_age_seconds",] == 0
    assert (found["a2a_ledger_unanchored",], found["a2a_ledger_unanchored_age_seconds",]) == (size, 30)
    assert {key[1] for key in found if key[0] == "a2a_ledger_projection_lag"} == set(FOLLOWERS)
    assert [found["a2a_ledger_projection_lag", name] for name in FOLLOWERS] == [0] * 4
    assert not [key for key in found if key[0] == "a2a_ledger_violations_total"]


def test_what_waits_is_as_old_as_the_first_of_it(ledger: ContractLedger, clock: Clock) -> None:
    ledger.catch_up()
    ledger._heads.stop()  # type: ignore[union-attr] # pyright: ignore[reportPrivateUsage, reportOptionalMemberAccess] - the test signs
    clock.on(100)
    adopt(ledger)
    clock.on(20)
    adopt(ledger, 2)
    clock.on(5)
    found = scrape(ledger)
    assert (found["a2a_ledger_projection_lag", "waits"], found["a2a_ledger_projection_lag_age_seconds", "waits"]) == (
        3,
        25,
    )
    assert found["a2a_ledger_unsigned_age_seconds",] == 25
    assert found["a2a_ledger_unanchored_age_seconds",] == 125
    ledger.sign_checkpoint()
    ledger.catch_up()
    found = scrape(ledger)
    assert found["a2a_ledger_unsigned_age_seconds",] == 0
    assert found["a2a_ledger_projection_lag_age_seconds", "waits"] == 0


def test_a_clock_that_was_put_back_makes_nothing_younger_than_new(ledger: ContractLedger, clock: Clock) -> None:
    clock.on(-3600)
    assert scrape(ledger)["a2a_ledger_unanchored_age_seconds",] == 0


def test_an_anchor_covers_what_lies_before_it_and_needs_none_itself(
    ledger: ContractLedger, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend = Pretend("witness.example/w")
    monkeypatch.setattr(witnesses, "ask", pretend)
    policy = parse_policy(f"{pretend.line}quorum {pretend.key.name}\n")
    anchor_by_witnesses(ledger, policy)
    assert [record.type for record in ledger.store.read(ledger.store.size() - 2, 2)] == [
        "key.added.v1",  # the witness's: behind the head that it has signed
        "checkpoint.anchored.v1",
    ]
    first = scrape(ledger)["a2a_ledger_unanchored",]
    anchor_by_witnesses(ledger, policy)
    assert (first, scrape(ledger)["a2a_ledger_unanchored",]) == (1, 0)
    adopt(ledger, 2)
    clock.on(7)
    found = scrape(ledger)
    assert (found["a2a_ledger_unanchored",], found["a2a_ledger_unanchored_age_seconds",]) == (2, 7)


def test_findings_are_counted_by_rule_and_each_once(ledger: ContractLedger) -> None:
    measures = Measures(ledger)
    dispute(ledger)
    ledger.catch_up()
    dispute(ledger, name="t2")
    first = values(exposition(measures.all(), None))
    ledger.catch_up()
    second = values(exposition(measures.all(), None))
    rule = ("a2a_ledger_violations_total", "auth-demand")
    assert (first[rule], second[rule], values(exposition(measures.all(), None))[rule]) == (1, 2, 2)


def test_a_process_that_records_has_a_histogram_and_a_reader_has_none(ledger: ContractLedger, home: Path) -> None:
    adopt(ledger, 3)
    with ContractLedger.open(home / "audit", read_only=True) as reader:
        assert not [key for key in scrape(reader) if key[0].startswith("a2a_ledger_append")]
    found = scrape(ledger)
    name = "a2a_ledger_append_duration_seconds"
    appends = ledger.store.recorder.group.times.counted()
    assert found[f"{name}_bucket", "+Inf"] == found[f"{name}_count",] == appends.below[-1] >= 3
    assert found[f"{name}_sum",] == pytest.approx(appends.seconds)
    assert (found["a2a_ledger_append_queue",], found["a2a_ledger_append_failures_total",]) == (0, 0)


def test_families_have_the_type_and_the_name_that_the_parser_gives_them(ledger: ContractLedger) -> None:
    text = exposition(Measures(ledger).all(), ledger.store.recorder.group.times.counted())
    kinds = {family.name: family.type for family in text_string_to_metric_families(text)}
    assert kinds == {  # the parser takes `_total` off a counter's name
        "a2a_ledger_events": "counter",
        "a2a_ledger_head_size": "gauge",
        "a2a_ledger_unsigned_age_seconds": "gauge",
        "a2a_ledger_unanchored": "gauge",
        "a2a_ledger_unanchored_age_seconds": "gauge",
        "a2a_ledger_projection_lag": "gauge",
        "a2a_ledger_projection_lag_age_seconds": "gauge",
        "a2a_ledger_violations": "counter",
        "a2a_ledger_append_queue": "gauge",
        "a2a_ledger_append_failures": "counter",
        "a2a_ledger_append_duration_seconds": "histogram",
    }


@pytest.mark.parametrize("odd", ['a"b', "a\\b", "a\nb", 'a\\n"', "ä\u2028"])
def test_a_label_with_odd_characters_is_read_as_it_is(odd: str) -> None:
    measure = Measure("a2a_ledger.x", "gauge", "s", "X.", lambda: [Sample(("rule", odd), 0.1)])
    assert values(exposition([measure], None)) == {("a2a_ledger_x_seconds", odd): 0.1}


@pytest.mark.parametrize(
    ("name", "kind", "unit", "expected"),
    [
        # Worked by hand after the specification's rules: units in braces are dropped, `s` is spelled out, sums end so.
        ("a2a_ledger.events", "counter", "{event}", "a2a_ledger_events_total"),
        ("a2a_ledger.lag.age", "gauge", "s", "a2a_ledger_lag_age_seconds"),
        ("a2a_ledger.busy", "counter", "s", "a2a_ledger_busy_seconds_total"),
    ],
)
def test_prometheus_spells_the_names_of_opentelemetry(name: str, kind: str, unit: str, expected: str) -> None:
    measure = Measure(name, "counter" if kind == "counter" else "gauge", unit, "", list)
    assert prometheus_name(measure) == expected
