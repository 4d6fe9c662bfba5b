"""How does each peer behave, and how do we behave towards it? One row a peer, and one a task to count with.

Counts cover what this ledger recorded. A *probe in flight* is a card fetch that went to the peer,
other than the lazy one, while a task of that peer was sent and unfinished: past the send, a fetch
is a negotiation and no check.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, cast

from a2a_ledger.divergence.peer_case import card_key
from a2a_ledger_projections.base import ViewFollower
from a2a_ledger_projections.signatures import signature_word
from a2a_ledger_projections.states import Standing, advance, new_standing
from a2a_ledger_projections.view import View, text

if TYPE_CHECKING:
    from a2a_ledger.events import JsonObject
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger_projections.facts import Fact
    from a2a_ledger_projections.view import Rows

PEER, TASK = "peer:", "task:"

_NOT_MODIFIED = 304
_MAX_CARDS = 64  # kinds and callers of card that are kept apart for one peer


class SeenCard(TypedDict):
    """The newest answer with a body to one kind of question: what a validator is judged by."""

    source: str  # well-known extended registry configured
    caller: str
    url: str
    etag: str | None
    raw: str | None
    contract: str | None


class PeerRow(TypedDict):
    """One peer as this ledger saw it."""

    peer: str
    url: str | None
    contract: str | None  # of the newest fetched card that can be captured
    form: str | None
    source: str | None  # which of the peer's cards that contract is of, and who asked for it
    caller: str | None
    validator: str  # none honoured ignored lied
    signature: str | None  # of the newest fetched card: absent valid integrity invalid undecidable
    fetches: int
    aborts: int
    probes_in_flight: int
    cancels_after_probe: int
    downgrade_windows: int
    tasks: int
    in_flight: int  # tasks sent and not seen to end
    last_at: str
    not_modified: int  # position of the newest 304, -1: none
    cards: dict[str, SeenCard]


class PeerTask(Standing):
    """What is kept of a task to count its peer's probes and cancels."""

    peer: str
    probes_before: int  # the peer's probes in flight when this task was sent


def fold(fact: Fact, rows: Rows) -> None:
    """Apply one event to the rows that it concerns."""
    peer = text(fact.data, "peer")
    if peer is None:
        return
    row = cast("PeerRow | None", rows.get(PEER + peer))
    if row is None:
        row = _new_row(peer, fact)
        rows.add(PEER + peer, row)
    if row["url"] is None:
        row["url"] = text(fact.data, "peer_url")
    row["last_at"] = fact.at
    if fact.type in {"card.fetched.v1", "card.fetch_failed.v1"}:
        _fetch(row, fact)
    elif fact.type == "violation.detected.v1":
        _finding(row, fact.data)
    if fact.stream.startswith(TASK):
        _task(row, fact, rows)
    rows.put(PEER + peer, row)


VIEW = View(
    name="peers",
    edition=6,
    types=frozenset(
        {
            "card.fetched.v1",
            "card.fetch_failed.v1",
            "freshness.decided.v1",
            "contract.captured.v1",
            "contract.reconstructed.v1",
            "send.aborted.v1",
            "message.recorded.v1",
            "task.adopted.v1",
            "violation.detected.v1",
        }
    ),
    fold=fold,
    shapes={PEER: PeerRow, TASK: PeerTask},
)


def follower(ledger: ContractLedger) -> ViewFollower:
    """Return the follower that keeps this view (entry point group `a2a_ledger.followers`)."""
    return ViewFollower(ledger.store, VIEW)


def _new_row(peer: str, fact: Fact) -> PeerRow:
    return {
        "peer": peer,
        "url": None,
        "contract": None,
        "form": None,
        "source": None,
        "caller": None,
        "validator": "none",
        "signature": None,
        "fetches": 0,
        "aborts": 0,
        "probes_in_flight": 0,
        "cancels_after_probe": 0,
        "downgrade_windows": 0,
        "tasks": 0,
        "in_flight": 0,
        "last_at": fact.at,
        "not_modified": -1,
        "cards": {},
    }


def _fetch(row: PeerRow, fact: Fact) -> None:
    data = fact.data
    if fact.type == "card.fetched.v1":
        _take_card(row, fact)
    if data.get("source") == "configured":
        return  # a card that the caller brought: nothing went over the wire
    row["fetches"] += 1
    if data.get("source") != "registry" and data.get("purpose") != "lazy" and row["in_flight"] > 0:
        row["probes_in_flight"] += 1
    if fact.type == "card.fetched.v1":
        row["signature"] = signature_word(data) or row["signature"]


def _take_card(row: PeerRow, fact: Fact) -> None:
    """Take in an answer about one of the peer's cards, and what its contract says."""
    data = fact.data
    kind = " ".join(str(part) for part in card_key(data, fact.how))
    before = row["cards"].get(kind)
    if data.get("source") != "configured" and data.get("within") is None:  # a method's answer has no validator
        _judge_validator(row, fact, before)
    if text(data, "contract_hash") is not None:
        row["contract"], row["form"] = text(data, "contract_hash"), text(data, "form")
        row["source"], row["caller"] = text(data, "source"), text(data, "caller")
    if data.get("status") != _NOT_MODIFIED and (len(row["cards"]) < _MAX_CARDS or before is not None):
        row["cards"][kind] = {
            "source": text(data, "source") or "",
            "caller": text(data, "caller") or "",
            "url": text(data, "url") or "",
            "etag": text(data, "etag"),
            "raw": text(data, "raw_hash"),
            "contract": text(data, "contract_hash"),
        }


def _judge_validator(row: PeerRow, fact: Fact, before: SeenCard | None) -> None:
    """Follow what the last answers say about the peer's validators.

    `honoured` means not contradicted: a 304, another tag for other bytes, or never asked. A tag that
    comes back unchanged to a conditional request is `ignored`; the same strong tag on other bytes, or
    the same weak tag on another contract, is `lied` until a 304 comes.
    """
    data = fact.data
    if data.get("status") == _NOT_MODIFIED:
        row["validator"], row["not_modified"] = "honoured", fact.n
        return
    etag, raw, contract = text(data, "etag"), text(data, "raw_hash"), text(data, "contract_hash")
    if etag is not None and before is not None and before["etag"] == etag:
        weak = etag.startswith("W/")
        if (contract != before["contract"]) if weak else (raw != before["raw"]):
            row["validator"] = "lied"
            return
    if row["validator"] == "lied":
        return
    if etag is None and text(data, "last_modified") is None:
        row["validator"] = "none"
    elif etag is not None and etag == text(data, "asked_etag"):
        row["validator"] = "ignored"
    else:
        row["validator"] = "honoured"


def _finding(row: PeerRow, data: JsonObject) -> None:
    if data.get("rule") == "weaker-authorization":  # the rule occurs once a peer and window
        row["downgrade_windows"] += 1
    elif data.get("rule") == "validator-lied":  # the verifier also reads bodies, so it may know more
        shown_by = data.get("trigger_index")
        if isinstance(shown_by, int) and shown_by > row["not_modified"]:
            row["validator"] = "lied"


def _task(row: PeerRow, fact: Fact, rows: Rows) -> None:
    task = cast("PeerTask | None", rows.get(fact.stream)) if fact.ver else None  # version 0 begins a task
    if task is None:
        task = PeerTask(**new_standing(), peer=row["peer"], probes_before=row["probes_in_flight"])
        rows.add(fact.stream, task)
        row["tasks"] += 1
    was_open = task["open"]
    advance(task, fact)
    if task["open"] and not was_open:
        row["in_flight"] += 1
        task["probes_before"] = row["probes_in_flight"]
    elif was_open and not task["open"]:
        row["in_flight"] -= 1
    if fact.type == "send.aborted.v1":
        row["aborts"] += 1
    elif _is_cancel(fact.data) and row["probes_in_flight"] > task["probes_before"]:
        row["cancels_after_probe"] += 1
    rows.put(fact.stream, task)


def _is_cancel(data: JsonObject) -> bool:
    return data.get("leg") == "request" and data.get("direction") == "out" and data.get("method") == "CancelTask"
