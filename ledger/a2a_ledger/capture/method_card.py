"""Cards that a method answers with: `GetExtendedAgentCard` of A2A 1.0, `agent/getAuthenticatedExtendedCard` of 0.3.

The card is the value of `result`, its octets as they stand in the body (docs/format.md section 7.8). No conditional
request exists for a method, and HTTP's validators and ages are not those of what a POST answers: none is recorded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import httpx

from a2a_ledger.capture.card_record import card_ask_of, card_event, card_failed
from a2a_ledger.capture.json_slice import member_octets
from a2a_ledger.capture.redacted import without_secrets
from a2a_ledger.capture.route import Route

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_ledger.capture.attribution import Peer
    from a2a_ledger.capture.card_record import CardAsk
    from a2a_ledger.capture.cards import Fetched
    from a2a_ledger.capture.credentials import ApiKeyPlace
    from a2a_ledger.capture.redact import Redactor
    from a2a_ledger.capture.served_cookies import ServedCookies
    from a2a_ledger.codec import Content
    from a2a_ledger.events import CardFetched, CardFetchFailed, Ref
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.wire import Headers, Leg

AGAIN = "a2a_ledger_card_again"
"""Request extension of a call that the guard makes for a card of its own accord; its value is an `Again`."""

CARD_METHOD = "GetExtendedAgentCard"
"""The 1.0 name of the method that answers with a card."""

_SUCCESS = range(200, 300)


def answers_with_card(leg: Leg) -> bool:
    """Say whether a request calls a method whose answer is a card."""
    return leg.method == CARD_METHOD and leg.binding == "JSONRPC"


@dataclass(slots=True)
class Again:
    """A question of the guard's own, and what came of it."""

    ask: CardAsk
    fetched: Fetched | None = None


@dataclass(slots=True)
class MethodRoute(Route):
    """How a method is called for a card: as the application did it last."""

    body: bytes = b""

    async def call(self, ask: CardAsk) -> Fetched:
        """Call the method again; request, answer and card are recorded as those of the application are.

        Raises:
            httpx.TransportError: the client is closed, or the call passed unrecorded.
        """
        client = self.client() if self.client is not None else None
        if client is None or client.is_closed:
            raise httpx.TransportError("the httpx client that asked for this card is closed")
        again = Again(ask)
        headers = [pair for pair in self.headers if pair[0].lower() != "content-length"]
        request = client.build_request(
            "POST",
            ask.full_url,
            headers=self.beside_client(client, headers),
            content=self.body,
            extensions={**self.extensions, AGAIN: again},
        )
        try:
            await client.send(request)
        except Exception:  # a hook of the client too: what was answered is recorded
            if again.fetched is None:
                raise
        if again.fetched is None:
            raise httpx.TransportError("what the method answered is not recorded")
        return again.fetched


def method_ask(
    leg: Leg,
    headers: Headers,
    *,
    peer: Peer,
    places: Iterable[ApiKeyPlace] = (),
    served: ServedCookies | None = None,
) -> CardAsk:
    """Read a call for a card as it was asked.

    Args:
        leg: the request.
        headers: of it.
        peer: whose card it is.
        places: where else some card of this peer puts an API key.
        served: see `card_ask_of`.
    """
    ask = card_ask_of(leg.url, headers, peer=peer, source="extended", places=places, served=served)
    clean = without_secrets(leg, ask.secrets)
    tenant = f"?tenant={clean.tenant}" if clean.tenant else ""
    return replace(ask, etag=None, modified_since=None, method=f"{clean.method_spelled}{tenant}")


def answer_with(card: bytes, asked: bytes) -> bytes:
    """Return the answer of a method call that gives a card which is kept, its octets as they came."""
    identity = member_octets(asked, "id") or b"null"
    return b'{"jsonrpc":"2.0","id":' + identity + b',"result":' + card + b"}"


def card_in(body: bytes) -> bytes:
    """Return the octets of the card in an answer; all of it where it holds none, or reads in two ways."""
    octets = member_octets(body, "result")
    return body if octets is None else octets


def method_card_event(  # noqa: PLR0913 - see card_event
    ask: CardAsk,
    *,
    status: int,
    card: bytes,
    failed: bool,
    within: Ref,
    at: ContractLedger,
    redactor: Redactor | None = None,
) -> tuple[CardFetched | CardFetchFailed, dict[str, Content]]:
    """Return the event of what a method answered when it was asked for a card.

    Args:
        ask: what was asked.
        status: HTTP status.
        card: see `card_in`.
        failed: the answer is an error in the terms of the method.
        within: the message that holds it.
        at: see `message_event`.
        redactor: the user's own redaction.
    """
    if status not in _SUCCESS or failed:
        event = card_failed(ask, "error" if status in _SUCCESS else "status", at)
        return replace(event, status=status, within=within), {}
    fetched, blobs = card_event(ask, status=status, headers=(), body=card, at=at, redactor=redactor)
    return replace(fetched, within=within), blobs
