"""The shown events by where they stand, and what their messages say of each other's ids. Pure."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from a2a_ledger.divergence.reading import MESSAGE, ref, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_ledger.codec import Record


class Beside:
    """The shown records by where they stand, and what their messages say of each other."""

    def __init__(self, records: Mapping[int, Record]) -> None:
        self._places: dict[tuple[str, int], Record] = {}
        self._peers: dict[str, Record] = {}  # by stream the first event that names a peer
        self._urls: dict[str, Record] = {}  # by peer the first event that names its url
        self._spoken: dict[str, list[Record]] = {}  # by stream its messages
        self._given: dict[tuple[str, int, str | None, str | None], int] = {}
        for record in (records[n] for n in sorted(records)):
            self._places[record.stream, record.ver] = record
            if text(record.data, "peer") is not None:
                self._peers.setdefault(record.stream, record)
            if text(record.data, "peer_url"):
                self._urls.setdefault(str(record.data.get("peer")), record)
            if record.type == MESSAGE:
                self._take_message(record)

    def _take_message(self, record: Record) -> None:
        self._spoken.setdefault(record.stream, []).append(record)
        asked = ref(record.data, "answers")
        for stream, ver in {(record.stream, record.ver), *([(asked["stream"], asked["ver"])] if asked else [])}:
            self._given.setdefault((stream, ver, *ids_of(record)), record.n)

    def named(self, record: Record, name: str) -> Record | None:
        """Return the event that a field refers to; None: none, or it is not shown."""
        there = ref(record.data, name)
        return None if there is None else self._places.get((there["stream"], there["ver"]))

    def before(self, record: Record) -> Record | None:
        """Return the event before it in its stream."""
        return self._places.get((record.stream, record.ver - 1))

    def gave_ids(self, asked: Record, record: Record) -> bool:
        """Say whether a message, or one that answers it, had the ids of a later event in its content."""
        return self._given.get((asked.stream, asked.ver, *ids_of(record)), record.n) < record.n

    def next_message(self, record: Record) -> Record | None:
        """Return the first message behind an event in its stream."""
        spoken = self._spoken.get(record.stream, [])
        at = bisect_right(spoken, record.n, key=lambda said: said.n)
        return spoken[at] if at < len(spoken) else None

    def first_of_stream(self, record: Record) -> Record:
        """Return the first event of a stream that names a peer."""
        return self._peers.get(record.stream, record)

    def first_of_peer(self, record: Record) -> Record:
        """Return the first event that names the url of this peer."""
        return self._urls.get(str(record.data.get("peer")), record)


def ids_of(record: Record) -> tuple[str | None, str | None]:
    """Return the peer's task id and context id that an event has."""
    return text(record.data, "task_id"), text(record.data, "context_id")
