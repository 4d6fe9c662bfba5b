"""References between the events of a bundle: each to a shown event has to be to that very one."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2a_ledger.codec import Record
    from a2a_ledger.events import Json


class Target(NamedTuple):
    """What a reference names, and whether it stands in a field that may name what is not shown."""

    stream: str
    ver: int
    c: str
    within: bool


class References:
    """All references, by what they name: the events of a stream name the same few again and again."""

    def __init__(self) -> None:
        self._by: dict[Target, array[int]] = {}  # the number of the reference, and the log index of the event
        self._count = 0

    def add(self, record: Record) -> None:
        """Take in those of a record."""
        for field, value in record.data.items():
            for stream, ver, c in references(value):
                # A card came within a message of another task: its octets stand in the fetch.
                target = Target(stream, ver, c, field == "within" and stream.startswith("task:"))
                self._by.setdefault(target, array("Q")).extend((self._count, record.n))
                self._count += 1

    def differing(self, shown: Callable[[str, int], str | None]) -> Iterator[tuple[int, Target, bool]]:
        """Yield log index and target of each reference that does not lead to the event it names, in their order.

        Args:
            shown: gives the commitment of a shown event, by stream and version.

        Yields:
            Log index of the event, what it refers to, and whether another event is shown there.
        """
        found: list[tuple[int, int, Target, bool]] = []
        for target, places in self._by.items():
            there = shown(target.stream, target.ver)
            if there != target.c and not (there is None and target.within):
                found += [(*place, target, there is not None) for place in zip(places[::2], places[1::2], strict=True)]
        for _, n, target, other in sorted(found):
            yield n, target, other


def references(value: Json) -> Iterator[tuple[str, int, str]]:
    """Yield (stream, ver, c) of every reference to another event in an event's data.

    Members beside these three make it no other thing: a reader skips what he does not know (section 2).
    """
    if isinstance(value, dict):
        stream, ver, c = value.get("stream"), value.get("ver"), value.get("c")
        if isinstance(stream, str) and type(ver) is int and isinstance(c, str):
            yield stream, ver, c
        for member in value.values():
            yield from references(member)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)
