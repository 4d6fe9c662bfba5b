"""What one run over a file appends: events with where in the file they come from, a few entries at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.capture.import_report import LineFault
from a2a_ledger.capture.redact import withhold
from a2a_ledger.codec import Content
from a2a_ledger.events import MessageRecorded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_ledger.capture.import_report import ImportReport
    from a2a_ledger.codec import Draft
    from a2a_ledger.events import Event, Ref
    from a2a_ledger.ledger import ContractLedger

    Blobs = Mapping[str, Content | bytes]

_PEER_DIGITS = 32


class Stamp(NamedTuple):
    """What the records of one entry have in common."""

    number: int
    claimed_at: str | None = None
    mark: str | None = None
    """Of an exchange, for the last of its records."""


class Drafts:
    """The events that are not appended yet.

    Args:
        ledger: where they go.
        report: what was done, filled in on the way.
        run: which import of the file this is, from 1.
    """

    def __init__(self, ledger: ContractLedger, report: ImportReport, run: int) -> None:
        self._ledger = ledger
        self._report = report
        self._run = run
        self._pending: list[Draft] = []
        self.stamp = Stamp(0)
        """Of the entry that is being taken."""

    @property
    def nobody(self) -> str:
        """Return the id under which what names no peer stands: the file's own digest, cut."""
        return self._report.source[:_PEER_DIGITS]

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._pending)

    def add(self, event: Event, stream: str, blobs: Blobs | None = None, *, ends: bool = False) -> None:
        """Add an event.

        Args:
            event: what it says.
            stream: its stream.
            blobs: its blobs.
            ends: it is the last one of its exchange.
        """
        stamp = self.stamp
        imported = replace(
            event,
            claimed_at=stamp.claimed_at,
            source_file=self._report.source,
            line=stamp.number,
            run=self._run if self._run > 1 else None,
            entry=stamp.mark if ends else None,
        )
        self._pending.append(self._ledger.draft(imported, stream=stream, blobs=blobs, how="import"))

    def add_unreadable(self, raw: bytes, reason: str) -> None:
        """Add an entry that cannot be read, and report it: nothing can be redacted in it, so all of it is withheld."""
        self._report.faults.append(LineFault(self.stamp.number, reason))
        event = MessageRecorded(
            peer=self.nobody,
            direction="in",
            leg="error",
            binding="unknown",
            url="",
            error_kind="other",
            flags=["unreadable-line"],
        )
        blobs = {"error": Content.of(reason.encode("utf-8", "replace"))}
        if raw:
            blobs["body"] = Content(tuple(withhold(raw)))
        self.add(event, f"peer:{self.nobody}", blobs)

    def cut_back(self, kept: int) -> None:
        """Take back what was added last, down to so many."""
        del self._pending[kept:]

    def flush(self) -> Ref | None:
        """Append what is pending; return where its last event came to lie."""
        if not self._pending:
            return None
        appended = self._ledger.append(self._pending)
        self._report.events += len(self._pending)
        self._pending = []
        return appended[-1].ref
