"""Placing drafts: each gets version, predecessor and container, on the newest event of its stream as it is known.

What a transaction would change is collected in a `Placement` and taken over only after its commit,
so a rollback leaves nothing to undo. How a back end learns what other processes wrote, and what it
does with leaves, is its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias
from uuid import UUID

from eventsourcing.persistence import StoredEvent

from a2a_ledger.codec import (
    MAX_INLINE,
    NONCES,
    Draft,
    Kept,
    Place,
    SealedBlob,
    commitment,
    pack_container,
    pack_parts,
    pack_sealed,
    pack_sealed_parts,
    seal,
    stream_commitment,
    stream_tag,
)
from a2a_ledger.key_events import KEY_EVENTS
from a2a_ledger.store.cells import octets_of
from a2a_ledger.store.log_keys import check_key_event, keys_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2a_ledger.codec import Boxes
    from a2a_ledger.events import Ref
    from a2a_ledger.key_events import Keys
    from a2a_ledger.store.database import Session

Item: TypeAlias = Draft | StoredEvent

Tip = tuple[int, str | None]  # the newest event of a stream: version and c; before the first one, -1 and None
EventRow = tuple[int, str, int, str, bytes, bytes, bytes]  # the columns of ledger_events
FullTile = tuple[int, list[bytes]]  # the first leaf of a tile that became full, and its hashes

_REMEMBERED = 4096  # appends by which a retry is recognised
_TIPS = 65536  # streams whose newest version is kept in memory
_OPAQUE_TAG = b""  # rows of insert_events belong to no keyed stream


class BoxKeyring(Protocol):
    """Gives the keys that rows are sealed with, which are durable before they are given."""

    def newest(self, stream: str) -> Boxes:
        """Return the keys for new rows of a stream."""
        ...

    def look_again(self, stream: str | None) -> None:
        """Forget which keys are the newest of a stream, or, without one, of all."""
        ...


class StreamKeys(Protocol):
    """Gives the keys of a stream, which are durable before they are given."""

    @property
    def boxes(self) -> BoxKeyring:
        """Return the keys that rows are sealed with."""
        ...

    @property
    def entropy(self) -> Callable[[int], bytes]:
        """Return what gives that many random octets."""
        ...

    def stream_key(self, stream: str) -> bytes:
        """Return the 32 octets."""
        ...


class Appended(NamedTuple):
    """Where an event came to lie: log index, stream, version in the stream, c in hex."""

    n: int
    stream: str
    ver: int
    c: str

    @property
    def ref(self) -> Ref:
        """How other events refer to it."""
        return {"c": self.c, "stream": self.stream, "ver": self.ver}


@dataclass(slots=True)
class Placement:
    """What one transaction adds."""

    start: int
    tail: list[bytes] = field(default_factory=list[bytes])  # leaf hashes since the last full tile
    events: list[EventRow] = field(default_factory=list[EventRow])
    blobs: list[tuple[bytes, bytes]] = field(default_factory=list[tuple[bytes, bytes]])
    tags: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    full: list[FullTile] = field(default_factory=list[FullTile])
    tips: dict[str, Tip] = field(default_factory=dict[str, Tip])
    bases: dict[str, Tip] = field(default_factory=dict[str, Tip])  # what the events of each stream were placed on
    log_keys: Keys | None = None  # what the log says of its keys with these events; None: nobody had to ask
    tried: list[bytes] = field(default_factory=list[bytes])  # salts of drafts that were never placed before

    @property
    def size(self) -> int:
        """The size of the log with these events."""
        return self.start + len(self.events)


class Placer:
    """Gives drafts their places, by the newest versions of streams as this process knows them."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self._tips: dict[str, Tip] = {}
        self._attempts: dict[bytes, Tip] = {}  # by salt: version and prev last tried

    def place(self, session: Session, items: Sequence[Item], keys: StreamKeys, to: Placement) -> list[Appended]:
        """Give each item its index, version and predecessor; nothing is written yet."""
        return [
            self._place_draft(session, item, keys, to) if isinstance(item, Draft) else self._place_opaque(item, to)
            for item in items
        ]

    def take_over(self, placed: Placement) -> None:
        """Make the newest events of a placement those of their streams, after its commit."""
        self._tips.update(placed.tips)
        while len(self._tips) > _TIPS:
            del self._tips[next(iter(self._tips))]

    def take_back(self, placed: Placement) -> None:
        """Forget a placement of which nothing was written, and what was believed of its streams."""
        for stream in placed.tips:
            self._tips.pop(stream, None)
        for salt in placed.tried:
            self._attempts.pop(salt, None)

    def tried_before(self, items: Sequence[Item]) -> bool:
        """Say whether one of these was placed before, and may have been written."""
        return any(isinstance(item, Draft) and item.salt in self._attempts for item in items)

    def _add_leaf(self, to: Placement, n: int, c: bytes, t: bytes) -> None:
        """Do what the back end does with a leaf before it is written."""

    def _read_tip(self, session: Session, stream: str) -> Tip:
        row: tuple[int, object, int] | None = session.execute(
            "SELECT originator_version, c, rowid - 1 FROM ledger_events WHERE originator_id = ?"
            " ORDER BY originator_version DESC LIMIT 1",
            (stream,),
        ).fetchone()
        return (-1, None) if row is None else (row[0], octets_of(row[2], "c", row[1]).hex())

    def _place_draft(self, session: Session, draft: Draft, keys: StreamKeys, to: Placement) -> Appended:
        stream, salt = draft.stream, draft.salt
        # The newest event first, and only then the look for an earlier attempt: that may be committed at any moment. If
        # it is between the two, it is found; if later, the newest event is another one, and nothing is written here.
        before, prev = to.tips.get(stream) or self._tips.get(stream) or self._read_tip(session, stream)
        if salt in self._attempts and (found := self._committed(session, draft, keys)) is not None:
            return found
        to.bases.setdefault(stream, (before, prev))
        if stream == "ledger" and draft.type in KEY_EVENTS:
            self._check_key(session, draft, to)
        ver = before + 1
        key = keys.stream_key(stream)
        raw, c = self._seal(draft, ver, prev, key)
        if salt not in self._attempts:
            to.tried.append(salt)
        self._attempts[salt] = (ver, prev)
        if len(self._attempts) > _REMEMBERED:
            del self._attempts[next(iter(self._attempts))]
        state = self._wrap(draft, Place(self.origin, stream, ver), raw, keys, to)
        n, c_hex = self._put(to, (stream, ver, draft.type, c, stream_tag(key, ver), state))
        to.tags += [(tag, n) for tag in draft.tags]
        return Appended(n, stream, ver, c_hex)

    def _check_key(self, session: Session, draft: Draft, to: Placement) -> None:
        """Refuse a key event that readers would refuse.

        The keys are read after the place in the stream was taken: where another writer was faster, either they show
        what he wrote, or nothing is written in that place.

        Raises:
            UsageError: it is one.
        """
        if to.log_keys is None:
            to.log_keys = keys_in(session, self.origin)
        check_key_event(to.log_keys, draft, to.start + len(to.events), self.origin)

    def _wrap(self, draft: Draft, place: Place, raw: bytes, keys: StreamKeys, to: Placement) -> bytes:
        """Return the container of a record; its large blobs go to their own table. Nonces are never used twice."""
        boxes = None if place.stream == "ledger" else keys.boxes.newest(place.stream)
        blobs = list(draft.blobs.values())
        for blob in draft.blobs.values():
            if blob.size > MAX_INLINE and _stored_size(blob) > MAX_INLINE:
                stored = (
                    pack_parts(blob.parts)
                    if boxes is None
                    else pack_sealed_parts(boxes, place, keys.entropy(NONCES // 2), blob.id, blob.parts)
                )
                to.blobs.append((blob.id, stored))
                blobs.remove(blob)
        if boxes is None:
            return pack_container(draft.salt, raw, blobs)
        return pack_sealed(boxes, place, keys.entropy(NONCES), draft.salt, raw, blobs)

    def _place_opaque(self, event: StoredEvent, to: Placement) -> Appended:
        """Place an event of the library's own interface: version given, state committed to as it is."""
        originator, ver = event.originator_id, event.originator_version
        stream = originator.hex if isinstance(originator, UUID) else originator
        c = commitment(b"", event.state)
        n, c_hex = self._put(to, (stream, ver, event.topic, c, _OPAQUE_TAG, event.state))
        return Appended(n, stream, ver, c_hex)

    def _put(self, to: Placement, row: tuple[str, int, str, bytes, bytes, bytes]) -> tuple[int, str]:
        """Add a row of the events table, its index apart, and its leaf; return its log index and c in hex."""
        stream, ver, _, c, t, _ = row
        n = to.start + len(to.events)
        to.events.append((n + 1, *row))
        c_hex = c.hex()
        to.tips[stream] = (ver, c_hex)
        self._add_leaf(to, n, c, t)
        return n, c_hex

    def _seal(self, draft: Draft, ver: int, prev: str | None, key: bytes) -> tuple[bytes, bytes]:
        stated = None if ver or draft.stream.startswith("task:") else stream_commitment(key)
        return seal(draft, log=self.origin, ver=ver, prev=prev, stream_commitment=stated)

    def _committed(self, session: Session, draft: Draft, keys: StreamKeys) -> Appended | None:
        """Return where an earlier attempt of this very draft was committed, if it was: same place, same c."""
        ver, prev = self._attempts[draft.salt]
        _, c = self._seal(draft, ver, prev, keys.stream_key(draft.stream))
        row: tuple[int] | None = session.execute(
            "SELECT rowid - 1 FROM ledger_events WHERE originator_id = ? AND originator_version = ? AND c = ?",
            (draft.stream, ver, c),
        ).fetchone()
        return None if row is None else Appended(row[0], draft.stream, ver, c.hex())


def _stored_size(blob: SealedBlob) -> int:
    return sum(len(part.content) for part in blob.parts if isinstance(part, Kept))
