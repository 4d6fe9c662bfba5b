"""What the log says about one peer's card: the material of a freshness decision.

Folded from the peer's own stream, newest records only at first and then what has been added, so
that a decision costs the same after ten fetches and after ten million. Everything a decision is
made from comes from events, so replay finds the same inputs (docs/format.md section 9).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar, cast

from a2a_ledger.capture.card_identity import CardIdentity, key_of
from a2a_ledger.freshness import Validator

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_ledger.codec import Record
    from a2a_ledger.events import Interface, Json, JsonObject, Ref

    from .reader import LogReader

_K = TypeVar("_K")
_V = TypeVar("_V")

RECENT = 512
"""Records of a peer's stream that are read when it is first met."""

SEEN = 32
"""Contract changes that are remembered for the flapping rule."""


_CARDS = 256
"""Cards of one peer that are told apart at most: the newest answers stay."""


@dataclass(frozen=True, slots=True)
class KeptCard:
    """The newest answer about one card: bytes fetched, or bytes said not to have changed."""

    n: int
    key: CardIdentity
    fetch: Ref  # the newest answer
    bytes_of: Ref  # the answer that brought the bytes; not the same after a 304
    url: str
    fetched_at: str
    contract_hash: str | None
    form: str
    raw_hash: str | None
    document_hash: str | None
    seed0: str | None
    etag: str | None
    last_modified: str | None
    max_age: int | None
    age: int | None
    no_cache: bool
    interfaces: tuple[Interface, ...]
    flags: tuple[str, ...]
    signature: JsonObject | None = None

    @property
    def source(self) -> str:
        """Where the card comes from: well-known, extended, registry or configured."""
        return self.key.source

    @property
    def caller(self) -> str:
        """Return the caller class that it was served to."""
        return self.key.caller

    @property
    def usable(self) -> bool:
        """Say whether a contract can be frozen from it."""
        return self.contract_hash is not None


@dataclass(slots=True)
class PeerView:
    """One peer as the log knows it up to `position` of its stream."""

    peer: str
    url: str = ""
    ver: int = -1
    cards: OrderedDict[CardIdentity, KeptCard] = field(default_factory=OrderedDict[CardIdentity, KeptCard])
    probes: OrderedDict[CardIdentity, KeptCard] = field(default_factory=OrderedDict[CardIdentity, KeptCard])
    """Newest diagnostics: they are a reason to ask again, and never a card to act on."""
    last_validation: dict[CardIdentity, str] = field(default_factory=dict[CardIdentity, str])
    lied: set[CardIdentity] = field(default_factory=set[CardIdentity])
    seen: dict[CardIdentity, list[tuple[str, str]]] = field(default_factory=dict[CardIdentity, list[tuple[str, str]]])
    latest: OrderedDict[tuple[str, str, str], str] = field(default_factory=OrderedDict[tuple[str, str, str], str])
    """When the card at each place was answered about last, by the latest of our clocks: one may be set back."""
    _standing: OrderedDict[tuple[CardIdentity, str], KeptCard] = field(
        default_factory=OrderedDict[tuple[CardIdentity, str], KeptCard]
    )

    def fold(self, records: Iterable[Record]) -> None:
        """Take in the next records of the peer's stream, in their order."""
        for record in records:
            self.ver = record.ver
            if record.type == "card.fetched.v1":
                self._fetched(record)

    def _fetched(self, record: Record) -> None:
        data = record.data
        key = key_of(data)
        self.url = _text(data["peer_url"])
        before = self.cards.get(key)
        probe = data.get("purpose") == "diagnostic"
        if not probe:
            self._validated(key, data)
        kept = kept_card(record, before=self._bytes_of(record) or before)
        if kept is None:
            return  # recorded, but no answer about the card
        _put(self.latest, key.place, max(record.at, self.latest.get(key.place, ""), key=_instant))
        if probe:
            _put(self.probes, key, kept)
            return
        if (
            before is not None
            and before.raw_hash != kept.raw_hash
            and before.etag is not None
            and not before.etag.startswith("W/")
            and before.etag == data.get("etag")
        ):
            self.lied.add(key)
        _put(self.cards, key, kept)
        if kept.contract_hash is not None:
            _put(self._standing, (key, kept.contract_hash), kept)
            seen = self.seen.setdefault(key, [])
            if not seen or seen[-1][1] != kept.contract_hash:
                self.seen[key] = [*seen[1 - SEEN :], (record.at, kept.contract_hash)]

    def _validated(self, key: CardIdentity, data: JsonObject) -> None:
        if data.get("asked_etag") is None and data.get("asked_modified_since") is None:
            return
        not_modified = data.get("not_modified") is not None
        self.last_validation[key] = _validation(data, not_modified=not_modified)
        if not_modified:
            self.lied.discard(key)  # honoured again (docs/format.md section 9: "and no 304 since")

    def _bytes_of(self, record: Record) -> KeptCard | None:
        """Return the kept answer whose bytes a 304 says still stand."""
        ref = record.data.get("not_modified")
        kept = reversed(self._standing.values()) if ref is not None else ()
        return next((one for one in kept if one.bytes_of == ref), None)

    def validator(self, key: CardIdentity) -> Validator:
        """Return how the peer has treated conditional requests for one card."""
        card = self.cards.get(key)
        present = card is not None and (card.etag is not None or card.last_modified is not None)
        return Validator(present=present, last=self.last_validation.get(key, "never"), lied=key in self.lied)

    def newest(self, key: CardIdentity) -> KeptCard | None:
        """Return the newest answer about this card, or None when it was never seen."""
        return self.cards.get(key)

    def newest_saying(self, key: CardIdentity, contract: str | None) -> KeptCard | None:
        """Return the newest answer about this card that says this contract."""
        return self._standing.get((key, contract)) if contract is not None else None

    def newest_at(self, place: tuple[str, str, str]) -> list[KeptCard]:
        """Return the newest answers at the place of a card, whoever asked, diagnostics among them, newest first."""
        there = [kept for held in (self.cards, self.probes) for kept in held.values() if kept.key.place == place]
        return sorted(there, key=lambda kept: -kept.n)

    def latest_at(self, place: tuple[str, str, str]) -> str | None:
        """Return the latest time of an answer at the place of a card, whoever asked, diagnostics among them."""
        return self.latest.get(place)

    def with_validator(self, key: CardIdentity, etag: str | None, modified_since: str | None) -> KeptCard | None:
        """Return the newest answer about this card with a validator; None: what a 304 says is not known."""
        standing = [kept for (of, _), kept in reversed(self._standing.items()) if of == key]
        for kept in [*filter(None, [self.cards.get(key)]), *standing]:
            if kept.etag == etag if etag is not None else kept.last_modified == modified_since:
                return kept
        return None


class PeerViews:
    """The peers of one ledger, each brought up to date before it is used; may be shared by threads."""

    def __init__(self, reader: LogReader) -> None:
        self._reader = reader
        self._views: dict[str, PeerView] = {}
        self._folding = threading.Lock()

    def of(self, peer: str) -> PeerView:
        """Return the view of one peer, with everything that is in the log now."""
        stream = f"peer:{peer}"
        with self._folding:
            view = self._views.get(peer)
            if view is None:
                view = self._views[peer] = PeerView(peer)
                view.fold(reversed(self._reader.read_stream(stream, limit=RECENT, desc=True)))
            else:
                view.fold(self._reader.read_stream(stream, gt=view.ver))
            return view


def kept_card(record: Record, *, before: KeptCard | None = None) -> KeptCard | None:
    """Read a `card.fetched.v1` as an answer about its card; None: what it brought is no card.

    Args:
        record: the event.
        before: the answer whose bytes it says still stand, whose validators stand with them.
    """
    data = record.data
    flags = tuple(_text(flag) for flag in cast("list[Json]", data["flags"]))
    if "not-a-card" in flags:
        return None
    not_modified = cast("Ref | None", data.get("not_modified"))
    stands = before if not_modified else None
    return KeptCard(
        n=record.n,
        key=key_of(data),
        fetch=record.ref,
        bytes_of=not_modified or record.ref,
        url=_text(data["url"]),
        fetched_at=record.at,
        contract_hash=_optional(data, "contract_hash"),
        form=_text(data["form"]),
        raw_hash=_optional(data, "raw_hash"),
        document_hash=_optional(data, "document_hash"),
        seed0=_optional(data, "seed0"),
        etag=_optional(data, "etag") or (stands.etag if stands else None),
        last_modified=_optional(data, "last_modified") or (stands.last_modified if stands else None),
        max_age=cast("int | None", data.get("max_age")),
        age=cast("int | None", data.get("age")),
        no_cache=data.get("no_cache") is True,
        interfaces=tuple(cast("list[Interface]", data.get("interfaces") or [])),
        flags=flags,
        signature=cast("JsonObject | None", data.get("signature")) or (stands.signature if stands else None),
    )


def _put(held: OrderedDict[_K, _V], key: _K, kept: _V) -> None:
    held[key] = kept
    held.move_to_end(key)
    if len(held) > _CARDS:
        held.popitem(last=False)


def _instant(at: str) -> float:
    return datetime.fromisoformat(at).timestamp() if at else 0.0


def _validation(data: JsonObject, *, not_modified: bool) -> str:
    if not_modified:
        return "304"
    asked = data.get("asked_etag")
    if asked is not None:
        return "same-tag" if data.get("etag") == asked else "other-tag"
    return "same-tag" if data.get("last_modified") == data.get("asked_modified_since") else "other-tag"


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _optional(data: JsonObject, name: str) -> str | None:
    value = data.get(name)
    return value if isinstance(value, str) else None
