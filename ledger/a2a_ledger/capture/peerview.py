"""What the log says about one peer's card: the material of a freshness decision.

Folded from the peer's own stream, newest records only at first and then what has been added, so
that a decision costs the same after ten fetches and after ten million. Everything a decision is
made from comes from events, so replay finds the same inputs (docs/format.md section 9).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_ledger.codec import Record
    from a2a_ledger.events import Interface, Json, JsonObject, Ref

    from .reader import LogReader

RECENT = 512
"""Records of a peer's stream that are read when it is first met."""

SEEN = 32
"""Contract changes that are remembered for the flapping rule."""


@dataclass(frozen=True, slots=True)
class KeptCard:
    """The newest answer about one card: bytes fetched, or bytes said not to have changed."""

    n: int
    fetch: Ref  # the newest answer
    bytes_of: Ref  # the answer that brought the bytes; not the same after a 304
    url: str
    source: str
    caller: str
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
    cards: dict[tuple[str, str], KeptCard] = field(default_factory=dict[tuple[str, str], KeptCard])
    last_validation: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    lied: bool = False
    seen: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def fold(self, records: Iterable[Record]) -> None:
        """Take in the next records of the peer's stream, in their order."""
        for record in records:
            self.ver = record.ver
            if record.type == "card.fetched.v1":
                self._fetched(record)

    def _fetched(self, record: Record) -> None:
        data = record.data
        key = (_text(data["source"]), _text(data["caller"]))
        self.url = _text(data["peer_url"])
        before = self.cards.get(key)
        conditional = data.get("asked_etag") is not None or data.get("asked_modified_since") is not None
        not_modified = cast("Ref | None", data.get("not_modified"))
        if conditional:
            self.last_validation[key] = _validation(data, not_modified=not_modified is not None)
            if not_modified is not None:
                self.lied = False  # honoured again (docs/format.md section 9: "and no 304 since")
        flags = tuple(_text(flag) for flag in cast("list[Json]", data["flags"]))
        if "not-a-card" in flags:
            return  # recorded, but no answer about the card
        contract = _optional(data, "contract_hash")
        if (
            before is not None
            and before.raw_hash != data.get("raw_hash")
            and before.etag is not None
            and not before.etag.startswith("W/")
            and before.etag == data.get("etag")
        ):
            self.lied = True
        interfaces = tuple(cast("list[Interface]", data.get("interfaces") or []))
        self.cards[key] = KeptCard(
            n=record.n,
            fetch=record.ref,
            bytes_of=not_modified or record.ref,
            url=_text(data["url"]),
            source=key[0],
            caller=key[1],
            fetched_at=record.at,
            contract_hash=contract,
            form=_text(data["form"]),
            raw_hash=_optional(data, "raw_hash"),
            document_hash=_optional(data, "document_hash"),
            seed0=_optional(data, "seed0"),
            etag=_optional(data, "etag") or (before.etag if before and not_modified else None),
            last_modified=_optional(data, "last_modified")
            or (before.last_modified if before and not_modified else None),
            max_age=cast("int | None", data.get("max_age")),
            age=cast("int | None", data.get("age")),
            no_cache=data.get("no_cache") is True,
            interfaces=interfaces,
            flags=flags,
        )
        if contract is not None and (not self.seen or self.seen[-1][1] != contract):
            self.seen = [*self.seen[1 - SEEN :], (record.at, contract)]

    def validator_json(self, key: tuple[str, str]) -> JsonObject:
        """Return the member `validator` of a decision's inputs for one card."""
        card = self.cards.get(key)
        present = card is not None and (card.etag is not None or card.last_modified is not None)
        return {"present": present, "last": self.last_validation.get(key, "never"), "lied": self.lied}

    def newest(self, source: str, caller: str) -> KeptCard | None:
        """Return the newest answer about this card, or None when it was never seen."""
        return self.cards.get((source, caller))


class PeerViews:
    """The peers of one ledger, each brought up to date before it is used."""

    def __init__(self, reader: LogReader) -> None:
        self._reader = reader
        self._views: dict[str, PeerView] = {}

    def of(self, peer: str) -> PeerView:
        """Return the view of one peer, with everything that is in the log now."""
        view = self._views.get(peer)
        stream = f"peer:{peer}"
        if view is None:
            view = self._views[peer] = PeerView(peer)
            view.fold(reversed(self._reader.read_stream(stream, limit=RECENT, desc=True)))
        else:
            view.fold(self._reader.read_stream(stream, gt=view.ver))
        return view


def age_seconds(then: str, now: datetime) -> float:
    """Return the seconds from a record's time to now."""
    return (now - datetime.fromisoformat(then)).total_seconds()


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
