"""Card fetches as events: what was asked, what was answered, and what the bytes say as a card."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from a2a_ledger.address import agent_card_url
from a2a_ledger.capture.attribution import card_source, peer_at, peer_of_card
from a2a_ledger.capture.card_identity import CardIdentity, key_of, selecting, variant_of
from a2a_ledger.capture.card_signature import judged_signature
from a2a_ledger.capture.credentials import ANYWHERE, ApiKeyPlace, find_secrets, place_text
from a2a_ledger.capture.known_schemes import schemes_in
from a2a_ledger.capture.outside import said_in
from a2a_ledger.capture.redact import Secret, cut, cut_url, starred, wanted_of
from a2a_ledger.capture.redacted import (
    MAX_CREDENTIALS,
    MAX_SCHEME,
    bare_url,
    blobs_of,
    credentials_of,
    cut_text,
    recorded_url,
    see,
    text_blob,
    url_of,
)
from a2a_ledger.capture.served_cookies import without_served
from a2a_ledger.card import read_card
from a2a_ledger.codec import Content, canonical
from a2a_ledger.contract import FORM, contract_of, seed0
from a2a_ledger.events import CardFetched, CardFetchFailed, Interface
from a2a_ledger.wire import header
from a2a_ledger.wire.caching import forbids_keeping, max_age, seconds
from a2a_ledger.wire.jsontext import lift

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from a2a_ledger.capture.attribution import Peer
    from a2a_ledger.capture.peerview import KeptCard
    from a2a_ledger.capture.recorder import FailureLike
    from a2a_ledger.capture.redact import Redactor
    from a2a_ledger.capture.route import OverCard
    from a2a_ledger.capture.served_cookies import ServedCookies
    from a2a_ledger.card import Card
    from a2a_ledger.events import Credential, Json, JsonObject
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.wire import Headers

UNNAMED = "unnamed"
"""The scheme name of the mark of a secret that no card names."""

_NOT_MODIFIED = 304
_SUCCESS = range(200, 300)
_INTERFACE_OCTETS = 24 * 1024
_MAX_PLACES = 32
_MAX_PLACE = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class CardAsk:
    """One card GET: whose card, which one, as whom, what for, and with which validator."""

    peer: str
    peer_url: str
    full_url: str
    """As asked, with its query."""
    source: str
    """well-known extended registry configured"""
    caller: str
    """anonymous, or the credential's scheme names joined by +"""
    purpose: str = "application"
    etag: str | None = None
    modified_since: str | None = None
    task: str | None = None
    secrets: tuple[Secret, ...] = ()
    """What is cut out of the record."""
    telling: tuple[Secret, ...] = ()
    """Those of them by which its asker is told from others: not the cookies that a server set."""
    selecting: Secret | None = None
    """Its other headers that may select a card, see `card_identity.selecting`."""
    version: str | None = None
    """Its A2A-Version."""
    reader: str | None = None
    """Mark of the program that asks through a proxy, and of its connection; see `proxy.readers`."""
    connection: str | None = None
    method: str = ""
    """The method whose answer is the card, as it was spelled, and its tenant; "" of a GET."""

    @property
    def variant(self) -> str | None:
        """Return what tells cards at one url apart, see `card_identity.variant_of`."""
        return variant_of(self.full_url, self.secrets, self.method)

    @property
    def conditional(self) -> bool:
        """Say whether it may be answered by 304."""
        return self.etag is not None or self.modified_since is not None

    @property
    def marked(self) -> tuple[Secret, ...]:
        """Return what is marked in the record: whose marks differ, asks for another card."""
        named = tuple(replace(secret, scheme=secret.scheme or UNNAMED) for secret in self.telling)
        return named if self.selecting is None else (self.selecting, *named)

    def key(self, at: ContractLedger) -> CardIdentity:
        """Return what the card asked for is known by."""
        marks = credentials_of(self.marked, self.peer, at)
        return key_of(
            {
                "source": self.source,
                "url": recorded_url(self.full_url, self.secrets),
                "variant": self.variant,
                "caller": self.caller,
                "credential": cast("Json", marks),
                "asked_version": self.version,
            }
        )

    def for_purpose(
        self, purpose: str, *, validate: KeptCard | None, task: str | None = None, as_asked: bool = False
    ) -> CardAsk:
        """Return the same question for another purpose, conditional if there is something to validate.

        Args:
            purpose: see `CardFetched`.
            validate: the kept answer to validate.
            task: the task in whose context it is asked.
            as_asked: without one, leave the asker's own validators as they are.
        """
        if validate is None and as_asked:
            return replace(self, purpose=purpose, task=task)
        etag = validate.etag if validate else None
        since = validate.last_modified if validate and etag is None else None
        return replace(self, purpose=purpose, etag=etag, modified_since=since, task=task)


def card_ask_of(  # noqa: PLR0913 - what is known of a question, all named at the call
    url: str,
    headers: Headers,
    *,
    peer: Peer | None = None,
    source: str | None = None,
    schemes: Mapping[str, object] | None = None,
    places: Iterable[ApiKeyPlace] = (),
    served: ServedCookies | None = None,
) -> CardAsk:
    """Read a card GET as it was asked.

    A cookie takes no part in the caller class: a peer could change it by setting one, or by naming one in its card.

    Args:
        url: as asked.
        headers: of the request; its validators and its credentials are taken from them.
        peer: whose card it is, if its url does not say.
        source: where the card comes from, if its path does not say.
        schemes: scheme table of a card of this peer that is known already.
        places: where else some card of this peer puts an API key.
        served: the cookies that servers set, which do not tell who asks.
    """
    known = list(places)
    seen = see(headers, b"", url=url, schemes=schemes, places=known)
    telling = tuple(find_secrets(without_served(headers, served, known), url, schemes or {}, known))
    peer = peer or peer_of_card(url)
    named = {cut_text(secret.scheme, MAX_SCHEME) for secret in telling if secret.scheme not in {"", "cookie"}}
    names = sorted(named)[:MAX_CREDENTIALS]
    wanted = wanted_of(seen.secrets)
    return CardAsk(
        peer=peer.id,
        peer_url=bare_url(peer.url),
        full_url=url,
        source=source or card_source("GET", url) or "registry",
        caller="+".join(names) or "anonymous",
        etag=_stated(headers, "if-none-match", wanted),
        modified_since=_stated(headers, "if-modified-since", wanted),
        secrets=seen.secrets,
        telling=telling,
        selecting=selecting(headers),
        version=_stated(headers, "a2a-version"),
    )


def card_event(  # noqa: PLR0913 - see message_event
    ask: CardAsk,
    *,
    status: int,
    headers: Headers,
    body: bytes,
    at: ContractLedger,
    kept: KeptCard | None = None,
    answered_url: str | None = None,
    is_unread: bool = False,
    over: OverCard | None = None,
    redactor: Redactor | None = None,
) -> tuple[CardFetched | CardFetchFailed, dict[str, Content]]:
    """Return the event of an answer to a card GET.

    A 2xx is `card.fetched.v1`, whatever its body is; so is a 304 for a card that is kept. Everything
    else is `card.fetch_failed.v1`.

    Args:
        ask: what was asked.
        status: HTTP status.
        headers: of the answer.
        body: exact bytes after content decoding.
        at: see `message_event`.
        kept: the answer that a 304 speaks of.
        answered_url: where redirects led.
        is_unread: the body is in a coding that cannot be taken off: it is withheld, and says nothing.
        over: what all of it is, where `body` is only its beginning.
        redactor: the user's own redaction.

    The body of a card is cut by exact match of what was asked with, and by nothing that it or its answer says: the
    server must not be able to punch holes into its own card. Where none came, nothing tells a key in the url from
    what else its query says: all of that is cut, and so is what a `Location` says in its query.
    """
    card = read_card(b"" if is_unread else body, content_type=header(headers, "content-type"))
    card = over.card(body) if over is not None and not is_unread else card
    seen = see(headers, b"")
    secrets = [*ask.secrets, *seen.secrets]
    if card.contract is None and kept is None:
        secrets += said_in([ask.full_url, *(value for name, value in headers if name.lower() == "location")])
    elif "?" in ask.full_url:  # an API key's place may be named by this very card
        secrets += find_secrets((), ask.full_url, {}, schemes_in(card).places)
    blobs = blobs_of(url_of(ask.full_url, secrets, redactor), seen, secrets, at, redactor)
    if body:
        role, known = ("card" if status in _SUCCESS else "body"), (ask.secrets if card.is_card else secrets)
        spans, keep = ([(0, len(body))] if is_unread else []), at.settings.keep_body
        blobs["body"] = cut(role, body, known, places=spans, redactor=redactor, keep=keep, is_error=role == "body")
        if over is not None:
            blobs["body"] = Content((*blobs["body"].parts, over.tail), kept="head")
    wanted = wanted_of(secrets)
    url = recorded_url(ask.full_url, ask.secrets)
    answered = recorded_url(answered_url or ask.full_url, ask.secrets)
    if status not in _SUCCESS and not (status == _NOT_MODIFIED and kept is not None):
        event = card_failed(ask, "status", at)
        return replace(event, status=status, answered_url=answered), blobs
    fetched = CardFetched(
        peer=ask.peer,
        peer_url=ask.peer_url,
        url=url,
        answered_url=answered,
        source=ask.source,
        purpose=ask.purpose,
        caller=ask.caller,
        status=status,
        flags=[],
        form=FORM,
        asked_etag=ask.etag,
        asked_modified_since=ask.modified_since,
        etag=_stated(headers, "etag", wanted),
        last_modified=_stated(headers, "last-modified", wanted),
        max_age=max_age(header(headers, "cache-control")),
        age=seconds(header(headers, "age")),
        no_cache=forbids_keeping(header(headers, "cache-control")) or None,
        date=_stated(headers, "date", wanted),
        task=ask.task,
        credential=_marks(ask, at),
        variant=ask.variant,
        asked_version=ask.version,
        reader=ask.reader,
        connection=ask.connection,
    )
    if status == _NOT_MODIFIED and kept is not None:
        return _not_modified(fetched, kept), blobs
    return _read(fetched, card, wanted_of(ask.secrets), at), blobs


def card_failure_event(
    ask: CardAsk, *, failure: FailureLike, at: ContractLedger, redactor: Redactor | None = None
) -> tuple[CardFetchFailed, dict[str, Content]]:
    """Return the event of a card GET that got no answer."""
    event = replace(card_failed(ask, failure.outcome, at), tls_alert=failure.tls_alert)
    secrets = [*ask.secrets, *said_in([ask.full_url])]
    blobs = {"error": text_blob(failure.text, secrets, at, redactor)}
    if event.url != ask.full_url:
        blobs["url"] = cut_url(ask.full_url, secrets, redactor=redactor)
    return event, blobs


def configured_card_event(
    proto_json: bytes, *, at: ContractLedger, redactor: Redactor | None = None
) -> tuple[CardFetched, dict[str, Content]]:
    """Return the event of a card that no recorded fetch brought: source `configured`, flag `lossy`.

    Its peer is the one whose public card would lie at the origin of its first interface.
    """
    card = read_card(proto_json)
    contract = contract_of(card)
    listed = contract.interfaces if contract else []
    peer = peer_at(agent_card_url(listed[0]["url"] if listed else ""))
    fetched = CardFetched(
        peer=peer.id,
        peer_url=bare_url(peer.url),
        url=bare_url(peer.url),
        answered_url=bare_url(peer.url),
        source="configured",
        purpose="application",
        caller="anonymous",
        status=200,
        flags=["lossy"],
        form=FORM,
    )
    body = cut("card", proto_json, (), redactor=redactor, keep=at.settings.keep_body)
    return _read(fetched, card, (), at), {"body": body}


def _marks(ask: CardAsk, at: ContractLedger) -> list[Credential] | None:
    return credentials_of(ask.marked, ask.peer, at)


def card_failed(ask: CardAsk, outcome: str, at: ContractLedger) -> CardFetchFailed:
    """Return the event of a card that was asked for and did not come, as far as the question tells it."""
    url = recorded_url(ask.full_url, ask.secrets)
    return CardFetchFailed(
        peer=ask.peer,
        peer_url=ask.peer_url,
        url=url,
        answered_url=url,
        source=ask.source,
        purpose=ask.purpose,
        caller=ask.caller,
        outcome=outcome,
        asked_etag=ask.etag,
        asked_modified_since=ask.modified_since,
        task=ask.task,
        credential=_marks(ask, at),
        variant=ask.variant,
        asked_version=ask.version,
    )


def _read(fetched: CardFetched, card: Card, wanted: Sequence[bytes], at: ContractLedger) -> CardFetched:
    """Return the event with what the bytes say as a card, without the octets of `wanted`."""
    contract = contract_of(card)
    listed = contract.interfaces if contract else None
    shown = [_without(interface, wanted) for interface in _within(listed or [])]
    more = ["interfaces-cut"] if listed and len(shown) < len(listed) else []
    return replace(
        fetched,
        flags=sorted({*fetched.flags, *card.flags, *more}),
        form=contract.form if contract else FORM,
        raw_hash=card.raw_hash,
        document_hash=card.document_hash,
        contract_hash=contract.hash if contract else None,
        seed0=seed0(card),
        dialect=card.dialect,
        interfaces=shown if listed is not None else None,
        api_keys=_places(card, wanted) or None,
        signature=judged_signature(card, fetched.peer, at, wanted, lossy="lossy" in fetched.flags)
        if card.is_card
        else None,
    )


def _places(card: Card, wanted: Sequence[bytes]) -> list[str]:
    """Return where a card puts API keys, as a record holds it; of what does not fit, that it may be anywhere."""
    places = [place_text(place) for place in schemes_in(card).places]
    fit = [text for text in places if len(text) <= _MAX_PLACE and starred(text, wanted) == text]
    return sorted({*fit[:_MAX_PLACES], *([place_text(ANYWHERE)] if len(places) > len(fit[:_MAX_PLACES]) else [])})


def _not_modified(fetched: CardFetched, kept: KeptCard) -> CardFetched:
    """Return a 304 with what is said of the bytes that it points to; it is the server's claim that they stand."""
    return replace(
        fetched,
        flags=sorted(kept.flags),
        form=kept.form,
        raw_hash=kept.raw_hash,
        document_hash=kept.document_hash,
        contract_hash=kept.contract_hash,
        seed0=kept.seed0,
        interfaces=list(kept.interfaces) or None,
        signature=kept.signature,
        not_modified=kept.bytes_of,
    )


def _without(interface: Interface, wanted: Sequence[bytes]) -> Interface:
    return {**interface, "url": starred(interface["url"], wanted)} if wanted else interface


def _within(interfaces: list[Interface]) -> list[Interface]:
    """Return as many interfaces, from the first, as a record has room for; the card itself is in the blob."""
    left, shown = _INTERFACE_OCTETS, list[Interface]()
    for one in interfaces:
        left -= len(canonical(cast("JsonObject", one)))
        if left < 0:
            break
        shown.append(one)
    return shown


def _stated(headers: Headers, name: str, wanted: Sequence[bytes] = ()) -> str | None:
    """Return a header's text where it fits a record; longer ones are in the header's blob alone."""
    text = header(headers, name)
    return lift(starred(text, wanted) if text else text, set())
