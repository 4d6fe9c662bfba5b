"""Divergence: holds what happened against the frozen contract, by rules (docs/rules.md).

One pure function, `judge`, over two folds (`TaskCase`, `PeerCase`). `Cases` keeps the folds within
bounds for the guard, the verifier and a replay.
"""

from a2a_ledger.divergence.cases import CaseLog, Cases
from a2a_ledger.divergence.finding import RULE_SET, RULE_SETS, RULES, VERIFIER, Evidence, Finding, Rule
from a2a_ledger.divergence.peer_case import PeerCase
from a2a_ledger.divergence.reading import ANSWERS
from a2a_ledger.divergence.records import RecordLog
from a2a_ledger.divergence.rules import judge
from a2a_ledger.divergence.task_case import TaskCase
from a2a_ledger.divergence.violation import payload_of, violation_of, violation_tag, violation_tags

__all__ = [
    "ANSWERS",
    "RULES",
    "RULE_SET",
    "RULE_SETS",
    "VERIFIER",
    "CaseLog",
    "Cases",
    "Evidence",
    "Finding",
    "PeerCase",
    "RecordLog",
    "Rule",
    "TaskCase",
    "judge",
    "payload_of",
    "violation_of",
    "violation_tag",
    "violation_tags",
]
