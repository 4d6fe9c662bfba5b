"""Processes that record on a server, started by tests from one fork server."""

from __future__ import annotations

import multiprocessing
from typing import TYPE_CHECKING

from tests.store.facts import Where, message, new_stream

if TYPE_CHECKING:
    from multiprocessing.synchronize import Barrier

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["tests.store.server_child"])


def at_once(where: Where, processes: int, appends: int) -> list[int | None]:
    """Have processes open a ledger in the same moment and append one event at a time; return their exit codes."""
    start = _context.Barrier(processes)
    children = [_context.Process(target=_record, args=(where, appends, start)) for _ in range(processes)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    return [child.exitcode for child in children]


def _record(where: Where, appends: int, start: Barrier) -> None:
    start.wait()
    store = where.make()
    stream = new_stream(store)
    for n in range(appends):
        store.append([message("ledger" if n % 4 == 0 else stream)])
    store.close()
