"""Manifests that a bundle shows: what their records say against their envelopes, and decisions against both.

docs/format.md sections 7.7 and 12. Which keys the exporter's deployment trusted is its own statement, unless the key
is one of the log's: then its signature is checked again.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from a2a_ledger.codec import timestamp
from a2a_ledger.divergence.reading import content, members, text
from a2a_ledger.errors import FormatError
from a2a_ledger.key_events import read_keys
from a2a_ledger.manifest import VALID, read_manifest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from a2a_ledger.codec import Record

MANIFEST: Final = "card.manifest.v1"
_LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)


def differences_of_manifest(record: Record, ledger_stream: Iterable[Record]) -> Iterator[str]:
    """Yield where a recorded manifest says something else than its own envelope, all of whose octets are shown.

    Args:
        record: the event.
        ledger_stream: the shown events that name the log's keys.
    """
    data = record.data
    own = [term.key for term in read_keys(ledger_stream, record.log).terms if term.role == "statement"]
    try:
        said, status, key_id = read_manifest(content(record, "manifest") or b"", own, _LONG_AGO)
    except FormatError as problem:
        yield f"its blob manifest is none: {problem}"
        return
    made = {
        "peer": said.peer,
        "peer_url": said.peer_url,
        "raw_hash": said.card_hash,
        "contract_hash": said.contract_hash,
        "form": said.form,
        "issued_at": timestamp(said.issued_at),
        "floor_until": timestamp(said.floor_until),
    }
    for name, value in made.items():
        if data.get(name) != value:
            yield f"{name} is not that of its manifest"
    if text(data, "key_id") in {key.key_id for key in own} and status != VALID:
        yield f"the log's key {data.get('key_id')} did not sign its manifest"
    if text(data, "status") == VALID and key_id is None and text(data, "key_id") is None:
        yield "it counts as valid and names no key that signed it"


def differences_of_decision(decision: Record, manifest: Record, card: Record | None) -> Iterator[str]:
    """Yield where a decision says something else of the manifest that it looked at than that manifest's record.

    Args:
        decision: a `freshness.decided.v1` whose inputs have a manifest.
        manifest: the event that it names.
        card: the fetch that it was decided about, if that is shown.
    """
    looked = members(members(decision.data.get("inputs")).get("manifest"))
    named = f"the manifest at {manifest.n}"
    if manifest.type != MANIFEST:
        yield f"manifest names event {manifest.n}, which is none"
        return
    if manifest.n >= decision.n:
        yield f"was decided before {named} was recorded"
    if looked.get("floor_until") != manifest.data.get("floor_until"):
        yield f"was decided with another floor than {named} has"
    if looked.get("valid") is not True:
        return
    if manifest.data.get("status") != VALID:
        yield f"counts {named} as valid, which was recorded as {manifest.data.get('status')}"
    if manifest.data.get("peer") != decision.data.get("peer"):
        yield f"counts {named} as valid, which is for another peer"
    if card is not None:
        for name in ("raw_hash", "contract_hash", "form"):
            if card.data.get(name) != manifest.data.get(name):
                yield f"counts {named} as valid, whose {name} is not that of the card fetched at {card.n}"
