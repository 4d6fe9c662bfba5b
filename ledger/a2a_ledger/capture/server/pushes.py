"""Pushes: those that a client receives, and those that an agent sends (docs/format.md section 14).

    routes = [Route("/pushes", PushReceiver(ledger, ["https://vendor.example/.well-known/agent-card.json"]))]
    sender = BasePushNotificationSender(httpx.AsyncClient(transport=PushTransport(ledger, my_card_url)), configs)

Whoever knows a webhook's url can post to it. A push without the token that was agreed for its task is recorded with
the peer and never with the task, so that nobody can put words into the mouth of a peer, and is answered 401.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, cast

import httpx

from a2a_ledger.capture.attribution import peer_at, peer_of_card
from a2a_ledger.capture.coding import unpacked_of
from a2a_ledger.capture.desk import Desk
from a2a_ledger.capture.exchange import Exchange
from a2a_ledger.capture.failures import Failure, describe_failure
from a2a_ledger.capture.leaving import never_sent
from a2a_ledger.capture.off_loop import size_coded, worked
from a2a_ledger.capture.passed_body import Watched
from a2a_ledger.capture.recorder import SERVER, message_event, see
from a2a_ledger.capture.redact import Secrets
from a2a_ledger.capture.redacted import without_secrets
from a2a_ledger.capture.route import pairs
from a2a_ledger.capture.server.incoming import Incoming
from a2a_ledger.capture.server.problem import send_problem, send_status
from a2a_ledger.capture.server.served import stream_of
from a2a_ledger.capture.server.spool import Spool
from a2a_ledger.capture.whole import begun
from a2a_ledger.errors import LedgerError
from a2a_ledger.events import TaskBound
from a2a_ledger.wire import parse_push

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from a2a_ledger.capture.redacted import Seen
    from a2a_ledger.capture.server.incoming import Receive, Scope, Send
    from a2a_ledger.codec import Draft
    from a2a_ledger.events import Credential
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.store import Store
    from a2a_ledger.wire import Headers, Leg

_log = logging.getLogger(__name__)

_TOKEN = "push-token"  # noqa: S105 - the name of the scheme, no token
_NEWEST = 64
"""Newest sends to a peer among which the task of a push is looked for that outran the answer."""

_PAGE = 500
_KNOWN = 1024
"""Tasks of which what was agreed is remembered."""


class PushReceiver:
    """An ASGI application that a client's webhook url leads to."""

    def __init__(
        self, ledger: ContractLedger, card_urls: Sequence[str], handle: Callable[[bytes], Awaitable[None]] | None = None
    ) -> None:
        """Receive pushes.

        Args:
            ledger: the client's ledger.
            card_urls: public cards of the peers whose pushes come here; one of a task that none of them has is
                recorded with the first.
            handle: gets the body of each push that is recorded and not refused.
        """
        self._desk = Desk(ledger, client_versions=(), redact=None)
        self._peers = [peer_of_card(url).id for url in card_urls]
        self._handle = handle
        self._agreements = _Agreements(ledger.store)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take one push."""
        if scope["type"] != "http":
            return
        ledger = self._desk.ledger
        request = Incoming(scope, receive, Spool(ledger.settings.keep_body, ledger.entropy))
        try:
            if not await request.read():
                return
            if request.method != "POST" or request.body.tail is not None:
                await send_status(send, 405 if request.method != "POST" else 413, "no-push", "expected a push")
                return
            fits = await self._record(request)
        except LedgerError as error:
            await send_problem(send, error)
            return
        finally:
            body = request.body.head
            request.body.close()
        if not fits:
            await send_status(send, 401, "push-token", "expected the token that was agreed for this task")
            return
        if self._handle is not None:
            await self._handle(body)
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _record(self, request: Incoming) -> bool:
        """Record a push; say whether it has the token that was agreed for its task, or none was."""
        desk, headers = self._desk, request.headers
        size = size_coded(headers, request.body.head)
        leg, seen = await worked(size, partial(_read, headers, request.body.head, request.url))
        peer, task = self._whose(leg)
        if seen.secrets:
            await asyncio.to_thread(desk.ledger.store.keys.redaction_key, peer)
        event, blobs = await worked(size, partial(message_event, leg, seen, peer=peer, at=desk.ledger))
        carried = _tokens(event.credential or [])
        if task is None:  # asked by id once more: the answer that names it may have come between the two questions
            task = self._in_flight(peer, carried) or self._whose(leg)[1]
        agreed = self._agreements.of(task).tokens if task is not None else set[str]()
        fits = not agreed or bool(agreed & carried)
        if not fits:
            odd = "token-differs" if carried else "token-missing"
            event = replace(event, flags=sorted({*(event.flags or ()), odd}))
        stream = f"task:{task}" if task is not None and fits else f"peer:{peer}"
        await desk.write([desk.ledger.draft(event, stream=stream, blobs=blobs)])
        return fits

    def _whose(self, leg: Leg) -> tuple[str, str | None]:
        """Return the peer, and the local task, that a push speaks of."""
        for peer in self._peers:
            task = self._desk.ledger.find_task(peer, leg.task_id) if leg.task_id is not None else None
            if task is not None:
                return peer, task
        return self._peers[0], None

    def _in_flight(self, peer: str, carried: set[str]) -> str | None:
        """Return the one task with this token whose id we have not been told yet: a push may outrun the answer."""
        if not carried:
            return None
        sent = self._desk.ledger.store.tagged(f"sent:{peer}", limit=_NEWEST, desc=True)
        tasks = [record.stream.removeprefix("task:") for record in sent]
        found = [task for task in tasks if not (agreed := self._agreements.of(task)).bound and carried & agreed.tokens]
        return found[0] if len(found) == 1 else None


@dataclass(slots=True)
class _Agreed:
    """What a task's records say of its pushes, up to one version."""

    tokens: set[str] = field(default_factory=set[str])
    """Marks of the tokens that our requests agreed on; the tokens themselves are nowhere."""

    bound: bool = False
    """The peer has told its id."""

    ver: int = -1


class _Agreements:
    """What was agreed for each task: all of its records count, and each is read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[str, _Agreed] = OrderedDict()
        self._reading = threading.Lock()

    def of(self, task: str) -> _Agreed:
        """Read what is new of a task, and return what is known of it."""
        with self._reading:
            agreed = self._known.setdefault(task, _Agreed())
            self._known.move_to_end(task)
            if len(self._known) > _KNOWN:
                self._known.popitem(last=False)
            while page := self._store.read_stream(f"task:{task}", gt=agreed.ver, limit=_PAGE):
                for record in page:
                    agreed.bound = agreed.bound or record.type == TaskBound.TYPE
                    if record.data.get("leg") == "request":
                        agreed.tokens |= _tokens(cast("list[Credential]", record.data.get("credential") or []))
                agreed.ver = page[-1].ver
            return agreed


def _read(headers: Headers, octets: bytes, url: str) -> tuple[Leg, Seen]:
    """Read a push, and find the credentials in it."""
    body = unpacked_of(headers, octets)
    seen = see(headers, body or b"", url=url)
    seen = seen.unread(octets) if body is None else seen
    return parse_push(headers, body or b"")._replace(url=url), seen._replace(secrets=Secrets(seen.secrets))


def _tokens(marks: Sequence[Credential]) -> set[str]:
    return {mark["mac"] for mark in marks if mark["scheme"] == _TOKEN}


class PushTransport(httpx.AsyncBaseTransport):
    """Sends an agent's pushes, each recorded before it leaves."""

    def __init__(
        self, ledger: ContractLedger, card_url: str, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        """Send pushes.

        Args:
            ledger: the agent's own ledger.
            card_url: where the world finds the agent's public card.
            transport: what really sends.
        """
        self._desk = Desk(ledger, client_versions=(), redact=None)
        self._peer = peer_at(card_url).id
        self._inner = transport or httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one push.

        Raises:
            LedgerUnavailableError: it could not be recorded; nothing was sent.
            httpx.HTTPError: as the inner transport raised it, recorded.
        """
        desk, headers, body = self._desk, pairs(request.headers), await request.aread()
        size = size_coded(headers, body)
        leg, seen = await worked(size, partial(_read, headers, body, str(request.url)))
        if seen.secrets:
            await asyncio.to_thread(desk.ledger.store.keys.redaction_key, self._peer)
        leg = await worked(size, partial(without_secrets, leg, seen.secrets))
        stream = stream_of(desk.ledger, self._peer, leg.task_id)
        event_of = partial(message_event, leg, seen, peer=self._peer, at=desk.ledger, side=SERVER)
        event, blobs = await worked(size, event_of)
        exchange = Exchange(desk, None, leg, self._peer, stream, secrets=Secrets.of(seen.secrets), side=SERVER)
        with desk.failing_as_chosen():
            await _recorded(exchange, desk.ledger.draft(event, stream=stream, blobs=blobs))
        try:
            response = await self._inner.handle_async_request(request)
        except BaseException as error:
            await _failed(exchange, describe_failure(error))
            raise
        status = response.status_code
        if not response.is_success:  # a redirect too: if the sender follows it, that is another push, elsewhere
            await _failed(exchange, Failure("other", None, f"the webhook answered {status}"), status)
            return response

        async def broke_off(error: BaseException) -> None:
            await _failed(exchange, describe_failure(error), status)

        return httpx.Response(
            status, headers=response.headers, stream=Watched(response, broke_off), extensions=response.extensions
        )

    async def aclose(self) -> None:
        """Close what sends."""
        await self._inner.aclose()


async def _recorded(exchange: Exchange, push: Draft) -> None:
    """Record a push before it leaves; of a sender that gives up meanwhile, that it never left."""
    writing = begun(exchange.desk.write([push]))
    try:
        written = await asyncio.shield(writing)
    except asyncio.CancelledError:
        why = "the sender gave up before the push was sent"
        await asyncio.shield(begun(never_sent(exchange, writing, "cancelled", why)))
        raise
    exchange.answers = written[0].ref if written else None


async def _failed(exchange: Exchange, failure: Failure, status: int | None = None) -> None:
    """Record that a push did not arrive; the sender is told of that, not of a ledger that fails on top of it."""
    try:
        await exchange.failed(failure, status=status)
    except LedgerError as unrecorded:
        _log.error("that a push did not arrive was not recorded: %s", unrecorded)
