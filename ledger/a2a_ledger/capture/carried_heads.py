"""Heads of ledgers on calls: what a request and its answer are given, and what they bring (docs/format.md section 6.4).

Only a call to a peer that the deployment names is given a head, and only at the peer's own place: the origin of its
card, or of an interface that its card lists. Nothing here is recorded with the call, and nothing stops it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx

from a2a_ledger.address import origin_of, wire_url
from a2a_ledger.wire import HEAD_PARAMETER

if TYPE_CHECKING:
    from a2a_ledger.capture.desk import Desk
    from a2a_ledger.capture.exchange import Exchange
    from a2a_ledger.capture.server.incoming import Message, Send
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.wire import Headers

_NAME = HEAD_PARAMETER.lower()
_OCTETS = _NAME.encode()


def head_for(desk: Desk, exchange: Exchange, url: str) -> str | None:
    """Return the head that a request is given; None: it is given none.

    Args:
        desk: the guard's shared part.
        exchange: the request, recorded.
        url: where it goes; of gRPC, what the channel was made for.
    """
    peers = desk.ledger.peers
    if peers is None or exchange.outside or exchange.peer not in peers.trust.places:
        return None
    return peers.for_request(exchange.peer) if _is_its_place(desk, exchange.peer, url) else None


def _is_its_place(desk: Desk, peer: str, url: str) -> bool:
    """Say whether a url is the peer's own: a redirect may lead to somebody else, who is to learn nothing."""
    peers, place = desk.ledger.peers, _place(url)
    if peers is not None and place == _place(peers.trust.urls[peer]):
        return True
    cards = (bound for bound in desk.recent_cards() if bound.peer == peer)
    return any(place == _place(interface["url"]) for bound in cards for interface in bound.interfaces)


def _place(url: str) -> str:
    return origin_of(wire_url(url))


def head_came(desk: Desk, exchange: Exchange, headers: Headers) -> None:
    """Take in, behind the call, the head that came with its answer, if one did."""
    peers = desk.ledger.peers
    if peers is not None and (values := [value for name, value in headers if name.lower() == _NAME]):
        peers.answered(exchange.peer, values)


def with_head(request: httpx.Request, value: str | None) -> httpx.Request:
    """Return a request as it is sent; the caller's own stays as it was, for what follows a redirect is made of it."""
    if value is None:
        return request
    headers = [*request.headers.raw, (HEAD_PARAMETER.encode(), value.encode())]
    return httpx.Request(
        request.method, request.url, headers=headers, stream=request.stream, extensions=request.extensions
    )


def answering_with_head(ledger: ContractLedger, headers: Headers, send: Send) -> Send:
    """Return how an answer is sent that is given a head, where its request brought one of a peer.

    Args:
        ledger: the agent's own.
        headers: of the request.
        send: of the server.
    """
    peers = ledger.peers
    if peers is None:
        return send
    answer = peers.for_answer([value for name, value in headers if name.lower() == _NAME])
    if answer is None:
        return send

    async def sending(message: Message) -> None:
        if message["type"] != "http.response.start":
            await send(message)
            return
        kept = [(name, value) for name, value in message.get("headers", ()) if name.lower() != _OCTETS]
        await send({**message, "headers": [*kept, (_OCTETS, answer.value.encode())]})
        peers.take(answer.came)

    return sending
