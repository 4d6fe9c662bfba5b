"""What capture reads from the log: the small part of the store that attribution and decisions need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from a2a_ledger.codec import Record


class LogReader(Protocol):
    """Reads records by stream and by lookup tag; the store is one."""

    def read_stream(
        self, stream: str, *, gt: int | None = None, limit: int | None = None, desc: bool = False
    ) -> list[Record]:
        """Return the records of one stream, by version."""
        ...

    def tagged(self, tag: str, *, limit: int | None = None, desc: bool = False) -> list[Record]:
        """Return the records that carry a lookup tag, by log index."""
        ...

    def tagged_places(self, tag: str, *, after: int = -1, limit: int = -1) -> list[tuple[int, str]]:
        """Return log index and stream of the records that carry a tag, newest first, those above index `after`."""
        ...
