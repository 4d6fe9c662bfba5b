"""One request and what came of it, as events of one stream.

Attribution follows docs/format.md section 4. Whatever is written here is written whole: a caller
that is cancelled in the middle leaves the record complete or absent.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from a2a_ledger.capture.claims import task_of_context
from a2a_ledger.capture.failures import Failure
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
from a2a_ledger.capture.situation import PAST_SUBMITTED
from a2a_ledger.events import TaskAdopted, TaskBound
from a2a_ledger.wire import Leg, parse_response, parse_stream_event

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    import httpx

    from a2a_ledger.capture.arrival import Arrivals
    from a2a_ledger.capture.bound import BoundCard, Call
    from a2a_ledger.capture.desk import Desk
    from a2a_ledger.capture.recorder import Seen
    from a2a_ledger.capture.redact import Headers, Secret
    from a2a_ledger.codec import Content, Draft
    from a2a_ledger.divergence import Finding
    from a2a_ledger.events import Event, Interface, Ref
    from a2a_ledger.store import Appended
    from a2a_ledger.wire.sse import SseEvent


_MAX_NAME = 256
_MAX_URL = 1024


@dataclass(slots=True)
class Exchange:
    """A request that was recorded, waiting for what comes of it."""

    desk: Desk
    arrivals: Arrivals
    leg: Leg
    peer: str
    stream: str
    answers: Ref | None = None
    secrets: tuple[Secret, ...] = ()
    bound_ids: set[str] = field(default_factory=set[str])
    events: int = 0

    async def failed(self, failure: Failure, *, status: int | None = None) -> None:
        """Record that no whole answer came."""
        event, blobs = failure_event(
            self.leg,
            failure,
            peer=self.peer,
            at=self.desk.ledger,
            answers=self.answers,
            known=self.secrets,
            status=status,
            redactor=self.desk.redact,
        )
        await self._write([self._draft(event, blobs)])

    async def answered(self, status: int, headers: Headers, body: bytes) -> None:
        """Record an answer that is not a stream, and judge it.

        Raises:
            ContractDivergenceError: mode "enforce" and a certain contract finding.
        """
        seen = see(headers, body)
        leg = without_secrets(parse_response(self.leg, status, headers, body), [*self.secrets, *seen.secrets])
        await self._arrive([leg], [self._incoming(leg, seen)], judge=True)

    async def stream_events(self, events: Sequence[SseEvent], *, judge: bool = True) -> None:
        """Record events of a stream in one append, and judge them.

        Raises:
            ContractDivergenceError: as `answered`.
        """
        legs = [without_secrets(parse_stream_event(self.leg, event.data), self.secrets) for event in events]
        drafts: list[Draft] = []
        for leg, event in zip(legs, events, strict=True):
            flags = () if event.complete else ("truncated",)
            drafts.append(self._incoming(leg, see((), event.raw), sequence=self.events, flags=flags))
            self.events += 1
        await self._arrive(legs, drafts, judge=judge)

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
            known=self.secrets,
            redactor=self.desk.redact,
        )
        await self._write([self._draft(event, blobs)])

    # ---- inside ---------------------------------------------------------------------------------------------------

    async def _arrive(self, legs: Sequence[Leg], drafts: list[Draft], *, judge: bool) -> None:
        with self.desk.failing_as_chosen():
            drafts += [draft for leg in legs if (draft := self._binding(leg)) is not None]
        findings: list[Finding] = []
        with self.desk.failing_as_chosen():
            findings = self.arrivals.judge(await self._write(drafts), self.stream)
        if any(leg.state_read in PAST_SUBMITTED for leg in legs):
            self.desk.siblings.settle(self.stream)
        if judge:
            self.arrivals.enforce(findings)

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
) -> Exchange:
    """Record a request before its bytes leave: decision, capture and request in one append.

    Raises:
        LedgerError: it could not be recorded.
    """
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw]
    bound, peer = (call.bound, call.peer) if call else arrivals.card_for(leg)
    known = desk.cards.schemes.of(peer)
    seen = see(headers, body, url=leg.url, schemes=bound.schemes if bound else known.table, places=known.places)
    leg = without_secrets(leg, seen.secrets)
    exchange = Exchange(desk, arrivals, leg, peer, f"peer:{peer}", secrets=seen.secrets)
    if seen.secrets:  # the first credential of a peer makes its redaction key, which waits for the disk
        await asyncio.to_thread(desk.ledger.store.keys.redaction_key, peer)
    exchange.stream, drafts = await _opening(desk, peer, leg, call)
    event, blobs = message_event(leg, seen, peer=peer, at=desk.ledger, http_method=request.method, redactor=desk.redact)
    if call is not None:
        drafts += call.drafts
        if call.captures:
            schemes = sorted({mark["scheme"] for mark in event.credential or ()})
            drafts.append(_capture(desk, call, bound, without_secrets(leg, seen.secrets, with_url=True), schemes))
    drafts.append(desk.ledger.draft(event, stream=exchange.stream, blobs=dict[str, "Content | bytes"](blobs)))
    writing = asyncio.ensure_future(desk.write(drafts))
    try:
        appended = await asyncio.shield(writing)
    except asyncio.CancelledError:
        behind(_never_sent(exchange, writing))
        raise
    if appended:
        exchange.answers = appended[-1].ref
    if call is not None and call.captures and desk.ledger.settings.checkpoint == "before-send":
        await asyncio.to_thread(desk.ledger.sign_checkpoint)
    return exchange


async def _never_sent(exchange: Exchange, writing: asyncio.Future[list[Appended]]) -> None:
    """Record of a request that its caller gave up before a byte left: it was recorded, and never sent."""
    appended = await writing
    if appended:
        exchange.answers = appended[-1].ref
        await exchange.failed(Failure("cancelled", None, "the caller gave up before the request was sent"))


async def _opening(desk: Desk, peer: str, leg: Leg, call: Call | None) -> tuple[str, list[Draft]]:
    """Return the stream of this exchange, and the event that opens an adopted task if it needs one."""
    if call is not None:
        return f"task:{call.task}", []
    url = desk.views.of(peer).url
    found = attribute(desk.ledger.store, leg, peer=Peer(peer, url), current=task_of_context(desk.ledger.store, peer))
    if found.task is not None:
        return f"task:{found.task}", []
    if found.opens != "adopted" or leg.task_id is None:
        return f"peer:{peer}", []
    return await _adopted(desk, peer, url, leg, leg.task_id)


async def _adopted(desk: Desk, peer: str, url: str, leg: Leg, task_id: str) -> tuple[str, list[Draft]]:
    """Return the stream of a task that is first seen past its submission, opened once."""
    key = ("adopted", peer, task_id)
    async with desk.claims.opening(key):
        held = desk.claims.task(key)
        if held is not None:
            return f"task:{held}", []
        task = await desk.new_task()
        desk.claims.hold(key, task)
    stream = f"task:{task}"
    event = TaskAdopted(peer=peer, peer_url=url, task_id=task_id, context_id=leg.context_id)
    return stream, [desk.ledger.draft(event, stream=stream)]


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
