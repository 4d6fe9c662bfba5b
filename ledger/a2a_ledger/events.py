"""Frozen facts: the stable names, versions and fields of every event. No behaviour.

One dataclass an event; its `TYPE` is the name that is stored, never a Python path. A field of
type `X | None` is optional and is left out of the record when it is None; every other field is
required. Field names are the JSON names of docs/format.md, which has one table an event; a test
holds the two together. A new field is optional; a changed meaning is a new version under a new
name; old versions stay readable for ever.

Values are JSON of the record profile only (docs/format.md section 3): no floats, integers within
±(2^53-1), strings of Unicode scalar values. Free text from the wire is never a field: it is a blob.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias, TypedDict

Json: TypeAlias = "bool | int | str | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = "dict[str, Json]"


class Ref(TypedDict):
    """How an event refers to another: found by (stream, ver), checked by c."""

    c: str
    stream: str
    ver: int


class Interface(TypedDict):
    """The interface that a task uses: binding, Major.Minor version (null = not stated), url, tenant."""

    binding: str
    tenant: str
    url: str
    version: str | None


class Credential(TypedDict):
    """A credential that was carried: the scheme's name, the operator's own mark of it, and the mark's key id."""

    k: str
    mac: str
    scheme: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What every event may say besides its own fields."""

    TYPE: ClassVar[str] = ""

    stream_commitment: str | None = None  # set by the store in version 0 of every stream that is not a task's
    holes: JsonObject | None = None  # set by the codec: how many holes each blob has that has any, by role
    claimed_at: str | None = None  # how = import: the time that the source claims, as it spells it
    source_file: str | None = None  # how = import: SHA-256 of the file; `source` is what a card fetch says of itself
    line: int | None = None  # how = import: line of the source file, from 1
    run: int | None = None  # how = import: which import of that file this is, from 2; absent: the first
    entry: str | None = None  # how = import: in the last record of an exchange, a keyed digest of all of it


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerOpened(Event):
    """A log begins."""

    TYPE: ClassVar[str] = "ledger.opened.v1"

    origin: str
    nonce: str  # 32 random bytes, hex
    software: str
    keys: list[str]  # vkeys in use
    predecessor: JsonObject | None = None  # a successor log quotes the old log's mark: {"origin", "mark"}


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyAdded(Event):
    """A key speaks for one role from the next head on."""

    TYPE: ClassVar[str] = "key.added.v1"

    key_id: str  # 8 hex digits of the vkey
    public_key: str  # hex
    role: str  # log statement export witness peer
    vkey: str
    old: str | None = None  # hand-over: the vkey that it follows
    signature_new: str | None = None  # hex, over the hand-over message
    signature_old: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRetired(Event):
    """A key stops speaking for its role."""

    TYPE: ClassVar[str] = "key.retired.v1"

    key_id: str
    role: str
    vkey: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRevoked(Event):
    """A key is not to be trusted for heads larger than `size`."""

    TYPE: ClassVar[str] = "key.revoked.v1"

    key_id: str
    role: str
    vkey: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CardFetched(Event):
    """A card fetch was answered: a 304, or a 2xx with a card or, flag `not-a-card`, something else.

    Blobs: body, url (if it has a query), headers.
    """

    TYPE: ClassVar[str] = "card.fetched.v1"

    peer: str  # peer id, 32 hex digits
    peer_url: str  # the url that the peer id is made from
    url: str  # asked, without query; with a query the whole is in blob `url`
    answered_url: str  # after redirects, without query
    source: str  # well-known extended registry configured
    purpose: str  # discovery pre-send lazy diagnostic application
    caller: str  # caller class: anonymous, or the credential's scheme names joined by +
    status: int
    flags: list[str]
    form: str
    raw_hash: str | None = None  # of a 304: those of the fetch that it points to
    document_hash: str | None = None
    contract_hash: str | None = None
    seed0: str | None = None
    dialect: str | None = None
    interfaces: list[Interface] | None = None
    api_keys: list[str] | None = None  # where it puts API keys: in:name:scheme, percent-encoded
    signature: JsonObject | None = None  # {"status", "kid", "form", "covers_contract"}
    not_modified: Ref | None = None  # 304: the fetch whose bytes still stand
    asked_etag: str | None = None
    asked_modified_since: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    max_age: int | None = None  # seconds, from Cache-Control
    age: int | None = None  # seconds, from Age
    no_cache: bool | None = None
    date: str | None = None
    task: str | None = None  # the task in whose context the application asked
    credential: list[Credential] | None = None  # marks of what the request carried that may select a card
    variant: str | None = None  # with a query: first 16 hex digits of SHA-256 of the redacted url
    asked_version: str | None = None  # A2A-Version sent
    within: Ref | None = None  # the message whose body held the card, where it came as the answer of a method
    reader: str | None = None  # of a proxy: mark of the client's program, 32 hex digits
    connection: str | None = None  # of a proxy: mark of the connection that it was read on, 32 hex digits


@dataclass(frozen=True, slots=True, kw_only=True)
class CardFetchFailed(Event):
    """A card fetch brought no 2xx and no 304. Blobs: body, error, headers."""

    TYPE: ClassVar[str] = "card.fetch_failed.v1"

    peer: str
    peer_url: str
    url: str
    answered_url: str
    source: str
    purpose: str
    caller: str
    outcome: str  # no-answer timeout tls-error status error
    status: int | None = None
    tls_alert: str | None = None
    asked_etag: str | None = None
    asked_modified_since: str | None = None
    task: str | None = None
    credential: list[Credential] | None = None
    variant: str | None = None
    asked_version: str | None = None
    within: Ref | None = None  # the message that said so, where a method was called


@dataclass(frozen=True, slots=True, kw_only=True)
class CardManifest(Event):
    """A signed manifest with a TTL floor. Blob: manifest."""

    TYPE: ClassVar[str] = "card.manifest.v1"

    peer: str
    peer_url: str
    raw_hash: str
    contract_hash: str
    form: str
    floor_until: str
    status: str  # valid expired bad-signature unknown-key
    issued_at: str | None = None
    key_id: str | None = None  # of the key whose signature verified
    who: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CardKeyAdded(Event):
    """A key is trusted for the signatures of one peer's cards from here on."""

    TYPE: ClassVar[str] = "card_key.added.v1"

    peer: str
    peer_url: str
    kid: str
    thumbprint: str  # RFC 7638, SHA-256, base64url
    jwk: JsonObject  # RFC 7517, public members only
    who: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CardKeyRetired(Event):
    """A key is no longer trusted for the signatures of one peer's cards."""

    TYPE: ClassVar[str] = "card_key.retired.v1"

    peer: str
    peer_url: str
    kid: str
    thumbprint: str
    who: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractAccepted(Event):
    """A changed contract, or changed terms of one contract, were taken on after an abort. Blob: diff."""

    TYPE: ClassVar[str] = "contract.accepted.v1"

    peer: str
    old_hash: str
    new_hash: str
    form: str
    authorization: str  # same stricter weaker incomparable
    pointers: list[str]
    acceptance: str  # auto not-weaker manual
    who: str
    fetch: Ref
    card_ids: list[str] | None = None  # see ContractCaptured
    profile_hash: str | None = None
    old_terms: str | None = None  # hash under that profile; None: unknown, for octets of the card were cut out
    new_terms: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CardServed(Event):
    """The card that we serve. Blob: body."""

    TYPE: ClassVar[str] = "card.served.v1"

    url: str
    raw_hash: str
    document_hash: str | None
    contract_hash: str | None
    form: str
    status: int
    variant: str | None = None  # as of a card that is fetched
    caller: str | None = None  # who asked, likewise
    asked_version: str | None = None
    fetch: Ref | None = None  # of a proxy that rewrites cards: the fetch of the card that this one was made from


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshnessDecided(Event):
    """A freshness decision with every input it was made from (docs/format.md section 9)."""

    TYPE: ClassVar[str] = "freshness.decided.v1"

    peer: str
    decision: str
    reason: str
    at_stake: str
    inputs: JsonObject
    rules: str  # version of the decision table
    retry_after: int | None = None
    old_tag: str | None = None
    new_tag: str | None = None
    answer_age_us: int | None = None  # from the last card answer to this record, which precedes the first byte sent
    card: Ref | None = None  # the fetch that the client was built from
    refetch: Ref | None = None  # the one re-fetch
    change: str | None = None  # class of the change that the re-fetch brought
    manifest: Ref | None = None  # the manifest that was looked at, valid or not


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractCaptured(Event):
    """The contract is frozen for this task. Blobs: contract, terms."""

    TYPE: ClassVar[str] = "contract.captured.v1"

    peer: str
    peer_url: str
    fetch: Ref | None  # None: no card was ever seen (imported material only)
    raw_hash: str | None
    document_hash: str | None
    contract_hash: str | None
    form: str
    seed0: str | None
    terms_hash: str | None
    terms_form: str
    profile_hash: str
    interface: Interface
    extensions: list[str]  # activated by the task
    credential: list[str]  # scheme names offered; empty: none, or none that can be seen
    credential_visible: bool  # False: mutual TLS, egress proxy: what was carried cannot be seen here
    pin: JsonObject | None  # what was attached
    caller: str
    skill: str | None = None
    card_ids: list[str] | None = None  # what its card is looked up by, section 4: the lookup tag `agreed`
    side: str | None = (
        None  # "server": frozen by the agent, from the card served last; "proxy": for all clients behind it
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractReconstructed(ContractCaptured):
    """The same, made from imported material: never called captured."""

    TYPE: ClassVar[str] = "contract.reconstructed.v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class SendAborted(Event):
    """Nothing left. Blob: diff."""

    TYPE: ClassVar[str] = "send.aborted.v1"

    peer: str
    reason: str
    card_gets: int
    requests: int  # always 0
    old_hash: str | None = None
    new_hash: str | None = None
    form: str | None = None
    authorization: str | None = None
    pointers: list[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRecorded(Event):
    """One leg of an exchange. Blobs: body, url (if it has a query), error, header.00 to header.15."""

    TYPE: ClassVar[str] = "message.recorded.v1"

    peer: str
    direction: str  # out in
    leg: str  # request response stream-event stream-end push error
    binding: str  # JSONRPC HTTP+JSON GRPC unknown
    url: str  # without query and user info
    method: str | None = None  # the operation's 1.0 name, SendMessage and so on
    method_spelled: str | None = None
    wire_version: str | None = None  # Major.Minor by header, else by method spelling
    http_method: str | None = None
    status: int | None = None
    message_id: str | None = None
    task_id: str | None = None  # the peer's
    context_id: str | None = None
    state: str | None = None  # as spelled
    state_read: str | None = None  # as understood; None: not one that A2A knows
    pin: JsonObject | None = None  # echoed by the peer in a Task's own metadata
    pin_seen: bool | None = None  # the leg holds a full Task, so absence of a pin means something
    answers: Ref | None = None  # the request that it answers
    credential: list[Credential] | None = None
    extensions: list[str] | None = None  # asked for (out) or activated (in)
    sequence: int | None = None  # of a stream event, from 0
    error_code: int | None = None  # of a JSON-RPC or ErrorInfo error
    error_kind: str | None = None  # leg error: timeout connect tls closed cancelled other
    tls_alert: str | None = None
    trace: str | None = None  # trace id of traceparent
    flags: list[str] | None = None  # not-json duplicate-keys bad-sse truncated oversize-id unrepresentable
    tenant: str | None = None
    side: str | None = None  # "server": recorded by the agent, a request came in; None: by the client


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskBound(Event):
    """The peer gave the task its ids."""

    TYPE: ClassVar[str] = "task.bound.v1"

    peer: str
    task_id: str
    answers: Ref
    context_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAdopted(Event):
    """First seen past `submitted`: recorded, not judged."""

    TYPE: ClassVar[str] = "task.adopted.v1"

    peer: str
    peer_url: str
    task_id: str
    context_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSnapshot(Event):
    """What a task store held, as its exporter says: nobody's word on the wire, and never judged. Blob: body."""

    TYPE: ClassVar[str] = "task.snapshot.v1"

    peer: str  # peer id, or the first 32 hex digits of the file's SHA-256 where nothing says whose task it is
    task_id: str
    context_id: str | None = None
    state: str | None = None  # as spelled
    state_read: str | None = None
    flags: list[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ViolationDetected(Event):
    """A signed finding. Blob: statement (DSSE envelope)."""

    TYPE: ClassVar[str] = "violation.detected.v1"

    rule: str
    rule_class: str  # contract authorization protocol card own-conduct error-surface
    about: str  # peer client either
    certainty: str  # certain claimed suspected
    basis: str  # live import
    rule_set: str
    profile_hash: str
    peer: str
    subject: str  # (rule, rule set, profile, trigger, subject) occurs once
    trigger: Ref
    trigger_index: int
    evidence: list[Ref]
    evidence_index: list[int]
    observed: JsonObject
    not_established: list[str]
    statement_sha256: str
    frozen_hash: str | None = None
    frozen_form: str | None = None
    task: str | None = None
    tasks: list[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingAcknowledged(Event):
    """Somebody has seen a finding and says why it may stand."""

    TYPE: ClassVar[str] = "finding.acknowledged.v1"

    violation: Ref
    who: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointAnchored(Event):
    """A checkpoint of ours with a holder's own signature or token, or a peer's that we hold. Blobs: note, token."""

    TYPE: ClassVar[str] = "checkpoint.anchored.v1"

    origin: str
    size: int
    root: str
    holder: str
    kind: str  # cosignature rfc3161 peer


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentErased(Event):
    """Content of this task is gone on somebody's request."""

    TYPE: ClassVar[str] = "content.erased.v1"

    scope: str
    records: list[Ref]
    requested_by: str
    reason: str
    out_of_reach: str | None = None


EVENT_TYPES: dict[str, type[Event]] = {
    cls.TYPE: cls
    for cls in (
        LedgerOpened,
        KeyAdded,
        KeyRetired,
        KeyRevoked,
        CardFetched,
        CardFetchFailed,
        CardManifest,
        CardKeyAdded,
        CardKeyRetired,
        ContractAccepted,
        CardServed,
        FreshnessDecided,
        ContractCaptured,
        ContractReconstructed,
        SendAborted,
        MessageRecorded,
        TaskBound,
        TaskAdopted,
        TaskSnapshot,
        ViolationDetected,
        FindingAcknowledged,
        CheckpointAnchored,
        ContentErased,
    )
}
"""The closed table from stored name to class."""
