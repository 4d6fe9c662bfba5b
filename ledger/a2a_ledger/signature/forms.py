"""Canonical forms: which bytes of a card a signer may have signed. Pure; docs/format.md section 7.6.

A signature is detached, so its payload has to be made again from the card. A2A 1.0 section 8.4.1 asks for
RFC 8785 over presence rules that its own section 8.4.2 contradicts, and SDKs and publishers sign something
else again. Every form that is known is tried, and the one that fits is named.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from a2a_ledger.contract.card_json import NumberToken, UnrepresentableError, canonical
from a2a_ledger.signature.reading import NoFormError, project, read_0_3, read_1_0
from a2a_ledger.signature.rewrapped import rewrapped
from a2a_ledger.signature.schema import A2A_0_3, A2A_1_0, FLAG, LEAVES, STRUCT, Member
from a2a_ledger.signature.writers import GO, GSON, JAVASCRIPT, PYTHON, as_double

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_ledger.contract.card_json import CardObject, CardValue


@dataclass(frozen=True, slots=True)
class CanonicalForm:
    """One way to turn a card into the bytes that are signed.

    Attributes:
        name: Its public name, kept for ever.
        bytes_of: The card as parsed from its JSON -> the payload; None where this form has none for it.
    """

    name: str
    bytes_of: Callable[[CardObject], bytes | None]


def _form(
    name: str, shape: Callable[[CardObject], CardValue], write: Callable[[CardValue], bytes | None]
) -> CanonicalForm:
    def bytes_of(document: CardObject) -> bytes | None:
        unsigned = {member: value for member, value in document.items() if member != "signatures"}
        try:
            return write(shape(unsigned))
        except (NoFormError, UnrepresentableError):
            return None

    return CanonicalForm(name, bytes_of)


def _as_served(card: CardObject) -> CardValue:
    return card


def _rounded(value: CardValue) -> CardValue:
    """Read every number that a double does not hold as the nearest double, as JavaScript does."""
    if isinstance(value, NumberToken):
        return as_double(value)
    if isinstance(value, dict):
        return {name: _rounded(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_rounded(inner) for inner in value]
    return value


def _without_empty(value: CardValue) -> CardValue:
    """Drop empty texts, lists and objects and nulls, inside first, also out of lists."""
    if isinstance(value, dict):
        return {name: kept for name, inner in value.items() if not _is_empty(kept := _without_empty(inner))}
    if isinstance(value, list):
        return [kept for inner in value if not _is_empty(kept := _without_empty(inner))]
    return value


def _is_empty(value: CardValue) -> bool:
    return value is None or value in ("", [], {})


def _without_defaults(value: CardValue) -> CardValue:
    """Drop every member with a default value, inside first: empty, null, false and zero. Items of lists stay."""
    if isinstance(value, dict):
        kept = {name: _without_defaults(inner) for name, inner in value.items()}
        return {name: inner for name, inner in kept.items() if not (_is_empty(inner) or inner == 0)}
    if isinstance(value, list):
        return [_without_defaults(inner) for inner in value]
    return value


def _is_default(member: Member, value: CardValue) -> bool:
    """Say whether a value is what the schema takes for an absent member; a message that is set never is."""
    single_message = not member.many and member.kind not in LEAVES
    return not single_message and member.kind != STRUCT and value in ("", False, [], {})


def _presence(member: Member, value: CardValue) -> bool:
    return member.required or member.tracked or not _is_default(member, value)


def _proto_json(member: Member, value: CardValue) -> bool:
    return member.tracked or not _is_default(member, value)


def _no_default(member: Member, value: CardValue) -> bool:
    return not _is_default(member, value)


def _a2a_1_0(card: CardObject) -> CardValue:
    return project("AgentCard", read_1_0(card), _presence)


def _a2a_1_0_filled(card: CardObject) -> CardValue:
    return project("AgentCard", read_1_0(card), _presence, fill=True)


def _a2a_1_0_without_defaults(card: CardObject) -> CardValue:
    return project("AgentCard", read_1_0(card), _no_default)


def _sdk_1_x(card: CardObject) -> CardValue:
    return _without_empty(project("AgentCard", read_1_0(card), _proto_json))


def _sdk_1_x_rewrapped(card: CardObject) -> CardValue:
    return _sdk_1_x(rewrapped(card))


def _sdk_0_3(card: CardObject) -> CardValue:
    stated = read_0_3(card)
    members = A2A_0_3["AgentCard"]
    return _without_empty({name: value for name, value in stated.items() if value != (members[name].default or None)})


def _js_1_0_1(card: CardObject) -> CardValue:
    """Leave out the security schemes: the SDK reads its own objects as JSON, and finds none of them."""
    return {name: value for name, value in dict(_object(_sdk_1_x(card))).items() if name != "securitySchemes"}


def _js_1_0_0(card: CardObject) -> CardValue:
    """Return the objects of the SDK themselves, false flags and wrapped alternatives included."""
    return _without_empty(_wrapped("AgentCard", read_1_0(card)))


def _object(value: CardValue) -> CardObject:
    return value if isinstance(value, dict) else {}


def _wrapped(message: str, stated: CardObject) -> CardObject:
    made: CardObject = {}
    for name, member in A2A_1_0[message].items():
        value = stated.get(name)
        if value is None:
            if member.kind == FLAG and not member.tracked:
                made[name] = False
            continue
        inner = _wrapped_inside(member, value)
        if member.only:
            made[member.only] = {"$case": name, "value": inner}
        else:
            made[name] = inner
    return made


def _wrapped_inside(member: Member, value: CardValue) -> CardValue:
    if member.kind in LEAVES:
        return value
    if isinstance(value, list):
        return [_wrapped(member.kind, _object(one)) for one in value]
    if member.many == "map":
        return {key: _wrapped(member.kind, _object(one)) for key, one in _object(value).items()}
    return _wrapped(member.kind, _object(value))


FORMS: Final[tuple[CanonicalForm, ...]] = (
    _form("jcs", _as_served, canonical),
    _form("a2a-1.0", _a2a_1_0, canonical),
    _form("a2a-1.0-filled", _a2a_1_0_filled, canonical),
    _form("a2a-python-1.1.4", _sdk_1_x, canonical),
    _form("a2a-python-1.0", _sdk_1_x, PYTHON.write),
    _form("a2a-python-0.3", _sdk_0_3, PYTHON.write),
    _form("a2a-js-1.0.1", _js_1_0_1, canonical),
    _form("a2a-js-1.0.0", _js_1_0_0, canonical),
    _form("a2a-python-1.1.4-rewrapped", _sdk_1_x_rewrapped, canonical),
    _form("a2a-python-1.0-rewrapped", _sdk_1_x_rewrapped, PYTHON.write),
    _form("a2a-1.0-without-defaults", _a2a_1_0_without_defaults, canonical),
    _form("jcs-rounded", _rounded, canonical),
    _form("jcs-without-empty", lambda card: _without_empty(_rounded(card)), canonical),
    _form("jcs-without-defaults", lambda card: _without_defaults(_rounded(card)), canonical),
    _form("python-json", _as_served, PYTHON.write),
    _form("javascript-json", _as_served, JAVASCRIPT.write),
    _form("gson", _as_served, GSON.write),
    _form("go-json-without-empty", _without_empty, GO.write),
)
"""Every form that is tried, in this order: the standard's, those of SDKs, those of publishers. Where two make the
same bytes, the first is named."""
