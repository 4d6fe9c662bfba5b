"""The contract in force at a send that was not seen live: found among the cards that were seen before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from a2a_ledger.capture.attribution import Peer, interface_used, tenant_fit, urls_of_interface
from a2a_ledger.card import Card, read_card
from a2a_ledger.contract import FORM, TERMS_FORM, contract_of, terms_of
from a2a_ledger.events import ContractReconstructed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_ledger.capture.reader import LogReader
    from a2a_ledger.codec import Record
    from a2a_ledger.contract import Profile
    from a2a_ledger.events import Interface, Ref
    from a2a_ledger.wire import Leg

_LOOK_BACK = 16


@dataclass(frozen=True, slots=True)
class CardInForce:
    """A recorded card fetch, with its bytes read."""

    record: Record
    card: Card

    @property
    def schemes(self) -> dict[str, object]:
        """The contract's scheme table; empty if it cannot be captured."""
        contract = contract_of(self.card)
        return cast("dict[str, object]", contract.value["schemes"]) if contract else {}


def card_in_force(reader: LogReader, peer: str, leg: Leg, caller: str = "anonymous") -> CardInForce | None:
    """Return the card of this peer that a request is made under, as a live client is taken to (docs/format.md 7.8).

    Of the cards that name the url sent to: the one for the tenant, then for the stated version, then of the same caller
    class, then the newest. Where none names it, the newest card of the peer.

    Args:
        reader: the log.
        peer: whom the request was sent to.
        leg: the request.
        caller: the caller class of the request.
    """
    naming = [
        record
        for base in urls_of_interface(leg.url)
        for record in reader.tagged(f"lists:{base}", limit=_LOOK_BACK, desc=True)
        if record.data.get("peer") == peer
    ]
    naming.sort(key=lambda record: _fits(record, leg, caller), reverse=True)
    for record in naming or _cards_of(reader, peer):
        body = _bytes_of(reader, record)
        if body is not None:
            return CardInForce(record, read_card(body))
    return None


def _fits(record: Record, leg: Leg, caller: str) -> tuple[int, bool, bool, int]:
    """Say how well a card that names the url of a request fits it, the better the greater."""
    listed = cast("list[Interface]", record.data.get("interfaces") or [])
    used = interface_used(listed, leg)
    return (
        tenant_fit(used, leg.url, leg.tenant),
        leg.version_stated in {None, used["version"]} and used in listed,
        record.data.get("caller") == caller,
        record.n,
    )


def reconstructed(
    leg: Leg, *, peer: Peer, found: CardInForce | None, profile: Profile, schemes_offered: Sequence[str]
) -> tuple[ContractReconstructed, dict[str, bytes]]:
    """Return the contract of a task, made from what was imported, and its blobs.

    Args:
        leg: the task's first send.
        peer: whom it was sent to.
        found: the card in force; None: no card was ever seen.
        profile: names the terms beside the core.
        schemes_offered: scheme names of the credentials that the send carried.
    """
    card = found.card if found else None
    contract = contract_of(card) if card else None
    terms = terms_of(card, profile, leg.extensions) if card and contract else None
    kinds = {cast("dict[str, object]", scheme).get("kind") for scheme in (found.schemes.values() if found else ())}
    event = ContractReconstructed(
        peer=peer.id,
        peer_url=peer.url,
        fetch=found.record.ref if found else None,
        raw_hash=card.raw_hash if card else None,
        document_hash=card.document_hash if card else None,
        contract_hash=contract.hash if contract else None,
        form=contract.form if contract else FORM,
        seed0=cast("str | None", found.record.data.get("seed0")) if found else None,
        terms_hash=terms.hash if terms else None,
        terms_form=terms.form if terms else TERMS_FORM,
        profile_hash=profile.hash,
        interface=interface_used(contract.interfaces if contract else [], leg),
        extensions=list(leg.extensions),
        credential=list(schemes_offered),
        credential_visible="mutualTLS" not in kinds,
        pin=dict(leg.pin) if leg.pin else None,
        caller=str(found.record.data.get("caller", "anonymous")) if found else "anonymous",
        skill=_only_skill(card) if card else None,
    )
    blobs = {"contract": contract.canonical} if contract else {}
    return event, {**blobs, **({"terms": terms.canonical} if terms else {})}


def _cards_of(reader: LogReader, peer: str) -> list[Record]:
    newest = reader.read_stream(f"peer:{peer}", limit=_LOOK_BACK, desc=True)
    return [r for r in newest if r.type == "card.fetched.v1" and "not-a-card" not in str(r.data.get("flags"))]


def _bytes_of(reader: LogReader, record: Record) -> bytes | None:
    """Return the card's bytes; of a 304 those of the fetch that it points to."""
    stands = record.data.get("not_modified")
    if isinstance(stands, dict):
        ref = cast("Ref", stands)
        earlier = reader.read_stream(ref["stream"], gt=ref["ver"] - 1, limit=1)
        return earlier[0].content("body") if earlier else None
    return record.content("body")


def _only_skill(card: Card) -> str | None:
    """Return the id of the card's only skill: a send names none, so only then is it known which one governs."""
    skills = (card.document or {}).get("skills")
    listed = skills if isinstance(skills, list) else []
    only = listed[0] if len(listed) == 1 else None
    name = only.get("id") if isinstance(only, dict) else None
    return name if isinstance(name, str) and len(name) <= 256 else None  # noqa: PLR2004 - a record has room for a name
