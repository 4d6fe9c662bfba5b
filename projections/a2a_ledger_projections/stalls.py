"""Which tasks have stalled, and why? A list with reasons, from the log and one point in time alone.

A task has stalled when it has waited for news for longer than its peer's usual: `FACTOR` times the time within
which 95 of 100 past waits in this state ended (rounded up to a power of two), never less than a
floor; with fewer than `ENOUGH` past waits it is a limit that the reader gives. What is said is that
nothing new came, never that the work is done, or lost: only the peer ends a task.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from a2a_ledger.divergence.reading import contents_of
from a2a_ledger.wire import INTERRUPTED
from a2a_ledger_projections.base import reading
from a2a_ledger_projections.waits import PEER, TASK, VIEW, edge_of, known_state, seconds_between, waiting_since

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from a2a_ledger.events import JsonObject
    from a2a_ledger.store import Store
    from a2a_ledger_projections.view import Table
    from a2a_ledger_projections.waits import PeerRow, WaitRow

LIMIT = 3600.0
"""Seconds that a task may wait where its peer's usual is not known, and that the peer may wait for our input."""

FLOOR = 60.0
"""Seconds below which nothing is called stalled, however quick the peer usually is."""

ENOUGH = 20
"""Past waits of a peer in one state from which its usual is told."""

FACTOR = 2
"""How many times as long as usual a wait may last."""

_QUANTILE = (95, 100)
_PAGE = 500
_MOST_ARTIFACTS = 1024


class Limits(NamedTuple):
    """What the reader of the list chose, in seconds."""

    limit: float = LIMIT
    floor: float = FLOOR


class Reason(NamedTuple):
    """Why a task is listed.

    Attributes:
        reason: silent, artifact-complete, cancel-not-terminal, or input-unanswered.
        since: when the wait began, our clock.
        position: of the event that it began with.
        seconds: how long it has lasted.
        limit: how long it may last, in seconds.
        by: what the limit is: usual, floor, or limit (given by the reader).
        samples: past waits of this peer in this state.
        detail: one sentence for people.
    """

    reason: str
    since: str
    position: int
    seconds: float
    limit: float
    by: str
    samples: int
    detail: str

    def to_json(self) -> JsonObject:
        """Return one member of `stalls`; seconds are whole ones."""
        return {
            "reason": self.reason,
            "since": self.since,
            "position": self.position,
            "seconds": int(self.seconds),
            "limit": int(self.limit),
            "by": self.by,
            "samples": self.samples,
            "detail": self.detail,
        }


@dataclass(frozen=True, slots=True)
class Stall:
    """One task that waits for too long, and why."""

    row: WaitRow
    reasons: tuple[Reason, ...]


def usual(row: PeerRow | None, state: str, limits: Limits) -> tuple[float, str, int]:
    """Return how long a peer may take in a state, in seconds, where this comes from, and past waits.

    It is `FACTOR` times the least edge that 95 of 100 past waits lie within, at least the floor; with fewer than
    `ENOUGH` waits it is the reader's limit.
    """
    counts = row["waits"].get(known_state(state), []) if row is not None else []
    samples = sum(counts)
    if samples < ENOUGH:
        return limits.limit, "limit", samples
    share, of = _QUANTILE
    within = 0
    for bucket, count in enumerate(counts):
        within += count
        if within * of >= samples * share:
            found = FACTOR * edge_of(bucket)
            return (found, "usual", samples) if found > limits.floor else (limits.floor, "floor", samples)
    return limits.limit, "limit", samples  # not reached: all samples lie within the last bucket


def stalled(store: Store, now: datetime, limits: Limits | None = None) -> list[Stall]:
    """Return the tasks of a ledger that have stalled as of `now`, in the order in which they began."""
    with reading(store, VIEW) as view:
        return list(stalled_in(view.rows, now, limits or Limits(), partial(complete_since, store)))


def stall_of(store: Store, task: str, now: datetime, limits: Limits | None = None) -> Stall | None:
    """Return why one task has stalled; None: it has not."""
    with reading(store, VIEW) as view:
        row = cast("WaitRow | None", view.rows.get(TASK + task))
        if row is None:
            return None
        return _judge(row, view.rows, now, limits or Limits(), partial(complete_since, store))


def stalled_in(rows: Table, now: datetime, limits: Limits, complete: Callable[[str], int | None]) -> Iterator[Stall]:
    """Yield the stalled tasks of a view; `complete` gives the position at which all artifacts were complete."""
    for row in (cast("WaitRow", found) for found in rows.prefixed(TASK)):
        found = _judge(row, rows, now, limits, complete)
        if found is not None:
            yield found


def complete_since(store: Store, task: str) -> int | None:
    """Return the position of the chunk that completed the last open artifact of a task; None: none, or one is open.

    Read from the bodies, since a record does not state it. That every artifact is complete ends no task: only the
    peer does.
    """
    last: dict[str, int | None] = {}
    ver = -1
    while page := store.read_stream(f"{TASK}{task}", gt=ver, limit=_PAGE):
        for record in page:
            if record.type != "message.recorded.v1" or record.data.get("leg") not in {"stream-event", "push"}:
                continue
            chunk = contents_of(record).chunk
            if chunk is not None and (chunk.id in last or len(last) < _MOST_ARTIFACTS):
                last[chunk.id] = record.n if chunk.last else None
        ver = page[-1].ver
    ends = list(last.values())
    complete = [n for n in ends if n is not None]
    return max(complete) if complete and len(complete) == len(ends) else None


def _judge(
    row: WaitRow, rows: Table, now: datetime, limits: Limits, complete: Callable[[str], int | None]
) -> Stall | None:
    if not row["open"] or not row["judged"]:
        return None
    peer = cast("PeerRow | None", rows.get(PEER + row["peer"]))
    at = now.isoformat()
    reasons = [
        reason
        for reason in (
            _silent(row, peer, at, limits, complete),
            _unanswered(row, at, limits),
            _cancelled(row, at, limits),
        )
        if reason is not None
    ]
    return Stall(row, tuple(reasons)) if reasons else None


def _waits_for_us(row: WaitRow) -> bool:
    news, asked = row["news_position"], row["asked_position"]
    return row["state"] in INTERRUPTED and (asked is None or (news is not None and asked < news))


def _silent(
    row: WaitRow, peer: PeerRow | None, now: str, limits: Limits, complete: Callable[[str], int | None]
) -> Reason | None:
    since, position = waiting_since(row)
    if since is None or position is None or _waits_for_us(row):
        return None
    limit, by, samples = usual(peer, row["state"], limits)
    seconds = seconds_between(since, now)
    if seconds <= limit:
        return None
    again = f"; asked {row['repeats']} times since, it told nothing new" if row["repeats"] else ""
    ended = complete(row["task"])
    if ended is not None:
        detail = f"stalled in {row['state']}, artifact says complete: its last chunk came with #{ended}{again}"
        return Reason("artifact-complete", since, position, seconds, limit, by, samples, detail)
    detail = f"nothing new from the peer in {row['state']} since #{position}{again}"
    return Reason("silent", since, position, seconds, limit, by, samples, detail)


def _unanswered(row: WaitRow, now: str, limits: Limits) -> Reason | None:
    since, position = row["news_at"], row["news_position"]
    if not _waits_for_us(row) or since is None or position is None:
        return None
    seconds = seconds_between(since, now)
    if seconds <= limits.limit:
        return None
    detail = f"the peer waits for our input since #{position} ({row['state']}), and nothing was sent"
    return Reason("input-unanswered", since, position, seconds, limits.limit, "limit", 0, detail)


def _cancelled(row: WaitRow, now: str, limits: Limits) -> Reason | None:
    since, position = row["cancelled_at"], row["cancelled_position"]
    if since is None or position is None:
        return None
    seconds = seconds_between(since, now)
    if seconds <= limits.floor:
        return None
    detail = f"a cancel was acknowledged with #{position}, and the task is still {row['state']}"
    return Reason("cancel-not-terminal", since, position, seconds, limits.floor, "floor", 0, detail)
