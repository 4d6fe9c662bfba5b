"""The recording reverse proxy: an agent in any language, recorded from the outside (docs/format.md section 14).

    a2a-ledger --ledger audit proxy --upstream https://agent.example --listen 127.0.0.1:9000

By default it stands on the client's side: what passes is recorded as a guarded client records it. On the agent's
side the same forwarding stands behind the agent's middleware. The door is `proxy_app`.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from a2a_ledger.address import CARD_PATH
from a2a_ledger.capture.asgi import ContractLedgerMiddleware
from a2a_ledger.capture.desk import Desk
from a2a_ledger.capture.proxy.addresses import Addresses
from a2a_ledger.capture.proxy.forwarding import Forwarder
from a2a_ledger.capture.proxy.lanes import Lanes
from a2a_ledger.capture.proxy.recording import ProxyTransport
from a2a_ledger.capture.proxy.rewriting import CardRewriter
from a2a_ledger.capture.server.served_cards import ServedCards

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import httpx

    from a2a_ledger.capture.redact import Redactor
    from a2a_ledger.capture.server.incoming import AsgiApp, Receive, Scope, Send
    from a2a_ledger.ledger import ContractLedger

__all__ = ["Proxy", "proxy_app"]


_log = logging.getLogger(__name__)

_ENDING_SECONDS = 5.0
"""How long exchanges that were stopped may take to record how they ended."""


class Proxy:
    """A proxy, ready to be served; close it when it is served no more."""

    def __init__(
        self,
        app: AsgiApp,
        transport: httpx.AsyncBaseTransport,
        settled: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Serve an application that sends on by a transport.

        Args:
            app: the application.
            transport: closed with the proxy.
            settled: waits for what is still being recorded, if closing the transport does not.
        """
        self.app = app
        self.transport = transport
        self._settled = settled
        self._running: set[asyncio.Task[object]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        here = asyncio.current_task()
        if here is None:
            raise RuntimeError("expected to be served by a task of an event loop")
        self._running.add(here)
        try:
            await self.app(scope, receive, send)
        finally:
            self._running.discard(here)

    def stop(self) -> None:
        """Stop what is running; each exchange records that it was stopped."""
        for one in self._running:
            if not one.cancelling():
                one.cancel("the proxy was stopped")

    async def aclose(self) -> None:
        """Stop what is still running, wait until it is recorded how it ended, and close the connections to the agent.

        An exchange that does not end within five seconds is given up, and a record half a minute later: the process
        must be able to end.
        """
        self.stop()
        if running := list(self._running):
            _, late = await asyncio.wait(running, timeout=_ENDING_SECONDS)
            if late:
                _log.error("%d exchange(s) ended unrecorded: the ledger did not answer", len(late))
        if self._settled is not None:
            await self._settled()
        await self.transport.aclose()

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        """End everything when the server stops; it tells us before it leaves its event loop."""
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await self.aclose()
        await send({"type": "lifespan.shutdown.complete"})


def proxy_app(  # noqa: PLR0913 - what a deployment chooses, all named at the call
    ledger: ContractLedger,
    upstream: str,
    *,
    public: str,
    side: str = "client",
    rewrite_card: bool = False,
    transport: httpx.AsyncBaseTransport | None = None,
    redact: Redactor | None = None,
) -> Proxy:
    """Return a recording proxy in front of an agent.

    Args:
        ledger: where everything is recorded; its mode says whether anything is refused.
        upstream: base url of the agent.
        public: base url by which clients reach the proxy.
        side: `client`: recorded as a client's; `server`: as the agent's own.
        rewrite_card: put the proxy's urls into the cards that pass.
        transport: what really sends; default `Lanes`, which follows no proxy of the environment.
        redact: the user's own redaction, beside the one that always happens. Where it fails, all that it was to
            look through is withheld; for a large message it is called in a thread (see `Redactor`).

    Raises:
        UsageError: one of the urls is none.
    """
    addresses = Addresses(upstream, public)
    inner = transport or Lanes()
    keep = ledger.settings.keep_body
    if side == "server":
        card_url = addresses.public_url(CARD_PATH.encode())
        rewriter = CardRewriter(addresses, None) if rewrite_card else None
        forwarder = Forwarder(inner, addresses, rewriter, keep=keep, entropy=ledger.entropy, holds=True)
        app = ContractLedgerMiddleware(forwarder, ledger, card_url, redact=redact)
        return Proxy(app, inner, app.settled)
    recording = ProxyTransport.over(inner, ledger, addresses, rewrites=rewrite_card, redact=redact)
    served = ServedCards(Desk(ledger, client_versions=(), redact=redact), addresses.public_url(CARD_PATH.encode()))
    rewriter = CardRewriter(addresses, served) if rewrite_card else None
    return Proxy(Forwarder(recording, addresses, rewriter, keep=keep, entropy=ledger.entropy), recording)
