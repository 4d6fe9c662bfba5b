"""JSON of a card, read strictly and without ever raising. Pure.

RFC 8259, plus what two readers could understand differently: duplicate keys at any level (also when one
is spelled with escapes), keys that a reader mixes up who ignores case or takes snake_case for camelCase,
numbers that an IEEE 754 double does not hold (RFC 7493 section 2.2) and nesting that overflows somebody's
stack. Numbers of that kind are kept as the token that was sent.
"""

from __future__ import annotations

import decimal
import hashlib
import json
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import NoReturn, TypeAlias

import rfc8785

MAX_DEPTH = 64
"""Brackets that may be open at once; real cards stay below 16."""

_MAX_SAFE = 2**53 - 1
_BOM = b"\xef\xbb\xbf"
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


@dataclass(frozen=True, slots=True)
class NumberToken:
    """A JSON number that I-JSON cannot hold: magnitude or precision beyond a double. Kept as it was sent."""

    text: str


CardValue: TypeAlias = "bool | int | float | NumberToken | str | list[CardValue] | dict[str, CardValue] | None"
"""JSON of a card: like `json.loads`, but an unrepresentable number is a NumberToken."""

CardObject: TypeAlias = "dict[str, CardValue]"


class UnrepresentableError(ValueError):
    """RFC 8785 has no bytes for this value: a number beyond I-JSON or a lone surrogate. Internal, never leaves."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """What came out of some bytes: the value, or one sentence why there is none."""

    value: CardValue
    ok: bool
    flags: frozenset[str]
    problem: str


def canonical(value: object) -> bytes:
    """Return the RFC 8785 bytes of a value.

    Raises:
        UnrepresentableError: RFC 8785 cannot express it.
    """
    try:
        return rfc8785.dumps(value)  # type: ignore[arg-type]  # the library refuses what it cannot express
    except (rfc8785.CanonicalizationError, UnicodeError) as error:
        raise UnrepresentableError(str(error)) from error


def sha256_name(data: bytes) -> str:
    """Return a digest as it is written for cards, contracts, terms and profiles: `sha256:` and lower-case hex."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def plain(value: CardValue) -> CardValue:
    """Return a value that can be printed as JSON: number tokens become their text, lone surrogates their escape."""
    if isinstance(value, NumberToken):
        return value.text
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {printable(key): plain(item) for key, item in value.items()}
    return value


def printable(text: str) -> str:
    """Return a text that UTF-8 can hold: a lone surrogate becomes its six-character escape."""
    return text.encode("utf-8", "backslashreplace").decode()


def json_text(value: CardValue) -> str:
    """Return a compact, sorted, pure ASCII JSON text for any value; number tokens stand as they were sent."""
    if isinstance(value, NumberToken):
        return value.text
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{json_text(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(json_text, value)) + "]"
    return json.dumps(value)


def comparable(value: CardValue) -> bytes:
    """Return bytes that are equal exactly when two values are equal as JSON, also where RFC 8785 has none."""
    try:
        return canonical(value)
    except UnrepresentableError:
        return b"!" + json_text(value).encode()


class _Hooks:
    """What the JSON reader found on its way that the parsed value does not show any more."""

    def __init__(self) -> None:
        self.flags: set[str] = set()

    def pairs(self, pairs: list[tuple[str, CardValue]]) -> CardObject:
        found = dict(pairs)
        if len(found) != len(pairs):
            self.flags.add("duplicate-keys")
        elif len({key.replace("_", "").casefold() for key in found}) != len(found):
            self.flags.add("ambiguous-keys")
        return found

    def integer(self, token: str) -> int | NumberToken:
        # Longer tokens cannot be safe integers, and int() refuses to read very long ones at all.
        if len(token.lstrip("-")) > len(str(_MAX_SAFE)) or abs(int(token)) > _MAX_SAFE:
            return NumberToken(token)
        return int(token)

    def real(self, token: str) -> float | NumberToken:
        value = float(token)
        try:
            exact = Decimal(token) == Decimal(repr(value))
        except decimal.DecimalException:
            exact = False
        return value if exact else NumberToken(token)

    def constant(self, token: str) -> NoReturn:
        raise ValueError(f"{token} is not JSON")


def _too_deep(data: bytes) -> bool:
    """Say whether more than MAX_DEPTH brackets are ever open, without recursion."""
    depth = 0
    for bracket in _STRING.sub(b"", data).translate(None, _NOT_BRACKETS):
        if bracket in b"[{":
            depth += 1
            if depth > MAX_DEPTH:
                return True
        else:
            depth -= 1
    return False


def _none(problem: str, *flags: str) -> Parsed:
    return Parsed(None, ok=False, flags=frozenset(flags), problem=problem)


def parse(raw: bytes) -> Parsed:
    """Read JSON bytes strictly; a BOM is dropped and flagged. Never raises.

    Flags: bom, too-deep, not-utf-8, not-json, duplicate-keys, ambiguous-keys.
    """
    mark = ("bom",) if raw.startswith(_BOM) else ()
    data = raw.removeprefix(_BOM)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return _none(f"expected UTF-8 text, found byte {data[error.start]:#04x} at {error.start}", "not-utf-8", *mark)
    if _too_deep(data):
        return _none(f"expected at most {MAX_DEPTH} nested lists and objects, found more", "too-deep", *mark)
    hooks = _Hooks()
    try:
        value: CardValue = json.loads(
            text,
            object_pairs_hook=hooks.pairs,
            parse_int=hooks.integer,
            parse_float=hooks.real,
            parse_constant=hooks.constant,
        )
    except (ValueError, RecursionError) as error:
        return _none(f"expected JSON (RFC 8259), found something else: {error}", "not-json", *mark)
    return Parsed(value, ok=True, flags=frozenset(hooks.flags).union(mark), problem="")
