"""What a client is told by the ledger itself, in the place of an answer: RFC 9457 problem details."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from a2a_ledger.errors import (
    CaptureError,
    ContractChangedError,
    ContractDivergenceError,
    LedgerError,
    LedgerUnavailableError,
    SendRefusedError,
)

if TYPE_CHECKING:
    from a2a_ledger.capture.server.incoming import Send

_log = logging.getLogger(__name__)

_LEFT = (
    "the answer does not keep to the contract, or cannot be read, so it is kept back; nothing was cancelled, and any "
    "answer that keeps to the contract passes"
)
_CHANGED = "the agent's contract changed since its card was read: GET the card here again, then send again"
_TO_ACCEPT = "; before that, who runs this ledger has to accept the changed contract (`card accept`)"

_PROBLEMS: tuple[tuple[type[LedgerError], int, str, str], ...] = (
    (LedgerUnavailableError, 503, "ledger-unavailable", "this exchange could not be recorded, so it was stopped"),
    (
        ContractDivergenceError,
        502,
        "contract-divergence",
        _LEFT,
    ),
    (ContractChangedError, 409, "contract-changed", _CHANGED),
    (SendRefusedError, 409, "send-refused", "the agent's card is not fresh enough to send on"),
    (LedgerError, 502, "refused", "the request cannot be decided or recorded here, so it was stopped"),
)
"""Error, HTTP status, name, and all that a client is told of it: the text may name addresses and paths."""


async def send_problem(send: Send, error: LedgerError) -> None:
    """Answer with what the ledger says: 409 for what was not sent, 502 for an answer, 503 where nothing is recorded.

    The client is told the kind, what lifts it, and where the ledger says more; the text is for who runs the ledger, and
    goes into the log.
    """
    status, name, detail = next((how, name, said) for kind, how, name, said in _PROBLEMS if isinstance(error, kind))
    _log.warning("%s: %s", name, error)
    if isinstance(error, ContractChangedError) and error.hint:
        detail += _TO_ACCEPT
    if isinstance(error, CaptureError) and error.task:
        detail += where(error.task, error.event)
    await send_status(send, status, name, detail)


def where(task: str, event: int | None) -> str:
    """Return where the ledger says why, as the end of a sentence; "" where no task is known.

    Args:
        task: local id, "" where none is known.
        event: number of the event that says why, if one is known.
    """
    place = "" if event is None else f"event {event} of "
    return f". See {place}task {task} in the ledger" if task else ""


async def send_status(send: Send, status: int, name: str, detail: str) -> None:
    """Answer with a status of our own.

    Args:
        send: of the server.
        status: HTTP status.
        name: short id of the problem, as in `urn:a2a-ledger:problem:<name>`.
        detail: one sentence for people.
    """
    said = {"type": f"urn:a2a-ledger:problem:{name}", "title": name, "status": status, "detail": detail}
    body = json.dumps(said).encode()
    headers = [(b"content-type", b"application/problem+json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})
