"""Where a run of the benchmark works and how much it does."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from a2a_ledger.ledger import ContractLedger

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from a2a_ledger.store import Server


@dataclass(frozen=True, slots=True)
class Scale:
    """How much each row does.

    Attributes:
        warm: inserts before the first measurement, ours and the floor's.
        rounds: of each comparison.
        singles: single appends a round.
        each: appends of each of the 32 callers a round.
        slow_each: the same where commits are slowed.
        batches: transactions of 100 a round.
        history: events of the ledger that is audited and read.
        repeats: of each reading.
        calls: round trips a round against the agent.
        slow_calls: round trips against the agent that takes 50 ms.
        events: of a long stream.
        writes: appends of each writing process.
        leaves: of the long log.
        long_task: events of the task that is exported in a process of its own.
        starts: processes started to measure one.
    """

    warm: int = 1500
    rounds: int = 9
    singles: int = 200
    each: int = 50
    slow_each: int = 10
    batches: int = 20
    history: int = 10_000
    repeats: int = 5
    calls: int = 200
    slow_calls: int = 60
    events: int = 10_000
    writes: int = 1000
    leaves: int = 1_000_000
    long_task: int = 100_000
    starts: int = 9


QUICK = Scale(
    warm=20,
    rounds=2,
    singles=10,
    each=2,
    slow_each=2,
    batches=2,
    history=400,
    repeats=1,
    calls=4,
    slow_calls=2,
    events=50,
    writes=10,
    leaves=2000,
    long_task=1500,
    starts=1,
)
"""A look at every row in a few seconds: the shape is right, the numbers say little."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where this run works.

    Attributes:
        folder: a scratch directory.
        scale: how much is done.
        progress: is told how far it is.
        url: of a PostgreSQL server; None: nobody named one.
    """

    folder: Path
    scale: Scale
    progress: Callable[[int, int], None]
    url: str | None = None

    @contextmanager
    def ledger(self, name: str, *, follow: bool = False, server: Server | None = None) -> Generator[ContractLedger]:
        """Open a fresh ledger as a user would; both copies of its mark lie in the scratch directory.

        Without `follow` no read model runs beside the measurement; heads are signed as always.
        """
        mark_dir = str(self.mark(name))
        with ContractLedger.open(
            self.folder / name, origin="bench/ledger", follow=follow, mark_dir=mark_dir, server=server
        ) as ledger:
            yield ledger

    def mark(self, name: str) -> Path:
        """Return where the second copy of that ledger's mark lies."""
        return self.folder / f"{name}-mark"

    def path(self, name: str) -> Path:
        """Return the directory of a ledger of this run."""
        return self.folder / name
