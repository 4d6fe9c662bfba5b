"""Events of what is no exchange: a message without its other half, and what a task store held.

Neither is ever judged: a lone message stays with its peer, or with its file where nothing says whose it is, and a
snapshot is no message (docs/format.md section 13.4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.capture.formats.coding import closed
from a2a_ledger.capture.outside import as_said
from a2a_ledger.capture.recorder import message_event, see, stream_end_event
from a2a_ledger.capture.redacted import RecordedUrl, blobs_of, without_secrets
from a2a_ledger.errors import FormatError
from a2a_ledger.events import MessageRecorded, TaskSnapshot
from a2a_ledger.wire import Leg, parse_push, parse_request, parse_response, parse_stream_event, split_stream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.capture.formats.entry import Lone, Snapshot
    from a2a_ledger.codec import Content
    from a2a_ledger.ledger import ContractLedger

    Recorded = tuple[MessageRecorded, dict[str, Content]]


def snapshot_leg(snapshot: Snapshot) -> Leg:
    """Read what a snapshot says of its task: it has the form of a Task that was pushed."""
    return parse_push((), snapshot.task)


def snapshot_event(
    snapshot: Snapshot, leg: Leg, *, peer: str, at: ContractLedger
) -> tuple[TaskSnapshot, dict[str, Content]]:
    """Return the event of one Task of a store.

    Args:
        snapshot: as it stands in the file.
        leg: what `snapshot_leg` read in it.
        peer: whose task it is, or the file's own id.
        at: the ledger that it is for.

    Raises:
        FormatError: the task's id is none that a record can hold.
    """
    seen = as_said(see((), snapshot.body), Leg(leg="push", binding="unknown"), outside=False)
    leg = without_secrets(leg, seen.secrets)
    if leg.task_id is None:
        raise FormatError(f"expected a Task with an id, found one that is none ({', '.join(leg.flags) or 'a secret'})")
    event = TaskSnapshot(
        peer=peer,
        task_id=leg.task_id,
        context_id=leg.context_id,
        state=leg.state,
        state_read=leg.state_read,
        flags=list(leg.flags) or None,
    )
    return event, blobs_of(RecordedUrl("", None), seen, seen.secrets, at)


def lone_events(lone: Lone, *, peer: str, url: str, at: ContractLedger) -> Iterator[Recorded]:
    """Yield the events of a message that stands alone; of a stream one for each event and one for its end.

    Args:
        lone: the message.
        peer: whom it came from or was sent to, or the file's own id.
        url: where it was sent, "" where nobody says.
        at: the ledger that it is for.
    """
    asked = Leg(leg="request", binding="unknown", url=url)
    if lone.is_stream and not lone.coded:
        yield from _stream(lone, asked, peer, at)
        return
    body = b"" if lone.coded else lone.body
    if lone.is_request:
        leg = parse_request("POST", url, lone.headers, body)
    else:
        leg = parse_response(asked, lone.status or 0, lone.headers, body)
    nothing_known = leg.kind is None if not lone.is_request else leg.flags != () and leg.method is None
    seen = closed(as_said(see(lone.headers, lone.body, url=url), leg, outside=nothing_known, url=url), lone)
    yield message_event(leg, seen, peer=peer, at=at, url=url, flags=() if lone.whole else ("truncated",))


def _stream(lone: Lone, asked: Leg, peer: str, at: ContractLedger) -> Iterator[Recorded]:
    known = see(lone.headers, b"").secrets
    events = split_stream(lone.body)
    for sequence, one in enumerate(events):
        leg = parse_stream_event(asked, one.raw)
        headers = lone.headers if sequence == 0 else ()
        seen = as_said(see(headers, one.raw), leg, outside=leg.kind is None)
        flags = () if one.complete else ("truncated",)
        yield message_event(leg, seen, peer=peer, at=at, known=known, sequence=sequence, flags=flags)
    yield stream_end_event(
        asked,
        peer=peer,
        at=at,
        answers=None,
        sequence=len(events),
        how="complete" if not events or events[-1].complete else "closed",
        status=lone.status,
        headers=() if events else lone.headers,
        known=known,
    )
