"""Two ledgers of one dispute: the client's, and the agent's, which records the other half of the same exchanges."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

from a2a_ledger.card import read_card
from a2a_ledger.contract import FORM, contract_of
from a2a_ledger.events import CardServed, MessageRecorded
from a2a_ledger.ledger import ContractLedger
from a2a_ledger.reconcile import CardSeen, SideReport, card_seen, ledger_report, reconcile
from tests.divergence.story import CARD_URL, card, task
from tests.evidence.recorded import LedgerStory, clock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from a2a_ledger.codec import Content, Record
    from a2a_ledger.events import Event, JsonObject
    from a2a_ledger.reconcile import Reconciliation, TaskReport

OPTIONAL = card(required=[{"oauth": ()}, {}])
REQUIRED = card(required=[{"oauth": ()}])


class AgentStory(LedgerStory):
    """Tells a story as the agent records it: requests come in, answers go out, and the card is served."""

    def add(
        self, event: Event, stream: str, blobs: Mapping[str, Content | bytes] | None = None, how: str = "live"
    ) -> Record:
        """Append one event, the other way round."""
        if isinstance(event, MessageRecorded):
            flipped = "in" if event.direction == "out" else "out"
            event = replace(event, direction=flipped, credential=None, side="server")
        return super().add(event, stream, blobs, how)

    def serve(self, served: JsonObject, *, url: str = CARD_URL, caller: str = "anonymous", version: str = "") -> Record:
        """Record that this card was served to somebody."""
        from json import dumps  # noqa: PLC0415 - the bytes of a card in a test

        body = dumps(served).encode()
        read = read_card(body)
        contract = contract_of(read)
        assert contract is not None
        assert read.raw_hash is not None
        event = CardServed(
            url=url,
            raw_hash=read.raw_hash,
            document_hash=read.document_hash,
            contract_hash=contract.hash,
            form=FORM,
            status=200,
            caller=caller,
            asked_version=version or None,
        )
        return self.add(event, "peer:self", {"body": body})


@dataclass
class MemorySide:
    """A side in memory, as a bundle or a ledger would give it."""

    report: SideReport
    records: list[Record]
    whole: bool = True
    asked: list[str] = field(default_factory=list[str])

    def tasks(self) -> list[str]:
        streams = dict.fromkeys(record.stream for record in self.records)
        return [stream.removeprefix("task:") for stream in streams if stream.startswith("task:")]

    def events(self, task: str) -> list[Record]:
        return [record for record in self.records if record.stream == f"task:{task}"]

    def cards(self, peer: str) -> list[CardSeen]:
        seen = [card_seen(record) for record in self.records if record.stream in {f"peer:{peer}", "peer:self"}]
        return [item for item in seen if item is not None]


def side(story: LedgerStory, *, whole: bool = True, records: list[Record] | None = None) -> MemorySide:
    return MemorySide(ledger_report(story.ledger.origin), story.records if records is None else records, whole=whole)


def counter(seed: bytes) -> Callable[[int], bytes]:
    """Return octets that differ from ledger to ledger and are the same in each run."""
    import hashlib  # noqa: PLC0415 - used here alone
    import itertools  # noqa: PLC0415 - same

    reads = itertools.count()
    return lambda size: hashlib.shake_256(seed + b"%d" % next(reads)).digest(size)


class Dispute:
    """A client and an agent, each with a ledger in memory; `close` both at the end."""

    def __init__(self) -> None:
        self.client = LedgerStory(made_ledger(b"client"))
        self.agent = AgentStory(made_ledger(b"agent"))

    def close(self) -> None:
        self.client.ledger.close()
        self.agent.ledger.close()

    def begun(self, served: JsonObject = REQUIRED, frozen_by_agent: JsonObject | None = None) -> tuple[Record, Record]:
        """Serve, fetch, freeze and send; return the request on both sides."""
        given = self.agent.serve(served)
        self.client.capture(self.client.fetch(served))
        if frozen_by_agent is not None:
            given = self.agent.serve(frozen_by_agent)
        self.agent.capture(given)
        return self.client.ask(), self.agent.ask()

    def answered(self, requests: tuple[Record, Record], state: str = "completed", text: str = "done") -> None:
        """Answer on both sides with the same octets."""
        for story, request in zip((self.client, self.agent), requests, strict=True):
            answer = story.answer(request, task(state, text=text))
            story.bind(answer)

    def polled(self, state: str = "working") -> None:
        """Ask for the task once more, and answer, on both sides."""
        for story in (self.client, self.agent):
            story.answer(story.ask("GetTask", task_id="T1"), task(state))

    def reconciled(self) -> Reconciliation:
        return reconcile(side(self.client), side(self.agent))

    def report(self) -> TaskReport:
        (found,) = self.reconciled().tasks
        return found


def made_ledger(seed: bytes) -> ContractLedger:
    return ContractLedger.open(":memory:", origin=seed.decode(), follow=False, clock=clock(), entropy=counter(seed))


def kinds(report: TaskReport) -> list[tuple[str, str]]:
    return [(difference.kind, difference.weight) for difference in report.differences]


def text_of(value: object) -> str:
    return cast("str", value)
