"""Who read a card through the proxy, as the log tells it: marks that tell readers apart, and say nothing else.

Clients hold cards for days, and a proxy is started anew in between: what it knew of who read which card has to be in
the log. An address is never written there, and without the ledger's key nobody finds one by trying them all
(docs/format.md section 14).
"""

from __future__ import annotations

import asyncio
import hmac
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.address import normal_url
from a2a_ledger.codec import canonical

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_ledger.capture.card_record import CardAsk
    from a2a_ledger.capture.server.incoming import Scope
    from a2a_ledger.events import Json
    from a2a_ledger.ledger import ContractLedger

TELLING = frozenset({"forwarded", "user-agent", "x-forwarded-for"})
"""Headers that tell programs at one address apart."""

_OCTETS = frozenset(name.encode() for name in TELLING)
_DOMAIN = b"a2a-ledger/reader/v1\x00"
_KEY_OF = "readers"
"""Whose redaction key the marks are made with: of no peer, since one program may read the cards of several."""

_DIGITS = 32
_RUN = 16


class Client(NamedTuple):
    """Who sends a request, as far as it can be told."""

    address: str | None
    port: int | None
    telling: tuple[tuple[bytes, bytes], ...] = ()
    """The headers that tell programs at one address apart."""


NOBODY = Client(None, None)

asking: ContextVar[Client] = ContextVar("a2a_ledger_proxy_client", default=NOBODY)
"""The client whose request is on its way."""


def client_of(scope: Scope, headers: Sequence[tuple[bytes, bytes]]) -> Client:
    """Tell who sends a request."""
    telling = tuple((name.lower(), value) for name, value in headers if name.lower() in _OCTETS)
    host, port = scope.get("client") or (None, None)
    return Client(host, port, telling)


class Reader(NamedTuple):
    """Who reads a card, as marks."""

    program: str
    """Of the address without its port, and the headers that tell programs apart."""
    connection: str | None
    """Of address, port and the process that it led to: none outlives that. None: not known."""


class Readers:
    """Marks the clients of one proxy."""

    def __init__(self, ledger: ContractLedger, upstream: str, *, as_one: bool) -> None:
        """Mark clients.

        Args:
            ledger: has the key.
            upstream: base url of the agent: who reads the cards of another one is another reader.
            as_one: all clients are one reader, as mode "enforce" takes them.
        """
        self._ledger = ledger
        self._upstream = normal_url(upstream)
        self._as_one = as_one
        self._key = b""
        self._run = ledger.entropy(_RUN).hex()

    async def prepare(self) -> None:
        """Get the key, once; the first time of all it is made, and that waits for the disk.

        Raises:
            LedgerError: it cannot be had.
        """
        if not self._key:
            _, self._key = await asyncio.to_thread(self._ledger.store.keys.redaction_key, _KEY_OF)

    @property
    def everybody(self) -> str:
        """Return the mark of all clients in mode "enforce"."""
        return self._mark([self._upstream])

    def of(self, client: Client) -> Reader:
        """Return who a client is."""
        if self._as_one:
            return Reader(self.everybody, None)
        telling: list[Json] = [[name.decode("latin-1"), value.decode("latin-1")] for name, value in client.telling]
        program = self._mark([self._upstream, client.address or "", telling])
        if client.port is None:
            return Reader(program, None)
        return Reader(program, self._mark([self._run, client.address or "", client.port]))

    def sign(self, ask: CardAsk) -> CardAsk:
        """Return a question for a card with the marks of the client whose request is on its way."""
        reader = self.of(asking.get())
        return replace(ask, reader=reader.program, connection=reader.connection)

    def _mark(self, said: list[Json]) -> str:
        """Return a mark; while the ledger fails to give its key, one that holds for this process alone."""
        key = self._key or self._run.encode()
        return hmac.digest(key, _DOMAIN + canonical(said), "sha256").hex()[:_DIGITS]
