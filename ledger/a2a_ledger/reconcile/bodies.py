"""Two records of what may be one message: the same octets, the same JSON, different, or not to be told.

A part that is not shown (a hole: a credential, a withheld field, the tail of a long body) proves its
length and its place only. So where a comparison would need hidden octets the answer is "cannot-tell",
never "differs"; what both sides do show is compared all the same.
"""

from __future__ import annotations

import hashlib
import json
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, cast

from a2a_ledger.codec import Hole
from a2a_ledger.errors import FormatError
from a2a_ledger.wire.jsontext import as_scalar_text
from a2a_ledger.wire.sse import data_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.codec import Record

Verdict: TypeAlias = Literal["same-bytes", "same-json", "cannot-tell", "differs"]
_Value: TypeAlias = "bool | int | Decimal | str | list[_Value] | dict[str, _Value] | None"

WIRE = "wire"
"""The blob that holds a gRPC message's exact protobuf octets, beside its ProtoJSON text in `body`."""

_MOST_POINTER = 200
_MOST_OVERLAID = 64 * 1024 * 1024  # a hostile length of a hole must not cost memory


class Likeness(NamedTuple):
    """How two bodies compare, and where and why they do not."""

    verdict: Verdict
    pointer: str | None = None
    """JSON pointer of the first difference, or of the first value that cannot be told."""
    detail: str = ""


class Shown(NamedTuple):
    """What a record shows of one blob."""

    parts: tuple[bytes | int, ...]
    """Octets, or how many are hidden here, in order."""
    cut: bool = False
    """The tail is missing too: the body was over the size limit."""

    @property
    def hidden(self) -> bool:
        """Say whether any octet is not shown."""
        return self.cut or any(isinstance(part, int) for part in self.parts)

    @property
    def size(self) -> int:
        """Return how many octets there were, as far as they were kept."""
        return sum(part if isinstance(part, int) else len(part) for part in self.parts)

    @property
    def known(self) -> bytes:
        """Return the octets that are shown, one after the other."""
        return b"".join(part for part in self.parts if isinstance(part, bytes))

    def filled(self, marker: bytes) -> bytes:
        """Return the octets with `marker` in place of each hole."""
        return b"".join(marker if isinstance(part, int) else part for part in self.parts)


def shown(record: Record, role: str = "body") -> Shown | None:
    """Return what a record shows of a blob; None: nothing, it was erased or never kept."""
    ref = record.blobs.get(role)
    if ref is None:
        return Shown((b"",))
    try:
        parts = record.stored_parts(role)
    except (FormatError, KeyError):
        return None
    if parts is None or ref.kept == "none":
        return None
    told = tuple(part.length if isinstance(part, Hole) else part.content for part in parts)
    cut = ref.kept == "head"
    return Shown(told[:-1] if cut and told and isinstance(told[-1], int) else told, cut)


def shows_nothing(record: Record) -> bool:
    """Say whether not one octet of a leg's body is shown, though it had some."""
    seen = shown(record)
    return seen is None or (seen.size > 0 and not seen.known)


def compare(a: Record, b: Record) -> Likeness:
    """Compare the bodies of two legs; of server-sent events their data, of gRPC messages the octets first."""
    if WIRE in a.blobs and WIRE in b.blobs:
        octets = _compare(shown(a, WIRE), shown(b, WIRE), is_json=False, is_event=False)
        if octets.verdict in {"same-bytes", "cannot-tell"}:
            return octets
    is_event = "stream-event" in (a.data.get("leg"), b.data.get("leg"))
    return _compare(shown(a), shown(b), is_json=True, is_event=is_event)


def digest(record: Record) -> str:
    """Return a digest by which legs that are equal as JSON find each other; of other octets, that of the octets."""
    seen = shown(record)
    if seen is None:
        return ""
    octets = seen.filled(b"*")
    value = _read(octets, is_event=record.data.get("leg") == "stream-event")
    spelled = octets if value is None else json.dumps(value, sort_keys=True, default=str).encode()
    return hashlib.sha256(spelled).hexdigest()


def json_of(record: Record) -> object:
    """Return a leg's JSON, holes filled with stars; None where it is none that reads one way only."""
    seen = shown(record)
    if seen is None or seen.cut:
        return None
    return _read(seen.filled(b"*"), is_event=record.data.get("leg") == "stream-event")


def compare_json(a: object, b: object) -> Likeness:
    """Compare two JSON values that were read already."""
    walk = _Walk("")
    walk.compare(cast("_Value", a), cast("_Value", b), "")
    return walk.likeness()


def _compare(a: Shown | None, b: Shown | None, *, is_json: bool, is_event: bool) -> Likeness:
    if a is None or b is None:
        return Likeness("cannot-tell", None, "the content is not kept on one side")
    if a.cut or b.cut or max(a.size, b.size) > _MOST_OVERLAID:
        return Likeness("cannot-tell", None, "the tail of the body is not kept on one side")
    if a.size == b.size and _overlay(a, b) == _overlay(b, a):
        if not a.hidden and not b.hidden:
            return Likeness("same-bytes")
        return Likeness("cannot-tell", None, "equal in all that is shown; hidden octets have the same length and place")
    found = _as_json(a, b, is_event=is_event) if is_json else None
    if found is None and (a.hidden or b.hidden) and a.size != b.size:
        found = Likeness("cannot-tell", None, "octets are hidden, and the two have other lengths")
    return found or Likeness("differs", None, f"{a.size} octets against {b.size}, not equal")


def _overlay(one: Shown, other: Shown) -> bytes:
    """Return one's octets with everything blank that either of the two hides; both have one length."""
    made = bytearray(one.filled(b"")) if not one.hidden else bytearray()
    if one.hidden:
        for part in one.parts:
            made += bytes(part) if isinstance(part, int) else part
    for start, length in _holes(other):
        made[start : start + length] = bytes(length)
    return bytes(made)


def _holes(seen: Shown) -> Iterator[tuple[int, int]]:
    at = 0
    for part in seen.parts:
        if isinstance(part, int):
            yield at, part
            at += part
        else:
            at += len(part)


def _as_json(a: Shown, b: Shown, *, is_event: bool) -> Likeness | None:
    """Compare as JSON; None if one of them is none that reads one way only."""
    # A text that nobody can have put into either body beforehand stands for what is hidden.
    marker = f"hidden-{hashlib.sha256(a.known + b'|' + b.known).hexdigest()[:32]}"
    left, right = (_read(side.filled(marker.encode()), is_event=is_event) for side in (a, b))
    if left is None or right is None:
        return None
    walk = _Walk(marker)
    try:
        walk.compare(left, right, "")
    except RecursionError:
        return None
    return walk.likeness()


def _read(octets: bytes, *, is_event: bool) -> _Value:
    """Read JSON that has one meaning; None for everything else (`null` is no message)."""
    try:
        data = data_of(octets) if is_event else octets
        return cast("_Value", json.loads(data, object_pairs_hook=_once, parse_float=Decimal, parse_constant=_refuse))
    except (ValueError, RecursionError, ArithmeticError):
        return None


def _once(pairs: list[tuple[str, _Value]]) -> dict[str, _Value]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key stands twice: two readers would see two values")
    return made


def _refuse(token: str) -> _Value:
    raise ValueError(f"{token} is no JSON")


class _Walk:
    """Goes through two values side by side and keeps the first difference, and the first hidden place."""

    def __init__(self, marker: str) -> None:
        self._marker = marker
        self._differs: str | None = None
        self._hidden: str | None = None

    def likeness(self) -> Likeness:
        if self._differs is not None:
            return Likeness("differs", as_scalar_text(self._differs)[:_MOST_POINTER], "the values differ")
        if self._hidden is not None:
            hidden = as_scalar_text(self._hidden)[:_MOST_POINTER]
            return Likeness("cannot-tell", hidden, "equal but for what is hidden here")
        return Likeness("same-json")

    def compare(self, a: _Value, b: _Value, pointer: str) -> None:
        if self._differs is not None:
            return
        if isinstance(a, dict) and isinstance(b, dict):
            for name in sorted(a.keys() | b.keys()):
                below = f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
                if name in a and name in b:
                    self.compare(a[name], b[name], below)
                else:
                    self._differ(below)
        elif isinstance(a, list) and isinstance(b, list):
            for index, (left, right) in enumerate(zip(a, b, strict=False)):
                self.compare(left, right, f"{pointer}/{index}")
            if len(a) != len(b):
                self._differ(f"{pointer}/{min(len(a), len(b))}")
        elif self._hides(a) or self._hides(b):
            self._compare_hidden(a, b, pointer)
        elif not _equal(a, b):
            self._differ(pointer)

    def _hides(self, value: _Value) -> bool:
        return bool(self._marker) and isinstance(value, str) and self._marker in value

    def _compare_hidden(self, a: _Value, b: _Value, pointer: str) -> None:
        """What is shown before the first hole and behind the last one has to fit; the rest cannot be told."""
        if not isinstance(a, str) or not isinstance(b, str):
            self._differ(pointer)
            return
        left, right = a.split(self._marker), b.split(self._marker)
        (a_head, a_tail), (b_head, b_tail) = (left[0], left[-1]), (right[0], right[-1])
        before, behind = min(len(a_head), len(b_head)), min(len(a_tail), len(b_tail))
        if a_head[:before] != b_head[:before] or (behind and a_tail[-behind:] != b_tail[-behind:]):
            self._differ(pointer)
        elif self._hidden is None:
            self._hidden = pointer

    def _differ(self, pointer: str) -> None:
        if self._differs is None:
            self._differs = pointer


def _equal(a: _Value, b: _Value) -> bool:
    """Compare two scalars as JSON has them: true is not 1, and two spellings of one double are one number."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, (int, Decimal)) and isinstance(b, (int, Decimal)):
        if a == b:
            return True
        if isinstance(a, int) and isinstance(b, int):
            return False
        return _double(a) is not None and _double(a) == _double(b)
    return a == b


def _double(number: int | Decimal) -> float | None:
    try:
        value = float(number)
    except OverflowError:
        return None
    return value if math.isfinite(value) else None
