"""A client's card, and the call that is about to leave: the values that the guard's parts hand on."""

from __future__ import annotations

import copy
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from a2a_ledger.capture.redacted import recorded_uri
from a2a_ledger.contract import FORM, TERMS_FORM, Contract, Profile, Terms, contract_of, terms_of
from a2a_ledger.events import ContractCaptured

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from a2a_ledger.capture.claims import Key
    from a2a_ledger.capture.peerview import KeptCard
    from a2a_ledger.capture.route import Route
    from a2a_ledger.card import Card
    from a2a_ledger.codec import Draft
    from a2a_ledger.errors import SendRefusedError
    from a2a_ledger.events import Interface, JsonObject


_MAX_NAME = 256
_MAX_EXTENSIONS = 16


@dataclass(slots=True)
class BoundCard:
    """The card fetch that a client was built from.

    `route` is how its card was asked for, by which alone it is asked for again; None where no fetch
    brought it. `spent` is why the client may not send any more; None while it may.
    """

    peer: str
    peer_url: str
    kept: KeptCard
    card: Card
    contract: Contract
    terms: Terms
    route: Route | None = None
    spent: SendRefusedError | None = None
    owned: bool = False
    """`route` is certainly that of the client which sends; see `own_route`."""

    @property
    def document(self) -> dict[str, Any]:
        """Return a copy of the card's JSON: the SDK's parser edits what it is given."""
        return cast("dict[str, Any]", copy.deepcopy(self.card.document))

    @property
    def schemes(self) -> dict[str, Any]:
        """Return the contract's scheme table."""
        return cast("dict[str, Any]", self.contract.value["schemes"])

    @property
    def interfaces(self) -> list[Interface]:
        """Return the interfaces that the contract lists, in their order."""
        return cast("list[Interface]", self.contract.value["interfaces"])

    def for_new_client(self) -> BoundCard:
        """Return the same for another client, not spent, with a way to the card that it alone renews."""
        return replace(self, spent=None, owned=False, route=copy.copy(self.route))

    def likely_version(self, client_versions: Sequence[str]) -> str | None:
        """Return the version of the interface that a client of these versions will use, as far as the card tells.

        The SDK takes the first binding that it speaks and prefers a version that it knows; what was
        really used is seen on the wire and frozen from there.
        """
        versions = [interface["version"] for interface in self.interfaces]
        known = [version for version in versions if version in client_versions]
        return known[0] if known else (versions[0] if versions else None)


def bind(  # noqa: PLR0913 - what a client's card is made of
    kept: KeptCard, card: Card, profile: Profile, *, peer: str, peer_url: str, route: Route | None = None
) -> BoundCard | None:
    """Bind a client to a card, or return None when no contract can be frozen from it."""
    contract = contract_of(card)
    if contract is None:
        return None
    return BoundCard(peer, peer_url, kept, card, contract, terms_of(card, profile), route)


@dataclass(slots=True)
class Call:
    """One send between the decision and its first byte: what the transport appends together with the request."""

    task: str
    peer: str
    bound: BoundCard | None
    message_id: str
    drafts: list[Draft]
    at: datetime
    captures: bool  # a first send: the contract is frozen with the request
    pin: JsonObject | None = None
    extensions: tuple[str, ...] = field(default=())
    key: Key = ()  # what its task is claimed under
    undecided: bool = False  # it is decided when it is seen which client sends it
    taken: bool = False  # by the transport, which records it

    def capture(
        self, profile: Profile, *, interface: Interface, credential: Sequence[str], visible: bool, side: str | None
    ) -> tuple[ContractCaptured, dict[str, bytes]]:
        """Return the capture, now that the interface was seen on the wire."""
        if self.bound is None:
            return _without_card(self, profile, interface, credential, visible=visible, side=side), {}
        bound = self.bound
        skills = _skill_ids(bound.card)
        event = ContractCaptured(
            peer=bound.peer,
            peer_url=bound.peer_url,
            fetch=bound.kept.fetch,
            raw_hash=bound.kept.raw_hash,
            document_hash=bound.kept.document_hash,
            contract_hash=bound.contract.hash,
            form=bound.contract.form,
            seed0=bound.kept.seed0,
            terms_hash=bound.terms.hash,
            terms_form=bound.terms.form,
            profile_hash=profile.hash,
            interface=interface,
            extensions=_bounded(self.extensions),
            credential=list(credential),
            credential_visible=visible,
            pin=self.pin,
            caller=bound.kept.caller,
            skill=skills[0] if len(skills) == 1 and len(skills[0]) <= _MAX_NAME else None,
            card_ids=bound.kept.key.agreed_as,
            side=side,
        )
        return event, {"contract": bound.contract.canonical, "terms": bound.terms.canonical}


def _without_card(  # noqa: PLR0913 - what a capture states
    call: Call, profile: Profile, interface: Interface, credential: Sequence[str], *, visible: bool, side: str | None
) -> ContractCaptured:
    """Return the capture of a send for which no card could be had: it freezes that there was none."""
    return ContractCaptured(
        peer=call.peer,
        peer_url="",
        fetch=None,
        raw_hash=None,
        document_hash=None,
        contract_hash=None,
        form=FORM,
        seed0=None,
        terms_hash=None,
        terms_form=TERMS_FORM,
        profile_hash=profile.hash,
        interface=interface,
        extensions=_bounded(call.extensions),
        credential=list(credential),
        credential_visible=visible,
        pin=None,
        caller="anonymous",
        side=side,
    )


def _bounded(extensions: Sequence[str]) -> list[str]:
    """Return the activated extensions that a record has room for; the message itself holds all."""
    return [recorded_uri(uri) for uri in extensions if len(uri) <= _MAX_NAME][:_MAX_EXTENSIONS]


def _skill_ids(card: Card) -> list[str]:
    document = cast("dict[str, Any]", card.document or {})
    skills = document.get("skills")
    if not isinstance(skills, list):
        return []
    entries = [cast("dict[str, Any]", skill) for skill in cast("list[object]", skills) if isinstance(skill, dict)]
    return [skill["id"] for skill in entries if isinstance(skill.get("id"), str)]


@dataclass(slots=True)
class Sent:
    """What a context sent last; whoever sees that it ended says so here, for every copy of the context."""

    peer: str
    task: str
    ended: bool = False


@dataclass(slots=True)
class TakenOver:
    """The extended card that the SDK's client is about to put in the place of the one that it was built from."""

    bound: BoundCard | None = None


_taken_over: ContextVar[TakenOver | None] = ContextVar("a2a_ledger_taken_over", default=None)
_OPEN = 8
"""Calls of one context that are kept at most: those that never left stay until others take their place."""

_open_calls: ContextVar[tuple[Call, ...]] = ContextVar("a2a_ledger_open_calls", default=())
_card_of_call: ContextVar[BoundCard | None] = ContextVar("a2a_ledger_card_of_call", default=None)
_last_sent: ContextVar[Sent | None] = ContextVar("a2a_ledger_last_sent", default=None)


def expect_extended() -> None:
    """Take note that the SDK's client is about to ask for an extended card, in this context."""
    _taken_over.set(TakenOver())


def expects_extended() -> bool:
    """Say whether the SDK's client asks for an extended card in this context, and none came yet."""
    expected = _taken_over.get()
    return expected is not None and expected.bound is None


def extended_came(bound: BoundCard) -> None:
    """Hand an extended card that was recorded up to the client that asked for it, if one did."""
    if (expected := _taken_over.get()) is not None:
        expected.bound = bound


def taken_over() -> BoundCard | None:
    """Return the extended card that came since this context expected one, once."""
    expected = _taken_over.get()
    _taken_over.set(None)
    return expected.bound if expected is not None else None


def call_on(bound: BoundCard | None) -> None:
    """Hand the card that the SDK's client makes a call on down to the transport; None: the call is over."""
    _card_of_call.set(bound)


def card_of_call() -> BoundCard | None:
    """Return the card that the call of this context is made on, where an interceptor said so."""
    return _card_of_call.get()


def open_call(call: Call) -> None:
    """Hand a call down to the transport, which runs in the same context or in a copy of it."""
    before = (open_ for open_ in _open_calls.get() if not open_.taken and open_.message_id != call.message_id)
    _open_calls.set((*before, call)[-_OPEN:])
    _last_sent.set(Sent(call.peer, call.task))


def last_sent(peer: str) -> str | None:
    """Return the task that this context sent to a peer last: what it does there until that ends is in its context."""
    sent = _last_sent.get()
    return sent.task if sent is not None and sent.peer == peer and not sent.ended else None


def forget_sent(peer: str) -> None:
    """Take note that what this context sent to a peer last has ended without a task."""
    sent = _last_sent.get()
    if sent is not None and sent.peer == peer:
        _last_sent.set(None)


def sent_ended(stream: str) -> None:
    """Take note, in a copy of the sender's context, that what was sent for this stream has ended without a task."""
    sent = _last_sent.get()
    if sent is not None and f"task:{sent.task}" == stream:
        sent.ended = True


def call_is_open() -> bool:
    """Say whether this context's newest call was not taken by a guarded transport."""
    calls = _open_calls.get()
    return bool(calls) and not calls[-1].taken


def take_call(message_id: str | None) -> Call | None:
    """Return the open call that a send of this message belongs to, once.

    Whatever else passes meanwhile leaves it open: an authentication flow asks for its token between the decision
    and the send.
    """
    call = open_call_of(message_id)
    if call is not None:
        call.taken = True
    return call


def open_call_of(message_id: str | None) -> Call | None:
    """Return the open call that a send of this message belongs to, and leave it open."""
    calls = (call for call in reversed(_open_calls.get()) if not call.taken)
    return next((call for call in calls if call.message_id == (message_id or "")), None)
