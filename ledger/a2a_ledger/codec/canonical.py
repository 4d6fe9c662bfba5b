"""Canonical JSON of the record profile: the one spelling of every record (docs/format.md section 3).

The profile is null, true, false, integers within ±(2^53-1), strings of Unicode scalar values, lists,
and objects with ASCII keys. Within it `json.dumps` with sorted keys and no spaces *is* RFC 8785: the
two differ only in floats and in the order of keys outside ASCII, and neither can occur.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from json import encoder
from typing import TYPE_CHECKING, cast

from a2a_ledger.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2a_ledger.events import Json, JsonObject

MAX_SAFE = 2**53 - 1
"""The largest integer that every JSON reader holds exactly (I-JSON, RFC 7493 section 2.2)."""

MAX_DEPTH = 16
"""How many lists and objects may lie in each other, the outermost counted."""

_SCALARS = frozenset({str, bool, type(None)})
"""What is in the profile whatever its value, and so is most of a record."""

# Both ends of the json module's C code are used bare: what its classes do around them on every call
# (another encoder made, white space skipped) is half of the cost. typeshed does not list these names.
_scan = cast("Callable[[str, int], tuple[Json, int]]", vars(json.JSONDecoder())["scan_once"])
_encoder = cast("Callable[..., Callable[[object, int], Sequence[str]]]", vars(encoder)["c_make_encoder"])(
    *(None, None, encoder.encode_basestring, None, ":", ",", True, False, False)  # …, sort_keys, skipkeys, allow_nan
)


def canonical(value: Json, *, depth: int = MAX_DEPTH) -> bytes:
    """Return the RFC 8785 bytes of a value of the record profile.

    Args:
        value: null, bool, integer, string, list or object, nested.
        depth: How many levels of lists and objects are allowed.

    Raises:
        FormatError: The value holds something outside of the profile; the message says what.
    """
    _check(value, depth, "the record")
    try:
        return "".join(_encoder(value, 0)).encode()
    except UnicodeEncodeError as error:
        raise FormatError(
            f"expected strings of Unicode scalar values, found the lone surrogate {error.object[error.start]!a}"
        ) from None


def parse_canonical(data: bytes, *, depth: int = MAX_DEPTH) -> Json:
    """Read bytes that are exactly the canonical spelling of a value of the record profile.

    Raises:
        FormatError: The bytes are not JSON, leave the profile (a fraction, an exponent, NaN, a lone
            surrogate, a duplicate key, a byte order mark), or differ from their own re-serialisation.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"expected UTF-8, found an ill-formed sequence at byte {error.start}") from None
    # The plain parser is enough: what it reads more loosely than the profile (a fraction, a repeated
    # key, a huge integer) cannot be re-serialised to the same bytes, or is met by the check of values.
    try:
        value, end = _scan(text, 0)
    except RecursionError:
        raise FormatError(f"expected at most {depth} levels of lists and objects, found far more") from None
    except (ValueError, StopIteration) as error:
        raise FormatError(f"expected JSON text of the record profile, found something else: {error}") from None
    again = canonical(value, depth=depth)
    if again != data or end != len(text):
        raise FormatError(f"expected the canonical spelling (RFC 8785), found {_difference(text, again, data)}")
    return value


def parse_trusted(data: bytes) -> Json:
    """Read bytes that this package wrote and whose commitment was compared, without checking their spelling.

    Raises:
        FormatError: The bytes are not JSON.
    """
    try:
        return _scan(data.decode(), 0)[0]
    except (ValueError, RecursionError, StopIteration) as error:
        raise FormatError(f"expected JSON, found something else: {error}") from None


def timestamp(at: datetime) -> str:
    """Spell a point in time as records do: UTC, RFC 3339, always six digits of a second.

    Raises:
        FormatError: The time has no zone, so nobody can say when it was.
    """
    if at.tzinfo is None:
        raise FormatError(f"expected a time with a time zone, found {at!r}; use datetime.now(timezone.utc)")
    utc = at if at.tzinfo is UTC else at.astimezone(UTC)
    return utc.isoformat(timespec="microseconds")[:-6] + "Z"


def _check(value: object, depth: int, where: str) -> None:
    """Walk a value; raise FormatError at the first thing outside of the profile."""
    if value is None or isinstance(value, (str, bool)):
        return
    if isinstance(value, int):
        if not -MAX_SAFE <= value <= MAX_SAFE:
            raise FormatError(f"expected an integer within ±(2^53-1), found a larger one in {where}")
    elif isinstance(value, dict):
        _check_depth(depth, where)
        for key, member in cast("dict[object, object]", value).items():
            if not isinstance(key, str) or not key.isascii():
                raise FormatError(f"expected keys of ASCII characters, found {key!a} in {where}")
            if type(member) not in _SCALARS:
                _check(member, depth - 1, where)
    elif isinstance(value, list):
        _check_depth(depth, where)
        for item in cast("list[object]", value):
            _check(item, depth - 1, where)
    else:
        raise FormatError(
            f"expected null, bool, integer, string, list or object, found {type(value).__name__} in {where}"
        )


def _check_depth(depth: int, where: str) -> None:
    if depth <= 0:
        raise FormatError(f"expected at most {MAX_DEPTH} levels of lists and objects, found more in {where}")


def _difference(text: str, again: bytes, data: bytes) -> str:
    """Say in which way a text that was refused is not canonical."""
    try:
        json.loads(text, object_pairs_hook=_pairs)
    except ValueError as error:
        return str(error)
    at = next((i for i, (a, b) in enumerate(zip(again, data, strict=False)) if a != b), min(len(again), len(data)))
    return f"another one from byte {at} on"


def _pairs(pairs: Sequence[tuple[str, Json]]) -> JsonObject:
    """Build an object, refusing a key that stands twice: two readers would see two values."""
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!a} twice")
    return found
