"""A row about metrics: what it costs an append that its time is counted, and that they are scraped meanwhile."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from a2a_ledger.cli.bench.floor import alternate, seconds
from a2a_ledger.cli.bench.material import Messages
from a2a_ledger.cli.bench.row import Row
from a2a_ledger.store.append_times import AppendTimes
from a2a_ledger_projections.exposition import exposition
from a2a_ledger_projections.measures import Measures

if TYPE_CHECKING:
    from a2a_ledger.cli.bench.place import Place

_STREAMS = 50


class _Nothing(AppendTimes):
    """Counts nothing."""

    def took(self, seconds: float) -> None:
        """Take no notice."""


def metrics(place: Place) -> list[Row]:
    """Append with metrics, scraped once a round, and with nothing counted, in turn."""
    count = place.scale.singles
    with place.ledger("metrics") as ledger, closing(Measures(ledger)) as measures:
        messages = Messages(ledger, _STREAMS)
        group = ledger.store.recorder.group
        counting, nothing = group.times, _Nothing()

        def appends() -> None:
            for number in range(count):
                ledger.append([messages.draft(number)])

        def counted() -> float:
            group.times = counting
            scrape = lambda: exposition(measures.all(), counting.counted())  # noqa: E731 - one expression
            return (seconds(appends) + seconds(scrape)) / count * 1e3

        def uncounted() -> float:
            group.times = nothing
            return seconds(appends) / count * 1e3

        for number in range(place.scale.warm):
            ledger.append([messages.draft(number)])
        found = alternate(counted, uncounted, place.scale.rounds)
    remark = f"floor: the same append, nothing counted; scraped once every {count} appends"
    return [Row("metrics", found.value, "ms", found.floor, found.ratio, remark=remark)]
