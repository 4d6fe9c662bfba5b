"""Which contract of a peer is in force: of the card at one place, the one that was accepted or captured last.

With its terms under the deployment's profile: a change of either is taken on by an acceptance alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from a2a_ledger.capture.card_identity import key_of
from a2a_ledger.capture.cards import has_holes, read_event
from a2a_ledger.card import Card, read_card
from a2a_ledger.contract import FORM, TERMS_FORM, contract_of, terms_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from a2a_ledger.capture.card_identity import CardIdentity
    from a2a_ledger.capture.peerview import KeptCard
    from a2a_ledger.capture.reader import LogReader
    from a2a_ledger.codec import Record
    from a2a_ledger.contract import Profile
    from a2a_ledger.events import Ref

_LOOK_BACK = 8
"""Records under one tag among which one is looked for whose card was fetched; those of an import have none."""

_OLD_LOOK_BACK = 64
"""The same, where nothing but the fetch says which card it was."""


class InForce(NamedTuple):
    """The contract in force: its hash in the form of today, by which event, and the fetch of its card."""

    contract_hash: str
    since: Record
    fetch: Record

    def card(self, reader: LogReader) -> Card | None:
        """Return its card; None where something was cut out of what is stored of it."""
        stands = cast("Ref | None", self.fetch.data.get("not_modified"))
        return _whole(read_event(reader, stands) if stands is not None else self.fetch)

    def terms(self, reader: LogReader, profile: Profile) -> str | None:
        """Return the hash of its terms under a profile; None where neither a record nor its card says it."""
        data = self.since.data
        if data.get("profile_hash") == profile.hash and data.get("terms_form", TERMS_FORM) == TERMS_FORM:
            recorded = data.get("new_terms" if self.since.type == "contract.accepted.v1" else "terms_hash")
            return recorded if isinstance(recorded, str) else None
        card = self.card(reader)
        return terms_of(card, profile).hash if card is not None else None

    def says(self, contract_hash: str, terms: str, reader: LogReader, profile: Profile) -> bool:
        """Say whether a card of this contract and these terms states what is in force.

        Terms of which nobody knows any more what they were count as the same.
        """
        return self.contract_hash == contract_hash and self.terms(reader, profile) in {terms, None}


def contract_in_force(reader: LogReader, peer: str, key: CardIdentity | None) -> InForce | None:
    """Return what a card of this peer has to be compared with before a client is built from it.

    Whatever was aborted in between is no matter: a peer that changes its contract step by step is held to the one
    that was agreed to last, however much was sent on its other cards since. Who is held to what: see
    `CardIdentity.agreed_as`.

    Args:
        reader: the log.
        peer: peer id.
        key: which card it is; None: whichever card of the peer was agreed to last.
    """
    tags = [f"{tag}:{peer}" for tag in ("accepted", "sent")] if key is None else []
    found = _newest(reader, tags)
    ids = key.agreed_as if key is not None else []
    for card_id in ids:
        found = found or _newest(reader, [f"agreed:{peer}:{card_id}"])
    return found or (_of_old(reader, peer, ids) if ids else None)


def kept_as_read(reader: LogReader, kept: KeptCard) -> Card | None:
    """Return the card of a kept answer; None where something was cut out of what is stored of it."""
    return _whole(read_event(reader, kept.bytes_of))


def _whole(record: Record | None) -> Card | None:
    if record is None or has_holes(record):
        return None
    return read_card(record.content("body") or b"")


def _newest(reader: LogReader, tags: list[str]) -> InForce | None:
    """Return the newest acceptance or capture under these tags whose card was fetched."""
    return next(_agreements(reader, _tagged(reader, tags, _LOOK_BACK)), None)


def _of_old(reader: LogReader, peer: str, card_ids: list[str]) -> InForce | None:
    """Return the same of a card by what was recorded before agreements stated their `card_ids`: by its fetch."""
    old = [
        record
        for record in _tagged(reader, [f"{tag}:{peer}" for tag in ("accepted", "sent")], _OLD_LOOK_BACK)
        if record.data.get("card_ids") is None
    ]
    found = [(one, key_of(one.fetch.data).agreed_as) for one in _agreements(reader, old)]
    return next((one for card_id in card_ids for one, its_ids in found if card_id in its_ids), None)


def _tagged(reader: LogReader, tags: list[str], limit: int) -> list[Record]:
    """Return the last records under each of these tags, newest first."""
    records = [record for tag in tags for record in reader.tagged(tag, limit=limit, desc=True)]
    return sorted(records, key=lambda record: -record.n)


def _agreements(reader: LogReader, records: Iterable[Record]) -> Iterator[InForce]:
    """Yield what these acceptances and captures agreed to, of those whose card was fetched."""
    for record in records:
        agreed = record.data.get("new_hash" if record.type == "contract.accepted.v1" else "contract_hash")
        ref = cast("Ref | None", record.data.get("fetch"))
        fetch = read_event(reader, ref) if ref is not None and record.type != "contract.reconstructed.v1" else None
        if fetch is not None and isinstance(agreed, str):
            yield _in_form_of_today(reader, InForce(agreed, record, fetch))


def _in_form_of_today(reader: LogReader, held: InForce) -> InForce:
    """Hash an agreement in another form from its card again: hashes of two forms say nothing about each other."""
    if held.since.data.get("form") == FORM:
        return held
    card = held.card(reader)
    contract = contract_of(card) if card is not None else None
    return held if contract is None else held._replace(contract_hash=contract.hash)
