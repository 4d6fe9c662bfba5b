"""The tables that the report page is given: shapes of events, and rules with what they leave open.

The page's script is one of several verifiers over one format; these tables are the format's (docs/format.md sections 2
and 10), so that they are written down in one place.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from typing import TYPE_CHECKING

from a2a_ledger.bundle import KINDS, LARGER, NEEDED, ONLY_PACKED
from a2a_ledger.codec import PLACES, STREAM_KINDS, STREAM_NAMES
from a2a_ledger.divergence import RULE_SETS, RULES
from a2a_ledger.events import EVENT_TYPES, Json
from a2a_ledger.verify.report import TITLES
from a2a_ledger.verify.scope import NOT_ALL, NOT_CLAIMED

if TYPE_CHECKING:
    from a2a_ledger.events import Event, JsonObject

_PLAIN = {str: "text", int: "integer", bool: "boolean"}


def tables() -> JsonObject:
    """Return what the page looks up, from shapes of events and sizes of files to the words for claims."""
    return {
        "events": {name: _fields(cls) for name, cls in sorted(EVENT_TYPES.items())},
        "files": [[pattern.pattern, most] for pattern, most in KINDS],
        "larger": list(LARGER),
        "only_packed": ONLY_PACKED.pattern,
        "needed": list(NEEDED),
        "not_all": NOT_ALL,
        "not_claimed": list(NOT_CLAIMED),
        "places": dict(PLACES),
        "rule_sets": {name: [*sorted(rules)] for name, rules in RULE_SETS.items()},
        "rules": {
            name: {"not_established": list(rule.not_established), "rule_class": rule.rule_class}
            for name, rule in RULES.items()
        },
        "stream_kinds": list(STREAM_KINDS),
        "stream_names": STREAM_NAMES,
        "titles": dict(TITLES),
    }


def _fields(cls: type[Event]) -> JsonObject:
    """Return name -> [shape, required] of an event's fields."""
    hints = typing.get_type_hints(cls, localns={"JsonObject": dict})
    return {
        field.name: [_shape(hints[field.name]), type(None) not in typing.get_args(hints[field.name])]
        for field in dataclasses.fields(cls)
    }


def _shape(hint: object) -> Json:
    """Spell an annotation: a word for plain types and objects, [shape] for a list, name -> shape for fixed members."""
    if isinstance(hint, type) and hint in _PLAIN:
        return _PLAIN[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is list:
        return [_shape(arguments[0])]
    if origin is types.UnionType or origin is typing.Union:
        (one,) = [argument for argument in arguments if argument is not type(None)]
        return _shape(one)
    if typing.is_typeddict(hint):
        return {name: _member(kind) for name, kind in typing.get_type_hints(hint).items()}
    return "object"


def _member(hint: object) -> Json:
    """Spell a member of a fixed object, which may be null where its type says so."""
    shape = _shape(hint)
    return f"{shape}?" if type(None) in typing.get_args(hint) else shape
