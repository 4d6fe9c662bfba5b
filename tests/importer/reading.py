"""What a ledger holds, in the few words that a test compares."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from a2a_ledger.codec import Record
    from a2a_ledger.events import Json
    from a2a_ledger.ledger import ContractLedger


def imported(ledger: ContractLedger) -> list[Record]:
    """Return the records that came from a file, in the order of the log."""
    return [record for record in ledger.store.read(0, 100_000) if record.how == "import"]


def kinds(ledger: ContractLedger) -> list[str]:
    """Return the imported records by type, messages by leg."""
    return [str(record.data.get("leg") or record.type) for record in imported(ledger)]


def facts(ledger: ContractLedger, *names: str) -> list[tuple[Json, ...]]:
    """Return some fields of every imported message."""
    messages = [record for record in imported(ledger) if record.type == "message.recorded.v1"]
    return [tuple(record.data.get(name) for name in names) for record in messages]


def findings(ledger: ContractLedger) -> list[tuple[str, str, str]]:
    """Run the verifier and return rule, about and certainty of every finding."""
    ledger.catch_up()
    found = [record.data for record in ledger.store.read(0, 100_000) if record.type == "violation.detected.v1"]
    return [(str(data["rule"]), str(data["about"]), str(data["certainty"])) for data in found]
