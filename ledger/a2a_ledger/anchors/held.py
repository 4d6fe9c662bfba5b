"""Anchors that were recorded: a head counts as anchored when the holder's own signature over it verifies.

Anybody who can append can record an anchor, so the event alone says nothing. What is held against it:
the head that it names has to be one of ours, kept and over these leaves, and the note beside it has
to carry a cosignature by a key that the log names for a witness, or the token beside it has to hold under a root
that the deployment names (docs/format.md sections 6.4 and 6.5).
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.checkpoint import open_checkpoint
from a2a_ledger.errors import LedgerError
from a2a_ledger.note import Note, parse_note
from a2a_ledger.store.log_keys import log_keys
from a2a_ledger.time_token import open_token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from a2a_ledger.codec import Record
    from a2a_ledger.key_events import Keys
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.store import Store
    from a2a_ledger.time_token import Certificate

ANCHORS = "anchors"
"""The stream of anchors. Bundles show all of `ledger`, and must not grow with how often heads are anchored."""

COSIGNATURE_KIND = "cosignature"
STAMP_KIND = "rfc3161"
PEER_KIND = "peer"  # of another log's head that we hold

_TAG = "type:checkpoint.anchored.v1"
_LOOK = 10_000  # anchors that are looked through for a time token: most are cosignatures, some of them each minute


class Anchor(NamedTuple):
    """What one `checkpoint.anchored.v1` says of a head of ours."""

    n: int
    size: int
    root: str
    holder: str
    kind: str
    note: bytes
    token: bytes = b""  # of a timestamp authority

    @property
    def what(self) -> str:
        """Name it in a sentence."""
        return f"the anchor of event {self.n} (head of {self.size}, held by {self.holder!a})"


def read_anchor(record: Record, origin: str, content: Callable[[str], bytes]) -> Anchor | None:
    """Return the anchor in a record, None where it speaks of another log's head or makes no sense.

    Args:
        record: a `checkpoint.anchored.v1`.
        origin: of this log.
        content: gives the octets of one of its blobs; asked only for an anchor.
    """
    match record.data:
        case {"origin": str(named), "size": int(size), "root": str(root), "holder": str(holder), "kind": str(kind)} if (
            named == origin and kind != PEER_KIND
        ):
            token = content("token") if kind == STAMP_KIND else b""
            return Anchor(record.n, size, root, holder, kind, content("note"), token)
        case _:
            return None


def why_unverified(anchor: Anchor, keys: Keys, origin: str, roots: Sequence[Certificate] = ()) -> str:
    """Return why the holder's signature proves nothing here, "" where it verifies.

    Args:
        anchor: what was recorded.
        keys: of the log.
        origin: of the log.
        roots: of the timestamp authorities that the deployment trusts.
    """
    if anchor.kind == STAMP_KIND:
        return _why_no_time(anchor, keys, origin, roots)
    if anchor.kind != COSIGNATURE_KIND:
        return f"an anchor of kind {anchor.kind!a} is not verified by this release"
    witnesses = [term.key for term in keys.terms if term.role == "witness" and term.revoked is None]
    try:
        signed = open_checkpoint(anchor.note, [*keys.speaking("log", anchor.size), *witnesses])
    except LedgerError as problem:
        return str(problem)
    head = signed.checkpoint
    if (head.origin, head.size, head.root.hex()) != (origin, anchor.size, anchor.root):
        return f"its note is over a head of {head.size} of {head.origin}, root {head.root.hex()}"
    if not any(entry.verifier in witnesses and entry.verifier.name == anchor.holder for entry in signed.cosigners):
        return "no key that the log names for this witness has cosigned it"
    return ""


def _why_no_time(anchor: Anchor, keys: Keys, origin: str, roots: Sequence[Certificate]) -> str:
    try:
        head = open_checkpoint(anchor.note, keys.speaking("log", anchor.size)).checkpoint
        stamp = open_token(anchor.token, anchor.note)
        if roots:
            stamp.check_trust(roots)
    except LedgerError as problem:
        return str(problem)
    if (head.origin, head.size, head.root.hex()) != (origin, anchor.size, anchor.root):
        return f"its note is over a head of {head.size} of {head.origin}, root {head.root.hex()}"
    if stamp.holder != anchor.holder:
        return f"its token is by {stamp.holder!a}"
    return (
        "" if roots else "no root of a timestamp authority is named (`timestamp_roots` below [anchor] of config.toml)"
    )


def anchors_of(store: Store, roots: Sequence[Certificate] = ()) -> Iterator[tuple[Anchor, str]]:
    """Yield every recorded anchor of this log, newest first, and why it counts as none ("": it counts).

    The signature is checked, and that the head is over these leaves. Who stops early has read no more than he took.
    """
    keys = log_keys(store)
    for n, _ in store.tagged_places(_TAG):
        record = store.record(n)
        anchor = read_anchor(record, store.origin, partial(_content, record))
        if anchor is not None:
            yield anchor, _why_none(store, anchor, keys, roots)


def _why_none(store: Store, anchor: Anchor, keys: Keys, roots: Sequence[Certificate]) -> str:
    """Return why an anchor counts as none, "" where it counts."""
    if not 0 < anchor.size <= anchor.n:
        return f"it covers more than the {anchor.n} events before it"
    if why := why_unverified(anchor, keys, store.origin, roots):
        return why
    return "" if store.root(anchor.size).hex() == anchor.root else "it is over other events than these"


class LastStamp(NamedTuple):
    """The newest time token of a log that counts: the size of its head, and when it was recorded, by our clock."""

    size: int
    at: datetime


def newest_stamp(store: Store, roots: Sequence[Certificate]) -> LastStamp | None:
    """Return the newest time token that counts among the newest anchors; None: there is none there.

    Args:
        store: the ledger's store.
        roots: of the timestamp authorities that the deployment trusts.
    """
    keys = log_keys(store)
    for n, _ in store.tagged_places(_TAG, limit=_LOOK):
        record = store.record(n)
        if record.data.get("kind") != STAMP_KIND:
            continue
        anchor = read_anchor(record, store.origin, partial(_content, record))
        if anchor is not None and not _why_none(store, anchor, keys, roots):
            return LastStamp(anchor.size, datetime.fromisoformat(record.at))
    return None


def _content(record: Record, role: str) -> bytes:
    return record.content(role) or b""


def anchored_size(store: Store, roots: Sequence[Certificate] = ()) -> int:
    """Return the largest size of this log for which somebody else's signature verifies; 0: none."""
    largest = 0
    for anchor, why in anchors_of(store, roots):
        if not why:
            largest = max(largest, anchor.size)
        if anchor.n <= largest:
            break  # an older one lies before what it could cover
    return largest


def unanchored(store: Store, roots: Sequence[Certificate] = ()) -> tuple[int, int | None]:
    """Return how many events no counting anchor covers, and which of them came first; anchors themselves not counted.

    Each anchor is an event behind what it covers, so a log whose last events are anchors has nothing left to anchor.
    """
    covered, size = anchored_size(store, roots), store.size()
    anchors = {n for n, _ in store.tagged_places(_TAG, after=covered - 1)}
    bare = size - covered - sum(n < size for n in anchors)
    return bare, next((n for n in range(covered, size) if n not in anchors), None)


def time_roots(ledger: ContractLedger) -> tuple[Certificate, ...]:
    """Return the roots of timestamp authorities that a ledger's settings name.

    Raises:
        UsageError: the file of them cannot be used.
    """
    return () if ledger.home is None else ledger.settings.time_roots(ledger.home.root)


def cosigned_note(store: Store, size: int) -> str | None:
    """Return the head of a size with every cosignature that counts, None if nobody cosigned it.

    Of two by one witness the older one stands: it says more of when the head existed.
    """
    found: dict[str, Note] = {}
    for anchor, why in anchors_of(store):
        if anchor.n < size:
            break
        if anchor.size == size and anchor.kind == COSIGNATURE_KIND and not why:
            found[anchor.holder] = parse_note(anchor.note)
    if not found:
        return None
    first, *_ = found.values()
    lines = [line for note in found.values() for line in note.signatures]
    return str(Note(first.text, tuple(dict.fromkeys(lines))))


def is_settled(store: Store, size: int) -> bool:
    """Say whether nothing but anchors was recorded behind a size: these alone are no reason for a further one."""
    return len(store.tagged_places(_TAG, after=size - 1)) == store.size() - size
