"""What a rule says: the finding, and the table of rules with their class and what they leave open.

A finding is a function of the log up to and including its trigger (docs/format.md section 10;
docs/rules.md says of every rule what it establishes and what it does not).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.wire.jsontext import as_scalar_text

if TYPE_CHECKING:
    from a2a_ledger.codec import Record
    from a2a_ledger.events import Json, JsonObject, Ref

RULE_SET = "2"
"""Version of the rules, written into every violation."""

CONTRACT = "contract"
AUTHORIZATION = "authorization"
PROTOCOL = "protocol"
CARD = "card"
OWN_CONDUCT = "own-conduct"
ERROR_SURFACE = "error-surface"

_BREACH = "that the peer broke A2A: the protocol is silent on a card that changes during a task"


class Rule(NamedTuple):
    """A rule's class, and the sentences that every finding of it leaves open."""

    rule_class: str
    not_established: tuple[str, ...]


RULES: dict[str, Rule] = {
    "pin-mismatch": Rule(CONTRACT, (_BREACH, "which of the two contracts the peer works under")),
    "version-skew": Rule(CONTRACT, (_BREACH, "that the message was misunderstood")),
    "auth-demand": Rule(
        CONTRACT,
        (_BREACH, "that the demand was unjustified", "that the client held no such credential"),
    ),
    "interface-drift": Rule(CONTRACT, (_BREACH, "that somebody else answered at the other interface")),
    "extension-dropped": Rule(
        CONTRACT,
        (_BREACH, "that the peer noticed", "that the extension would have changed what the peer did"),
    ),
    "auth-not-exercised": Rule(
        AUTHORIZATION,
        (
            "that the peer would have refused a wrong credential",
            "that no credential was added behind the recorder (a proxy, a TLS client certificate)",
        ),
    ),
    "weaker-authorization": Rule(
        AUTHORIZATION,
        (
            "when between the two fetches the peer's contract changed",
            "that the newer requirement was in force when the task was sent or while it ran",
            "that anybody used the weaker authorization",
        ),
    ),
    "illegal-transition": Rule(
        PROTOCOL, ("which of the two states is the true one", "what the peer's own store holds")
    ),
    "unknown-state": Rule(PROTOCOL, ("what the peer meant by it",)),
    "identity-swap": Rule(PROTOCOL, ("whose task or context the other id is",)),
    "history-divergence": Rule(
        PROTOCOL,
        (
            "which of the two is true of the peer's own store",
            "that anything was deleted: histories may be trimmed and prove nothing by what they lack",
        ),
    ),
    "artifact-rewritten": Rule(
        PROTOCOL, ("which of the two contents is meant to count", "that the peer meant to hide the change")
    ),
    "late-after-final": Rule(PROTOCOL, ("that a client missed what came late",)),
    "duplicate-id": Rule(PROTOCOL, ("which of the two contents the other side acted on",)),
    "duplicate-keys": Rule(PROTOCOL, ("which way anybody read the body", "that it was meant to be read two ways")),
    "pin-dropped": Rule(PROTOCOL, ("that the peer works under another contract",)),
    "validator-lied": Rule(
        CARD, ("that the peer meant to hide the change: a cache or a proxy may have kept the old tag",)
    ),
    "signature-broken": Rule(
        CARD,
        (
            "who changed the card or its signature",
            "that the contract changed: a signature and a contract are judged apart",
            "that the key is the peer's: it is one that the deployment trusted for it then",
        ),
    ),
    "halves-disagree": Rule(CARD, ("which half the peer enforces", "that a client was misled by it")),
    "refetch-as-input": Rule(
        OWN_CONDUCT, ("that the client acted because of the fetch: it establishes the order only",)
    ),
    "self-inflicted-cancel": Rule(
        OWN_CONDUCT,
        ("why the client cancelled: it establishes the order only", "that the task would have completed"),
    ),
    "rejected-after-probe": Rule(
        OWN_CONDUCT, ("that the peer rejected because of the fetch: it establishes the order only",)
    ),
    "task-error-mismatch": Rule(ERROR_SURFACE, (_BREACH, "that the peer's card changed")),
}
"""Every rule by its name."""

_SINCE_2 = frozenset(
    {
        "history-divergence",
        "artifact-rewritten",
        "late-after-final",
        "duplicate-id",
        "duplicate-keys",
        "extension-dropped",
        "signature-broken",
    }
)

VERIFIER = f"verifier-{RULE_SET}"
"""The follower that signs findings, by which its position is kept: under new rules it reads the log from the start."""

RULE_SETS: dict[str, frozenset[str]] = {"1": frozenset(RULES) - _SINCE_2, "2": frozenset(RULES)}
"""The rules of every rule set that can be judged by, oldest first; a reading of a rule never changes within a set."""


CUT = "cut"
"""Member of what was observed: where redaction cut what would have made a suspected finding of an answer certain."""


class Evidence(NamedTuple):
    """One event that shows a finding: where it lies, and what its leaf is made from."""

    n: int
    ref: Ref
    t: str
    """The leaf's stream tag, 64 hex digits."""


def evidence_of(record: Record) -> Evidence:
    """Keep of a record what a finding needs to point at it."""
    return Evidence(record.n, record.ref, record.t)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a rule of the verifier says about the log up to one event."""

    rule: str
    about: str
    """Who left the contract: peer, client, or either."""
    certainty: str
    """Certain (structured evidence on the wire), claimed (a party's own statement), suspected (free text)."""
    subject: str
    """With rule, rule set, profile and trigger it occurs once."""
    trigger: Evidence
    evidence: tuple[Evidence, ...]
    """In order of the log, the trigger among them."""
    peer: str
    basis: str
    """Live, or import: at least the contract or the trigger comes from imported material."""
    observed: JsonObject
    """Digests, pointers and short structured values, never content; U+FFFD for a lone surrogate, as in `subject`."""
    in_answer: bool = False
    """Its trigger is an answer, or an event of a stream, that a caller waits for."""
    task: str | None = None
    tasks: tuple[str, ...] = ()
    frozen_hash: str | None = None
    frozen_form: str | None = None
    rule_set: str = RULE_SET
    rule_class: str = field(init=False)
    not_established: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        rule = RULES[self.rule]
        object.__setattr__(self, "subject", as_scalar_text(self.subject))
        object.__setattr__(self, "observed", {name: _scalar(value) for name, value in self.observed.items()})
        object.__setattr__(self, "rule_class", rule.rule_class)
        object.__setattr__(self, "not_established", rule.not_established)

    @property
    def rejects(self) -> bool:
        """Say whether mode "enforce" refuses what shows it: an answer by which the peer left the contract, certainly.

        Our own request is sent when it is judged, and a push is delivered: both are found, and neither is refused.
        What is no more than suspected for something that redaction cut is refused too: the peer may have written
        our own secret there to have it cut.
        """
        breaks = self.rule_class == CONTRACT and (self.certainty == "certain" or CUT in self.observed)
        return breaks and self.about == "peer" and self.in_answer

    @property
    def is_certain_breach(self) -> bool:
        """Say whether somebody left the frozen contract, with certainty."""
        return self.rule_class == CONTRACT and self.certainty == "certain"

    @property
    def stream(self) -> str:
        """Name the stream of its violation: the peer's for the card class and for peer-wide findings."""
        return f"findings:peer:{self.peer}" if self.task is None else f"findings:{self.task}"


def _scalar(value: Json) -> Json:
    """Return a value as a record can hold it: names of the wire may have lone surrogates in them."""
    if isinstance(value, list):
        return [_scalar(item) for item in value]
    return as_scalar_text(value) if isinstance(value, str) else value


def in_order(*evidence: Evidence | None) -> tuple[Evidence, ...]:
    """Return the evidence in order of the log, each event once."""
    return tuple(sorted({item.n: item for item in evidence if item is not None}.values(), key=lambda item: item.n))
