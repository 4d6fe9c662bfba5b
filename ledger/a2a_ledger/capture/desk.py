"""What all parts of one guard share: its ledger, the peers as the log knows them, the cards it handed out."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from typing import TYPE_CHECKING

from a2a_ledger.address import typed_card_url, wire_url
from a2a_ledger.capture.attribution import peer_of_extended
from a2a_ledger.capture.bound import BoundCard, bind, expects_extended
from a2a_ledger.capture.cards import CardDesk, read_event
from a2a_ledger.capture.claims import Claims
from a2a_ledger.capture.found_cards import FoundCards
from a2a_ledger.capture.own_redaction import OwnRedaction
from a2a_ledger.capture.peerview import KeptCard, PeerViews, kept_card
from a2a_ledger.capture.recorder import card_source, configured_card_event
from a2a_ledger.capture.situation import SiblingWatch, ended_in_error, task_state
from a2a_ledger.capture.whole import Underway
from a2a_ledger.card import peer_id, read_card
from a2a_ledger.errors import CaptureError, CardError, LedgerError, LedgerUnavailableError, UsageError
from a2a_ledger.wire import TERMINAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

    from a2a_ledger.capture.card_identity import CardIdentity
    from a2a_ledger.capture.redact import Redactor
    from a2a_ledger.capture.route import Route
    from a2a_ledger.codec import Draft
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.store import Appended

_log = logging.getLogger(__name__)

_RECENT_CARDS = 256
"""Cards of this process that a client's parsed card is looked for among."""

_PEER_ID = 32
_LOOK_BACK = 64


class LedgerFailing:
    """Turns a failure of the ledger into what the deployment chose; the guard's own errors pass."""

    def __init__(self, *, block: bool) -> None:
        self._block = block

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> bool:
        if not isinstance(error, LedgerError) or isinstance(error, CaptureError | CardError | UsageError):
            return False
        if self._block:
            raise LedgerUnavailableError(
                f"the ledger could not record this exchange, so it was stopped: {error}",
                hint='set on_ledger_failure = "pass" to let calls through unrecorded',
            ) from error
        _log.error("an exchange passes unrecorded (on_ledger_failure = pass): %s", error)
        return True


class Desk:
    """The shared part of one guard."""

    def __init__(
        self,
        ledger: ContractLedger,
        *,
        client_versions: tuple[str, ...],
        redact: Redactor | None,
        credentials_visible: bool = True,
        for_many: bool = False,
    ) -> None:
        self.ledger = ledger
        self.redact = OwnRedaction(redact) if redact is not None else None
        self.credentials_visible = credentials_visible
        self.for_many = for_many
        self.client_versions = client_versions
        self.views = PeerViews(ledger.store)
        self.cards = CardDesk(ledger, self.views, self.write, self.redact)
        self.siblings = SiblingWatch(ledger.store)
        self.claims = Claims()
        self.found = FoundCards()
        self.underway = Underway()
        self._recent: OrderedDict[tuple[int, str, CardIdentity, str], BoundCard] = OrderedDict()
        self._card_urls: set[str] = set()
        if client_versions:  # a desk without a client has no way to any peer
            ledger.probe = self.diagnose

    # ---- the ledger, and what happens when it fails ---------------------------------------------------------------

    @property
    def enforces(self) -> bool:
        """Say whether a changed contract stops a send and a certain divergence raises."""
        return self.ledger.settings.mode == "enforce"

    async def write(self, drafts: list[Draft]) -> list[Appended]:
        """Append durably, off the event loop.

        Raises:
            LedgerUnavailableError: it could not be recorded and `on_ledger_failure` is "block".
        """
        with self.failing_as_chosen():
            return await self.ledger.append_async(drafts)
        return []

    def failing_as_chosen(self) -> LedgerFailing:
        """Return a context in which a failure of the ledger blocks the call or lets it pass, as was chosen."""
        return LedgerFailing(block=self.ledger.settings.on_ledger_failure == "block")

    # ---- which card is a client bound to ---------------------------------------------------------------------------

    def expect_card_at(self, url: str) -> None:
        """Take note that a GET of this url asks for a card, though its path does not say so."""
        self._card_urls.add(wire_url(url))

    def asks_for_card(self, method: str, url: str) -> bool:
        """Say whether a request asks for a card: by its path, or because the application said so.

        The path of an extended card is a card's beside an interface that a card lists; elsewhere it is any other API's.
        """
        source = card_source(method, url)
        if source != "extended":
            return method == "GET" and (wire_url(url) in self._card_urls or source is not None)
        if wire_url(url) in self._card_urls or expects_extended():
            return True
        with self.failing_as_chosen():
            return peer_of_extended(self.ledger.store, url) is not None
        return False

    def recent_cards(self, transport: object = None) -> list[BoundCard]:
        """Return the cards that were handed to the application lately: those of one transport first, newest first."""
        recent = list(reversed(self._recent.values()))
        return sorted(recent, key=lambda bound: transport is None or _transport(bound) is not transport)

    def handed_to(self, transport: object, peer: str) -> BoundCard | None:
        """Return the card of this peer that was handed out on a transport last."""
        mine = (bound for bound in reversed(self._recent.values()) if _transport(bound) is transport)
        return next((bound for bound in mine if bound.peer == peer), None)

    def remember(self, bound: BoundCard) -> BoundCard:
        """Take note of a card that is handed to the application."""
        key = _known_as(bound)
        self._recent[key] = bound
        self._recent.move_to_end(key)
        while len(self._recent) > _RECENT_CARDS:
            self._recent.popitem(last=False)
        return bound

    def recall(self, bounds: Iterable[BoundCard]) -> None:
        """Take note of cards that were handed out before those of this process, newest first, as far as there is room.

        What the process knows of the same octets stays as it is.
        """
        for bound in bounds:
            key = _known_as(bound)
            if key not in self._recent and len(self._recent) < _RECENT_CARDS:
                self._recent[key] = bound
                self._recent.move_to_end(key, last=False)

    def bound_to(self, kept: KeptCard, body: bytes, *, peer: str, route: Route) -> BoundCard | None:
        """Return the card of a kept answer, ready to be frozen; None when no contract can be frozen from it."""
        url = self.views.of(peer).url
        return bind(kept, read_card(body), self.ledger.profile, peer=peer, peer_url=url, route=route)

    async def bind_found(self, wanted: Callable[[dict[str, object]], bool]) -> BoundCard | None:
        """Bind a client to a card that the application took out of a recorded answer; None: none of them holds it.

        Args:
            wanted: see `FoundCards.find`.
        """
        found = self.found.find(wanted)
        if found is None:
            return None
        if found.ask.marked:  # the first credential of a peer makes its redaction key, which waits for the disk
            await asyncio.to_thread(self.ledger.store.keys.redaction_key, found.ask.peer)
        card = found.card
        fetched = await self.cards.found_within(found.ask, card.raw, within=found.within)
        if fetched.kept is None:
            return None
        url = self.views.of(found.ask.peer).url
        bound = bind(fetched.kept, card, self.ledger.profile, peer=found.ask.peer, peer_url=url)
        if bound is None:
            return None
        self._warn_if_never_again(url)
        return self.remember(bound)

    def _warn_if_never_again(self, peer_url: str) -> None:
        if self.enforces:
            _log.warning(
                "%s: a client is bound to a card that no card fetch brought: it can never be fetched again, so a "
                "change of its contract is not seen before a send; resolve the card through the guard",
                peer_url,
            )

    async def bind_configured(self, proto_json: bytes) -> BoundCard:
        """Bind a client to a card that no recorded fetch brought: source `configured`, flag `lossy`.

        Raises:
            CardError: no contract can be frozen from it.
        """
        event, blobs = configured_card_event(proto_json, at=self.ledger, redactor=self.redact)
        peer = event.peer
        self._warn_if_never_again(event.peer_url)
        appended = await self.write([self.ledger.draft(event, stream=f"peer:{peer}", blobs=blobs)])
        record = read_event(self.ledger.store, appended[0].ref) if appended else None
        kept = kept_card(record) if record else None
        card = read_card(proto_json)
        bound = bind(kept, card, self.ledger.profile, peer=peer, peer_url=event.peer_url) if kept else None
        if bound is None:
            raise CardError(
                f"no contract can be frozen from the configured card: {card.problem or ', '.join(card.flags)}"
            )
        return self.remember(bound)

    # ---- tasks ----------------------------------------------------------------------------------------------------

    async def new_task(self) -> str:
        """Return a new local task id; a key that has to be made first waits for the disk off the event loop."""
        if self.ledger.store.keys.has_spare:
            return self.ledger.new_task()
        return await asyncio.to_thread(self.ledger.new_task)

    def in_flight(self, peer: str) -> bool:
        """Say whether the peer has a task that was sent and is not seen finished."""
        return bool(tasks_in_flight(self.ledger, peer))

    async def diagnose(self, peer: str) -> str:
        """Fetch a card as a diagnostic; the result never reaches an SDK as a card.

        Args:
            peer: the peer's id, or the url of its card or origin.

        Raises:
            UsageError: this process has no way to the peer.
        """
        wanted = peer if len(peer) == _PEER_ID and "/" not in peer else peer_id(typed_card_url(peer) or peer)
        route = self.cards.route_of_peer(wanted)
        if route is None:
            raise UsageError(f"{peer}: no client of this process ever asked this peer for its card")
        fetched = await self.cards.fetch(route, purpose="diagnostic", validate=None)
        return fetched.kept.contract_hash or "no contract" if fetched.kept else "no card"


def tasks_in_flight(ledger: ContractLedger, peer: str) -> list[str]:
    """Return the newest tasks of a peer that were sent and are not seen finished, among the last 64 sends."""
    sent = ledger.store.tagged(f"sent:{peer}", limit=_LOOK_BACK, desc=True)
    return [
        record.stream.removeprefix("task:")
        for record in sent
        if task_state(ledger.store, record.stream) not in TERMINAL and not ended_in_error(ledger.store, record.stream)
    ]


def _known_as(bound: BoundCard) -> tuple[int, str, CardIdentity, str]:
    return id(_transport(bound)), bound.peer, bound.kept.key, bound.kept.raw_hash or ""


def _transport(bound: BoundCard) -> object:
    return bound.route.transport if bound.route is not None else None
