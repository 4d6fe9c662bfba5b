"""Card fetches as events: what was asked, what was answered, and what the bytes say as a card."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from a2a_ledger.address import agent_card_url
from a2a_ledger.capture.attribution import card_source, peer_at, peer_of_card
from a2a_ledger.capture.redact import Secret, cut, cut_url
from a2a_ledger.capture.redacted import MAX_CREDENTIALS, MAX_SCHEME, bare_url, blobs_of, cut_text, see, text_blob
from a2a_ledger.card import read_card
from a2a_ledger.codec import canonical
from a2a_ledger.contract import FORM, contract_of, seed0, signature_of
from a2a_ledger.events import CardFetched, CardFetchFailed, Interface
from a2a_ledger.jsontext import lift
from a2a_ledger.wire import header

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a_ledger.capture.peerview import KeptCard
    from a2a_ledger.capture.recorder import FailureLike
    from a2a_ledger.card import Card
    from a2a_ledger.codec import Content
    from a2a_ledger.events import JsonObject
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.wire import Headers

_NOT_MODIFIED = 304
_SUCCESS = range(200, 300)
_INTERFACE_OCTETS = 24 * 1024
_MAX_AGE = re.compile(r"(?:^|,)\s*max-age\s*=\s*\"?(\d{1,10})\"?\s*(?=,|$)", re.IGNORECASE | re.ASCII)
_NO_CACHE = re.compile(r"(?:^|,)\s*no-(?:cache|store)\s*(?=,|=|$)", re.IGNORECASE)


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

    def for_purpose(self, purpose: str, *, validate: KeptCard | None, task: str | None = None) -> CardAsk:
        """Return the same question for another purpose, conditional if there is something to validate."""
        etag = validate.etag if validate else None
        since = validate.last_modified if validate and etag is None else None
        return replace(self, purpose=purpose, etag=etag, modified_since=since, task=task)


def card_ask_of(
    url: str, headers: Headers, *, source: str | None = None, schemes: Mapping[str, object] | None = None
) -> CardAsk:
    """Read a card GET as it was asked.

    Args:
        url: as asked.
        headers: of the request; its validators and its credentials are taken from them.
        source: where the card comes from, if its path does not say.
        schemes: scheme table of a card of this peer that is known already.
    """
    seen = see(headers, b"", url=url, schemes=schemes)
    peer = peer_of_card(url)
    names = sorted({cut_text(secret.scheme, MAX_SCHEME) for secret in seen.secrets})[:MAX_CREDENTIALS]
    return CardAsk(
        peer=peer.id,
        peer_url=bare_url(peer.url),
        full_url=url,
        source=source or card_source("GET", url) or "registry",
        caller="+".join(names) or "anonymous",
        etag=_stated(headers, "if-none-match"),
        modified_since=_stated(headers, "if-modified-since"),
        secrets=seen.secrets,
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
    """
    seen = see(headers, body)
    blobs = blobs_of(ask.full_url, seen, [*ask.secrets, *seen.secrets], at)
    url = bare_url(ask.full_url)
    answered = bare_url(answered_url or ask.full_url)
    if status not in _SUCCESS and not (status == _NOT_MODIFIED and kept is not None):
        event = _failed(ask, "status", answered)
        return replace(event, status=status), blobs
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
        etag=_stated(headers, "etag"),
        last_modified=_stated(headers, "last-modified"),
        max_age=_max_age(headers),
        age=_seconds(header(headers, "age")),
        no_cache=True if _NO_CACHE.search(header(headers, "cache-control") or "") else None,
        date=_stated(headers, "date"),
        task=ask.task,
    )
    if status == _NOT_MODIFIED and kept is not None:
        return _not_modified(fetched, kept), blobs
    return _read(fetched, read_card(body, content_type=header(headers, "content-type"))), blobs


def card_failure_event(
    ask: CardAsk, *, failure: FailureLike, at: ContractLedger
) -> tuple[CardFetchFailed, dict[str, Content]]:
    """Return the event of a card GET that got no answer."""
    event = replace(_failed(ask, failure.outcome, bare_url(ask.full_url)), tls_alert=failure.tls_alert)
    blobs = {"error": text_blob(failure.text, ask.secrets, at)}
    if "?" in ask.full_url:
        blobs["url"] = cut_url(ask.full_url, ask.secrets)
    return event, blobs


def configured_card_event(proto_json: bytes, *, at: ContractLedger) -> tuple[CardFetched, dict[str, Content]]:
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
    return _read(fetched, card), {"body": cut("body", proto_json, (), keep=at.settings.keep_body)}


def _failed(ask: CardAsk, outcome: str, answered_url: str) -> CardFetchFailed:
    return CardFetchFailed(
        peer=ask.peer,
        peer_url=ask.peer_url,
        url=bare_url(ask.full_url),
        answered_url=answered_url,
        source=ask.source,
        purpose=ask.purpose,
        caller=ask.caller,
        outcome=outcome,
        asked_etag=ask.etag,
        asked_modified_since=ask.modified_since,
        task=ask.task,
    )


def _read(fetched: CardFetched, card: Card) -> CardFetched:
    """Return the event with what the bytes say as a card."""
    contract = contract_of(card)
    listed = contract.interfaces if contract else None
    shown = _within(listed or [])
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
        signature=cast("JsonObject", signature_of(card)) if card.is_card else None,
    )


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
        not_modified=kept.bytes_of,
    )


def _within(interfaces: list[Interface]) -> list[Interface]:
    """Return as many interfaces, from the first, as a record has room for; the card itself is in the blob."""
    left, shown = _INTERFACE_OCTETS, list[Interface]()
    for one in interfaces:
        left -= len(canonical(cast("JsonObject", one)))
        if left < 0:
            break
        shown.append(one)
    return shown


def _stated(headers: Headers, name: str) -> str | None:
    """Return a header's text where it fits a record; longer ones are in the header's blob alone."""
    return lift(header(headers, name), set())


def _seconds(text: str | None) -> int | None:
    return int(text) if text and len(text) <= 10 and text.isascii() and text.isdigit() else None  # noqa: PLR2004 - digits of three centuries


def _max_age(headers: Headers) -> int | None:
    found = _MAX_AGE.search(header(headers, "cache-control") or "")
    return int(found[1]) if found else None
