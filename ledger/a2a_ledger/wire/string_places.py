"""Where strings stand in the octets of a JSON text, by the path that leads to them. Pure, in one pass.

What is between the quotes can be left out of a message and filled with as many `*`, and the text still parses
(docs/format.md section 3.3). So a value that a profile's pattern names is taken string by string: a number, a
name of a member and a brace stay.

The reader is no JSON parser: it takes strings, braces and commas as they come and skips the rest, so that a
block of an event stream and an object with duplicate keys are read too.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from a2a_ledger.wire.wide import Span, as_utf8

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST_PLACES = 256
"""Places of one text that are told apart; what comes behind these is one, up to the end of the last string."""

_PIECE = re.compile(
    rb"(?P<framing>(?:\A|(?<=[\r\n]))(?::|event:|id:|retry:)[^\r\n]*+)"  # of an event stream
    rb'|"(?P<text>(?:[^"\\]++|\\.)*+)(?:"(?P<name>\s*+:)?|(?P<cut>\\?\Z))'  # cut: none begins inside of it
    rb"|[{}\[\],]",
    re.DOTALL,
)
_DEEPEST = 1000


def string_places(text: bytes, patterns: Sequence[str]) -> list[Span]:
    """Return where the strings stand that these patterns lead to, or into: what is between their quotes.

    Args:
        text: JSON in any Unicode encoding, or a block of an event stream.
        patterns: of a profile (docs/format.md section 7.3): steps behind a `/`, `*` for any one member or item.

    Returns:
        Ascending, none of them empty. At most `MOST_PLACES`: where there are more, the last one covers the rest.
    """
    wanted = [[step.replace("~1", "/").replace("~0", "~") for step in pattern.split("/")[1:]] for pattern in patterns]
    places: list[Span] = []
    read, source = as_utf8(text)
    for path, found in _strings(read) if wanted else ():
        span = source(found)
        if span[0] < span[1] and any(_leads(steps, path) for steps in wanted):
            if len(places) < MOST_PLACES:
                places.append(span)
            else:
                places[-1] = (places[-1][0], span[1])
    return places


def _leads(steps: list[str], path: list[str]) -> bool:
    """Say whether a pattern leads to a path, or to something that holds it."""
    return len(steps) <= len(path) and all(step in {"*", name} for step, name in zip(steps, path, strict=False))


def _strings(text: bytes) -> Iterator[tuple[list[str], Span]]:
    """Yield every string that is a value, with the names and numbers that lead to it."""
    here = _Here()
    for piece in _PIECE.finditer(text):
        if piece.lastgroup == "name":
            here.name(piece["text"])
        elif piece.lastgroup == "text":
            yield here.path, piece.span("text")
        elif piece.lastgroup is None:
            here.sign(piece[0])


class _Here:
    """Where a reader of a text is: the names and numbers that lead there, the outermost first."""

    def __init__(self) -> None:
        self.path: list[str] = []
        self._items: list[int | None] = []  # of each open list the item, of an object None
        self._deeper = 0

    def name(self, raw: bytes) -> None:
        """Take the name of a member."""
        if self._items and self._items[-1] is None and not self._deeper:
            self.path[-1] = _read(raw)

    def sign(self, sign: bytes) -> None:
        """Take a brace, a bracket or a comma."""
        if sign in {b"{", b"["}:
            self._begin(is_list=sign == b"[")
        elif sign in {b"}", b"]"}:
            self._end()
        elif self._items and (item := self._items[-1]) is not None and not self._deeper:
            self._items[-1] = item + 1
            self.path[-1] = str(item + 1)

    def _begin(self, *, is_list: bool) -> None:
        if len(self._items) > _DEEPEST:
            self._deeper += 1
        else:
            self._items.append(0 if is_list else None)
            self.path.append("0" if is_list else "")

    def _end(self) -> None:
        if self._deeper:
            self._deeper -= 1
        elif self._items:
            self._items.pop()
            self.path.pop()


def _read(raw: bytes) -> str:
    """Return what stands between the quotes of a JSON string, read; as it is if it is none."""
    text = raw.decode("utf-8", "replace")
    try:
        return str(json.loads(f'"{text}"', strict=False)) if "\\" in text else text
    except ValueError:
        return text
