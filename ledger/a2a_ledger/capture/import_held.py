"""Exchanges that the ledger holds already, because a file was imported that this one continues or overlaps.

The last record of an imported exchange has a mark of it: a keyed digest of all that the file says of it, so that it
tells nobody else anything of what was left out of the record (docs/format.md section 13.4).
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections import Counter, defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING

from a2a_ledger.capture.jsonl_line import Asked, ExchangeLine
from a2a_ledger.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from a2a_ledger.capture.formats.entry import Entry
    from a2a_ledger.capture.jsonl_line import Answered
    from a2a_ledger.events import Json
    from a2a_ledger.ledger import ContractLedger

_DOMAIN = b"a2a-ledger/import-entry/v1\0"
_KEY_OF = "import"
"""Under this name the key store has the key of all marks, beside the redaction keys of the peers."""

_DIGITS = 32
_REMEMBERED = 1024
"""Marks of which the look-up is remembered: what is imported of this very file meanwhile does not change it."""


class Held:
    """Says of the entries of one file, in their order, whether they are held.

    An exchange that states a time is known wherever it stands. One without a time may have happened twice: it is held
    only in the beginning of a file that has, in that beginning, all that an earlier file had.
    """

    def __init__(self, ledger: ContractLedger, file: str, *, all_anew: bool = False) -> None:
        """Take note of what is recorded.

        Args:
            ledger: where.
            file: SHA-256 of the file that is imported now; what is recorded of it does not count.
            all_anew: nothing counts as recorded: the file is imported again.
        """
        self._ledger = ledger
        self._file = file
        self._all_anew = all_anew
        self._met: Counter[str] = Counter()
        self._passed: set[int] = set()  # exchanges that are held and overlap others, until their answers come by
        self._beginning: frozenset[int] = frozenset()
        self._files_with = lru_cache(_REMEMBERED)(self._look_up)  # the same poll may stand in a file a thousand times

    def mark(self, line: ExchangeLine) -> str:
        """Return the mark of an exchange."""
        _, key = self._ledger.store.keys.redaction_key(_KEY_OF)
        failed = line.failure.text if line.failure is not None else None
        said: list[Json] = [line.at, line.kind, _message(line.request), _answer(line.response), failed]
        octets = json.dumps(said, separators=(",", ":")).encode()
        return hmac.new(key, _DOMAIN + octets, hashlib.sha256).hexdigest()[:_DIGITS]

    def meets(self, entry: Entry, line: ExchangeLine) -> tuple[str, bool]:
        """Return the mark of the next exchange, or part of one, and whether it is held; an answer as its request."""
        mark = self.mark(line)
        if entry.part == "answered":
            held = entry.number in self._passed
            self._passed.discard(entry.number)
        else:
            held = not self._all_anew and self._is_held(entry.number, line, mark)
            if held and entry.part == "asked":
                self._passed.add(entry.number)
        return mark, held

    def _is_held(self, number: int, line: ExchangeLine, mark: str) -> bool:
        """Say whether an exchange is recorded, of an earlier file; each that is recorded stands for one."""
        if line.at is None:
            return number in self._beginning
        files = self._files_with(mark)
        self._met[mark] += bool(files)
        return 0 < self._met[mark] <= len(files)

    def begin(self, entries: Iterable[Entry]) -> None:
        """Look at the beginning of the file, as far as it is recorded of earlier ones."""
        matched: defaultdict[str, list[str]] = defaultdict(list)
        numbers: list[int] = []
        met: Counter[str] = Counter()
        for entry, line in _exchanges(entries):
            mark = self.mark(line)
            files = self._files_with(mark)
            met[mark] += 1
            if met[mark] > len(files):
                break
            matched[files[met[mark] - 1]].append(mark)
            numbers.append(entry.number)
        if all(sorted(marks) == sorted(self._marks_of(file)) for file, marks in matched.items()):
            self._beginning = frozenset(numbers)

    def overlapped(self, entries: Iterable[Entry]) -> frozenset[str]:
        """Return the earlier files, by SHA-256, of which something is in this one."""
        return frozenset(file for _, line in _exchanges(entries) for file in self._files_with(self.mark(line)))

    def _look_up(self, mark: str) -> list[str]:
        """Return the files of which an exchange with this mark is recorded, one for each time that it stands there."""
        found: dict[str, tuple[Json, int]] = {}
        for record in self._ledger.store.tagged(f"entry:{mark}"):
            file, run = str(record.data.get("source_file")), record.data.get("run")
            first, times = found.get(file, (run, 0))
            if file != self._file and run == first:  # of a file that was imported again one run counts
                found[file] = (first, times + 1)
        return [file for file, (_, times) in found.items() for _ in range(times)]

    def _marks_of(self, file: str) -> list[str]:
        """Return the marks of all exchanges that one run over a file has recorded."""
        marks: list[tuple[Json, str]] = []
        for record in self._ledger.store.tagged(f"import:{file}"):
            mark = record.data.get("entry")
            if isinstance(mark, str):
                marks.append((record.data.get("run"), mark))
        return [mark for run, mark in marks if run == marks[0][0]]


def _exchanges(entries: Iterable[Entry]) -> Iterator[tuple[Entry, ExchangeLine]]:
    """Yield the exchanges of a file that can be read, each once."""
    for entry in entries:
        if entry.part == "answered":
            continue
        try:
            read = entry.read(entry.raw)
        except FormatError:
            continue
        if isinstance(read, ExchangeLine):
            yield entry, read


def _message(said: Asked | Answered) -> Json:
    first: list[Json] = [said.method, said.url] if isinstance(said, Asked) else [said.status]
    headers: list[Json] = [[name, value] for name, value in said.headers]
    return [*first, headers, hashlib.sha256(said.body).hexdigest(), said.whole]


def _answer(said: Answered | None) -> Json:
    return _message(said) if said is not None else None
