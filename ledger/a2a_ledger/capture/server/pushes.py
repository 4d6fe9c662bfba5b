"""Pushes: those that a client receives, and those that an agent sends (docs/format.md section 14).

    routes = [Route("/pushes", PushReceiver(ledger, ["https://vendor.example/.well-known/agent-card.json"]))]
    sender = BasePushNotificationSender(httpx.AsyncClient(transport=PushTransport(ledger, my_card_url)), configs)

Whoever knows a webhook's url can post to it. A push that shows neither the token nor the credentials that were agreed
for its task is recorded with the peer and never with the task, so that nobody can put words into the mouth of a peer,
and is answered 401. One of a task that the ledger does not know is recorded with the peer and answered 404.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

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
from a2a_ledger.capture.redact import Secret, Secrets, mark_credentials
from a2a_ledger.capture.redacted import without_secrets
from a2a_ledger.capture.route import pairs
from a2a_ledger.capture.server.incoming import Incoming
from a2a_ledger.capture.server.problem import send_problem, send_status
from a2a_ledger.capture.server.push_agreements import PUSH_TOKEN, Agreements, shown_in
from a2a_ledger.capture.server.push_names import pushed_task_ids
from a2a_ledger.capture.server.served import stream_of
from a2a_ledger.capture.server.spool import Spool
from a2a_ledger.errors import LedgerError
from a2a_ledger.store.forks import forget_in_child
from a2a_ledger.wire import parse_push

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from a2a_ledger.capture.redacted import Seen
    from a2a_ledger.capture.server.incoming import Receive, Scope, Send
    from a2a_ledger.capture.server.push_agreements import Agreed
    from a2a_ledger.codec import Draft
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.wire import Headers, Leg

_log = logging.getLogger(__name__)

_NEWEST = 64
"""Newest sends to a peer among which the task of a push is looked for that outran the answer."""


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
            handle: gets the body of each push of a task that the ledger knows, or that was sent and has no id yet, and
                that shows what was agreed for its task. Where the client agreed on neither token nor credentials
                nothing is asked for: whoever knows the url can post such a push.
        """
        self._desk = Desk(ledger, client_versions=(), redact=None)
        self._peers = [peer_of_card(url).id for url in card_urls]
        self._handle = handle
        self.forget()
        forget_in_child(self)

    def forget(self) -> None:
        """Begin anew, in a forked child, with what one thread of the parent reads; see `store.forks`."""
        self._agreements = Agreements(self._desk.ledger.store)
        self._judging = ThreadPoolExecutor(1, thread_name_prefix="a2a-ledger-pushes")
        """One thread: pushes are judged in the order in which they came, and what is known of a task by one at once."""

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
            recording = self._record(request.headers, request.url, request.body.head)
            judged = await asyncio.shield(self._desk.underway.begin(recording))
        except LedgerError as error:
            await send_problem(send, error)
            return
        finally:
            body = request.body.head
            request.body.close()
        if not judged.fits:
            await send_status(send, 401, "push-token", "expected what was agreed for this task, token or credentials")
            return
        if judged.task is None and not judged.expected:
            await send_status(send, 404, "push-task", "expected a push of a task that was sent from here")
            return
        if self._handle is not None:
            await self._handle(body)
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _record(self, headers: Headers, url: str, body: bytes) -> _Judged:
        """Record a push, and say what is to become of it."""
        desk = self._desk
        size = size_coded(headers, body)
        leg, seen = await worked(size, partial(_read, headers, body, url))
        named = {*(await worked(size, partial(pushed_task_ids, seen.body))), *filter(None, [leg.task_id])}
        shows = _Shown(list(shown_in(headers)), urlsplit(url).path)
        found = partial(self._find, leg.task_id, named, shows, marks=bool(seen.secrets))
        judged = await asyncio.get_running_loop().run_in_executor(self._judging, found)
        if judged.proof is not None:  # whatever header it came in
            seen = seen._replace(secrets=Secrets((Secret(PUSH_TOKEN, judged.proof), *seen.secrets)))
        event, blobs = await worked(size, partial(message_event, leg, seen, peer=judged.peer, at=desk.ledger))
        if not judged.fits:
            odd = "token-differs" if event.credential else "token-missing"
            event = replace(event, flags=sorted({*(event.flags or ()), odd}))
        await desk.write([desk.ledger.draft(event, stream=judged.stream, blobs=blobs)])
        return judged

    def _find(self, task_id: str | None, named: set[str], shows: _Shown, *, marks: bool) -> _Judged:
        """Find whose a push is, which may take reading all that was recorded of its task, and make what keys it needs.

        Args:
            task_id: the peer's id of its task.
            named: every id that a reader may find in it.
            shows: what it shows.
            marks: it holds credentials, so the redaction key of its peer is needed.
        """
        judged = self._judge(task_id, named, shows)
        if judged.task is None and judged.fits:
            # asked by id once more: the answer that names it may have come between the two questions
            judged = self._in_flight(shows) or self._judge(task_id, named, shows)
        keys = self._desk.ledger.store.keys
        if marks or judged.proof is not None:
            keys.redaction_key(judged.peer)
        with self._desk.failing_as_chosen():
            keys.prepare(judged.stream)  # while the writing of one push waits for that, the next would go ahead of it
        return judged

    def _judge(self, task_id: str | None, named: set[str], shows: _Shown) -> _Judged:
        """Hold a push of a task against what was agreed for it, and for every other that a reader may find named."""
        claims = {one: claim for one in named if (claim := self._claim(one, shows)) is not None}
        fits = all(claim.fits for claim in claims.values())
        return claims.get(task_id or "", _Judged(self._peers[0]))._replace(fits=fits)

    def _claim(self, task_id: str, shows: _Shown) -> _Judged | None:
        """Say whose a push of this task is; None: no peer has a task of this id. Two peers may have one each."""
        claims: list[_Judged] = []
        for peer in self._peers:
            task = self._desk.ledger.find_task(peer, task_id)
            if task is None:
                continue
            agreed = self._agreements.of(task)
            proof = self._proof(peer, agreed, shows)
            if proof is not None:
                return _Judged(peer, task, proof=proof)
            claims.append(_Judged(peer, task, fits=agreed.is_open(shows.path)))
        return max(claims, key=lambda claim: claim.fits, default=None)

    def _proof(self, peer: str, agreed: Agreed, shows: _Shown) -> bytes | None:
        """Return what a push shows of what was agreed for a task."""
        if not agreed.has_secrets:
            return None
        key_id, key = self._desk.ledger.store.keys.redaction_key(peer)
        for octets in shows.octets:
            marks = mark_credentials([Secret(PUSH_TOKEN, octets)], key_id, key)
            if agreed.has(frozenset(mark["mac"] for mark in marks), shows.path):
                return octets
        return None

    def _in_flight(self, shows: _Shown) -> _Judged | None:
        """Return the one task with this token whose id we have not been told yet: a push may outrun the answer.

        Of several that share a token, and of a push that shows nothing, it is not known which one's it is; it is
        somebody's, if it shows what was agreed for one of them, or one was agreed to come so.
        """
        found: list[_Judged] = []
        bare: _Judged | None = None
        for peer in self._peers:
            sent = self._desk.ledger.store.tagged(f"sent:{peer}", limit=_NEWEST, desc=True)
            for task in (record.stream.removeprefix("task:") for record in sent):
                agreed = self._agreements.of(task)
                if not agreed.in_flight:
                    continue
                if (proof := self._proof(peer, agreed, shows)) is not None:
                    found.append(_Judged(peer, task, proof=proof))
                elif bare is None and agreed.awaits_bare:
                    bare = _Judged(peer, expected=True)
        if len(found) > 1:
            return found[0]._replace(task=None, expected=True)
        return found[0] if found else bare


class _Shown(NamedTuple):
    """What a push shows: values that may be a secret which was agreed, and the path that it came to."""

    octets: list[bytes]
    path: str


class _Judged(NamedTuple):
    """Whose a push is."""

    peer: str
    task: str | None = None
    """The local task; None: it names none that the ledger knows."""
    fits: bool = True
    """It shows what was agreed for each task that it can be read to name, as far as anything was."""
    proof: bytes | None = None
    """What it shows of that."""
    expected: bool = False
    """It may be of a task that was sent and whose id nobody has told yet."""

    @property
    def stream(self) -> str:
        """Where it is recorded."""
        return f"task:{self.task}" if self.task is not None and self.fits else f"peer:{self.peer}"


def _read(headers: Headers, octets: bytes, url: str) -> tuple[Leg, Seen]:
    """Read a push, and find the credentials in it."""
    body = unpacked_of(headers, octets)
    seen = see(headers, body or b"", url=url)
    seen = seen.unread(octets) if body is None else seen
    return parse_push(headers, body or b"")._replace(url=url), seen._replace(secrets=Secrets(seen.secrets))


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
        """Wait for what is still being recorded, then close what sends."""
        await self._desk.underway.settled()
        await self._inner.aclose()


async def _recorded(exchange: Exchange, push: Draft) -> None:
    """Record a push before it leaves; of a sender that gives up meanwhile, that it never left."""
    underway = exchange.desk.underway
    writing = underway.begin(exchange.desk.write([push]))
    try:
        written = await asyncio.shield(writing)
    except asyncio.CancelledError:
        why = "the sender gave up before the push was sent"
        await asyncio.shield(underway.begin(never_sent(exchange, writing, "cancelled", why)))
        raise
    exchange.answers = written[0].ref if written else None


async def _failed(exchange: Exchange, failure: Failure, status: int | None = None) -> None:
    """Record that a push did not arrive; the sender is told of that, not of a ledger that fails on top of it."""
    try:
        await exchange.failed(failure, status=status)
    except LedgerError as unrecorded:
        _log.error("that a push did not arrive was not recorded: %s", unrecorded)
