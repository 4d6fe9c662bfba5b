"""Findings as violations: the statement that is signed and the event that records it (docs/format.md section 10).

Pure functions of a finding, and a finding is one of the log: a replay that judges the same records
again through `Cases` gets the same payload, byte for byte.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from a2a_ledger.codec import finding_tag, leaf
from a2a_ledger.divergence.finding import RULE_SETS
from a2a_ledger.events import ViolationDetected
from a2a_ledger.statement import VIOLATION, leaf_subject, statement, violation_predicate

if TYPE_CHECKING:
    from a2a_ledger.contract import Profile
    from a2a_ledger.divergence.finding import Finding


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
        rule_set=finding.rule_set,
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
    """Return the event that records a finding.

    Args:
        finding: What was found.
        payload: Its statement, `payload_of`; signed, it is the event's blob `statement`.
        profile: The profile that it was found under.
    """
    framed = finding.frozen_hash is not None
    return ViolationDetected(
        rule=finding.rule,
        rule_class=finding.rule_class,
        about=finding.about,
        certainty=finding.certainty,
        basis=finding.basis,
        rule_set=finding.rule_set,
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
    return finding_tag(finding.rule, finding.rule_set, profile.hash, finding.trigger.ref["c"], finding.subject)


def violation_tags(finding: Finding, profile: Profile) -> list[str]:
    """Return the tags under which it may be recorded: its own, and those of the same finding under other rule sets.

    What was found and signed under an older rule set is not found anew when the log is judged by a newer one.
    """
    return [
        finding_tag(finding.rule, rule_set, profile.hash, finding.trigger.ref["c"], finding.subject)
        for rule_set, rules in RULE_SETS.items()
        if finding.rule in rules
    ]
