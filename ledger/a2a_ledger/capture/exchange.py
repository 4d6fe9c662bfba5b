"""What came of one request, as events of its stream.

Whatever is written here is written whole: a caller that is cancelled in the middle leaves the record
complete or absent.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from a2a_ledger.capture.coding import codings_of
from a2a_ledger.capture.off_loop import size_of, worked
from a2a_ledger.capture.outside import as_said
from a2a_ledger.capture.recorder import failure_event, message_event, see, stream_end_event
from a2a_ledger.capture.redact import NONE, Secrets
from a2a_ledger.capture.redacted import without_secrets
from a2a_ledger.capture.situation import PAST_SUBMITTED
from a2a_ledger.errors import ContractDivergenceError
from a2a_ledger.events import TaskBound
from a2a_ledger.wire import Leg, parse_response, parse_stream_event

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from a2a_ledger.capture.arrival import Arrivals
    from a2a_ledger.capture.card_record import CardAsk
    from a2a_ledger.capture.cards import Fetched
    from a2a_ledger.capture.desk import Desk
    from a2a_ledger.capture.failures import Failure
    from a2a_ledger.capture.recorder import Seen
    from a2a_ledger.capture.redact import Headers, Secret
    from a2a_ledger.codec import Content, Draft, Hole
    from a2a_ledger.divergence import Finding
    from a2a_ledger.events import Event, Ref
    from a2a_ledger.store import Appended
    from a2a_ledger.wire.sse import SseEvent


_Arrived: TypeAlias = "tuple[list[Leg], list[Draft]]"
"""What was read in something that came, and the records that it makes."""


class StreamMessage(NamedTuple):
    """One message of a gRPC stream: its ProtoJSON, and its octets as they came."""

    data: bytes
    wire: bytes
    complete: bool = True
    tail: Hole | None = None

    @property
    def raw(self) -> bytes:
        """Return what is recorded as the body."""
        return self.data


@dataclass(slots=True)
class Exchange:
    """A request that was recorded, waiting for what comes of it."""

    desk: Desk
    arrivals: Arrivals | None
    """None: what answers the request is our own, and is not judged."""
    leg: Leg
    peer: str
    stream: str
    answers: Ref | None = None
    secrets: Secrets = NONE
    outside: bool = False
    """No A2A call: its bodies are withheld."""
    card: CardAsk | None = None
    """What is asked for, where the answer is to be a card."""
    fetched: Fetched | None = None
    """What came of that."""
    answer: Ref | None = None
    """The record of an answer that came whole, and is no stream."""
    newest: int | None = None
    """Number of the last event that was recorded of what came; None: nothing was."""
    bound_ids: set[str] = field(default_factory=set[str])
    events: int = 0
    head: tuple[int, Headers] | None = None
    """Status and headers of a stream that nothing was recorded of yet."""
    side: str | None = None
    """As in `MessageRecorded`: what the agent itself answers is recorded and never judged."""
    _order: asyncio.Lock = field(default_factory=asyncio.Lock)
    """What is much is read in a thread, and what comes behind it waits."""

    @property
    def task(self) -> str:
        """Return the local id of its task, "" where it has none."""
        return self.stream.removeprefix("task:") if self.stream.startswith("task:") else ""

    async def failed(self, failure: Failure, *, status: int | None = None) -> None:
        """Record that no whole answer came."""
        _, written = await self._record(self._size(), lambda: ([], [self._failure(failure, status)]))
        self.desk.siblings.told(self.stream)
        if self.card is not None and written:
            self.fetched = await self.desk.cards.failed_within(self.card, failure, within=written[0].ref)

    async def answered(self, status: int, headers: Headers, body: bytes, wire: bytes = b"") -> None:
        """Record an answer that is not a stream, and judge it.

        Args:
            status: of the answer.
            headers: of the answer.
            body: after content decoding; of gRPC the ProtoJSON.
            wire: of gRPC, the message's octets.

        Raises:
            ContractDivergenceError: mode "enforce" and a certain contract finding.
        """

        def read() -> _Arrived:
            seen = see(headers, body if self.card is None else b"")  # a card is not looked through
            seen = seen._replace(body=body, wire=wire)
            seen = as_said(seen, self.leg, outside=self.outside)
            leg = parse_response(self.leg, status, headers, b"" if self.outside else body)
            leg = without_secrets(leg, self.secrets.with_more(seen.secrets))
            return [leg], [self._incoming(leg, seen)]

        legs, written, findings = await self._arrive(self._size(headers, body), read)
        self.answer = written[0].ref if written else None
        if self.card is not None and written:
            self.fetched = await self.desk.cards.answered_within(
                self.card, status, body, failed=legs[0].error is not None, within=written[0].ref
            )
        self._enforce(findings)

    async def answered_in_part(self, status: int, headers: Headers, body: bytes, tail: Hole | None) -> None:
        """Record an answer that nobody can read here: over the limit (`tail`), or in an unknown content coding.

        It is not judged. Octets that are coded are withheld, since nothing can be redacted in them.
        """
        is_coded = bool(codings_of(headers))

        def read() -> _Arrived:
            seen = as_said(see(headers, b"" if is_coded else body), self.leg, outside=self.outside)
            if is_coded:
                seen = seen.unread(body)
            leg = parse_response(self.leg, status, headers, b"")
            leg = without_secrets(leg, self.secrets.with_more(seen.secrets))
            return [], [self._incoming(leg, seen._replace(tail=tail), flags=("truncated",))]

        await self._record(self._size(headers, body), read)

    async def cut_short(
        self, status: int, headers: Headers, body: bytes, failure: Failure, *, undecoded: bool = False
    ) -> None:
        """Record what came of an answer that did not come whole, and what stopped it; and judge that much.

        Args:
            status: of the answer.
            headers: of the answer.
            body: the octets that came.
            failure: what stopped it.
            undecoded: they are as they came; they are withheld, since nothing can be redacted in them.

        Raises:
            ContractDivergenceError: as `answered`.
        """

        def read() -> _Arrived:
            seen = as_said(see(headers, b"" if undecoded else body), self.leg, outside=self.outside)
            if undecoded:
                seen = seen.unread(body)
            leg = parse_response(self.leg, status, headers, b"" if self.outside or undecoded else body)
            leg = without_secrets(leg, self.secrets.with_more(seen.secrets))
            answer = self._incoming(leg, seen, flags=("truncated",))
            return [leg], [answer, self._failure(failure, status, seen.secrets)]

        _, written, findings = await self._arrive(self._size(headers, body), read)
        if self.card is not None and written:
            self.fetched = await self.desk.cards.failed_within(self.card, failure, within=written[0].ref)
        self._enforce(findings)

    def stream_opened(self, status: int, headers: Headers) -> None:
        """Take note of an answer that is a stream: its head is recorded with what comes first of it."""
        self.head = (status, headers)
        self.secrets = self.secrets.with_more(see(headers, b"").secrets)

    async def stream_events(self, events: Sequence[SseEvent | StreamMessage], *, judge: bool = True) -> None:
        """Record events of a stream in one append, and judge them; of one that is over the limit nothing is read.

        Raises:
            ContractDivergenceError: as `answered`; or mode "enforce" and an event that is over the limit.
        """
        head, self.head = self.head or (None, ()), None
        first, self.events = self.events, self.events + len(events)

        def read() -> _Arrived:
            legs: list[Leg] = []
            drafts: list[Draft] = []
            for number, event in enumerate(events):
                status, headers = head if number == 0 else (None, ())
                is_over = event.tail is not None
                leg = parse_stream_event(self.leg, b"" if self.outside or is_over else event.raw)
                legs.append(without_secrets(leg._replace(status=status), self.secrets))
                flags = () if event.complete and not is_over else ("truncated",)
                wire = event.wire if isinstance(event, StreamMessage) else b""
                seen = see(headers, event.raw)._replace(wire=wire, tail=event.tail)
                seen = as_said(seen, self.leg, outside=self.outside)
                drafts.append(self._incoming(legs[-1], seen, sequence=first + number, flags=flags))
            return legs, drafts

        size = self._size(head[1]) + sum([len(event.raw) for event in events])
        _, written, findings = await self._arrive(size, read)
        if judge:
            self._enforce(findings)
            if self.arrivals is not None and self.desk.enforces and any(event.tail for event in events):
                raise ContractDivergenceError(
                    "an event of a stream is over the limit of keep_body, so it cannot be held against the contract; "
                    "it is recorded, and nothing of it is passed on",
                    task=self.task,
                    event=written[-1].n if written else None,
                )

    async def stream_ended(self, status: int, how: str, text: str = "") -> None:
        """Record how a stream ended: complete, closed by the caller, or cut."""
        headers, self.head = self.head[1] if self.head else (), None

        def end() -> _Arrived:
            event, blobs = stream_end_event(
                self.leg,
                peer=self.peer,
                at=self.desk.ledger,
                answers=self.answers,
                sequence=self.events,
                how=how,
                text=text,
                status=status,
                headers=headers,
                known=self.secrets,
                redactor=self.desk.redact,
                side=self.side,
            )
            return [], [self._draft(event, blobs)]

        await self._record(self._size(headers), end)
        self.desk.siblings.told(self.stream)

    # ---- inside ---------------------------------------------------------------------------------------------------

    def _enforce(self, findings: Sequence[Finding]) -> None:
        if self.arrivals is not None:
            self.arrivals.enforce(findings)

    def _size(self, headers: Headers = (), body: bytes = b"") -> int:
        """Return what it costs to read and redact what came, with all that is looked for in it."""
        return size_of(headers, body) + self.secrets.size

    async def _arrive(self, size: int, read: Callable[[], _Arrived]) -> tuple[list[Leg], list[Appended], list[Finding]]:
        """Record what arrived; return what it is, where it lies, and what the rules say of it."""
        legs, written = await self._record(size, read)
        findings: list[Finding] = []
        if self.arrivals is not None:
            with self.desk.failing_as_chosen():
                cost = size + self.arrivals.cost(written, self.stream)
                findings = await worked(cost, partial(self.arrivals.judge, written, self.stream))
        if any(leg.state_read in PAST_SUBMITTED for leg in legs):
            self.desk.siblings.settle(self.stream)
        else:
            self.desk.siblings.told(self.stream)
        return legs, written, findings

    async def _record(self, size: int, read: Callable[[], _Arrived]) -> tuple[list[Leg], list[Appended]]:
        """Read and write, to the end, in the order in which it was begun."""
        return await asyncio.shield(self.desk.underway.begin(self._recorded(size, read)))

    async def _recorded(self, size: int, read: Callable[[], _Arrived]) -> tuple[list[Leg], list[Appended]]:
        async with self._order:
            legs, drafts = await worked(size, read)
            with self.desk.failing_as_chosen():
                drafts += [draft for leg in legs if (draft := self._binding(leg)) is not None]
            written = await self.desk.write(drafts)
            self.newest = written[-1].n if written else self.newest
            return legs, written

    def _incoming(self, leg: Leg, seen: Seen, *, sequence: int | None = None, flags: Sequence[str] = ()) -> Draft:
        event, blobs = message_event(
            leg,
            seen,
            peer=self.peer,
            at=self.desk.ledger,
            answers=self.answers,
            known=self.secrets,
            sequence=sequence,
            flags=flags,
            redactor=self.desk.redact,
            side=self.side,
        )
        return self._draft(event, blobs)

    def _failure(self, failure: Failure, status: int | None, more: Sequence[Secret] = ()) -> Draft:
        event, blobs = failure_event(
            self.leg,
            failure,
            peer=self.peer,
            at=self.desk.ledger,
            answers=self.answers,
            known=(*self.secrets, *more),
            status=status,
            redactor=self.desk.redact,
            side=self.side,
        )
        return self._draft(event, blobs)

    def _binding(self, leg: Leg) -> Draft | None:
        """Return the event that ties the peer's ids to our task, when they are new and ours to take.

        An answer to a request that named a task binds nothing: another id there is a finding.
        """
        if (
            not self.stream.startswith("task:")
            or leg.task_id is None
            or leg.task_id in self.bound_ids
            or self.answers is None
            or self.leg.task_id is not None
        ):
            return None
        self.bound_ids.add(leg.task_id)
        if self.desk.ledger.find_task(self.peer, leg.task_id) is not None:
            return None
        event = TaskBound(peer=self.peer, task_id=leg.task_id, context_id=leg.context_id, answers=self.answers)
        return self._draft(event, {})

    def _draft(self, event: Event, blobs: dict[str, Content]) -> Draft:
        return self.desk.ledger.draft(event, stream=self.stream, blobs=dict[str, "Content | bytes"](blobs))
