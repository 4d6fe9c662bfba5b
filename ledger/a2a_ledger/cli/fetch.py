"""The two ways in which the command line asks a peer for its card: a plain GET, and a recorded probe."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import TYPE_CHECKING

from a2a_ledger import __version__
from a2a_ledger.card import MAX_CARD
from a2a_ledger.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from http.client import HTTPMessage
    from typing import IO
    from urllib.request import Request

    from a2a_ledger.capture.attribution import Peer
    from a2a_ledger.cli.session import Session
    from a2a_ledger.ledger import ContractLedger

TIMEOUT = 10.0
"""Seconds that a peer has to answer."""


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a redirect where whoever it leads to may be asked."""

    def __init__(self, may_ask: Callable[[str], None]) -> None:
        self._may_ask = may_ask

    def redirect_request(  # noqa: PLR0913, PLR0917 - the library's arguments
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        try:
            self._may_ask(newurl)
        except UsageError:
            fp.close()
            raise
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def get(url: str, *, may_ask: Callable[[str], None]) -> bytes:
    """Return what a URL serves, whatever it is, up to just over the largest card that can be captured.

    Args:
        url: to ask.
        may_ask: raises where a URL may not be asked: this one, or one that a redirect leads to.

    Raises:
        UsageError: nothing came.
    """
    may_ask(url)
    request = urllib.request.Request(  # noqa: S310 - only http and https get here
        url, headers={"accept": "application/json", "user-agent": f"a2a-ledger/{__version__}"}
    )
    try:
        with urllib.request.build_opener(_Redirects(may_ask)).open(request, timeout=TIMEOUT) as answer:
            body: bytes = answer.read(MAX_CARD + 1)
            return body
    except urllib.error.HTTPError as e:
        with e:
            raise UsageError(f"{url}: expected a card, found HTTP status {e.code}") from e
    except (OSError, HTTPException, ValueError) as e:
        reason = e.reason if isinstance(e, urllib.error.URLError) else e
        raise UsageError(f"{url}: cannot be fetched: {reason}") from e


def probe(session: Session, url: str, peer: Peer) -> bytes:
    """Fetch a card of a peer as a diagnostic, recorded in the ledger, and return its bytes.

    Raises:
        UsageError: nothing came that could be a card; the attempt is recorded.
        ReadOnlyError: the probe could not be recorded, so it was not made.
    """
    with session.writing() as ledger:
        return asyncio.run(_probe(ledger, url, peer))


async def _probe(ledger: ContractLedger, url: str, peer: Peer) -> bytes:
    try:
        import httpx  # noqa: PLC0415 - comes with the extra `a2a`, and only a probe needs it
    except ImportError as e:
        raise UsageError(
            "a probe is recorded by the guard's own parts, which need: pip install 'a2a-ledger[a2a]'"
        ) from e
    from a2a_ledger.capture.card_record import card_ask_of  # noqa: PLC0415 - same
    from a2a_ledger.capture.desk import Desk  # noqa: PLC0415 - same
    from a2a_ledger.capture.route import Route  # noqa: PLC0415 - same

    desk = Desk(ledger, client_versions=(), redact=None)
    limits = httpx.Timeout(TIMEOUT).as_dict()
    async with httpx.AsyncHTTPTransport() as transport:
        route = Route(card_ask_of(url, [], peer=peer), transport.handle_async_request, extensions={"timeout": limits})
        fetched = await desk.cards.fetch(route, purpose="diagnostic", validate=None)
    if fetched.status is None:
        raise UsageError(f"{url}: cannot be fetched: {fetched.error}; the attempt is recorded")
    return fetched.body
