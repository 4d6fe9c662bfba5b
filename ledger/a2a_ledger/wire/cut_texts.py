"""Which texts of a JSON body redaction cut something out of, told by reading the body in two ways. Pure.

What is cut is a hole, filled with one sign for each octet (docs/format.md section 3). A text that differs when the
holes are filled with another sign was cut; a sign that the peer wrote itself stays what it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from a2a_ledger.events import Json

_DEEPEST = 128


class Cut(str):
    """A text, or the name of a member, that something was cut out of."""

    __slots__ = ()


def both(one: Json, other: Json, depth: int = 0) -> Json:
    """Return a value as the first reading has it, each text in it that the second one has otherwise as a `Cut`."""
    if depth > _DEEPEST:
        return one
    if isinstance(one, str) and isinstance(other, str):
        return one if one == other else Cut(one)
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [both(a, b, depth + 1) for a, b in zip(one, other, strict=True)]
    if isinstance(one, dict) and isinstance(other, dict):
        if len(one) != len(other):  # a cut name reads like another one, with one of the signs
            return {**one, Cut("*"): None}
        pairs = zip(one, other, strict=True)
        return {a if a == b else Cut(a): both(one[a], other[b], depth + 1) for a, b in pairs}
    return one


def lacks(value: Json, *names: str) -> bool:
    """Say whether an object, out of which something was cut, has none of these members: one may have been there."""
    if not isinstance(value, dict) or not any(isinstance(text, Cut) for pair in value.items() for text in pair):
        return False
    return not any(name in value for name in names)
