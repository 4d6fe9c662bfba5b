"""Events held against each other: what one says of another one, or of what both belong to. Pure.

docs/format.md section 12, step 11. An operator signs what he writes, so a false event fits every hash. But each event
stands beside others that say the same thing: an answer beside its request, a binding beside the answer that gave the
ids, a capture beside the fetch that it came from. Only fields are compared, which no bundle can leave out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from a2a_ledger.codec import misplaced
from a2a_ledger.divergence.reading import (
    ADOPTED,
    BOUND,
    CAPTURED,
    CARD_FAILED,
    CARD_FETCHED,
    MESSAGE,
    RECONSTRUCTED,
    members,
    number,
    text,
)
from a2a_ledger.verify.beside import ids_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from a2a_ledger.codec import Record
    from a2a_ledger.verify.beside import Beside

    Differences = Iterator["Difference"]

LEGS: Final = frozenset({"request", "response", "stream-event", "stream-end", "push", "error"})
DIRECTIONS: Final = frozenset({"in", "out"})

_SERVER = "server"
_ADDED = "key.added.v1"
_DECIDED = "freshness.decided.v1"
_VIOLATION = "violation.detected.v1"
_NOT_MODIFIED = 304
_SUCCESS = range(200, 300)
_OWN_WORDS = frozenset({"error", "stream-end"})  # legs that say that no answer, or no more of it, came
_MOST_URL = 1024  # characters of a url that a record holds


class Difference(NamedTuple):
    """One thing that a record says otherwise than its source; `open` says why that proves nothing, if so."""

    what: str
    open: str = ""


def disagreements(record: Record, beside: Beside) -> Differences:
    """Yield what an event says otherwise than the events that it stands beside, or than its own fields."""
    wrong = misplaced(record.stream, record.type)
    if wrong:
        yield Difference(wrong)
    yield from _of_peer(record, beside)
    check = _CHECKS.get(record.type)
    if check is not None:
        yield from check(record, beside)


def _of_peer(record: Record, beside: Beside) -> Differences:
    """A stream of a peer is that peer's, a task has one peer, and a peer has one url."""
    peer = text(record.data, "peer")
    kind, _, owner = record.stream.partition(":")
    if peer is None:
        return
    if kind == "peer" and peer != owner:
        yield Difference("its peer is not that of the stream in which it stands")
    first = beside.first_of_stream(record)
    if kind == "task" and peer != first.data.get("peer"):
        yield Difference(f"its peer is not that of its task, which event {first.n} names")
    first = beside.first_of_peer(record)
    url = text(record.data, "peer_url")
    if url and url[:_MOST_URL] != str(first.data.get("peer_url"))[:_MOST_URL]:
        yield Difference(f"its peer_url is not that of its peer, which event {first.n} names")


def _message(record: Record, beside: Beside) -> Differences:
    data = record.data
    leg, direction = text(data, "leg"), text(data, "direction")
    if leg in LEGS and direction in DIRECTIONS:
        goes = (leg == "request") != (data.get("side") == _SERVER)
        if direction != ("out" if goes else "in"):
            yield Difference("its direction is not that of its leg, on the side that recorded it")
    asked = beside.named(record, "answers")
    if asked is None:
        return
    if asked.type != MESSAGE or asked.data.get("leg") not in {"request", "push"}:
        yield Difference(f"answers event {asked.n}, which is no request")
    elif asked.stream != record.stream or asked.n > record.n:
        yield Difference(f"answers event {asked.n}, which is not before it in its stream")
    else:
        differing = [name for name in _same_as_asked(record) if not _alike(data.get(name), asked.data.get(name))]
        if differing:
            yield Difference(f"its {', '.join(differing)} is not that of the request at {asked.n}, which it answers")


def _same_as_asked(record: Record) -> Iterator[str]:
    """Yield the fields that an answer has from its request; what is no answer itself need not repeat the method."""
    yield from ("url", "binding", "side")
    for name in ("method", "method_spelled"):
        if name in record.data or record.data.get("leg") not in _OWN_WORDS:
            yield name


def _alike(one: object, other: object) -> bool:
    """Say whether two fields are equal, where either may have `*` for octets of a secret."""
    if not isinstance(one, str) or not isinstance(other, str):
        return one == other
    return len(one) == len(other) and all(a == b or "*" in {a, b} for a, b in zip(one, other, strict=True))


def _bound(record: Record, beside: Beside) -> Differences:
    """The ids of a binding are those that an answer to the request gave."""
    asked = beside.named(record, "answers")
    if asked is None:
        return
    if asked.type != MESSAGE or asked.stream != record.stream or asked.n > record.n:
        yield Difference(f"answers event {asked.n}, which is no message before it in its stream")
        return
    if not beside.gave_ids(asked, record):
        yield Difference(f"binds other ids than any answer to the request at {asked.n} gave")


def _adopted(record: Record, beside: Beside) -> Differences:
    """A task is adopted with the message that first names it."""
    said = beside.next_message(record)
    if said is None or ids_of(said) != ids_of(record):
        yield Difference("adopts other ids than the message behind it names")


def _captured(record: Record, beside: Beside) -> Differences:
    data = record.data
    fetch = beside.named(record, "fetch")
    if fetch is not None:
        yield from _of_card(record, fetch, "fetch", ("form", "seed0") if fetch.type == CARD_FETCHED else ("form",))
    if record.type == CAPTURED:
        yield from _frozen(record, beside)
    if data.get("side") == _SERVER or record.type == RECONSTRUCTED:
        return  # the pin is then what the peer's client attached
    pin = members(data.get("pin"))
    attached = {
        "contractHash": data.get("contract_hash"),
        "form": data.get("form"),
        "origin": record.log,
        "task": record.stream.removeprefix("task:"),
    }
    differing = [name for name, value in attached.items() if name in pin and pin[name] != value]
    if differing:
        yield Difference(f"its pin has another {', '.join(differing)} than is frozen")


def _frozen(record: Record, beside: Beside) -> Differences:
    """A contract is frozen once, before anything is sent under it."""
    first = beside.first_capture(record)
    if record.data.get("contract_hash") != first.data.get("contract_hash"):
        yield Difference(f"its contract_hash is not that of the capture at {first.n}: a task has one contract")
    if record.n != first.n or record.data.get("side") == _SERVER:
        return  # an agent freezes what a client's request has begun
    asked = beside.first_request(record)
    if asked is not None and asked < record.n:
        yield Difference(f"was frozen after the first request of its task, which is event {asked}")


def _of_card(record: Record, fetch: Record, where: str, names: tuple[str, ...] = ()) -> Differences:
    """A card that an event names is of its peer, and of the hashes that it repeats."""
    peer = text(fetch.data, "peer")  # the card that we serve ourselves names none
    if peer is not None and peer != record.data.get("peer"):
        yield Difference(f"{where} names the fetch at {fetch.n}, which is of another peer")
    if fetch.n > record.n:
        yield Difference(f"{where} names event {fetch.n}, which came later")
    for name in names:
        if record.data.get(name) != fetch.data.get(name):
            yield Difference(f"its {name} is not that of the fetch at {fetch.n}")


def _decided(record: Record, beside: Beside) -> Differences:
    card, again = beside.named(record, "card"), beside.named(record, "refetch")
    for fetch, where in ((card, "card"), (again, "refetch")):
        if fetch is not None:
            yield from _of_card(record, fetch, where)
    outcome = text(members(members(record.data.get("inputs")).get("refetch")), "outcome")
    if outcome is None:
        return
    if again is not None and not _may_be(outcome, again, card):
        yield Difference(
            f"was decided on the outcome {outcome[:40]!a}, which is not what the fetch at {again.n} brought"
        )
    if "refetch" not in record.data and outcome != "failed":
        yield Difference(f"was decided on the outcome {outcome[:40]!a} of a re-fetch", "it names none")


def _may_be(outcome: str, again: Record, card: Record | None) -> bool:
    """Say whether a re-fetch can have had an outcome, by what is recorded of it and of the card at hand."""
    flags = again.data.get("flags")
    failed = again.type == CARD_FAILED or (isinstance(flags, list) and "not-a-card" in flags)
    if failed or outcome == "failed":
        return failed and outcome == "failed"
    if outcome == str(_NOT_MODIFIED) and again.data.get("status") != _NOT_MODIFIED:
        return False
    found, before = again.data.get("contract_hash"), None if card is None else card.data.get("contract_hash")
    if found is None or before is None:
        return outcome == "undecidable" or found is not None
    # Of one contract the terms beside it may differ, or how it is described.
    return outcome == "contract" if found != before else outcome != "undecidable"


def _aborted(record: Record, beside: Beside) -> Differences:
    data, decision = record.data, beside.before(record)
    if data.get("requests") != 0:
        yield Difference("says that requests left, and that nothing did")
    if decision is None or decision.type != _DECIDED or decision.data.get("decision") != "abort-before-send":
        yield Difference("no decision to abort stands before it")
        return
    if data.get("reason") != decision.data.get("reason"):
        yield Difference(f"its reason is not that of the decision at {decision.n}")
    for name, where in (("old_hash", "card"), ("new_hash", "refetch")):
        fetch = beside.named(decision, where)
        if fetch is not None and data.get(name) != fetch.data.get("contract_hash"):
            yield Difference(f"its {name} is not that of the fetch at {fetch.n}")
        if where not in decision.data and name in data:
            yield Difference(f"has a {name} of no fetch", f"the decision at {decision.n} names no {where}")


def _accepted(record: Record, beside: Beside) -> Differences:
    fetch = beside.named(record, "fetch")
    if fetch is None:
        return
    if fetch.type != CARD_FETCHED:
        yield Difference(f"fetch names event {fetch.n}, which is no card fetch")
    yield from _of_card(record, fetch, "fetch", ("form",))
    if record.data.get("new_hash") != fetch.data.get("contract_hash"):
        yield Difference(f"its new_hash is not that of the fetch at {fetch.n}")


def _fetched(record: Record, beside: Beside) -> Differences:
    status, stands = number(record.data, "status") or 0, "not_modified" in record.data
    if stands != (status == _NOT_MODIFIED) or not (stands or status in _SUCCESS):
        yield Difference(f"its status {status} is not that of what it brought")
    fetch = beside.named(record, "not_modified")
    if fetch is not None:
        repeated = tuple(name for name in ("form", "seed0", "interfaces") if name in record.data)
        yield from _of_card(record, fetch, "not_modified", repeated)


def _not_fetched(record: Record, _: Beside) -> Differences:
    status = number(record.data, "status")
    if record.data.get("outcome") == "status" and (status is None or status in _SUCCESS):
        yield Difference("failed by its status, which is none that fails")


def _acknowledged(record: Record, beside: Beside) -> Differences:
    finding = beside.named(record, "violation")
    if finding is not None and (finding.type != _VIOLATION or finding.stream != record.stream):
        yield Difference(f"acknowledges event {finding.n}, which is no finding of its stream")


def _erased(record: Record, _: Beside) -> Differences:
    listed = record.data.get("records")
    refs = [members(one) for one in listed] if isinstance(listed, list) else []
    if any(one.get("stream") != record.stream or (number(one, "ver") or 0) >= record.ver for one in refs):
        yield Difference("lists events that are not before it in its stream")


def _opened(record: Record, beside: Beside) -> Differences:
    if record.data.get("origin") != record.log or record.ver != 0:
        yield Difference("does not open the log that it stands in")
    keys = record.data.get("keys")
    vkeys = [one for one in keys if isinstance(one, str)] if isinstance(keys, list) else []
    added = [beside.behind(record, count) for count in range(1, len(vkeys) + 1)]
    told = [None if one is None or one.type != _ADDED else text(one.data, "vkey") for one in added]
    if sorted(vkeys) != sorted(vkey or "" for vkey in told):
        missing = "they are not all shown" if None in added else ""
        yield Difference("its keys are not those that the events behind it add", missing)


_CHECKS: Final[dict[str, Callable[[Record, Beside], Differences]]] = {
    "ledger.opened.v1": _opened,
    CARD_FETCHED: _fetched,
    CARD_FAILED: _not_fetched,
    "contract.accepted.v1": _accepted,
    _DECIDED: _decided,
    CAPTURED: _captured,
    RECONSTRUCTED: _captured,
    "send.aborted.v1": _aborted,
    MESSAGE: _message,
    BOUND: _bound,
    ADOPTED: _adopted,
    "finding.acknowledged.v1": _acknowledged,
    "content.erased.v1": _erased,
}
