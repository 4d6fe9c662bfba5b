"""A card read as a schema reads it: known members only, one spelling each, wrong types refused. Pure.

What SDKs sign is not the JSON but what their parser kept of it. docs/format.md section 7.6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.contract.card_json import NumberToken
from a2a_ledger.contract.dialect import snake
from a2a_ledger.signature.schema import A2A_0_3, A2A_1_0, FLAG, LEAVES, STRUCT, TEXT, Member, Schema
from a2a_ledger.signature.writers import as_double

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_ledger.contract.card_json import CardObject, CardValue


class NoFormError(ValueError):
    """The parser in question refuses this card, so it cannot have signed it. Internal, never leaves."""


def read_1_0(document: CardObject) -> CardObject:
    """Return the stated members of a card as ProtoJSON reads A2A 1.0: camelCase, null unset, unknown ones dropped.

    Raises:
        NoFormError: ProtoJSON refuses the card.
    """
    return _message(A2A_1_0, "AgentCard", document)


def read_0_3(document: CardObject) -> CardObject:
    """Return the stated members of a card as the models of the 0.3 SDK for Python read it.

    Raises:
        NoFormError: They refuse the card.
    """
    return _message(A2A_0_3, "AgentCard", document)


def project(
    message: str, stated: CardObject, keep: Callable[[Member, CardValue], bool], *, fill: bool = False
) -> CardObject:
    """Return the members of a read 1.0 message that a rule keeps, in the schema's order, messages inside first.

    Args:
        message: Its name in the schema.
        stated: What `read_1_0` returned.
        keep: Tells of a member and its value whether it stays.
        fill: Whether REQUIRED members that are absent are there with their default.
    """
    kept: CardObject = {}
    for name, member in A2A_1_0[message].items():
        value = stated.get(name)
        if value is None:
            if not (fill and member.required):
                continue
            value = _default(member)
        value = _inside(member, value, keep, fill=fill)
        if keep(member, value):
            kept[name] = value
    return kept


def _inside(member: Member, value: CardValue, keep: Callable[[Member, CardValue], bool], *, fill: bool) -> CardValue:
    if member.kind in LEAVES:
        return value
    if isinstance(value, list):
        return [project(member.kind, one, keep, fill=fill) for one in value if isinstance(one, dict)]
    if not isinstance(value, dict):
        return value
    if member.many == "map":
        return {key: project(member.kind, one, keep, fill=fill) for key, one in value.items() if isinstance(one, dict)}
    return project(member.kind, value, keep, fill=fill)


def _default(member: Member) -> CardValue:
    if member.many == "list":
        return []
    return "" if member.kind == TEXT and not member.many else {}


def _message(schema: Schema, name: str, raw: CardValue) -> CardObject:
    if schema is A2A_1_0 and isinstance(raw, (list, str)) and not any(_names_member(schema[name], one) for one in raw):
        return {}  # the SDKs' parsers ask a list, or a text, for its members and find none
    if not isinstance(raw, dict):
        raise NoFormError(f"{name} is no object")
    if schema is A2A_0_3 and name == "SecurityScheme":
        name = _kind(raw)
    stated: CardObject = {}
    groups: list[str] = []
    for key, member in schema[name].items():
        spelled = [spelling for spelling in dict.fromkeys((key, snake(key))) if raw.get(spelling) is not None]
        if len(spelled) > 1:
            raise NoFormError(f"{key} stands in two spellings")
        if spelled:
            stated[key] = _value(schema, member, raw[spelled[0]])
            groups += [member.only] if member.only else []
        elif member.required and schema is A2A_0_3:
            raise NoFormError(f"{key} is missing")
    if len(groups) != len(set(groups)):
        raise NoFormError(f"{name} states two of which it may state one")
    return stated


def _names_member(members: dict[str, Member], item: CardValue) -> bool:
    return not isinstance(item, str) or any(item in (name, snake(name)) for name in members)


def _kind(raw: CardObject) -> str:
    kind = raw.get("type")
    if not isinstance(kind, str) or kind not in ("apiKey", "http", "oauth2", "openIdConnect", "mutualTLS"):
        raise NoFormError("an unknown kind of security scheme")
    return kind


def _value(schema: Schema, member: Member, raw: CardValue) -> CardValue:
    if member.many == "list":
        if not isinstance(raw, list):
            raise NoFormError("a list is wanted")
        return [_single(schema, member, one) for one in raw]
    if member.many == "map":
        if not isinstance(raw, dict):
            raise NoFormError("a map is wanted")
        return {_text(key): _single(schema, member, one) for key, one in raw.items()}
    return _single(schema, member, raw)


def _single(schema: Schema, member: Member, raw: CardValue) -> CardValue:
    if member.kind == TEXT:
        return _text(raw)
    if member.kind == FLAG:
        if not isinstance(raw, bool):
            raise NoFormError("true or false is wanted")
        return raw
    if member.kind == STRUCT:
        if not isinstance(raw, dict):
            raise NoFormError("an object is wanted")
        return _doubles(raw) if schema is A2A_1_0 else raw
    if member.kind == "Requirement":
        return _requirement(raw)
    return _message(schema, member.kind, raw)


def _text(raw: CardValue) -> str:
    if not isinstance(raw, str):
        raise NoFormError("a text is wanted")
    return raw


def _requirement(raw: CardValue) -> CardObject:
    if not isinstance(raw, dict) or not all(isinstance(scopes, list) for scopes in raw.values()):
        raise NoFormError("a requirement maps schemes to lists of scopes")
    return {name: [_text(scope) for scope in scopes] for name, scopes in raw.items() if isinstance(scopes, list)}


def _doubles(raw: CardValue) -> CardValue:
    """Read JSON as `google.protobuf.Struct` holds it: every number is a double."""
    if isinstance(raw, dict):
        return {key: _doubles(value) for key, value in raw.items()}
    if isinstance(raw, list):
        return [_doubles(value) for value in raw]
    if isinstance(raw, (int, float, NumberToken)) and not isinstance(raw, bool):
        return as_double(raw)
    return raw
