"""What a freshness decision is made from: typed, and read from JSON (docs/format.md section 9)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, cast

from a2a_ledger.codec import timestamp
from a2a_ledger.events import Json
from a2a_ledger.freshness.member_reader import MemberReader

if TYPE_CHECKING:
    from a2a_ledger.events import JsonObject

INTENDED = "intended"
SENT = "sent"
ADOPTED = "adopted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A signed manifest with a TTL floor."""

    valid: bool
    floor_until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CardEntry:
    """The stored card of this peer, kind and caller."""

    fetched_at: datetime
    kind: str = "public"
    caller: str = "anonymous"
    age_header: int | None = None
    """Seconds, from `Age` (RFC 9111 section 5.1)."""
    max_age: int | None = None
    """Seconds, from `Cache-Control`."""
    no_cache: bool = False
    etag: str | None = None
    last_modified: str | None = None
    version: str | None = None
    """Of the interface to be used; None: the card does not state one."""
    contract: str | None = None
    """`sha256:<hex>`; None: the card could not be captured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Validator:
    """How the peer has treated conditional requests for this card."""

    present: bool
    last: str = "never"
    """304, other-tag, same-tag (200 although the tag is the same) or never (not asked yet)."""
    lied: bool = False
    """Same tag, other content; and no 304 since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskState:
    """Where the task stands: intended, sent, adopted, or the state that the peer last spelled."""

    state: str = INTENDED


@dataclass(frozen=True, slots=True, kw_only=True)
class Sibling:
    """Another task of the same peer and caller."""

    state: str
    sent_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """Something that speaks against the stored card.

    Kind `contract-finding` is a certain finding of the contract class; every other kind (`401`,
    `echoed-hash`) is a hint only.
    """

    kind: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A contract that this peer served, in the order of the log."""

    at: datetime
    contract: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Seconds."""

    contract: int = 60
    capability: int = 300
    cache: int = 86_400
    sibling: int = 30
    flap: int = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What the deployment's profile chooses where the table leaves a choice."""

    sibling: str = "proceed"
    skew: str = "proceed"
    failed: str = "proceed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refetch:
    """What the one re-fetch, or the discovery, brought."""

    outcome: str
    """304, same (prose included), capability, unclassified, contract, undecidable or failed."""
    etag: str | None = None


OUTCOMES = ("304", "same", "capability", "unclassified", "contract", "undecidable", "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """Everything that a decision is made from, and nothing else."""

    now: datetime
    transport: str = "network"
    """network or in-process."""
    manifest: Manifest | None = None
    card: CardEntry | None = None
    validator: Validator = Validator(present=False)
    task: TaskState = TaskState()
    siblings: tuple[Sibling, ...] = ()
    client_versions: tuple[str, ...] = ()
    """Major.Minor versions that the client's state machine was made for."""
    hints: tuple[Hint, ...] = ()
    contracts_seen: tuple[Sighting, ...] = ()
    limits: Limits = Limits()
    profile: Choices = Choices()
    refetch: Refetch | None = None
    """None: the first question, may I re-fetch. Given: the second, may I send."""

    def to_json(self) -> JsonObject:
        """Return the inputs as the JSON object that `inputs_from_json` reads, every member present."""
        return {
            "now": timestamp(self.now),
            "transport": self.transport,
            "manifest": None if self.manifest is None else _members(self.manifest),
            "card": None if self.card is None else _members(self.card),
            "validator": _members(self.validator),
            "task": {"state": self.task.state},
            "siblings": [{"state": one.state, "sent_at": timestamp(one.sent_at)} for one in self.siblings],
            "client_versions": list[Json](self.client_versions),
            "hints": [{"kind": one.kind, "at": timestamp(one.at)} for one in self.hints],
            "contracts_seen": [{"at": timestamp(one.at), "contract": one.contract} for one in self.contracts_seen],
            "limits": _members(self.limits),
            "profile": _members(self.profile),
            "refetch": None if self.refetch is None else _members(self.refetch),
        }


def _members(value: Manifest | CardEntry | Validator | Limits | Choices | Refetch) -> JsonObject:
    """Return an object whose members are plain values and times."""
    named = {name: getattr(value, name) for name in value.__slots__}
    return {name: timestamp(held) if isinstance(held, datetime) else held for name, held in named.items()}


def inputs_from_json(value: Json, *, now: datetime | None = None) -> tuple[Inputs, list[str]]:
    """Read the inputs of a decision.

    Args:
        value: the JSON of docs/format.md section 9.
        now: read in place of a missing member `now`; without it a missing `now` is an error.

    Returns:
        The inputs, and the members that were missing and had to be assumed, as dotted paths, sorted.

    Raises:
        UsageError: an unknown member, a wrong type, or a missing member that cannot be assumed; the
            message names the member, what was expected and what was found.
    """
    root = MemberReader(value, "", [], subject="freshness inputs")
    card = root.optional("card", _card)
    inputs = Inputs(
        now=root.time("now", now),
        transport=root.choice("transport", ("network", "in-process"), "network"),
        manifest=root.optional("manifest", _manifest),
        card=card,
        validator=_validator(root, card),
        task=_task(root.inner("task")),
        siblings=tuple(_sibling(item) for item in root.items("siblings")),
        client_versions=_client_versions(root, card),
        hints=tuple(_hint(item) for item in root.items("hints")),
        contracts_seen=tuple(_sighting(item) for item in root.items("contracts_seen")),
        limits=_limits(root.inner("limits")),
        profile=_choices(root.inner("profile")),
        refetch=root.optional("refetch", _refetch),
    )
    root.done()
    return inputs, sorted(root.assumed)


def _manifest(read: MemberReader) -> Manifest:
    return read.done_with(Manifest(valid=read.boolean("valid"), floor_until=read.time("floor_until")))


def _card(read: MemberReader) -> CardEntry:
    return read.done_with(
        CardEntry(
            fetched_at=read.time("fetched_at"),
            kind=read.text("kind", "public"),
            caller=read.text("caller", "anonymous"),
            age_header=read.seconds_or_null("age_header"),
            max_age=read.seconds_or_null("max_age"),
            no_cache=read.boolean("no_cache", default=False),
            etag=read.text_or_null("etag"),
            last_modified=read.text_or_null("last_modified"),
            version=read.text_or_null("version"),
            contract=read.text_or_null("contract"),
        )
    )


def _validator(root: MemberReader, card: CardEntry | None) -> Validator:
    read = root.inner("validator")
    tagged = card is not None and (card.etag is not None or card.last_modified is not None)
    return read.done_with(
        Validator(
            present=read.boolean("present", default=tagged),
            last=read.choice("last", ("304", "other-tag", "same-tag", "never"), "never"),
            lied=read.boolean("lied", default=False),
        )
    )


def _task(read: MemberReader) -> TaskState:
    return read.done_with(TaskState(state=read.text("state", INTENDED)))


def _sibling(read: MemberReader) -> Sibling:
    return read.done_with(Sibling(state=read.text("state"), sent_at=read.time("sent_at")))


def _hint(read: MemberReader) -> Hint:
    return read.done_with(Hint(kind=read.text("kind"), at=read.time("at")))


def _sighting(read: MemberReader) -> Sighting:
    return read.done_with(Sighting(at=read.time("at"), contract=read.text("contract")))


def _client_versions(root: MemberReader, card: CardEntry | None) -> tuple[str, ...]:
    """Read the client's versions; a client of which nothing is said is taken to speak the card's."""
    if root.has("client_versions"):
        return root.texts("client_versions")
    root.assumed.append("client_versions")
    return (card.version,) if card is not None and card.version is not None else ()


def _limits(read: MemberReader) -> Limits:
    return read.done_with(
        Limits(**{field.name: read.seconds(field.name, cast("int", field.default)) for field in fields(Limits)})
    )


def _choices(read: MemberReader) -> Choices:
    return read.done_with(
        Choices(
            sibling=read.choice("sibling", ("proceed", "wait", "abort"), "proceed"),
            skew=read.choice("skew", ("proceed", "abort"), "proceed"),
            failed=read.choice("failed", ("proceed", "abort"), "proceed"),
        )
    )


def _refetch(read: MemberReader) -> Refetch:
    return read.done_with(Refetch(outcome=read.choice("outcome", OUTCOMES), etag=read.text_or_null("etag")))
