"""The measures as Prometheus reads them: its text format, version 0.0.4. Pure but for what the measures read.

https://prometheus.io/docs/instrumenting/exposition_formats/. Names are made from those of OpenTelemetry as its
specification says (Prometheus and OpenMetrics Compatibility): dots become `_`, seconds and counters get a suffix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.store.append_times import BOUNDS
from a2a_ledger_projections.measures import APPENDS, APPENDS_SAID

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_ledger.store.append_times import Counted
    from a2a_ledger_projections.measures import Measure

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def exposition(measures: Iterable[Measure], appends: Counted | None) -> str:
    """Return the text of one scrape.

    Args:
        measures: what to write, in this order; each is read now.
        appends: the histogram of appends; None: this process records nothing.
    """
    lines: list[str] = []
    for measure in measures:
        name = prometheus_name(measure)
        lines += _head(name, measure.kind, measure.said)
        for label, value in measure.read():
            where = "" if label is None else f'{{{label[0]}="{_escaped(label[1])}"}}'
            lines.append(f"{name}{where} {value!r}")
    if appends is not None:
        name = f"{_flat(APPENDS)}_seconds"
        lines += _head(name, "histogram", APPENDS_SAID)
        bounds = [*(f"{bound:g}" for bound in BOUNDS), "+Inf"]
        lines += [f'{name}_bucket{{le="{le}"}} {count}' for le, count in zip(bounds, appends.below, strict=True)]
        lines += [f"{name}_sum {appends.seconds!r}", f"{name}_count {appends.below[-1]}"]
    return "".join(f"{line}\n" for line in lines)


def prometheus_name(measure: Measure) -> str:
    """Return the name under which Prometheus knows a measure."""
    seconds = "_seconds" if measure.unit == "s" else ""
    return f"{_flat(measure.name)}{seconds}{'_total' if measure.kind == 'counter' else ''}"


def _head(name: str, kind: str, said: str) -> list[str]:
    return [f"# HELP {name} {said}", f"# TYPE {name} {kind}"]


def _flat(name: str) -> str:
    return name.replace(".", "_")


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
