"""How is the ledger doing? What can be counted of it now, each number with its name, unit and meaning.

The names are those of OpenTelemetry; `exposition.py` spells them as Prometheus does, `telemetry.py` hands them to an
OpenTelemetry meter. Labels hold names of rules and projections alone: nothing that came from the wire is a label.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple

from a2a_ledger.anchors import time_roots, unanchored
from a2a_ledger.followers import load_followers
from a2a_ledger_projections.facts import facts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from a2a_ledger.followers import Follower
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.store import Store

APPENDS = "a2a_ledger.append.duration"
"""Name of the histogram of appends, in seconds, which only a process that records has."""

APPENDS_SAID = "How long callers waited until their append was durable, in this process."

VIOLATION = "violation.detected.v1"


class Sample(NamedTuple):
    """One number, told from its like by a label (name, value); None: there is but one."""

    label: tuple[str, str] | None
    value: float


@dataclass(frozen=True, slots=True)
class Measure:
    """One thing that is measured.

    Attributes:
        name: as OpenTelemetry has it.
        kind: a `counter` never falls while the ledger lives; a `gauge` may.
        unit: `s`, or what is counted, in braces (UCUM annotations).
        said: what it is, one sentence.
        read: gives the numbers as of now; raises a `LedgerError` where the ledger cannot be read.
    """

    name: str
    kind: Literal["counter", "gauge"]
    unit: str
    said: str
    read: Callable[[], list[Sample]]


class Measures:
    """Reads one open ledger, as often as it is asked; a ledger that is read-only will do."""

    def __init__(self, ledger: ContractLedger) -> None:
        self._ledger = ledger
        self._store = ledger.store
        self._roots = time_roots(ledger)
        self._followers: list[Follower] = load_followers(ledger)
        self._violations = Violations(ledger.store)

    def all(self) -> list[Measure]:
        """Return everything that is measured but the histogram of appends (`ledger.store.recorder.group.times`)."""
        event = "{event}"
        found = [
            Measure("a2a_ledger.events", "counter", event, "Events recorded.", lambda: _one(self._store.size())),
            Measure(
                "a2a_ledger.head.size",
                "gauge",
                event,
                "Events under the newest signed head.",
                lambda: _one(self.head()),
            ),
            Measure(
                "a2a_ledger.unsigned.age",
                "gauge",
                "s",
                "Age of the oldest event under no signed head; 0: there is none.",
                lambda: _one(self.unsigned_age()),
            ),
            Measure(
                "a2a_ledger.unanchored",
                "gauge",
                event,
                "Events under no head that somebody else has signed, anchors not counted.",
                lambda: _one(self.unanchored()[0]),
            ),
            Measure(
                "a2a_ledger.unanchored.age",
                "gauge",
                "s",
                "Age of the oldest of these; 0: there is none.",
                lambda: _one(self.unanchored()[1]),
            ),
            Measure(
                "a2a_ledger.projection.lag",
                "gauge",
                event,
                "Events that a projection is behind the log.",
                lambda: [Sample(("projection", name), lag) for name, lag in self.lags().items()],
            ),
            Measure(
                "a2a_ledger.projection.lag.age",
                "gauge",
                "s",
                "Age of the oldest event that a projection has not processed; 0: there is none.",
                lambda: [Sample(("projection", name), age) for name, age in self.lag_ages().items()],
            ),
            Measure(
                "a2a_ledger.violations",
                "counter",
                "{violation}",
                "Findings recorded and signed.",
                lambda: [Sample(("rule", rule), count) for rule, count in self._violations.by_rule().items()],
            ),
        ]
        return found if self._store.read_only else [*found, *self._of_this_process()]

    def _of_this_process(self) -> list[Measure]:
        group = self._store.recorder.group
        return [
            Measure(
                "a2a_ledger.append.queue",
                "gauge",
                "{append}",
                "Callers in this process who wait for a transaction to begin with their append.",
                lambda: _one(group.waiting),
            ),
            Measure(
                "a2a_ledger.append.failures",
                "counter",
                "{append}",
                "Appends of this process that were not recorded.",
                lambda: _one(group.times.counted().failures),
            ),
        ]

    def close(self) -> None:
        """Let go of the projections; their positions are read no more."""
        for follower in self._followers:
            follower.close()

    def head(self) -> int:
        """Return the size of the newest signed head, 0 where none was signed."""
        newest = self._store.latest_checkpoint()
        return newest[0] if newest else 0

    def unsigned_age(self) -> float:
        """Return the age in seconds of the oldest event that no signed head covers, 0 where there is none."""
        return self._age(self.head())

    def unanchored(self) -> tuple[int, float]:
        """Return how many events nobody else has signed a head over, and the age in seconds of the oldest."""
        count, first = unanchored(self._store, self._roots)
        return count, 0.0 if first is None else self._age(first)

    def lags(self) -> dict[str, int]:
        """Return by projection how many events it is behind."""
        return {name: max(0, self._store.size() - position) for name, position in self._positions()}

    def lag_ages(self) -> dict[str, float]:
        """Return by projection the age in seconds of the oldest event that it has not processed."""
        return {name: self._age(position) for name, position in self._positions()}

    def _positions(self) -> list[tuple[str, int]]:
        return [(follower.name, follower.position()) for follower in self._followers]

    def _age(self, n: int) -> float:
        """Return how many seconds ago event `n` was recorded, 0 where there is none yet."""
        found = self._store.read(n, 1)
        if not found:
            return 0.0
        return max(0.0, (self._ledger.clock() - datetime.fromisoformat(found[0].at)).total_seconds())


class Violations:
    """Counts recorded findings by rule; each is read once, however often the counts are asked for."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._next = 0
        self._counts: Counter[str] = Counter()

    def by_rule(self) -> Mapping[str, int]:
        """Return the counts, in order of rule."""
        with self._lock, self._store.views() as db:
            size = self._store.size()
            new = Counter(str(fact.data.get("rule")) for fact in facts(self._store, db, self._next, size, [VIOLATION]))
            self._counts += new
            self._next = size
            return dict(sorted(self._counts.items()))


def _one(value: float) -> list[Sample]:
    return [Sample(None, value)]
