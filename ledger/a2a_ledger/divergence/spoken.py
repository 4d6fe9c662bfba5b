"""What was said on one task so far: messages by id, the peer's histories, artifacts, streams that ended.

The part of a task's case that the rules on history, artifacts and ids look at. It holds digests, never
content, and of everything the newest, the same ones wherever the fold runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from a2a_ledger.divergence.reading import ref, text
from a2a_ledger.wire import SILENCE, TERMINAL, Running

if TYPE_CHECKING:
    from a2a_ledger.codec import Record
    from a2a_ledger.divergence.finding import Evidence
    from a2a_ledger.wire import ArtifactContent, Content, Contents, MessageContent

MESSAGES = 512
"""Messages of one task that are remembered, the newest."""
CONTENTS = 4
"""Contents of one message id that are told apart; a message that had as many says nothing more."""
TASKS = 8
"""Tasks of the peer whose histories are remembered: a resend may open a second one."""
ARTIFACTS = 256
STREAMS = 8
CHUNKS = 256
"""Artifacts of a task, streams that carry one artifact, and chunks of it, that are remembered, the newest."""

_K = TypeVar("_K")
_V = TypeVar("_V")


@dataclass(slots=True)
class Known:
    """One message: where its id was seen first, and the contents that it was seen with."""

    evidence: Evidence
    contents: tuple[Content, ...]
    ours: bool = False
    answered: int | None = None
    """Version of the peer's first good answer to our request with it."""


class Shown(NamedTuple):
    """The longest history of one task that the peer has shown so far."""

    evidence: Evidence
    answers: str | None
    messages: tuple[MessageContent, ...]
    length: int


class Closed(NamedTuple):
    """When an artifact was complete, and as what; `content` None: that is not known."""

    evidence: Evidence
    value: str
    """last-chunk, or the terminal state."""
    answers: str | None
    content: Content | None


@dataclass(slots=True)
class Artifact:
    """One artifact as it came in, stream by stream: concurrent streams of one task carry the same chunks."""

    streams: dict[str, Running | None] = field(default_factory=dict[str, "Running | None"])
    """By the request that a stream answers; None: it did not begin with the artifact's first chunk.

    What a stream says behind a snapshot is not laid onto it: chunks that it was taken with may come once more, and
    those of the moment in which it was taken may come in neither.
    """
    partly: dict[Content, None] = field(default_factory=dict["Content", None])
    """What it was while it grew: a peer's store may lag behind its streams."""
    chunks: dict[Content, None] = field(default_factory=dict["Content", None])
    closed: Closed | None = None

    def laid_together(self, stream: str, chunk: ArtifactContent) -> Running | None:
        """Return what this stream has of the artifact with one chunk more; None: that is not known."""
        before = Running() if not chunk.append else self.streams.get(stream)
        if before is None or chunk.pieces is None:
            return None
        after = before.copy()
        after.add(chunk.pieces)
        return after


@dataclass(slots=True)
class Spoken:
    """The fold over what was said."""

    messages: dict[str, Known] = field(default_factory=dict[str, Known])
    histories: dict[str, Shown] = field(default_factory=dict[str, Shown])
    """By the peer's task id."""
    artifacts: dict[tuple[str, str], Artifact] = field(default_factory=dict[tuple[str, str], Artifact])
    """By the peer's task id and the artifact's."""

    def request(self, evidence: Evidence, said: Contents) -> None:
        """Take in a request of ours."""
        if said.message is not None:
            self._message(evidence, said.message, ours=True)

    def answered(self, message_id: str | None, ver: int) -> None:
        """Take note that the peer has answered our request with this message."""
        known = None if message_id is None else self.messages.get(message_id)
        if known is not None and known.answered is None:
            known.answered = ver

    def answer(self, record: Record, evidence: Evidence, said: Contents, *, stale: bool) -> None:
        """Take in what the peer said; `stale`: it answers a request from before what is known of the history."""
        if said is SILENCE and text(record.data, "state_read") not in TERMINAL:
            return
        answers = ref(record.data, "answers")
        answers_c = None if answers is None else answers["c"]
        for one in (*said.history, said.status, said.message):
            if one is not None:
                self._message(evidence, one)
        task = text(record.data, "task_id") or ""
        if said.history and not stale:
            shown = self.histories.get(task)
            if shown is None or said.history_length >= shown.length:
                self.histories.pop(task, None)
                keep(self.histories, task, Shown(evidence, answers_c, said.history, said.history_length), TASKS)
        self._artifacts(record, evidence, task, answers_c, said)

    def _message(self, evidence: Evidence, said: MessageContent, *, ours: bool = False) -> None:
        if said.id is None or said.content is None:
            return
        known = self.messages.get(said.id)
        if known is None:
            keep(self.messages, said.id, Known(evidence, (said.content,), ours), MESSAGES)
        elif said.content not in known.contents and len(known.contents) < CONTENTS:
            known.contents += (said.content,)

    # ---- artifacts

    def _artifacts(self, record: Record, evidence: Evidence, task: str, answers: str | None, said: Contents) -> None:
        state = text(record.data, "state_read")
        stream = answers if record.data.get("leg") == "stream-event" else None
        for one in said.artifacts:
            self._snapshot(self._artifact(task, one.id), one, evidence, answers, stream, state)
        if said.chunk is not None and stream is not None:
            self._chunk(self._artifact(task, said.chunk.id), said.chunk, evidence, stream)
        if state in TERMINAL and stream is not None:
            for (owner, _), artifact in self.artifacts.items():
                running = artifact.streams.get(stream)
                if owner == task and running is not None and artifact.closed is None:
                    artifact.closed = Closed(evidence, state or "", answers, running.content())

    def _artifact(self, task: str, name: str) -> Artifact:
        found = self.artifacts.get((task, name))
        if found is None:
            found = Artifact()
            keep(self.artifacts, (task, name), found, ARTIFACTS)
        return found

    def _snapshot(  # noqa: PLR0913, PLR0917 - what is said, by which event, in which stream, in which state
        self,
        artifact: Artifact,
        one: ArtifactContent,
        evidence: Evidence,
        answers: str | None,
        stream: str | None,
        state: str | None,
    ) -> None:
        if stream is not None:
            artifact.streams.pop(stream, None)
            keep(artifact.streams, stream, None, STREAMS)
        if not one.pieces:
            return
        running = Running(one.pieces)
        if artifact.closed is None:
            if state in TERMINAL:
                artifact.closed = Closed(evidence, state or "", answers, running.content())
            else:
                keep(artifact.partly, running.content(), None, CHUNKS)
        elif artifact.closed.content is None and state in TERMINAL:
            artifact.closed = artifact.closed._replace(content=running.content())

    def _chunk(self, artifact: Artifact, chunk: ArtifactContent, evidence: Evidence, stream: str) -> None:
        running = artifact.laid_together(stream, chunk)
        artifact.streams.pop(stream, None)
        keep(artifact.streams, stream, running, STREAMS)
        if artifact.closed is None:
            if running is not None:
                keep(artifact.partly, running.content(), None, CHUNKS)
            if chunk.last:
                artifact.closed = Closed(evidence, "last-chunk", stream, None if running is None else running.content())
        if chunk.pieces:
            keep(artifact.chunks, Running(chunk.pieces).content(), None, CHUNKS)


def keep(held: dict[_K, _V], key: _K, value: _V, most: int) -> None:
    """Keep an entry, and of all entries the newest ones."""
    held[key] = value
    if len(held) > most:
        del held[next(iter(held))]
