"""Findings as violations: the statement that is signed, the event that records it, and the same again for a replay.

Everything here is a pure function of records. `expected_violations` gives, for a run of records, the
payload bytes that the verifier signs, so that a replay compares byte for byte (docs/format.md section 10).
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.codec import finding_tag, leaf
from a2a_ledger.divergence.cases import Cases
from a2a_ledger.divergence.finding import RULE_SET, Finding
from a2a_ledger.divergence.records import RecordLog
from a2a_ledger.events import ViolationDetected
from a2a_ledger.statement import VIOLATION, leaf_subject, statement, violation_predicate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from a2a_ledger.codec import Record
    from a2a_ledger.contract import Profile


class Expected(NamedTuple):
    """A finding with the payload bytes that the verifier signs for it."""

    finding: Finding
    payload: bytes

    def tag(self, profile: Profile) -> str:
        """Return the lookup tag under which its violation is recorded at most once."""
        return violation_tag(self.finding, profile)


def payload_of(finding: Finding, origin: str, profile: Profile) -> bytes:
    """Return the RFC 8785 bytes of the in-toto statement about a finding.

    Its subjects are the leaves that show the finding, in order of the log.
    """
    subjects = [
        leaf_subject(origin, item.n, leaf(origin, item.n, bytes.fromhex(item.ref["c"]), bytes.fromhex(item.t)))
        for item in finding.evidence
    ]
    framed = finding.frozen_hash is not None
    predicate = violation_predicate(
        rule=finding.rule,
        rule_set=RULE_SET,
        profile_hash=profile.hash,
        subject=finding.subject,
        trigger=finding.trigger.ref["c"],
        trigger_index=finding.trigger.n,
        frozen_hash=finding.frozen_hash,
        frozen_form=finding.frozen_form if framed else None,
        about=finding.about,
        certainty=finding.certainty,
        observed=finding.observed,
        basis=finding.basis,
        not_established=finding.not_established,
    )
    return statement(subjects, VIOLATION, predicate)


def violation_of(finding: Finding, payload: bytes, profile: Profile) -> ViolationDetected:
    """Return the event that records a finding; its statement is the blob `statement`."""
    framed = finding.frozen_hash is not None
    return ViolationDetected(
        rule=finding.rule,
        rule_class=finding.rule_class,
        about=finding.about,
        certainty=finding.certainty,
        basis=finding.basis,
        rule_set=RULE_SET,
        profile_hash=profile.hash,
        peer=finding.peer,
        subject=finding.subject,
        trigger=finding.trigger.ref,
        trigger_index=finding.trigger.n,
        evidence=[item.ref for item in finding.evidence],
        evidence_index=[item.n for item in finding.evidence],
        observed=finding.observed,
        not_established=list(finding.not_established),
        statement_sha256=hashlib.sha256(payload).hexdigest(),
        frozen_hash=finding.frozen_hash,
        frozen_form=finding.frozen_form if framed else None,
        task=finding.task,
        tasks=list(finding.tasks) or None,
    )


def violation_tag(finding: Finding, profile: Profile) -> str:
    """Return the lookup tag under which the violation of a finding is recorded at most once."""
    return finding_tag(finding.rule, RULE_SET, profile.hash, finding.trigger.ref["c"], finding.subject)


def expected_violations(records: Iterable[Record], profile: Profile) -> Iterator[Expected]:
    """Yield what the verifier finds in these records and the bytes that it signs, in order of their triggers.

    Args:
        records: In order of the log: the task's stream with its peer's card fetches, or the whole
            log. What is missing is taken not to have happened, so rules that look across tasks
            (`weaker-authorization`, and a new task before `refetch-as-input`) need the peer's other
            captures to be among them.
        profile: The profile of the time, or another one to ask "what if".

    A replay compares each payload with the payload inside of the recorded envelope: equal bytes mean
    that the same finding follows from the same events. `Expected.tag` finds the recorded violation.
    """
    known = list(records)
    cases = Cases(RecordLog(known), profile)
    for record in known:
        for finding in cases.judge(record):
            yield Expected(finding, payload_of(finding, record.log, profile))
