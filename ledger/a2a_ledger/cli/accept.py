"""Taking on a changed contract by hand: what `card accept` records."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from a2a_ledger.capture.card_identity import key_of
from a2a_ledger.capture.in_force import contract_in_force
from a2a_ledger.capture.refusal import contract_pointers, diff_text
from a2a_ledger.card import read_card
from a2a_ledger.contract import contract_of, diff, terms_of
from a2a_ledger.errors import UsageError
from a2a_ledger.events import ContractAccepted

if TYPE_CHECKING:
    from a2a_ledger.capture.in_force import InForce
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
    new = _card(store, seen[new_hash])
    contract = contract_of(new)
    if contract is None:
        raise UsageError(f"{new_hash}: the card that the peer served cannot be captured ({new.problem})")
    terms = terms_of(new, ledger.profile).hash
    held = _replaced(ledger, peer, seen[new_hash], terms)
    old = held.card(store)
    change = diff(old, new, ledger.profile) if old is not None else None
    event = ContractAccepted(
        peer=peer,
        old_hash=held.contract_hash,
        new_hash=new_hash,
        form=contract.form,
        authorization=(change.authorization if change else None) or "incomparable",
        pointers=contract_pointers(change) if change else [],
        acceptance="manual",
        who=who,
        fetch=seen[new_hash].ref,
        card_ids=key_of(seen[new_hash].data).agreed_as,
        profile_hash=ledger.profile.hash,
        old_terms=held.terms(store, ledger.profile),
        new_terms=terms,
    )
    blobs = {"diff": diff_text(change)} if change else {}
    (appended,) = ledger.append([ledger.draft(event, stream=f"peer:{peer}", blobs=blobs)])
    return event, appended.n


def _contracts(store: Store, peer: str) -> dict[str, Record]:
    """Return the newest fetch of every contract that the peer served, newest first."""
    found: dict[str, Record] = {}
    for record in store.read_stream(f"peer:{peer}", limit=_RECENT, desc=True):
        contract = record.data.get("contract_hash")
        if record.type == "card.fetched.v1" and isinstance(contract, str) and record.data["source"] != "configured":
            found.setdefault(contract, record)
    return found


def _replaced(ledger: ContractLedger, peer: str, served: Record, terms: str) -> InForce:
    """Return the contract in force, which this acceptance replaces.

    Raises:
        UsageError: there is none, or it is this one already, with these terms.
    """
    new_hash = str(served.data["contract_hash"])
    held = contract_in_force(ledger.store, peer, key_of(served.data))
    if held is None:
        raise UsageError(
            f"{new_hash}: nothing waits for this acceptance; no contract of this card is in force yet, and the first "
            "one that is captured needs none"
        )
    if held.says(new_hash, terms, ledger.store, ledger.profile):
        how = "accepted" if held.since.type == "contract.accepted.v1" else "captured"
        raise UsageError(f"{new_hash}: {how} already, as #{held.since.n}; nothing was recorded")
    return held


def _card(store: Store, fetch: Record) -> Card:
    """Return the card of a fetch; of a 304, the card whose bytes it says still stand."""
    stands = cast("Ref | None", fetch.data.get("not_modified"))
    bytes_of = store.read_stream(stands["stream"], gt=stands["ver"] - 1, limit=1)[0] if stands else fetch
    return read_card(bytes_of.content("body") or b"")
