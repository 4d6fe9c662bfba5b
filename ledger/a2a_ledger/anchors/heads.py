"""Which head is given to others: the newest one, unless something but anchors was recorded since."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.anchors.held import is_settled

if TYPE_CHECKING:
    from a2a_ledger.ledger import ContractLedger


def head_to_anchor(ledger: ContractLedger) -> str:
    """Return the newest head if nothing but anchors came after it, else sign the head as it is now.

    Raises:
        ReadOnlyError: the log key is not here.
        StoreError: the head could not be signed.
    """
    newest = ledger.store.latest_checkpoint()
    if newest is None or not is_settled(ledger.store, newest[0]):
        return ledger.sign_checkpoint()
    return newest[1]
