"""Judges the signatures of a card: which key, which canonical form, and does it cover the contract? Pure.

docs/format.md section 7.6. Judging never raises and its time is bounded. It is kept apart from the
contract: a valid signature never means that the contract is unchanged, and says for itself whether it
covers the contract.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

from a2a_ledger.card import read_card
from a2a_ledger.contract.card_json import printable
from a2a_ledger.errors import FormatError
from a2a_ledger.signature.base64url import decode, encode
from a2a_ledger.signature.card_keys import MAX_KID, CardKey, KeySource, public_jwk, shown, thumbprint
from a2a_ledger.signature.embedded_keys import embedded_keys
from a2a_ledger.signature.entries import Entry, entries_of
from a2a_ledger.signature.forms import FORMS
from a2a_ledger.signature.header import Header, read_header
from a2a_ledger.signature.judgement import Judgement, Status, rank
from a2a_ledger.signature.jws import KEY_TYPES, checker

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from a2a_ledger.card import Card
    from a2a_ledger.contract.card_json import CardObject
    from a2a_ledger.events import JsonObject

MAX_SIGNATURES: Final = 8
"""Signatures of one card that are looked at."""

MAX_KEYS: Final = 4
"""Keys that one signature is tried with, of those given and of those in the card each."""

MAX_REMADE: Final = 64 * 1024
"""Bytes of a card that is tried under every form; a larger one is tried under the first alone. Real cards stay
below 20 KB."""

_MAX_SIGNATURE: Final = 2048  # characters; RSA of 8192 bits has 1366
_MAX_REASON: Final = 600


def judge(card: Card, keys: Sequence[CardKey] = ()) -> Judgement:
    """Judge the signatures of a card. Never raises, fetches nothing, and its time is bounded.

    Args:
        card: The card as read.
        keys: Keys that may speak for the peer whose card this is (`card_keys.keys_for`).

    Returns:
        The strongest of its signatures: valid under a given key, invalid under one, valid under a key inside
        the card, invalid under one, undecidable; the first of equals.
    """
    document = card.document
    entries = entries_of(document) if document is not None else []
    if document is None or not entries:
        return Judgement("absent")
    payloads = _Payloads(card, document)
    each = [_judge_entry(entry, payloads, keys) for entry in entries[:MAX_SIGNATURES]]
    best = min(each, key=rank)
    if len(entries) > MAX_SIGNATURES:
        note = f"only the first {MAX_SIGNATURES} of {len(entries)} signatures were looked at"
        best = replace(best, reason=f"{best.reason}; {note}")
    return replace(best, signatures=tuple(each)) if len(entries) > 1 else best


class _Payloads:
    """The payloads that a card may stand for, each made when it is asked for, once."""

    def __init__(self, card: Card, document: CardObject) -> None:
        self.card = card
        self.document = document
        self.forms = FORMS if len(card.raw) <= MAX_REMADE else FORMS[:1]
        self._made: list[tuple[str, bytes]] = []
        self._making = self._make()

    def _make(self) -> Iterator[tuple[str, bytes]]:
        seen: set[bytes] = set()
        for form in self.forms:
            payload = form.bytes_of(self.document)
            if payload is not None and payload not in seen:
                seen.add(payload)
                yield form.name, payload

    def each(self) -> Iterator[tuple[str, bytes]]:
        """Return name of the form and payload, every payload under the first form that makes it."""
        yield from self._made
        for made in self._making:
            self._made.append(made)
            yield made

    def covers_contract(self, payload: bytes) -> bool | None:
        """Say whether what was signed, read as a card of its own, has the card's contract."""
        if self.card.contract is None:
            return None
        signed = read_card(payload).contract
        return signed is not None and signed.hash == self.card.contract.hash


def _judge_entry(entry: Entry, payloads: _Payloads, keys: Sequence[CardKey]) -> Judgement:
    if entry.shape:
        return _said("undecidable", f"shape: {entry.shape}; what it covers is not known here", kid=entry.kid)
    header = read_header(entry.protected, entry.header)
    if header.fault and header.kid is None:
        return _said("undecidable", header.fault, header)
    if header.beyond and not header.fault:
        return _said("undecidable", header.beyond, header)
    given = [key for key in keys if header.kid is None or header.kid in (key.kid, _thumbprint(key))]
    candidates = [*given[:MAX_KEYS], *_inside(header, payloads.document)]
    if not candidates:
        return _said("undecidable", header.fault or _no_key(header, keys), header)
    fault = header.fault or _fault_of(entry)
    each = [_judge_under(key, fault, entry, header, payloads) for key in candidates]
    if header.kid is None:  # then a key under which it does not verify is only not the one
        each = [one for one in each if one.status != "invalid"] or [_no_key_fits(each, header)]
    best = min(each, key=rank)
    reason = best.reason or ""
    if best.status != "valid" and len(given) > MAX_KEYS:
        reason += f"; only {MAX_KEYS} of the {len(given)} given keys that it may mean were tried"
    return replace(best, reason=reason)


def _inside(header: Header, document: CardObject) -> list[CardKey]:
    """Return the keys that a signature may mean and that the card brings itself, one in its header first."""
    inside = embedded_keys(document, header.kid, most=MAX_KEYS)
    if header.jwk is not None:
        with contextlib.suppress(FormatError):
            jwk = public_jwk(header.jwk)
            inside = [CardKey(header.kid or thumbprint(jwk), jwk, "card"), *inside]
    return inside[:MAX_KEYS]


def _no_key_fits(each: Sequence[Judgement], header: Header) -> Judgement:
    first = min(each, key=rank)
    return _said("undecidable", f"it names no key; each of the {len(each)} tried: {first.reason}", header)


def _thumbprint(key: CardKey) -> str | None:
    try:
        return thumbprint(key.jwk)
    except FormatError:
        return None


def _no_key(header: Header, keys: Sequence[CardKey]) -> str:
    named = "it names no key" if header.kid is None else f"it names key {shown(header.kid)}"
    held = f"none of the {len(keys)} given is that one" if keys else "no key was given"
    pointer = f"; it points to {shown(header.pointer)}, which is never fetched" if header.pointer else ""
    return f"{named}, {held}, and the card holds none{pointer}"


def _fault_of(entry: Entry) -> str:
    """Say what is wrong with a signature whatever the key, or ""."""
    if len(entry.signature) > _MAX_SIGNATURE:
        return f"the signature has {len(entry.signature)} characters, more than {_MAX_SIGNATURE}"
    if not decode(entry.signature):
        return "the signature is not base64url without padding"
    return ""


def _judge_under(key: CardKey, fault: str, entry: Entry, header: Header, payloads: _Payloads) -> Judgement:
    try:
        jwk = public_jwk(cast("CardObject", key.jwk))
    except FormatError as error:
        return _said("undecidable", f"the key that it names may not be used: {error}", header)
    fault = fault or _misfit(header.alg or "", jwk)
    if fault:
        return _said("invalid", fault, header, key=key.source)
    if "duplicate-keys" in payloads.card.flags:
        reason = "a key stands twice in one object of the card, so two readers make two payloads of it"
        return _said("undecidable", reason, header)
    verifies = checker(header.alg or "", jwk)
    signature = decode(entry.signature) or b""
    for form, payload in payloads.each():
        body = encode(payload).encode() if header.encoded else payload
        if verifies(entry.protected.encode() + b"." + body, signature):
            return replace(
                _said("valid", _meaning(key), header, key=key.source),
                form=form,
                covers_contract=payloads.covers_contract(payload),
                proves="integrity" if key.source == "card" else "signer",
            )
    return _unverified(key, header, payloads)


def _misfit(alg: str, jwk: JsonObject) -> str:
    """Say why a key is not for an algorithm, or ""."""
    kind, bound = jwk["kty"], jwk.get("alg")
    if KEY_TYPES.get(alg) != kind:
        return f"`alg` is {shown(alg)}, and the key that it names is of type {kind}"
    if bound not in (None, alg) and kind != "OKP":
        return f"`alg` is {shown(alg)}, and the key that it names is for {bound} only"
    return ""


def _unverified(key: CardKey, header: Header, payloads: _Payloads) -> Judgement:
    if not any(True for _ in payloads.each()):
        reason = "the card has no canonical form: JSON readers do not agree on what it holds"
        return _said("undecidable", reason, header)
    if len(payloads.forms) < len(FORMS):
        reason = f"it does not verify under the form {payloads.forms[0].name}, and a card over {MAX_REMADE} bytes is "
        return _said("undecidable", reason + "tried under no other", header)
    reason = (
        f"it verifies under none of the {len(FORMS)} canonical forms known here: the card or the signature was "
        "changed after signing, or the signer used another form"
    )
    return _said("invalid", reason, header, key=key.source)


def _meaning(key: CardKey) -> str:
    if key.source == "card":
        return "the key lies inside the card: this shows that the card is whole, not who signed it"
    return "a given key signed this card"


def _said(
    status: Status, reason: str, header: Header | None = None, *, kid: str | None = None, key: KeySource | None = None
) -> Judgement:
    named = header.kid if header is not None else kid
    alg = header.alg if header is not None else None
    return Judgement(
        status,
        kid=printable(named[:MAX_KID]) if named else None,
        alg=printable(alg[:MAX_KID]) if alg else None,
        key=key,
        reason=printable(reason[:_MAX_REASON]),
    )
