"""A process that records, run by tests as `python -m tests.store.recording_child VERB …`."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from a2a_ledger.store import open_store
from tests.store.facts import message, new_stream


def record(directory: Path) -> None:
    """Append one to three events at a time for ever; acknowledge each append by one line."""
    store = open_store(directory)
    stream = new_stream(store)
    sizes = 0
    while True:
        sizes = sizes % 3 + 1
        placed = store.append([message(stream) for _ in range(sizes)])
        os.write(1, "".join(f"{at.n} {at.c}\n" for at in placed).encode())


def crash(directory: Path, step: int) -> None:
    """Append three events with a large blob, a tag and a full tile; die before statement `step` of the transaction."""
    store = open_store(directory)
    stream = new_stream(store)
    facts = [message(stream, blobs={"body": bytes(70000)}) for _ in range(3)]
    store.append([message(stream)])
    writer = store._connections._writer
    assert writer is not None
    seen = 0

    def before(statement: str) -> None:
        nonlocal seen
        seen += 1
        if seen == step:
            os.write(1, f"{statement[:40]}\n".encode())
            os._exit(9)

    writer.set_trace_callback(before)
    store.append(facts)
    os.write(1, b"committed\n")
    os._exit(0)


def write(directory: Path, count: int) -> None:
    """Append `count` events one by one to two streams; print the longest append in seconds."""
    store = open_store(directory)
    stream = new_stream(store)
    os.write(1, b"ready\n")
    sys.stdin.readline()
    longest = 0.0
    for n in range(count):
        fact = message("ledger" if n % 2 else stream)
        start = time.perf_counter()
        store.append([fact])
        longest = max(longest, time.perf_counter() - start)
    store.close()
    os.write(1, f"{longest}\n".encode())


if __name__ == "__main__":
    verb, place, *numbers = sys.argv[1:]
    {"record": record, "crash": crash, "write": write}[verb](Path(place), *map(int, numbers))
