"""Which keys may speak for a peer's cards now: those of the deployment's file and those that the log records.

docs/format.md section 7.6. Never one that a card names by `jku` or brings along. A rotation is two more events,
so the log says which keys were trusted when a card was judged, and a key that is retired later changes nothing of it.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from a2a_ledger.errors import UsageError
from a2a_ledger.events import CardKeyAdded, CardKeyRetired
from a2a_ledger.signature.card_keys import read_card_keys, thumbprint
from a2a_ledger.signature.peer_keys import check_key_ids, recorded_keys

if TYPE_CHECKING:
    from a2a_ledger.capture.attribution import Peer
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.signature.card_keys import CardKey
    from a2a_ledger.signature.peer_keys import RecordedKey
    from a2a_ledger.store import Appended, Store

_log = logging.getLogger(__name__)

_TAG = "cardkey:"
_MOST = 100_000  # key events of a ledger that are listed


def keys_of_peer(store: Store, peer: str) -> list[RecordedKey]:
    """Return the keys that the log records for a peer's cards, retired ones too, oldest first."""
    return recorded_keys(store.tagged(f"{_TAG}{peer}"))


def keys_of_all(store: Store) -> list[RecordedKey]:
    """Return the keys that the log records for any peer's cards, retired ones too, oldest first."""
    positions = sorted(n for _, n in store.tagged_prefix(_TAG, _MOST))
    return recorded_keys(store.record(n) for n in positions)


def file_keys(at: ContractLedger, peer: str | None = None) -> tuple[CardKey, ...]:
    """Return the keys of the deployment's file as it is now: those of a peer, or all.

    Raises:
        UsageError: the file cannot be read, or holds a key that may not be used.
    """
    keys = at.settings.peer_card_keys(at.home.root if at.home else Path())
    return tuple(key for key in keys if peer is None or key.peer == peer)


def keys_in_force(at: ContractLedger, peer: str) -> tuple[CardKey, ...]:
    """Return the keys that may speak for a peer's cards now.

    Of a key that the log records, the log alone says whether it is in force: a retirement holds, whatever the file
    says. A file that cannot be read any more is logged and counts as empty: no fetch may be lost because of it.
    """
    recorded = keys_of_peer(at.store, peer)
    in_force = tuple(one.key for one in recorded if one.in_force)
    try:
        by_file = file_keys(at, peer)
    except UsageError as e:
        _log.warning("%s; cards are judged by the recorded keys alone until it is put right", e)
        return in_force
    known = {one.thumbprint for one in recorded}
    return (*in_force, *(key for key in by_file if thumbprint(key.jwk) not in known))


def add_card_keys(ledger: ContractLedger, peer: Peer, data: bytes, *, who: str) -> list[tuple[CardKeyAdded, Appended]]:
    """Record that keys are trusted for a peer's cards from here on, all of them or none.

    Args:
        ledger: where it is recorded.
        peer: whose cards they may speak for.
        data: a JWK or a JWKS of public keys.
        who: who trusts them.

    Raises:
        FormatError: it is no key, a private one, or one that may not be used.
        UsageError: one is trusted already, or has the key id of another one that is.
    """
    keys = read_card_keys(data, source="ledger", peer=peer.id)
    check_key_ids(keys)
    held = keys_in_force(ledger, peer.id)
    for key in keys:
        _check_new(ledger, key, held)
    events = [
        CardKeyAdded(peer=peer.id, peer_url=peer.url, kid=key.kid, thumbprint=thumbprint(key.jwk), jwk=key.jwk, who=who)
        for key in keys
    ]
    placed = ledger.append([ledger.draft(event, stream=f"peer:{peer.id}") for event in events])
    return list(zip(events, placed, strict=True))


def retire_card_key(
    ledger: ContractLedger, peer: Peer, kid: str, *, who: str, reason: str
) -> tuple[CardKeyRetired, Appended]:
    """Record that a key is no longer trusted for a peer's cards.

    Args:
        ledger: where it is recorded.
        peer: whose cards it may speak for.
        kid: its key id.
        who: who retires it.
        reason: why.

    Raises:
        UsageError: the log records no such key in force.
    """
    in_force = [one for one in keys_of_peer(ledger.store, peer.id) if one.in_force]
    found = next((one for one in in_force if one.key.kid == kid), None)
    if found is None:
        where = ", ".join(ascii(one.key.kid) for one in in_force) or "none"
        if any(key.kid == kid for key in file_keys(ledger, peer.id)):
            raise UsageError(
                f"key {kid!a} of {peer.url} stands in the file that the setting card_keys names: take it out there; "
                "nothing was recorded"
            )
        raise UsageError(
            f"{kid!a}: expected the id of a recorded key of {peer.url} that is in force, found {where}; "
            "nothing was recorded"
        )
    event = CardKeyRetired(
        peer=peer.id, peer_url=peer.url, kid=kid, thumbprint=found.thumbprint, who=who, reason=reason
    )
    (placed,) = ledger.append([ledger.draft(event, stream=f"peer:{peer.id}")])
    return event, placed


def _check_new(ledger: ContractLedger, key: CardKey, held: tuple[CardKey, ...]) -> None:
    """See that a key is not trusted already, and that its key id does not stand for another one.

    Raises:
        UsageError: saying what is held.
    """
    mine = thumbprint(key.jwk)
    for other in held:
        theirs = thumbprint(other.jwk)
        if theirs == mine:
            raise UsageError(
                f"key {other.kid!a} with the thumbprint {mine} is trusted already, {_where(ledger, other, mine)}; "
                "nothing was recorded"
            )
        if other.kid == key.kid:
            raise UsageError(
                f"key id {key.kid!a} stands for another key already, {_where(ledger, other, theirs)}: its thumbprint "
                f"is {theirs}, that of the new key {mine}; retire the old key first. Nothing was recorded"
            )


def _where(ledger: ContractLedger, key: CardKey, of: str) -> str:
    if key.source == "policy":
        return "by the file that the setting card_keys names"
    recorded = keys_of_peer(ledger.store, str(key.peer))
    position = next(one.added.n for one in reversed(recorded) if one.thumbprint == of)
    return f"recorded as #{position}"
