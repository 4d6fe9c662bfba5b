"""Replay: one task again, from its events alone, compared byte for byte with what was decided and signed then.

The story is told in log order with the recorded times: what was promised (card, frozen contract),
decided, sent, received and concluded. Then every freshness decision is made again from its recorded
inputs and every event judged again by the rules; the outcome is `same`, or the first difference, or
`undecided` where octets that were judged then cannot be read any more. A replay reads, and never writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from a2a_ledger.codec import later_holes
from a2a_ledger.divergence import RULE_SET, VERIFIER
from a2a_ledger.errors import LedgerError
from a2a_ledger.key_events import read_keys
from a2a_ledger.selection import story_of
from a2a_ledger.store.damage import must_open
from a2a_ledger.verify.gaps import Gaps
from a2a_ledger.verify.rerun import VIOLATION, Difference, Rerun
from a2a_ledger.verify.signed import open_finding

if TYPE_CHECKING:
    from a2a_ledger.codec import Record
    from a2a_ledger.events import Json, JsonObject
    from a2a_ledger.ledger import ContractLedger

Verdict: TypeAlias = Literal["same", "differs", "undecided"]

_BY_RECORD_ALONE = frozenset({"decision", "inputs"})
"""Differences that no missing octets can explain: a decision's inputs stand in its record."""


@dataclass(frozen=True, slots=True)
class Step:
    """One event of the story in a few words; `part` is promised, decided, sent, received or concluded."""

    n: int
    at: str
    part: str
    text: str

    def __str__(self) -> str:
        """Return one line."""
        return f"#{self.n} {self.at} {self.part:<9} {self.text}"


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """What a replay found.

    Attributes:
        task: the local task id.
        events: events of the task and of its findings.
        story: the events again, in words.
        decisions: decisions that were made again with the same outcome or another.
        violations: the recorded findings.
        differences: where the past and the replay part, in log order.
        notes: what could not be compared, and why.
        unread: blobs that are gone, or were cut after they were recorded: findings cannot be judged again.
        unjudged: events that a rule failed on, which is a defect of ours: what it would find nobody knows.
        rules: the rule set and the profile in few words.
    """

    task: str
    events: int
    story: tuple[Step, ...]
    decisions: int
    violations: tuple[Record, ...]
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]
    unread: tuple[str, ...]
    unjudged: tuple[int, ...]
    rules: str

    @property
    def verdict(self) -> Verdict:
        """Return `same` only where all of it could be read, and everything that could be compared is equal."""
        if self.differences:
            return "differs"
        return "undecided" if self.unread or self.unjudged else "same"

    @property
    def same(self) -> bool:
        """Say whether everything that could be compared is equal byte for byte, and all of it could be read."""
        return self.verdict == "same"

    def to_json(self) -> dict[str, Json]:
        """Return the shape of `replay --format json`."""
        first: Json = None
        if self.differences:
            n, what, recorded, now = self.differences[0]
            first = {"position": n, "what": what, "recorded": recorded, "now": now}
        return {
            "task": self.task,
            "events": self.events,
            "verdict": self.verdict,
            "first_difference": first,
            "violations": [_violation(record) for record in self.violations],
        }

    def __str__(self) -> str:
        """Tell the story and the outcome."""
        lines = [str(step) for step in self.story]
        decisions = _count(self.decisions, "decision")
        violations = _count(len(self.violations), "violation")
        if self.differences:
            lines.append(f"differs: {self.differences[0]}")
            lines += [f"  also: {difference}" for difference in self.differences[1:]]
        elif self.unjudged:
            events = ", ".join(f"#{n}" for n in self.unjudged)
            lines.append(f"undecided: {events} could not be judged, a defect of a2a-ledger; please report it")
        elif self.unread:
            first, *others = self.unread
            more = f", and {len(others)} more" if others else ""
            lines.append(f"undecided: {first}{more}; what was judged then cannot be read again")
        else:
            counts = f"{_count(self.events, 'event')}, {decisions}, {violations}"
            lines.append(f"same: {counts}, equal byte for byte ({self.rules})")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


def replay_task(ledger: ContractLedger, task: str) -> ReplayReport:
    """Replay one task, a local task id.

    Raises:
        UsageError: there is no such task.
        DamagedError: an event of it is missing, or does not open; `audit` says more.
    """
    story = story_of(ledger.store, task)
    must_open(story.all)
    run = Rerun()
    run.decide_again(story.events)
    triggers = [ledger.store.record(n) for n in triggers_of(story.peer_findings)]
    found = {record.n: record for record in (*story.events, *story.findings, *story.peer_findings, *triggers)}
    shown = {n: found[n] for n in sorted(found)}
    for record in shown.values():
        run.take_stated(record, ledger.profile)
    verified_to = ledger.store.position(VERIFIER)
    run.judge_again(shown, ledger.store, ledger.profile, Gaps(shown, None), verified_to=verified_to)
    violations = [record for record in (*story.findings, *story.peer_findings) if record.type == VIOLATION]
    keys = read_keys(story.keys, ledger.origin)
    differences = list(run.compared)
    gone = later_holes({**found, **{record.n: record for record in story.all}}).unread
    doubts: list[str] = []
    for record in violations:
        try:
            doubts.append(open_finding(record.content("statement") or b"", record, keys).doubt)
        except LedgerError as problem:
            differences.append(Difference(record.n, "signature", "a signed statement", str(problem)))
    if gone:
        differences = [difference for difference in differences if difference.what in _BY_RECORD_ALONE]
    return ReplayReport(
        task=task,
        events=len(story.events) + len(story.findings),
        story=tuple(_step(record) for record in story.all if record not in story.keys),
        decisions=run.decisions,
        violations=tuple(violations),
        differences=tuple(sorted(differences)),
        notes=tuple(note for note in (run.missing, *doubts) if note),
        unread=tuple(gone),
        unjudged=tuple(sorted(set(run.unjudged))),
        rules=f"rule set {RULE_SET}, profile {ledger.profile.name}",
    )


def triggers_of(findings: list[Record]) -> list[int]:
    """Return the log indexes of the events that completed findings about the peer."""
    indexes = (record.data.get("trigger_index") for record in findings if record.type == VIOLATION)
    return [n for n in indexes if isinstance(n, int)]


def _violation(record: Record) -> dict[str, Json]:
    """Return a finding in the shape that `violations` lists it in."""
    data = record.data
    found: dict[str, Json] = {
        "rule": data.get("rule"),
        "class": data.get("rule_class"),
        "about": data.get("about"),
        "certainty": data.get("certainty"),
        "basis": data.get("basis"),
        "position": record.n,
        "at": record.at,
        "rule_set": data.get("rule_set"),
        "evidence": data.get("evidence_index"),
        "statement_sha256": data.get("statement_sha256"),
    }
    if data.get("task") is not None:
        found["task"] = data["task"]
    else:
        found |= {"peer": data.get("peer"), "tasks": data.get("tasks") or []}
    return found


def _step(record: Record) -> Step:
    part, text = _PARTS.get(record.type, _other)(record.data)
    return Step(record.n, record.at, part, text or record.type)


def _card(data: JsonObject) -> tuple[str, str]:
    if data.get("not_modified") is not None:
        return "promised", f"card {data.get('url')}: 304, {data.get('contract_hash')} still stands"
    flags = data.get("flags")
    marks = f" ({', '.join(map(str, flags))})" if isinstance(flags, list) and flags else ""
    return "promised", f"card {data.get('url')}: {data.get('status')}, contract {data.get('contract_hash')}{marks}"


def _card_failed(data: JsonObject) -> tuple[str, str]:
    return "promised", f"card {data.get('url')}: {data.get('outcome')} {data.get('status') or ''}".rstrip()


def _manifest(data: JsonObject) -> tuple[str, str]:
    return (
        "promised",
        f"manifest, {data.get('status')}: contract {data.get('contract_hash')} until {data.get('floor_until')}",
    )


def _captured(data: JsonObject) -> tuple[str, str]:
    used = data.get("interface")
    where = f"{used['binding']} {used['version']} {used['url']}" if isinstance(used, dict) else "no interface"
    return "promised", f"frozen contract {data.get('contract_hash')} over {where}"


def _decided(data: JsonObject) -> tuple[str, str]:
    return "decided", f"{data.get('decision')} {data.get('reason')}; at stake: {data.get('at_stake')}"


def _aborted(data: JsonObject) -> tuple[str, str]:
    return "decided", f"nothing was sent: {data.get('reason')}"


def _message(data: JsonObject) -> tuple[str, str]:
    out = data.get("direction") == "out"
    told = [data.get("method"), data.get("task_id"), data.get("state_read") or data.get("state")]
    if data.get("leg") != "request":
        told += [data.get("leg"), data.get("status"), data.get("error_kind"), data.get("tls_alert")]
    return ("sent" if out else "received"), " ".join(str(item) for item in told if item is not None)


def _bound(data: JsonObject) -> tuple[str, str]:
    return "received", f"the peer calls the task {data.get('task_id')}"


def _found(data: JsonObject) -> tuple[str, str]:
    shown = data.get("evidence_index")
    by = ", ".join(f"#{n}" for n in shown) if isinstance(shown, list) else "nothing"
    return "concluded", f"{data.get('rule')}, about: {data.get('about')}, {data.get('certainty')}, shown by {by}"


def _erased(data: JsonObject) -> tuple[str, str]:
    listed = data.get("records")
    events = _count(len(listed) if isinstance(listed, list) else 0, "event")
    return "concluded", f"content of {events} erased, asked for by {data.get('requested_by')}: {data.get('reason')}"


def _other(_: JsonObject) -> tuple[str, str]:
    return "concluded", ""


_PARTS = {
    "card.fetched.v1": _card,
    "card.fetch_failed.v1": _card_failed,
    "card.manifest.v1": _manifest,
    "contract.captured.v1": _captured,
    "contract.reconstructed.v1": _captured,
    "freshness.decided.v1": _decided,
    "send.aborted.v1": _aborted,
    "message.recorded.v1": _message,
    "task.bound.v1": _bound,
    "violation.detected.v1": _found,
    "content.erased.v1": _erased,
}


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
