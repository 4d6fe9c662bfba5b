"""Where a text holds one of some octet strings, be they thousands: a peer sends as many cookies as it likes. Pure.

A few are looked for one after another, which is the fastest. Of many the text is read once, and time grows with the
text and not with their number.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Span = tuple[int, int]
"""Start and end of some octets, as in a slice."""

_FEW = 64
_SHORT_TEXT = 4096
_LONG_VALUE = 1024
"""Octets of a string that is looked for alone: the headers of one message have room for few such."""

_HEAD = 6


class Search:
    """Looks for the same octet strings in any number of texts."""

    def __init__(self, wanted: Sequence[bytes]) -> None:
        """Look for octet strings, none of them empty."""
        self._wanted = wanted

    def spans(self, text: bytes) -> Iterator[Span]:
        """Yield where one of them stands; of two that begin at one place the longer one, at least."""
        if len(self._wanted) <= _FEW or len(text) <= _SHORT_TEXT:
            return _each(text, self._wanted)
        return self._all.spans(text)

    @cached_property
    def _all(self) -> _Many:
        return _Many(self._wanted)


def _each(text: bytes, wanted: Sequence[bytes]) -> Iterator[Span]:
    for value in wanted:
        at = text.find(value)
        while at >= 0:
            yield at, at + len(value)
            at = text.find(value, at + len(value))


class _Many:
    """The strings in their order: what a text goes on with begins with the one before its own place, or with none."""

    def __init__(self, wanted: Sequence[bytes]) -> None:
        self._long = [value for value in wanted if len(value) > _LONG_VALUE]
        self._values = sorted({value for value in wanted if len(value) <= _LONG_VALUE})
        self._most = max(map(len, self._values), default=0)
        self._head = min(map(len, self._values), default=_HEAD)
        self._heads = {value[: self._head] for value in self._values}
        self._within: list[tuple[int, ...]] = []  # of each, how long those are that it begins with, and it itself
        nested: list[bytes] = []
        for value in self._values:
            while nested and not value.startswith(nested[-1]):
                nested.pop()
            nested.append(value)
            self._within.append(tuple(map(len, nested)))

    def spans(self, text: bytes) -> Iterator[Span]:
        yield from _each(text, self._long)
        heads, size = self._heads, self._head
        for at in range(len(text) - size + 1):
            if text[at : at + size] in heads and (length := self._longest(text[at : at + self._most])):
                yield at, at + length

    def _longest(self, text: bytes) -> int:
        """Return the length of the longest string that a text begins with; 0: none."""
        i = bisect_right(self._values, text) - 1
        if i < 0:
            return 0
        value, lengths = self._values[i], self._within[i]
        matching = bisect_left(lengths, True, key=lambda length: not text.startswith(value[:length]))  # noqa: FBT003 - what the key gives
        return lengths[matching - 1] if matching else 0
