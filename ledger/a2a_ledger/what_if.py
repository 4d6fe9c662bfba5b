"""What if: one task's past under another rule set or another profile, against what was recorded.

Every decision is made again with the other profile's choices and its reading of the card that was
fetched; every event is judged again by the other rules. What comes out is compared with the record,
and nothing is written. The past stays as it is: an abort that would have been is not played on, so
what is judged behind it is what really happened.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from a2a_ledger.card import read_card
from a2a_ledger.codec import canonical, later_holes
from a2a_ledger.contract import contract_of, diff, terms_of
from a2a_ledger.divergence import RULE_SET, RULE_SETS, VERIFIER, Cases
from a2a_ledger.divergence.reading import CAPTURED, RECONSTRUCTED, content, json_object, members, ref, text, texts
from a2a_ledger.errors import LedgerError, UsageError
from a2a_ledger.freshness import decide, inputs_from_json
from a2a_ledger.replay import triggers_of
from a2a_ledger.selection import story_of
from a2a_ledger.store.damage import must_open
from a2a_ledger.verify.rerun import DECIDED, VIOLATION, Difference

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.card import Card
    from a2a_ledger.codec import Record
    from a2a_ledger.contract import Profile
    from a2a_ledger.divergence import Finding
    from a2a_ledger.events import Json, JsonObject
    from a2a_ledger.freshness import Decision
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.selection import TaskStory

Verdict: TypeAlias = Literal["same", "differs", "undecided"]

_WEIGHED = frozenset({"same", "capability", "unclassified", "contract"})
"""Outcomes of a re-fetch that come from comparing two cards, so that a profile has a say in them."""

_SHOWN = 200
"""Characters of an observed value that are told."""

_FETCHES = frozenset({"refetch-once", "discover"})


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What would have come out.

    Attributes:
        task: the local task id.
        rules: the rule set that it was judged by.
        recorded_rules: the rule sets by which the recorded findings were found, sorted.
        profile: the name of the profile, and its hash.
        decisions: decisions that were made again.
        findings: findings that come out.
        differences: where this parts from what was recorded, in log order; `what` is decision, terms or finding.
        notes: what could not be told, and why.
        unread: blobs that are gone or were cut since: findings cannot be judged again.
    """

    task: str
    rules: str
    recorded_rules: tuple[str, ...]
    profile: tuple[str, str]
    decisions: int
    findings: int
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]
    unread: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        """Return `same` only where nothing differs and all that is judged can be read."""
        if self.differences:
            return "differs"
        return "undecided" if self.unread else "same"

    def to_json(self) -> JsonObject:
        """Return the shape of `replay --rules V --profile P --format json`."""
        found: list[Json] = [
            {"position": n, "what": what, "recorded": recorded, "now": now}
            for n, what, recorded, now in self.differences
        ]
        return {
            "task": self.task,
            "rules": self.rules,
            "recorded_rules": list(self.recorded_rules),
            "profile": self.profile[0],
            "profile_hash": self.profile[1],
            "verdict": self.verdict,
            "decisions": self.decisions,
            "findings": self.findings,
            "differences": found,
            "notes": [*self.notes, *self.unread],
        }

    def __str__(self) -> str:
        """Say what would have been otherwise, one line each."""
        under = f"under rule set {self.rules}, profile {self.profile[0] or self.profile[1]}"
        lines = [f"{difference.what} at #{difference.n}: {_told(difference)}" for difference in self.differences]
        counts = f"{self.decisions} decisions and {self.findings} findings"
        then = f"recorded under rule set {' and '.join(self.recorded_rules)}" if self.recorded_rules else "recorded"
        if self.differences:
            head = f"differs {under}: {len(self.differences)} of what was {then} would be otherwise"
        elif self.unread:
            head = f"undecided {under}: {self.unread[0]}; what was judged then cannot be read again"
        else:
            head = f"same {under}: nothing differs from what was {then}, {counts}"
        return "\n".join([head, *lines, *(f"note: {note}" for note in self.notes)])


def what_if(ledger: ContractLedger, task: str, *, rules: str | None = None, profile: Profile | None = None) -> WhatIf:
    """Replay one task under another rule set or profile; reads only.

    Args:
        ledger: the ledger.
        task: the local task id.
        rules: a name of `RULE_SETS`; default: the newest.
        profile: default: the ledger's own.

    Raises:
        UsageError: there is no such task, or no such rule set.
        DamagedError: an event of it is missing, or does not open; `audit` says more.
    """
    rule_set = RULE_SET if rules is None else rules
    if rule_set not in RULE_SETS:
        raise UsageError(f"no rule set {rule_set!a} here: expected one of {', '.join(RULE_SETS)}")
    chosen = profile or ledger.profile
    story = story_of(ledger.store, task)
    must_open(story.all)
    again = _Again(ledger, story, rule_set, chosen)
    again.decide()
    again.freeze()
    again.judge()
    gone = later_holes({record.n: record for record in again.story.all}).unread
    told = [difference for difference in again.differences if not gone or difference.what != "finding"]
    return WhatIf(
        task=task,
        rules=rule_set,
        recorded_rules=again.recorded_rules(),
        profile=(chosen.name, chosen.hash),
        decisions=again.decisions,
        findings=again.findings,
        differences=tuple(sorted(told)),
        notes=tuple(dict.fromkeys(again.notes)),
        unread=tuple(gone),
    )


class _Again:
    """The state of one replay under other rules."""

    def __init__(self, ledger: ContractLedger, story: TaskStory, rule_set: str, profile: Profile) -> None:
        self._ledger = ledger
        self._rule_set = rule_set
        self._profile = profile
        self._places = {(record.stream, record.ver): record for record in story.all}
        self.story = story
        self.decisions = 0
        self.findings = 0
        self.differences: list[Difference] = []
        self.notes: list[str] = []

    # ---- decisions

    def decide(self) -> None:
        """Make each decision again, with the other profile's choices and its view of the fetched card."""
        for record in self.story.events:
            if record.type != DECIDED:
                continue
            try:
                made, unknown = self._decide(record)
            except LedgerError as problem:
                self.notes.append(f"decision #{record.n} cannot be made again: {problem}")
                continue
            self.decisions += 1
            told = tuple(record.data.get(name) for name in ("decision", "reason", "at_stake"))
            if told == (made.decision, made.reason, made.at_stake):
                continue
            now = _decision(made.decision, made.reason, made.at_stake)
            if unknown:
                now += ", and what that fetch would have brought nobody knows"
            self.differences.append(Difference(record.n, "decision", _decision(*told), now))

    def _decide(self, record: Record) -> tuple[Decision, bool]:
        """Ask the first question and, if it says so, the second; True: what the fetch brings is not known."""
        stated = members(record.data.get("inputs"))
        choices: JsonObject = {
            "sibling": self._profile.sibling,
            "skew": self._profile.skew,
            "failed": self._profile.failed,
        }
        first = decide(inputs_from_json({**stated, "profile": choices, "refetch": None})[0])
        brought = stated.get("refetch")
        if first.decision not in _FETCHES:
            return first, False
        if not isinstance(brought, dict):
            return first, True
        weighed: JsonObject = {**brought, "outcome": self._outcome(record, text(brought, "outcome"))}
        return decide(inputs_from_json({**stated, "profile": choices, "refetch": weighed})[0]), False

    def _outcome(self, record: Record, recorded: str | None) -> str | None:
        """Return what the one fetch meant under the other profile: it says which changed members are terms."""
        if recorded not in _WEIGHED:
            return recorded
        old, new = (self._card(record, name) for name in ("card", "refetch"))
        if old is None or new is None or contract_of(new) is None:
            self.notes.append(
                f"the two cards of decision #{record.n} cannot be read here: their change stands as recorded"
            )
            return recorded
        verdict = diff(old, new, self._profile).verdict
        return "same" if verdict in {"same-bytes", "same-document", "prose"} else verdict

    def _card(self, record: Record, name: str) -> Card | None:
        """Return the card that a field of a record points at, through a 304 to the octets that still stood."""
        there = self._named(record, name)
        if there is not None and there.data.get("not_modified") is not None:
            there = self._named(there, "not_modified")
        body = content(there, "body") if there is not None else None
        return read_card(body) if body is not None else None

    def _named(self, record: Record, name: str) -> Record | None:
        place = ref(record.data, name)
        return None if place is None else self._places.get((place["stream"], place["ver"]))

    # ---- what was frozen

    def freeze(self) -> None:
        """Read the terms again that the other profile sees in the captured card."""
        for record in self.story.events:
            if record.type not in {CAPTURED, RECONSTRUCTED}:
                continue
            told, card = json_object(content(record, "terms")), self._card(record, "fetch")
            if told is None or card is None:
                continue
            made = terms_of(card, self._profile, texts(record.data.get("extensions"))).value
            for what in ("paths", "extensions"):
                before, after = _named_terms(told.get(what)), _named_terms(made.get(what))
                if before != after:
                    self.differences.append(Difference(record.n, "terms", _listed(what, before), _listed(what, after)))

    # ---- findings

    def judge(self) -> None:
        """Judge each event again and compare with the recorded findings, whatever rules these were found by."""
        verified_to = self._ledger.store.position(VERIFIER)
        told, met = self._recorded(), set[tuple[str | None, ...]]()
        for finding in self._found():
            self.findings += 1
            met.add((finding.rule, finding.subject, finding.trigger.ref["c"]))
            same = told.get((finding.rule, finding.subject, finding.trigger.ref["c"]), [])
            now = _finding_now(finding)
            if not same and finding.trigger.n >= verified_to:
                self.notes.append(f"the verifier had read up to {verified_to}: {now} at #{finding.trigger.n} is due")
            elif not same:
                self.differences.append(Difference(finding.trigger.n, "finding", "none", now))
            elif all(_differs(record.data, finding) for record in same):
                then, observed = same[-1].data, members(same[-1].data.get("observed"))
                recorded = _finding_of(then) + _apart(observed, finding.observed)
                now += _apart(finding.observed, observed)
                self.differences.append(Difference(same[-1].n, "finding", recorded, now))
        for key, same in told.items():
            if key not in met:
                self.differences.append(Difference(same[-1].n, "finding", _finding_of(same[-1].data), "none"))

    def recorded_rules(self) -> tuple[str, ...]:
        """Return the rule sets by which the recorded findings were found."""
        return tuple(
            sorted({str(record.data.get("rule_set")) for same in self._recorded().values() for record in same})
        )

    def _recorded(self) -> dict[tuple[str | None, ...], list[Record]]:
        """Return the recorded findings of the task: one may be there by two rule sets, or by set 1 twice."""
        found: dict[tuple[str | None, ...], list[Record]] = {}
        for record in (*self.story.findings, *self.story.peer_findings):
            if record.type == VIOLATION:
                found.setdefault(_identity(record.data), []).append(record)
        return found

    def _found(self) -> Iterator[Finding]:
        """Yield what the other rules find about this task."""
        cases = Cases(self._ledger.store, self._profile, rule_set=self._rule_set)
        triggers = [self._ledger.store.record(n) for n in triggers_of(self.story.peer_findings)]
        judged = {record.n: record for record in (*self.story.all, *triggers)}
        for n in sorted(judged):
            if judged[n].type == VIOLATION:
                continue
            for finding in cases.judge(judged[n]):
                if finding.task == self.story.task or self.story.task in finding.tasks:
                    yield finding


def _identity(data: JsonObject) -> tuple[str | None, ...]:
    """Return what makes two findings one, whatever rule set and profile they were found by."""
    return text(data, "rule"), text(data, "subject"), text(members(data.get("trigger")), "c")


def _differs(data: JsonObject, finding: Finding) -> bool:
    stated = (data.get("about"), data.get("certainty"), canonical(data.get("observed")))
    return stated != (finding.about, finding.certainty, canonical(finding.observed))


def _named_terms(value: object) -> dict[str, str]:
    """Return a profile's terms by name: pointers, or URIs of extensions, each with its value as text."""
    if isinstance(value, dict):
        return {name: repr(item) for name, item in cast("dict[str, object]", value).items()}
    found = [members(item) for item in cast("list[object]", value)] if isinstance(value, list) else []
    return {text(item, "uri") or "": repr(item.get("params")) for item in found}


def _listed(what: str, terms: dict[str, str]) -> str:
    return f"{what} {', '.join(sorted(terms)) or 'none'}"


def _decision(decision: object, reason: object, at_stake: object) -> str:
    return f"{decision} {reason} (at stake: {at_stake})"


def _finding(rule: object, about: object, certainty: object, rule_set: object) -> str:
    return f"{rule}, about: {about}, {certainty}, by rule set {rule_set}"


def _finding_now(finding: Finding) -> str:
    return _finding(finding.rule, finding.about, finding.certainty, finding.rule_set)


def _finding_of(data: JsonObject) -> str:
    return _finding(*(data.get(name) for name in ("rule", "about", "certainty", "rule_set")))


def _apart(observed: JsonObject, other: JsonObject) -> str:
    """Say what one side observed that the other did not, or otherwise."""
    apart = {name: value for name, value in observed.items() if name not in other or other[name] != value}
    without = [name for name in other if name not in observed]
    said = [f"{name} {_cut(canonical(value).decode())}" for name, value in sorted(apart.items())]
    said += [f"no {name}" for name in sorted(without)]
    return f", observed: {'; '.join(said)}" if said else ""


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _told(difference: Difference) -> str:
    if difference.recorded == "none":
        return f"would be found: {difference.now}"
    if difference.now == "none":
        return f"would not be found: {difference.recorded}"
    return f"recorded {difference.recorded}; it would be {difference.now}"
