"""The same stories as the rules' tests, told into a real ledger."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.divergence.story import Story, card, task

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_ledger.codec import Content, Record
    from a2a_ledger.events import Event
    from a2a_ledger.ledger import ContractLedger


@dataclass
class LedgerStory(Story):
    """A story whose events are appended to a ledger; a task's name stands for the id that the ledger gave it."""

    ledger: ContractLedger = field(kw_only=True)
    ids: dict[str, str] = field(default_factory=dict[str, str])

    def add(
        self, event: Event, stream: str, blobs: Mapping[str, Content | bytes] | None = None, how: str = "live"
    ) -> Record:
        """Append one event and read it back."""
        kind, _, name = stream.partition(":")
        if kind == "task" and name not in self.ids.values():
            if name not in self.ids:
                self.ids[name] = self.ledger.new_task()
            stream = f"task:{self.ids[name]}"
        placed = self.ledger.store.append([self.ledger.draft(event, stream=stream, blobs=blobs, how=how)])
        record = self.ledger.store.record(placed[0].n)
        self.records.append(record)
        return record


def recorded(ledger: ContractLedger) -> list[Record]:
    """Return every violation of a ledger, in order of the log."""
    return [record for record in ledger.store.read(0, 1_000_000) if record.type == "violation.detected.v1"]


def keys_of(violations: list[Record]) -> list[tuple[object, ...]]:
    """Return by what each violation is the only one of its kind: rule, trigger and subject."""
    return [(item.data["rule"], item.data["trigger_index"], item.data["subject"]) for item in violations]


def many_tasks(story: Story, count: int, every: int = 1) -> None:
    """Tell of that many tasks, four events each; one in `every` has a finding that no other has."""
    fetch = story.fetch(card(required=()))
    for index in range(count):
        name = f"t{index}"
        state = "working" if index % every else f"STATE_{index}"
        story.capture(fetch, task=name)
        request = story.ask(task=name, message_id=f"m{index}")
        story.bind(story.answer(request, task(state, task_id=f"T{index}")), task=name)
