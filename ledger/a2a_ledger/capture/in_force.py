"""Which contract of a peer is in force: of the card at one place, the one that was accepted or captured last."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from a2a_ledger.capture.card_key import CardKey, key_of
from a2a_ledger.capture.cards import has_holes, read_event
from a2a_ledger.card import Card, read_card

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.capture.reader import LogReader
    from a2a_ledger.codec import Record
    from a2a_ledger.events import Ref

_LOOK_BACK = 64
"""Acceptances, and captures, of a peer among which those of one place are looked for."""


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


def contract_in_force(reader: LogReader, peer: str, key: CardKey | None) -> InForce | None:
    """Return what a card of this peer has to be compared with before a client is built from it.

    Whatever was aborted in between is no matter: a peer that changes its contract step by step is held to the one
    that was agreed to last. Neither is who asks; but an extended card may differ by caller, so it is held to what
    was agreed to with the same credential, else by the same caller class, for a token may be a new one.

    Args:
        reader: the log.
        peer: peer id.
        key: which card it is; None: whichever card of the peer was agreed to last.
    """
    fetches: dict[str, Record | None] = {}
    by_class: InForce | None = None
    for record, agreed, ref in _agreed(reader, peer):
        if ref["c"] not in fetches:
            fetches[ref["c"]] = read_event(reader, ref)
        fetch = fetches[ref["c"]]
        if fetch is None:
            continue
        found, of = InForce(agreed, record, fetch), key_of(fetch.data)
        if key is None or (of.place == key.place and (key.source != "extended" or of.credential == key.credential)):
            return found
        if of.place == key.place and of.caller == key.caller:
            by_class = by_class or found
    return by_class


def _agreed(reader: LogReader, peer: str) -> Iterator[tuple[Record, str, Ref]]:
    """Yield acceptances and captures, newest first: the event, the contract's hash, the fetch of its card."""
    records = [
        record for tag in ("accepted", "sent") for record in reader.tagged(f"{tag}:{peer}", limit=_LOOK_BACK, desc=True)
    ]
    for record in sorted(records, key=lambda record: -record.n):
        agreed = record.data.get("new_hash" if record.type == "contract.accepted.v1" else "contract_hash")
        ref = cast("Ref | None", record.data.get("fetch"))
        if record.type != "contract.reconstructed.v1" and isinstance(agreed, str) and ref is not None:
            yield record, agreed, ref
