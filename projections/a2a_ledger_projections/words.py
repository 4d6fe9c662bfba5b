"""One event in a few words, for people. Pure: a record in, a kind and a sentence out.

Text of the peer is quoted and otherwise left as it is; whoever prints it makes it safe for the
place where it is shown.
"""

from __future__ import annotations

from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, cast

from a2a_ledger.card import read_card
from a2a_ledger.codec import erased_versions, parse_canonical
from a2a_ledger.contract import contract_of
from a2a_ledger.divergence.reading import headers_of, leg_of
from a2a_ledger.errors import FormatError
from a2a_ledger.wire.demand import challenges
from a2a_ledger_projections.signatures import signature_words
from a2a_ledger_projections.view import text

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_ledger.codec import Record
    from a2a_ledger.events import Json, JsonObject

_TEXT_SHOWN = 200
_HASH_SHOWN = len("sha256:") + 8
_MAC_SHOWN = 4
_OK = 200  # what goes without saying
_LEFT = "closed-by-caller"
_OURS = {"timeout": "its own time-out", "cancelled": "cancelled here", _LEFT: "nobody here read on"}
"""Kinds of failure by which who waits for the answer ended an exchange himself (docs/format.md section 2)."""

THIS_SIDE = "this side"
"""The kind of a line about what the recording side did, though the leg is one of the peer's."""

_CLOCK_SECONDS = 2  # a Date header has whole seconds: a smaller difference says nothing


def describe(record: Record) -> tuple[str, str]:
    """Return what kind of line this event is, and what it says."""
    teller = _TELLERS.get(record.type)
    if teller is None:
        return record.type.removesuffix(".v1"), "an event that this version does not know; kept and checked"
    try:
        kind, words = teller(record)
    except FormatError as problem:
        return record.type.removesuffix(".v1"), f"cannot be told: {problem}"
    if record.how == "import":
        claimed = text(record.data, "claimed_at")
        words += f"  (imported{f', said to be of {claimed}' if claimed else ''})"
    return kind, words


def offers(contract: JsonObject | None) -> list[str]:
    """Return the scheme names that a contract offers."""
    schemes = (contract or {}).get("schemes")
    return sorted(schemes) if isinstance(schemes, dict) else []


def contract_in(record: Record) -> JsonObject | None:
    """Return the normal form that a capture froze, from its blob."""
    content = record.content("contract")
    if content is None:
        return None
    value = parse_canonical(content)
    return value if isinstance(value, dict) else None


def _card(record: Record) -> tuple[str, str]:
    data = record.data
    purpose = text(data, "purpose")
    told = [str(data.get("status"))]
    if text(data, "etag"):
        told.append(f"ETag {text(data, 'etag')}")
    words = " ".join(told)
    if data.get("status") == 304:  # noqa: PLR2004 - HTTP's own number
        words += ", the peer says unchanged"
    contract = text(data, "contract_hash")
    words += f", contract {_short(contract)}" if contract else ", no contract can be captured"
    card = contract_of(read_card(body)) if contract and (body := record.content("body")) else None
    schemes = offers(cast("JsonObject", card.value)) if card else []
    words += f" ({', '.join(schemes)})" if schemes else ""
    signed = signature_words(data)
    words += f"; {signed}" if signed else ""
    flags = [str(flag) for flag in cast("list[Json]", data.get("flags") or [])]
    words += f"; {', '.join(flags)}" if flags else ""
    return "card", f"{words}  [{which_card(data)}{purpose}]"


def which_card(data: JsonObject) -> str:
    """Say which of a peer's cards a fetch is about; nothing of the public one that anybody is given."""
    source, caller = text(data, "source") or "", text(data, "caller") or ""
    if source == "well-known" and not (text(data, "url") or "").endswith("/agent.json"):
        return f"to {caller}, " if caller != "anonymous" else ""
    named = "agent.json" if source == "well-known" else source
    return f"{named} to {caller}, "


def _served(record: Record) -> tuple[str, str]:
    data = record.data
    contract = text(data, "contract_hash")
    return "served", f"card at {text(data, 'url')}: " + (
        f"contract {_short(contract)}" if contract else "no contract can be captured"
    )


def _card_failed(record: Record) -> tuple[str, str]:
    data = record.data
    status = data.get("status")
    words = f"fetch failed: {text(data, 'outcome')}"
    words += f" {status}" if status is not None else ""
    words += f", TLS alert {text(data, 'tls_alert')}" if text(data, "tls_alert") else ""
    return "card", f"{words}  [{which_card(data)}{text(data, 'purpose')}]"


def _manifest(record: Record) -> tuple[str, str]:
    data = record.data
    contract, floor = _short(text(data, "contract_hash")), text(data, "floor_until")
    return "manifest", f"{text(data, 'status')}, contract {contract}, floor until {floor}"


def _key_added(record: Record) -> tuple[str, str]:
    data = record.data
    return "card key", f"{text(data, 'kid')!r} may speak for the peer's cards from here on, by {text(data, 'who')}"


def _key_retired(record: Record) -> tuple[str, str]:
    data = record.data
    return "card key", f"{text(data, 'kid')!r} is retired, by {text(data, 'who')}: {text(data, 'reason')}"


def _accepted(record: Record) -> tuple[str, str]:
    data = record.data
    old, new = _short(text(data, "old_hash")), _short(text(data, "new_hash"))
    return "accepted", (
        f"{f'contract {old} -> {new}' if old != new else f'other vendor terms of contract {new}'}, "
        f"authorization: {text(data, 'authorization')}, by {text(data, 'who')} ({text(data, 'acceptance')})"
    )


def _decided(record: Record) -> tuple[str, str]:
    data = record.data
    words = f"{text(data, 'decision')} {text(data, 'reason')}"
    inputs = data.get("inputs")
    age = card_age(inputs) if isinstance(inputs, dict) else None
    words += f": card {age:.1f} s old" if age is not None else ""
    words += f"; at stake: {text(data, 'at_stake')}"
    again = data.get("retry_after")
    return "decided", words if again is None else f"{words}; try again after {again} s"


def card_age(inputs: JsonObject) -> float | None:
    """Return how old the card was when a decision was made, in seconds, from the decision's own inputs."""
    card = inputs.get("card")
    fetched = text(card, "fetched_at") if isinstance(card, dict) else None
    now = text(inputs, "now")
    if fetched is None or now is None:
        return None
    try:
        return (datetime.fromisoformat(now) - datetime.fromisoformat(fetched)).total_seconds()
    except (ValueError, TypeError):
        return None


def _frozen(record: Record) -> tuple[str, str]:
    data = record.data
    interface = cast("JsonObject", data.get("interface") or {})
    if data.get("contract_hash") is None:
        to = f"{interface.get('binding')} {interface.get('url')}"
        return "frozen", f"nothing: no card that can be frozen was read before the send  {to}"
    schemes = offers(contract_in(record))
    version = interface.get("version") or "version not stated"
    words = f"{_short(text(data, 'contract_hash'))}  {interface.get('binding')} {version} {interface.get('url')}"
    words += f"  offers {', '.join(schemes)}" if schemes else "  asks for no credential"
    return ("frozen" if record.type == "contract.captured.v1" else "rebuilt"), words


def _aborted(record: Record) -> tuple[str, str]:
    data = record.data
    words = (
        f"nothing was sent ({data.get('card_gets')} card GET, {data.get('requests')} requests): {text(data, 'reason')}"
    )
    if text(data, "new_hash"):
        words += f", contract {_short(text(data, 'old_hash'))} -> {_short(text(data, 'new_hash'))}"
    if text(data, "authorization"):
        words += f", authorization: {text(data, 'authorization')}"
    return "aborted", words


def _message(record: Record) -> tuple[str, str]:
    data = record.data
    arrow = "->" if data.get("direction") == "out" else "<-"
    if data.get("leg") == "request":
        return arrow, _request(data)
    if data.get("leg") in {"error", "stream-end"}:
        return _no_more(data, arrow)
    return arrow, _answer(record)


def _no_more(data: JsonObject, arrow: str) -> tuple[str, str]:
    """Tell why no answer came, or no more of one. What this side did itself is not told as the peer's doing."""
    kind, alert, count = text(data, "error_kind"), text(data, "tls_alert"), data.get("sequence")
    ours = _OURS.get(kind or "") if data.get("direction") != "out" else None
    if data.get("leg") == "error":
        if ours:
            return THIS_SIDE, f"gave up before an answer came: {ours}"
        return arrow, f"TLS alert {alert}, no HTTP answer" if alert else f"no answer: {kind or 'unknown'}"
    if kind is None:
        return arrow, "end of the stream"
    after = f" after {count} {'event' if count == 1 else 'events'}" if isinstance(count, int) else ""
    if ours:
        return THIS_SIDE, f"ended the stream{after}: {ours}"
    return arrow, f"the client left the stream{after}" if kind == _LEFT else f"the stream broke off{after}: {kind}"


def _request(data: JsonObject) -> str:
    told = [
        text(data, "method") or text(data, "http_method") or "request",
        text(data, "message_id"),
        text(data, "task_id"),
    ]
    words = " ".join(part for part in told if part)
    credentials = [c for c in cast("list[Json]", data.get("credential") or []) if isinstance(c, dict)]
    for credential in credentials:
        words += f"  {text(credential, 'scheme')} credential #{(text(credential, 'mac') or '')[:_MAC_SHOWN]}"
    return words if credentials else words + "  no credential seen"


def _answer(record: Record) -> str:
    data = record.data
    told = [text(data, "task_id"), text(data, "state_read") or text(data, "state")]
    status = data.get("status")
    if isinstance(status, int) and status != _OK:
        told.append(f"HTTP {status}")
    if asked := _asked_schemes(record):
        told.append(f"asks for {', '.join(asked)}")
    if data.get("error_code") is not None:
        told.append(f"error {data['error_code']}")
    leg = leg_of(record) if "body" in record.blobs else None
    if leg is not None and leg.kind == "artifact-update":
        told.append("artifact")
    words = " ".join(part for part in told if part) or (text(data, "leg") or "answer")
    said = leg.text if leg is not None else ""
    words += f' "{said[:_TEXT_SHOWN]}{"…" if len(said) > _TEXT_SHOWN else ""}"' if said else ""
    if data.get("pin_seen"):
        words += "  pin echoed" if data.get("pin") else "  pin unacknowledged"
    flags = [str(flag) for flag in cast("list[Json]", data.get("flags") or [])]
    words += f"  [{', '.join(flags)}]" if flags else ""
    skew = _clock_difference(record)
    return words if skew is None else f"{words}  peer's clock {skew:+.0f} s"


def _asked_schemes(record: Record) -> list[str]:
    """Return the schemes that the challenges of an answer name (RFC 9110 section 11.6.1), each once."""
    if not any(role.startswith("header.") for role in record.blobs):
        return []
    values = (value for name, value in headers_of(record) if name.lower() == "www-authenticate")
    return list(dict.fromkeys(demand.scheme for demand in challenges(values)))


def _clock_difference(record: Record) -> float | None:
    for role in record.blobs:
        if not role.startswith("header."):
            continue
        pair = _header(record, role)
        if isinstance(pair, list) and len(pair) == 2 and pair[0] == "date" and isinstance(pair[1], str):  # noqa: PLR2004 - name and value
            try:
                difference = (parsedate_to_datetime(pair[1]) - datetime.fromisoformat(record.at)).total_seconds()
            except (ValueError, TypeError):
                return None
            return difference if abs(difference) >= _CLOCK_SECONDS else None
    return None


def _header(record: Record, role: str) -> Json:
    try:
        return parse_canonical(record.content(role) or b"")
    except FormatError:  # it was erased
        return None


def _bound(record: Record) -> tuple[str, str]:
    context = text(record.data, "context_id")
    return "bound", f"the peer calls it {text(record.data, 'task_id')}" + (f" in context {context}" if context else "")


def _adopted(record: Record) -> tuple[str, str]:
    return "adopted", f"{text(record.data, 'task_id')} was first seen past `submitted`: recorded, not judged"


def _snapshot(record: Record) -> tuple[str, str]:
    data = record.data
    return "snapshot", f"a task store held {text(data, 'task_id')} as {text(data, 'state')}: its exporter says so"


def _violation(record: Record) -> tuple[str, str]:
    data = record.data
    shown = [f"#{index}" for index in cast("list[Json]", data.get("evidence_index") or [])]
    words = f"{text(data, 'rule')}, about: {text(data, 'about')}, {text(data, 'certainty')}"
    return "violation", words + (f", shown by {' and '.join(shown)}" if shown else "")


def _acknowledged(record: Record) -> tuple[str, str]:
    return "acked", f"by {text(record.data, 'who')}: {text(record.data, 'why')}"


def _erased(record: Record) -> tuple[str, str]:
    data, events = record.data, len(erased_versions(record))
    what = f"{text(data, 'scope')} of {events} event{'s' * (events != 1)}"
    return "erased", f"{what}, asked for by {text(data, 'requested_by')}: {text(data, 'reason')}"


def _short(value: str | None) -> str:
    if value is None:
        return "none"
    return value if len(value) <= _HASH_SHOWN else f"{value[:_HASH_SHOWN]}…"


_TELLERS: dict[str, Callable[[Record], tuple[str, str]]] = {
    "card.fetched.v1": _card,
    "card.fetch_failed.v1": _card_failed,
    "card.served.v1": _served,
    "card.manifest.v1": _manifest,
    "card_key.added.v1": _key_added,
    "card_key.retired.v1": _key_retired,
    "contract.accepted.v1": _accepted,
    "freshness.decided.v1": _decided,
    "contract.captured.v1": _frozen,
    "contract.reconstructed.v1": _frozen,
    "send.aborted.v1": _aborted,
    "message.recorded.v1": _message,
    "task.bound.v1": _bound,
    "task.adopted.v1": _adopted,
    "task.snapshot.v1": _snapshot,
    "violation.detected.v1": _violation,
    "finding.acknowledged.v1": _acknowledged,
    "content.erased.v1": _erased,
}
