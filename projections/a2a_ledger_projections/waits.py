"""How long has each open task waited for news, and how long do its peer's waits usually last?

One row a task (`task:<id>`) says since when it waits, one row a peer (`peer:<id>`) counts how long past
waits lasted, by the state that the task was in. `stalls` makes a list of it, with a clock.

*News* is what tells more than was known: another state, a status or artifact update, a push, an answer
to a send that is neither an error nor a redirect. A poll that is answered with the state of before is a
word, but no news. Only the waits of live tasks are counted, by our own clock; imported tasks (nobody waits
for them) and those that this ledger recorded as the agent are not judged.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, TypedDict, cast

from a2a_ledger.wire import SENDS, STATES
from a2a_ledger_projections.base import ViewFollower
from a2a_ledger_projections.states import ADOPTED, SENT, Standing, advance, new_standing, went_well
from a2a_ledger_projections.view import View, text

if TYPE_CHECKING:
    from a2a_ledger.events import JsonObject
    from a2a_ledger.ledger import ContractLedger
    from a2a_ledger_projections.facts import Fact
    from a2a_ledger_projections.view import Rows

TASK, PEER = "task:", "peer:"

_FIRST_EDGE = 8  # buckets end at 2^i / 8 seconds: an eighth of a second, a quarter, …, 48 days
_BUCKETS = 26
_KNOWN = frozenset({*STATES.values(), SENT, ADOPTED})
_OTHER = "other"
_ARRIVALS = frozenset({"response", "stream-event", "push"})
_CANCEL = "CancelTask"


class WaitRow(Standing):
    """One task, as far as waiting goes."""

    task: str
    peer: str
    peer_url: str | None
    peer_task: str | None
    judged: bool  # a live task of a client: somebody waits for it
    news_at: str | None  # when the peer last told something new
    news_position: int | None
    repeats: int  # words since then that told nothing new
    asked_at: str | None  # our newest send
    asked_position: int | None
    cancel_ver: int | None  # of our newest cancel, in the task's stream
    cancelled_at: str | None  # when the peer acknowledged one without an end
    cancelled_position: int | None


class PeerRow(TypedDict):
    """How long one peer's past waits lasted."""

    peer: str
    waits: dict[str, list[int]]  # state -> how many ended within each bucket


def fold(fact: Fact, rows: Rows) -> None:
    """Apply one event to the rows that it concerns."""
    if not fact.stream.startswith(TASK):
        return
    key = fact.stream
    row = cast("WaitRow | None", rows.get(key)) if fact.ver else None
    if row is None:
        row = _new_row(key.removeprefix(TASK))
        rows.add(key, row)
    data = fact.data
    if fact.how == "import" or data.get("side") == "server":
        row["judged"] = False
    row["peer"] = row["peer"] or text(data, "peer") or ""
    row["peer_url"] = row["peer_url"] or text(data, "peer_url")
    if fact.type in {"task.bound.v1", "task.adopted.v1"}:
        row["peer_task"] = row["peer_task"] or text(data, "task_id")
    before = row["state"]
    was_open = row["open"]
    advance(row, fact)
    if fact.type == "message.recorded.v1" and row["judged"]:
        _message(row, fact, before, rows, was_open=was_open)
    elif fact.type == "task.adopted.v1":
        row["asked_at"], row["asked_position"] = fact.at, fact.n
    rows.put(key, row)


def _message(row: WaitRow, fact: Fact, before: str, rows: Rows, *, was_open: bool) -> None:
    data = fact.data
    if data.get("direction") == "out":
        if data.get("leg") == "request" and data.get("method") in SENDS:
            row["asked_at"], row["asked_position"] = fact.at, fact.n
        elif data.get("leg") == "request" and data.get("method") == _CANCEL:
            row["cancel_ver"] = fact.ver
        return
    if data.get("leg") not in _ARRIVALS or not was_open:
        return
    if _is_news(data, before, row["state"]):
        begun, _ = waiting_since(row)
        if begun is not None and row["peer"]:
            _count(rows, row["peer"], before, seconds_between(begun, fact.at))
        row["news_at"], row["news_position"], row["repeats"] = fact.at, fact.n, 0
    else:
        row["repeats"] += 1
    if _acknowledges(row, data):
        row["cancelled_at"], row["cancelled_position"] = fact.at, fact.n


def _is_news(data: JsonObject, before: str, after: str) -> bool:
    """Say whether the peer told more than was known: a repeated state, and an error about a question, do not."""
    if after != before or data.get("leg") == "push":
        return True
    if data.get("leg") == "stream-event":
        # A stream that is taken up again begins with the whole task as it stands.
        return data.get("method") != "SubscribeToTask" or data.get("pin_seen") is not True
    return data.get("method") in SENDS and went_well(data)


def _acknowledges(row: WaitRow, data: JsonObject) -> bool:
    answers = data.get("answers")
    ver = answers.get("ver") if isinstance(answers, dict) else None
    return ver is not None and ver == row["cancel_ver"] and went_well(data) and row["open"]


def _count(rows: Rows, peer: str, state: str, seconds: float) -> None:
    key = PEER + peer
    row = cast("PeerRow | None", rows.get(key))
    if row is None:
        row = PeerRow(peer=peer, waits={})
        rows.add(key, row)
    counts = row["waits"].setdefault(known_state(state), [0] * _BUCKETS)
    counts[bucket_of(seconds)] += 1
    rows.put(key, row)


def _new_row(task: str) -> WaitRow:
    return {
        **new_standing(),
        "task": task,
        "peer": "",
        "peer_url": None,
        "peer_task": None,
        "judged": True,
        "news_at": None,
        "news_position": None,
        "repeats": 0,
        "asked_at": None,
        "asked_position": None,
        "cancel_ver": None,
        "cancelled_at": None,
        "cancelled_position": None,
    }


VIEW: View = View(
    name="waits",
    edition=4,
    types=frozenset(
        {
            "contract.captured.v1",
            "contract.reconstructed.v1",
            "send.aborted.v1",
            "message.recorded.v1",
            "task.bound.v1",
            "task.adopted.v1",
        }
    ),
    fold=fold,
    shapes={TASK: WaitRow, PEER: PeerRow},
)


def follower(ledger: ContractLedger) -> ViewFollower:
    """Return the follower that keeps this view (entry point group `a2a_ledger.followers`)."""
    return ViewFollower(ledger.store, VIEW)


def bucket_of(seconds: float) -> int:
    """Return the bucket of a wait: the first whose edge, 2^i / 8 seconds, is not below it."""
    eighths = -int(-max(seconds, 0.0) * _FIRST_EDGE // 1)  # rounded up
    return min(max(eighths - 1, 0).bit_length(), _BUCKETS - 1)


def edge_of(bucket: int) -> float:
    """Return the longest wait of a bucket, in seconds."""
    return (1 << bucket) / _FIRST_EDGE


def known_state(state: str) -> str:
    """Return the state that waits are counted under: peers may invent as many as they like."""
    return state if state in _KNOWN else _OTHER


def waiting_since(row: WaitRow) -> tuple[str | None, int | None]:
    """Return when the present wait began: with the newest of the peer's news and our own send."""
    news, asked = row["news_position"], row["asked_position"]
    if asked is not None and (news is None or asked > news):
        return row["asked_at"], asked
    return row["news_at"], news


def seconds_between(start: str, end: str) -> float:
    """Return the seconds between two times of our clock; 0 where it went backwards."""
    return max((datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds(), 0.0)
