"""May I re-fetch the card, may I send? A pure decision table over stated inputs (docs/format.md section 9).

The first question is asked before a send; if its answer is `refetch-once` or `discover`, the card is
fetched once and the second question is asked with what that fetch brought. First match wins. The rules
count `intended` alone as "still submitted": from the record of a send on, the task is past it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from a2a_ledger.freshness.inputs import (
    ADOPTED,
    INTENDED,
    CardEntry,
    Choices,
    Hint,
    Inputs,
    Limits,
    Manifest,
    Refetch,
    Sibling,
    Sighting,
    TaskState,
    Validator,
    inputs_from_json,
)
from a2a_ledger.wire.leg import version_of
from a2a_ledger.wire.spellings import STATES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from a2a_ledger.events import Json, JsonObject

__all__ = [
    "RULES",
    "CardEntry",
    "Choices",
    "Decision",
    "Hint",
    "Inputs",
    "Limits",
    "Manifest",
    "Refetch",
    "Sibling",
    "Sighting",
    "TaskState",
    "Validator",
    "decide",
    "decision_json",
    "inputs_from_json",
]

RULES = "freshness/1"
"""Version of the two tables, recorded with every decision."""
CONTRADICTION = "contract-finding"
"""The kind of hint that is a certain contract finding."""

PROCEED = "proceed"
DISCOVER = "discover"
REFETCH = "refetch-once"
ABORT = "abort-before-send"
NEVER = "never-refetch"


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do, by which row, and what is at stake if it was wrong."""

    decision: str
    """proceed, discover, refetch-once, abort-before-send or never-refetch (send, on the card at hand)."""
    reason: str
    at_stake: str = "authorization"
    """none, routing or authorization."""
    retry_after: int | None = None
    """Seconds until the row that aborted no longer matches; None: no time is known."""


def decide(inputs: Inputs) -> Decision:
    """Answer the first question, or the second if `inputs.refetch` is given.

    Rows 1 and 2 come first in both: outside the rules' scope, and for a task that was sent, what a
    fetch brought is no input.
    """
    rows = FIRST if inputs.refetch is None else (_out_of_scope, _frozen, _refetched)
    for row in rows:
        made = row(inputs)
        if made is not None:
            return made
    return Decision(PROCEED, "fresh")


def decision_json(inputs: Inputs, assumed: Sequence[str], made: Decision) -> JsonObject:
    """Return the output of `decide --format json`."""
    listed: list[Json] = list(assumed)
    return {
        "decision": made.decision,
        "reason": made.reason,
        "at_stake": made.at_stake,
        "retry_after": made.retry_after,
        "assumed": listed,
        "inputs": inputs.to_json(),
    }


# ---- the first table, one function a row, in its order


def _out_of_scope(inputs: Inputs) -> Decision | None:
    if inputs.transport == "in-process":
        return Decision(PROCEED, "out-of-scope", "none")
    if inputs.manifest is not None and inputs.manifest.valid and inputs.now < inputs.manifest.floor_until:
        return Decision(PROCEED, "manifest", "none")
    return None


def _frozen(inputs: Inputs) -> Decision | None:
    return Decision(NEVER, "frozen", "none") if inputs.task.state != INTENDED else None


def _no_card(inputs: Inputs) -> Decision | None:
    return Decision(DISCOVER, "no-card") if inputs.card is None else None


def _sibling_submitted(inputs: Inputs) -> Decision | None:
    waits = [
        inputs.limits.sibling - age
        for sibling in inputs.siblings
        if not _past_submitted(sibling.state)
        and (age := _distance(inputs.now, sibling.sent_at)) < inputs.limits.sibling
    ]
    if not waits:
        return None
    if inputs.profile.sibling == "proceed":
        return Decision(PROCEED, "sibling-submitted")
    retry = math.ceil(max(waits)) if inputs.profile.sibling == "wait" else None
    return Decision(ABORT, "sibling-submitted", retry_after=retry)


def _ended(inputs: Inputs) -> Decision | None:
    if _age(inputs) >= inputs.limits.cache:
        return Decision(DISCOVER, "expired")
    if any(hint.kind == CONTRADICTION for hint in _hints_since_fetch(inputs)):
        return Decision(DISCOVER, "contradicted")
    return None


def _version(inputs: Inputs) -> Decision | None:
    stated = inputs.card.version if inputs.card else None
    spoken = {version_of(version) or version for version in inputs.client_versions}
    if stated is not None and (version_of(stated) or stated) in spoken:
        return None
    reason = "version-not-stated" if stated is None else "version-skew"
    return Decision(ABORT if inputs.profile.skew == "abort" else NEVER, reason)


def _no_validator(inputs: Inputs) -> Decision | None:
    card, validator = inputs.card, inputs.validator
    has_one = validator.present and card is not None and (card.etag is not None or card.last_modified is not None)
    honoured = validator.last != "same-tag" and not validator.lied
    return None if has_one and honoured else Decision(NEVER, "no-validator")


def _flapping(inputs: Inputs) -> Decision | None:
    """Match where a contract came back after another one, all three sightings inside the window."""
    window = inputs.limits.flap
    seen = [one for one in inputs.contracts_seen if _distance(inputs.now, one.at) < window]
    left = [
        window + (first.at - inputs.now).total_seconds()
        for at, first in enumerate(seen)
        if _comes_back(first.contract, [one.contract for one in seen[at + 1 :]])
    ]
    return Decision(ABORT, "flapping", retry_after=math.ceil(max(left))) if left else None


def _contract_limit(inputs: Inputs) -> Decision | None:
    max_age = _max_age(inputs)
    limit = inputs.limits.contract if max_age is None else min(max_age, inputs.limits.contract)
    if _age(inputs) >= limit:
        return Decision(REFETCH, "contract-limit")
    return Decision(REFETCH, "hint") if _hints_since_fetch(inputs) else None


def _capability_limit(inputs: Inputs) -> Decision | None:
    """Match past the capability limit alone; the caller books a lazy fetch for the next task."""
    max_age = _max_age(inputs)
    limit = inputs.limits.capability if max_age is None else max_age
    return Decision(PROCEED, "capability-stale", "routing") if _age(inputs) >= limit else None


_Row: TypeAlias = Callable[[Inputs], "Decision | None"]
FIRST: tuple[_Row, ...] = (
    _out_of_scope,
    _frozen,
    _no_card,
    _sibling_submitted,
    _ended,
    _version,
    _no_validator,
    _flapping,
    _contract_limit,
    _capability_limit,
)
"""Rows 1 to 10; row 11 is what is left: `proceed`, `fresh`."""


# ---- the second table


def _refetched(inputs: Inputs) -> Decision | None:
    outcome = inputs.refetch.outcome if inputs.refetch else ""
    if outcome == "304":
        return Decision(PROCEED, "not-modified")
    if outcome in {"same", "capability", "unclassified"}:
        return Decision(PROCEED, "contract-equal")
    if outcome == "contract":
        return Decision(ABORT, "contract-changed")
    if outcome == "undecidable":
        return Decision(ABORT, "undecidable")
    return Decision(ABORT if inputs.profile.failed == "abort" else PROCEED, "refetch-failed")


# ---- what the rows are made of


def _distance(now: datetime, then: datetime) -> float:
    """Return the seconds between two readings of a clock that may have been set back.

    A time in the future has an age that nobody knows; its distance keeps trust in it bounded by the same limit.
    """
    return abs((now - then).total_seconds())


def _age(inputs: Inputs) -> float:
    """Return the card's age in seconds, with the time it lay in caches on the way (RFC 9111 section 4.2.3)."""
    if inputs.card is None:
        return 0.0
    return _distance(inputs.now, inputs.card.fetched_at) + (inputs.card.age_header or 0)


def _max_age(inputs: Inputs) -> int | None:
    if inputs.card is None:
        return None
    return 0 if inputs.card.no_cache else inputs.card.max_age


def _hints_since_fetch(inputs: Inputs) -> list[Hint]:
    return [hint for hint in inputs.hints if inputs.card is not None and hint.at >= inputs.card.fetched_at]


def _past_submitted(state: str) -> bool:
    """Say whether a sibling is seen past `submitted`; one that was never sent cannot be disturbed either."""
    return state in {ADOPTED, INTENDED} or STATES.get(state, "submitted") != "submitted"


def _comes_back(contract: str, later: list[str]) -> bool:
    other = next((at for at, one in enumerate(later) if one != contract), None)
    return other is not None and contract in later[other:]
