"""What happened to one task, who left its contract, since when, and what can be done now?

Read straight from the events, never from a view: the task's stream, its findings, the card fetch
that it was frozen from, and the card fetches in its window. The order is the log's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from a2a_ledger.codec import erased_versions
from a2a_ledger.store.damage import gaps, has_lost_content, unopened
from a2a_ledger.wire import INTERRUPTED, TERMINAL
from a2a_ledger_projections.aborts import ABORT, after_abort, not_before
from a2a_ledger_projections.rule_words import ABOUT, UNKNOWN
from a2a_ledger_projections.stalls import stall_of
from a2a_ledger_projections.states import ABORTED, ADOPTED, ANSWERED, INTENDED, RECEIVED, SENT
from a2a_ledger_projections.view import text
from a2a_ledger_projections.violations import Violation, violations_of
from a2a_ledger_projections.words import contract_in, describe, offers, which_card

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from a2a_ledger.codec import Record
    from a2a_ledger.events import JsonObject, Ref
    from a2a_ledger.store import Store
    from a2a_ledger_projections.stalls import Stall
    from a2a_ledger_projections.task_contracts import TaskRow

_CARD_EVENTS = frozenset({"card.fetched.v1", "card.fetch_failed.v1", "card.manifest.v1", "contract.accepted.v1"})
_CAPTURES = frozenset({"contract.captured.v1", "contract.reconstructed.v1"})
_PAGE = 500
_HTTP_ERROR = 400


@dataclass(frozen=True, slots=True)
class Line:
    """One event of the story."""

    record: Record
    kind: str
    words: str

    def to_json(self) -> JsonObject:
        """Return one object of `show`'s `events`."""
        record = self.record
        return {
            "position": record.n,
            "at": record.at,
            "type": record.type,
            "stream": record.stream,
            "how": record.how,
            "words": f"{self.kind} {self.words}",
            "data": record.data,
        }


@dataclass(frozen=True, slots=True)
class Story:
    """One task's story, and the three answers that a person on call needs first."""

    row: TaskRow
    lines: list[Line]
    violations: list[Violation]
    capture: Record | None
    card: Record | None  # the fetch that it was frozen from
    contract: JsonObject | None  # the frozen normal form
    lasting: float | None  # seconds in the present state
    stuck: bool  # cannot go on and cannot be cancelled
    stall: Stall | None  # it waits for longer than usual, and why
    who: str  # who left the contract, and since when
    now: str  # what can still be done
    damage: list[str]  # what was changed or removed from outside, as far as it is seen here

    def to_json(self) -> JsonObject:
        """Return the object that `show --format json` prints."""
        row, data = self.row, self.capture.data if self.capture else {}
        contract: JsonObject = {
            "hash": row["contract"],
            "form": row["form"],
            "reconstructed": self.capture is not None and self.capture.type == "contract.reconstructed.v1",
            "position": self.capture.n if self.capture else None,
            "card": None if self.card is None else _card_json(self.card),
            "interface": data.get("interface"),
            "credential": data.get("credential"),
            "pin": data.get("pin"),
            "value": self.contract,
        }
        return {
            "task": row["task"],
            "peer": row["peer"],
            "state": row["state"],
            "contract": contract,
            "events": [line.to_json() for line in self.lines],
            "violations": [violation.to_json() for violation in self.violations],
            "stalls": [reason.to_json() for reason in self.stall.reasons] if self.stall else [],
        }


def tell(store: Store, row: TaskRow, now: datetime) -> Story:
    """Read one task's events and say where it stands as of `now`."""
    own = store.read_stream(f"task:{row['task']}")
    findings = violations_of(store, row["task"], row["peer"])
    acknowledged = [
        r for v in findings for r in store.tagged(f"ack:{v.record.stream}:{v.record.ver}") if r.type != v.record.type
    ]
    capture = next((record for record in own if record.type in _CAPTURES), None)
    contract = contract_in(capture) if capture and not unopened(capture) else None
    shown = {r.n: r for r in (*own, *acknowledged, *(v.record for v in findings))}
    shown |= {r.n: r for r in _cards(store, row, own)}
    fetch = _ref(capture, "fetch") if capture else None
    card = next((record for record in shown.values() if fetch is not None and record.c == fetch["c"]), None)
    stuck = _is_stuck(row, own, findings)
    stall = stall_of(store, row["task"], now)
    at = {record.ver: record.c for record in own}
    erased = {at.get(ver) for record in own for ver in erased_versions(record)}
    changed = {n: said for n, record in shown.items() if (said := _changed(record, erased))}
    lines = [_line(shown[n], card if shown[n] is capture else None, erased, changed) for n in sorted(shown)]
    waits = not_before(own)
    return Story(
        row=row,
        lines=[replace(line, words=line.words + waits) if line.record.type == ABORT else line for line in lines],
        violations=findings,
        capture=capture,
        card=card,
        contract=contract,
        lasting=_lasting(row, now),
        stuck=stuck,
        stall=stall,
        who=_who(store, findings, contract, now),
        now=_served(row["state"])
        if any(record.data.get("side") == "server" for record in own)
        else _advice(row, findings, contract, stall, own, stuck=stuck) + _newer_card(row, card, shown.values()),
        damage=[*_missing(store, row, own), *(f"event {n} {said}" for n, said in sorted(changed.items()))],
    )


def _missing(store: Store, row: TaskRow, own: list[Record]) -> Iterator[str]:
    """Say which events of the task, and of the findings about it and its peer, are not there any more."""
    yield from gaps(f"task:{row['task']}", own)
    for stream in (f"findings:{row['task']}", f"findings:peer:{row['peer']}"):
        yield from gaps(stream, store.read_stream(stream))
    for record in own:
        for name in ("fetch", "card", "refetch"):
            ref = _ref(record, name)
            found = store.read_stream(ref["stream"], gt=ref["ver"] - 1, limit=1) if ref else []
            if ref and not (found and found[0].c == ref["c"]):
                yield f"version {ref['ver']} of {ref['stream']}, which event {record.n} refers to, is missing"


def _changed(record: Record, erased: set[str | None]) -> str:
    """Say what is wrong with the content of an event, "" for nothing that can be seen here."""
    if unopened(record):
        return "cannot be opened: it was changed"
    return "has lost its content, and no erasure says so" if has_lost_content(record) and record.c not in erased else ""


def _line(record: Record, card: Record | None, erased: set[str | None], changed: dict[int, str]) -> Line:
    """Tell one event; of a capture also from which card it was frozen, if that is not the public one of anybody."""
    kind, words = describe(record)
    if record.n in changed:
        words += f"  ({changed[record.n]}; run `a2a-ledger --ledger … audit`)"
    elif record.c in erased:
        words += "  (content erased)"
    which = which_card(card.data).removesuffix(", ") if card is not None else ""
    return Line(record, kind, f"{words}  from card #{card.n} ({which})" if card is not None and which else words)


def _card_json(card: Record) -> JsonObject:
    data = card.data
    return {"position": card.n, **{name: data.get(name) for name in ("source", "caller", "url")}}


def _cards(store: Store, row: TaskRow, own: list[Record]) -> Iterator[Record]:
    """Yield what the task was frozen from, and what was learned of the peer's card while it ran."""
    if not own:
        return
    refs = [ref for record in own for name in ("fetch", "card", "refetch") if (ref := _ref(record, name))]
    refs = [ref for ref in refs if ref["stream"].startswith("peer:")]
    for ref in refs:
        yield from store.read_stream(ref["stream"], gt=ref["ver"] - 1, limit=1)
    last = None if row["open"] else own[-1].n
    ver = min((ref["ver"] for ref in refs), default=0) - 1
    while page := store.read_stream(f"peer:{row['peer']}", gt=ver, limit=_PAGE):
        for record in page:
            if last is not None and record.n > last:
                return
            if record.n > own[0].n and record.type in _CARD_EVENTS:
                yield record
        ver = page[-1].ver


def _ref(record: Record, name: str) -> Ref | None:
    value = record.data.get(name)
    return cast("Ref", value) if isinstance(value, dict) and isinstance(value.get("ver"), int) else None


def _lasting(row: TaskRow, now: datetime) -> float | None:
    try:
        return (now - datetime.fromisoformat(row["since"] or "")).total_seconds()
    except (ValueError, TypeError):
        return None  # imported material spells times as it likes


def _is_stuck(row: TaskRow, own: list[Record], findings: list[Violation]) -> bool:
    """Say whether the peer's demand blocks the task and a cancel was tried and did not take."""
    return row["open"] and _demand(findings) is not None and _cancel_failed(own)


def _demand(findings: list[Violation]) -> Violation | None:
    return next((v for v in findings if v.data.get("rule") == "auth-demand"), None)


def _cancel_failed(own: list[Record]) -> bool:
    cancels = _cancels(own)
    if not cancels:
        return False
    answers = [r for r in own if (ref := _ref(r, "answers")) and ref["ver"] == cancels[-1].ver]
    return not any(_took(answer) for answer in answers)


def _cancels(own: list[Record]) -> list[Record]:
    return [r for r in own if r.data.get("direction") == "out" and r.data.get("method") == "CancelTask"]


def _took(answer: Record) -> bool:
    return answer.data.get("leg") != "error" and not _is_error(answer)


def _is_error(answer: Record) -> bool:
    status = answer.data.get("status")
    return answer.data.get("error_code") is not None or (isinstance(status, int) and status >= _HTTP_ERROR)


def _who(store: Store, findings: list[Violation], contract: JsonObject | None, now: datetime) -> str:
    """Say who left the contract and since when: by what is certain, and by the first sign."""
    if not findings:
        return "nobody that a rule of this version can name"
    ranked = sorted(findings, key=_rank)
    first = ranked[0]
    record = store.record(first.trigger)
    rule = text(first.data, "rule") or ""
    words = ABOUT.get(rule, UNKNOWN)
    if rule == "weaker-authorization":
        words = (
            words.replace("a newer card", f"the card of #{record.n}") if first.data.get("about") == "peer" else words
        )
    else:
        words += f": {describe(record)[1]}"
    day = "" if record.at[:10] == now.astimezone(UTC).date().isoformat() else f"{record.at[:10]} "
    said = f"{_party(first)}, #{record.n} at {day}{record.at[11:19]}Z, {text(first.data, 'certainty')}: {words}"
    if rule == "auth-demand":
        said += f"; the frozen contract offers {', '.join(offers(contract)) or 'no scheme'}"
    else:
        said += f" ({rule})"
    earlier = min(findings, key=lambda v: v.trigger)
    if earlier.trigger < first.trigger:
        said += f". First sign #{earlier.trigger} ({text(earlier.data, 'rule')}, {text(earlier.data, 'certainty')})"
    return said


def _rank(violation: Violation) -> tuple[int, int, int]:
    data = violation.data
    certainty = ("certain", "claimed", "suspected")
    said = text(data, "certainty")
    return (
        certainty.index(said) if said in certainty else len(certainty),
        0 if data.get("rule_class") == "contract" else 1,
        violation.trigger,
    )


def _party(violation: Violation) -> str:
    return {"peer": "the peer", "client": "the client (this side)"}.get(
        text(violation.data, "about") or "", "either side"
    )


def _advice(  # noqa: PLR0913 - what the advice rests on
    row: TaskRow,
    findings: list[Violation],
    contract: JsonObject | None,
    stall: Stall | None,
    own: list[Record],
    *,
    stuck: bool,
) -> str:
    """Say what can still be done, and that a card fetch while the task runs is a probe."""
    state = row["state"]
    if state == ABORTED:
        return after_abort(own)
    if not row["open"]:
        return _ADVICE_CLOSED.get(state, _ENDED if state in TERMINAL else _REFUSED)
    schemes = ", ".join(offers(contract)) or "no credential"
    if stuck:
        said = f"ask the peer to accept {schemes} or to cancel"
    elif _demand(findings) is not None:
        way = (
            "a cancel was answered: poll the task to see whether it took"
            if _cancels(own)
            else f"no cancel was tried: cancel the task, or ask the peer to accept {schemes}"
        )
        said = f"the peer asks for what the frozen contract does not offer ({schemes}); {way}"
    elif state in INTERRUPTED:
        said = "the peer waits for input: answer it, or cancel"
    else:
        said = _ADVICE_OPEN.get(state) or _runs(own)
    waits = "" if stall is None or stuck else f". STALLED: {'; '.join(reason.detail for reason in stall.reasons)}"
    return f"{said}. A card fetch now is a probe: use `card show URL --diagnostic`{waits}"


def _runs(own: list[Record]) -> str:
    """Say that the task runs, or that the peer's last word was an error and leaves that open."""
    arrived = [r for r in own if r.type == "message.recorded.v1" and r.data.get("direction") == "in"]
    answers = [r for r in arrived if r.data.get("leg") != "stream-end"]
    if answers and _is_error(answers[-1]):
        _, words = describe(answers[-1])
        return f"the peer's last answer, #{answers[-1].n}, is an error ({words}): a poll tells whether the task runs"
    return "the task runs; it can be polled and cancelled"


def _newer_card(row: TaskRow, card: Record | None, shown: Iterable[Record]) -> str:
    """Name the newest card that states another contract than the frozen one, as the same caller got it; "": none."""
    if card is None or row["state"] in TERMINAL:
        return ""
    later = [
        record
        for record in shown
        if record.type == card.type
        and record.n > card.n
        and record.data.get("contract_hash") is not None
        and all(record.data.get(name) == card.data.get(name) for name in ("source", "caller", "url"))
    ]
    newest = max(later, key=lambda record: record.n, default=card)
    if newest.data["contract_hash"] == card.data.get("contract_hash"):
        return ""
    return (
        f". The peer's card of #{newest.n} states another contract than the frozen one: "
        f"`a2a-ledger card diff {card.n} {newest.n}` says what differs"
    )


def _served(state: str) -> str:
    """Say of a task that we serve what is still to be done."""
    if state in TERMINAL or state == ANSWERED:
        return _ENDED
    if state in INTERRUPTED:
        return "the client is asked for input, and has not answered"
    return _ADVICE_SERVED.get(state, "we work on it; the client can poll and cancel it")


_ENDED = "the task has ended; replay it, or export the evidence"
_REFUSED = "the peer refused the send, so it has no such task. A new send is a new task"
_ADVICE_CLOSED = {
    INTENDED: "nothing has left; the send can still be made or dropped",
    ANSWERED: _ENDED,
}
_ADVICE_SERVED = {
    RECEIVED: "a client sent it, and no answer of ours is recorded",
    INTENDED: "no send of it is recorded here",
    ADOPTED: "the client named a task that was not opened here",
}
_ADVICE_OPEN = {
    SENT: "sent, and no answer recorded that says what became of it: a resend of the same message id is the same task",
    ADOPTED: "first seen past `submitted`; it can be polled and cancelled",
}
