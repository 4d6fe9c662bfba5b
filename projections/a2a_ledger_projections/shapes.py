"""What a view's rows look like: checks made from their TypedDicts, so that a changed row is never half read. Pure.

A view lies in a database that others may write. Its readers take a row's members as the fold wrote them; a row
that lacks one, or has one of another kind, is said to be changed before anybody looks into it.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeAlias, cast

Check: TypeAlias = Callable[[object], bool]


@cache
def check_of(row: type) -> Check:
    """Return the check of a row's type: a TypedDict of text, bool, int, null, and dicts and lists of these."""
    members = {name: _check(hint) for name, hint in typing.get_type_hints(row).items()}

    def fits(value: object) -> bool:
        if type(value) is not dict:
            return False
        found = cast("dict[str, object]", value)
        return found.keys() == members.keys() and all(check(found[name]) for name, check in members.items())

    return fits


def _check(hint: object) -> Check:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType:
        either = [_check(argument) for argument in arguments]
        return lambda value: any(check(value) for check in either)
    if origin is dict:
        item = _check(arguments[1])
        return lambda value: isinstance(value, Mapping) and all(map(item, cast("Mapping[str, object]", value).values()))
    if origin is list:
        item = _check(arguments[0])
        return lambda value: isinstance(value, list) and all(map(item, cast("list[object]", value)))
    if typing.is_typeddict(hint):
        return check_of(cast("type", hint))
    kind = cast("type", hint)
    return lambda value: type(value) is kind
