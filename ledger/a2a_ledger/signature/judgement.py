"""What is said of a card's signatures, or of one of them. Pure; docs/format.md section 7.6."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from a2a_ledger.events import Json, JsonObject
    from a2a_ledger.signature.card_keys import KeySource

Status: TypeAlias = Literal["absent", "valid", "invalid", "undecidable"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was found of a card's signatures, or of one of them.

    Attributes:
        status: `absent`; `valid`: it verifies; `invalid`: it names a key that is at hand and does not verify
            under it; `undecidable`: no key at hand, or a shape or a demand that is not understood.
        kid: The key id that the signature names.
        form: The canonical form (`forms.FORMS`) under which it verifies.
        covers_contract: Whether the contract of what was signed is the card's contract; None unless valid.
        alg: The algorithm that the signature names.
        key: Where the key comes from that decided.
        proves: `signer` under a key that was given, `integrity` under one inside the card; None unless valid.
        reason: A sentence; None for absent.
        signatures: One judgement each, when the card carries more than one signature.
    """

    status: Status
    kid: str | None = None
    form: str | None = None
    covers_contract: bool | None = None
    alg: str | None = None
    key: KeySource | None = None
    proves: Literal["signer", "integrity"] | None = None
    reason: str | None = None
    signatures: tuple[Judgement, ...] = ()

    def to_json(self) -> JsonObject:
        """Return the object of docs/format.md section 7.6; `signatures` is there when there is more than one."""
        told: JsonObject = {
            "status": self.status,
            "kid": self.kid,
            "form": self.form,
            "covers_contract": self.covers_contract,
            "alg": self.alg,
            "key": self.key,
            "proves": self.proves,
            "reason": self.reason,
        }
        if self.signatures:
            each: list[Json] = [dict(one.to_json()) for one in self.signatures]
            told["signatures"] = each
        return told


def rank(one: Judgement) -> int:
    """Return the place of a judgement in the order of section 7.6; the smallest is the strongest."""
    order = (("valid", True), ("invalid", True), ("valid", False), ("invalid", False))
    given = one.key is not None and one.key != "card"
    return order.index((one.status, given)) if (one.status, given) in order else len(order)


def of_other_octets(told: Judgement, why: str) -> Judgement:
    """Return a judgement of octets that are not those that were served: what does not hold for them was not broken.

    Args:
        told: the judgement of what is at hand.
        why: a sentence that says what is at hand.
    """
    each = [
        Judgement("undecidable", kid=one.kid, alg=one.alg, reason=why) if one.status == "invalid" else one
        for one in told.signatures or (told,)
    ]
    return replace(min(each, key=rank), signatures=tuple(each) if told.signatures else ())
