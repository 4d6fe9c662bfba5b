"""Reads the shown content again and holds what the records say of it against it (docs/format.md section 12).

A record repeats facts of its blobs and of other records: hashes of a card, the state that a message
states, the contract of the fetch that a decision was made from. Rules and decisions use these, so a record
that says something else than its own content would make a false story that replays. Where octets are left
out, a difference proves nothing: it is left open.
"""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, cast

from a2a_ledger.bundle import record_file
from a2a_ledger.card import read_card
from a2a_ledger.codec import Hole
from a2a_ledger.contract import FORM, contract_of
from a2a_ledger.divergence.reading import (
    CAPTURED,
    CARD_FETCHED,
    MESSAGE,
    RECONSTRUCTED,
    content,
    json_object,
    leg_of,
    members,
    request_leg_of,
    same_json,
    text,
)
from a2a_ledger.events import EVENT_TYPES
from a2a_ledger.signature.peer_keys import ADDED, RETIRED, recorded_keys
from a2a_ledger.verify.agreeing import DIRECTIONS, LEGS, Difference, disagreements
from a2a_ledger.verify.beside import Beside
from a2a_ledger.verify.card_fields import differences_of_answer, differences_of_card
from a2a_ledger.verify.card_signatures import contradictions, key_contradiction
from a2a_ledger.verify.pinned import MANIFEST, differences_of_decision, differences_of_manifest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from a2a_ledger.card import Card
    from a2a_ledger.codec import Record
    from a2a_ledger.events import Json
    from a2a_ledger.verify.shown import Shown
    from a2a_ledger.wire import Leg

_HASHES = ("raw_hash", "document_hash", "contract_hash")
_SAYINGS = frozenset({"response", "stream-event", "push"})
_UNJUDGED = "this version does not know that, so nobody judged it"

CARD_SERVED = "card.served.v1"
"""A card that the owner of this log served, as the agent."""


class _Found(Beside):
    """What the checks of one record need of the others."""

    def __init__(self, shown: Shown) -> None:
        super().__init__(shown, shown.said)
        self.shown = shown
        self.card_keys = recorded_keys(shown.of_type(ADDED, RETIRED))


class _Said(NamedTuple):
    """A sentence about a record: what its content says stands behind what the events beside it say."""

    n: int
    by_content: bool
    sentence: str


class Reread:
    """What came out of reading again: contradictions, and what cannot be read since it is left out, in log order."""

    def __init__(self) -> None:
        self._faults: list[_Said] = []
        self._left: list[_Said] = []

    def take(self, record: Record) -> None:
        """Read a record's content again, as far as that takes no other record; it is what its leaf commits to."""
        if record.type not in _CHECKS:
            self._note(record, _message(record) if record.type == MESSAGE else _unknown(record), by_content=True)

    def finish(self, shown: Shown) -> None:
        """Hold the shown records against each other, each of which was taken before."""
        found = _Found(shown)
        for record in shown.records.values():
            self._note(record, disagreements(record, found), by_content=False)
            if record.type in _CHECKS:
                self._note(record, _CHECKS[record.type](record, found), by_content=True)

    @property
    def faults(self) -> list[str]:
        """Return the contradictions."""
        return [said.sentence for said in sorted(self._faults, key=itemgetter(0, 1))]

    @property
    def left(self) -> list[str]:
        """Return what is open."""
        return [said.sentence for said in sorted(self._left, key=itemgetter(0, 1))]

    def _note(self, record: Record, differences: Iterable[Difference], *, by_content: bool) -> None:
        for difference in differences:
            sentence = f"{record_file(record.n)}: {difference.what}"
            if difference.open:
                self._left.append(_Said(record.n, by_content, f"{sentence} ({difference.open})"))
            else:
                self._faults.append(_Said(record.n, by_content, sentence))


def _unknown(record: Record) -> Iterable[Difference]:
    """What this version does not know, it cannot judge; on what the log says of its keys no judgement rests."""
    if record.type not in EVENT_TYPES and record.stream != "ledger":
        yield Difference(f"an event of type {record.type[:80]}", _UNJUDGED)


def _gap(record: Record, roles: Iterable[str]) -> str:
    """Say which of these blobs is not here with all of its octets; "" if all are."""
    for role in roles:
        if role in record.blobs and (
            record.blobs[role].kept != "all" or any(isinstance(part, Hole) for part in record.stored_parts(role) or ())
        ):
            return f"parts of its {role} are left out"
    return ""


def _fetched(record: Record, found: _Found) -> Iterable[Difference]:
    data = record.data
    yield from map(Difference, differences_of_answer(record))
    if "not_modified" in data:
        stands = found.named(record, "not_modified")
        if stands is not None:
            yield from _as_fetched(record, stands, "not_modified")
            if data.get("signature", stands.data.get("signature")) != stands.data.get("signature"):
                yield Difference(f"signature is not that of the fetch at {stands.n}, whose octets it says stand")
        return
    gap = _gap(record, ["body"])
    card = read_card(content(record, "body") or b"")
    yield from _hashed(record, card, gap)
    yield from (Difference(what, gap) for what in differences_of_card(record, card))
    yield from _within(record, found, gap)
    if not gap:
        yield from map(Difference, contradictions(record, card, found.card_keys))


def _within(record: Record, found: _Found, gap: str) -> Iterable[Difference]:
    """A card that came as the answer of a method is what that answer holds."""
    message = found.named(record, "within")
    if message is None:
        return
    body, card = content(message, "body") or b"", content(record, "body") or b""
    said = (json_object(body) or {}).get("result")
    if card != body and (said is None or not same_json(said, json_object(card))):
        yield Difference(f"its card is not that of the message at {message.n}", gap or _gap(message, ["body"]))


def _served(record: Record, _: _Found) -> Iterable[Difference]:
    yield from _hashed(record, read_card(content(record, "body") or b""), _gap(record, ["body"]))


def _hashed(record: Record, card: Card, gap: str) -> Iterable[Difference]:
    """The hashes of a record are those of the card in its body."""
    data = record.data
    contract = contract_of(card)
    made = {
        "raw_hash": card.raw_hash,
        "document_hash": card.document_hash,
        "contract_hash": contract.hash if contract else None,
    }
    if data.get("form") != FORM:
        yield Difference(f"its contract hash is of form {data.get('form')}", f"here is {FORM}")
        del made["contract_hash"]
    for name, value in made.items():
        if data.get(name) != value:
            yield Difference(f"{name} is not that of the card that was served", gap)


def _key_added(record: Record, _: _Found) -> Iterable[Difference]:
    problem = key_contradiction(record.data)
    if problem:
        yield Difference(problem)


def _as_fetched(record: Record, fetch: Record, where: str) -> Iterable[Difference]:
    """The hashes of a record are those of the fetch that it names; an agent's capture names the card that it served."""
    if fetch.type != CARD_FETCHED and not (fetch.type == CARD_SERVED and where == "fetch"):
        yield Difference(f"{where} names event {fetch.n}, which is no card fetch")
    for name in _HASHES:
        if name in record.data and record.data[name] != fetch.data.get(name):
            yield Difference(f"{name} is not that of the fetch at {fetch.n}, which {where} names")


def _captured(record: Record, found: _Found) -> Iterable[Difference]:
    data = record.data
    for role in ("contract", "terms"):
        recorded, octets = text(data, f"{role}_hash"), content(record, role)
        if octets is None and recorded is not None and role == "contract":
            yield Difference(f"{role}_hash stands without the {role} itself", "the record has no such blob")
        elif octets is not None and recorded != f"sha256:{sha256(octets).hexdigest()}":
            yield Difference(f"{role}_hash is not that of its blob {role}", _gap(record, [role]))
    fetch = found.named(record, "fetch")
    if fetch is not None:
        yield from _as_fetched(record, fetch, "fetch")
    elif "contract_hash" in data and "fetch" not in data and record.type == CAPTURED:
        yield Difference("freezes a contract of no fetch", "it names none")
    yield from _pinned(record, found)


def _pinned(record: Record, found: _Found) -> Iterable[Difference]:
    """The pin of a capture is the one in the message that opens the task.

    A client says what it meant to attach, also where it did not arrive; and who attaches none, as a proxy does, may
    pass on a message that carries the pin of its own sender.
    """
    request = found.next_message(record)
    if request is None:
        return
    carried, stated = request_leg_of(request).pin, record.data.get("pin")
    by_client = record.type == CAPTURED and record.data.get("side") != "server"
    passed_on = stated is None and carried is not None and not _is_ours(carried, record)
    if by_client and (carried is None or passed_on):
        return
    if stated != carried:
        yield Difference(f"its pin is not that of the message at {request.n}", _why_open(request))


def _is_ours(pin: Mapping[str, str], capture: Record) -> bool:
    return pin.get("origin") == capture.log and f"task:{pin.get('task')}" == capture.stream


def _manifest(record: Record, found: _Found) -> Iterable[Difference]:
    gap = "the record has no such blob" if "manifest" not in record.blobs else _gap(record, ["manifest"])
    for what in differences_of_manifest(record, found.shown.stream("ledger")):
        yield Difference(what, gap)


def _decided(record: Record, found: _Found) -> Iterable[Difference]:
    yield from _decided_under_manifest(record, found)
    card = members(members(record.data.get("inputs")).get("card"))
    fetch = found.named(record, "card")
    if not card:
        return
    if fetch is None:
        if "card" not in record.data:
            yield Difference("was decided about a card of no fetch", "it names none")
        return  # a fetch that is not shown is said by the references
    contract = fetch.data.get("contract_hash")
    if card.get("contract") != contract:
        yield Difference(f"was decided about another contract than the fetch at {fetch.n} brought")
    # The newest answer that says the same counts: the fetch itself, or a later one.
    at = text(card, "fetched_at")
    if not any(
        same_time(at, answer.at) and answer.data.get("contract_hash") == contract
        for answer in found.shown.stream(fetch.stream, after=fetch.ver - 1)
        if answer.n < record.n and answer.type == CARD_FETCHED
    ):
        yield Difference(f"was decided about a fetch at {at}", "no shown fetch of that contract is of that time")


def _decided_under_manifest(record: Record, found: _Found) -> Iterable[Difference]:
    if not members(members(record.data.get("inputs")).get("manifest")):
        return
    manifest = found.named(record, "manifest")
    if manifest is not None:
        for what in differences_of_decision(record, manifest, found.named(record, "card")):
            yield Difference(what)
    elif "manifest" not in record.data:
        yield Difference("was decided with a manifest of no event", "it names none")


def same_time(one: str | None, other: str) -> bool:
    """Say whether two texts spell one time; what is no time is none."""
    try:
        return datetime.fromisoformat(one or "") == datetime.fromisoformat(other)
    except (ValueError, TypeError):
        return False


def _message(record: Record) -> Iterable[Difference]:
    data = record.data
    kind = text(data, "leg")
    if kind not in LEGS or data.get("direction") not in DIRECTIONS:
        yield Difference(f"a message {data.get('direction')!s:.40} of leg {kind!s:.40}", _UNJUDGED)
    if kind == "request":
        read: Leg = request_leg_of(record)
        said: tuple[str, ...] = ("method", "method_spelled", "message_id", "task_id", "context_id", "tenant")
    elif kind in _SAYINGS:
        read, said = leg_of(record), ("message_id", "task_id", "context_id", "state", "state_read", "tenant")
    else:
        return
    made: dict[str, Json] = {name: cast("Json", getattr(read, name)) for name in said}
    made["wire_version"] = read.version
    if kind in _SAYINGS:
        made["pin"] = None if read.pin is None else cast("Json", read.pin)
        made["pin_seen"] = True if read.is_task else None
        made["error_code"] = read.error.code if read.error else None
    differing = [name for name, value in made.items() if data.get(name) != value]
    if differing:
        yield Difference(f"its content gives another {', '.join(differing)}", _why_open(record))


def _why_open(record: Record) -> str:
    """Say why a message cannot be read again as it was read then; "" if it can."""
    roles = sorted(role for role in record.blobs if role in {"body", "url"} or role.startswith("header."))
    if "body" not in record.blobs:
        return "the record has no body"
    is_http = record.data.get("binding") != "GRPC"
    if record.data.get("leg") == "request" and is_http and "http_method" not in record.data:
        return "the record has no HTTP method"
    return _gap(record, roles)


_CHECKS = {
    ADDED: _key_added,
    CARD_FETCHED: _fetched,
    CARD_SERVED: _served,
    CAPTURED: _captured,
    RECONSTRUCTED: _captured,
    "freshness.decided.v1": _decided,
    MANIFEST: _manifest,
}
"""The checks that take other records."""
