"""What a client is told by the ledger itself, in the place of an answer: RFC 9457 problem details."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from a2a_ledger.errors import (
    ContractChangedError,
    ContractDivergenceError,
    LedgerError,
    LedgerUnavailableError,
    SendRefusedError,
    SpentClientError,
)

if TYPE_CHECKING:
    from a2a_ledger.capture.server.incoming import Send

_STATUS: tuple[tuple[type[LedgerError], int, str], ...] = (
    (LedgerUnavailableError, 503, "ledger-unavailable"),
    (ContractDivergenceError, 502, "contract-divergence"),
    (ContractChangedError, 409, "contract-changed"),
    (SendRefusedError, 409, "send-refused"),
    (SpentClientError, 409, "contract-changed"),
    (LedgerError, 502, "refused"),
)


async def send_problem(send: Send, error: LedgerError) -> None:
    """Answer with what the ledger says: 409 for what was not sent, 502 for an answer, 503 where nothing is recorded."""
    status, name = next((status, name) for kind, status, name in _STATUS if isinstance(error, kind))
    await send_status(send, status, name, str(error), hint=error.hint)


async def send_status(send: Send, status: int, name: str, detail: str, *, hint: str = "") -> None:
    """Answer with a status of our own.

    Args:
        send: of the server.
        status: HTTP status.
        name: short id of the problem, as in `urn:a2a-ledger:problem:<name>`.
        detail: one sentence for people.
        hint: what to do about it.
    """
    said = {"type": f"urn:a2a-ledger:problem:{name}", "title": name, "status": status, "detail": detail}
    body = json.dumps({**said, "hint": hint} if hint else said).encode()
    headers = [(b"content-type", b"application/problem+json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})
