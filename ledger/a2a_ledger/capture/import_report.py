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
    form: str = "jsonl"
    """Its format, one of `formats.FORMATS`."""
    first_line: int = 0
    """The line, or the number of the entry, that was taken first; 0: none was."""
    resumed: bool = False
    """It went on behind an earlier, unfinished import."""
    lines: int = 0
    """Lines, or entries, that were taken."""
    held: int = 0
    """Exchanges that are recorded already, of an earlier file, and were passed over."""
    exchanges: int = 0
    cards: int = 0
    pushes: int = 0
    snapshots: int = 0
    """Tasks out of a dump of a task store."""
    lone: int = 0
    """Messages that came without their other half."""
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
            "format": self.form,
            "first_line": self.first_line,
            "resumed": self.resumed,
            "lines": self.lines,
            "held": self.held,
            "exchanges": self.exchanges,
            "cards": self.cards,
            "pushes": self.pushes,
            "snapshots": self.snapshots,
            "lone": self.lone,
            "tasks": self.tasks,
            "adopted": self.adopted,
            "events": self.events,
            "faults": [{"line": fault.line, "problem": fault.problem} for fault in self.faults],
        }

    def summary(self) -> str:
        """Return the report as one line for people."""
        one, many = ("line", "lines") if self.form == "jsonl" else ("entry", "entries")
        resumed = f" (went on at {one} {self.first_line})" if self.resumed else ""
        unread = f"; {len(self.faults)} {many} could not be read" if self.faults else ""
        more = f", {self.snapshots} snapshots of tasks" if self.snapshots else ""
        more += f", {self.lone} messages alone" if self.lone else ""
        more += f", {self.held} recorded before and passed over" if self.held else ""
        return (
            f"{self.lines} {many}{resumed}: {self.exchanges} exchanges, {self.cards} card fetches, "
            f"{self.pushes} pushes, {self.tasks} tasks, {self.adopted} adopted{more}; {self.events} events{unread}"
        )
