"""Cards that name the proxy in the place of the agent: only where asked for, and recorded as what was served.

A signature that the agent gave does not cover what is written here. It is left out, never left standing: a client
that checks signatures would take the card for forged, and one that only looks for one would trust what nobody
signed. What was fetched is recorded as it came, signature and all.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, cast

from a2a_ledger.capture.attribution import card_source
from a2a_ledger.capture.coding import unpacked_of
from a2a_ledger.capture.method_card import CARD_METHOD
from a2a_ledger.capture.proxy.addresses import not_covered
from a2a_ledger.card import read_card
from a2a_ledger.wire import parse_request

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_ledger.capture.proxy.addresses import Addresses
    from a2a_ledger.capture.server.incoming import Incoming
    from a2a_ledger.capture.server.served_cards import ServedCards
    from a2a_ledger.events import Ref

    RawHeaders = list[tuple[bytes, bytes]]

_log = logging.getLogger(__name__)

_LISTS = ("supportedInterfaces", "additionalInterfaces", "supported_interfaces", "additional_interfaces")
_SUCCESS = range(200, 300)
_REDIRECTS = range(300, 400)
_OF_OCTETS = {b"content-encoding", b"content-length"}
_MAY_CALL = b"xtended"
"""What every spelling of the method that answers with a card has in it."""


class CardRewriter:
    """Rewrites the cards that one proxy passes."""

    def __init__(
        self,
        addresses: Addresses,
        served: ServedCards | None,
        fetch_of: Callable[[str], Ref | None] = lambda _: None,
    ) -> None:
        """Rewrite cards.

        Args:
            addresses: the agent's and the proxy's.
            served: records them; None: whoever stands in front of the proxy does.
            fetch_of: finds the recorded fetch of the card at a url of the agent.
        """
        self._addresses = addresses
        self._served = served
        self._fetch_of = fetch_of
        self._said: set[str] = set()

    def concerns(self, request: Incoming, status: int, headers: RawHeaders) -> bool:
        """Say whether an answer may hold a card, or sends the client to the agent itself."""
        if status in _REDIRECTS:
            return any(name.lower() == b"location" for name, _ in headers)
        return status in _SUCCESS and (self._is_card(request) or self._is_call(request))

    async def rewritten(
        self, request: Incoming, status: int, headers: RawHeaders, body: bytes
    ) -> tuple[RawHeaders, bytes]:
        """Return an answer with the proxy's urls; one that holds no card that can be read comes back as it is."""
        if status in _REDIRECTS:
            return [(k, self._location(v) if k.lower() == b"location" else v) for k, v in headers], body
        plain = unpacked_of([(k.decode("latin-1"), v.decode("latin-1")) for k, v in headers], body)
        if plain is None:
            self._say("a card came in a content coding that cannot be read: it passes as it is")
            return headers, body
        is_card = self._is_card(request)
        new = self._of(plain) if is_card else self._of_answer(plain)
        if new is None:
            return headers, body
        if self._served is not None:
            url = request.url if is_card else f"{request.url.rstrip('/')}/extendedAgentCard"
            document = new if is_card else _octets(json.loads(new)["result"])
            fetch = self._fetch_of(str(self._addresses.upstream_url(request.target)))
            await self._served.served(url, status, document, headers=request.headers, fetch=fetch)
        kept = [(name, value) for name, value in headers if name.lower() not in _OF_OCTETS]
        return [*kept, (b"content-length", str(len(new)).encode())], new

    # ---- inside

    def _is_card(self, request: Incoming) -> bool:
        return card_source(request.method, request.url) is not None

    def _is_call(self, request: Incoming) -> bool:
        body = request.body.head
        if request.body.tail is not None or _MAY_CALL not in body:
            return False
        leg = parse_request(request.method, request.url, request.headers, body)
        return leg.method == CARD_METHOD and leg.binding == "JSONRPC"

    def _of_answer(self, body: bytes) -> bytes | None:
        """Return a JSON-RPC answer whose result is a card, rewritten; None where it is none."""
        try:
            answer: object = json.loads(body)
        except ValueError:
            return None
        if not isinstance(answer, dict) or not isinstance(cast("dict[str, Any]", answer).get("result"), dict):
            return None
        members = cast("dict[str, Any]", answer)
        new = self._of(_octets(members["result"]))
        return None if new is None else _octets({**members, "result": json.loads(new)})

    def _of(self, raw: bytes) -> bytes | None:
        """Return a card rewritten; None where it is none, or reads in two ways."""
        card = read_card(raw)
        if not card.is_card or "duplicate-keys" in card.flags:
            self._say(f"not rewritten, for it is no card that reads in one way: {card.problem}")
            return None
        document = cast("dict[str, Any]", json.loads(raw.decode("utf-8-sig")))
        holders = [document, *(one for name in _LISTS for one in _objects(document.get(name)))]
        for holder in holders:
            url = holder.get("url")
            if isinstance(url, str) and (ours := self._addresses.to_public(url)) is not None:
                holder["url"] = ours
            elif isinstance(url, str):
                self._say_elsewhere([url])
        if document.pop("signatures", None) is not None:
            self._say("the card is signed: the rewritten one is served without its signatures, which do not cover it")
        return _octets(document)

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


def _objects(value: object) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        return []
    return [cast("dict[str, Any]", one) for one in cast("list[object]", value) if isinstance(one, dict)]


def _octets(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
