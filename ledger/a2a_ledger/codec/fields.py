"""Event objects to record data and back, through the closed table of names.

The shapes come from the annotations in events.py, read once at import. Reading is as strict as a
hostile bundle deserves: a required field that is absent or a value of another JSON type is a
FormatError, never an exception further up. A field that this version does not know is skipped,
since a new field is always optional (docs/format.md section 2).
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias, cast

from a2a_ledger.errors import FormatError
from a2a_ledger.events import EVENT_TYPES, Event

if TYPE_CHECKING:
    from a2a_ledger.events import Json, JsonObject

_Check: TypeAlias = Callable[[object], bool]
_Shape: TypeAlias = dict[str, tuple[bool, _Check]]
_Reader: TypeAlias = "Callable[[Event], tuple[Json, ...]]"


def data_of(event: Event) -> JsonObject:
    """Return the record data of an event: every field by its name, those that are None left out.

    Raises:
        FormatError: The event is not one of the closed table, or a required field is None.
    """
    fields = _FIELDS.get(type(event))
    if fields is None:
        raise FormatError(f"expected an event of the closed table, found {type(event).__name__}")
    names, required, read = fields
    found: JsonObject = {name: value for name, value in zip(names, read(event), strict=True) if value is not None}
    if not required <= found.keys():
        missing = sorted(required - found.keys())
        raise FormatError(f"expected a value for the required field {missing[0]} of {event.TYPE}, found None")
    return found


def event_of(event_type: str, data: JsonObject) -> Event | None:
    """Return the event that a record holds, or None when this version does not know its name.

    Raises:
        FormatError: The name is known and the data does not have its shape.
    """
    cls = EVENT_TYPES.get(event_type)
    if cls is None:
        return None
    values: dict[str, Json] = {}
    for name, (optional, fits) in _SHAPES[cls].items():
        value = data.get(name)
        if name in data:
            if not fits(value):  # null fits nothing: a field without a value is left out
                raise FormatError(f"field {name} of {event_type} has the wrong JSON type: {str(value)[:80]!a}")
        elif not optional:
            raise FormatError(f"expected the required field {name} of {event_type}, found none")
        values[name] = value
    return cast("Callable[..., Event]", cls)(**values)


def _check_for(hint: object) -> _Check:
    """Return the check of one annotation; only the forms that events.py uses exist."""
    if hint is str or hint is bool or hint is int:
        kind = cast("type", hint)
        return lambda value: type(value) is kind
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is list:
        item = _check_for(arguments[0])
        return lambda value: type(value) is list and all(map(item, cast("list[object]", value)))
    if origin is types.UnionType or origin is typing.Union:
        checks = [_check_for(argument) for argument in arguments if argument is not type(None)]
        nullable = type(None) in arguments
        if len(checks) == 1 and not nullable:
            return checks[0]
        return lambda value: (nullable and value is None) or any(check(value) for check in checks)
    if typing.is_typeddict(hint):
        members = {name: _check_for(kind) for name, kind in typing.get_type_hints(hint).items()}
        return lambda value: _is_record(value, members)
    return lambda value: type(value) is dict


def _is_record(value: object, members: dict[str, _Check]) -> bool:
    if type(value) is not dict:
        return False
    found = cast("dict[str, object]", value)
    return all(name in found and fits(found[name]) for name, fits in members.items())


def _shape(cls: type[Event]) -> _Shape:
    hints = typing.get_type_hints(cls, localns={"JsonObject": dict})  # the alias itself is recursive
    found: _Shape = {}
    for field in dataclasses.fields(cls):
        hint = hints[field.name]
        optional = type(None) in typing.get_args(hint)
        found[field.name] = (optional, _check_for(_without_none(hint)))
    return found


def _without_none(hint: object) -> object:
    """Drop None from a union: an absent field is checked by the caller."""
    arguments = [argument for argument in typing.get_args(hint) if argument is not type(None)]
    if type(None) in typing.get_args(hint) and len(arguments) == 1:
        return arguments[0]
    return hint


def _fields(shape: _Shape) -> tuple[tuple[str, ...], frozenset[str], _Reader]:
    required = frozenset(name for name, (optional, _) in shape.items() if not optional)
    return tuple(shape), required, cast("_Reader", attrgetter(*shape))


_SHAPES: dict[type[Event], _Shape] = {cls: _shape(cls) for cls in EVENT_TYPES.values()}
_FIELDS = {cls: _fields(shape) for cls, shape in _SHAPES.items()}
