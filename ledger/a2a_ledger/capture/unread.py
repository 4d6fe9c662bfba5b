"""An answer in a content coding that nobody here can take off: its octets pass, and holes alone are recorded.

Redaction finds nothing in them, and no rule can judge them. In mode "enforce" it is refused; a stream is then read on
behind the caller's back, as one is that leaves the contract.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import httpx

from a2a_ledger.capture.failures import describe_failure
from a2a_ledger.capture.passed_body import AsItComes
from a2a_ledger.capture.recorder import is_stream
from a2a_ledger.capture.route import pairs, safe
from a2a_ledger.capture.server.spool import Spool
from a2a_ledger.errors import ContractDivergenceError, LedgerError

if TYPE_CHECKING:
    from a2a_ledger.capture.exchange import Exchange
    from a2a_ledger.capture.streams import Background

_log = logging.getLogger(__name__)


async def pass_unread(response: httpx.Response, exchange: Exchange, behind: Background) -> httpx.Response:
    """Record an answer that cannot be read, and give it back as it came: an event stream live, another one whole.

    Args:
        response: the answer; nobody has read its body.
        exchange: what it answers.
        behind: runs what nobody waits for.

    Raises:
        ContractDivergenceError: mode "enforce".
        httpx.HTTPError: it did not come whole; what came is recorded.
    """
    ledger, enforces = exchange.desk.ledger, exchange.desk.enforces
    status, headers = response.status_code, pairs(response.headers)
    body = Spool(ledger.settings.keep_body, ledger.entropy)

    async def whole() -> None:
        await exchange.answered_in_part(status, headers, body.head, body.tail)

    async def broke_off(error: BaseException) -> None:
        try:
            await exchange.cut_short(status, headers, body.head, describe_failure(error), undecoded=True)
        except LedgerError as unrecorded:
            _log.error("what came of an answer that failed: %s", unrecorded)

    passing = AsItComes(response, body, whole, broke_off)
    stream: httpx.AsyncByteStream = passing
    if not is_stream(status, headers):
        try:
            stream = httpx.ByteStream(b"".join([octets async for octets in passing]))
        finally:
            await passing.aclose()
    elif enforces:
        behind(_read_on(passing))
    if enforces:
        raise unjudged(exchange)
    return httpx.Response(status, headers=response.headers, stream=stream, extensions=safe(response.extensions))


def unjudged(exchange: Exchange) -> ContractDivergenceError:
    """Return what an answer is refused with that nobody can judge."""
    return ContractDivergenceError(
        "an answer in a content coding that nobody asked for cannot be read, so it cannot be held against the "
        "contract; it is recorded and kept back",
        task=exchange.task,
        event=exchange.newest,
    )


async def _read_on(passing: AsItComes) -> None:
    try:
        async for _ in passing:
            pass
    except (httpx.HTTPError, LedgerError) as error:
        _log.error("an answer that was kept back: %s", error)
    finally:
        await passing.aclose()
