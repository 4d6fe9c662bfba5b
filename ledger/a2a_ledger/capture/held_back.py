"""Octets of a stream that wait until the event in them is whole, recorded and judged (docs/format.md section 14)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_ledger.wire import SseEvent

_A_PIECE = 128  # what a piece costs beside its octets: a peer may send them one by one


class HeldBack:
    """Keeps pieces of one stream in their order, and says how far they may pass."""

    def __init__(self, *, splits: bool) -> None:
        """Begin a stream.

        Args:
            splits: a piece may be passed on in parts; one in a content coding may not, it waits for its last event.
        """
        self._splits = splits
        self._waiting: deque[tuple[int, bytes]] = deque()  # each with where it ends in what the stream says
        self._held = 0
        self._came = 0
        self._events = 0
        self._whole = 0

    @property
    def size(self) -> int:
        """What is held, in octets."""
        return max(self._held, self._came - self._whole)

    @property
    def ends_between_events(self) -> bool:
        """Say whether nothing waits for the rest of its event."""
        return self._came == self._whole

    def read(self, octets: int, events: Sequence[SseEvent], of_line_end: int = 0) -> None:
        """Count octets that the stream said, and the events that they made whole.

        Args:
            octets: so many came.
            events: what they made whole.
            of_line_end: so many behind these end the last line of an event that has passed: who reads it may wait for
                the second half of a CRLF.
        """
        self._came += octets
        self._events += sum([len(event.raw) + (event.tail.length if event.tail else 0) for event in events])
        self._whole = self._events + of_line_end

    def passing(self, octets: bytes = b"") -> bytes:
        """Take the next piece, whose octets were read; return what may pass now."""
        if octets:
            self._waiting.append((self._came, octets))
            self._held += len(octets) + _A_PIECE
        passed = bytearray()
        while self._waiting and self._waiting[0][0] <= self._whole:
            _, piece = self._waiting.popleft()
            self._held -= len(piece) + _A_PIECE
            passed += piece
        if self._splits and self._waiting:
            end, piece = self._waiting[0]
            if (cut := len(piece) - (end - self._whole)) > 0:
                self._waiting[0] = (end, piece[cut:])
                self._held -= cut
                passed += piece[:cut]
        return bytes(passed)
