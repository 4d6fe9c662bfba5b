"""Records in memory as a log that cases are rebuilt from: those of a bundle, or of a replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.codec import tags_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_ledger.codec import Record


class RecordLog:
    """Finds records by stream and by lookup tag, as the store does; tags are recomputed from each record."""

    def __init__(self, records: Iterable[Record]) -> None:
        self._streams: dict[str, list[Record]] = {}
        self._tags: dict[str, list[Record]] = {}
        for record in sorted(records, key=lambda item: item.n):
            self._streams.setdefault(record.stream, []).append(record)
            for tag in tags_of(record.stream, record.type, record.data):
                self._tags.setdefault(tag, []).append(record)

    def read_stream(
        self, stream: str, *, gt: int | None = None, limit: int | None = None, desc: bool = False
    ) -> list[Record]:
        """Return the records of one stream, by version."""
        found = [record for record in self._streams.get(stream, ()) if gt is None or record.ver > gt]
        return _cut(found, limit, desc=desc)

    def tagged(self, tag: str, *, limit: int | None = None, desc: bool = False) -> list[Record]:
        """Return the records that carry a lookup tag, by log index."""
        return _cut(self._tags.get(tag, []), limit, desc=desc)


def _cut(found: list[Record], limit: int | None, *, desc: bool) -> list[Record]:
    ordered = found[::-1] if desc else found
    return ordered if limit is None else ordered[:limit]
