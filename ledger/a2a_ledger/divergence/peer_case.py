"""One peer so far: its card fetches, the tags it gave them, and the tasks sent since the last whole card.

Folded from the peer's own stream and the captures of its tasks, in order of the log. Imported
material is kept apart, one history a source file: what a file says about its own time is no
observation of ours at the time of the import.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from a2a_ledger.address import normal_url
from a2a_ledger.divergence.cut import header_is_cut, url_is_cut
from a2a_ledger.divergence.finding import RULE_SET, Evidence, evidence_of
from a2a_ledger.divergence.reading import (
    CAPTURED,
    CARD_FAILED,
    CARD_FETCHED,
    RECONSTRUCTED,
    frozen_of,
    members,
    number,
    ref,
    text,
    texts,
)
from a2a_ledger.divergence.readings import READINGS
from a2a_ledger.events import Ref

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.codec import Record
    from a2a_ledger.divergence.reading import Frozen, Lookup
    from a2a_ledger.divergence.readings import Readings
    from a2a_ledger.events import Json, JsonObject

LISTED = 64
"""Tasks of one kind that a window lists; of more it counts them."""
KINDS = 256
"""Kinds of tasks that a window tells apart; tasks of yet another kind are not looked at."""
TAGS = 1024
"""Tags and reports of one peer that are remembered, the newest."""

_OK = 200
_TRUSTED_KEYS = frozenset({"policy", "ledger"})

_K = TypeVar("_K")
_V = TypeVar("_V")


class CardKey(NamedTuple):
    """One agent has several true cards at once: by where it was asked, by whom, and out of which material.

    docs/format.md section 7.8. A token that was renewed makes no other card, but of an extended one, which is made
    for its caller.
    """

    source: str
    caller: str
    material: str
    """Empty for what we saw live, else the SHA-256 of the imported file, and which import of it this is from 2 on."""
    url: str
    variant: str
    version: str
    """`A2A-Version` asked for."""
    credential: tuple[str, ...]
    """Of an extended card: the marks of what it was asked for with."""


class Fetch(NamedTuple):
    """One answered card fetch, as far as the rules need it."""

    evidence: Evidence
    raw_hash: str | None
    document_hash: str | None
    contract_hash: str | None
    form: str
    last_modified: str | None


@dataclass(slots=True)
class Sent:
    """Tasks of one kind in a window: the same interface, skill and credential."""

    frozen: Frozen
    count: int = 0
    tasks: list[tuple[str, Evidence]] = field(default_factory=list[tuple[str, Evidence]])


@dataclass(slots=True)
class Window:
    """What lies behind the newest whole card of one key."""

    opened: Fetch
    sent: dict[tuple[str, ...], Sent] = field(default_factory=dict[tuple[str, ...], Sent])


@dataclass(slots=True)
class PeerCase:
    """The fold over one peer."""

    peer: str
    rule_set: str = RULE_SET
    ver: int = -1
    """Version of the peer's stream."""
    upto: int = -1
    """Log index of the last event that was taken in."""
    windows: dict[CardKey, Window] = field(default_factory=dict[CardKey, Window])
    tags: dict[tuple[str, ...], Fetch] = field(default_factory=dict[tuple[str, ...], Fetch])
    reported: dict[tuple[str, str], None] = field(default_factory=dict[tuple[str, str], None])
    last_fetch: dict[str, tuple[Evidence, Ref]] = field(default_factory=dict[str, tuple[Evidence, Ref]])
    """By material: the newest fetch of any purpose, with the fetch whose bytes it speaks of."""
    last_undeclared: dict[str, tuple[Evidence, Ref]] = field(default_factory=dict[str, tuple[Evidence, Ref]])
    """By material: the newest fetch that the application made without saying why."""
    keys: dict[str, CardKey] = field(default_factory=dict[str, CardKey])
    """By a fetch's commitment: which card it asked for."""
    signed: dict[CardKey, Evidence] = field(default_factory=dict[CardKey, Evidence])
    """The newest fetch of each card whose signature was valid under a trusted key."""
    last_sent: dict[str, int] = field(default_factory=dict[str, int])
    """By material: log index of the newest task's capture."""

    @property
    def readings(self) -> Readings:
        """How the rule set reads."""
        return READINGS[self.rule_set]

    def apply(self, record: Record, lookup: Lookup) -> None:
        """Take in the next event of the peer's stream, or a capture of one of its tasks."""
        self.upto = record.n
        if record.stream == f"peer:{self.peer}":
            self.ver = record.ver
        match record.type:
            case "card.fetched.v1":
                self._fetched(record)
            case "card.fetch_failed.v1":
                self._asked(record, record.ref)
            case "contract.captured.v1" | "contract.reconstructed.v1":
                self._sent(record, lookup)
            case _:
                pass

    def window_of(self, fetch: Ref | None, lookup: Lookup) -> Window | None:
        """Return the window that a capture from this fetch falls into: behind the newest whole card of its key."""
        key = None if fetch is None else self.keys.get(fetch["c"])
        if key is None and fetch is not None and (fetched := lookup(fetch)) is not None:
            key = self.key_of(fetched)
        return None if key is None else self.windows.get(key)

    def newest_sent(self, record: Record) -> int:
        """Return where the newest task was captured, of those whose order with a record is known; -1: nowhere."""
        return self.last_sent.get(self._in_order_with(record), -1)

    def _in_order_with(self, record: Record) -> str:
        return self.material_of(record) if self.readings.by_source else ""

    def material_of(self, record: Record) -> str:
        """Name the material that a record comes from: empty for live, else the imported file and the run over it.

        Each run begins with the file's first card again: behind the last one of the run before it, nothing changed.
        """
        material = _material(record.data, record.how)
        run = number(record.data, "run") if self.readings.by_run and material else None
        return material if run is None else f"{material}#{run}"

    def key_of(self, record: Record) -> CardKey:
        """Return which of the agent's cards a fetch asked for; one whose url was cut is like no other."""
        key = card_key(record.data, record.how)._replace(material=self.material_of(record))
        cut = self.readings.heeds_cuts and url_is_cut(record)
        return key._replace(url=f"{key.url}#{record.c}") if cut else key

    def tag_of(self, record: Record) -> tuple[str, ...] | None:
        """Return the entity tag of a whole answer, with what it is a tag of; None: it has none, or one that was cut."""
        data = record.data
        etag = text(data, "etag")
        if etag is None or number(data, "status") != _OK or text(data, "raw_hash") is None:
            return None
        if self.readings.heeds_cuts and "*" in etag and header_is_cut(record, "etag"):
            return None
        key = self.key_of(record)
        return (*key[:-1], *key.credential, text(data, "answered_url") or "", etag)

    def report(self, rule: str, subject: str) -> None:
        """Remember that this was found, for the rules that speak once a card or a tag."""
        _remember(self.reported, (rule, subject), None)

    def _asked(self, record: Record, bytes_of: Ref) -> None:
        material = self.material_of(record)
        self.last_fetch[material] = (evidence_of(record), bytes_of)
        if record.data.get("purpose") == "application":
            self.last_undeclared[material] = (evidence_of(record), bytes_of)

    def _fetched(self, record: Record) -> None:
        _remember(self.keys, record.ref["c"], self.key_of(record))
        not_modified = ref(record.data, "not_modified")
        self._asked(record, not_modified or record.ref)
        if not_modified is not None:
            return  # a claim of the server: it opens and closes no window
        fetch = fetch_of(record)
        tag = self.tag_of(record)
        if tag is not None and tag not in self.tags:
            _remember(self.tags, tag, fetch)
        if is_whole(record):
            self.windows[self.key_of(record)] = Window(fetch)
        if trusted_signature(record) == "valid":
            _remember(self.signed, self.key_of(record), fetch.evidence)

    def _sent(self, record: Record, lookup: Lookup) -> None:
        if record.data.get("side") == "server":
            return  # a task that the peer sent to us
        self.last_sent[self._in_order_with(record)] = record.n
        window = self.window_of(ref(record.data, "fetch"), lookup)
        frozen = frozen_of(record)
        if window is None or frozen.contract is None:
            return
        used = frozen.interface
        kind = (
            *(used["binding"], used["url"], used["tenant"], used["version"] or ""),
            frozen.skill or "",
            str(frozen.credential_visible),
            frozen.contract_hash or "",
            *frozen.credential,
        )
        if kind not in window.sent and len(window.sent) >= KINDS:
            return
        sent = window.sent.setdefault(kind, Sent(frozen))
        sent.count += 1
        if len(sent.tasks) < LISTED:
            sent.tasks.append((record.stream.removeprefix("task:"), evidence_of(record)))


PEER_EVENTS = frozenset({CAPTURED, CARD_FAILED, CARD_FETCHED, RECONSTRUCTED})
"""The events that change a peer's case."""


def _material(data: JsonObject, how: str) -> str:
    return (text(data, "source_file") or "import") if how == "import" else ""


def card_key(data: JsonObject, how: str) -> CardKey:
    """Return the same of a fetch's fields, and where its record comes from."""
    source = text(data, "source") or ""
    return CardKey(
        source,
        text(data, "caller") or "",
        _material(data, how),
        normal_url(text(data, "url") or ""),
        text(data, "variant") or "",
        text(data, "asked_version") or "",
        tuple(sorted(_marks(data.get("credential")))) if source == "extended" else (),
    )


def _marks(credential: Json) -> Iterator[str]:
    for mark in credential if isinstance(credential, list) else []:
        yield text(members(mark), "mac") or ""


def fetch_of(record: Record) -> Fetch:
    """Keep of a fetch what later fetches are compared with."""
    data = record.data
    return Fetch(
        evidence_of(record),
        text(data, "raw_hash"),
        text(data, "document_hash"),
        text(data, "contract_hash"),
        text(data, "form") or "",
        text(data, "last_modified"),
    )


def is_whole(record: Record) -> bool:
    """Say whether a fetch brought a card whose contract is known: only such a one opens or closes a window."""
    flags = texts(record.data.get("flags"))
    return (
        number(record.data, "status") == _OK
        and text(record.data, "contract_hash") is not None
        and "lossy" not in flags
        and "not-a-card" not in flags
    )


def trusted_signature(record: Record) -> str | None:
    """Return what a trusted key says of a card's signature, `valid` or `invalid`; None: no trusted key decided.

    A key inside the card proves that the card is whole, never who signed it.
    """
    signature = members(record.data.get("signature"))
    status = text(signature, "status")
    trusted = text(signature, "key") in _TRUSTED_KEYS
    return status if trusted and status in {"valid", "invalid"} else None


def _remember(held: dict[_K, _V], key: _K, value: _V) -> None:
    """Keep an entry, and of all entries the newest ones."""
    held[key] = value
    if len(held) > TAGS:
        del held[next(iter(held))]
