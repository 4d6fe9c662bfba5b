"""JSON as it comes from the wire: read without ever raising, with what is odd about it flagged.

Numbers keep their meaning or their spelling: an integer within ±(2^53-1) becomes an int, every
other number becomes a `Token` holding its text, so that nothing is rounded on the way.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from a2a_ledger.events import Json, JsonObject

MAX_SAFE = 2**53 - 1
MAX_TEXT = 1024
"""Longest text that is lifted from the wire into a record, in characters; longer ones stay in the blob."""
MAX_NAME = 256
"""The same for what is a name rather than an id: states, methods, tenants, the pin's members."""
_SAFE_DIGITS = 17
_SURROGATES = re.compile("[\ud800-\udfff]")


class Token(str):
    """A JSON number that an int of the record profile cannot hold, as the peer spelled it."""

    __slots__ = ()


@dataclass(slots=True)
class JsonText:
    """What a body says: `value` is meaningful only if `ok`; `flags` collects what is odd."""

    value: Json = None
    ok: bool = False
    flags: set[str] = field(default_factory=set[str])


def read_json(body: bytes) -> JsonText:
    """Read `body` as RFC 8259 JSON.

    Args:
        body: any bytes; an empty body is neither JSON nor flagged.

    Returns:
        The value, or no value and the flag `not-json` or `too-deep`. `duplicate-keys` marks a body
        that two readers may understand in two ways (the last member wins here).
    """
    read = JsonText()
    if not body.strip():
        return read

    def pairs(members: list[tuple[str, Json]]) -> JsonObject:
        made = dict(members)
        if len(made) != len(members):
            read.flags.add("duplicate-keys")
        return made

    try:
        read.value = json.loads(
            body.decode("utf-8-sig"),
            object_pairs_hook=pairs,
            parse_int=_integer,
            parse_float=Token,
            parse_constant=_refuse,
        )
        read.ok = True
    except RecursionError:
        read.flags.add("too-deep")
    except ValueError:
        read.flags.add("not-json")
    return read


def lift(value: Json, flags: set[str], most: int = MAX_TEXT) -> str | None:
    """Return a text of the wire that may enter a record, else None and a flag that says why not.

    Absent (None) and empty texts are no ids in A2A (ProtoJSON leaves both out) and are not flagged.
    """
    if value is None or value == "":
        return None
    if not isinstance(value, str) or isinstance(value, Token):
        flags.add("odd-id")
        return None
    if len(value) > most:
        flags.add("oversize-id")
        return None
    if not is_scalar_text(value):
        flags.add("unrepresentable")
        return None
    return value


def is_scalar_text(text: str) -> bool:
    """Say whether `text` holds Unicode scalar values only (no lone surrogate)."""
    return not any("\ud800" <= char <= "\udfff" for char in text) if not text.isascii() else True


def as_scalar_text(text: str) -> str:
    """Return `text` with U+FFFD in the place of every lone surrogate, which no record can hold."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def member(value: Json, *names: str) -> Json:
    """Return the first of these members of an object that is there, else None.

    Every name is tried in its camelCase and in its snake_case spelling: ProtoJSON readers accept both.
    """
    if isinstance(value, dict):
        for name in names:
            if name in value:
                return value[name]
            snake = _snake(name)
            if snake in value:
                return value[snake]
    return None


@lru_cache(maxsize=256)
def _snake(name: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name)


def objects(value: Json) -> list[JsonObject]:
    """Return the objects in a list, and nothing for what is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _integer(token: str) -> Any:  # noqa: ANN401 - json hands the value on unseen
    if len(token) <= _SAFE_DIGITS and abs(int(token)) <= MAX_SAFE:
        return int(token)
    return Token(token)


def _refuse(constant: str) -> NoReturn:
    message = f"{constant} is not JSON"
    raise ValueError(message)
