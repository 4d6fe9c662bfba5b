"""What a ledger that was just followed still waits for, and the key that is missing for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.cli.output import counted

if TYPE_CHECKING:
    from a2a_ledger.ledger import ContractLedger

VERIFIER = "verifier-2"
"""The follower whose position says how far findings are due: `divergence.VERIFIER`, which is slow to import."""


def unfinished(ledger: ContractLedger) -> list[str]:
    """Return a sentence for each work that cannot be done here, with the key that it needs; [] if there is none.

    Events that came in a moment ago are no such work: a key is what is asked for.
    """
    said: list[str] = []
    size = ledger.store.size()
    behind = size - ledger.store.position(VERIFIER)
    if behind > 0 and ledger.statement_signer is None:
        said.append(
            f"The verifier has not looked at the last {counted(behind, 'event')}: {_needs(ledger, 'statement')}, the "
            "key that signs findings."
        )
    if "log" not in ledger.signers:
        newest = ledger.store.latest_checkpoint()
        bare = size - (newest[0] if newest else 0)
        if bare > 0:
            said.append(
                f"No signed head covers the last {counted(bare, 'event')}: {_needs(ledger, 'log')}, the key that "
                "signs heads."
            )
    return said


def _needs(ledger: ContractLedger, role: str) -> str:
    place = ledger.home.keys / f"{role}.pem" if ledger.home else f"{role}.pem"
    return f"{place} is missing"
