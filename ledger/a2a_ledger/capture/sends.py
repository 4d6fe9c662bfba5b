"""The send under the guard: decide, re-fetch at most once, pin, or stop before any byte leaves.

Decision, capture and request of a send go into the log in one append, before the request's bytes
leave (docs/format.md section 9).
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING, cast
from uuid import uuid4

from a2a_ledger.capture.bound import BoundCard, Call, forget_sent, open_call
from a2a_ledger.capture.claims import task_of_context
from a2a_ledger.capture.own_route import is_certain, own, own_copy, while_waiting
from a2a_ledger.capture.refusal import CHANGED
from a2a_ledger.capture.resends import resent_task
from a2a_ledger.capture.situation import task_state
from a2a_ledger.codec import timestamp
from a2a_ledger.errors import SpentClientError
from a2a_ledger.wire.jsontext import lift

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from a2a_ledger.capture.asking import Asked, Asking
    from a2a_ledger.capture.claims import Key
    from a2a_ledger.capture.desk import Desk
    from a2a_ledger.capture.own_route import Waiting
    from a2a_ledger.capture.route import Route
    from a2a_ledger.codec import Draft
    from a2a_ledger.events import JsonObject

_log = logging.getLogger(__name__)

_PINS = 1024
_OPENING = 8
"""Records at the beginning of a task among which its capture stands."""

_LONG = 5.0
"""Seconds from a decision to the first byte that no limit of trust makes too long."""

_LAZY_LOOK = 0.05
"""Seconds between two looks whether the peer is at rest."""

_LAZY_WAIT = 30.0
"""Seconds after which a booked lazy fetch is given up."""


class Sends:
    """Opens the sends of one guard's clients."""

    def __init__(self, desk: Desk, asking: Asking) -> None:
        self._desk = desk
        self._asking = asking
        self._pins: OrderedDict[str, JsonObject | None] = OrderedDict()
        self._lazy: set[asyncio.Task[None]] = set()
        self._unasked: set[str] = set()
        """Peers of which it was said that nobody can ask for their card any more."""

    async def begin(  # noqa: PLR0913 - what is known of a send before it leaves
        self,
        bound: BoundCard | None,
        *,
        message_id: str,
        said: str | None,
        peer_task: str | None,
        peer: str = "",
        extensions: Sequence[str] = (),
        may_pin: bool = True,
        waiting: Waiting | None = None,
    ) -> JsonObject | None:
        """Decide a send and open its call; the transport, running in the same context, takes it from there.

        Args:
            bound: the card that the client was built from; None when this process knows none.
            message_id: the message's id.
            said: `message_digest` of what is sent: one id with another content is another send.
            peer_task: the peer's task id, when the send goes on with a task.
            peer: peer id, needed where `bound` is None.
            extensions: extensions that the message activates.
            may_pin: False where nothing can be attached to the message.
            waiting: the request that waits for the decision; None: it is not seen yet, and where it is not certain
                which client will send it, it is decided when it is.

        Returns:
            The pin to attach, or None when there is none.

        Raises:
            ContractChangedError: the contract changed; one card GET was made and nothing else.
            SendRefusedError: the table says abort for another reason.
            SpentClientError: an earlier send of this client was aborted.
        """
        if bound is not None and waiting is not None:
            bound = own_copy(self._desk, bound, waiting)
        if bound is not None and bound.spent and self._desk.enforces:
            raise SpentClientError(
                f"{bound.spent}\n  An earlier send found this; nothing more was asked or sent.",
                hint=bound.spent.hint,
                task=bound.spent.task,
                event=bound.spent.event,
                reason=bound.spent.reason,
            )
        whom = bound.peer if bound else peer
        key = self._key(whom, message_id, said, peer_task)
        pin: JsonObject | None = None
        with self._desk.failing_as_chosen():
            async with self._desk.claims.opening(key):
                existing = await self._existing_task(key, whom, message_id, said, peer_task)
                if existing is not None or peer_task is None:  # a task never seen is adopted by the transport
                    pin = await self._open(bound, whom, existing, key, message_id, extensions, waiting, may_pin=may_pin)
        return pin

    async def _open(  # noqa: PLR0913, PLR0917 - the one path that joins them
        self,
        bound: BoundCard | None,
        peer: str,
        existing: str | None,
        key: Key,
        message_id: str,
        extensions: Sequence[str],
        waiting: Waiting | None,
        *,
        may_pin: bool,
    ) -> JsonObject | None:
        state = task_state(self._desk.ledger.store, f"task:{existing}") if existing is not None else "intended"
        task = existing or await self._desk.new_task()
        undecided = waiting is None and bound is not None and not is_certain(bound)
        drafts, at = (
            ([], self._desk.ledger.clock()) if undecided else await self._decide(bound, peer, task, state, key, waiting)
        )
        first = state == "intended"
        self._desk.claims.hold(key, task)
        pin = self._pin(bound, task, at, first=first) if may_pin else None
        open_call(
            Call(
                task=task,
                peer=peer,
                bound=bound,
                message_id=lift(message_id, set()) or "",  # as the transport will read it
                drafts=drafts,
                at=at,
                undecided=undecided,
                captures=first,
                pin=pin,
                extensions=tuple(extensions),
                key=key,
            )
        )
        return pin

    async def _decide(  # noqa: PLR0913, PLR0917 - what a send is, and what waits
        self, bound: BoundCard | None, peer: str, task: str, state: str, key: Key, waiting: Waiting | None
    ) -> tuple[list[Draft], datetime]:
        """Put the question, and stop what must not leave; return the decision to record, and when it was made."""
        asked = await self._ask(bound, peer, state, waiting)
        at = self._desk.ledger.clock()
        if asked.decided.stops and self._desk.enforces:
            error = await self._asking.abort(asked, task, at, "client")
            self._desk.claims.release(key)
            forget_sent(peer)  # what is built next is for a task that does not exist yet
            if bound is not None and asked.decided.decision.reason in CHANGED:
                bound.spent = error
            raise error
        if asked.decided.decision.reason == "capability-stale":
            self._book_lazy(peer, bound.route if bound else None)
        return [self._asking.decision(asked, f"task:{task}", at)], at

    async def _ask(self, bound: BoundCard | None, peer: str, state: str, waiting: Waiting | None) -> Asked:
        if bound is None or bound.route is None or waiting is None:
            asked = await self._asking.ask(peer, bound.kept if bound else None, bound, state=state)
            if asked.fetched is not None and bound is not None and _cannot_ask(bound.route):
                self._warn_of_closed_client(bound)
            return asked
        now = replace(bound, route=while_waiting(bound.route, waiting))
        asked = await self._asking.ask(peer, bound.kept, now, state=state)
        bound.kept = now.kept
        return asked

    def _warn_of_closed_client(self, bound: BoundCard) -> None:
        """Say once a peer that a change of its contract is not seen: a call over gRPC has nothing to ask with."""
        if bound.peer not in self._unasked:
            self._unasked.add(bound.peer)
            _log.warning(
                "%s: the httpx client that this card was resolved with is closed, and the guard has not what it asked "
                "with (credentials, or a transport of its own): the card cannot be fetched again, so a change of its "
                "contract is not seen before a call; keep that client open as long as the channel",
                bound.peer_url,
            )

    async def renew(self, call: Call, waiting: Waiting | None = None) -> None:
        """Decide a send that is not decided yet, or a first one again that waited so long that its decision is stale.

        An authentication flow may wait for a person. What is pinned stays as it is: the message holds it already.

        Raises:
            ContractChangedError: as `begin`.
            SendRefusedError: as `begin`.
        """
        if call.bound is not None and waiting is not None:
            own(self._desk, call.bound, waiting)
        waited = (self._desk.ledger.clock() - call.at).total_seconds()
        stale = call.captures and waited >= max(self._desk.ledger.settings.limits.contract, _LONG)
        if not stale and not call.undecided:
            return
        state = "intended" if call.captures else task_state(self._desk.ledger.store, f"task:{call.task}")
        call.drafts, call.at = await self._decide(call.bound, call.peer, call.task, state, call.key, waiting)
        call.undecided = False

    def _key(self, peer: str, message_id: str, said: str | None, peer_task: str | None) -> Key:
        """Return what this send's task is known by before the log knows it."""
        chosen = task_of_context(self._desk.ledger.store, peer)
        if chosen is not None:
            return ("task", peer, chosen)
        if peer_task:
            return ("peer-task", peer, peer_task)
        return ("message", peer, message_id or str(uuid4()), said or "")

    async def _existing_task(
        self, key: Key, peer: str, message_id: str, said: str | None, peer_task: str | None
    ) -> str | None:
        """Return the local task that a send goes on with: the context's, the peer's task's, else a resend's."""
        if key[0] == "task":
            return key[2]
        if peer_task:
            return self._desk.ledger.find_task(peer, peer_task)
        sent_before: str | None = None
        store = self._desk.ledger.store
        if message_id and store.tagged_places(f"message:{peer}:{message_id}", limit=1):
            # What was sent under this id may be as large as it likes: it is read, unsealed and digested.
            sent_before = await asyncio.to_thread(resent_task, store, peer, message_id, said)
        return sent_before or self._desk.claims.task(key)

    # ---- the pin ---

    def _pin(self, bound: BoundCard | None, task: str, at: datetime, *, first: bool) -> JsonObject | None:
        """Return the pin of this task (docs/format.md section 8): strings only, the same on every turn."""
        if not first and task not in self._pins:
            self._pins[task] = self._recorded_pin(task)
        if first and bound is not None:
            pin: JsonObject = {
                "form": bound.contract.form,
                "contractHash": bound.contract.hash,
                "cardHash": bound.kept.raw_hash,
                "capturedAt": timestamp(at),
                "origin": self._desk.ledger.origin,
                "task": task,
            }
            if bound.kept.seed0 is not None:
                pin["seed0"] = bound.kept.seed0
            self._pins[task] = pin
        while len(self._pins) > _PINS:
            self._pins.popitem(last=False)
        return self._pins.get(task)

    def _recorded_pin(self, task: str) -> JsonObject | None:
        for record in self._desk.ledger.store.read_stream(f"task:{task}", limit=_OPENING):
            if record.type == "contract.captured.v1":
                return cast("JsonObject | None", record.data.get("pin"))
        return None

    # ---- off the critical path ---

    def _book_lazy(self, peer: str, route: Route | None) -> None:
        """Book the lazy fetch of row 10: it serves the next task and runs only while the peer has none in flight."""
        if route is None:
            return
        job = asyncio.create_task(self._fetch_lazily(peer, route))
        self._lazy.add(job)
        job.add_done_callback(self._lazy.discard)

    async def _fetch_lazily(self, peer: str, route: Route) -> None:
        async with asyncio.timeout(_LAZY_WAIT):
            await asyncio.sleep(_LAZY_LOOK)
            while self._desk.in_flight(peer):  # noqa: ASYNC110 - other processes finish tasks too: nothing to await
                await asyncio.sleep(_LAZY_LOOK)
        newest = self._desk.views.of(peer).newest(route.ask.key(self._desk.ledger))
        await self._desk.cards.fetch(route, purpose="lazy", validate=newest)

    async def close(self) -> None:
        """Give up lazy fetches that have not begun."""
        here, mine = asyncio.get_running_loop(), list[asyncio.Task[None]]()
        for job in list(self._lazy):
            if job.get_loop() is here:
                job.cancel()
                mine.append(job)
            elif not job.get_loop().is_closed():
                job.get_loop().call_soon_threadsafe(job.cancel)
        await asyncio.gather(*mine, return_exceptions=True)


def _cannot_ask(route: Route | None) -> bool:
    return route is not None and route.is_closed and not route.asks_apart
