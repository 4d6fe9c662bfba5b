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
    from a2a_ledger.cli.session import Session
    from a2a_ledger.ledger import ContractLedger

TIMEOUT = 10.0
"""Seconds that a peer has to answer."""


def get(url: str) -> bytes:
    """Return what a URL serves, whatever it is, up to just over the largest card that can be captured.

    Raises:
        UsageError: nothing came.
    """
    request = urllib.request.Request(  # noqa: S310 - only http and https get here
        url, headers={"accept": "application/json", "user-agent": f"a2a-ledger/{__version__}"}
    )
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:  # noqa: S310 - same
            body: bytes = answer.read(MAX_CARD + 1)
            return body
    except urllib.error.HTTPError as e:
        with e:
            raise UsageError(f"{url}: expected a card, found HTTP status {e.code}") from e
    except (OSError, HTTPException, ValueError) as e:
        reason = e.reason if isinstance(e, urllib.error.URLError) else e
        raise UsageError(f"{url}: cannot be fetched: {reason}") from e


def probe(session: Session, url: str) -> bytes:
    """Fetch a card as a diagnostic, recorded in the ledger, and return its bytes.

    Raises:
        UsageError: nothing came that could be a card; the attempt is recorded.
        ReadOnlyError: the probe could not be recorded, so it was not made.
    """
    with session.writing() as ledger:
        return asyncio.run(_probe(ledger, url))


async def _probe(ledger: ContractLedger, url: str) -> bytes:
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
        route = Route(card_ask_of(url, []), transport.handle_async_request, extensions={"timeout": limits})
        fetched = await desk.cards.fetch(route, purpose="diagnostic", validate=None)
    if fetched.status is None:
        raise UsageError(f"{url}: cannot be fetched: {fetched.error}; the attempt is recorded")
    return fetched.body
