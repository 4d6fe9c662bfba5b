"""From the log to the inputs of one freshness decision (docs/format.md section 9).

Everything here is read from events, so a replay of the task finds the same inputs; what a decision
was made from is recorded with it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from a2a_ledger.freshness import (
    CardEntry,
    Choices,
    Decision,
    Hint,
    Inputs,
    Limits,
    Manifest,
    Refetch,
    Sibling,
    Sighting,
    TaskState,
    Validator,
    decide,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_ledger.capture.manifests import LookedAt
    from a2a_ledger.capture.peerview import KeptCard, PeerView
    from a2a_ledger.capture.reader import LogReader
    from a2a_ledger.codec import Record
    from a2a_ledger.contract import Profile
    from a2a_ledger.events import JsonObject
    from a2a_ledger.settings import Limits as ChosenLimits

PAST_SUBMITTED = frozenset(
    {"working", "completed", "failed", "canceled", "rejected", "input-required", "auth-required"}
)
_ANSWERS = frozenset({"response", "stream-event"})
_SUCCESS = range(200, 300)
_MAX_LISTED = 16
_MAX_WATCHED = 256
_LOOK_AGAIN = timedelta(seconds=1)
_PAGE = 32
_OPENING = 4
"""Records at the beginning of a task among which its capture stands."""

_HTTP_ERROR = 400


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision with the inputs that it was made from."""

    inputs: Inputs
    decision: Decision

    @property
    def stops(self) -> bool:
        """Say whether nothing may be sent."""
        return self.decision.decision == "abort-before-send"

    @property
    def fetches(self) -> bool:
        """Say whether a card GET comes first."""
        return self.decision.decision in {"refetch-once", "discover"}


def take(inputs: Inputs) -> Decided:
    """Put the question, and keep what it was answered from."""
    return Decided(inputs, decide(inputs))


def again(first: Decided, outcome: str, etag: str | None, *, manifest_stands: bool = True) -> Decided:
    """Decide again, now that a fetch has said something.

    Args:
        first: the first answer.
        outcome: what the fetch brought (docs/format.md section 9.3).
        etag: its entity tag.
        manifest_stands: False: it brought another card than the manifest of the first question speaks of.
    """
    manifest = first.inputs.manifest
    if manifest is not None and not manifest_stands:
        manifest = replace(manifest, valid=False)
    return take(replace(first.inputs, manifest=manifest, refetch=Refetch(outcome=outcome, etag=etag)))


class _Sibling(NamedTuple):
    """A send whose task is not seen past `submitted`."""

    stands: Sibling
    """As it was when it was looked at last."""
    caller: str
    looked: datetime | None = None
    """When its state was last read from the log."""


class SiblingWatch:
    """The sends to a peer that are not seen past `submitted`: each look reads only what is new since the last.

    What this process records of a task is told at once; what only others record is looked up once a second, since a
    look at every task of many that run at once costs more than all the rest of a decision.
    """

    def __init__(self, reader: LogReader) -> None:
        self._reader = reader
        self._waiting: dict[str, OrderedDict[str, _Sibling]] = {}
        self._seen: dict[str, int] = {}
        self._settled: OrderedDict[str, None] = OrderedDict()
        self._own: OrderedDict[str, _Sibling] = OrderedDict()
        """What this process sends and no look has met yet: nobody has to read it back."""
        self._looking = threading.Lock()

    def sends(self, stream: str, sent_at: datetime, caller: str, at: datetime) -> None:
        """Take note of a send of this process that opens its task, before the log has it and another's look meets it.

        One that never comes to be in the log is never met, and then the note means nothing.

        Args:
            stream: of the task.
            sent_at: when its first record was made, as that says.
            caller: the caller class that its contract is frozen for.
            at: our clock.
        """
        with self._looking:
            self._own[stream] = _Sibling(Sibling(state="sent", sent_at=sent_at), caller, at)
            if len(self._own) > _MAX_WATCHED:
                self._own.popitem(last=False)

    def settle(self, stream: str) -> None:
        """Take note that this process saw a task past `submitted`, so that nobody has to look it up."""
        with self._looking:
            self._settled[stream] = None
            self._own.pop(stream, None)
            if len(self._settled) > _MAX_WATCHED:
                self._settled.popitem(last=False)

    def told(self, stream: str) -> None:
        """Take note that this process recorded something that was said of a task, so that it is looked up again."""
        with self._looking:
            for waiting in (self._own, *self._waiting.values()):
                if (sibling := waiting.get(stream)) is not None:
                    waiting[stream] = sibling._replace(looked=None)

    def open_sends(self, peer: str, now: datetime, limit: int, *, caller: str | None) -> list[Sibling]:
        """Return the siblings of a decision: sends of the last `limit` seconds whose task is not past `submitted`.

        Args:
            peer: peer id.
            now: our clock.
            limit: seconds.
            caller: the caller class whose sends count; None: everybody's.
        """
        with self._looking:
            waiting = self._waiting.setdefault(peer, OrderedDict())
            self._take_in(peer, waiting, now, limit)
            found: list[Sibling] = []
            for stream, sibling in list(waiting.items()):
                if stream in self._settled or _age(sibling, now) >= limit:
                    del waiting[stream]
                    continue
                if caller not in {None, sibling.caller}:
                    continue
                looked = self._look(stream, sibling, now)
                if looked is None:
                    del waiting[stream]
                    continue
                waiting[stream] = looked
                found.append(looked.stands)
                if len(found) == _MAX_LISTED:
                    break
            return found

    def _look(self, stream: str, sibling: _Sibling, now: datetime) -> _Sibling | None:
        """Return a send as it stands, looked up if that was not done just now; None: it is past `submitted`."""
        if sibling.looked is not None and sibling.looked < now < sibling.looked + _LOOK_AGAIN:
            return sibling
        state = task_state(self._reader, stream)
        if state in PAST_SUBMITTED or ended_in_error(self._reader, stream):
            return None
        return sibling._replace(stands=replace(sibling.stands, state=state), looked=now)

    def _take_in(self, peer: str, waiting: OrderedDict[str, _Sibling], now: datetime, limit: int) -> None:
        """Watch the sends since the last look that are younger than `limit`, the newest 256 of them."""
        places = self._reader.tagged_places(f"sent:{peer}", after=self._seen.get(peer, -1), limit=_MAX_WATCHED)
        if not places:
            return
        self._seen[peer] = places[0][0]
        young: list[tuple[str, _Sibling]] = []
        for _, stream in places:
            if stream in self._settled:
                continue
            sibling = self._own.pop(stream, None) or self._read(stream)
            if _age(sibling, now) >= limit:
                break
            young.append((stream, sibling))
        waiting.update(reversed(young))
        while len(waiting) > _MAX_WATCHED:
            waiting.popitem(last=False)

    def _read(self, stream: str) -> _Sibling:
        opening = self._reader.read_stream(stream, limit=_OPENING)
        sent_at = datetime.fromisoformat(opening[0].at)
        return _Sibling(Sibling(state="sent", sent_at=sent_at), _caller(opening))


def _age(sibling: _Sibling, now: datetime) -> float:
    return (now - sibling.stands.sent_at).total_seconds()


def _caller(opening: Sequence[Record]) -> str:
    captures = (record.data.get("caller") for record in opening if record.type == "contract.captured.v1")
    return next((caller for caller in captures if isinstance(caller, str)), "anonymous")


def ended_in_error(reader: LogReader, stream: str) -> bool:
    """Say whether a send failed without a task of the peer: no answer, an HTTP error status, or an error answer."""
    failed = False
    for record in reader.read_stream(stream, limit=_PAGE, desc=True):
        data = record.data
        if record.type != "message.recorded.v1" or data.get("direction") != "in":
            continue
        if data.get("state_read") is not None:
            return False
        status, leg = data.get("status"), data.get("leg")
        refused = isinstance(status, int) and status >= _HTTP_ERROR
        cut = leg == "stream-end" and data.get("error_kind") not in {None, "closed-by-caller", "cancelled"}
        stopped = leg == "error" or cut
        named = leg not in {"error", "stream-end"} and data.get("task_id") is not None
        if named and not refused:
            return False
        failed = failed or refused or stopped or data.get("error_code") is not None
    return failed


def task_state(reader: LogReader, stream: str) -> str:
    """Return a task's state for a decision: `intended`, `sent`, `adopted`, or the state that the peer last said.

    A task that was answered by a bare message counts as `completed`. Read from the newest record
    back, so that a long task costs no more than a short one.
    """
    page, below = _PAGE, None
    state = "intended"
    while True:
        records = reader.read_stream(stream, limit=page, desc=True)
        for record in records:
            if below is not None and record.ver >= below:
                continue
            said, final = _state_said(record)
            if final:
                return said
            if said:
                state = said
        if len(records) < page:
            return state
        below = records[-1].ver
        page *= 8


def _state_said(record: Record) -> tuple[str, bool]:
    """Return what one record says about its task's state, and whether nothing older can change that."""
    data = record.data
    if record.type == "task.adopted.v1":
        return "adopted", True
    if record.type != "message.recorded.v1":
        return "", False
    if data.get("direction") == "out":
        return ("sent", False) if data.get("leg") == "request" else ("", False)
    said = data.get("state_read")
    if isinstance(said, str):
        return said, True
    return ("completed", True) if _answered_by_message(data) else ("", False)


def _answered_by_message(data: JsonObject) -> bool:
    status = data.get("status")
    return (
        data.get("leg") in _ANSWERS
        and data.get("message_id") is not None
        and data.get("task_id") is None
        and (not isinstance(status, int) or status in _SUCCESS)
    )


def decision_inputs(  # noqa: PLR0913 - one argument a member of the inputs
    *,
    now: datetime,
    reader: LogReader,
    view: PeerView,
    card: KeptCard | None,
    version: str | None,
    state: str,
    siblings: Sequence[Sibling],
    client_versions: Sequence[str],
    limits: ChosenLimits,
    profile: Profile,
    manifest: LookedAt | None,
    in_process: bool = False,
) -> Inputs:
    """Return the inputs of one decision.

    Args:
        now: our clock.
        reader: the log.
        view: the peer as the log knows it.
        card: the card that the client acts on; None when there is none.
        version: version of the interface to be used; None when it is not stated.
        state: the task's state, see `task_state`.
        siblings: see `SiblingWatch`.
        client_versions: versions that the client's state machine is made for.
        limits: seconds.
        profile: the deployment's choices for rows 4, 6 and a failed re-fetch.
        manifest: the manifest that governs this peer, if any.
        in_process: the transport never leaves this process.
    """
    stands, hints = (None, []) if card is None else _standing(card, view)
    if stands is not None:
        hints = _since(stands, [*hints, *_hints(reader, view.peer, stands)])
    seen = view.seen.get(card.key, []) if card else []
    return Inputs(
        now=now,
        transport="in-process" if in_process else "network",
        manifest=None
        if manifest is None
        else Manifest(valid=manifest.applies, floor_until=datetime.fromisoformat(manifest.floor_until)),
        card=None if stands is None else _card_entry(stands, version),
        validator=view.validator(card.key) if card else Validator(present=False),
        task=TaskState(state=state),
        siblings=tuple(siblings),
        client_versions=tuple(client_versions),
        hints=tuple(hints),
        contracts_seen=_recent(seen, now, limits.flap),
        limits=Limits(**limits.to_json()),
        profile=Choices(sibling=profile.sibling, skew=profile.skew, failed=profile.failed),
    )


def _standing(card: KeptCard, view: PeerView) -> tuple[KeptCard, list[Hint]]:
    """Return the newest answer that says the client's contract stands, and the hint that another one was seen since."""
    said = view.newest_saying(card.key, card.contract_hash)
    stands = said if said is not None and said.n > card.n else card
    for other in view.newest_at(card.key.place):  # somebody else's card is a reason to ask for ours again, no more
        if card.source == "extended" and other.caller != card.caller:
            continue  # it may differ by caller
        if other.n > stands.n and other.contract_hash != card.contract_hash:
            return stands, [Hint(kind="newer-card", at=datetime.fromisoformat(other.fetched_at))]
    return stands, []


def _since(card: KeptCard, hints: list[Hint]) -> list[Hint]:
    """Return hints that the log has after the card, none older than it: the log's order counts, not the clock's."""
    fetched_at = datetime.fromisoformat(card.fetched_at)
    return [replace(hint, at=max(hint.at, fetched_at)) for hint in hints]


def _hints(reader: LogReader, peer: str, card: KeptCard) -> list[Hint]:
    """Return what happened since the card was fetched that makes it doubtful, newest of each kind."""
    found: list[Hint] = []
    for tag, kind in ((f"hint:{peer}", "401"), (f"contradicted:{peer}", "contract-finding")):
        if reader.tagged_places(tag, after=card.n, limit=1):
            newest = reader.tagged(tag, limit=1, desc=True)
            found.append(Hint(kind=kind, at=datetime.fromisoformat(newest[0].at)))
    return found


def _recent(seen: Sequence[tuple[str, str]], now: datetime, window: int) -> tuple[Sighting, ...]:
    """Return the contracts seen in the flapping window, and the one that stood when it began."""
    start = now - timedelta(seconds=window)
    sightings = [Sighting(at=datetime.fromisoformat(at), contract=contract) for at, contract in seen]
    inside = [one for one in sightings if one.at >= start]
    before = [one for one in sightings if one.at < start]
    return tuple([*before[-1:], *inside][-_MAX_LISTED:])


def _card_entry(card: KeptCard, version: str | None) -> CardEntry:
    return CardEntry(
        kind=card.source,
        caller=card.caller,
        fetched_at=datetime.fromisoformat(card.fetched_at),
        age_header=card.age,
        max_age=card.max_age,
        no_cache=card.no_cache,
        etag=card.etag,
        last_modified=card.last_modified,
        version=version,
        contract=card.contract_hash,
    )
