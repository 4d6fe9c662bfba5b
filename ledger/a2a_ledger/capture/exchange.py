"""One request and what came of it, as events of one stream.

Attribution follows docs/format.md section 4. Whatever is written here is written whole: a caller
that is cancelled in the middle leaves the record complete or absent.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

from a2a_ledger.capture.claims import task_of_context
from a2a_ledger.capture.failures import Failure
from a2a_ledger.capture.outside import as_said, is_outside
from a2a_ledger.capture.recorder import (
    Peer,
    attribute,
    failure_event,
    interface_used,
    message_event,
    see,
    stream_end_event,
)
from a2a_ledger.capture.redacted import without_secrets
from a2a_ledger.capture.situation import PAST_SUBMITTED, task_state
from a2a_ledger.errors import LedgerError
from a2a_ledger.events import TaskAdopted, TaskBound
from a2a_ledger.wire import Leg, parse_response, parse_stream_event

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    import httpx

    from a2a_ledger.capture.arrival import Arrivals
    from a2a_ledger.capture.bound import BoundCard, Call
    from a2a_ledger.capture.card_record import CardAsk
    from a2a_ledger.capture.cards import Fetched
    from a2a_ledger.capture.desk import Desk
    from a2a_ledger.capture.recorder import Seen
    from a2a_ledger.capture.redact import Headers, Secret
    from a2a_ledger.codec import Content, Draft
    from a2a_ledger.divergence import Finding
    from a2a_ledger.events import Event, Interface, Ref
    from a2a_ledger.store import Appended
    from a2a_ledger.wire.sse import SseEvent


_log = logging.getLogger(__name__)

_MAX_NAME = 256
_MAX_URL = 1024


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
    secrets: tuple[Secret, ...] = ()
    outside: bool = False
    """No A2A call: its bodies are withheld."""
    card: CardAsk | None = None
    """What is asked for, where the answer is to be a card."""
    fetched: Fetched | None = None
    """What came of that."""
    answer: Ref | None = None
    """The record of an answer that came whole, and is no stream."""
    bound_ids: set[str] = field(default_factory=set[str])
    events: int = 0
    head: tuple[int, Headers] | None = None
    """Status and headers of a stream that nothing was recorded of yet."""
    side: str | None = None
    """As in `MessageRecorded`: what the agent itself answers is recorded and never judged."""

    async def failed(self, failure: Failure, *, status: int | None = None) -> None:
        """Record that no whole answer came."""
        written = await self._write([self._failure(failure, status)])
        if self.card is not None and written:
            self.fetched = await self.desk.cards.failed_within(self.card, failure, within=written[0].ref)

    async def answered(self, status: int, headers: Headers, body: bytes) -> None:
        """Record an answer that is not a stream, and judge it.

        Raises:
            ContractDivergenceError: mode "enforce" and a certain contract finding.
        """
        seen = see(headers, body if self.card is None else b"")._replace(body=body)  # a card is not looked through
        seen = as_said(seen, self.leg, outside=self.outside)
        leg = parse_response(self.leg, status, headers, b"" if self.outside else body)
        leg = without_secrets(leg, [*self.secrets, *seen.secrets])
        written, findings = await self._arrive([leg], [self._incoming(leg, seen)])
        self.answer = written[0].ref if written else None
        if self.card is not None and written:
            self.fetched = await self.desk.cards.answered_within(
                self.card, status, body, failed=leg.error is not None, within=written[0].ref
            )
        self._enforce(findings)

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
        seen = as_said(see(headers, b"" if undecoded else body), self.leg, outside=self.outside)
        if undecoded:
            seen = seen._replace(body=body, places=((0, len(body)),))
        leg = parse_response(self.leg, status, headers, b"" if self.outside or undecoded else body)
        leg = without_secrets(leg, [*self.secrets, *seen.secrets])
        answer = self._incoming(leg, seen, flags=("truncated",))
        written, findings = await self._arrive([leg], [answer, self._failure(failure, status, seen.secrets)])
        if self.card is not None and written:
            self.fetched = await self.desk.cards.failed_within(self.card, failure, within=written[0].ref)
        self._enforce(findings)

    def stream_opened(self, status: int, headers: Headers) -> None:
        """Take note of an answer that is a stream: its head is recorded with what comes first of it."""
        self.head = (status, headers)
        self.secrets = (*self.secrets, *see(headers, b"").secrets)

    async def stream_events(self, events: Sequence[SseEvent], *, judge: bool = True) -> None:
        """Record events of a stream in one append, and judge them.

        Raises:
            ContractDivergenceError: as `answered`.
        """
        legs: list[Leg] = []
        drafts: list[Draft] = []
        for event in events:
            (status, headers), self.head = self.head or (None, ()), None
            leg = parse_stream_event(self.leg, b"" if self.outside else event.data)
            legs.append(without_secrets(replace(leg, status=status), self.secrets))
            flags = () if event.complete else ("truncated",)
            seen = as_said(see(headers, event.raw), self.leg, outside=self.outside)
            drafts.append(self._incoming(legs[-1], seen, sequence=self.events, flags=flags))
            self.events += 1
        _, findings = await self._arrive(legs, drafts)
        if judge:
            self._enforce(findings)

    async def stream_ended(self, status: int, how: str, text: str = "") -> None:
        """Record how a stream ended: complete, closed by the caller, or cut."""
        event, blobs = stream_end_event(
            self.leg,
            peer=self.peer,
            at=self.desk.ledger,
            answers=self.answers,
            sequence=self.events,
            how=how,
            text=text,
            status=status,
            headers=self.head[1] if self.head else (),
            known=self.secrets,
            redactor=self.desk.redact,
            side=self.side,
        )
        self.head = None
        await self._write([self._draft(event, blobs)])

    # ---- inside ---------------------------------------------------------------------------------------------------

    def _enforce(self, findings: Sequence[Finding]) -> None:
        if self.arrivals is not None:
            self.arrivals.enforce(findings)

    async def _arrive(self, legs: Sequence[Leg], drafts: list[Draft]) -> tuple[list[Appended], list[Finding]]:
        """Record what arrived, and return where it lies and what the rules say of it."""
        written: list[Appended] = []
        with self.desk.failing_as_chosen():
            drafts += [draft for leg in legs if (draft := self._binding(leg)) is not None]
        findings: list[Finding] = []
        with self.desk.failing_as_chosen():
            written = await self._write(drafts)
            findings = self.arrivals.judge(written, self.stream) if self.arrivals is not None else []
        if any(leg.state_read in PAST_SUBMITTED for leg in legs):
            self.desk.siblings.settle(self.stream)
        return written, findings

    async def _write(self, drafts: list[Draft]) -> list[Appended]:
        return await asyncio.shield(asyncio.ensure_future(self.desk.write(drafts)))

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


async def open_exchange(  # noqa: PLR0913, PLR0917 - desk, rules, and the sides of one request
    desk: Desk,
    arrivals: Arrivals,
    request: httpx.Request,
    leg: Leg,
    body: bytes,
    call: Call | None,
    behind: Callable[[Coroutine[object, object, None]], None],
    card: CardAsk | None = None,
) -> Exchange:
    """Record a request before its bytes leave: decision, capture and request in one append.

    Args:
        desk: the guard's shared part.
        arrivals: judges what comes of it.
        request: as it is to be sent.
        leg: the same, read.
        body: its body.
        call: the send that it is, decided.
        behind: runs what nobody waits for.
        card: the card that its answer is to be.

    Raises:
        LedgerError: it could not be recorded.
    """
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw]
    bound, peer = (call.bound, call.peer) if call else arrivals.card_for(leg)
    peer = peer if card is None else card.peer
    known = desk.cards.schemes.of(peer)
    seen = see(headers, body, url=leg.url, schemes=bound.schemes if bound else known.table, places=known.places)
    outside = call is None and is_outside(desk.ledger.store, leg, body)
    seen = as_said(seen, leg, outside=outside, url=leg.url)
    leg = without_secrets(leg, seen.secrets)
    exchange = Exchange(desk, arrivals, leg, peer, f"peer:{peer}", secrets=seen.secrets, outside=outside, card=card)
    if seen.secrets:  # the first credential of a peer makes its redaction key, which waits for the disk
        await asyncio.to_thread(desk.ledger.store.keys.redaction_key, peer)
    exchange.stream, opening = await _opening(desk, peer, leg, call)
    event, blobs = message_event(leg, seen, peer=peer, at=desk.ledger, http_method=request.method, redactor=desk.redact)
    if call is not None and call.captures:
        schemes = sorted({mark["scheme"] for mark in event.credential or ()})
        opening = _capture(desk, call, bound, without_secrets(leg, seen.secrets, with_url=True), schemes)
    request_draft = desk.ledger.draft(event, stream=exchange.stream, blobs=dict[str, "Content | bytes"](blobs))
    writing = asyncio.ensure_future(_record(desk, call.drafts if call else [], opening, request_draft))
    try:
        appended = await asyncio.shield(writing)
        if appended:
            exchange.answers = appended[-1].ref
        if call is not None and call.captures and desk.ledger.settings.checkpoint == "before-send":
            with desk.failing_as_chosen():
                await asyncio.to_thread(desk.ledger.sign_checkpoint)
    except asyncio.CancelledError:
        behind(_never_sent(exchange, writing, "cancelled", "the caller gave up before the request was sent"))
        raise
    except LedgerError as error:
        if exchange.answers is not None:
            await _never_sent(exchange, writing, "other", f"the request was stopped before it was sent: {error}")
        raise
    return exchange


async def _record(desk: Desk, decision: list[Draft], opening: Draft | None, request: Draft) -> list[Appended]:
    """Append a request with what opens its task, unless another request opened that meanwhile.

    What is opened is known from the log alone: a request that was decided and never recorded opened nothing.
    """
    if opening is None:
        return await desk.write([*decision, request])
    async with desk.claims.opening(("stream", opening.stream)):
        is_open = task_state(desk.ledger.store, opening.stream) != "intended"
        return await desk.write([*decision, request] if is_open else [*decision, opening, request])


async def _never_sent(exchange: Exchange, writing: asyncio.Future[list[Appended]], kind: str, why: str) -> None:
    """Record of a request that was stopped before a byte left: it was recorded, and never sent."""
    try:
        appended = await writing
        if appended:
            exchange.answers = appended[-1].ref
            await exchange.failed(Failure(kind, None, why))
    except LedgerError as error:
        _log.error("a request that was never sent was not recorded as that: %s", error)


async def _opening(desk: Desk, peer: str, leg: Leg, call: Call | None) -> tuple[str, Draft | None]:
    """Return the stream of this exchange, and the event that opens an adopted task if it needs one."""
    if call is not None:
        return f"task:{call.task}", None
    url = desk.views.of(peer).url
    found = attribute(desk.ledger.store, leg, peer=Peer(peer, url), current=task_of_context(desk.ledger.store, peer))
    if found.task is not None:
        return f"task:{found.task}", None
    if found.opens != "adopted" or leg.task_id is None:
        return f"peer:{peer}", None
    return await _adopted(desk, peer, url, leg, leg.task_id)


async def _adopted(desk: Desk, peer: str, url: str, leg: Leg, task_id: str) -> tuple[str, Draft]:
    """Return the stream of a task that is first seen past its submission, and the event that opens it."""
    key = ("adopted", peer, task_id)
    async with desk.claims.opening(key):
        task = desk.claims.task(key) or await desk.new_task()
        desk.claims.hold(key, task)
    stream = f"task:{task}"
    event = TaskAdopted(peer=peer, peer_url=url, task_id=task_id, context_id=leg.context_id)
    return stream, desk.ledger.draft(event, stream=stream)


def _capture(desk: Desk, call: Call, bound: BoundCard | None, leg: Leg, schemes: Sequence[str]) -> Draft:
    kinds = {cast("dict[str, str]", scheme).get("kind") for scheme in (bound.schemes.values() if bound else ())}
    interfaces: list[Interface] = bound.interfaces if bound else []
    event, blobs = call.capture(
        desk.ledger.profile,
        interface=_bounded(interface_used(interfaces, leg)),
        credential=schemes,
        visible="mutualTLS" not in kinds and desk.credentials_visible,
    )
    return desk.ledger.draft(event, stream=f"task:{call.task}", blobs=dict[str, "Content | bytes"](blobs), at=call.at)


def _bounded(interface: Interface) -> Interface:
    """Cut what a peer's card or a url may say at any length, so that the capture always fits a record."""
    return {
        "binding": interface["binding"][:_MAX_NAME],
        "tenant": interface["tenant"][:_MAX_NAME],
        "url": interface["url"][:_MAX_URL],
        "version": interface["version"][:_MAX_NAME] if interface["version"] else interface["version"],
    }
