"""Building a client: the application's own card GET goes through the freshness table too.

With the context of a sent task it gets the card that the task froze, without one it asks for a task
that does not exist yet (docs/format.md section 9). Building a client from another contract than the
one in force is how a changed contract is taken on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from a2a_ledger.capture.acceptance import change_in_force
from a2a_ledger.capture.bound import extended_came
from a2a_ledger.capture.cards import read_event
from a2a_ledger.capture.peerview import kept_card
from a2a_ledger.capture.refusal import contract_pointers, diff_text
from a2a_ledger.capture.situation import task_state
from a2a_ledger.contract import require_contract
from a2a_ledger.errors import CardError, ContractChangedError
from a2a_ledger.events import ContractAccepted

if TYPE_CHECKING:
    from a2a_ledger.capture.asking import Asked, Asking
    from a2a_ledger.capture.bound import BoundCard
    from a2a_ledger.capture.card_identity import CardIdentity
    from a2a_ledger.capture.card_record import CardAsk
    from a2a_ledger.capture.cards import Fetched, HandedOut
    from a2a_ledger.capture.desk import Desk
    from a2a_ledger.capture.method_card import MethodRoute
    from a2a_ledger.capture.peerview import KeptCard
    from a2a_ledger.capture.route import Route
    from a2a_ledger.card import Card
    from a2a_ledger.codec import Content
    from a2a_ledger.events import Ref

_NOT_MODIFIED = 304
_OPENING = 8
"""Records at the beginning of a task among which its capture stands."""


@dataclass(slots=True)
class CardCall:
    """A call for an extended card, between the question and its answer."""

    ask: CardAsk
    route: MethodRoute
    asked: Asked
    bound: BoundCard | None
    task: str | None
    answer: bytes | None = None
    """The kept card, where it is given in the place of an answer."""


class Builds:
    """Answers the application's card GETs, and its calls for an extended card."""

    def __init__(self, desk: Desk, asking: Asking) -> None:
        """Answer card fetches.

        Args:
            desk: the guard's shared part.
            asking: puts the questions.
        """
        self._desk = desk
        self._asking = asking

    async def card(self, route: Route, *, task: str | None, forced: bool) -> HandedOut:
        """Answer a card GET of the application: from the ledger, or by one fetch.

        Args:
            route: how the application asks.
            task: the local task of this peer in whose context it asks, None when there is none.
            forced: it asks for a fresh answer by its headers.

        Returns:
            What the application gets. A fetch that brought no card is handed out as it came. A redirect decides
            nothing: the request that follows it does.

        Raises:
            ContractChangedError: the fetch brought another contract than the one that is kept, or a
                changed contract waits for a person to accept it.
            SendRefusedError: the table says abort for another reason.
            CardError: what was fetched is no card that a contract can be frozen from.
        """
        desk, ask = self._desk, route.ask
        desk.cards.remember(route)
        key = ask.key(desk.ledger)
        state = task_state(desk.ledger.store, f"task:{task}") if task else "intended"
        frozen = self._frozen(task, key) if task and state != "intended" else None
        kept, body = self._whole(frozen or desk.views.of(ask.peer).newest(key))
        asked = await self._ask(route, kept, body, state=state, task=task, forced=forced)
        if asked.fetched is not None and asked.fetched.redirects:
            return desk.cards.fetched_out(asked.fetched)
        await self._settle(asked, task)
        if asked.fetched is not None:
            kept, body = asked.fetched.kept, asked.fetched.body
            if kept is None or not kept.usable:
                self._refuse(route, asked.fetched.card)
                return desk.cards.fetched_out(asked.fetched)
        if kept is None:
            raise CardError(f"{ask.peer_url}: no card is kept and none was fetched")
        await self.hand_out(kept, body, route, changed=kept is not frozen)
        if asked.fetched is not None and asked.fetched.status != _NOT_MODIFIED:
            return desk.cards.fetched_out(asked.fetched)
        return desk.cards.kept_out(kept, body)

    # ---- a card that a method answers with

    async def before_call(self, route: MethodRoute, *, task: str | None) -> CardCall:
        """Put the question of a call for an extended card; a call is a question for a fresh answer.

        With the context of a sent task it is answered with the card that is kept, if one is.

        Args:
            route: how the application calls.
            task: the local task of this peer in whose context it calls, None when there is none.
        """
        desk, ask = self._desk, route.ask
        desk.cards.remember(route)
        key = ask.key(desk.ledger)
        state = task_state(desk.ledger.store, f"task:{task}") if task else "intended"
        frozen = self._frozen(task, key) if task and state != "intended" else None
        kept, body = self._whole(frozen or desk.views.of(ask.peer).newest(key))
        bound = desk.bound_to(kept, body, peer=ask.peer, route=route) if kept else None
        asked = self._asking.question(ask.peer, kept, bound, state=state)
        purpose = "discovery" if self._desk.for_many or (kept is None and task is None) else "application"
        call = CardCall(route.ask.for_purpose(purpose, validate=None, task=task), route, asked, bound, task)
        if kept is not None and bound is not None and state != "intended" and desk.enforces:
            await self._settle(asked, task)
            await self.hand_out(kept, body, route, changed=kept is not frozen)
            call.answer = body
        return call

    async def after_call(self, call: CardCall, fetched: Fetched | None) -> None:
        """Decide what the answer to a call means, before the application has it.

        Args:
            call: as it was asked.
            fetched: what came; None: it passed unrecorded, or as a stream.

        Raises:
            ContractChangedError: it brought another contract than this card had, or one that waits for a person.
            CardError: it brought a card that no contract can be frozen from.
        """
        if fetched is None:
            return
        call.asked.fetched = fetched
        self._asking.weigh(call.asked, call.bound)
        await self._settle(call.asked, call.task)
        if fetched.kept is None or not fetched.kept.usable:
            self._refuse(call.route, fetched.card)
            return
        await self.hand_out(fetched.kept, fetched.body, call.route)

    # ---- inside

    async def _settle(self, asked: Asked, task: str | None) -> None:
        """Record the decision.

        Raises:
            SendRefusedError: it stops what was asked for.
        """
        desk, at = self._desk, self._desk.ledger.clock()
        if asked.decided.stops and desk.enforces:
            raise await self._asking.abort(asked, await desk.new_task(), at, "build")
        await desk.write([self._asking.decision(asked, f"task:{task}" if task else f"peer:{asked.peer}", at)])

    async def hand_out(self, kept: KeptCard, body: bytes, route: Route, *, changed: bool = True) -> BoundCard | None:
        """Take note that the application gets this card to act on; `changed`: its contract may be a new one.

        Returns:
            The card, ready to be frozen; None when no contract can be frozen from it.
        """
        chosen = self._desk.bound_to(kept, body, peer=route.ask.peer, route=route)
        if chosen is None:
            return None
        if changed:
            await self._accept_if_changed(chosen)
        self._desk.remember(chosen)
        if kept.source == "extended":
            extended_came(chosen)
        return chosen

    def _frozen(self, task: str, key: CardIdentity) -> KeptCard | None:
        """Return the card that a task froze, if it is the one asked for: no later one is given in its context."""
        store = self._desk.ledger.store
        for record in store.read_stream(f"task:{task}", limit=_OPENING):
            if record.type == "contract.captured.v1":
                ref = cast("Ref | None", record.data.get("fetch"))
                fetch = read_event(store, ref) if ref is not None else None
                kept = kept_card(fetch) if fetch is not None else None
                return kept if kept is not None and kept.key.place == key.place else None
        return None

    def _whole(self, kept: KeptCard | None) -> tuple[KeptCard | None, bytes]:
        """Return a kept answer with its exact bytes; None where we have not got all of them, or no contract in them."""
        if kept is None or not kept.usable:
            return None, b""
        body = self._desk.cards.whole_body(kept.bytes_of)
        return (kept, body) if body is not None else (None, b"")

    def _refuse(self, route: Route, card: Card | None) -> None:
        """Say why no contract can be frozen from a card that is recorded; nothing is to be said where none came.

        Raises:
            CardError: in mode "enforce".
        """
        if card is None or not self._desk.enforces:
            return
        try:
            require_contract(card)
        except CardError as e:
            raise CardError(f"{route.ask.peer_url}: {e}. It is recorded as fetched; no client was made of it") from e

    async def _ask(  # noqa: PLR0913 - what is known when the application asks
        self, route: Route, kept: KeptCard | None, body: bytes, *, state: str, task: str | None, forced: bool
    ) -> Asked:
        """Put the question; `observe`, a fresh answer asked for and a card never seen go to the wire."""
        peer = route.ask.peer
        bound = self._desk.bound_to(kept, body, peer=peer, route=route) if kept else None
        if bound is not None and not forced and self._desk.enforces:
            return await self._asking.ask(peer, kept, bound, state=state, task=task, first_hand=True)
        asked = self._asking.question(peer, kept, bound, state=state)
        if state == "intended" or bound is None or not self._desk.enforces:
            undeclared = (forced or task is not None) and not self._desk.for_many
            purpose = "application" if undeclared else "discovery"
            await self._asking.answer(asked, route, purpose, bound, task=task, first_hand=True)
        return asked

    async def _accept_if_changed(self, chosen: BoundCard) -> None:
        """Take a contract on that is not the one in force, or terms of it that are not, by the deployment's choice."""
        desk, ledger = self._desk, self._desk.ledger
        change = change_in_force(ledger, chosen.peer, chosen.kept.key, chosen.card)
        if change is None:
            return
        choice, old_hash = change.acceptance, change.held.contract_hash
        if change.waits:
            terms_alone = old_hash == change.contract
            changed = "vendor terms beside the contract changed, which stays" if terms_alone else "contract changed to"
            raise ContractChangedError(
                f"{chosen.peer_url}: the {changed} {change.contract} (how authorization changed: {change.direction}), "
                f"and acceptance = {choice} waits for a person. Nothing was sent. Accept it, then build the client "
                f"again:\n  {change.accept}",
                hint=change.accept,
            )
        event = ContractAccepted(
            peer=chosen.peer,
            old_hash=old_hash,
            new_hash=change.contract,
            form=chosen.contract.form,
            authorization=change.direction,
            pointers=contract_pointers(change.diff) if change.diff else [],
            acceptance=choice,
            who="client built again",
            fetch=chosen.kept.fetch,
            card_ids=chosen.kept.key.agreed_as,
            profile_hash=ledger.profile.hash,
            old_terms=change.held.terms(ledger.store, ledger.profile),
            new_terms=change.terms,
        )
        blobs: dict[str, Content | bytes] = {"diff": diff_text(change.diff)} if change.diff else {}
        await desk.write([ledger.draft(event, stream=f"peer:{chosen.peer}", blobs=blobs)])
