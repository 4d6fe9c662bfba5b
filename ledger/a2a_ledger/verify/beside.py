"""The shown events by where they stand, and what their messages say of each other's ids. Pure."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING

from a2a_ledger.divergence.reading import CAPTURED, MESSAGE, ref, text

if TYPE_CHECKING:
    from a2a_ledger.codec import Record
    from a2a_ledger.verify.shown import Shown


class Said:
    """What records say of peers and of each other's ids, by their log indexes: the records themselves are let go."""

    def __init__(self) -> None:
        self.peers: dict[str, int] = {}  # by stream the first event that names a peer
        self.urls: dict[str, int] = {}  # by peer the first event that names its url
        self.spoken: dict[str, array[int]] = {}  # by stream its messages
        self.frozen: dict[str, int] = {}  # by stream its first capture
        self.asked: dict[str, int] = {}  # by stream the first request that went out
        self.given: dict[tuple[str, int, str | None, str | None], int] = {}  # by the message that was answered so first

    def take(self, record: Record) -> None:
        """Take in the next record in log order."""
        if text(record.data, "peer") is not None:
            self.peers.setdefault(record.stream, record.n)
        if text(record.data, "peer_url"):
            self.urls.setdefault(str(record.data.get("peer")), record.n)
        if record.type == CAPTURED:
            self.frozen.setdefault(record.stream, record.n)
        if record.type == MESSAGE:
            if record.data.get("leg") == "request" and record.data.get("direction") == "out":
                self.asked.setdefault(record.stream, record.n)
            self.spoken.setdefault(record.stream, array("Q")).append(record.n)
            asked = ref(record.data, "answers")
            if asked is not None:
                self.given.setdefault((asked["stream"], asked["ver"], *ids_of(record)), record.n)


class Beside:
    """The shown records by where they stand, and what their messages say of each other."""

    def __init__(self, shown: Shown, said: Said) -> None:
        self._shown = shown
        self._said = said

    def named(self, record: Record, name: str) -> Record | None:
        """Return the event that a field refers to; None: none, or it is not shown."""
        there = ref(record.data, name)
        return None if there is None else self._at(there["stream"], there["ver"])

    def before(self, record: Record) -> Record | None:
        """Return the event before it in its stream."""
        return self._at(record.stream, record.ver - 1)

    def behind(self, record: Record, count: int) -> Record | None:
        """Return the event that stands so many behind it in its stream; None: it is not shown."""
        return self._at(record.stream, record.ver + count)

    def gave_ids(self, asked: Record, record: Record) -> bool:
        """Say whether a message, or one that answers it, had the ids of a later event in its content."""
        ids = ids_of(record)
        answered = self._said.given.get((asked.stream, asked.ver, *ids), record.n)
        return answered < record.n or (ids_of(asked) == ids and asked.n < record.n)

    def next_message(self, record: Record) -> Record | None:
        """Return the first message behind an event in its stream."""
        spoken = self._said.spoken.get(record.stream, ())
        at = bisect_right(spoken, record.n)
        return self._shown.records[spoken[at]] if at < len(spoken) else None

    def first_capture(self, record: Record) -> Record:
        """Return the first capture of the stream of a capture."""
        return self._shown.records[self._said.frozen[record.stream]]

    def first_request(self, record: Record) -> int | None:
        """Return the log index of the first request that went out in the stream of an event, if there is one."""
        return self._said.asked.get(record.stream)

    def first_of_stream(self, record: Record) -> Record:
        """Return the first event of a stream that names a peer."""
        n = self._said.peers.get(record.stream)
        return record if n is None else self._shown.records[n]

    def first_of_peer(self, record: Record) -> Record:
        """Return the first event that names the url of this peer."""
        n = self._said.urls.get(str(record.data.get("peer")))
        return record if n is None else self._shown.records[n]

    def _at(self, stream: str, ver: int) -> Record | None:
        n = self._shown.at(stream, ver)
        return None if n is None else self._shown.records[n]


def ids_of(record: Record) -> tuple[str | None, str | None]:
    """Return the peer's task id and context id that an event has."""
    return text(record.data, "task_id"), text(record.data, "context_id")
