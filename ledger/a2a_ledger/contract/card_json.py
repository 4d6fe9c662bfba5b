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
from itertools import accumulate
from json import encoder
from typing import TYPE_CHECKING, NoReturn, TypeAlias, cast

import rfc8785

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

MAX_DEPTH = 64
"""Brackets that may be open at once; real cards stay below 16."""

_MAX_SAFE = 2**53 - 1
_BOM = b"\xef\xbb\xbf"
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_BEYOND_BMP = re.compile(rb"[\xf0-\xf4]")  # lead bytes of UTF-8 for U+10000 and above
# Between these ES6, and so RFC 8785, writes a number with a fraction digit by digit, as Python does.
_LEAST, _MOST = 1e-4, 2**53


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
    simple_numbers: bool = False
    """Whether Python writes each of its numbers as RFC 8785 does, so that `canonical` may take the fast way."""


# The C writer of the json module, bare: its class makes another one at every call, which is most of a short call's
# time. typeshed does not list it.
_write = cast("Callable[..., Callable[[object, int], Sequence[str]]]", vars(encoder)["c_make_encoder"])(
    *(None, None, encoder.encode_basestring, None, ":", ",", True, False, True)  # …, sort_keys, skipkeys, allow_nan
)


def canonical(value: object, *, simple_numbers: bool = False) -> bytes:
    """Return the RFC 8785 bytes of a value.

    Python's own writer is ten times as fast, and writes the same where no number is written differently
    and no key stands beyond U+FFFF, from where on UTF-16 orders differently than code points do.

    Args:
        value: Any JSON value.
        simple_numbers: What `Parsed.simple_numbers` says of the document that the value was taken from.

    Raises:
        UnrepresentableError: RFC 8785 cannot express it.
    """
    try:
        if simple_numbers or _without_numbers(value):
            data = "".join(_write(value, 0)).encode()
            if data.isascii() or _BEYOND_BMP.search(data) is None:
                return data
        return rfc8785.dumps(value)  # type: ignore[arg-type]  # the library refuses what it cannot express
    except (rfc8785.CanonicalizationError, UnicodeError) as error:
        raise UnrepresentableError(str(error)) from error


def _without_numbers(value: object) -> bool:
    """Say whether a value holds nothing but texts, true, false and null; the look ends at the first number."""
    if isinstance(value, str | bool | None):
        return True
    if isinstance(value, dict):
        members = cast("dict[object, object]", value)
        return all(isinstance(key, str) and _without_numbers(item) for key, item in members.items())
    return isinstance(value, list) and all(_without_numbers(item) for item in cast("list[object]", value))


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


def _mixed_up(keys: Collection[str]) -> bool:
    """Say whether a reader mixes up two keys who ignores case or takes snake_case for camelCase."""
    # Keys cannot be told apart from what joins them where one holds a NUL; elsewhere one call folds them all.
    folded = "\0".join(keys).replace("_", "").casefold().split("\0")
    if len(folded) != len(keys):
        folded = [key.replace("_", "").casefold() for key in keys]
    return len(set(folded)) < len(keys)


def _objects(value: CardValue) -> Iterator[CardObject]:
    """Yield every object inside a value."""
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if isinstance(value, dict):
        yield value
    for child in children:
        yield from _objects(child)


class _Hooks:
    """What the JSON reader found on its way that the parsed value does not show any more."""

    def __init__(self) -> None:
        self.flags: set[str] = set()
        self.keys: set[str] = set()
        self.simple_numbers = True

    def pairs(self, pairs: list[tuple[str, CardValue]]) -> CardObject:
        found = dict(pairs)
        if len(found) != len(pairs):
            self.flags.add("duplicate-keys")
        self.keys.update(found)
        return found

    def integer(self, token: str) -> int | NumberToken:
        # Longer tokens cannot be safe integers, and int() refuses to read very long ones at all.
        if len(token.lstrip("-")) > len(str(_MAX_SAFE)) or abs(int(token)) > _MAX_SAFE:
            self.simple_numbers = False
            return NumberToken(token)
        return int(token)

    def real(self, token: str) -> float | NumberToken:
        value = float(token)
        try:
            exact = Decimal(token) == Decimal(repr(value))
        except decimal.DecimalException:
            exact = False
        # RFC 8785 writes 1.0 as 1; how it was spelled is kept, for some signers do not.
        self.simple_numbers &= exact and not value.is_integer() and _LEAST <= abs(value) < _MOST
        return value if exact else NumberToken(token)

    def constant(self, token: str) -> NoReturn:
        raise ValueError(f"{token} is not JSON")


def _too_deep(data: bytes) -> bool:
    """Say whether more than MAX_DEPTH brackets are ever open, without recursion."""
    if data.count(b"[") + data.count(b"{") <= MAX_DEPTH:
        return False
    if b"\\" in data:  # stands in texts only; gone with the character it escapes, every quote ends or begins one
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    outside_texts = b"".join(data.split(b'"')[::2])
    brackets = outside_texts.translate(None, _NOT_BRACKETS)
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=0) > MAX_DEPTH


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
    # Rarely do two keys of a whole card look alike; only then is it worth asking whether they stand in one object.
    if _mixed_up(hooks.keys) and any(map(_mixed_up, _objects(value))):
        hooks.flags.add("ambiguous-keys")
    return Parsed(
        value, ok=True, flags=frozenset(hooks.flags).union(mark), problem="", simple_numbers=hooks.simple_numbers
    )
