"""Entries that say when they began and ended: in the order of time, those that overlap in two parts.

A poll during a stream was answered before the stream's end, wherever the two stand in the file.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.capture.formats.entry import Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from a2a_ledger.capture.formats.scan import Text
    from a2a_ledger.capture.jsonl_line import ExchangeLine

    Found = tuple[int, int, int, datetime | None, datetime | None]
    """Number of an entry, where it starts and ends in the text, when it began and when it ended."""

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class _Place(NamedTuple):
    """Where an entry stands, in time and in the file."""

    begun: datetime
    number: int
    ended: datetime
    start: int
    end: int


def instant(octets: bytes) -> datetime | None:
    """Read a time as RFC 3339 writes it, within the quotes of a JSON string or not; None: it is none."""
    try:
        read = datetime.fromisoformat(octets.strip(b'"').decode())
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def entries_in_order(text: Text, found: Iterable[Found], read: Callable[[bytes], ExchangeLine]) -> Iterator[Entry]:
    """Yield entries by when they began, ties in the order of the file.

    One that does not say when it began stands behind the one before it. One during which another begins, or that begins
    during another, is yielded in two parts, `asked` when it began and `answered` when it ended.

    Args:
        text: the file.
        found: the entries in the order of the file.
        read: reads one.
    """
    places: list[_Place] = []
    latest = _LONG_AGO
    for number, start, end, begun, ended in found:
        latest = begun or latest
        places.append(_Place(latest, number, max(ended or latest, latest) if begun else latest, start, end))
    places.sort()
    steps: list[tuple[datetime, int, int, str]] = []  # when; what ends before what begins; which place; which part
    until = _LONG_AGO
    for at, place in enumerate(places):
        following = places[at + 1].begun if at + 1 < len(places) else place.ended
        if place.begun < place.ended and (place.begun < until or following < place.ended):
            steps += [(place.begun, 1, at, "asked"), (place.ended, 0, at, "answered")]
        else:
            steps.append((place.begun, 1, at, "whole"))
        until = max(until, place.ended)
    for _, _, at, part in sorted(steps):
        place = places[at]
        yield Entry(place.number, text[place.start : place.end], place.end, read, part)
