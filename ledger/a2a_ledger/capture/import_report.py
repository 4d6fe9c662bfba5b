"""What an import did, for people and for programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from a2a_ledger.events import JsonObject


class LineFault(NamedTuple):
    """A line that could not be read, and why."""

    line: int
    problem: str


@dataclass(slots=True)
class ImportReport:
    """What an import did."""

    source: str
    """SHA-256 of the file, hex."""
    first_line: int = 1
    """Where it began; more than 1 if it went on behind an earlier, unfinished import."""
    lines: int = 0
    exchanges: int = 0
    cards: int = 0
    pushes: int = 0
    tasks: int = 0
    """Tasks that were opened by a send."""
    adopted: int = 0
    events: int = 0
    faults: list[LineFault] = field(default_factory=list["LineFault"])
    """Lines that could not be read."""

    def to_json(self) -> JsonObject:
        """Return the report as a JSON object."""
        return {
            "source": self.source,
            "first_line": self.first_line,
            "lines": self.lines,
            "exchanges": self.exchanges,
            "cards": self.cards,
            "pushes": self.pushes,
            "tasks": self.tasks,
            "adopted": self.adopted,
            "events": self.events,
            "faults": [{"line": fault.line, "problem": fault.problem} for fault in self.faults],
        }

    def summary(self) -> str:
        """Return the report as one line for people."""
        resumed = f" (went on at line {self.first_line})" if self.first_line > 1 else ""
        unread = f"; {len(self.faults)} lines could not be read" if self.faults else ""
        return (
            f"{self.lines} lines{resumed}: {self.exchanges} exchanges, {self.cards} card fetches, "
            f"{self.pushes} pushes, {self.tasks} tasks, {self.adopted} adopted; {self.events} events{unread}"
        )
