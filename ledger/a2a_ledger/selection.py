"""Which events tell the story of one task: its stream, its findings, and the card fetches that both rest on.

The replay of a task and its export read the same selection, so what a replay shows is what a bundle
holds. Of the peer's stream only card fetches are taken, those that an event of the task refers to
and those that fall into the task's time, since the rules about our own conduct look at what lies
between; the manifests that its decisions looked at; and the keys by which signed fetches among them
were judged. Of what we serve only cards are taken: those that the agent of the task served, or that a
proxy served in the place of the one whose contract it froze. Other tasks are never taken, even where a
finding about the peer names them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from a2a_ledger.divergence import RecordLog
from a2a_ledger.divergence.reading import CARD_FETCHED, members, ref
from a2a_ledger.errors import DamagedError, UsageError
from a2a_ledger.store.damage import must_be_whole
from a2a_ledger.verify.references import references
from a2a_ledger.verify.reread import CARD_SERVED, same_time
from a2a_ledger.verify.scope import peer_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from collections.abc import Set as AbstractSet

    from a2a_ledger.codec import Record
    from a2a_ledger.events import Json
    from a2a_ledger.store import Store

_FIRST_PAGE, _PAGE = 8, 500
_MOST_FETCHES = 2000
_MOST_SERVED = 20_000  # events of what we serve that are looked through before a task: anybody can make us serve
_MOST_DURING = 10_000  # of those in a task's time, the first
SERVED_STREAM = "peer:self"
_CARD_EVENTS = frozenset({"card.fetched.v1", "card.fetch_failed.v1"})
_FREEZES = frozenset({"contract.captured.v1", "contract.reconstructed.v1"})


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
        DamagedError: an event of it is missing, or was changed.
    """
    events = _whole(store, f"task:{task}", before)
    if not events:
        raise no_task(task, before)
    findings = _whole(store, f"findings:{task}", before)
    told = Told()
    for record in events:
        told.take(store, record)
    about_peer = _whole(store, f"findings:peer:{told.peer}", before) if told.peer else []
    peer_findings = [record for record in about_peer if names_task(record, {task})]
    for record in (*findings, *peer_findings):
        told.refer(record)
    return TaskStory(
        task=task,
        peer=told.peer,
        events=events,
        findings=findings,
        fetches=_in_order(_before(told.fetches(store), before)),
        peer_findings=peer_findings,
        keys=_whole(store, "ledger", before),
    )


def no_task(task: str, before: int | None = None) -> UsageError:
    """Return the error that there is no such task, or none that a head of this size covers."""
    where = "in this ledger" if before is None else f"among the first {before} events, which the signed head covers"
    return UsageError(f"no task {task} {where}; `a2a-ledger tasks` lists them")


class Told:
    """What the events of one task tell of others that belong to its story; none of them is held.

    Attributes:
        peer: the peer that they name first, "" if none does.
    """

    def __init__(self) -> None:
        self.peer = ""
        self._first = self._last = -1
        self._refers: dict[tuple[str, int], None] = {}
        self._serves = False
        self._frozen: Record | None = None

    def take(self, store: Store, record: Record) -> None:
        """Read an event of the task, in their order."""
        self.peer = self.peer or peer_of([record])
        self._first = record.n if self._first < 0 else self._first
        self._last = record.n
        self._refers |= dict.fromkeys((answer.stream, answer.ver) for answer in _stood(store, record))
        for stream, ver in _peer_references(record):
            self._refers[stream, ver] = None
            self._serves |= stream == SERVED_STREAM
        if self._frozen is None and record.type in _FREEZES:
            self._frozen = record

    def refer(self, record: Record) -> None:
        """Read a finding."""
        self._refers |= dict.fromkeys(_peer_references(record))

    def fetches(self, store: Store) -> list[Record]:
        """Return the card fetches and other events of peers that the task rests on, and those in its time."""
        found = _referred(store, self._refers)
        between = _between(store, self.peer, found, self._first, self._last)
        beside = [*self._served(store), *between]
        found += [*beside, *_referred(store, _references_of(beside))]
        return found + _card_keys(store, found)

    def elsewhere(self, store: Store) -> list[Record]:
        """Return those of them that do not lie in the stream of the task's peer, for who shows all of that."""
        found = _referred(store, [place for place in self._refers if place[0] != f"peer:{self.peer}"])
        served = self._served(store)
        theirs = [place for place in _references_of(served) if place[0] != f"peer:{self.peer}"]
        return [*found, *served, *_referred(store, theirs)]

    def _served(self, store: Store) -> list[Record]:
        """Return the cards that we served, as the agent of the task or as a proxy between the two."""
        if self._serves:
            return _served(store, self._first, self._last)
        return [] if self._frozen is None else _served_instead(store, self._frozen)


def _whole(store: Store, stream: str, before: int | None) -> list[Record]:
    """Return a stream up to a log index; none of it may be missing."""
    records = store.read_stream(stream)
    must_be_whole(stream, records)
    return _before(records, before)


def _before(records: Iterable[Record], stop: int | None) -> list[Record]:
    return [record for record in records if stop is None or record.n < stop]


def _in_order(records: Iterable[Record]) -> list[Record]:
    found = {record.n: record for record in records}
    return [found[n] for n in sorted(found)]


def names_task(record: Record, tasks: AbstractSet[str]) -> bool:
    """Say whether a finding about a peer names one of these tasks."""
    listed = record.data.get("tasks")
    return record.data.get("task") in tasks or (isinstance(listed, list) and not tasks.isdisjoint(map(str, listed)))


def _references_of(records: Iterable[Record]) -> list[tuple[str, int]]:
    return [place for record in records for place in _peer_references(record)]


def _referred(store: Store, places: Iterable[tuple[str, int]]) -> list[Record]:
    """Return the events of peers' streams at these places, and those that they refer to in turn."""
    found: dict[tuple[str, int], Record] = {}
    todo = list(places)
    while todo:
        stream, ver = todo.pop()
        if (stream, ver) not in found:
            for record in store.read_stream(stream, gt=ver - 1, limit=1):
                if record.ver != ver:
                    raise DamagedError(
                        f"version {ver} of {stream}, which an event refers to, is missing: it was removed"
                    )
                found[stream, ver] = record
                todo += _peer_references(record)
    return list(found.values())


def _peer_references(record: Record) -> Iterator[tuple[str, int]]:
    for stream, ver, _ in references(record.data):
        if stream.startswith("peer:"):
            yield stream, ver


def _stood(store: Store, decision: Record) -> list[Record]:
    """Return the newest answer that said that the card of a decision stands: of the time that its inputs state.

    Looked for backwards, as far as the fetch that the client was built from: a client may live for years.
    """
    card, stated = ref(decision.data, "card"), members(members(decision.data.get("inputs")).get("card"))
    at = stated.get("fetched_at")
    if decision.type != "freshness.decided.v1" or card is None or not isinstance(at, str):
        return []
    for record in _backwards(store, card["stream"], decision.n, down_to=card["ver"]):
        says_it = record.type == CARD_FETCHED and record.data.get("contract_hash") == stated.get("contract")
        if says_it and same_time(at, record.at):
            return [record]
    return []


def _backwards(store: Store, stream: str, before: int, *, down_to: int = 0) -> Iterator[Record]:
    """Yield the records of a stream below a log index, the newest first, down to a version and with it.

    Pages grow, since the first few are mostly all that is asked for.
    """
    ver, size = store.version_before(stream, before) + 1, _FIRST_PAGE
    while page := store.read_stream(stream, gt=down_to - 1, lt=ver, limit=size, desc=True):
        yield from page
        ver, size = page[-1].ver, min(2 * size, _PAGE)


def _served(store: Store, first: int, last: int) -> list[Record]:
    """Return the cards that we served as the agent of a task: while it ran, and before it the newest of each contract.

    They show whether the client's contract was ever ours, and whether it had changed when the task began.
    """
    begins, ends = store.version_before(SERVED_STREAM, first), store.version_before(SERVED_STREAM, last) + 1
    during = store.read_stream(SERVED_STREAM, gt=begins, lt=ends, limit=_MOST_DURING)
    newest: dict[tuple[Json, ...], Record] = {}
    for record in islice(_backwards(store, SERVED_STREAM, first), _MOST_SERVED):
        newest.setdefault((record.data.get("url"), record.data.get("contract_hash")), record)
    return [record for record in (*newest.values(), *during) if record.type == CARD_SERVED]


def _served_instead(store: Store, frozen: Record) -> list[Record]:
    """Return the cards that we, as a proxy, made of the card whose contract a task froze, and served before that.

    Of each contract at each place the newest. It need not name the very fetch that the capture names: octets that
    left before are not recorded as served again.
    """
    own = _contract(frozen)
    made_of_it: dict[tuple[str, int], bool] = {}
    found: dict[tuple[Json, ...], Record] = {}
    for record in islice(_backwards(store, SERVED_STREAM, frozen.n), _MOST_SERVED):
        fetch = ref(record.data, "fetch")
        if fetch is None or fetch["stream"] != f"peer:{frozen.data.get('peer')}":
            continue
        place = (fetch["stream"], fetch["ver"])
        if place not in made_of_it:
            made_of_it[place] = any(_contract(referred) == own for referred in _referred(store, [place])[:1])
        if made_of_it[place]:
            found.setdefault((record.data.get("url"), record.data.get("contract_hash")), record)
    return list(found.values())


def _contract(record: Record) -> tuple[Json, Json]:
    return record.data.get("contract_hash"), record.data.get("form")


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
