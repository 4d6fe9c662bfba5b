"""Server-sent events, read incrementally with the raw bytes of each event kept (WHATWG HTML section 9.2)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_ledger.codec import Hole, Rest

_LINE_END = re.compile(rb"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"
_NO_DATA = (b":", b"event:", b"id:", b"retry:")


@dataclass(frozen=True, slots=True)
class SseEvent:
    """One block of the stream, up to and including the blank line that ends it.

    The `raw` of all blocks, joined, is the stream byte for byte, unless one has a tail.
    """

    raw: bytes
    data: bytes
    """The `data` lines joined by line feeds."""
    name: str
    """The `event` field, "" if there is none."""
    has_data: bool
    """False: a comment or a keep-alive, which readers of the standard do not see."""
    complete: bool
    """False: the stream ended before the blank line."""
    tail: Hole | None = None
    """What came after `raw`, of a block that is longer than what is held of one; nothing of it is read."""


class SseParser:
    """Cuts a byte stream into events. Lines may end in CR, LF or CRLF; chunks may cut anywhere.

    A CR at the end of a chunk ends its line at once, so that an event is not held back until the next
    one; a LF that follows belongs to that line end and is the first byte of the next block's `raw`.
    """

    def __init__(self, keep: int | None = None, new_rest: Callable[[], Rest] | None = None) -> None:
        """Read a stream.

        Args:
            keep: octets that are held of one block; None: all of them.
            new_rest: gives what takes the octets of a block that are over that; wanted with `keep`.
        """
        self._keep = keep if new_rest is not None else None
        self._new_rest = new_rest
        self._rest: Rest | None = None
        self._raw = bytearray()
        self._line = bytearray()
        self._data = bytearray()
        self._has_data = False
        self._name = ""
        self._after_cr = False
        self._at_start = True
        self.of_line_end = 0
        """Octets of the block that is not whole yet that end the last line of the one before it."""

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Take the next bytes; return the events that they complete."""
        events: list[SseEvent] = []
        start = 0
        if chunk and self._after_cr:
            self._after_cr = False
            if chunk[:1] == b"\n":
                self.of_line_end = 0 if self._raw else 1
                self._hold(b"\n")
                start = 1
        for end in _LINE_END.finditer(chunk, start):
            self._line += chunk[start : end.start()]
            self._hold(chunk[start : end.end()])
            start = end.end()
            if self._end_line():
                events.append(self._event(complete=True))
        self._line += chunk[start:]
        self._hold(chunk[start:])
        if chunk:
            self._after_cr = chunk[-1:] == b"\r"
        return events

    def close(self) -> list[SseEvent]:
        """Say that the stream is over; return what stands unfinished, marked `complete=False`."""
        if not self._raw and self._rest is None:
            return []
        if self._line:
            self._end_line()
        cut_crlf = bytes(self._raw) == b"\n"  # only the second half of a line end that was counted already
        return [self._event(complete=cut_crlf)]

    def _hold(self, octets: bytes) -> None:
        """Take octets of a block, as long as there is room; when there is none, what was read of it is forgotten."""
        if self._keep is None or (self._rest is None and len(self._raw) + len(octets) <= self._keep):
            self._raw += octets
            return
        if self._rest is None and self._new_rest is not None:
            self._rest = self._new_rest()
            self._data.clear()
        room = self._keep - len(self._raw)
        self._raw += octets[:room]
        if self._rest is not None:
            self._rest.add(octets[room:])
        del self._line[1:]  # all that is asked of it now is whether it is blank

    def _end_line(self) -> bool:
        """Read the line that just ended; True if it was the blank line that ends a block."""
        line = bytes(self._line)
        self._line.clear()
        if self._at_start:
            line = line.removeprefix(_BOM)
            self._at_start = False
        if not line:
            return True
        if self._rest is not None:
            return False
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data += b"\n" + value if self._has_data else value
            self._has_data = True
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")
        return False

    def _event(self, *, complete: bool) -> SseEvent:
        event = SseEvent(
            raw=bytes(self._raw),
            data=bytes(self._data),
            name=self._name,
            has_data=self._has_data,
            complete=complete,
            tail=self._rest.hole if self._rest is not None else None,
        )
        self._raw.clear()
        self._data.clear()
        self._has_data, self._rest = False, None
        self._name = ""
        self.of_line_end = 0
        return event


def split_stream(body: bytes) -> list[SseEvent]:
    """Cut a whole recorded stream into its events."""
    parser = SseParser()
    return [*parser.feed(body), *parser.close()]


def data_of(block: bytes) -> bytes:
    """Return the data in a block as it came; data without its framing comes back as it is.

    No line of JSON reads as a `data` field, so the two cannot be mistaken for each other. A block of
    comments and other fields alone has no data.
    """
    line = block.rstrip(b"\r\n")
    if line.startswith(b"data:") and b"\n" not in line and b"\r" not in line:  # as nearly every event is
        return line[5:].removeprefix(b" ")
    data = [event.data for event in split_stream(block) if event.has_data]
    if data:
        return b"\n".join(data)
    lines = [line for line in _LINE_END.split(block.removeprefix(_BOM)) if line]
    return b"" if all(line.startswith(_NO_DATA) for line in lines) else block
