"""Processes that record, started by tests from one fork server, so that each costs milliseconds.

Whatever a child has to say goes as one message over its pipe.
"""

# pyright: reportPrivateUsage=false
# Faults are put in behind the public face on purpose.

from __future__ import annotations

import multiprocessing
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, cast

from a2a_ledger.store import open_store
from tests.store.facts import message, new_stream

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkServerProcess
    from pathlib import Path

    from a2a_ledger.store.connections import Connections

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["tests.store.recording_child"])


class Child(NamedTuple):
    """A running child and the parent's end of its pipe."""

    process: ForkServerProcess
    pipe: Connection

    def rest(self) -> list[str]:
        """Return everything that the child still says until it ends."""
        said: list[str] = []
        try:
            while True:
                said.append(self.pipe.recv_bytes().decode())
        except (EOFError, ConnectionResetError):
            self.process.join()
            return said


@contextmanager
def running(work: Callable[..., None], *arguments: object) -> Generator[Child]:
    """Run `work(pipe, *arguments)` in a child; kill it at the end."""
    ours, theirs = _context.Pipe()
    process = _context.Process(target=work, args=(theirs, *arguments))
    process.start()
    theirs.close()
    try:
        yield Child(process, ours)
    finally:
        process.kill()
        process.join()
        process.close()
        ours.close()


def record(pipe: Connection, directory: Path) -> None:
    """Append one to three events at a time for ever; acknowledge each append by one message."""
    store = open_store(directory)
    stream = new_stream(store)
    sizes = 0
    while True:
        sizes = sizes % 3 + 1
        placed = store.append([message(stream) for _ in range(sizes)])
        pipe.send_bytes(" ".join(f"{at.n}:{at.c}" for at in placed).encode())


def crash(pipe: Connection, directory: Path, step: int) -> None:
    """Append three events with a large blob, a tag and a full tile; die before statement `step` of the transaction."""
    store = open_store(directory)
    stream = new_stream(store)
    facts = [message(stream, blobs={"body": bytes(70000)}) for _ in range(3)]
    store.append([message(stream)])
    writer = cast("Connections", store._database)._writer
    assert writer is not None
    seen = 0

    def before(statement: str) -> None:
        nonlocal seen
        seen += 1
        if seen == step:
            pipe.send_bytes(statement.encode())
            os._exit(9)

    writer.set_trace_callback(before)
    store.append(facts)
    pipe.send_bytes(b"committed")
    os._exit(0)


def write(pipe: Connection, directory: Path, count: int) -> None:
    """Append `count` events one by one to two streams; say the longest append in seconds."""
    store = open_store(directory)
    stream = new_stream(store)
    pipe.send_bytes(b"ready")
    pipe.recv_bytes()
    longest = 0.0
    for n in range(count):
        fact = message("ledger" if n % 2 else stream)
        start = time.perf_counter()
        store.append([fact])
        longest = max(longest, time.perf_counter() - start)
    store.close()
    pipe.send_bytes(str(longest).encode())
