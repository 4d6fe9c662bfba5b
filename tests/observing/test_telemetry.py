"""The measures as a program's own OpenTelemetry SDK collects them."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader, NumberDataPoint

from a2a_ledger.errors import StoreError
from a2a_ledger.store.append_times import BOUNDS
from a2a_ledger_projections.telemetry import instrument
from tests.evidence.recorded import dispute
from tests.observing.conftest import Clock, adopt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger import ContractLedger

Points = dict[str, list[NumberDataPoint | HistogramDataPoint]]


@pytest.fixture
def reader() -> InMemoryMetricReader:
    return InMemoryMetricReader()


@pytest.fixture
def provider(reader: InMemoryMetricReader) -> Iterator[MeterProvider]:
    made = MeterProvider([reader])
    yield made
    made.shutdown()


def collected(reader: InMemoryMetricReader) -> Points:
    """Return what one collection gives: by instrument, its points."""
    data = reader.get_metrics_data()
    found: Points = {}
    for resource in data.resource_metrics if data else ():
        for scope in resource.scope_metrics:
            assert scope.scope.name == "a2a_ledger"
            for metric in scope.metrics:
                found[metric.name] = [
                    point
                    for point in metric.data.data_points
                    if isinstance(point, (NumberDataPoint, HistogramDataPoint))
                ]
    return found


def number(points: Points, name: str, **labels: str) -> float:
    """Return the one number with these attributes beside the log's name."""
    (found,) = (
        point.value
        for point in points[name]
        if isinstance(point, NumberDataPoint)
        and {k: v for k, v in (point.attributes or {}).items() if k != "a2a_ledger.origin"} == labels
    )
    return found


def test_a_reader_collects_what_the_ledger_is_now(
    ledger: ContractLedger, reader: InMemoryMetricReader, provider: MeterProvider, clock: Clock
) -> None:
    with instrument(ledger, provider):
        dispute(ledger)
        ledger.catch_up()
        found = collected(reader)
        assert number(found, "a2a_ledger.events") == ledger.store.size()
        assert number(found, "a2a_ledger.violations", rule="auth-demand") == 1
        assert number(found, "a2a_ledger.projection.lag", projection="peers") == 0
        clock.on(60)
        adopt(ledger, 2)
        clock.on(9)
        found = collected(reader)
        assert number(found, "a2a_ledger.projection.lag", projection="peers") == 2
        assert number(found, "a2a_ledger.projection.lag.age", projection="peers") == 9
        assert number(found, "a2a_ledger.append.queue") == 0
        named = [point.attributes or {} for points in found.values() for point in points]
        assert {str(attributes["a2a_ledger.origin"]) for attributes in named} == {ledger.origin}


def test_each_append_is_one_value_of_the_histogram(
    ledger: ContractLedger, reader: InMemoryMetricReader, provider: MeterProvider
) -> None:
    adopt(ledger)  # before anybody measured
    with instrument(ledger, provider):
        before = ledger.store.recorder.group.times.counted()
        adopt(ledger, 3)
        after = ledger.store.recorder.group.times.counted()
        (point,) = collected(reader)["a2a_ledger.append.duration"]
    assert isinstance(point, HistogramDataPoint)
    assert (point.count, tuple(point.explicit_bounds)) == (3, BOUNDS)
    assert point.sum == pytest.approx(after.seconds - before.seconds)


def test_nothing_is_measured_behind_the_end(
    ledger: ContractLedger, reader: InMemoryMetricReader, provider: MeterProvider
) -> None:
    with instrument(ledger, provider):
        adopt(ledger)
    collected(reader)
    adopt(ledger)
    assert not [name for name, points in collected(reader).items() if name != "a2a_ledger.append.duration" and points]
    ledger.close()
    collected(reader)  # asks a closed ledger nothing


def test_what_cannot_be_read_is_left_out_and_said(
    ledger: ContractLedger,
    reader: InMemoryMetricReader,
    provider: MeterProvider,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def gone() -> None:
        raise StoreError("the disk is gone")

    with instrument(ledger, provider):
        monkeypatch.setattr(ledger.store, "latest_checkpoint", gone)
        found = collected(reader)
        monkeypatch.undo()
    assert not found.get("a2a_ledger.head.size")
    assert number(found, "a2a_ledger.events") == ledger.store.size()
    assert "a2a_ledger.head.size was not measured: the disk is gone" in caplog.text


def test_without_the_api_it_says_what_to_install() -> None:
    probe = (
        "import sys\nsys.modules['opentelemetry'] = None\n"
        "from a2a_ledger.errors import UsageError\n"
        "try:\n    from a2a_ledger_projections.telemetry import instrument\n"
        "except UsageError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    assert "pip install 'a2a-ledger[otel]'" in done.stdout, done.stderr
