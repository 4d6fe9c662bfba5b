"""Which contract of a peer is in force: of the card at one place, the one that was accepted or captured last."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from a2a_ledger.capture.cards import has_holes, read_event
from a2a_ledger.card import Card, read_card

if TYPE_CHECKING:
    from a2a_ledger.capture.card_identity import CardIdentity
    from a2a_ledger.capture.reader import LogReader
    from a2a_ledger.codec import Record
    from a2a_ledger.events import Ref

_LOOK_BACK = 8
"""Records under one tag among which one is looked for whose card was fetched; those of an import have none."""


class InForce(NamedTuple):
    """The contract in force: its hash, by which event, and the fetch of its card."""

    contract_hash: str
    since: Record
    fetch: Record

    def card(self, reader: LogReader) -> Card | None:
        """Return its card; None where something was cut out of what is stored of it."""
        stands = cast("Ref | None", self.fetch.data.get("not_modified"))
        record = read_event(reader, stands) if stands is not None else self.fetch
        if record is None or has_holes(record):
            return None
        return read_card(record.content("body") or b"")


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
    for card_id in key.agreed_as if key is not None else []:
        found = found or _newest(reader, [f"agreed:{peer}:{card_id}"])
    return found


def _newest(reader: LogReader, tags: list[str]) -> InForce | None:
    """Return the newest acceptance or capture under these tags whose card was fetched."""
    records = [record for tag in tags for record in reader.tagged(tag, limit=_LOOK_BACK, desc=True)]
    for record in sorted(records, key=lambda record: -record.n):
        agreed = record.data.get("new_hash" if record.type == "contract.accepted.v1" else "contract_hash")
        ref = cast("Ref | None", record.data.get("fetch"))
        fetch = read_event(reader, ref) if ref is not None and record.type != "contract.reconstructed.v1" else None
        if fetch is not None and isinstance(agreed, str):
            return InForce(agreed, record, fetch)
    return None
