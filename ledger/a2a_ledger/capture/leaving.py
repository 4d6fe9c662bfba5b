"""A request that is about to leave: which send it is, and its record before the first byte leaves.

Decision, capture and request go into the log in one append (docs/format.md section 9); attribution
follows section 4. A caller that is cancelled in the middle leaves the record complete or absent.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from a2a_ledger.capture.bound import take_call
from a2a_ledger.capture.claims import task_of_context
from a2a_ledger.capture.exchange import Exchange
from a2a_ledger.capture.failures import Failure
from a2a_ledger.capture.off_loop import size_of, worked
from a2a_ledger.capture.outside import as_said, is_outside
from a2a_ledger.capture.recorder import Peer, attribute, interface_used, message_event, see
from a2a_ledger.capture.redact import NONE, Secrets
from a2a_ledger.capture.redacted import without_secrets
from a2a_ledger.capture.situation import task_state
from a2a_ledger.errors import LedgerError
from a2a_ledger.events import TaskAdopted
from a2a_ledger.wire import message_digest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from a2a_ledger.capture.arrival import Arrivals
    from a2a_ledger.capture.bound import BoundCard, Call
    from a2a_ledger.capture.card_record import CardAsk
    from a2a_ledger.capture.credentials import ApiKeyPlace
    from a2a_ledger.capture.desk import Desk
    from a2a_ledger.capture.own_route import Waiting
    from a2a_ledger.capture.redacted import Seen
    from a2a_ledger.capture.sends import Sends
    from a2a_ledger.codec import Content, Draft, Hole
    from a2a_ledger.events import Interface
    from a2a_ledger.store import Appended
    from a2a_ledger.wire import Headers, Leg

_log = logging.getLogger(__name__)

_MAX_NAME = 256
_MAX_URL = 1024


class Before(NamedTuple):
    """The exchange that a request follows, as a redirect of it told: whose word is awaited stays the same."""

    peer: str
    stream: str
    secrets: Secrets
    at: str
    """The url that answered with the redirect."""


class Outgoing(NamedTuple):
    """A request as it is to be sent.

    `body` is what an application reads: of gRPC the ProtoJSON, whose octets are `wire`.
    """

    leg: Leg
    headers: Headers
    body: bytes
    http_method: str | None = None
    wire: bytes = b""
    credentials_visible: bool = True
    """False where what sends it may add credentials that nobody sees here."""
    tail: Hole | None = None
    """What follows the body and was too long to be held."""
    is_unread: bool = False
    """The body is in a content coding that cannot be taken off: it says nothing, and all of it is withheld."""
    before: Before | None = None
    """What a redirect led here: it is the same send, decided there, with the same secrets."""


async def call_of(  # noqa: PLR0913 - what is known of a request before it leaves
    sends: Sends, arrivals: Arrivals, leg: Leg, body: bytes, *, is_send: bool, waiting: Waiting | None = None
) -> Call | None:
    """Return the send that a request is, decided; None: it is no send.

    One that no interceptor has opened is decided here: guarded and recorded, but without a pin.

    Args:
        sends: the guard's.
        arrivals: knows the card that a call is made on.
        leg: the request, read.
        body: of it.
        is_send: it hands work to a peer.
        waiting: the request, where an httpx client sends it.

    Raises:
        CaptureError: it must not leave.
    """
    call = take_call(leg.message_id) if is_send or leg.message_id else None
    if call is None and is_send:
        said = await worked(len(body), partial(message_digest, body))
        bound, peer = arrivals.card_for(leg, waiting.headers if waiting is not None else ())
        await sends.begin(
            bound,
            message_id=leg.message_id or "",
            said=said,
            peer_task=leg.task_id,
            peer=peer,
            may_pin=False,
            waiting=waiting,
        )
        call = take_call(leg.message_id)
    if call is not None:
        await sends.renew(call, waiting)
    return call


async def open_exchange(
    desk: Desk, arrivals: Arrivals, outgoing: Outgoing, call: Call | None, card: CardAsk | None = None
) -> Exchange:
    """Record a request before its bytes leave: decision, capture and request in one append.

    Args:
        desk: the guard's shared part.
        arrivals: judges what comes of it.
        outgoing: the request.
        call: the send that it is, decided.
        card: the card that its answer is to be.

    Raises:
        LedgerError: it could not be recorded.
    """
    leg, carried = outgoing.leg, outgoing.before.secrets if outgoing.before is not None else NONE
    bound, peer, schemes, places = _whose(desk, arrivals, outgoing, call, card)
    size = size_of(outgoing.headers, outgoing.body)
    readable = b"" if outgoing.is_unread else outgoing.body

    def read() -> tuple[Seen, bool]:
        seen = see(outgoing.headers, readable, url=leg.url, schemes=schemes, places=places)
        outside = call is None and is_outside(desk.ledger.store, leg, readable)
        seen = as_said(seen._replace(wire=outgoing.wire, tail=outgoing.tail), leg, outside=outside, url=leg.url)
        return seen.unread(outgoing.body) if outgoing.is_unread else seen, outside

    seen, outside = await worked(size, read)
    secrets = Secrets(seen.secrets).with_more(carried)
    leg = await worked(size, partial(without_secrets, leg, secrets))
    exchange = Exchange(desk, arrivals, leg, peer, f"peer:{peer}", secrets=secrets, outside=outside, card=card)
    if seen.secrets:  # the first credential of a peer makes its redaction key, which waits for the disk
        await asyncio.to_thread(desk.ledger.store.keys.redaction_key, peer)
    exchange.stream, opening = await _opening(desk, peer, outgoing._replace(leg=leg), call)
    recorded = partial(message_event, leg, seen, peer=peer, at=desk.ledger, http_method=outgoing.http_method)
    event, blobs = await worked(size, partial(recorded, known=carried, redactor=desk.redact))
    if call is not None and call.captures:
        offered = sorted({mark["scheme"] for mark in event.credential or ()})
        clean = without_secrets(leg, seen.secrets, with_url=True)
        opening = _capture(desk, call, bound, clean, offered, visible=outgoing.credentials_visible)
    request_draft = desk.ledger.draft(event, stream=exchange.stream, blobs=dict[str, "Content | bytes"](blobs))
    writing = desk.underway.begin(_record(desk, call, opening, request_draft))
    try:
        appended = await asyncio.shield(writing)
        if appended:
            exchange.answers = appended[-1].ref
        if call is not None and call.captures and desk.ledger.settings.checkpoint == "before-send":
            with desk.failing_as_chosen():
                await asyncio.to_thread(desk.ledger.sign_checkpoint)
    except asyncio.CancelledError:
        why = "the caller gave up before the request was sent"
        await asyncio.shield(desk.underway.begin(never_sent(exchange, writing, "cancelled", why)))
        raise
    except LedgerError as error:
        if exchange.answers is not None:
            await never_sent(exchange, writing, "other", f"the request was stopped before it was sent: {error}")
        raise
    return exchange


def _whose(
    desk: Desk, arrivals: Arrivals, outgoing: Outgoing, call: Call | None, card: CardAsk | None
) -> tuple[BoundCard | None, str, Mapping[str, object], tuple[ApiKeyPlace, ...]]:
    """Return the card that a request is made on, the peer, and where its credentials may stand.

    Behind a redirect the peer is the one that sent it there, and the keys may be those of either place.
    """
    bound, peer = (call.bound, call.peer) if call else arrivals.card_for(outgoing.leg, outgoing.headers)
    if outgoing.before is not None:
        here, first = desk.cards.schemes.of(peer), desk.cards.schemes.of(outgoing.before.peer)
        return None, outgoing.before.peer, first.table, (*first.places, *here.places)
    peer = peer if card is None else card.peer
    known = desk.cards.schemes.of(peer)
    return bound, peer, bound.schemes if bound else known.table, known.places


async def _record(desk: Desk, call: Call | None, opening: Draft | None, request: Draft) -> list[Appended]:
    """Append a request with what opens its task, unless another request opened that meanwhile.

    What is opened is known from the log alone: a request that was decided and never recorded opened nothing.
    """
    decision = call.drafts if call is not None else []
    if opening is None:
        return await desk.write([*decision, request])
    async with desk.claims.opening(("stream", opening.stream)):
        if task_state(desk.ledger.store, opening.stream) != "intended":
            return await desk.write([*decision, request])
        if call is not None:
            caller = call.bound.kept.caller if call.bound is not None else "anonymous"
            sent_at = datetime.fromisoformat([*decision, opening][0].at)
            desk.siblings.sends(opening.stream, sent_at, caller, call.at)
        return await desk.write([*decision, opening, request])


async def never_sent(exchange: Exchange, writing: asyncio.Future[list[Appended]], kind: str, why: str) -> None:
    """Record of a request that was stopped before a byte left: it was recorded, and never sent.

    Args:
        exchange: the request's.
        writing: its record, being written or not.
        kind: of failure.
        why: in words.
    """
    try:
        appended = await writing
        if appended:
            exchange.answers = appended[-1].ref
            await exchange.failed(Failure(kind, None, why))
    except LedgerError as error:
        _log.error("a request that was never sent was not recorded as that: %s", error)


async def _opening(desk: Desk, peer: str, outgoing: Outgoing, call: Call | None) -> tuple[str, Draft | None]:
    """Return the stream of this exchange, and the event that opens an adopted task if it needs one."""
    if call is not None:
        return f"task:{call.task}", None
    if outgoing.before is not None:
        return outgoing.before.stream, None
    leg, store, url = outgoing.leg, desk.ledger.store, desk.views.of(peer).url
    told = partial(attribute, store, leg, outgoing.body, peer=Peer(peer, url), current=task_of_context(store, peer))
    found = await worked(len(outgoing.body), told)
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


def _capture(  # noqa: PLR0913 - what a capture is made of
    desk: Desk, call: Call, bound: BoundCard | None, leg: Leg, schemes: Sequence[str], *, visible: bool
) -> Draft:
    kinds = {cast("dict[str, str]", scheme).get("kind") for scheme in (bound.schemes.values() if bound else ())}
    interfaces: list[Interface] = bound.interfaces if bound else []
    event, blobs = call.capture(
        desk.ledger.profile,
        interface=bounded(interface_used(interfaces, leg)),
        credential=schemes,
        visible="mutualTLS" not in kinds and desk.credentials_visible and visible,
        side="proxy" if desk.for_many else None,
    )
    return desk.ledger.draft(event, stream=f"task:{call.task}", blobs=dict[str, "Content | bytes"](blobs), at=call.at)


def bounded(interface: Interface) -> Interface:
    """Cut what a peer's card or a url may say at any length, so that the capture always fits a record."""
    return {
        "binding": interface["binding"][:_MAX_NAME],
        "tenant": interface["tenant"][:_MAX_NAME],
        "url": interface["url"][:_MAX_URL],
        "version": interface["version"][:_MAX_NAME] if interface["version"] else interface["version"],
    }
