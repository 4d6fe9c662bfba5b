"""Where one task stands, folded from its own events: the small state machine that several views share.

It follows the record, never the peer's clock or history: the first terminal state stands, and what
arrives later changes nothing here (whether it *should* have arrived is the verifier's question). When
what a file tells was, beside what others tell, nobody knows: it may begin a task's story or end it, and
never takes it back. A plain Message ends a task that has no state; a state of it that is stated after all says
more, and stands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from a2a_ledger.wire import STATES, TERMINAL

if TYPE_CHECKING:
    from a2a_ledger.events import JsonObject
    from a2a_ledger_projections.facts import Fact

INTENDED, SENT, ABORTED, ANSWERED, ADOPTED = "intended", "sent", "aborted", "answered", "adopted"
RECEIVED = "received"
"""On the agent's side: a client's send is recorded, and nothing that answers it."""

KNOWN = frozenset({INTENDED, SENT, RECEIVED, ABORTED, ANSWERED, ADOPTED, *STATES.values()})
"""The states that a task can be in; one that A2A does not know stands as its peer spelled it."""

SENDS = frozenset({"SendMessage", "SendStreamingMessage"})

_LIVE = "live"
_BEGUN = frozenset({INTENDED, SENT, RECEIVED, ADOPTED})  # the peer has said nothing of a state yet
_ARRIVALS = frozenset({"response", "stream-event", "push"})
_ENDED = TERMINAL | {ABORTED}  # the peer has reported an end, or nothing was sent that could end
_SUCCESS = range(200, 300)
_HTTP_ERROR = 400


class Standing(TypedDict):
    """The part of a task's row that says where it stands."""

    state: str  # intended sent received aborted answered adopted, or the state said, as understood, else as spelled
    open: bool  # sent (or adopted) and not seen to end: a card fetch now is a probe. Never of a task that we serve
    since: str | None  # when this state was first recorded
    since_position: int | None
    sent_at: str | None
    told_by: str  # what told of this state: "live", else the imported file and which import of it this is


def new_standing() -> Standing:
    """Return the standing of a task of which nothing is recorded yet."""
    return {
        "state": INTENDED,
        "open": False,
        "since": None,
        "since_position": None,
        "sent_at": None,
        "told_by": _LIVE,
    }


def time_of(fact: Fact) -> str:
    """Return when the fact happened: as the source claims for imported material, else our clock's time."""
    if "claimed_at" not in fact.data:
        return fact.at
    claimed = fact.data["claimed_at"]
    return claimed if isinstance(claimed, str) else fact.at


def advance(standing: Standing, fact: Fact) -> None:
    """Move the standing by one event of the task's stream."""
    if standing["since"] is None:
        _enter(standing, INTENDED, fact, is_open=False)
    if fact.type == "message.recorded.v1":
        _message(standing, fact)
    elif fact.type == "send.aborted.v1" and standing["state"] == INTENDED:
        _enter(standing, ABORTED, fact, is_open=False)
    elif fact.type == "task.adopted.v1" and standing["state"] == INTENDED:
        _enter(standing, ADOPTED, fact, is_open=True)
    elif fact.type == "task.snapshot.v1" and fact.how == "live":  # our own task store saved it
        _say(standing, fact, served=True)


def _message(standing: Standing, fact: Fact) -> None:
    data = fact.data
    served = data.get("side") == "server"
    if served:
        standing["open"] = False
    if data.get("direction") == ("in" if served else "out"):
        if data.get("leg") == "request" and data.get("method") in SENDS:
            _sends(standing, fact, served=served)
        return
    if data.get("leg") in _ARRIVALS and not _say(standing, fact, served=served):
        _say_without_state(standing, fact)


def _sends(standing: Standing, fact: Fact, *, served: bool) -> None:
    if standing["state"] in {INTENDED, ABORTED}:
        _enter(standing, RECEIVED if served else SENT, fact, is_open=not served)
        standing["sent_at"] = time_of(fact)
    elif standing["state"] == SENT and not served and _source_of(fact) in {_LIVE, standing["told_by"]}:
        standing["open"] = True  # it was refused before, and this send has no answer yet


def _say(standing: Standing, fact: Fact, *, served: bool) -> bool:
    """Enter the state that an event states, unless the task has ended; return False where it states none."""
    state = fact.data.get("state_read") or fact.data.get("state")
    if not isinstance(state, str):
        return False
    if standing["state"] not in _ENDED and state != standing["state"] and _may_follow(standing, state, fact):
        _enter(standing, state, fact, is_open=state not in TERMINAL and not served)
    return True


def _may_follow(standing: Standing, state: str, fact: Fact) -> bool:
    """Say whether a state may be one behind the present one: of an imported file only in its own order, or as the end.

    What we see live is later than all that a file tells which was imported before.
    """
    source = _source_of(fact)
    return source in {_LIVE, standing["told_by"]} or standing["state"] in _BEGUN or state in TERMINAL


def _source_of(fact: Fact) -> str:
    return f"{fact.data.get('source_file')}#{fact.data.get('run') or 1}" if fact.how == "import" else _LIVE


def _say_without_state(standing: Standing, fact: Fact) -> None:
    data = fact.data
    if standing["state"] not in {SENT, RECEIVED} or data.get("method") not in SENDS:
        return
    if _is_error(data):
        standing["open"] = False  # the peer refused the send itself: there is no task that could be disturbed
    elif went_well(data) and data.get("message_id") is not None and data.get("task_id") is None:
        _enter(standing, ANSWERED, fact, is_open=False)  # a plain Message ends it; a redirect, or no content, does not


def went_well(data: JsonObject) -> bool:
    """Say whether an answer is neither an error of the binding nor of another HTTP status than 2xx."""
    status = data.get("status")
    return data.get("error_code") is None and (not isinstance(status, int) or status in _SUCCESS)


def _is_error(data: JsonObject) -> bool:
    status = data.get("status")
    return data.get("error_code") is not None or (isinstance(status, int) and status >= _HTTP_ERROR)


def _enter(standing: Standing, state: str, fact: Fact, *, is_open: bool) -> None:
    standing["state"] = state
    standing["open"] = is_open
    standing["since"] = time_of(fact)
    standing["since_position"] = fact.n
    standing["told_by"] = _source_of(fact)
