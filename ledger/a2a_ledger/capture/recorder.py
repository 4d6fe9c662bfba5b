"""Exchanges as events: what the live guard and the importers have in common.

Builders only: nothing here reads the network or writes the log. Redaction happens here, so that what
comes out may be recorded. What came from the wire is bounded here too, so that a record always fits
(docs/format.md section 3); the whole of it stays in the blobs.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from a2a_ledger.capture.attribution import (
    Attribution,
    Peer,
    attribute,
    card_source,
    interface_used,
    peer_at,
    peer_of,
    peer_of_card,
)
from a2a_ledger.capture.card_record import (
    CardAsk,
    card_ask_of,
    card_event,
    card_failure_event,
    configured_card_event,
)
from a2a_ledger.capture.redact import Secrets
from a2a_ledger.capture.redacted import (
    Seen,
    blobs_of,
    credentials_of,
    header_blobs,
    see,
    seen_as,
    text_blob,
    url_of,
    without_secrets,
)
from a2a_ledger.events import MessageRecorded
from a2a_ledger.wire import header

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_ledger.capture.redact import Redactor, Secret
    from a2a_ledger.codec import Content
    from a2a_ledger.events import Json, Ref
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger.wire import Headers, Leg

__all__ = [
    "Attribution",
    "CardAsk",
    "FailureLike",
    "Peer",
    "Seen",
    "attribute",
    "card_ask_of",
    "card_event",
    "card_failure_event",
    "card_source",
    "configured_card_event",
    "failure_event",
    "interface_used",
    "is_stream",
    "message_event",
    "peer_at",
    "peer_of",
    "peer_of_card",
    "see",
    "stream_end_event",
]

_MAX_EXTENSIONS = 8
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
_ENDS_WELL = "complete"
SERVER = "server"
"""Side of what the agent itself records: a request comes in there, and what answers it goes out."""

_HTTP_ERROR = 400
_WENT_WRONG = frozenset({"failed", "rejected"})
"""States of a task whose message says what went wrong."""


class FailureLike(Protocol):
    """Why there was no (whole) answer."""

    @property
    def kind(self) -> str:
        """Timeout connect tls closed cancelled other."""
        ...

    @property
    def tls_alert(self) -> str | None:
        """The alert's name of RFC 8446 section 6 in lower case."""
        ...

    @property
    def text(self) -> str:
        """As the library said it."""
        ...

    @property
    def outcome(self) -> str:
        """The same as an outcome of a card fetch: no-answer, timeout or tls-error."""
        ...


def message_event(  # noqa: PLR0913 - an exchange has this many independent sides, and all are named at the call
    leg: Leg,
    seen: Seen,
    *,
    peer: str,
    at: ContractLedger,
    url: str | None = None,
    http_method: str | None = None,
    answers: Ref | None = None,
    known: Sequence[Secret] = (),
    sequence: int | None = None,
    flags: Sequence[str] = (),
    redactor: Redactor | None = None,
    side: str | None = None,
) -> tuple[MessageRecorded, dict[str, Content]]:
    """Return the event of one leg and its blobs, redacted.

    Args:
        leg: what `wire` read in it; a request goes out, every other leg comes in; at the agent the other way round.
        seen: its bytes. Of a stream event: no headers, and the raw block as the body.
        peer: peer id.
        at: the ledger that it is for: its redaction keys and its limit on bodies.
        url: as asked; default the leg's.
        http_method: of a request.
        answers: the request that it answers.
        known: credentials seen before in this exchange, which are cut from this leg as well.
        sequence: of a stream event, from 0.
        flags: what else is odd, beside what the leg says.
        redactor: the user's own redaction.
        side: see `MessageRecorded`.
    """
    address = url if url is not None else leg.url
    seen = seen_as(seen, leg)
    secrets = Secrets((*seen.secrets, *known)) if seen.secrets else Secrets.of(known)
    leg = without_secrets(leg, secrets)
    asks = leg.leg == "request"
    recorded = url_of(address, secrets, redactor)
    cut_short = seen.tail is not None or len(seen.body) > at.settings.keep_body
    event = MessageRecorded(
        peer=peer,
        direction=_direction(asks=asks, side=side),
        leg=leg.leg,
        binding=leg.binding,
        url=recorded.text,
        method=leg.method,
        method_spelled=leg.method_spelled,
        wire_version=leg.version,
        http_method=http_method,
        status=leg.status,
        message_id=leg.message_id,
        task_id=leg.task_id,
        context_id=leg.context_id,
        state=leg.state,
        state_read=leg.state_read,
        pin=dict[str, "Json"](leg.pin) if leg.pin is not None and not asks else None,
        pin_seen=True if leg.is_task else None,
        answers=answers,
        credential=credentials_of(seen.secrets, peer, at) if asks or leg.leg == "push" else None,
        extensions=list(leg.extensions[:_MAX_EXTENSIONS]) or None,
        sequence=sequence,
        error_code=leg.error.code if leg.error else None,
        trace=_trace(seen.headers),
        flags=sorted({*leg.flags, *flags, *(["truncated"] if cut_short else [])}) or None,
        tenant=leg.tenant,
        side=side,
    )
    is_error = leg.error is not None or (leg.status or 0) >= _HTTP_ERROR or leg.state_read in _WENT_WRONG
    return event, blobs_of(recorded, seen, secrets, at, redactor, is_error=is_error)


def failure_event(  # noqa: PLR0913 - see message_event
    request: Leg,
    failure: FailureLike,
    *,
    peer: str,
    at: ContractLedger,
    answers: Ref | None,
    known: Sequence[Secret] = (),
    status: int | None = None,
    redactor: Redactor | None = None,
    side: str | None = None,
) -> tuple[MessageRecorded, dict[str, Content]]:
    """Return the event of a request that got no (whole) answer, leg `error`.

    Args:
        request: what was asked.
        failure: what stopped it.
        peer: peer id.
        at: see `message_event`.
        answers: the request's record.
        known: credentials of the exchange, cut from the error's text too.
        status: if the answer had begun.
        redactor: the user's own redaction.
        side: see `MessageRecorded`.
    """
    known = Secrets.of(known)
    event = _without_content(request, "error", peer, answers, known, redactor, side)
    event = replace(event, status=status, error_kind=failure.kind, tls_alert=failure.tls_alert)
    return event, {"error": text_blob(failure.text, known, at, redactor)}


def stream_end_event(  # noqa: PLR0913 - see message_event
    request: Leg,
    *,
    peer: str,
    at: ContractLedger,
    answers: Ref | None,
    sequence: int,
    how: str = _ENDS_WELL,
    text: str = "",
    status: int | None = None,
    headers: Headers = (),
    known: Sequence[Secret] = (),
    redactor: Redactor | None = None,
    side: str | None = None,
) -> tuple[MessageRecorded, dict[str, Content]]:
    """Return the event of the end of a stream, however it came, leg `stream-end`.

    Args:
        request: what was asked.
        peer: peer id.
        at: see `message_event`.
        answers: the request's record.
        sequence: how many events there were.
        how: complete, or what cut it short: a failure's kind, `closed-by-caller`.
        text: what the failure said.
        status: HTTP status of the stream.
        headers: of a stream without any event, which else has them.
        known: credentials of the exchange.
        redactor: the user's own redaction.
        side: see `MessageRecorded`.
    """
    known = Secrets.of(known)
    event = _without_content(request, "stream-end", peer, answers, known, redactor, side)
    kind = None if how == _ENDS_WELL else how
    event = replace(event, status=status, sequence=sequence, error_kind=kind)
    blobs = header_blobs(headers, known, redactor)
    return event, {**blobs, "error": text_blob(text, known, at, redactor)} if text else blobs


def is_stream(status: int, headers: Headers) -> bool:
    """Say whether an answer is an event stream; an error status makes it an answer like any other, read whole."""
    return status < _HTTP_ERROR and (header(headers, "content-type") or "").lower().startswith("text/event-stream")


def _without_content(  # noqa: PLR0913, PLR0917 - what the two events without a body have in common
    request: Leg,
    leg: str,
    peer: str,
    answers: Ref | None,
    known: Sequence[Secret],
    redactor: Redactor | None,
    side: str | None,
) -> MessageRecorded:
    url = url_of(request.url, known, redactor).text
    request = without_secrets(request, known)
    return MessageRecorded(
        peer=peer,
        direction=_direction(asks=False, side=side),
        leg=leg,
        binding=request.binding,
        url=url,
        method=request.method,
        method_spelled=request.method_spelled,
        task_id=request.task_id,
        context_id=request.context_id,
        answers=answers,
        side=side,
    )


def _direction(*, asks: bool, side: str | None) -> str:
    """Return the direction of a leg as its recorder sees it."""
    return "out" if asks != (side == SERVER) else "in"


def _trace(headers: Headers) -> str | None:
    found = _TRACEPARENT.fullmatch(header(headers, "traceparent") or "")
    return found[1] if found else None
