"""Building a client: the application's own card GET goes through the freshness table too.

With the context of a sent task it gets the kept card, without one it asks for a task that does not
exist yet (docs/format.md section 9). Building again after an abort is how a changed contract is
taken on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from a2a_ledger.capture.cards import Fetched, Route, read_bytes
from a2a_ledger.capture.refusal import contract_pointers, diff_text
from a2a_ledger.capture.situation import task_state
from a2a_ledger.card import read_card
from a2a_ledger.contract import diff, require_contract
from a2a_ledger.errors import CardError, ContractChangedError
from a2a_ledger.events import ContractAccepted

if TYPE_CHECKING:
    from a2a_ledger.capture.asking import Asked, Asking
    from a2a_ledger.capture.bound import BoundCard
    from a2a_ledger.capture.desk import Desk
    from a2a_ledger.capture.peerview import KeptCard
    from a2a_ledger.card import Card
    from a2a_ledger.codec import Content
    from a2a_ledger.contract import Diff
    from a2a_ledger.events import Ref

_LOOK_BACK = 512
"""Fetches of a peer among which the contract that is left behind is looked for."""


class Builds:
    """Answers the application's card GETs."""

    def __init__(self, desk: Desk, asking: Asking) -> None:
        self._desk = desk
        self._asking = asking

    async def card(self, route: Route, *, task: str | None, forced: bool) -> tuple[KeptCard | None, Fetched | None]:
        """Answer a card GET of the application: from the ledger, or by one fetch.

        Args:
            route: how the application asks.
            task: the local task in whose context it asks, None when there is none.
            forced: it asks for a fresh answer by its headers.

        Returns:
            The kept answer to hand out, and the fetch if one was made. Without a kept answer the
            fetch brought no card, and is handed out as it came.

        Raises:
            ContractChangedError: the fetch brought another contract than the one that is kept, or a
                changed contract waits for a person to accept it.
            SendRefusedError: the table says abort for another reason.
            CardError: what was fetched is no card that a contract can be frozen from.
        """
        desk, ask = self._desk, route.ask
        desk.cards.remember(route)
        kept = desk.views.of(ask.peer).newest(ask.source, ask.caller)
        kept = kept if kept is not None and kept.usable else None
        state = task_state(desk.ledger.store, f"task:{task}") if task else "intended"
        asked = await self._ask(route, kept, state=state, task=task, forced=forced)
        at = desk.ledger.clock()
        if asked.decided.stops and desk.enforces:
            raise await self._asking.abort(asked, await desk.new_task(), at)
        await desk.write([self._asking.decision(asked, f"task:{task}" if task else f"peer:{ask.peer}", at)])
        answer = asked.fetched.kept if asked.fetched else kept
        if answer is None or not answer.usable:
            if asked.fetched is not None and asked.fetched.card is not None and desk.enforces:
                self._refuse(route, asked.fetched.card)
            return None, asked.fetched
        chosen = desk.bound_to(answer, asked.fetched, peer=ask.peer)
        if chosen is not None:
            if state == "intended":
                await self._accept_if_changed(chosen)
            desk.remember(chosen)
        return answer, asked.fetched

    def _refuse(self, route: Route, card: Card) -> None:
        """Say why no contract can be frozen from a card that is recorded.

        Raises:
            CardError: always.
        """
        try:
            require_contract(card)
        except CardError as e:
            raise CardError(f"{route.ask.peer_url}: {e}. It is recorded as fetched; no client was made of it") from e

    async def _ask(self, route: Route, kept: KeptCard | None, *, state: str, task: str | None, forced: bool) -> Asked:
        """Put the question; `observe`, a fresh answer asked for and a card never seen go to the wire."""
        peer = route.ask.peer
        bound = self._desk.bound_to(kept, None, peer=peer) if kept else None
        if bound is not None and not forced and self._desk.enforces:
            return await self._asking.ask(peer, kept, bound, state=state, task=task)
        asked = self._asking.question(peer, kept, bound, state=state)
        if state == "intended" or not self._desk.enforces:
            purpose = "application" if forced or task is not None else "discovery"
            await self._asking.answer(asked, route, purpose, bound, task=task)
        return asked

    async def _accept_if_changed(self, chosen: BoundCard) -> None:
        """Take a changed contract on, if an abort waits for that, by the deployment's choice."""
        desk, store = self._desk, self._desk.ledger.store
        aborted = store.tagged(f"aborted:{chosen.peer}", limit=1, desc=True)
        old_hash = aborted[0].data.get("old_hash") if aborted else None
        if not isinstance(old_hash, str) or old_hash == chosen.contract.hash:
            return
        accepted = store.tagged(f"accepted:{chosen.peer}", limit=1, desc=True)
        if accepted and accepted[0].n > aborted[0].n and accepted[0].data.get("new_hash") == chosen.contract.hash:
            return
        change = self._change_since(chosen, old_hash)
        direction = (change.authorization if change else None) or "incomparable"
        choice = desk.ledger.settings.acceptance
        if desk.enforces and (choice == "manual" or (choice == "not-weaker" and direction == "weaker")):
            raise ContractChangedError(
                f"{chosen.peer_url}: the contract changed to {chosen.contract.hash} (authorization: {direction}), and "
                f"acceptance = {choice} waits for a person. Nothing was sent.",
                hint=f"a2a-ledger card accept {chosen.peer} {chosen.contract.hash}",
            )
        event = ContractAccepted(
            peer=chosen.peer,
            old_hash=old_hash,
            new_hash=chosen.contract.hash,
            form=chosen.contract.form,
            authorization=direction,
            pointers=contract_pointers(change) if change else [],
            acceptance=choice,
            who="client built again",
            fetch=chosen.kept.fetch,
        )
        blobs: dict[str, Content | bytes] = {"diff": diff_text(change)} if change else {}
        await desk.write([desk.ledger.draft(event, stream=f"peer:{chosen.peer}", blobs=blobs)])

    def _change_since(self, chosen: BoundCard, old_hash: str) -> Diff | None:
        for record in self._desk.ledger.store.read_stream(f"peer:{chosen.peer}", limit=_LOOK_BACK, desc=True):
            if record.type == "card.fetched.v1" and record.data.get("contract_hash") == old_hash:
                bytes_of = cast("Ref | None", record.data.get("not_modified")) or record.ref
                old = read_card(read_bytes(self._desk.ledger.store, bytes_of))
                return diff(old, chosen.card, self._desk.ledger.profile)
        return None
