"""What a ledger has in its store, octet for octet: the place to look for a secret that must not be there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from a2a_ledger import ContractLedger

if TYPE_CHECKING:
    from pathlib import Path

    from a2a_ledger.codec import Record


def clear(record: Record) -> bytes:
    """Return everything of one record that is stored: its data, and the parts of its blobs that are there."""
    found = [json.dumps(record.data, ensure_ascii=False).encode()]
    for role in record.blobs:
        parts = record.stored_parts(role) or ()
        found += [octets for part in parts if isinstance(octets := getattr(part, "content", None), bytes)]
    return b"\0".join(found)


def holding(ledger: ContractLedger, secret: str) -> list[int]:
    """Return the positions of the records that hold a secret in the clear."""
    return [record.n for record in ledger.store.read(0, 100_000) if secret.encode() in clear(record)]


def all_octets(root: Path) -> bytes:
    """Return all that a ledger's directory holds: its files as they lie there, and each record as it opens."""
    with ContractLedger.open(root, read_only=True) as ledger:
        records = [clear(record) for record in ledger.store.read(0, 100_000)]
    return b"\n".join([*records, *(path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file())])


def headers(record: Record) -> list[list[str]]:
    """Return the kept headers of a record that have no hole."""
    roles = sorted(role for role in record.blobs if role.startswith("header."))
    found = (record.content(role) for role in roles)
    return [json.loads(octets) for octets in found if octets is not None]
