"""What can be done after a send was stopped, by the reason that stopped it and the time until which it stands."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from a2a_ledger_projections.view import text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_ledger.codec import Record

ABORT = "send.aborted.v1"

_NEXT = {
    "contract-changed": "build the client again to take the new contract on (`decide` says whether a person "
    "has to accept it first)",
    "undecidable": "the peer's card cannot be captured: look at it with `card show URL --diagnostic`, "
    "and build the client again when it can be",
    "flapping": "the peer's contract comes and goes, and nobody knows which one it keeps: send again",
    "sibling-submitted": "another task of this peer was sent and not seen past `submitted`: "
    "poll that one, then send again",
    "version-skew": "the interface speaks a protocol version that the client does not: send with a client that does",
    "version-not-stated": "the card states no version for its interface, and the profile stops a send then: "
    "ask the peer to state it",
    "refetch-failed": "the card could not be fetched again, and the profile stops a send then: "
    "send again when the peer serves it",
}


def after_abort(own: Sequence[Record]) -> str:
    """Say what can be done after the newest abort among a task's events."""
    abort = next((record for record in reversed(own) if record.type == ABORT), None)
    reason = text(abort.data, "reason") if abort is not None else None
    said = f"nothing was sent; {_NEXT.get(reason or '', f'{reason}: `decide` says what stands now')}"
    return f"{said}{not_before(own)}"


def not_before(own: Sequence[Record]) -> str:
    """Return `, not before` and the time in UTC, if the newest decision states when to try again; else "".

    The time is rounded up to a whole second.
    """
    decided = next((record for record in reversed(own) if record.type == "freshness.decided.v1"), None)
    seconds = decided.data.get("retry_after") if decided is not None else None
    if decided is None or not isinstance(seconds, int):
        return ""
    try:
        until = datetime.fromisoformat(decided.at) + timedelta(seconds=seconds)
    except (ValueError, OverflowError):
        return ""  # a time that nobody can tell
    whole = until if not until.microsecond else until.replace(microsecond=0) + timedelta(seconds=1)
    return f", not before {whole:%Y-%m-%dT%H:%M:%SZ}"
