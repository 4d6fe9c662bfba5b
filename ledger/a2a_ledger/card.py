"""An Agent Card as it came: exact bytes, what they are, and what is odd about them. Pure.

docs/format.md section 7. Reading never raises: whatever a peer serves is recorded as fetched, and `flags`
and `problem` say why some of it cannot be captured.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field

from a2a_ledger.address import agent_card_url, origin_of, peer_id, peer_url
from a2a_ledger.contract.card_json import (
    MAX_DEPTH,
    CardObject,
    CardValue,
    Parsed,
    UnrepresentableError,
    canonical,
    parse,
    sha256_name,
)
from a2a_ledger.contract.dialect import card_inside, dialect_of, is_card
from a2a_ledger.contract.normal_form import Contract, normalise

__all__ = [
    "MAX_CARD",
    "MAX_DEPTH",
    "Card",
    "CardObject",
    "CardValue",
    "agent_card_url",
    "origin_of",
    "peer_id",
    "peer_url",
    "read_card",
]

MAX_CARD = 1024 * 1024
"""Bytes of a card that may be captured; larger answers are recorded and refused. Real cards stay below 20 KB."""


@dataclass(frozen=True, slots=True)
class Card:
    """What some bytes are as an Agent Card.

    Attributes:
        raw: The bytes as served.
        document: The parsed JSON object; None when the bytes are not one. With duplicate keys the last one stands.
        dialect: "0.1", "0.2", "0.3", "1.0", "hybrid" or "unknown".
        is_card: Whether this is an Agent Card at all.
        flags: What is odd, sorted: ambiguous-keys, bom, card-inside, duplicate-keys, duplicate-skill-ids,
            halves-disagree, not-a-card, not-json, not-utf-8, odd-shape, odd-version, too-deep, too-large,
            unknown-scheme, unrepresentable.
        problem: One sentence why it cannot be captured; "" when it can.
        raw_hash: `sha256:<hex>` of the bytes.
        document_hash: `sha256:<hex>` of the document's RFC 8785 bytes; None where it has none.
        contract: The normal form, or None when the card cannot be captured.
    """

    raw: bytes = field(repr=False)
    document: CardObject | None = field(repr=False)
    dialect: str
    is_card: bool
    flags: tuple[str, ...]
    problem: str
    raw_hash: str
    document_hash: str | None
    contract: Contract | None = field(repr=False)


def read_card(raw: bytes, *, content_type: str | None = None) -> Card:
    """Read bytes that should be an Agent Card. Never raises.

    Args:
        raw: The body after content decoding.
        content_type: The answer's Content-Type, used in the sentence that says what came instead of a card.
    """
    raw_hash = sha256_name(raw)
    if len(raw) > MAX_CARD:
        return too_large_card(raw, len(raw), raw_hash)
    parsed = parse(raw)
    document = parsed.value
    served = f" (served as {content_type})" if content_type else ""
    if not parsed.ok:
        return _refused(raw, raw_hash, parsed.problem + served, parsed.flags)
    if not isinstance(document, dict):
        found = "a list" if isinstance(document, list) else "a single value"
        return _refused(raw, raw_hash, f"expected a JSON object, found {found}{served}", parsed.flags)
    if not is_card(document):
        return _refused(raw, raw_hash, *_no_card(document, served, parsed.flags))
    return _read_document(raw, raw_hash, document, parsed)


def too_large_card(raw: bytes, size: int, raw_hash: str) -> Card:
    """Return what is said of bytes that are more than a card may have.

    Args:
        raw: all of them, or the beginning that is held.
        size: of all of them, in bytes.
        raw_hash: of all of them.
    """
    return _refused(raw, raw_hash, f"expected at most {MAX_CARD} bytes, found {size}", {"too-large"})


def _no_card(document: CardObject, served: str, flags: frozenset[str]) -> tuple[str, frozenset[str]]:
    """Return why an object is no card, and its flags."""
    envelope = card_inside(document)
    if envelope is not None:
        problem = f"expected an Agent Card, found one inside the member {envelope!r}{served}, where no client looks"
        return f"{problem}; read the value of that member by itself", flags | {"card-inside"}
    names = ", ".join(sorted(document)[:5]) or "none"
    return f"expected an Agent Card, found a JSON object without its members{served}; it has: {names}", flags


def _refused(raw: bytes, raw_hash: str, problem: str, flags: set[str] | frozenset[str]) -> Card:
    return Card(
        raw=raw,
        document=None,
        dialect="unknown",
        is_card=False,
        flags=tuple(sorted({"not-a-card", *flags})),
        problem=problem,
        raw_hash=raw_hash,
        document_hash=None,
        contract=None,
    )


def _read_document(raw: bytes, raw_hash: str, document: CardObject, parsed: Parsed) -> Card:
    flags = set(parsed.flags)
    dialect = dialect_of(document)
    contract, document_hash, problem = None, None, ""
    try:
        contract, found = normalise(document, dialect, simple_numbers=parsed.simple_numbers)
        flags |= found
    except UnrepresentableError as error:
        flags.add("unrepresentable")
        problem = f"the contract part holds a value that RFC 8785 cannot express: {error}"
    if "duplicate-keys" in flags:
        contract = None
        problem = "the same key stands twice in one object, so two readers may be bound to different terms"
    else:
        # Outside the contract part a strange number or text does no harm.
        with contextlib.suppress(UnrepresentableError):
            document_hash = sha256_name(canonical(document, simple_numbers=parsed.simple_numbers))
    return Card(
        raw=raw,
        document=document,
        dialect=dialect,
        is_card=True,
        flags=tuple(sorted(flags)),
        problem=problem,
        raw_hash=raw_hash,
        document_hash=document_hash,
        contract=contract,
    )
