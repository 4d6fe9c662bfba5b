"""Card rules: what a fetch shows about the card itself. Once a card or a tag; they never reject."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.card import read_card
from a2a_ledger.contract import contract_of
from a2a_ledger.divergence.finding import Finding, evidence_of, in_order
from a2a_ledger.divergence.peer_case import fetch_of, trusted_signature
from a2a_ledger.divergence.reading import CARD_FETCHED, content, members, text, texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.codec import Record
    from a2a_ledger.divergence.finding import Evidence
    from a2a_ledger.divergence.peer_case import Fetch, PeerCase
    from a2a_ledger.divergence.reading import Lookup
    from a2a_ledger.events import Json

_LONGEST = 256


def card_rules(record: Record, peer: PeerCase, lookup: Lookup) -> Iterator[Finding]:
    """Hold one card fetch against the fetches before it."""
    if record.type != CARD_FETCHED:
        return
    yield from _validator_lied(record, peer, lookup)
    yield from _halves_disagree(record, peer)
    yield from _signature_broken(record, peer)


def _validator_lied(record: Record, peer: PeerCase, lookup: Lookup) -> Iterator[Finding]:
    """The same strong tag for other bytes; the same weak tag for another contract or another document."""
    tag = peer.tag_of(record)
    before = peer.tags.get(tag) if tag is not None else None
    if tag is None or before is None:
        return
    now, etag = fetch_of(record), tag[-1]
    weak = etag.startswith("W/")
    if now.raw_hash == before.raw_hash or (weak and not _means_another(record, now, before, lookup)):
        return
    subject = peer.readings.in_subject(etag, _LONGEST)
    if ("validator-lied", subject) in peer.reported:
        return
    observed: dict[str, Json] = {
        "etag": etag[:_LONGEST],
        "strength": "weak" if weak else "strong",
        "raw": [before.raw_hash, now.raw_hash],
        "contract": [before.contract_hash, now.contract_hash],
        "form": now.form,
    }
    yield _finding(record, peer, "validator-lied", subject, observed, before.evidence)


def _means_another(record: Record, now: Fetch, before: Fetch, lookup: Lookup) -> bool:
    """Say whether two cards of one weak tag differ in more than bytes and signatures (RFC 9110 section 8.8.1)."""
    if now.form == before.form and now.contract_hash != before.contract_hash:
        return True
    if now.document_hash == before.document_hash:
        return False
    earlier = lookup(before.evidence.ref)
    return earlier is not None and _unsigned(earlier) != _unsigned(record)


def _unsigned(record: Record) -> dict[str, Json] | None:
    """Return the card's document without its signatures, which differ on every signing."""
    document = members(read_card(content(record, "body") or b"").document)
    return {name: value for name, value in document.items() if name != "signatures"}


def _halves_disagree(record: Record, peer: PeerCase) -> Iterator[Finding]:
    """A hybrid card binds clients of two generations to different terms."""
    raw_hash = text(record.data, "raw_hash")
    if raw_hash is None or "halves-disagree" not in texts(record.data.get("flags")):
        return
    if record.data.get("not_modified") is not None or ("halves-disagree", raw_hash) in peer.reported:
        return
    contract = contract_of(read_card(content(record, "body") or b""))
    value = {} if contract is None else contract.value
    legacy = members(value.get("legacy"))
    differing: list[Json] = [name for name in sorted(legacy) if legacy[name] != value.get(name)]
    observed: dict[str, Json] = {
        "raw": raw_hash,
        "contract": text(record.data, "contract_hash"),
        "form": text(record.data, "form"),
        "members": differing,
    }
    yield _finding(record, peer, "halves-disagree", raw_hash, observed)


def _signature_broken(record: Record, peer: PeerCase) -> Iterator[Finding]:
    """A card's signature does not verify under a key that is trusted for this peer, as it was judged when it came.

    Once a card (its octets). Where an earlier card at the same place had a valid one, that fetch is shown too. What no
    trusted key decides is no finding: no signature, an unknown key, a key inside the card, a shape that is not
    understood, a card that came out of a library instead of the wire.
    """
    raw_hash = text(record.data, "raw_hash")
    if raw_hash is None or trusted_signature(record) != "invalid" or record.data.get("not_modified") is not None:
        return
    if ("signature-broken", raw_hash) in peer.reported:
        return
    signature = members(record.data.get("signature"))
    before = peer.signed.get(peer.key_of(record))
    observed: dict[str, Json] = {
        "raw": raw_hash,
        "contract": text(record.data, "contract_hash"),
        "form": text(record.data, "form"),
        "kid": (text(signature, "kid") or "")[:_LONGEST] or None,
        "alg": (text(signature, "alg") or "")[:_LONGEST] or None,
        "key": text(signature, "key"),
        "valid_at": None if before is None else before.n,
    }
    yield _finding(record, peer, "signature-broken", raw_hash, observed, *([before] if before else []))


def _finding(
    record: Record, peer: PeerCase, rule: str, subject: str, observed: dict[str, Json], *evidence: Evidence
) -> Finding:
    return Finding(
        rule=rule,
        about="peer",
        certainty="certain",
        subject=subject,
        trigger=evidence_of(record),
        evidence=in_order(*evidence, evidence_of(record)),
        peer=peer.peer,
        basis="import" if record.how == "import" else "live",
        observed=peer.readings.observed(observed),
    )
