"""Rules on what stands twice: one id for two contents (`duplicate-id`), one member with two values (`duplicate-keys`).

Both hold against either side: a client whose body reads two ways is as much the cause of a dispute as a peer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.divergence.reading import body_cut, is_request, message_body, text, texts
from a2a_ledger.divergence.readings import LONGEST
from a2a_ledger.divergence.spoken import CONTENTS
from a2a_ledger.wire import Running, repeated_members
from a2a_ledger.wire.jsontext import as_scalar_text
from a2a_ledger.wire.sse import data_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from a2a_ledger.divergence.finding import Evidence, Finding
    from a2a_ledger.divergence.matter import Matter
    from a2a_ledger.divergence.spoken import Known
    from a2a_ledger.events import Json
    from a2a_ledger.wire import Content, Contents

_MOST = 16


def duplicate_id(matter: Matter, said: Contents) -> Iterator[Finding]:
    """`duplicate-id`: one id, two contents: a message that was recorded otherwise, or two in one Task.

    Who says the second one is who it is about. A retry with the same content, a copy with ids filled in, and the
    same message in status and history are equal. What a *history* says of a message that was recorded before is
    `history-divergence`, if the recorded one does not stand in it too, and a complete artifact that changes
    `artifact-rewritten`.

    Established: that the id names two contents on this task. Not established: which of them the other side acted on.
    """
    for pointer, one in (("/message", said.message), ("/status/message", said.status)):
        known, certainty = matter.known(None if one is None else one.id)
        if one is None or known is None or one.content is None:
            continue
        if not one.content.is_among(known.contents) and len(known.contents) < CONTENTS:
            yield _twice(matter, "message", one.id or "", pointer, known.evidence, certainty)
    messages = [(one.id, one.content) for one in (*said.history, said.status) if one is not None]
    for name in _differing(messages):
        known, _ = matter.known(name)
        if known is None:
            yield _twice(matter, "message", name, "/history")
        elif _stands_beside(known, [content for other, content in messages if other == name]):
            yield _twice(matter, "message", name, "/history", known.evidence)
    artifacts = [(one.id, Running(one.pieces).content() if one.pieces else None) for one in said.artifacts]
    for name in _differing(artifacts):
        yield _twice(matter, "artifact", name, "/artifacts")


def _stands_beside(known: Known, listed: list[Content | None]) -> bool:
    """Say whether a new content stands beside a recorded one of the same id; alone it is the history's divergence."""
    among = {content.is_among(known.contents) for content in listed if content is not None}
    return among == {True, False} and len(known.contents) < CONTENTS


def _differing(listed: Iterable[tuple[str | None, Content | None]]) -> list[str]:
    """Return the ids that stand with two contents."""
    first: dict[str, Content] = {}
    found: dict[str, None] = {}
    for name, told in listed:
        if name is not None and told is not None and not first.setdefault(name, told).is_as(told):
            found[name] = None
    return list(found)[:_MOST]


def _twice(  # noqa: PLR0913, PLR0917 - what stands twice, under which name, where, and against what
    matter: Matter,
    what: str,
    name: str,
    pointer: str,
    evidence: Evidence | None = None,
    certainty: str = "certain",
) -> Finding:
    return matter.finding(
        "duplicate-id",
        about=_speaker(matter),
        certainty="suspected" if _may_be_two_clients(matter, evidence) else certainty,
        subject=f"{what}:{matter.readings.in_subject(name)}",
        evidence=(evidence,),
        observed={"id": what, "value": name[:LONGEST], "pointer": pointer},
    )


def _may_be_two_clients(matter: Matter, evidence: Evidence | None) -> bool:
    """Say whether a request of ours goes on with another task of the peer than the one that had its id before.

    Two clients behind one proxy, each of which counts its messages from 1 and began with the same words, have tasks of
    their own at the peer and one in the log.
    """
    before = None if evidence is None else matter.case.asked.get(evidence.ref["c"])
    if before is None or not is_request(matter.record):
        return False
    named, first = text(matter.record.data, "task_id"), before.task_id or before.answered_task
    return None not in {named, first} and named != first


def _speaker(matter: Matter) -> str:
    return "client" if is_request(matter.record) else "peer"


def duplicate_keys(matter: Matter) -> Iterator[Finding]:
    """`duplicate-keys`: a body holds one member twice in one object, with two values.

    Two readers of JSON take two meanings from it, and both are right (RFC 8259 section 4); what the recorder shows of
    the message is the last value. The same value twice reads in one way, and is no finding.

    Established: that the body reads two ways. Not established: which way anybody read it; that it was meant.
    """
    if "duplicate-keys" not in texts(matter.record.data.get("flags")):
        return
    repeated = repeated_members(data_of(message_body(matter.record) or b""))
    other = body_cut(matter.record) if matter.readings.heeds_cuts and repeated else None
    if other is not None:  # two names that were cut look like one
        twice = set(repeated_members(data_of(other)))
        repeated = [name for name in repeated if name in twice]
    names = [as_scalar_text(name) for name in repeated]
    if names:
        listed: list[Json] = [name[:LONGEST] for name in names[:_MOST]]
        yield matter.finding(
            "duplicate-keys",
            about=_speaker(matter),
            subject=f"{matter.record.data.get('direction')}:{matter.readings.in_subject(names[0])}",
            observed={"members": listed, "count": len(names)},
        )
