"""Which events tell the story of one task: its stream, its findings, and the card fetches that both rest on.

The replay of a task and its export read the same selection, so what a replay shows is what a bundle
holds. Of the peer's stream only card fetches are taken, those that an event of the task refers to
and those that fall into the task's time, since the rules about our own conduct look at what lies
between; the manifests that its decisions looked at; and the keys by which signed fetches among them
were judged. Other tasks are never taken, even where a finding about the peer names them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from a2a_ledger.divergence import RecordLog
from a2a_ledger.divergence.reading import members, ref
from a2a_ledger.errors import UsageError
from a2a_ledger.verify.reread import CARD_SERVED, same_time
from a2a_ledger.verify.shown import references
from a2a_ledger.verify.stated import peer_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from a2a_ledger.codec import Record
    from a2a_ledger.events import Json
    from a2a_ledger.store import Store

_PAGE = 500
_MOST_FETCHES = 2000
SERVED_STREAM = "peer:self"
_CARD_EVENTS = frozenset({"card.fetched.v1", "card.fetch_failed.v1"})


@dataclass(frozen=True, slots=True)
class TaskStory:
    """The events of one task by where they come from, each list in log order.

    `keys` is the whole stream `ledger`: who leaves a retirement or a revocation out leaves a gap.
    """

    task: str
    peer: str
    events: list[Record]
    findings: list[Record]
    fetches: list[Record]
    peer_findings: list[Record]
    keys: list[Record]

    @property
    def all(self) -> list[Record]:
        """Return everything in log order, each event once."""
        parts = (self.events, self.findings, self.fetches, self.peer_findings, self.keys)
        found = {record.n: record for part in parts for record in part}
        return [found[n] for n in sorted(found)]

    def before(self, size: int) -> TaskStory:
        """Return the story as far as a tree of this size covers it."""
        return TaskStory(
            task=self.task,
            peer=self.peer,
            events=_before(self.events, size),
            findings=_before(self.findings, size),
            fetches=_before(self.fetches, size),
            peer_findings=_before(self.peer_findings, size),
            keys=_before(self.keys, size),
        )

    @property
    def log(self) -> RecordLog:
        """Return everything as a log that cases are folded from."""
        return RecordLog(self.all)


def story_of(store: Store, task: str, *, before: int | None = None) -> TaskStory:
    """Read the story of a task.

    Args:
        store: the ledger's store.
        task: the local task id, 40 hex digits.
        before: leave out what lies at this log index or behind it.

    Raises:
        UsageError: there is no such task.
    """
    events = _before(store.read_stream(f"task:{task}"), before)
    if not events:
        where = "in this ledger" if before is None else f"among the first {before} events, which the signed head covers"
        raise UsageError(f"no task {task} {where}; `a2a-ledger tasks` lists them")
    findings = _before(store.read_stream(f"findings:{task}"), before)
    peer = peer_of(events)
    about_peer = store.read_stream(f"findings:peer:{peer}") if peer else []
    peer_findings = [record for record in _before(about_peer, before) if _names(record, task)]
    fetches = _referred(store, [*events, *findings, *peer_findings])
    stood = [answer for record in events for answer in _stood(store, record)]
    fetches += [*stood, *_referred(store, stood)]
    fetches += _served(store, events)
    between = _between(store, peer, fetches, events[0].n, events[-1].n)
    fetches += [*between, *_referred(store, between)]
    fetches += _card_keys(store, fetches)
    return TaskStory(
        task=task,
        peer=peer,
        events=events,
        findings=findings,
        fetches=_in_order(_before(fetches, before)),
        peer_findings=peer_findings,
        keys=_before(store.read_stream("ledger"), before),
    )


def _before(records: Iterable[Record], stop: int | None) -> list[Record]:
    return [record for record in records if stop is None or record.n < stop]


def _in_order(records: Iterable[Record]) -> list[Record]:
    found = {record.n: record for record in records}
    return [found[n] for n in sorted(found)]


def _names(record: Record, task: str) -> bool:
    tasks = record.data.get("tasks")
    return record.data.get("task") == task or (isinstance(tasks, list) and task in tasks)


def _referred(store: Store, records: list[Record]) -> list[Record]:
    """Return the events of peers' streams that these refer to, and those that they refer to in turn."""
    found: dict[tuple[str, int], Record] = {}
    todo = list(records)
    while todo:
        for stream, ver in _peer_references(todo.pop()):
            if (stream, ver) not in found:
                for record in store.read_stream(stream, gt=ver - 1, limit=1):
                    found[stream, ver] = record
                    todo.append(record)
    return list(found.values())


def _peer_references(record: Record) -> Iterator[tuple[str, int]]:
    for stream, ver, _ in references(record.data):
        if stream.startswith("peer:"):
            yield stream, ver


def _stood(store: Store, decision: Record) -> list[Record]:
    """Return the newest answer that said that the card of a decision stands: of the time that its inputs state."""
    card = ref(decision.data, "card")
    at = members(members(decision.data.get("inputs")).get("card")).get("fetched_at")
    if decision.type != "freshness.decided.v1" or card is None or not isinstance(at, str):
        return []
    ver, seen = card["ver"] - 1, 0
    while (page := store.read_stream(card["stream"], gt=ver, limit=_PAGE)) and seen < _MOST_FETCHES:
        for record in page:
            if record.n > decision.n:
                return []
            if same_time(at, record.at) and record.type in _CARD_EVENTS:
                return [record]
        ver, seen = page[-1].ver, seen + len(page)
    return []


def _served(store: Store, events: list[Record]) -> list[Record]:
    """Return the cards that we served as the agent of a task: while it ran, and before it the newest of each contract.

    They show whether the client's contract was ever ours, and whether it had changed when the task began.
    """
    if not any(stream == SERVED_STREAM for record in events for stream, _ in _peer_references(record)):
        return []
    found: dict[tuple[Json, ...], Record] = {}
    newest = store.read_stream(SERVED_STREAM, limit=_MOST_FETCHES, desc=True)
    for record in newest:
        if events[0].n < record.n < events[-1].n:
            found[record.n,] = record
        elif record.n < events[0].n:
            found.setdefault((record.data.get("url"), record.data.get("contract_hash")), record)
    return [record for record in found.values() if record.type == CARD_SERVED]


def _card_keys(store: Store, fetches: list[Record]) -> list[Record]:
    """Return the key events that signed cards among these were judged by: those of their peers up to the last one."""
    signed: dict[str, int] = {}
    for record in fetches:
        status = members(record.data.get("signature")).get("status", "absent")
        peer = record.data.get("peer")
        if status != "absent" and isinstance(peer, str):
            signed[peer] = max(record.n, signed.get(peer, -1))
    return [record for peer, last in signed.items() for record in store.tagged(f"cardkey:{peer}") if record.n < last]


def _between(store: Store, peer: str, known: list[Record], first: int, last: int) -> list[Record]:
    """Return the peer's card fetches from the oldest known one on that fall into the task's time."""
    stream = f"peer:{peer}"
    fetches = (record.ver for record in known if record.stream == stream and record.type in _CARD_EVENTS)
    ver = min(fetches, default=None)
    found: list[Record] = []
    while ver is not None and len(found) < _MOST_FETCHES:
        page = store.read_stream(stream, gt=ver, limit=_PAGE)
        found += [record for record in page if first < record.n < last and record.type in _CARD_EVENTS]
        ver = page[-1].ver if len(page) == _PAGE and page[-1].n < last else None
    return found
