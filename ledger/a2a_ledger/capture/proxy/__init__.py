"""The recording reverse proxy: an agent in any language, recorded from the outside (docs/format.md section 14).

    a2a-ledger --ledger audit proxy --upstream https://agent.example --listen 127.0.0.1:9000

By default it stands on the client's side: what passes is recorded as a guarded client records it. On the agent's
side the same forwarding stands behind the agent's middleware. The door is `proxy_app`.
"""

from __future__ import annotations

from dataclasses import dataclass
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
    import httpx

    from a2a_ledger.capture.redact import Redactor
    from a2a_ledger.capture.server.incoming import AsgiApp, Receive, Scope, Send
    from a2a_ledger.ledger import ContractLedger

__all__ = ["Proxy", "proxy_app"]


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy, ready to be served; close it when it is served no more."""

    app: AsgiApp
    transport: httpx.AsyncBaseTransport

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        await self.app(scope, receive, send)

    async def aclose(self) -> None:
        """Close the connections to the agent."""
        await self.transport.aclose()


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
        redact: the user's own redaction, beside the one that always happens.

    Raises:
        UsageError: one of the urls is none.
    """
    addresses = Addresses(upstream, public)
    inner = transport or Lanes()
    keep = ledger.settings.keep_body
    if side == "server":
        card_url = addresses.public_url(CARD_PATH)
        rewriter = CardRewriter(addresses, None) if rewrite_card else None
        forwarder = Forwarder(inner, addresses, rewriter, keep=keep, entropy=ledger.entropy)
        return Proxy(ContractLedgerMiddleware(forwarder, ledger, card_url, redact=redact), inner)
    recording = ProxyTransport.over(inner, ledger, addresses, rewrites=rewrite_card, redact=redact)
    served = ServedCards(Desk(ledger, client_versions=(), redact=redact), addresses.public_url(CARD_PATH))
    rewriter = CardRewriter(addresses, served, recording.newest_fetch) if rewrite_card else None
    return Proxy(Forwarder(recording, addresses, rewriter, keep=keep, entropy=ledger.entropy), recording)
