"""Taking on a changed contract by hand: what `card accept` records."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from a2a_ledger.capture.refusal import contract_pointers, diff_text
from a2a_ledger.card import read_card
from a2a_ledger.contract import contract_of, diff
from a2a_ledger.errors import UsageError
from a2a_ledger.events import ContractAccepted

if TYPE_CHECKING:
    from a2a_ledger.card import Card
    from a2a_ledger.codec import Record
    from a2a_ledger.events import Ref
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.store import Store

_RECENT = 512  # records of the peer's stream that are looked through


def accept_contract(ledger: ContractLedger, peer: str, wanted: str, *, who: str) -> tuple[ContractAccepted, int]:
    """Record that a contract of this peer, which the ledger has seen it serve, is accepted.

    Returns:
        The event and its position.

    Raises:
        UsageError: the hash fits no contract, or several, that the peer served; or nothing waits for it.
    """
    store = ledger.store
    seen = _contracts(store, peer)
    spelled = wanted if wanted.startswith("sha256:") else f"sha256:{wanted}"
    fitting = [contract for contract in seen if contract.startswith(spelled)]
    if len(fitting) != 1:
        raise UsageError(
            f"{wanted!a}: expected the hash of one contract that this peer served, found {len(fitting)} that begin so; "
            f"it served {', '.join(list(seen)[:3]) or 'none that can be captured'}"
        )
    new_hash = fitting[0]
    old_hash = _replaced(store, peer, new_hash)
    new, old = _card(store, seen[new_hash]), _card(store, seen[old_hash]) if old_hash in seen else None
    contract = contract_of(new)
    if contract is None:
        raise UsageError(f"{new_hash}: the card that the peer served cannot be captured ({new.problem})")
    change = diff(old, new, ledger.profile) if old else None
    event = ContractAccepted(
        peer=peer,
        old_hash=old_hash,
        new_hash=new_hash,
        form=contract.form,
        authorization=(change.authorization if change else None) or "incomparable",
        pointers=contract_pointers(change) if change else [],
        acceptance="manual",
        who=who,
        fetch=seen[new_hash].ref,
    )
    blobs = {"diff": diff_text(change)} if change else {}
    (appended,) = ledger.append([ledger.draft(event, stream=f"peer:{peer}", blobs=blobs)])
    return event, appended.n


def _contracts(store: Store, peer: str) -> dict[str, Record]:
    """Return the newest fetch of every contract that the peer served, newest first."""
    found: dict[str, Record] = {}
    for record in store.read_stream(f"peer:{peer}", limit=_RECENT, desc=True):
        contract = record.data.get("contract_hash")
        if record.type == "card.fetched.v1" and isinstance(contract, str):
            found.setdefault(contract, record)
    return found


def _replaced(store: Store, peer: str, new_hash: str) -> str:
    """Return the contract that the newest abort held on to.

    Raises:
        UsageError: no abort waits for an acceptance.
    """
    aborted = store.tagged(f"aborted:{peer}", limit=1, desc=True)
    old_hash = aborted[0].data.get("old_hash") if aborted else None
    if not isinstance(old_hash, str) or old_hash == new_hash:
        raise UsageError(
            f"{new_hash}: nothing waits for this acceptance; a contract is accepted after a send was aborted on its "
            "change"
        )
    accepted = store.tagged(f"accepted:{peer}", limit=1, desc=True)
    if accepted and accepted[0].n > aborted[0].n and accepted[0].data.get("new_hash") == new_hash:
        raise UsageError(f"{new_hash}: accepted already, as #{accepted[0].n}; nothing was recorded")
    return old_hash


def _card(store: Store, fetch: Record) -> Card:
    """Return the card of a fetch; of a 304, the card whose bytes it says still stand."""
    stands = cast("Ref | None", fetch.data.get("not_modified"))
    bytes_of = store.read_stream(stands["stream"], gt=stands["ver"] - 1, limit=1)[0] if stands else fetch
    return read_card(bytes_of.content("body") or b"")
