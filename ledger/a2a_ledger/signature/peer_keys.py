"""Whose key is it? Keys that a file gives to their peers, and keys that a log records for a peer. Pure.

docs/format.md section 7.6. A key speaks for the cards of one peer and of no other, whatever the card says of
itself: a vendor's key must not vouch for another vendor's card.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from a2a_ledger.codec import canonical
from a2a_ledger.errors import FormatError
from a2a_ledger.signature.card_keys import CardKey, read_card_keys, thumbprint

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from a2a_ledger.codec import Record
    from a2a_ledger.events import Json, JsonObject

ADDED, RETIRED = "card_key.added.v1", "card_key.retired.v1"


def read_peer_keys(data: bytes) -> tuple[CardKey, ...]:
    """Read the file of the setting `card_keys`: a JWKS, each key with the member `peer`, its peer's card url.

    Raises:
        FormatError: it is no JWKS; a key has no peer, is private, or cannot be used; or two keys of one
            peer share a key id.
    """
    keys = read_card_keys(data, source="policy", peer=None)
    for number, key in enumerate(keys, 1):
        if key.peer is None:
            raise FormatError(
                f"key {number} of {len(keys)}: expected the member `peer`, the url of the public card that it speaks "
                "for, found none; a key speaks for one peer"
            )
    check_key_ids(keys)
    return keys


def check_key_ids(keys: Sequence[CardKey]) -> None:
    """See that no key is given twice, and no key id for two keys of one peer: which of them signed could not be told.

    Raises:
        FormatError: naming the key, or both thumbprints.
    """
    seen: dict[tuple[str | None, str], CardKey] = {}
    for key in keys:
        held = seen.setdefault((key.peer, key.kid), key)
        if held is not key:
            one, other = thumbprint(held.jwk), thumbprint(key.jwk)
            if one == other:
                raise FormatError(f"key {key.kid!a} with the thumbprint {one} is given twice for one peer")
            raise FormatError(
                f"key id {key.kid!a} stands for two keys of one peer: expected one, found those with the thumbprints "
                f"{one} and {other}; give each key an id of its own"
            )


@dataclass(frozen=True, slots=True)
class RecordedKey:
    """What a log says of a key: the event that added it, and the one that retired it, if any."""

    key: CardKey
    thumbprint: str
    added: Record
    retired: Record | None = None

    @property
    def in_force(self) -> bool:
        """Say whether it may speak, as far as these events go."""
        return self.retired is None


def recorded_keys(records: Iterable[Record]) -> list[RecordedKey]:
    """Return the keys that these events record, in the order in which they were added.

    Args:
        records: events in log order; all but `card_key.added.v1` and `card_key.retired.v1` are passed over, and so is
            what a stranger's record holds and is no key.
    """
    found: list[RecordedKey] = []
    for record in records:
        if record.type == ADDED:
            key = key_of(record.data)
            if key is not None:
                found.append(RecordedKey(key, thumbprint(key.jwk), record))
        elif record.type == RETIRED:
            found = [_ended(one, record) for one in found]
    return found


def key_of(data: JsonObject) -> CardKey | None:
    """Return the key of a `card_key.added.v1`; None where its data is no key, or not the one that it names."""
    peer, kid, jwk = data.get("peer"), data.get("kid"), data.get("jwk")
    if not isinstance(peer, str) or not isinstance(kid, str) or not isinstance(jwk, dict):
        return None
    try:
        keys = read_card_keys(canonical(cast("Json", jwk)), source="ledger", peer=peer)
    except FormatError:
        return None
    same = len(keys) == 1 and (keys[0].kid, thumbprint(keys[0].jwk)) == (kid, data.get("thumbprint"))
    return keys[0] if same else None


def _ended(one: RecordedKey, record: Record) -> RecordedKey:
    """Return a key with this retirement, if it is the one that is retired."""
    named = (record.data.get("peer"), record.data.get("thumbprint")) == (one.key.peer, one.thumbprint)
    return replace(one, retired=record) if named and one.retired is None else one
