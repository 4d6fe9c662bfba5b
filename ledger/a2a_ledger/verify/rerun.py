"""Decides and judges again from records alone, and compares with what was recorded at the time, byte for byte.

The replay of a task runs this over the store, the verifier over the records of a bundle: same
inputs, same rules, same bytes, or the first difference. Only what the records say goes in; the
clock of a decision is one of its recorded inputs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from a2a_ledger.bundle import ENGINE, REPLAY_PROFILE
from a2a_ledger.codec import canonical, tags_of
from a2a_ledger.codec.fields import data_of
from a2a_ledger.contract.profile import parse_profile
from a2a_ledger.divergence import (
    RULE_SET,
    RULE_SETS,
    Cases,
    payload_of,
    violation_of,
    violation_tag,
    violation_tags,
)
from a2a_ledger.errors import FormatError, LedgerError
from a2a_ledger.freshness import RULES as FRESHNESS
from a2a_ledger.freshness import decide, inputs_from_json
from a2a_ledger.verify.gaps import Gaps
from a2a_ledger.verify.shown_log import ShownLog

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from a2a_ledger.bundle import Bundle
    from a2a_ledger.codec import Record
    from a2a_ledger.contract.profile import Profile
    from a2a_ledger.divergence import CaseLog, Finding
    from a2a_ledger.events import JsonObject
    from a2a_ledger.verify.shown import Shown

DECIDED: Final = "freshness.decided.v1"
VIOLATION: Final = "violation.detected.v1"

_NEEDS_PEER: Final = frozenset({"own-conduct", "card"})
_NEEDS_PEER_RULES: Final = frozenset({"weaker-authorization"})
_SETS: Final = " and ".join(RULE_SETS)
_OUTSIDE: Final = frozenset({"stream_commitment", "holes"})  # said by store and codec, not by a rule


class Difference(NamedTuple):
    """Where the past and the re-run part: which event, what was recorded, what comes out now."""

    n: int
    what: str
    recorded: str
    now: str

    def __str__(self) -> str:
        """Say it in one line."""
        return f"event {self.n}: {self.what}: recorded {self.recorded}, again {self.now}"


@dataclass(slots=True)
class Rerun:
    """What came out.

    Attributes:
        decisions: freshness decisions that were made again.
        findings: recorded findings that were found again.
        compared: differences, in log order.
        faults: what is wrong with the files that say how it was judged.
        missing: why some of it could not be done again; "" if all could.
        not_established: what the findings do not establish, each sentence once.
        again: the findings that were found again in few words, for a summary.
        recorded: those that are recorded and were not found again, as material for it is missing.
        unjudged: log indexes of events that a rule failed on.
    """

    decisions: int = 0
    findings: int = 0
    compared: list[Difference] = field(default_factory=list[Difference])
    faults: list[str] = field(default_factory=list[str])
    missing: str = ""
    not_established: tuple[str, ...] = ()
    again: list[str] = field(default_factory=list[str])
    recorded: list[str] = field(default_factory=list[str])
    unjudged: list[int] = field(default_factory=list[int])
    _elsewhere: bool = False  # rules or profile of the time are not those at hand
    _stated: dict[str, list[int]] = field(default_factory=dict[str, list[int]])  # recorded findings by their tag
    _rule_sets: set[str] = field(default_factory=set[str])  # under which they were recorded

    @property
    def differences(self) -> list[str]:
        """Return the faults, and the differences as sentences."""
        return [*self.faults, *map(str, self.compared)]

    def summary(self) -> str:
        """Say what was done again with equal bytes, and what was not."""
        verdict = "; ".join(self.again) or "no finding"
        alone = f"; recorded, not found again: {'; '.join(self.recorded)}" if self.recorded else ""
        return f"{self.decisions} decisions and {self.findings} findings again, equal byte for byte: {verdict}{alone}"

    @classmethod
    def of_bundle(cls, bundle: Bundle, shown: Shown, size: int) -> Rerun:
        """Do it over the records that a bundle shows under a checkpoint of this size.

        The peer's stream is shown in part only, so a finding that rests on what a peer's stream does
        *not* hold is compared where it was recorded and is otherwise left open.
        """
        run = cls()
        try:
            engine = _engine_of(bundle, size)
            raw = bundle.read(REPLAY_PROFILE)
            if engine["profile"] != f"sha256:{sha256(raw).hexdigest()}":
                raise FormatError(f"{REPLAY_PROFILE}: not the profile that {ENGINE} names")
        except LedgerError as problem:
            run.faults.append(str(problem))
            return run
        try:
            profile = parse_profile(raw)
        except LedgerError as problem:
            run.missing = f"{REPLAY_PROFILE} cannot be read: {problem}"
            return run
        rule_set = cast("str", engine["rule_set"])
        if rule_set not in RULE_SETS:
            run._leave_all(f"judged by rule set {rule_set}, here are {_SETS}")
            rule_set = RULE_SET
        run.decide_again(shown.of_type(DECIDED))
        for record in shown.stating():
            run.take_stated(record, profile)
        gaps = Gaps(shown.records, shown.changed)
        verified_to = cast("int", engine["verified_to"])
        run.judge_again(shown.records, ShownLog(shown), profile, gaps, verified_to=verified_to, rule_set=rule_set)
        return run

    def decide_again(self, records: Iterable[Record]) -> None:
        """Make every recorded freshness decision again from its recorded inputs."""
        for record in records:
            if record.type != DECIDED:
                continue
            if record.data.get("rules") != FRESHNESS:
                self._leave(f"event {record.n} was decided by rules {record.data.get('rules')}, here are {FRESHNESS}")
                continue
            try:
                made = decide(inputs_from_json(record.data.get("inputs"))[0])
            except LedgerError as problem:
                self.compared.append(Difference(record.n, "inputs", "a decision", f"none: {problem}"))
                continue
            again: JsonObject = {
                **record.data,
                "decision": made.decision,
                "reason": made.reason,
                "at_stake": made.at_stake,
            }
            again.pop("retry_after", None)
            if made.retry_after is not None:
                again["retry_after"] = made.retry_after
            self.decisions += 1
            if canonical(again) != canonical(record.data):
                self._differ(record.n, "decision", _decision(record.data), _decision(again))

    def take_stated(self, record: Record, profile: Profile) -> None:
        """Take in what a record says of a judgement: a finding, and the profile that it was recorded under.

        Each record that says either comes here, in log order, before any is judged again.
        """
        if record.type != VIOLATION:
            self._hold_profile(record, profile)
            return
        data = record.data
        listed = data.get("not_established")
        sentences = [str(item) for item in listed] if isinstance(listed, list) else []
        self.not_established += tuple(item for item in sentences if item not in self.not_established)
        known = data.get("rule_set") in RULE_SETS
        if not known:
            self._leave_all(f"event {record.n} was found by rule set {data.get('rule_set')}, here are {_SETS}")
        if not self._hold_profile(record, profile) or not known:
            self.recorded.append(_finding(data))
            return
        self._rule_sets.add(str(data["rule_set"]))
        self._stated.setdefault(_tag_of(record), []).append(record.n)

    def judge_again(  # noqa: PLR0913 - what is judged, and what it was judged by
        self,
        shown: Mapping[int, Record],
        log: CaseLog,
        profile: Profile,
        gaps: Gaps,
        *,
        verified_to: int,
        rule_set: str = RULE_SET,
    ) -> None:
        """Judge the records again and compare with the findings among them, which were taken in before.

        Args:
            shown: what to judge and the recorded findings, by log index in log order.
            log: where earlier events are found.
            profile: the profile of the time.
            gaps: what of the records is not here.
            verified_to: how far the verifier had read, as a log size: behind it a finding may be due.
            rule_set: the rules that the verifier had read by: what they find must be recorded, under them or under
                older ones. What is recorded under other rules that are known here is found again under those.

        A finding about the peer as a whole is compared where it was recorded and is else nobody's business here. Rule
        set 1 found twice what one message says twice; so often it may be recorded, in that order, and no more often.
        """
        recorded = self._stated
        at_the_time = frozenset(recorded)
        met: dict[str, int] = {}
        for finding in self._found(shown, log, profile, {rule_set, *self._rule_sets}):
            same = recorded.get(tag := violation_tag(finding, profile))
            if same:
                told = shown[same.pop(0)]
                met.setdefault(tag, told.n)
                self._compare(told, finding, profile, gaps.of_recorded(told))
            elif finding.rule_set != rule_set or not at_the_time.isdisjoint(violation_tags(finding, profile)):
                continue  # recorded under other rules, which say the same of it
            elif finding.trigger.n >= verified_to:
                self._leave(
                    f"the verifier had read up to {verified_to} only; {finding.rule} at {finding.trigger.n} was due"
                )
            elif finding.task is not None and not self._elsewhere and not (gaps.partial and _rests_on_absence(finding)):
                self._not_recorded(finding, profile, gaps.of_found(finding))
        for tag, told in ((tag, shown[n]) for tag, same in recorded.items() for n in same):
            if tag in met:
                self._differ(told.n, "finding", f"once more, as at {met[tag]}", "not again")
            else:
                self._not_found(told, gaps.of_recorded(told))
        self.compared.sort()

    def _hold_profile(self, record: Record, profile: Profile) -> bool:
        """Note that something was recorded under another profile than the one at hand."""
        under = record.data.get("profile_hash", profile.hash)
        if under != profile.hash:
            self._leave_all(f"event {record.n} was recorded under profile {under}, at hand is {profile.hash}")
        return under == profile.hash

    def _not_recorded(self, finding: Finding, profile: Profile, gap: str) -> None:
        """Say that a finding comes out that nobody recorded, unless it may only come out as material is missing."""
        now = _finding(data_of(violation_of(finding, b"", profile)))
        if gap:
            self._leave(f"{now} at {finding.trigger.n} comes out where {gap}")
        else:
            self._differ(finding.trigger.n, "finding", "none", now)

    def _not_found(self, told: Record, gap: str) -> None:
        """Say that a recorded finding does not come out again: it is false, unless material for it is missing."""
        if self._elsewhere or gap:
            self.recorded.append(_finding(told.data))
            self._leave(f"finding {told.n} ({_finding(told.data)}) is recorded and was not found again: {gap}")
        else:
            self._differ(told.n, "finding", _finding(told.data), "none")

    def _compare(self, told: Record, finding: Finding, profile: Profile, gap: str) -> None:
        """Compare a finding with its record: the signed payload, by its digest, and the event's own fields.

        Where something is missing (`gap`), what comes out may be a part of what was found: that refutes nothing.
        """
        payload = payload_of(finding, told.log, profile)
        again = data_of(violation_of(finding, payload, profile))
        data = {name: value for name, value in told.data.items() if name not in _OUTSIDE}
        if gap and canonical(data) != canonical(again):
            self._not_found(told, gap)
            return
        self.findings += 1
        self.again.append(_finding(data))
        if data.get("statement_sha256") != again["statement_sha256"]:
            self._differ(
                told.n, "statement", f"sha256 {data.get('statement_sha256')}", f"sha256 {again['statement_sha256']}"
            )
        elif canonical(data) != canonical(again):
            self._differ(told.n, "finding", _finding(data), _finding(again))

    def _found(
        self, shown: Mapping[int, Record], log: CaseLog, profile: Profile, rule_sets: Iterable[str]
    ) -> Iterator[Finding]:
        """Judge the records by each of these rule sets."""
        for rule_set in sorted(rule_sets):
            cases = Cases(log, profile, rule_set=rule_set, on_failure=self._unjudged)
            for record in shown.values():
                if record.type != VIOLATION:
                    yield from cases.judge(record)

    def _unjudged(self, record: Record, error: Exception) -> None:
        """Note that a rule failed on a record, which is a defect of ours: what it would have found nobody knows."""
        self.unjudged.append(record.n)
        self._leave_all(f"event {record.n} could not be judged here, a defect of a2a-ledger: {error!r:.200}")

    def _differ(self, n: int, what: str, recorded: str, now: str) -> None:
        self.compared.append(Difference(n, what, recorded, now))

    def _leave(self, why: str) -> None:
        """Note why something cannot be compared; the first reason is enough."""
        self.missing = self.missing or why

    def _leave_all(self, why: str) -> None:
        """Note that what comes out here need not be what came out then."""
        self._elsewhere = True
        self._leave(why)


def _tag_of(record: Record) -> str:
    """Return the lookup tag of a recorded finding; of an odd one, something that no re-run finds."""
    return next(
        (tag for tag in tags_of(record.stream, record.type, record.data) if tag.startswith("finding:")),
        f"event {record.n}",
    )


def _rests_on_absence(finding: Finding) -> bool:
    """Say whether a finding needs all of the peer's stream: it says that something did not happen in between."""
    return finding.rule_class in _NEEDS_PEER or finding.rule in _NEEDS_PEER_RULES


def _engine_of(bundle: Bundle, size: int) -> JsonObject:
    """Return what the exporter says of the rules of the time, and how far his verifier had read."""
    engine = bundle.json(ENGINE)
    match engine:
        case {
            "freshness": str(),
            "profile": str(),
            "rule_set": str(),
            "software": str(),
            "verified_to": int(to),
            **others,
        } if type(to) is int and 0 <= to <= size and not others:
            return cast("JsonObject", engine)
        case _:
            raise FormatError(
                f"{ENGINE}: expected the texts freshness, profile, rule_set and software, and verified_to from 0 to "
                f"{size}"
            )


def _decision(data: JsonObject) -> str:
    wait = f", wait {data['retry_after']} s" if "retry_after" in data else ""
    return f"{data.get('decision')} {data.get('reason')} (at stake: {data.get('at_stake')}{wait})"


def _finding(data: JsonObject) -> str:
    return f"{data.get('rule')}, about: {data.get('about')}, {data.get('certainty')}"
