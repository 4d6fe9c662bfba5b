"""Which events go into a bundle: of one task, or of all tasks of a context or a peer (docs/format.md 11.3, 11.4).

A task of a few hundred events is read once and held. A larger one, and several, are looked through page by page, and
read again one by one when the bundle is written: then only their log indexes are held.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from a2a_ledger.bundle import PACKED_PROFILE, PROFILE
from a2a_ledger.codec import erased_versions
from a2a_ledger.errors import BundleError, UsageError
from a2a_ledger.selection import Told, names_task, no_task, story_of
from a2a_ledger.store.damage import must_be_whole, must_open
from a2a_ledger.verify.scope import Scope, peer_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from a2a_ledger.codec import Record
    from a2a_ledger.store import Store

_PAGE = 200
_NAMES = 1_000  # names of streams that are held at once
_MOST_EVENTS = 1_000
"""Of a task that is held in memory."""

_MOST_TASKS = 5_000
"""Of one bundle: `data/claims.json`, which lists each with the ends of its two streams, has 1 MiB at most."""

_MOST_FILES, _MOST_OCTETS = 9_000, 32 << 20
"""Of a bundle in plain files; what is larger takes packs."""


@dataclass(slots=True)
class Chosen:
    """The events of one bundle.

    Attributes:
        scope: what the bundle is about.
        numbers: their log indexes, ascending.
        ends: last shown version of each stream that is shown whole, -1 for one without an event.
        later: how many events of these streams (the log's own apart) lie behind the head.
        peers: of each task the peer that its events name first.
        keys: the whole stream `ledger`.
        load: reads one of the events.
        erased: stream and version of each event that an erasure lists, whatever its row still holds: the content may
            lie there until the erasure is finished. One behind the head counts too.
    """

    scope: Scope
    load: Callable[[int], Record]
    numbers: list[int] = field(default_factory=list[int])
    ends: dict[str, int] = field(default_factory=dict[str, int])
    later: int = 0
    peers: dict[str, str] = field(default_factory=dict[str, str])
    keys: list[Record] = field(default_factory=list["Record"])
    erased: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])

    def note_erasure(self, record: Record) -> None:
        """Take note of what an event of a task lists as erased."""
        self.erased.update((record.stream, ver) for ver in erased_versions(record))

    def latest(self) -> list[Record]:
        """Return the events among which the last one is that a head has to cover: the log's own, and the last other."""
        own = {record.n for record in self.keys}
        other = next((n for n in reversed(self.numbers) if n not in own), None)
        return [*self.keys, *([] if other is None else [self.load(other)])]

    def end_at(self, size: int) -> None:
        """Leave out what lies behind a head of this size, which are events of the log's own stream."""
        self.numbers = [n for n in self.numbers if n < size]
        self.keys = [record for record in self.keys if record.n < size]
        self.ends["ledger"] = self.keys[-1].ver if self.keys else -1


def choose_task(store: Store, task: str, before: int) -> Chosen:
    """Return the events of a task below a log index, in the form that they fit into.

    Raises:
        UsageError: there is no such task.
    """
    if _last(store, f"task:{task}") >= _MOST_EVENTS:
        return _choose(store, Scope(PACKED_PROFILE, "task", task, (task,)), before)
    story = story_of(store, task, before=before)
    held = {record.n: record for record in story.all}
    must_open(held.values())
    if not _is_small(held.values()):
        return _choose(store, Scope(PACKED_PROFILE, "task", task, (task,)), before)
    chosen = Chosen(Scope(PROFILE, "task", task, (task,)), held.__getitem__, list(held), keys=story.keys)
    shown = {f"findings:{task}": story.findings, "ledger": story.keys, f"task:{task}": story.events}
    chosen.ends = {stream: records[-1].ver if records else -1 for stream, records in shown.items()}
    chosen.later = _later(store, chosen.ends)
    chosen.peers[task] = story.peer
    for record in (*story.events, *_records(store, f"task:{task}", sys.maxsize, after=story.events[-1].ver)):
        chosen.note_erasure(record)
    return chosen


def choose_context(store: Store, context: str, before: int) -> Chosen:
    """Return the events of all tasks that an event with this context id belongs to.

    Raises:
        UsageError: there is none.
    """
    tasks: set[str] = set()
    for peer in store.tagged_peers("context"):
        places = store.tagged_places(f"context:{peer}:{context}")
        tasks |= {stream[5:] for n, stream in places if stream.startswith("task:") and n < before}
    if not tasks:
        raise UsageError(
            f"no task of context {context[:80]!r} that the signed head covers: `a2a-ledger tasks` names them"
        )
    return _choose(store, Scope(PACKED_PROFILE, "context", context, tuple(sorted(tasks))), before)


def choose_peer(store: Store, peer: str, before: int) -> Chosen:
    """Return the events of a peer's own stream, of the findings about it, and of all tasks with it.

    Raises:
        UsageError: there is none.
    """
    tasks: list[str] = []
    for stream in _task_streams(store):
        first = next((record for record in _records(store, stream, before) if "peer" in record.data), None)
        if first is not None and peer_of([first]) == peer:
            tasks.append(stream[5:])
    if not tasks and _last(store, f"peer:{peer}") < 0:
        raise UsageError(f"no events of peer {peer}: `a2a-ledger peers` lists them")
    return _choose(store, Scope(PACKED_PROFILE, "peer", peer, tuple(sorted(tasks))), before)


def _task_streams(store: Store) -> Iterator[str]:
    """Yield the streams of all tasks; of their names a page is held."""
    after = ""
    while names := store.streams("task:", after=after, limit=_NAMES):
        yield from names
        after = names[-1]


def _must_fit(scope: Scope) -> None:
    if len(scope.tasks) > _MOST_TASKS:
        raise BundleError(
            f"{scope} has {len(scope.tasks)} tasks, expected {_MOST_TASKS} at most, which one bundle can list; nothing "
            "was written",
            hint="export its contexts, or its tasks, each in a bundle of its own: `a2a-ledger tasks` names them",
        )


def _choose(store: Store, scope: Scope, before: int) -> Chosen:
    """Look through the events of all tasks of a scope, a page at a time.

    Raises:
        BundleError: these are more tasks than a bundle can list.
    """
    _must_fit(scope)
    chosen = Chosen(scope, store.record)
    numbers: set[int] = set()
    told = [(task, _read_task(store, task, chosen, numbers, before)) for task in scope.tasks]
    by_peer: dict[str, set[str]] = {}
    for task, peer in chosen.peers.items():
        by_peer.setdefault(peer, set()).add(task)
    whole = {scope.value} if scope.kind == "peer" else set[str]()
    for peer in whole:
        for stream in (f"peer:{peer}", f"findings:peer:{peer}"):
            _take_whole(store, stream, chosen, numbers, before)
    for peer in sorted(by_peer.keys() - whole - {""}):
        for record in _records(store, f"findings:peer:{peer}", before):
            if names_task(record, by_peer[peer]):
                numbers.add(record.n)
                for task, story in told:
                    if names_task(record, {task}):
                        story.refer(record)
    for _, story in told:
        others = story.elsewhere(store) if whole else story.fetches(store)
        numbers |= {record.n for record in others if record.n < before}
    chosen.keys = list(_records(store, "ledger", before))
    numbers |= {record.n for record in chosen.keys}
    chosen.ends["ledger"] = chosen.keys[-1].ver if chosen.keys else -1
    chosen.later = _later(store, chosen.ends)
    chosen.numbers = sorted(numbers)
    return chosen


def _read_task(store: Store, task: str, chosen: Chosen, numbers: set[int], before: int) -> Told:
    """Take all events of a task, and of the findings about it."""
    told = Told()
    for stream in (f"task:{task}", f"findings:{task}"):
        chosen.ends[stream] = -1
        for record in _records(store, stream, sys.maxsize):
            chosen.note_erasure(record)
            if record.n >= before:
                continue
            numbers.add(record.n)
            chosen.ends[stream] = record.ver
            if stream.startswith("task:"):
                told.take(store, record)
            else:
                told.refer(record)
    if chosen.ends[f"task:{task}"] < 0:
        raise no_task(task, before)
    chosen.peers[task] = told.peer
    return told


def _take_whole(store: Store, stream: str, chosen: Chosen, numbers: set[int], before: int) -> None:
    chosen.ends[stream] = -1
    for record in _records(store, stream, before):
        numbers.add(record.n)
        chosen.ends[stream] = record.ver


def _records(store: Store, stream: str, before: int, *, after: int = -1) -> Iterator[Record]:
    """Yield the records of a stream below a log index and behind a version, a page in memory at a time.

    Raises:
        DamagedError: one is missing.
    """
    ver = after
    while page := store.read_stream(stream, gt=ver, limit=_PAGE):
        must_be_whole(stream, page, first=ver + 1)
        yield from (record for record in page if record.n < before)
        ver = page[-1].ver


def _last(store: Store, stream: str) -> int:
    """Return the last version of a stream, -1 if it has none."""
    newest = store.read_stream(stream, limit=1, desc=True)
    return newest[0].ver if newest else -1


def _later(store: Store, ends: dict[str, int]) -> int:
    """Return how many events these streams have behind their shown ends."""
    return sum(_last(store, stream) - ver for stream, ver in ends.items() if stream != "ledger")


def _is_small(records: Iterable[Record]) -> bool:
    """Say whether the events of a task fit into a bundle in plain files."""
    files = octets = 0
    for record in records:
        files += 4 + 2 * sum(len(record.stored_parts(role) or ()) for role in record.blobs)
        octets += len(record.raw) + sum(ref.size for ref in record.blobs.values())
    return files <= _MOST_FILES and octets <= _MOST_OCTETS
