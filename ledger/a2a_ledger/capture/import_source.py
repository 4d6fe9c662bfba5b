"""A file that is imported: known by its digest, so that no import is made twice and a broken one goes on."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from a2a_ledger.capture.jsonl_line import ExchangeLine
from a2a_ledger.capture.method_card import CARD_METHOD
from a2a_ledger.errors import FormatError, UsageError
from a2a_ledger.events import MessageRecorded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2a_ledger.capture.formats.entry import Entry
    from a2a_ledger.capture.reader import LogReader
    from a2a_ledger.codec import Record
    from a2a_ledger.ledger import ContractLedger


@dataclass(frozen=True, slots=True)
class Source:
    """A file by its digest."""

    sha256: str
    octets: int


@dataclass(frozen=True, slots=True)
class Start:
    """How far an earlier import came: behind the last entry of which something is recorded."""

    reached: int
    """Its number."""
    last: Record
    """The last record of it."""
    goes_on: bool
    """That record is its request, or the answer that holds a card which is not recorded: the rest is still to come."""

    def is_at(self, entry: Entry) -> bool:
        """Say whether this is the entry, or the part of one, that the last record is of."""
        parts = {"whole", "asked"} if _is_request(self.last) else {"whole", "answered"}
        return entry.number == self.reached and entry.part in parts


class WithoutEarlierRun:
    """Reads the log as if a file had not been imported before: a second import tells its tasks anew.

    Otherwise every send of it would be taken for a resend, and its card fetches for fetches in mid-task. Earlier files
    of which something is in this one are not seen either.
    """

    def __init__(self, reader: LogReader, source: str, run: int, overlapped: frozenset[str]) -> None:
        self._reader = reader
        self._source = source
        self._run = run
        self._overlapped = overlapped

    def read_stream(
        self, stream: str, *, gt: int | None = None, limit: int | None = None, desc: bool = False
    ) -> list[Record]:
        """Return the records of one stream, by version."""
        return self._reader.read_stream(stream, gt=gt, limit=limit, desc=desc)

    def tagged(self, tag: str, *, limit: int | None = None, desc: bool = False) -> list[Record]:
        """Return the records that carry a lookup tag, less those of an earlier run that would name a task."""
        if not tag.startswith(("task:", "message:")):
            return self._reader.tagged(tag, limit=limit, desc=desc)
        return [record for record in self._reader.tagged(tag, desc=desc) if not self._is_earlier(record)][:limit]

    def tagged_places(self, tag: str, *, after: int = -1, limit: int = -1) -> list[tuple[int, str]]:
        """Return log index and stream of the records that carry a tag, newest first."""
        return self._reader.tagged_places(tag, after=after, limit=limit)

    def _is_earlier(self, record: Record) -> bool:
        source = record.data.get("source_file")
        return source in self._overlapped or (source == self._source and run_of(record) < self._run)


def run_of(record: Record | None) -> int:
    """Return which import of its file a record comes from, from 1; of none 0."""
    run = record.data.get("run") if record is not None else 0
    return run if isinstance(run, int) else 1


def newest_of(ledger: ContractLedger, source: Source) -> Record | None:
    """Return the last record of a file; None: it was never imported."""
    return next(iter(ledger.store.tagged(f"import:{source.sha256}", limit=1, desc=True)), None)


def digest_of(path: str | os.PathLike[str]) -> Source:
    """Read a file once, for its digest and its size.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            return Source(hashlib.file_digest(file, "sha256").hexdigest(), file.tell())
    except OSError as error:
        raise UsageError(f"{os.fspath(path)}: cannot be read: {error.strerror or error}") from error


def start_of(
    last: Record, source: Source, entries: Callable[[], Iterator[Entry]], path: str | os.PathLike[str]
) -> Start:
    """Return how far the newest import of a file came.

    Args:
        last: its last record.
        source: the file.
        entries: what is in it.
        path: its name, for errors.

    Raises:
        UsageError: all of it is recorded already.
    """
    line = last.data.get("line")
    reached = line if isinstance(line, int) else 0
    start = Start(reached, last, _is_request(last) or _awaits_card(last))
    final = deque(entries(), maxlen=1)
    if not final or not start.is_at(final[0]) or _awaits_card(last) or (_is_request(last) and _has_answer(final[0])):
        return start
    raise UsageError(
        f"{os.fspath(path)}: imported already, up to line {reached} (SHA-256 {source.sha256[:16]}…); "
        "give --again to import it once more"
    )


def request_of(ledger: ContractLedger, source: Source, number: int, run: int) -> Record | None:
    """Return the record of an entry's request in one run: an import that was cut short goes on with its answer."""
    for record in ledger.store.tagged(f"import:{source.sha256}", desc=True):
        if record.data.get("line") == number and run_of(record) == run and _is_request(record):
            return record
    return None


def _has_answer(entry: Entry) -> bool:
    """Say whether an entry's second half is something to record; what was sent and never answered has none."""
    try:
        read = entry.read(entry.raw)
    except FormatError:
        return False
    return isinstance(read, ExchangeLine) and (read.response is not None or read.failure is not None)


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
