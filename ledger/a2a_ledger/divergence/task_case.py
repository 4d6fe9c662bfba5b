"""One task so far: what was frozen, asked and answered, folded event by event in the order of its stream.

Everything is bounded: of long tasks the newest requests and answers are remembered, the same ones
wherever the fold runs, so that a finding never depends on how far somebody had read.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from a2a_ledger.divergence.finding import Evidence, evidence_of
from a2a_ledger.divergence.reading import (
    ACTS,
    ADOPTED,
    BOUND,
    CAPTURED,
    MESSAGE,
    RECONSTRUCTED,
    REDIRECTS,
    Frozen,
    asked_history,
    content,
    contents_of,
    frozen_of,
    is_inbound,
    is_request,
    leg_of,
    number,
    ref,
    schemes_carried,
    text,
    texts,
    went_well,
)
from a2a_ledger.divergence.spoken import Spoken
from a2a_ledger.wire import SENDS, TERMINAL

if TYPE_CHECKING:
    from a2a_ledger.codec import Record
    from a2a_ledger.divergence.finding import Finding
    from a2a_ledger.wire import Contents

SERVER = "server"
"""Side of a message that we recorded as the agent: what the rules hold against a peer, they never hold against us."""

REMEMBERED = 128
"""Requests, answers and reports of one task that are remembered, newest first."""

_K = TypeVar("_K")
_V = TypeVar("_V")


@dataclass(slots=True)
class Asked:
    """A request of ours, and the ids that its answers settled on."""

    evidence: Evidence
    method: str | None
    task_id: str | None
    context_id: str | None
    version: str | None
    credential: tuple[str, ...]
    message_id: str | None = None
    history_length: int | None = None
    answered_task: str | None = None
    answered_context: str | None = None
    ended: Ended | None = None
    """Where its stream ended, by the peer's word."""


class Said(NamedTuple):
    """Something that the peer said, and the request that it answers, by its commitment."""

    evidence: Evidence
    value: str
    answers: str | None


class Ended(NamedTuple):
    """The event by which a stream ended, and the state that it left the task in."""

    evidence: Evidence
    state: str | None


@dataclass(slots=True)
class TaskCase:
    """The fold over one task's stream."""

    task: str
    peer: str = ""
    ver: int = -1
    upto: int = -1
    """Log index of the last event that was taken in."""
    adopted: bool = False
    imported: bool = False
    frozen: Frozen | None = None
    first_answer: Evidence | None = None
    terminal: Said | None = None
    acknowledged: Said | None = None
    last_answer: Evidence | None = None
    version: str | None = None
    """Protocol version that the first exchange decided on, where the frozen interface states none."""
    asked: dict[str, Asked] = field(default_factory=dict[str, Asked])
    contexts: dict[str, str] = field(default_factory=dict[str, str])
    redirect: str | None = None
    """Where the peer's last answer sent us."""
    worked: set[str] = field(default_factory=set[str])
    """Methods that the peer has answered without an error."""
    bodies: dict[str, None] = field(default_factory=dict[str, None])
    reported: dict[tuple[str, str, str], None] = field(default_factory=dict[tuple[str, str, str], None])
    sent: Evidence | None = None
    """The send that opened the task."""
    last_act: Evidence | None = None
    """Our newest send or cancel."""
    spoken: Spoken = field(default_factory=Spoken)
    extensions: dict[str, None] = field(default_factory=dict[str, None])
    """What our sends so far asked for, in a header or in the message."""
    _read: tuple[Record, Contents] | None = None
    """The record that was read last: it is judged, and then taken in."""

    def contents(self, record: Record) -> Contents:
        """Return what a message record says, read once."""
        if self._read is None or self._read[0] is not record:
            asked = self.request_of(record) if record.data.get("leg") == "stream-event" else None
            self._read = (record, contents_of(record, whole=asked is not None and asked.ended is not None))
        return self._read[1]

    def request_of(self, record: Record) -> Asked | None:
        """Return the remembered request that this answers."""
        answers = ref(record.data, "answers")
        return None if answers is None else self.asked.get(answers["c"])

    def is_redelivery(self, record: Record) -> bool:
        """Say whether the peer has said exactly these bytes before, on this task."""
        return _digest(record) in self.bodies

    def precedes(self, record: Record, said: Said) -> bool:
        """Say whether this answers a request from before `said`, in another exchange: it contradicts nothing."""
        answers = ref(record.data, "answers")
        if answers is None or answers["stream"] != record.stream or answers["c"] == said.answers:
            return False
        return answers["ver"] < said.evidence.ref["ver"]

    def is_new(self, finding: Finding) -> bool:
        """Say whether this is to be recorded: contract findings at each message, all others once a subject."""
        if finding.rejects and finding.rule != "interface-drift":
            return True
        return (finding.rule, finding.certainty, finding.subject) not in self.reported

    def apply(self, record: Record, findings: list[Finding]) -> None:
        """Take in the next event of the stream, and what the rules said about it."""
        self.ver, self.upto = record.ver, record.n
        for finding in findings:
            _remember(self.reported, (finding.rule, finding.certainty, finding.subject), None)
        match record.type:
            case "message.recorded.v1":
                self._message(record)
            case "contract.captured.v1" | "contract.reconstructed.v1":
                if self.frozen is None:
                    self.frozen = frozen_of(record)
                    self.peer = self.frozen.peer
            case "task.bound.v1":
                self._bound(record)
            case "task.adopted.v1":
                self.adopted = True
                self.peer = self.peer or text(record.data, "peer") or ""
            case _:
                pass

    def _bound(self, record: Record) -> None:
        task_id, context_id = text(record.data, "task_id"), text(record.data, "context_id")
        if task_id is not None and context_id is not None:
            _remember(self.contexts, task_id, context_id, keep_first=True)

    def _message(self, record: Record) -> None:
        if record.data.get("side") == SERVER:
            return
        self.peer = self.peer or text(record.data, "peer") or ""
        self.imported = self.imported or record.how == "import"
        if is_request(record):
            self._request(record)
        elif is_inbound(record):
            self._answer(record)

    def _request(self, record: Record) -> None:
        data = record.data
        evidence = evidence_of(record)
        said = self.contents(record)
        self.spoken.request(evidence, said)
        if text(data, "method") in SENDS:
            for uri in carried(record, said):
                _remember(self.extensions, uri, None)
        if text(data, "method") in ACTS:
            self.last_act = evidence
            self.sent = self.sent or evidence
        self.version = self.version or text(data, "wire_version")
        asked = Asked(
            evidence=evidence,
            method=text(data, "method"),
            task_id=text(data, "task_id"),
            context_id=text(data, "context_id"),
            version=text(data, "wire_version"),
            credential=schemes_carried(record),
            message_id=text(data, "message_id"),
            history_length=asked_history(record, said),
        )
        _remember(self.asked, record.ref["c"], asked)

    def _answer(self, record: Record) -> None:
        data = record.data
        evidence = evidence_of(record)
        asked = self.request_of(record)
        answers = ref(data, "answers")
        answers_c = None if answers is None else answers["c"]
        self.last_answer = evidence
        said = self.contents(record)
        self.redirect = leg_of(record).redirect if number(data, "status") in REDIRECTS else None
        self.version = self.version or text(data, "wire_version")
        if went_well(record):
            self.first_answer = self.first_answer or evidence
            if asked is not None:
                if asked.method is not None:
                    self.worked.add(asked.method)
                self.spoken.answered(asked.message_id, record.ver)
        task_id, context_id = text(data, "task_id"), text(data, "context_id")
        if asked is not None and answers_c is not None:
            _remember(self.asked, answers_c, asked)  # a long stream's request stays among the newest
            asked.answered_task = asked.answered_task or task_id
            asked.answered_context = asked.answered_context or context_id
        if task_id is not None and context_id is not None:
            _remember(self.contexts, task_id, context_id, keep_first=True)
        state = text(data, "state_read")
        if state is not None:
            _remember(self.bodies, _digest(record), None)
            if state in TERMINAL and self.terminal is None:
                self.terminal = Said(evidence, state, answers_c)
        if self.acknowledged is None and self.acknowledges(record):
            self.acknowledged = Said(evidence, "pin", answers_c)
        self.spoken.answer(record, evidence, said, stale=bool(said.history) and self.is_stale(record))
        if asked is not None and asked.ended is None and self._ends(record, said):
            asked.ended = Ended(evidence, state)

    def is_stale(self, record: Record) -> bool:
        """Say whether this answers a request from before the history that the peer has shown of its task."""
        shown = self.spoken.histories.get(text(record.data, "task_id") or "")
        return shown is not None and self.precedes(record, Said(shown.evidence, "", shown.answers))

    def _ends(self, record: Record, said: Contents) -> bool:
        """Say whether a stream ends here: by `final` up to 0.3, by a terminal state from 1.0 on."""
        if record.data.get("leg") != "stream-event":
            return False
        agreed = (self.frozen.interface["version"] if self.frozen else None) or self.version or ""
        return said.final or (text(record.data, "state_read") in TERMINAL and not agreed.startswith("0"))

    def acknowledges(self, record: Record) -> bool:
        """Say whether a Task of the peer carries our pin in its own metadata."""
        pin = record.data.get("pin")
        return (
            isinstance(pin, dict)
            and self.frozen is not None
            and self.frozen.contract_hash is not None
            and pin.get("contractHash") == self.frozen.contract_hash
        )


def carried(record: Record, said: Contents) -> tuple[str, ...]:
    """Return the extensions that a send asks for: by header, or in its message."""
    return (*texts(record.data.get("extensions")), *said.extensions)


TASK_EVENTS = frozenset({ADOPTED, BOUND, CAPTURED, MESSAGE, RECONSTRUCTED})
"""The events that change a task's case."""


def _digest(record: Record) -> str:
    return hashlib.sha256(content(record, "body") or b"").hexdigest()


def _remember(held: dict[_K, _V], key: _K, value: _V, *, keep_first: bool = False) -> None:
    """Keep an entry, and of all entries the newest ones."""
    if key in held:
        if keep_first:
            return
        del held[key]
    held[key] = value
    if len(held) > REMEMBERED:
        del held[next(iter(held))]
