"""A file that is imported: known by its digest, so that no import is made twice and a broken one goes on."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from a2a_ledger.capture.jsonl_line import read_line
from a2a_ledger.capture.method_card import CARD_METHOD
from a2a_ledger.errors import FormatError, UsageError
from a2a_ledger.events import MessageRecorded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.capture.reader import LogReader
    from a2a_ledger.codec import Record
    from a2a_ledger.ledger import ContractLedger


@dataclass(frozen=True, slots=True)
class Source:
    """A file by its digest."""

    sha256: str
    octets: int
    last_line: int
    """The last line that is not blank, 0 if there is none."""
    last: bytes
    """What stands in it."""


@dataclass(frozen=True, slots=True)
class Start:
    """Where an import begins."""

    line: int
    recorded: Record | None = None
    """What is recorded of the line already: its request, or the answer that holds a card which is not."""


class WithoutEarlierRun:
    """Reads the log as if a file had not been imported before: a second import tells its tasks anew.

    Otherwise every send of it would be taken for a resend, and its card fetches for fetches in mid-task.
    """

    def __init__(self, reader: LogReader, source: str, size: int) -> None:
        self._reader = reader
        self._source = source
        self._size = size  # of the log when this run began

    def read_stream(
        self, stream: str, *, gt: int | None = None, limit: int | None = None, desc: bool = False
    ) -> list[Record]:
        """Return the records of one stream, by version."""
        return self._reader.read_stream(stream, gt=gt, limit=limit, desc=desc)

    def tagged(self, tag: str, *, limit: int | None = None, desc: bool = False) -> list[Record]:
        """Return the records that carry a lookup tag, less those of an earlier run that would name a task."""
        if not tag.startswith(("task:", "message:")):
            return self._reader.tagged(tag, limit=limit, desc=desc)
        found = self._reader.tagged(tag, desc=desc)
        return [r for r in found if r.n >= self._size or r.data.get("source_file") != self._source][:limit]

    def tagged_places(self, tag: str, *, after: int = -1, limit: int = -1) -> list[tuple[int, str]]:
        """Return log index and stream of the records that carry a tag, newest first."""
        return self._reader.tagged_places(tag, after=after, limit=limit)


def digest_of(path: str | os.PathLike[str]) -> Source:
    """Read a file once, for its digest, its size and its last line that is not blank."""
    digest, octets, last, text = hashlib.sha256(), 0, 0, b""
    for number, raw in lines_of(path):
        digest.update(raw)
        octets += len(raw)
        if line := raw.strip(b" \t\r\n"):
            last, text = number, line
    return Source(digest.hexdigest(), octets, last, text)


def lines_of(path: str | os.PathLike[str]) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file, line ends included, numbered from 1.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            yield from enumerate(file, start=1)
    except OSError as error:
        raise UsageError(f"{os.fspath(path)}: cannot be read: {error.strerror or error}") from error


def start_of(ledger: ContractLedger, source: Source, path: str | os.PathLike[str], *, again: bool) -> Start:
    """Return where to begin: at the first line, or behind what an earlier import has recorded.

    Raises:
        UsageError: all of it is recorded already, and `again` is not set.
    """
    recorded = ledger.store.tagged(f"import:{source.sha256}", limit=1, desc=True)
    if again or not recorded:
        return Start(1)
    line = recorded[0].data.get("line")
    reached = line if isinstance(line, int) else 0
    if _is_request(recorded[0]) and (reached < source.last_line or _has_answer(source.last)):
        return Start(reached, recorded[0])
    if _awaits_card(recorded[0]):
        return Start(reached, recorded[0])
    if reached < source.last_line:
        return Start(reached + 1)
    raise UsageError(
        f"{os.fspath(path)}: imported already, up to line {reached} (SHA-256 {source.sha256[:16]}…); "
        "give --again to import it once more"
    )


def _has_answer(line: bytes) -> bool:
    """Say whether a line's second half is something to record; one that was sent and never answered has none."""
    try:
        read = read_line(line)
    except FormatError:
        return False
    return read.response is not None or read.failure is not None


def _awaits_card(record: Record) -> bool:
    """Say whether a record is the answer of a method that answers with a card: the card's own record comes next."""
    data = record.data
    return (
        record.type == MessageRecorded.TYPE
        and data.get("leg") in {"response", "error"}
        and (data.get("method"), data.get("binding")) == (CARD_METHOD, "JSONRPC")
    )


def _is_request(record: Record) -> bool:
    return record.type == MessageRecorded.TYPE and record.data.get("leg") == "request"
