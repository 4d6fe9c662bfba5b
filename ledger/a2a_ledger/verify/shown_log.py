"""The records of a bundle as a log that cases are rebuilt from: by stream, and by the tags that rules look up."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from a2a_ledger.codec import Record
    from a2a_ledger.verify.shown import Shown


class ShownLog:
    """Finds records as the store does (`divergence.CaseLog`); each is read when it is asked for."""

    def __init__(self, shown: Shown) -> None:
        self._shown = shown

    def read_stream(
        self, stream: str, *, gt: int | None = None, limit: int | None = None, desc: bool = False
    ) -> list[Record]:
        """Return the records of one stream, by version."""
        found = self._shown.streams.get(stream)
        numbers = array("Q") if found is None else found.numbers(after=-1 if gt is None else gt)
        return [self._shown.records[n] for n in (numbers[::-1] if desc else numbers)[:limit]]

    def tagged(self, tag: str, *, limit: int | None = None, desc: bool = False) -> list[Record]:
        """Return the captures that carry a lookup tag, by log index."""
        numbers = self._shown.tagged.get(tag) or array("Q")
        return [self._shown.records[n] for n in (numbers[::-1] if desc else numbers)[:limit]]
