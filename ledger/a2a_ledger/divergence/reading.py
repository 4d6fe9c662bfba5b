"""Reading a record the way the rules need it: fields by kind, the frozen contract, the leg of an answer.

A record's fields come from the log of anybody who hands in a bundle, so a field of the wrong kind
reads as absent and a body that cannot be read as silence: a rule never raises on what it judges.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from a2a_ledger.codec import Hole
from a2a_ledger.divergence.finding import Evidence, evidence_of
from a2a_ledger.errors import FormatError
from a2a_ledger.wire import (
    SENDS,
    SILENCE,
    Contents,
    Leg,
    answer_contents,
    parse_grpc_request,
    parse_push,
    parse_request,
    parse_response,
    parse_stream_event,
    request_contents,
)
from a2a_ledger.wire.cut_texts import filled_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeAlias

    from a2a_ledger.codec import Record
    from a2a_ledger.events import Interface, Json, JsonObject, Ref

    Lookup: TypeAlias = "Callable[[Ref], Record | None]"
    """Finds an earlier record by how events refer to it; None when it is not at hand."""
    Earlier: TypeAlias = "Callable[[str, int], Iterable[Record]]"
    """Reads what a stream holds before a log index."""

CARD_FETCHED = "card.fetched.v1"
CARD_FAILED = "card.fetch_failed.v1"
CAPTURED = "contract.captured.v1"
RECONSTRUCTED = "contract.reconstructed.v1"
PROXY = "proxy"
MESSAGE = "message.recorded.v1"
BOUND = "task.bound.v1"
ADOPTED = "task.adopted.v1"

ACTS = SENDS | {"CancelTask"}
"""What a client does to a task, as against asking about it."""

REDIRECTS = frozenset({301, 302, 303, 307, 308})

ANSWERS = frozenset({"response", "stream-event"})
"""Legs by which the peer answers a request of ours."""
_SAYINGS = ANSWERS | {"push"}
_OK = 200
_REDIRECTION = 300


def text(data: JsonObject, name: str) -> str | None:
    """Return a member that is text, else None."""
    value = data.get(name)
    return value if isinstance(value, str) else None


def number(data: JsonObject, name: str) -> int | None:
    """Return a member that is an integer, else None."""
    value = data.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def members(value: object) -> JsonObject:
    """Return a JSON object, or an empty one for what is none."""
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def texts(value: Json) -> tuple[str, ...]:
    """Return the texts of a list, or nothing for what is no list."""
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def ref(data: JsonObject, name: str) -> Ref | None:
    """Return a reference to another event, else None."""
    value = members(data.get(name))
    c, stream, ver = text(value, "c"), text(value, "stream"), number(value, "ver")
    return None if c is None or stream is None or ver is None else {"c": c, "stream": stream, "ver": ver}


def interface(data: JsonObject) -> Interface:
    """Return the interface of a capture; what it does not state is empty."""
    value = members(data.get("interface"))
    return {
        "binding": text(value, "binding") or "",
        "tenant": text(value, "tenant") or "",
        "url": text(value, "url") or "",
        "version": text(value, "version"),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    """The frozen contract of one task, out of its capture."""

    evidence: Evidence
    peer: str
    contract: JsonObject | None
    """The normal form; None: no card could be captured, so nothing is frozen."""
    contract_hash: str | None
    form: str
    pin: JsonObject
    """What was attached to the message that opened the task; empty: nothing, as by a proxy, or another contract's."""
    interface: Interface
    skill: str | None
    extensions: tuple[str, ...]
    """What the task activated."""
    credential: tuple[str, ...]
    credential_visible: bool
    fetch: Ref | None
    reconstructed: bool
    for_many: bool
    """By a proxy: the clients behind it may speak of one task, each over an interface of its own."""


def frozen_of(record: Record) -> Frozen:
    """Read a capture or a reconstruction."""
    data = record.data
    return Frozen(
        evidence=evidence_of(record),
        peer=text(data, "peer") or "",
        contract=_contract(content(record, "contract")),
        contract_hash=text(data, "contract_hash"),
        form=text(data, "form") or "",
        pin=_pin_of(data),
        interface=interface(data),
        skill=text(data, "skill"),
        extensions=texts(data.get("extensions")),
        credential=texts(data.get("credential")),
        credential_visible=data.get("credential_visible") is True,
        fetch=ref(data, "fetch"),
        reconstructed=record.type == RECONSTRUCTED,
        for_many=text(data, "side") == PROXY,
    )


def _pin_of(data: JsonObject) -> JsonObject:
    """Return the pin of a capture if it is one of the frozen contract; of an imported send it may be another's."""
    pin = members(data.get("pin"))
    frozen = (text(data, "contract_hash"), text(data, "form"))
    return pin if (text(pin, "contractHash"), text(pin, "form")) == frozen else {}


def is_of_another(echo: JsonObject, pin: JsonObject) -> bool:
    """Say whether an echo names another log or another task than the pin that was attached."""
    return any(text(echo, name) not in {None, text(pin, name)} for name in ("origin", "task"))


@lru_cache(maxsize=256)
def _contract(body: bytes | None) -> JsonObject | None:
    """Read a frozen contract; the tasks of one card share it, and nobody changes it."""
    return json_object(body)


def schemes_carried(record: Record) -> tuple[str, ...]:
    """Return the scheme names of the credentials that a request carried."""
    listed = record.data.get("credential")
    names = [item.get("scheme") for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    return tuple(name for name in names if isinstance(name, str))


def is_inbound(record: Record) -> bool:
    """Say whether the peer said something: an answer, a stream event, a push; not a failure of the wire."""
    return record.data.get("direction") == "in" and text(record.data, "leg") in _SAYINGS


def is_request(record: Record) -> bool:
    """Say whether it is a request of ours."""
    return record.data.get("direction") == "out" and record.data.get("leg") == "request"


def went_well(record: Record) -> bool:
    """Say whether an answer is neither an HTTP failure nor an error of the binding."""
    status = number(record.data, "status")
    return record.data.get("error_code") is None and (status is None or _OK <= status < _REDIRECTION)


STAR = "*"
TILDE = "~"
"""Signs that holes are filled with: what a record says in two ways, once with each, something was cut out of."""
_DIGITS = {STAR: b"1", TILDE: b"2"}
"""What stands for them in a number."""


def content(record: Record, role: str, sign: str = STAR) -> bytes | None:
    """Return a blob's bytes, its holes filled with a sign, or None where there are none to be had."""
    try:
        return record.content(role, sign.encode())
    except (FormatError, KeyError):
        return None


def json_object(body: bytes | None) -> JsonObject | None:
    """Read bytes as a JSON object, or return None."""
    if body is None:
        return None
    try:
        value = cast("Json", json.loads(body))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def same_json(one: Json, other: Json) -> bool:
    """Say whether two values that were read from JSON are one, type for type: 1 is neither true nor 1.0."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def leg_of(record: Record, sign: str = STAR) -> Leg:
    """Read an inbound record's body and kept headers again, exactly as capture did (docs/format.md section 3)."""
    data = record.data
    body = message_body(record, sign) or b""
    headers = headers_of(record, sign)
    if data.get("leg") == "push":
        return parse_push(headers, body)
    asked = Leg(
        leg="request",
        binding=text(data, "binding") or "unknown",
        url=(text(data, "url") or "").replace(STAR, sign),  # where it was cut, a relative `Location` leads on from that
        method=text(data, "method"),
        method_spelled=text(data, "method_spelled"),
    )
    if data.get("leg") == "stream-event":
        return parse_stream_event(asked, body)
    return parse_response(asked, number(data, "status") or 0, headers, body)


def request_leg_of(record: Record, sign: str = STAR) -> Leg:
    """Read a request's body and kept headers again, exactly as capture did."""
    data, headers, body = record.data, headers_of(record, sign), message_body(record, sign) or b""
    address = content(record, "url", sign)
    url = text(data, "url") or "" if address is None else address.decode("utf-8", "replace")
    if text(data, "binding") == "GRPC":
        return parse_grpc_request(text(data, "method_spelled") or "", url, headers, body)
    return parse_request(text(data, "http_method") or "POST", url, headers, body)


def message_body(record: Record, sign: str = STAR) -> bytes | None:
    """Return a message's body as `content` does, where a hole lies outside of a JSON string with a number in it."""
    octets = content(record, "body", sign)
    if octets is None:
        return None
    holes = _holes(record)
    return filled_numbers(octets, holes, _DIGITS[sign]) if holes else octets


def body_cut(record: Record) -> bytes | None:
    """Return a body with another sign in its holes than `message_body` has there; None: nothing was cut out of it."""
    return message_body(record, TILDE) if _holes(record) else None


def _holes(record: Record) -> list[tuple[int, int]]:
    """Return where the holes of a body begin, and how long they are."""
    found: list[tuple[int, int]] = []
    at = 0
    for part in record.stored_parts("body") or ():
        length = part.length if isinstance(part, Hole) else len(part.content)
        if isinstance(part, Hole):
            found.append((at, length))
        at += length
    return found


def contents_of(record: Record, *, whole: bool = False) -> Contents:
    """Read what a message record says; a text in it that something was cut out of is not compared with anything.

    `whole` tells the kind also of an answer in which there is nothing to compare.
    """
    body = message_body(record) or b""
    other = body_cut(record)
    if not is_request(record):
        framed = record.data.get("leg") == "stream-event"
        return answer_contents(body, number(record.data, "status"), framed=framed, other=other, whole=whole)
    if text(record.data, "method") in SENDS or b"istory" in body:
        return request_contents(body, other=other)
    return SILENCE


def asked_history(record: Record, said: Contents) -> int | None:
    """Return the `historyLength` that a request asks for, in its body or in its query; None: it names none."""
    address = content(record, "url")
    if said.asked_history is not None or address is None or b"istoryLength" not in address:
        return said.asked_history
    http_method = text(record.data, "http_method") or "GET"
    return parse_request(http_method, address.decode("utf-8", "replace"), (), b"").history_length


def headers_of(record: Record, sign: str = STAR) -> list[tuple[str, str]]:
    """Return the kept headers of a record; what is no pair of texts is passed over."""
    roles = sorted(name for name in record.blobs if name.startswith("header."))
    pairs = [texts_of_header(content(record, role, sign)) for role in roles]
    return [pair for pair in pairs if pair[0]]


def texts_of_header(blob: bytes | None) -> tuple[str, str]:
    """Return name and value of a kept header; two empty texts for what is no pair of texts."""
    try:
        pair = cast("Json", json.loads(blob or b"null"))
    except ValueError:
        return "", ""
    if not isinstance(pair, list) or not len(texts(pair)) == len(pair) == 2:  # noqa: PLR2004 - name and value
        return "", ""
    name, value = texts(pair)
    return name, value
