"""Rules on what a task makes: `artifact-rewritten`, and `late-after-final` on the stream that carries it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.divergence.exchanges import Said
from a2a_ledger.divergence.reading import ref, text
from a2a_ledger.divergence.readings import LONGEST
from a2a_ledger.wire import TERMINAL, Running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a_ledger.divergence.exchanges import Ended
    from a2a_ledger.divergence.finding import Finding
    from a2a_ledger.divergence.matter import Matter
    from a2a_ledger.divergence.spoken import Artifact, Closed
    from a2a_ledger.events import Json
    from a2a_ledger.wire import ArtifactContent, Contents

_SAYINGS = frozenset({"task", "message", "status-update", "artifact-update"})


def artifact_rules(matter: Matter, said: Contents) -> Iterator[Finding]:
    """`artifact-rewritten`: an artifact is another one than it was when it was complete.

    Complete is an artifact with its last chunk, and what there is of it when the task reaches a terminal state. Chunks
    are laid together stream by stream, so that two streams of one task count once, and adjacent texts are one text,
    however they are cut. What another stream says of a complete artifact is judged as a whole, when that stream says
    that it is complete and has told it from its first chunk: the chunks by themselves may be those that made it.
    No finding is an answer to a request from before that moment, a chunk that comes again, what may have been under
    way for long (a push, a stream that was taken up again) unless it is a whole Task in a terminal state, an artifact
    that is not mentioned, and, while the task still runs, what the artifact was on its way: a store may lag behind a
    stream. To what another source tells only a whole Task in a terminal state is held, as suspected.

    Established: that the peer gave two contents for one complete artifact. Not established: which of them is meant to
    count; that the new one is worse. Names, descriptions, media types and metadata are not compared.
    """
    record = matter.record
    task, state = text(record.data, "task_id") or "", text(record.data, "state_read")
    if said.chunk is not None and record.data.get("leg") == "stream-event":
        artifact = matter.told.spoken.artifacts.get((task, said.chunk.id))
        if artifact is not None and artifact.closed is not None:
            yield from _chunk(matter, artifact, artifact.closed, said.chunk)
    if not said.artifacts or (state not in TERMINAL and matter.case.may_be_late(record)):
        return
    for one in said.artifacts:
        for told, certainty in matter.sources:
            artifact = told.spoken.artifacts.get((task, one.id))
            if artifact is not None and artifact.closed is not None and one.pieces is not None:
                content = Running(one.pieces).content()
                if artifact.closed.content is None or content.is_as(artifact.closed.content):
                    continue
                lags = certainty != "certain" or not one.pieces or content.is_among(artifact.partly)
                if state in TERMINAL or not lags:
                    yield from _rewritten(matter, artifact.closed, one, "replaced", certainty)


def _chunk(matter: Matter, artifact: Artifact, closed: Closed, chunk: ArtifactContent) -> Iterator[Finding]:
    """A chunk that comes when the artifact was complete."""
    if not chunk.pieces:
        return
    answers = ref(matter.record.data, "answers")
    if answers is None or answers["c"] != closed.answers:
        told = artifact.laid_together(answers["c"], chunk) if answers is not None and chunk.last else None
        if told is not None and closed.content is not None and not told.content().is_as(closed.content):
            yield from _rewritten(matter, closed, chunk, "replaced")
        return
    content = Running(chunk.pieces).content()
    if content.is_among(artifact.chunks) or (closed.content is not None and content.is_as(closed.content)):
        return
    if chunk.append:
        yield from _rewritten(matter, closed, chunk, "appended")
    elif closed.content is not None:
        yield from _rewritten(matter, closed, chunk, "replaced")


def _rewritten(
    matter: Matter, closed: Closed, one: ArtifactContent, kind: str, certainty: str = "certain"
) -> Iterator[Finding]:
    if matter.case.precedes(matter.record, Said(closed.evidence, closed.value, closed.answers)):
        return
    yield matter.finding(
        "artifact-rewritten",
        about="peer",
        certainty=certainty,
        subject=f"artifact:{matter.readings.in_subject(one.id)}",
        evidence=(closed.evidence,),
        observed={"artifact": one.id[:LONGEST], "kind": kind, "complete_by": closed.value},
    )


def late_after_final(matter: Matter, said: Contents) -> Iterator[Finding]:
    """`late-after-final`: a stream goes on after the event that ended it.

    Up to 0.3 a status update with `final` ends a stream, from 1.0 on a terminal state does. No finding is an event
    that only says the last state again, a chunk or message that came before, an error, and a push or another
    stream, which have no end in common with this one. Another state behind a terminal one is `illegal-transition`.

    Established: that the peer sent more on a stream that it had declared finished. Not established: that a client
    missed it, or that it was not meant.
    """
    ended = None if matter.asked is None else matter.asked.ended
    if ended is None or matter.record.data.get("leg") != "stream-event" or said.kind not in _SAYINGS:
        return
    if _says_nothing_new(matter, said, ended):
        return
    observed: dict[str, Json] = {"ended_at": ended.evidence.n, "state": ended.state, "then": said.kind}
    yield matter.finding(
        "late-after-final", about="peer", subject=said.kind or "", evidence=(ended.evidence,), observed=observed
    )


def _says_nothing_new(matter: Matter, said: Contents, ended: Ended) -> bool:
    state = text(matter.record.data, "state_read")
    if state is not None:
        return state == ended.state or ended.state in TERMINAL
    if said.chunk is not None:
        task = text(matter.record.data, "task_id") or ""
        artifact = matter.told.spoken.artifacts.get((task, said.chunk.id))
        return artifact is not None and bool(said.chunk.pieces) and _came_before(artifact, said.chunk)
    if said.message is not None and said.message.id is not None:
        known = matter.told.spoken.messages.get(said.message.id)
        spoken = said.message.content
        return known is not None and spoken is not None and spoken.is_among(known.contents)
    return False


def _came_before(artifact: Artifact, chunk: ArtifactContent) -> bool:
    return Running(chunk.pieces or ()).content().is_among(artifact.chunks)
