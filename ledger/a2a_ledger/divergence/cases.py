"""Keeps the cases that are needed, within bounds, and judges records as they come.

Cases are folds over the log and are rebuilt from its streams, up to the record that is judged, when
they are not at hand: so the findings are the same whether the log is read in one go, in pages of
one, or from the middle.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TypeVar

from a2a_ledger.divergence.finding import RULE_SET, RULE_SETS
from a2a_ledger.divergence.peer_case import PEER_EVENTS, PeerCase
from a2a_ledger.divergence.reading import text
from a2a_ledger.divergence.rules import judge
from a2a_ledger.divergence.task_case import TaskCase
from a2a_ledger.errors import FormatError, StoreError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from a2a_ledger.codec import Record
    from a2a_ledger.contract import Profile
    from a2a_ledger.divergence.finding import Finding
    from a2a_ledger.events import Ref

_log = logging.getLogger(__name__)

TASKS = 512
PEERS = 128
PAGE = 500

_Case = TypeVar("_Case")


class CaseLog(Protocol):
    """What the cases are rebuilt from; the store is one, and so is `records.RecordLog`."""

    def read_stream(
        self, stream: str, *, gt: int | None = None, limit: int | None = None, desc: bool = False
    ) -> list[Record]:
        """Return the records of one stream, by version."""
        ...

    def tagged(self, tag: str, *, limit: int | None = None, desc: bool = False) -> list[Record]:
        """Return the records that carry a lookup tag, by log index."""
        ...


class Cases:
    """The cases at hand, the least recently used ones dropped.

    A rule that fails on a record leaves this one record unjudged and said, and is a defect of ours:
    nobody may stop the verifier by what he sends.
    """

    def __init__(  # noqa: PLR0913 - what is read, what it is judged by, and the bounds
        self,
        log: CaseLog,
        profile: Profile,
        *,
        tasks: int = TASKS,
        peers: int = PEERS,
        on_failure: Callable[[Record, Exception], None] | None = None,
        rule_set: str = RULE_SET,
    ) -> None:
        """Begin with nothing.

        Raises:
            UsageError: `rule_set` is no name of `finding.RULE_SETS`.
        """
        if rule_set not in RULE_SETS:
            raise UsageError(f"rule set {rule_set[:80]!a} is not known here: choose one of {', '.join(RULE_SETS)}")
        self._log = log
        self._profile = profile
        self._rule_set = rule_set
        self._tasks: OrderedDict[str, TaskCase] = OrderedDict()
        self._peers: OrderedDict[str, PeerCase] = OrderedDict()
        self._most_tasks = tasks
        self._most_peers = peers
        self._on_failure = on_failure or _say
        self._run = 0
        """From this log index on, every record has been handed in: a case as young as that is up to date."""
        self._next = 0

    def judge(self, record: Record) -> list[Finding]:
        """Judge one record and take it in.

        Records come in order of the log. Gaps are filled from the log: a reader of every record
        never causes a second read, the guard, which sees only its own exchanges, does.
        """
        if record.n != self._next:
            self._run = record.n
        self._next = record.n + 1
        if record.stream.startswith("task:"):
            return self._of_task(record)
        if record.stream.startswith("peer:") and record.type in PEER_EVENTS:
            peer = self._peer(record.stream.removeprefix("peer:"), record.n)
            findings = self._judge(record, None, peer)
            self._take_in(record, peer, findings)
            return findings
        return []

    def lookup(self, ref: Ref) -> Record | None:
        """Return the record that a reference names, if the log has exactly that one."""
        found = self._log.read_stream(ref["stream"], gt=ref["ver"] - 1, limit=1)
        return found[0] if found and found[0].c == ref["c"] else None

    def earlier(self, stream: str, stop: int) -> Iterator[Record]:
        """Read what a stream holds before log index `stop`."""
        ver = -1
        while page := self._log.read_stream(stream, gt=ver, limit=PAGE):
            for record in page:
                if record.n >= stop:
                    return
                yield record
            ver = page[-1].ver

    def _of_task(self, record: Record) -> list[Finding]:
        task = self._task(record.stream.removeprefix("task:"), record.n, record.ver)
        peer_id = task.peer or text(record.data, "peer")
        peer = None if not peer_id else self._peer(peer_id, record.n)
        findings = self._judge(record, task, peer)
        self._take_into(record, task, findings)
        if peer is not None and record.type in PEER_EVENTS:
            self._take_in(record, peer, findings)
        return findings

    def _judge(self, record: Record, task: TaskCase | None, peer: PeerCase | None) -> list[Finding]:
        found: list[Finding] = []
        with self._passing_over(record):
            found += judge(record, task, peer, self._profile, self.lookup, earlier=self.earlier)
        return found

    def _take_in(self, record: Record, peer: PeerCase, findings: list[Finding]) -> None:
        for finding in findings:
            peer.report(finding.rule, finding.subject)
        with self._passing_over(record):
            peer.apply(record, self.lookup)

    def _take_into(self, record: Record, task: TaskCase, findings: list[Finding]) -> None:
        with self._passing_over(record):
            task.apply(record, findings)

    @contextmanager
    def _passing_over(self, record: Record) -> Generator[None]:
        """Go on behind a failure that what stands in one event has caused: nobody may silence the verifier by it."""
        try:
            yield
        except StoreError:
            raise  # the log itself cannot be read: no defect of a rule
        except Exception as error:  # noqa: BLE001 - any defect of ours that a peer can reach
            self._on_failure(record, error)

    # ---- the cases before log index `stop`

    def _task(self, task: str, stop: int, ver: int) -> TaskCase:
        case = self._tasks.pop(task, None)
        if case is None or case.upto >= stop:
            case = TaskCase(task, rule_set=self._rule_set)
        if case.ver < ver - 1:
            while page := self._log.read_stream(f"task:{task}", gt=case.ver, limit=PAGE):
                earlier = [record for record in page if record.n < stop]
                for record in earlier:
                    self._take_into(record, case, self._judge(record, case, None))
                if len(earlier) < PAGE:
                    break
        _keep(self._tasks, task, case, self._most_tasks)
        return case

    def _peer(self, peer: str, stop: int) -> PeerCase:
        case = self._peers.pop(peer, None)
        if case is None or case.upto >= stop:
            case = PeerCase(peer, rule_set=self._rule_set)
        if case.upto < self._run:
            for record in self._peer_events(case, stop):
                self._take_in(record, case, self._judge(record, None, case))
        _keep(self._peers, peer, case, self._most_peers)
        return case

    def _peer_events(self, case: PeerCase, stop: int) -> list[Record]:
        """Return the peer's fetches and the captures of its tasks behind the case, in order of the log."""
        found: list[Record] = []
        ver = case.ver
        while page := self._log.read_stream(f"peer:{case.peer}", gt=ver, limit=PAGE):
            found += [record for record in page if record.n < stop and record.type in PEER_EVENTS]
            ver = page[-1].ver
            if page[-1].n >= stop or len(page) < PAGE:
                break
        limit = PAGE
        while True:
            newest = self._log.tagged(f"sent:{case.peer}", limit=limit, desc=True)
            if len(newest) < limit or newest[-1].n <= case.upto:
                break
            limit *= 4
        found += [record for record in newest if case.upto < record.n < stop]
        return sorted(found, key=lambda record: record.n)


def _say(record: Record, error: Exception) -> None:
    said = f"{error}; run `a2a-ledger audit`" if isinstance(error, FormatError) else f"{type(error).__name__}: {error}"
    _log.error("event %d could not be judged: %s", record.n, said)


def _keep(held: OrderedDict[str, _Case], key: str, case: _Case, most: int) -> None:
    held[key] = case
    if len(held) > most:
        held.popitem(last=False)
