"""Manifests in the log: recording one, and which one of a peer is looked at for the card at hand.

docs/format.md section 7.7. A manifest is recorded with the status that it had when it came. A decision
reads its envelope again and holds it against the keys that are trusted *then*, so that a key that was
revoked, or taken out of the settings, frees nobody any more.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, cast

from a2a_ledger.codec import timestamp
from a2a_ledger.divergence.reading import content
from a2a_ledger.errors import FormatError
from a2a_ledger.events import CardManifest, KeyAdded, KeyRetired, KeyRevoked
from a2a_ledger.manifest import EXPIRED, VALID, read_manifest
from a2a_ledger.store.log_keys import log_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_ledger.capture.peerview import KeptCard, PeerView
    from a2a_ledger.codec import Record
    from a2a_ledger.events import Ref
    from a2a_ledger.key_events import KeyTerm
    from a2a_ledger.keys import Verifier
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.manifest import Manifest

_KEY_EVENTS = (KeyAdded.TYPE, KeyRetired.TYPE, KeyRevoked.TYPE)

_BEHIND_EVERYTHING = 1 << 62
"""As a log size: no key event lies behind it."""


class AddedManifest(NamedTuple):
    """A manifest that is recorded: what it says, its status, its log index."""

    manifest: Manifest
    status: str
    position: int


def add_manifest(ledger: ContractLedger, envelope: bytes, *, who: str) -> AddedManifest:
    """Record a card manifest with the status that it has now (docs/format.md section 7.7).

    One whose status is not `valid` is recorded too; it frees no send from the freshness rules.

    Args:
        ledger: where it is recorded; its own statement key and its setting `manifest_keys` say whom it trusts.
        envelope: the signed manifest, as `a2a_ledger.manifest.make_manifest` or `card manifest make` gave it.
        who: who brings it.

    Raises:
        FormatError: this is no manifest; nothing is recorded.
        ReadOnlyError: this ledger cannot be written.
        StoreError: it could not be recorded.
    """
    now = ledger.clock()
    trusted = _trusted(log_keys(ledger.store).terms, ledger.settings.manifest_verifiers(), _BEHIND_EVERYTHING)
    manifest, status, key_id = read_manifest(envelope, trusted, now)
    event = CardManifest(
        peer=manifest.peer,
        peer_url=manifest.peer_url,
        raw_hash=manifest.card_hash,
        contract_hash=manifest.contract_hash,
        form=manifest.form,
        floor_until=timestamp(manifest.floor_until),
        status=status,
        issued_at=timestamp(manifest.issued_at),
        key_id=key_id,
        who=who,
    )
    draft = ledger.draft(event, stream=f"peer:{manifest.peer}", blobs={"manifest": envelope}, at=now)
    (appended,) = ledger.append([draft])
    return AddedManifest(manifest, status, appended.n)


def _trusted(terms: Sequence[KeyTerm], named: Sequence[Verifier], size: int) -> list[Verifier]:
    """Return the keys that are trusted now for a manifest that lies below `size` in the log.

    A key of the log that was retired afterwards still counts. One that was revoked counts for nothing, whatever size
    the revocation states: what it signed would go on to free sends, and a new manifest is soon made.

    Args:
        terms: what the log says of its keys; its statement keys count.
        named: the keys that the settings name.
        size: a log size, one more than the manifest's index.
    """
    revoked = {term.key for term in terms if term.revoked is not None}
    own = [term.key for term in terms if term.role == "statement" and term.covers(size)]
    return [key for key in (*own, *named) if key not in revoked]


class LookedAt(NamedTuple):
    """The manifest that a decision looked at: where it is recorded, its floor, and why it counts as none, "" if not."""

    position: int
    ref: Ref
    floor_until: str
    why_not: str

    @property
    def applies(self) -> bool:
        """Say whether the card at hand is inside the floor."""
        return not self.why_not


@dataclass(frozen=True, slots=True)
class _Recorded:
    """One `card.manifest.v1`; of two, the one with the greater `rank` governs."""

    n: int
    ref: Ref
    status: str
    floor_until: str
    envelope: bytes | None
    rank: tuple[bool, datetime, float, int]


class Manifests:
    """The manifests of one ledger: each look reads only what is new since the last. May be shared by threads."""

    def __init__(self, ledger: ContractLedger) -> None:
        self._store = ledger.store
        self._named = ledger.settings.manifest_verifiers()
        self._governing: dict[str, _Recorded] = {}
        self._seen: dict[str, int] = {}
        self._terms: Sequence[KeyTerm] = ()
        self._terms_of: list[tuple[int, str]] = []
        self._looking = threading.Lock()

    def look(self, view: PeerView, card: KeptCard | None, now: datetime) -> LookedAt | None:
        """Return the manifest that governs a peer and whether it applies to a card; None: none is recorded.

        Args:
            view: the peer, as the log knows it.
            card: the card that the client acts on.
            now: our clock.
        """
        with self._looking:
            recorded = self._newest(view.peer)
            if recorded is None:
                return None
            trusted = _trusted(self._key_terms(), self._named, recorded.n + 1)
        why_not = _why_not(recorded, trusted, view, card, now)
        return LookedAt(recorded.n, recorded.ref, recorded.floor_until, why_not)

    def _newest(self, peer: str) -> _Recorded | None:
        """Take in what was recorded since the last look, and return the one that governs."""
        tag, seen = f"manifest:{peer}", self._seen.get(peer, -1)
        fresh = self._store.tagged_places(tag, after=seen)
        if fresh:
            self._seen[peer] = fresh[0][0]
            known = self._governing.get(peer)
            found = [_recorded(self._store.record(n)) for n, _ in fresh]
            self._governing[peer] = max([*found, known] if known else found, key=lambda one: one.rank)
        return self._governing.get(peer)

    def _key_terms(self) -> Sequence[KeyTerm]:
        """Return what the log says of its keys, read again when there is a new event of any."""
        newest = [place for kind in _KEY_EVENTS for place in self._store.tagged_places(f"type:{kind}", limit=1)]
        if newest != self._terms_of:
            self._terms, self._terms_of = log_keys(self._store).terms, newest
        return self._terms


def _why_not(
    recorded: _Recorded, trusted: Sequence[Verifier], view: PeerView, card: KeptCard | None, now: datetime
) -> str:
    """Say why a manifest counts as none; "" when it applies."""
    if recorded.status not in {VALID, EXPIRED}:
        return f"its status was {recorded.status} when it was recorded"
    try:
        manifest, status, _ = read_manifest(recorded.envelope or b"", trusted, now)
    except FormatError:
        return "its content is not here any more"
    if status not in {VALID, EXPIRED}:
        return "the key that signed it is not trusted any more"
    return _outside(manifest, view, card, now)


def _outside(manifest: Manifest, view: PeerView, card: KeptCard | None, now: datetime) -> str:
    """Say why the card at hand is not inside the floor of a trusted manifest; "" when it is."""
    answered = view.latest_at(card.key.place) if card else None
    latest = max(now, datetime.fromisoformat(answered)) if answered else now
    if latest >= manifest.floor_until:  # an answer from behind the floor ends it, though the clock was set back since
        return "its floor has passed"
    if now < manifest.issued_at:
        return "by our clock it is not issued yet"
    if card is None:
        return "there is no card at hand"
    pinned = (manifest.card_hash, manifest.contract_hash, manifest.form)
    return "" if (card.raw_hash, card.contract_hash, card.form) == pinned else "it speaks of another card"


def _recorded(record: Record) -> _Recorded:
    """Read a recorded manifest.

    Only what a trusted key said governs, the latest issued first: what is recorded a second time later takes
    nothing back. A time that had not come yet counts as that of the record, so that a signer whose
    clock was ahead is not above all others until then. Of two of one time, the one with the shorter floor governs.
    """
    data = record.data
    at = datetime.fromisoformat(record.at)
    issued = datetime.fromisoformat(cast("str", data.get("issued_at") or record.at))
    floor = datetime.fromisoformat(cast("str", data["floor_until"]))
    trusted = data["status"] in {VALID, EXPIRED}
    return _Recorded(
        n=record.n,
        ref=record.ref,
        status=cast("str", data["status"]),
        floor_until=cast("str", data["floor_until"]),
        envelope=content(record, "manifest"),
        rank=(trusted, min(issued, at), -floor.timestamp(), record.n) if trusted else (False, at, 0.0, record.n),
    )
