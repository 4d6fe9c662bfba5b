"""Manifests for the cards that a test's ledger has fetched."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from a2a_ledger.keys import generate
from a2a_ledger.manifest import Manifest, make_manifest
from tests.capture.conftest import only

if TYPE_CHECKING:
    from a2a_ledger import ContractLedger
    from a2a_ledger.codec import Record
    from a2a_ledger.keys import Signer

HOUR = timedelta(hours=1)
OUTSIDE = generate("acme.example/pinning", lambda size: b"p" * size)
"""A key that is not the ledger's own."""


class Clock:
    """Our clock, which a test may set: it goes on from there."""

    def __init__(self) -> None:
        self.shift = timedelta(0)

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.shift


def pinned(ledger: ContractLedger, *, signer: Signer | None = None, floor: timedelta = HOUR, **changes: Any) -> bytes:  # noqa: ANN401 - any member of a manifest
    """Return a manifest for the newest card that the ledger has fetched, by its statement key if not told otherwise."""
    data = only(ledger, "card.fetched")[-1].data
    issued: datetime = changes.pop("issued_at", ledger.clock())
    values: dict[str, Any] = {
        "peer": data["peer"],
        "peer_url": data["peer_url"],
        "card_hash": data["raw_hash"],
        "contract_hash": data["contract_hash"],
        "form": data["form"],
        "issued_at": issued,
        "floor_until": issued + floor,
        **changes,
    }
    by = signer or ledger.statement_signer
    assert by is not None
    return make_manifest(Manifest(**values), by)


def decisions(ledger: ContractLedger) -> list[Record]:
    """Return the decisions before sends, oldest first."""
    return [record for record in only(ledger, "freshness.decided") if record.stream.startswith("task:")]


def reasons(ledger: ContractLedger) -> list[object]:
    """Return their reasons."""
    return [record.data["reason"] for record in decisions(ledger)]
