"""One task so far: what was frozen, asked and answered, folded event by event in the order of its stream.

Everything is bounded: of long tasks the newest requests and answers are remembered, the same ones
wherever the fold runs, so that a finding never depends on how far somebody had read.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from a2a_ledger.divergence.cut import cut_ids, hides_history_length, location_is_cut
from a2a_ledger.divergence.exchanges import Asked, Ended, Said, remember
from a2a_ledger.divergence.finding import RULE_SET, Evidence, evidence_of
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
    contents_of,
    frozen_of,
    is_inbound,
    is_of_another,
    is_request,
    leg_of,
    message_body,
    number,
    ref,
    schemes_carried,
    text,
    texts,
    went_well,
)
from a2a_ledger.divergence.readings import READINGS
from a2a_ledger.divergence.told import LIVE, Told, source_in, source_of
from a2a_ledger.wire import SENDS, TERMINAL, payload_digest

if TYPE_CHECKING:
    from a2a_ledger.codec import Record
    from a2a_ledger.divergence.finding import Finding
    from a2a_ledger.divergence.readings import Readings
    from a2a_ledger.wire import Contents

SERVER = "server"
"""Side of a message that we recorded as the agent: what the rules hold against a peer, they never hold against us."""


@dataclass(slots=True)
class TaskCase:
    """The fold over one task's stream."""

    task: str
    rule_set: str = RULE_SET
    peer: str = ""
    ver: int = -1
    upto: int = -1
    """Log index of the last event that was taken in."""
    adopted: bool = False
    imported: bool = False
    frozen: Frozen | None = None
    asked: dict[str, Asked] = field(default_factory=dict[str, Asked])
    contexts: dict[str, str] = field(default_factory=dict[str, str])
    peer_tasks: dict[str, None] = field(default_factory=dict[str, None])
    """Tasks of the peer that this one was bound to, or that the peer's answers named."""
    cut_ids: dict[str, None] = field(default_factory=dict[str, None])
    """Those of its ids, ours and the peer's, that redaction cut something out of."""
    told: dict[str, Told] = field(default_factory=dict[str, "Told"])
    """By source: live recording, and each file. No order between two of them is known."""
    reported: dict[tuple[str, str, str], str] = field(default_factory=dict[tuple[str, str, str], str])
    """Rule, certainty and subject of what was found, with the basis of the newest."""
    sent: Evidence | None = None
    """The send that opened the task."""
    _read: tuple[Record, Contents] | None = None
    """The record that is being judged, and then taken in: read once for both."""

    @property
    def readings(self) -> Readings:
        """How the rule set reads."""
        return READINGS[self.rule_set]

    def source_of(self, record: Record) -> str:
        """Name the source within whose order a record stands."""
        return source_of(record) if self.readings.by_source else LIVE

    def told_by(self, record: Record) -> Told:
        """Return what the source of a record has told before it."""
        return self.told.get(self.source_of(record)) or Told()

    def told_by_others(self, record: Record) -> list[Told]:
        """Return what all other sources have told: it may be from before this record, or from behind it."""
        own = self.source_of(record)
        return [told for source, told in self.told.items() if source != own]

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

    def terminal(self, record: Record, told: Told) -> Said | None:
        """Return the first terminal state of the peer's task that this speaks of, or of any where it names none."""
        if not told.terminals:
            return None
        named = self._task_of(record)
        return next(iter(told.terminals.values()), None) if named is None else told.terminals.get(named)

    def acknowledged(self, record: Record, told: Told) -> Said | None:
        """Return where the peer's task that this speaks of acknowledged the pin."""
        return told.pinned.get(self._task_of(record) or "") if told.pinned else None

    def _task_of(self, record: Record) -> str | None:
        """Return the id that the peer's task goes by, its own or that of the request; None: nobody names one."""
        if not self.readings.by_peer_task:
            return ""
        asked = self.request_of(record)
        named = text(record.data, "task_id")
        return named or (None if asked is None else asked.task_id or asked.answered_task)

    def may_be_late(self, record: Record) -> bool:
        """Say whether this may tell of a time before what is known: a push, or a stream that was taken up again."""
        if record.data.get("leg") == "push":
            return True
        asked = self.request_of(record)
        streamed = record.data.get("leg") == "stream-event"
        return self.readings.told_late and streamed and asked is not None and asked.again

    def is_redelivery(self, record: Record) -> bool:
        """Say whether the peer has said exactly this before, on this task, and need not say it anew.

        Who asks for a task's state is told how it stands now: an answer to that is no redelivery, however equal.
        """
        if self.readings.by_payload and record.data.get("leg") == "response":
            asked = self.request_of(record)
            if asked is None or not asked.again:
                return False
        return self._digest(record) in self.told_by(record).sayings

    def _digest(self, record: Record) -> str:
        body = message_body(record) or b""
        if not self.readings.by_payload:
            return hashlib.sha256(body).hexdigest()
        return payload_digest(body, framed=record.data.get("leg") == "stream-event")

    def precedes(self, record: Record, said: Said) -> bool:
        """Say whether this answers a request from before `said`, in another exchange: it contradicts nothing."""
        answers = ref(record.data, "answers")
        if answers is None or answers["stream"] != record.stream or answers["c"] == said.answers:
            return False
        return answers["ver"] < said.evidence.ref["ver"]

    def is_new(self, finding: Finding) -> bool:
        """Say whether this is to be recorded: certain contract findings at each message, all others once a subject.

        What was found live is not found once more in a file: the message in it may be a copy of that one.
        """
        before = self.reported.get((finding.rule, finding.certainty, finding.subject))
        refused = finding.rejects and self.readings.heeds_cuts  # each time, or the second redirect would be followed
        if refused or (finding.is_certain_breach and finding.rule != "interface-drift"):
            return not (self.readings.by_source and finding.basis == "import" and before == "live")
        return before is None

    def apply(self, record: Record, findings: list[Finding]) -> None:
        """Take in the next event of the stream, and what the rules said about it."""
        self.ver, self.upto = record.ver, record.n
        for finding in findings:
            remember(self.reported, (finding.rule, finding.certainty, finding.subject), finding.basis)
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
        self._read = None  # a case outlives the bodies of its records

    def _bound(self, record: Record) -> None:
        task_id, context_id = text(record.data, "task_id"), text(record.data, "context_id")
        if task_id is not None:
            remember(self.peer_tasks, task_id, None, keep_first=True)
        if task_id is not None and context_id is not None:
            remember(self.contexts, task_id, context_id, keep_first=True)

    def _message(self, record: Record) -> None:
        if record.data.get("side") == SERVER:
            return
        self.peer = self.peer or text(record.data, "peer") or ""
        self.imported = self.imported or record.how == "import"
        for name in cut_ids(record):
            remember(self.cut_ids, name, None)
        if is_request(record):
            self._request(record)
        elif is_inbound(record):
            self._answer(record)

    def _request(self, record: Record) -> None:
        data = record.data
        evidence = evidence_of(record)
        said = self.contents(record)
        source = self.source_of(record)
        told = source_in(self.told, source)
        told.spoken.request(evidence, said)
        if text(data, "method") in SENDS:
            for uri in carried(record, said):
                remember(told.extensions, uri, None)
        if text(data, "method") in ACTS:
            told.last_act = evidence
            told.sent = told.sent or evidence
            self.sent = self.sent or evidence
        told.version = told.version or text(data, "wire_version")
        method = text(data, "method")
        history_length = asked_history(record, said)
        if history_length is None and hides_history_length(record):
            history_length = 0  # what is not told proves nothing of what the answer lacks
        asked = Asked(
            evidence=evidence,
            method=method,
            task_id=text(data, "task_id"),
            context_id=text(data, "context_id"),
            version=text(data, "wire_version"),
            credential=schemes_carried(record),
            message_id=text(data, "message_id"),
            message=None if said.message is None else said.message.digest,
            history_length=history_length,
            source=source,
        )
        asked.again = method == "SubscribeToTask" or (
            asked.message_id is not None and any(asked.resends(one) for one in self.asked.values())
        )
        remember(self.asked, record.ref["c"], asked)

    def _answer(self, record: Record) -> None:
        data = record.data
        evidence = evidence_of(record)
        asked = self.request_of(record)
        answers = ref(data, "answers")
        answers_c = None if answers is None else answers["c"]
        told = source_in(self.told, self.source_of(record))
        told.last_answer = evidence
        said = self.contents(record)
        redirects = number(data, "status") in REDIRECTS
        told.redirect = leg_of(record).redirect if redirects else None
        told.redirect_cut = redirects and location_is_cut(record)
        told.version = told.version or text(data, "wire_version")
        if went_well(record):
            told.first_answer = told.first_answer or evidence
            if asked is not None:
                if asked.method is not None:
                    told.worked.add(asked.method)
                told.spoken.answered(asked.message_id, record.ver)
        task_id, context_id = text(data, "task_id"), text(data, "context_id")
        if asked is not None and answers_c is not None:
            remember(self.asked, answers_c, asked)  # a long stream's request stays among the newest
            self._settled(asked, task_id, context_id)
        if task_id is not None and context_id is not None:
            remember(self.contexts, task_id, context_id, keep_first=True)
        state = text(data, "state_read")
        if state is not None:
            remember(told.sayings, self._digest(record), None)
            if state in TERMINAL:
                self._first(told.terminals, record, Said(evidence, state, answers_c))
        if self.acknowledges(record):
            self._first(told.pinned, record, Said(evidence, state or "", answers_c))
        told.spoken.answer(record, evidence, said, stale=bool(said.history) and self.is_stale(record))
        if asked is not None and asked.ended is None and self._ends(record, said):
            asked.ended = Ended(evidence, state)

    def _settled(self, asked: Asked, task_id: str | None, context_id: str | None) -> None:
        """Take note of the ids that an exchange settles on."""
        if task_id is not None:
            remember(self.peer_tasks, task_id, None, keep_first=True)
        asked.answered_task = asked.answered_task or task_id
        asked.answered_context = asked.answered_context or context_id

    def _first(self, held: dict[str, Said], record: Record, said: Said) -> None:
        remember(held, self._task_of(record) or "", said, keep_first=True)

    def is_stale(self, record: Record) -> bool:
        """Say whether this answers a request from before the history that the peer has shown of its task."""
        shown = self.told_by(record).spoken.histories.get(text(record.data, "task_id") or "")
        return shown is not None and self.precedes(record, Said(shown.evidence, "", shown.answers))

    def _ends(self, record: Record, said: Contents) -> bool:
        """Say whether a stream ends here, by `final` up to 0.3, by a terminal state from 1.0 on, as it was asked."""
        if record.data.get("leg") != "stream-event":
            return False
        asked = self.request_of(record)
        agreed = (
            (asked and asked.version)
            or (self.frozen and self.frozen.interface["version"])
            or self.told_by(record).version
            or ""
        )
        return said.final or (text(record.data, "state_read") in TERMINAL and not agreed.startswith("0"))

    def acknowledges(self, record: Record) -> bool:
        """Say whether a Task of the peer carries our pin in its own metadata."""
        pin, frozen = record.data.get("pin"), self.frozen
        if not isinstance(pin, dict) or frozen is None or frozen.contract_hash is None:
            return False
        if self.readings.own_pins and (not frozen.pin or is_of_another(pin, frozen.pin)):
            return False
        return pin.get("contractHash") == frozen.contract_hash


def carried(record: Record, said: Contents) -> tuple[str, ...]:
    """Return the extensions that a send asks for: by header, or in its message."""
    return (*texts(record.data.get("extensions")), *said.extensions)


TASK_EVENTS = frozenset({ADOPTED, BOUND, CAPTURED, MESSAGE, RECONSTRUCTED})
"""The events that change a task's case."""
