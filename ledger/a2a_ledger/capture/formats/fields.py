"""Members of what somebody else's tool wrote, taken as what they must be, or refused by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from a2a_ledger.errors import FormatError
from a2a_ledger.wire.jsontext import Token, is_scalar_text

if TYPE_CHECKING:
    from a2a_ledger.events import Json, JsonObject

HTTP_STATUS = range(100, 1000)


def an_object(where: str, value: Json) -> JsonObject:
    """Return an object.

    Raises:
        FormatError: it is none.
    """
    if not isinstance(value, dict):
        wrong(where, "an object", value)
    return value


def a_text(where: str, value: Json) -> str:
    """Return a text that can have been on the wire.

    Raises:
        FormatError: it is no text, or holds half a surrogate pair.
    """
    if not isinstance(value, str) or isinstance(value, Token):
        wrong(where, "a text", value)
    if not is_scalar_text(value):
        raise FormatError(f"{where}: expected a text of Unicode characters, found half a surrogate pair in it")
    return value


def a_number(where: str, value: Json) -> int:
    """Return an integer.

    Raises:
        FormatError: it is none.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        wrong(where, "an HTTP status", value)
    return value


def pairs_of(where: str, listed: Json) -> list[tuple[str, str]]:
    """Return names and values of a list of `{"name", "value"}`; nothing where there is none.

    Raises:
        FormatError: it is no such list.
    """
    if listed is None:
        return []
    if not isinstance(listed, list):
        wrong(where, "a list of names and values", listed)
    pairs: list[tuple[str, str]] = []
    for number, item in enumerate(listed):
        holder = an_object(f"{where}[{number}]", item)
        value = holder.get("value")
        name = a_text(f"{where}[{number}].name", holder.get("name"))
        pairs.append((name, a_text(f"{where}[{number}].value", "" if value is None else value)))
    return pairs


def wrong(where: str, expected: str, found: Json) -> NoReturn:
    """Refuse a member, without its value: it may be a credential."""
    kind = "nothing" if found is None else type(found).__name__
    raise FormatError(f"{where}: expected {expected}, found {kind}")
