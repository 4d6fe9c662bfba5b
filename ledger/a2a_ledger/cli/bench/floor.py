"""The floor: the least that any durable append to SQLite costs on this disk, and rounds that alternate with it.

Bare table, write-ahead log, `synchronous=FULL`, `BEGIN IMMEDIATE; INSERT; COMMIT` of as many random
octets as a row of ours holds, in the directory of the ledger that it is compared with.
"""

from __future__ import annotations

import os
import sqlite3
import statistics
import time
from typing import TYPE_CHECKING, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Floor:
    """A bare table to insert into.

    Args:
        directory: where the database is made.
        size: octets of a row.
    """

    def __init__(self, directory: Path, size: int) -> None:
        self._octets = os.urandom(size)
        self._connection = sqlite3.connect(directory / "floor.db", isolation_level=None)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")
        self._connection.execute("CREATE TABLE f (id INTEGER PRIMARY KEY, b BLOB)")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection, so that its commits can be slowed."""
        return self._connection

    def insert(self, times: int) -> None:
        """Insert rows, each in a transaction of its own."""
        run, row = self._connection.execute, (self._octets,)
        for _ in range(times):
            run("BEGIN IMMEDIATE")
            run("INSERT INTO f (b) VALUES (?)", row)
            run("COMMIT")

    def insert_batched(self, batches: int, size: int) -> None:
        """Insert rows, `size` of them in a transaction."""
        rows = [(self._octets,)] * size
        for _ in range(batches):
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("INSERT INTO f (b) VALUES (?)", rows)
            self._connection.execute("COMMIT")


class Paired(NamedTuple):
    """Medians over the rounds: ours, the floor's, and of the ratios ours / floor of the same round."""

    value: float
    floor: float
    ratio: float


def seconds(work: Callable[[], object]) -> float:
    """Return how long a piece of work took."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def alternate(ours: Callable[[], float], floor: Callable[[], float], rounds: int) -> Paired:
    """Measure ours and the floor in turn, each going first in every other round."""
    pairs: list[tuple[float, float]] = []
    for number in range(rounds):
        if number % 2:
            below, own = floor(), ours()
        else:
            own, below = ours(), floor()
        pairs.append((own, below))
    return Paired(
        statistics.median(own for own, _ in pairs),
        statistics.median(below for _, below in pairs),
        statistics.median(own / below for own, below in pairs),
    )


def slow_commits(connection: sqlite3.Connection, delay: float) -> None:
    """Make each commit of a connection take that many seconds longer, as a slower disk would; 0 ends it."""

    def wait(statement: str) -> None:
        if statement == "COMMIT":
            time.sleep(delay)

    connection.set_trace_callback(wait if delay else None)
