"""How many of the shown events are of the tasks, of their peers, and of the log itself. Pure.

A replay counts the events of a task, a bundle holds more than these: the cards that they refer to and the log's keys.
Said apart, the numbers of all verbs add up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


_OF: Final = {
    "task": ("the task", "its peer"),
    "context": ("its tasks", "their peers"),
    "peer": ("its tasks", "the peer itself"),
}


class Counts(NamedTuple):
    """Numbers of events.

    Attributes:
        tasks: of the tasks, and of the findings about each.
        peers: of peers' own streams: their cards, and the findings about a peer.
        log: of the log itself, stream `ledger`.
    """

    tasks: int
    peers: int
    log: int

    @classmethod
    def of(cls, streams: Iterable[tuple[str, int]]) -> Counts:
        """Count by the names of streams, each with how many events of it there are."""
        tasks = peers = log = 0
        for stream, count in streams:
            if stream == "ledger":
                log += count
            elif stream.startswith(("peer:", "findings:peer:")):
                peers += count
            else:
                tasks += count
        return cls(tasks, peers, log)

    def words(self, kind: str) -> str:
        """Say it in the words of all verifiers, of a bundle about a `task`, `context` or `peer`."""
        tasks, peers = _OF[kind]
        return f"{self.tasks} of {tasks}, {self.peers} of {peers}, {self.log} of the log itself"
