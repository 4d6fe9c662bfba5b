"""Cards that name the proxy in the place of the agent: only where asked for, and recorded as what was served.

A signature that the agent gave does not cover what is written here. It is left out, never left standing: a client
that checks signatures would take the card for forged, and one that only looks for one would trust what nobody
signed. What was fetched is recorded as it came, signature and all.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from a2a_ledger.capture.attribution import card_source
from a2a_ledger.capture.coding import unpacked_of
from a2a_ledger.capture.json_slice import member_octets
from a2a_ledger.capture.method_card import CARD_METHOD, card_in
from a2a_ledger.capture.proxy.addresses import not_covered
from a2a_ledger.capture.proxy.card_headers import CardHeaders
from a2a_ledger.capture.proxy.card_octets import rewritten_card
from a2a_ledger.capture.proxy.clients import given
from a2a_ledger.card import read_card
from a2a_ledger.making import SOFTWARE
from a2a_ledger.wire import parse_request

if TYPE_CHECKING:
    from a2a_ledger.capture.proxy.addresses import Addresses
    from a2a_ledger.capture.server.incoming import Incoming
    from a2a_ledger.capture.server.served_cards import ServedCards

    RawHeaders = list[tuple[bytes, bytes]]

_log = logging.getLogger(__name__)

_SUCCESS = range(200, 300)
_REDIRECTS = range(300, 400)
_NOT_MODIFIED = 304
_MAY_CALL = b"xtended"
"""What every spelling of the method that answers with a card has in it."""


class CardRewriter:
    """Rewrites the cards that one proxy passes."""

    def __init__(self, addresses: Addresses, served: ServedCards | None) -> None:
        """Rewrite cards.

        Args:
            addresses: the agent's and the proxy's.
            served: records them; None: whoever stands in front of the proxy does.
        """
        self._addresses = addresses
        self._served = served
        self._headers = CardHeaders(addresses.upstream, addresses.public, SOFTWARE)
        self._said: set[str] = set()

    def asked(self, request: Incoming) -> RawHeaders:
        """Return the headers of a request as the agent is to see them: it is asked about its own card, not ours."""
        return self._headers.asked(request.raw_headers) if self._asks_for_card(request) else request.raw_headers

    def concerns(self, request: Incoming, status: int, headers: RawHeaders) -> bool:
        """Say whether an answer may hold a card, or speaks of one, or sends the client to the agent itself."""
        if self._is_told_of(request, status):
            return True
        if status in _REDIRECTS:
            return any(name.lower() == b"location" for name, _ in headers)
        return status in _SUCCESS and (self._is_card(request) or self._is_call(request))

    async def rewritten(
        self, request: Incoming, status: int, headers: RawHeaders, body: bytes
    ) -> tuple[RawHeaders, bytes]:
        """Return an answer with the proxy's urls; one that holds no card that can be read comes back as it is."""
        if self._is_told_of(request, status):
            return self._headers.answered(headers), body
        if status in _REDIRECTS:
            return [(k, self._location(v) if k.lower() == b"location" else v) for k, v in headers], body
        plain = unpacked_of([(k.decode("latin-1"), v.decode("latin-1")) for k, v in headers], body)
        if plain is None:
            self._say("a card came in a content coding that cannot be read: it passes as it is")
            return headers, body
        is_card = self._is_card(request)
        new = self._of(plain, plain) if is_card else self._of_answer(plain)
        if new is None:
            return headers, body
        if self._served is not None:
            url = request.url if is_card else f"{request.url.rstrip('/')}/extendedAgentCard"
            document = new if is_card else card_in(new)
            await self._served.served(url, status, document, headers=request.headers, fetch=given.get())
        return [*self._headers.answered(headers), (b"content-length", str(len(new)).encode())], new

    # ---- inside

    def _is_card(self, request: Incoming) -> bool:
        return card_source(request.method, request.url) is not None

    def _asks_for_card(self, request: Incoming) -> bool:
        return request.method in {"GET", "HEAD"} and card_source("GET", request.url) is not None

    def _is_told_of(self, request: Incoming, status: int) -> bool:
        """Say whether an answer speaks of a card that it does not hold: a 304, or what HEAD is told."""
        told = status == _NOT_MODIFIED or (request.method == "HEAD" and status in _SUCCESS)
        return told and self._asks_for_card(request)

    def _is_call(self, request: Incoming) -> bool:
        body = request.body.head
        if request.body.tail is not None or _MAY_CALL not in body:
            return False
        leg = parse_request(request.method, request.url, request.headers, body)
        return leg.method == CARD_METHOD and leg.binding == "JSONRPC"

    def _of_answer(self, body: bytes) -> bytes | None:
        """Return a JSON-RPC answer whose result is a card, rewritten; None where it is none."""
        card = member_octets(body, "result")
        return self._of(card, body, within="result") if card is not None and card.startswith(b"{") else None

    def _of(self, card: bytes, body: bytes, *, within: str | None = None) -> bytes | None:
        """Return a body with its card rewritten; None where that is none, or reads in two ways."""
        read = read_card(card)
        if not read.is_card or "duplicate-keys" in read.flags:
            self._say(f"not rewritten, for it is no card that reads in one way: {read.problem}")
            return None
        new = rewritten_card(body, self._addresses.to_public, within=within)
        if new is None:
            return None
        self._say_elsewhere(new.elsewhere)
        if new.was_signed:
            self._say("the card is signed: the rewritten one is served without its signatures, which do not cover it")
        return new.octets

    def _location(self, value: bytes) -> bytes:
        ours = self._addresses.to_public(value.decode("latin-1"))
        return value if ours is None else ours.encode("latin-1")

    def _say_elsewhere(self, urls: list[str]) -> None:
        for url in not_covered(self._addresses, urls):
            self._say(f"{url} is not under {self._addresses.upstream}: clients that go there go past the proxy")

    def _say(self, what: str) -> None:
        """Log something about the agent's cards once."""
        if what not in self._said:
            self._said.add(what)
            _log.warning("--rewrite-card: %s", what)
