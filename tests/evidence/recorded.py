"""A real ledger with a real dispute in it: the stories of the rule tests, appended to a database."""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from unittest.mock import patch

from a2a_ledger.events import FreshnessDecided, MessageRecorded
from a2a_ledger.freshness import RULES, decide, inputs_from_json
from a2a_ledger.ledger import ContractLedger
from tests.divergence.story import PEER, Story, card, task

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from a2a_ledger.codec import Content, Record
    from a2a_ledger.events import Event, JsonObject

START = datetime(2026, 9, 14, 9, 0, tzinfo=UTC)
PREFIX = "acme/audit"


def clock() -> Callable[[], datetime]:
    """Return a clock that goes on by a second each time it is read."""
    seconds = itertools.count()
    return lambda: START + timedelta(seconds=next(seconds))


def entropy() -> Callable[[int], bytes]:
    """Return octets that differ at each read and are the same in each run."""
    reads = itertools.count()
    return lambda size: hashlib.shake_256(b"evidence %d" % next(reads)).digest(size)


class LedgerStory(Story):
    """Tells a story into a ledger: `t1` and so on become tasks with keys of their own."""

    def __init__(self, ledger: ContractLedger) -> None:
        super().__init__()
        self.ledger = ledger
        self.tasks: dict[str, str] = {}

    def add(
        self, event: Event, stream: str, blobs: Mapping[str, Content | bytes] | None = None, how: str = "live"
    ) -> Record:
        """Append one event and return it as it can be read back; credentials are marked under a key that there is."""
        if isinstance(event, MessageRecorded) and event.credential:
            key_id, _ = self.ledger.store.keys.redaction_key(event.peer)
            event = replace(event, credential=[{**mark, "k": key_id} for mark in event.credential])
        if self.source:
            event, how = replace(event, source_file=self.source, line=len(self.records) + 1, run=self.run), "import"
        made = self.ledger.draft(event, stream=self._stream(stream), blobs=blobs, how=how)
        (placed,) = self.ledger.append([made])
        record = self.ledger.store.record(placed.n)
        self.records.append(record)
        return record

    def _stream(self, stream: str) -> str:
        kind, _, name = stream.partition(":")
        if kind != "task" or name in self.tasks.values():
            return stream
        if name not in self.tasks:
            self.tasks[name] = self.ledger.new_task()
        return f"task:{self.tasks[name]}"

    def decide(self, fetch: Record, *, task: str = "t1", at: str = "") -> Record:
        """Record the freshness decision before a send, made by the real table.

        Args:
            fetch: what the client was built from.
            task: whose send it is.
            at: when the newest answer came that said that this card stands; "" means with the fetch itself.
        """
        at = at or fetch.at
        inputs: JsonObject = {
            "now": at,
            "card": {
                "kind": "well-known",
                "caller": "anonymous",
                "fetched_at": at,
                "age_header": 0,
                "max_age": None,
                "no_cache": False,
                "etag": '"a"',
                "last_modified": None,
                "version": "1.0",
                "contract": fetch.data["contract_hash"],
            },
            "validator": {"present": True, "last": "never", "lied": False},
            "client_versions": ["1.0"],
        }
        read, _ = inputs_from_json(inputs)
        made = decide(read)
        event = FreshnessDecided(
            peer=PEER,
            decision=made.decision,
            reason=made.reason,
            at_stake=made.at_stake,
            retry_after=made.retry_after,
            inputs=read.to_json(),
            rules=RULES,
            card=fetch.ref,
        )
        return self.add(event, f"task:{task}")


def opened(place: Path) -> ContractLedger:
    """Make a ledger that is the same in every run; the second copy of its mark lies beside it."""
    mark_dir = str(place / "elsewhere")
    return ContractLedger.open(place, origin=PREFIX, follow=False, clock=clock(), entropy=entropy(), mark_dir=mark_dir)


def append_unchecked(ledger: ContractLedger, event: Event, stream: str = "ledger") -> None:
    """Append a key event that the store itself would refuse, as an operator can who has the database."""
    with patch("a2a_ledger.store.placing.check_key_event"):
        ledger.append([ledger.draft(event, stream=stream)])


def dispute(ledger: ContractLedger, *, name: str = "t1", polls: int = 2) -> LedgerStory:
    """Tell the stuck case: OAuth was promised, a client certificate is asked for; let the verifier sign it."""
    story = LedgerStory(ledger)
    fetch = story.fetch({**card(), "description": name}, etag='"a"')
    story.decide(fetch, task=name)
    story.capture(fetch, task=name)
    request = story.ask(task=name, message_id=f"m-{name}")
    working = story.answer(
        request, task("working", task_id=f"T-{name}"), headers=[("Content-Type", "application/json")]
    )
    story.bind(working, task=name, task_id=f"T-{name}")
    for _ in range(polls):
        poll = story.ask("GetTask", task=name, task_id=f"T-{name}")
        story.answer(poll, task("working", task_id=f"T-{name}"))
    cancel = story.ask("CancelTask", task=name, task_id=f"T-{name}")
    story.failure(cancel, tls_alert="certificate_required")
    return story


def two_tasks(made: ContractLedger) -> ContractLedger:
    """Tell of two tasks in one window of a card, each in its own context; the next card asks for more than they had."""
    story = LedgerStory(made)
    fetch = story.fetch(card(required=[{}]), etag='"a"')
    for name in ("t1", "t2"):
        story.decide(fetch, task=name)
        story.capture(fetch, task=name, credential=())
        request = story.ask(task=name, message_id=name, credential=())
        answer = task("working", task_id=f"T-{name}", context=f"C-{name}")
        story.bind(story.answer(request, answer), task=name, task_id=f"T-{name}", context=f"C-{name}")
    story.fetch(card(), etag='"b"')
    made.catch_up()
    return made


def first_task(ledger: ContractLedger) -> str:
    """Return the local id of a task."""
    return ledger.store.streams("task:")[0].removeprefix("task:")
