"""The measures as OpenTelemetry instruments, for a program that exports its own (extra `otel`).

    from a2a_ledger_projections.telemetry import instrument

    with ContractLedger.open("audit") as ledger, instrument(ledger):
        ...

Needs `opentelemetry-api` alone: which provider, reader and exporter there are is the program's choice. The only
importer of opentelemetry.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING

from a2a_ledger.errors import LedgerError, UsageError
from a2a_ledger.store.append_times import BOUNDS
from a2a_ledger_projections.measures import APPENDS, APPENDS_SAID, Measures

try:
    from opentelemetry.metrics import Observation, get_meter_provider
except ModuleNotFoundError as e:
    raise UsageError(
        "instrument needs opentelemetry-api, which is not installed: pip install 'a2a-ledger[otel]'"
    ) from e

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from opentelemetry.metrics import CallbackOptions, MeterProvider

    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger_projections.measures import Measure

_log = logging.getLogger(__name__)


@contextmanager
def instrument(ledger: ContractLedger, provider: MeterProvider | None = None) -> Generator[None]:
    """Measure an open ledger as long as the context lasts; leave it before the ledger is closed.

    Each number carries the log's name as attribute `a2a_ledger.origin`. What cannot be read is left out and logged.

    Args:
        ledger: which records in this process; one that is read-only has no appends to measure.
        provider: of meters; default: the one that the program has set globally.

    Raises:
        UsageError: a file of roots that the settings name cannot be used.
    """
    measures = Measures(ledger)
    running = Running(ledger.origin)
    meter = (provider or get_meter_provider()).get_meter("a2a_ledger", version("a2a-ledger"))
    for measure in measures.all():
        counts = measure.kind == "counter"
        make = meter.create_observable_counter if counts else meter.create_observable_gauge
        make(measure.name, [running.callback(measure)], unit=measure.unit, description=measure.said)
    times = ledger.store.recorder.group.times
    histogram = meter.create_histogram(
        APPENDS, unit="s", description=APPENDS_SAID, explicit_bucket_boundaries_advisory=BOUNDS
    )

    def record(seconds: float) -> None:
        histogram.record(seconds, running.attributes)

    times.listen(record)
    try:
        yield
    finally:
        times.ignore(record)
        running.ended = True
        measures.close()


class Running:
    """One ledger while it is measured: OpenTelemetry keeps callbacks for ever, so they must know when it is over."""

    def __init__(self, origin: str) -> None:
        self.attributes = {"a2a_ledger.origin": origin}
        self.ended = False

    def callback(self, measure: Measure) -> Callable[[CallbackOptions], Iterable[Observation]]:
        """Return what a reader calls when it collects."""

        def observe(_options: CallbackOptions) -> list[Observation]:
            if self.ended:
                return []
            try:
                samples = measure.read()
            except LedgerError as problem:
                _log.warning("%s was not measured: %s", measure.name, problem)
                return []
            return [
                Observation(value, self.attributes if label is None else {**self.attributes, label[0]: label[1]})
                for label, value in samples
            ]

        return observe
