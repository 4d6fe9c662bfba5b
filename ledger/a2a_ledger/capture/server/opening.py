"""A request that comes in: whose task it is, what is frozen with it, and its record, before the agent sees it.

docs/format.md sections 4 and 14. The same as a client's request, the other way round.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, cast

from a2a_ledger.capture.attribution import attribute, interface_used, peer_at
from a2a_ledger.capture.coding import codings_of, unpacked_of
from a2a_ledger.capture.exchange import Exchange
from a2a_ledger.capture.leaving import bounded
from a2a_ledger.capture.off_loop import size_coded, worked
from a2a_ledger.capture.outside import as_said, is_call
from a2a_ledger.capture.recorder import SERVER, message_event, see
from a2a_ledger.capture.redact import Secrets
from a2a_ledger.capture.redacted import bare_url, without_secrets
from a2a_ledger.capture.server.served_cards import ServedCards
from a2a_ledger.capture.server.spool import read_leg
from a2a_ledger.contract import FORM, TERMS_FORM
from a2a_ledger.events import ContractCaptured, TaskAdopted
from a2a_ledger.wire import SENDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from a2a_ledger.capture.attribution import Attribution
    from a2a_ledger.capture.desk import Desk
    from a2a_ledger.capture.redacted import Seen
    from a2a_ledger.capture.server.incoming import Incoming
    from a2a_ledger.codec import Content, Draft
    from a2a_ledger.events import Event, JsonObject
    from a2a_ledger.store import Appended
    from a2a_ledger.wire import Leg

_MAX_NAME = 256
_MAX_EXTENSIONS = 16


class Servant:
    """Opens the exchanges of one agent."""

    def __init__(self, desk: Desk, card_url: str) -> None:
        """Open exchanges.

        Args:
            desk: the ledger's shared part.
            card_url: where the world finds our public card; our peer id is made from it.
        """
        self.desk = desk
        self.peer = peer_at(card_url)
        self.cards = ServedCards(desk, card_url)

    async def open(self, request: Incoming) -> Exchange:
        """Record a request, with the capture if it opens a task, in one append.

        Raises:
            LedgerUnavailableError: it could not be recorded.
        """
        desk, headers, octets = self.desk, request.headers, request.body.head
        tail, card, size = request.body.tail, self.cards.in_force(), size_coded(headers, octets)
        is_card = self.cards.is_asked_for(request.method, request.url)

        def reading() -> tuple[bytes, Leg, Leg, Seen, bool]:
            read = unpacked_of(headers, octets) if tail is None or not codings_of(headers) else None
            body = b"" if read is None else read
            leg = read_leg(request.method, request.url, headers, body, is_whole=tail is None)
            seen = see(headers, body, url=leg.url, schemes=card.schemes if card else None)
            outside = not is_call(leg, body) and not is_card
            seen = as_said(seen._replace(tail=tail), leg, outside=outside, url=leg.url)
            seen = seen.unread(octets) if read is None else seen
            seen = seen._replace(secrets=Secrets(seen.secrets))
            return body, leg, without_secrets(leg, seen.secrets), seen, outside

        body, leg, clean, seen, outside = await worked(size, reading)
        if seen.secrets:  # the first credential of a peer makes its redaction key, which waits for the disk
            await asyncio.to_thread(desk.ledger.store.keys.redaction_key, self.peer.id)
        event_of = partial(
            message_event,
            clean,
            seen,
            peer=self.peer.id,
            at=desk.ledger,
            http_method=request.method,
            redactor=desk.redact,
            side=SERVER,
            flags=() if not request.client_left else ("truncated",),
        )
        event, blobs = await worked(size, event_of)
        schemes = sorted({mark["scheme"] for mark in event.credential or ()})
        key = ("served", self.peer.id, clean.task_id or "", clean.message_id or "")
        async with desk.claims.opening(key):  # a message that is sent twice at once opens one task
            stream, opening = await self._opening(without_secrets(leg, seen.secrets, with_url=True), body, schemes)
            appended = await self._write([*opening, _draft(desk, event, stream, blobs)])
        return Exchange(
            desk,
            None,
            clean,
            self.peer.id,
            stream,
            answers=appended[-1].ref if appended else None,
            secrets=Secrets.of(seen.secrets),
            outside=outside,
            side=SERVER,
        )

    async def _write(self, drafts: list[Draft]) -> list[Appended]:
        return await asyncio.shield(self.desk.underway.begin(self.desk.write(drafts)))

    async def _opening(self, leg: Leg, body: bytes, schemes: Sequence[str]) -> tuple[str, list[Draft]]:
        """Return the stream that a request belongs to, and what opens it if it is a new task's."""
        found = await self._attributed(leg, body)
        if found.task is not None:
            return f"task:{found.task}", []
        if found.opens == "send":
            stream = f"task:{await self.desk.new_task()}"
            return stream, [self._captured(leg, stream, schemes)]
        if found.opens == "adopted" and leg.task_id is not None:
            stream = f"task:{await self.desk.new_task()}"
            url = bare_url(self.peer.url)
            event = TaskAdopted(peer=self.peer.id, peer_url=url, task_id=leg.task_id, context_id=leg.context_id)
            return stream, [_draft(self.desk, event, stream, {})]
        return f"peer:{self.peer.id}", []

    async def _attributed(self, leg: Leg, body: bytes) -> Attribution:
        """Say where a request belongs; off the event loop where it or an earlier send of its id may be large."""
        store = self.desk.ledger.store
        attributing = partial(attribute, store, leg, body, peer=self.peer)
        named = f"message:{self.peer.id}:{leg.message_id}"
        if leg.message_id is not None and leg.method in SENDS and store.tagged_places(named, limit=1):
            return await asyncio.to_thread(attributing)
        return await worked(len(body), attributing)

    def _captured(self, leg: Leg, stream: str, schemes: Sequence[str]) -> Draft:
        """Freeze the contract of the card that we served last; of an agent that served none, that there was none."""
        profile, caller = self.desk.ledger.profile, "+".join(schemes) or "anonymous"
        card = self.cards.in_force(caller=caller, version=leg.version)
        contract = card.contract if card else None
        stands = card is not None and contract is not None
        event = ContractCaptured(
            peer=self.peer.id,
            peer_url=bare_url(self.peer.url),
            fetch=card.ref if card else None,
            raw_hash=card.card.raw_hash if card else None,
            document_hash=card.card.document_hash if card else None,
            contract_hash=contract.hash if contract else None,
            form=contract.form if contract else FORM,
            seed0=card.seed0 if card else None,
            terms_hash=card.terms.hash if card and stands else None,
            terms_form=card.terms.form if card and stands else TERMS_FORM,
            profile_hash=profile.hash,
            interface=bounded(card.interface_of(leg) if card else interface_used([], leg)),
            extensions=[uri for uri in leg.extensions if len(uri) <= _MAX_NAME][:_MAX_EXTENSIONS],
            credential=list(schemes),
            credential_visible=True,
            pin=cast("JsonObject", dict(leg.pin)) if leg.pin is not None else None,
            caller=caller,
            side=SERVER,
        )
        blobs: dict[str, bytes] = {}
        if card is not None and contract is not None:
            blobs = {"contract": contract.canonical, "terms": card.terms.canonical}
        return _draft(self.desk, event, stream, blobs)


def _draft(desk: Desk, event: Event, stream: str, blobs: Mapping[str, Content | bytes]) -> Draft:
    return desk.ledger.draft(event, stream=stream, blobs=blobs)
