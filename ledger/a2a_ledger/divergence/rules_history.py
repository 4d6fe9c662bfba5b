"""`history-divergence`: the history in a Task of the peer is not what was recorded.

A history is no record: A2A lets a peer keep what it likes of it, cut it, and leave the newest message of its own in
the status until the next one comes. So a message that is not there is no finding. Four things are, each with its
`kind`:

`content`  a message stands in the history under an id that was recorded with another content: with what we sent, or
           with what the peer itself said before. Where the history holds the recorded one too, its id stands for
           two contents, and that is `duplicate-id`.
`order`    two messages stand in another order than in an earlier history of the peer, or than we sent them in, the
           second after the first was answered.
`gone`     a message that the history held is missing out of the middle of a longer one.
`shrunk`   the beginning of the history is missing from one that is not shorter, though the request named no
           `historyLength`. Suspected only: a peer that keeps a window of its newest messages looks the same.

Established: that the peer's history and the record differ so. Not established: which of them is true of the peer's
own store; that anything was deleted; that a history which differs in nothing is whole.

What another source tells (`told`) takes part in `content` and `order`, which need to know of no moment, as suspected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_ledger.divergence.reading import text
from a2a_ledger.divergence.readings import LONGEST
from a2a_ledger.divergence.spoken import CONTENTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from a2a_ledger.divergence.finding import Evidence, Finding
    from a2a_ledger.divergence.matter import Matter
    from a2a_ledger.divergence.spoken import Known, Shown
    from a2a_ledger.events import Json
    from a2a_ledger.wire import Contents, MessageContent

MOST = 16
"""Messages of one history that are found changed; it takes no more to see it."""


def history_rules(matter: Matter, said: Contents) -> Iterator[Finding]:
    """Hold the history in a full Task against what was recorded."""
    if not said.history:
        return
    task = text(matter.record.data, "task_id") or ""
    yield from _changed(matter, said.history)
    for told, certainty in matter.sources:
        yield from _sent_in_another_order(matter, said.history, told.spoken.messages, certainty)
        shown = told.spoken.histories.get(task)
        if shown is not None:
            yield from _shown_in_another_order(matter, said.history, shown, certainty)
    own = matter.told.spoken.histories.get(task)
    if own is not None and not matter.case.is_stale(matter.record):
        yield from _gone(matter, said, own)


def _changed(matter: Matter, history: Sequence[MessageContent]) -> Iterator[Finding]:
    found: dict[str, tuple[Known, str]] = {}
    kept: set[str | None] = set()  # what stands here as it was recorded: a second content beside it is `duplicate-id`
    for one in history:
        known, _ = matter.known(one.id)
        if known is not None and one.content is not None and one.content.is_among(known.contents):
            kept.add(one.id)
    for one in history:
        if one.id in kept:
            continue
        comparable = one.content is not None or one.is_empty
        known, certainty = matter.known(one.id if comparable else None)
        if known is None or (one.is_empty and certainty != "certain") or len(known.contents) >= CONTENTS:
            continue
        found[one.id or ""] = known, certainty
        if len(found) == MOST:
            break
    for name, (known, certainty) in found.items():
        observed: dict[str, Json] = {"message": name[:LONGEST], "said_by": "client" if known.ours else "peer"}
        subject = f"content:{matter.readings.in_subject(name)}"
        yield _finding(matter, "content", subject, observed, known.evidence, certainty=certainty)


def _sent_in_another_order(
    matter: Matter, history: Sequence[MessageContent], messages: Mapping[str, Known], certainty: str
) -> Iterator[Finding]:
    """A message that we sent after another was answered stands before it."""
    latest: tuple[str, Known] | None = None
    for name in _ids(history):
        known = messages.get(name)
        if known is None or not known.ours:
            continue
        if latest is not None and known.answered is not None and known.answered < latest[1].evidence.ref["ver"]:
            observed: dict[str, Json] = {"earlier": name[:LONGEST], "later": latest[0][:LONGEST]}
            yield _finding(matter, "order", "order", observed, known.evidence, latest[1].evidence, certainty=certainty)
            return
        if latest is None or known.evidence.n > latest[1].evidence.n:
            latest = (name, known)


def _shown_in_another_order(
    matter: Matter, history: Sequence[MessageContent], shown: Shown, certainty: str
) -> Iterator[Finding]:
    """Two messages stand in another order than in an earlier history of this task."""
    before = {name: place for place, name in enumerate(_ids(shown.messages))}
    latest: str | None = None
    for name in _ids(history):
        if name not in before:
            continue
        if latest is not None and before[name] < before[latest]:
            observed: dict[str, Json] = {"earlier": name[:LONGEST], "later": latest[:LONGEST]}
            yield _finding(matter, "order", "order", observed, shown.evidence, certainty=certainty)
            return
        latest = name


def _ids(history: Sequence[MessageContent]) -> list[str]:
    """Return the ids in their order, without those that stand there twice: which place would count?"""
    seen: dict[str, int] = {}
    for one in history:
        if one.id is not None:
            seen[one.id] = seen.get(one.id, 0) + 1
    return [name for name, count in seen.items() if count == 1]


def _gone(matter: Matter, said: Contents, shown: Shown) -> Iterator[Finding]:
    """A message that was shown is missing from a history that is as long, or longer."""
    if said.history_length < shown.length:
        return
    listed = (*said.history, said.status) if said.status is not None else said.history
    ids = {one.id for one in listed} - {None}
    contents = {digest for one in listed for digest in _digests(one)}
    held = [
        one.id in ids or not contents.isdisjoint(_digests(one)) or (one.id is None and one.content is None)
        for one in shown.messages
    ]
    # What lost both its id and its content may be any one of those that are not found.
    hidden = sum(one.id is None and one.content is None for one in listed) if matter.readings.heeds_cuts else 0
    if held.count(False) <= hidden:
        return
    missing = held.index(False)
    observed: dict[str, Json] = {
        "message": None if hidden else (shown.messages[missing].id or "")[:LONGEST] or None,
        "shown": shown.length,
        "now": said.history_length,
        "missing": held.count(False) - hidden,
    }
    if any(held[:missing]):
        if said.history_length > shown.length:
            yield _finding(matter, "gone", "gone", observed, shown.evidence)
        return
    asked = matter.asked
    whole = shown.length == len(shown.messages) and said.history_length == len(said.history)
    if asked is not None and asked.history_length is None and whole:
        yield _finding(matter, "shrunk", "shrunk", observed, shown.evidence, certainty="suspected")


def _digests(one: MessageContent) -> tuple[str, ...]:
    return () if one.content is None else (one.content.digest, *one.content.singly)


def _finding(
    matter: Matter,
    kind: str,
    subject: str,
    observed: dict[str, Json],
    *evidence: Evidence,
    certainty: str = "certain",
) -> Finding:
    return matter.finding(
        "history-divergence",
        about="peer",
        subject=subject,
        certainty=certainty,
        evidence=evidence,
        observed={"kind": kind, **observed, "pointer": "/history"},
    )
